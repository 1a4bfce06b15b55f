/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes, a compartment each, one buffer: the child computes in memory that the parent made,
 * and when the child is killed the parent still has it. usage: share_buffer [DEVICE] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <bulkhead.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 1000 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

static void must_be(int holds, const char *what) {
    if (holds) return;
    perror(what);
    exit(1);
}

static bh_device open_device(const char *name) {
    bh_device device;
    bh_device_options options = BH_INIT(options);
    options.device = name;
    must(bh_device_open(&options, &device), "open");
    return device;
}

/* Descriptors go over a socket as control data, the token as the bytes it is. */
typedef union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(BH_SHARE_FDS * sizeof(int))];
} control;

static struct msghdr message_for(bh_share_token *token, struct iovec *data, control *extra) {
    struct msghdr message;
    memset(&message, 0, sizeof message);
    memset(extra, 0, sizeof *extra);
    data->iov_base = token;
    data->iov_len = sizeof *token;
    message.msg_iov = data;
    message.msg_iovlen = 1;
    message.msg_control = extra;
    message.msg_controllen = sizeof *extra;
    return message;
}

static void send_share(int socket, const int fds[BH_SHARE_FDS], bh_share_token *token) {
    struct iovec data;
    control extra;
    struct msghdr message = message_for(token, &data, &extra);
    extra.head.cmsg_len = CMSG_LEN(BH_SHARE_FDS * sizeof(int));
    extra.head.cmsg_level = SOL_SOCKET;
    extra.head.cmsg_type = SCM_RIGHTS;
    memcpy(CMSG_DATA(&extra.head), fds, BH_SHARE_FDS * sizeof(int));
    must_be(sendmsg(socket, &message, 0) == (ssize_t)sizeof *token, "sendmsg");
}

static void receive_share(int socket, int fds[BH_SHARE_FDS], bh_share_token *token) {
    struct iovec data;
    control extra;
    struct msghdr message = message_for(token, &data, &extra);
    must_be(recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == (ssize_t)sizeof *token, "recvmsg");
    memcpy(fds, CMSG_DATA(&extra.head), BH_SHARE_FDS * sizeof(int));
}

/* The child: doubles every element, says so, and waits to be killed. */
static void work(int socket, const char *name) {
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    bh_buffer buffer;
    uint32_t words[N];
    receive_share(socket, fds, &token);
    bh_device device = open_device(name);
    must(bh_buffer_import(device, fds, &token, NULL, &buffer), "import");
    must(bh_buffer_read(buffer, 0, words, sizeof words), "read");
    for (int i = 0; i < N; i++) words[i] *= 2;
    must(bh_buffer_write(buffer, 0, words, sizeof words), "write");
    must_be(write(socket, "", 1) == 1, "write");
    for (;;) pause();
}

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "auto";
    int pair[2], fds[BH_SHARE_FDS];
    must_be(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "socketpair");
    pid_t child = fork(); /* before any device is open */
    must_be(child >= 0, "fork");
    if (child == 0) work(pair[1], name);
    close(pair[1]); /* so that its end is noticed */

    bh_device device = open_device(name);
    bh_buffer buffer;
    bh_share_token token;
    uint32_t words[N];
    char told;
    for (uint32_t i = 0; i < N; i++) words[i] = i;
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_SHAREABLE;
    must(bh_buffer_alloc(device, BH_U32, N, &options, &buffer), "allocate");
    must(bh_buffer_write(buffer, 0, words, sizeof words), "write");
    must(bh_buffer_export(buffer, fds, &token), "export");
    send_share(pair[0], fds, &token);
    must_be(read(pair[0], &told, 1) == 1, "read");

    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    must(bh_buffer_read(buffer, 0, words, sizeof words), "read");
    unsigned wrong = 0;
    for (uint32_t i = 0; i < N; i++) wrong += words[i] != 2 * i;
    printf("the other process was killed; its work is here, %u of %d elements wrong\n", wrong, N);

    /* A token is of no use once the buffer is released. */
    bh_share_info info = BH_INIT(info);
    must(bh_buffer_release(buffer), "release");
    must(bh_share_get_info(fds, &token, &info), "query");
    printf("the token is %s\n", info.stale ? "stale" : "good");
    must(bh_device_close(device), "close");
    return wrong || !info.stale;
}
