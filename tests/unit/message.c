/* SPDX-License-Identifier: Apache-2.0 */
/* src/wire/message.c: descriptors that come with packets which are no messages are closed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test.h"
#include "wire/message.h"

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    REQUIRE(folder);
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Sends `bytes` bytes of zeros with a descriptor. */
static void send_packet(int socket, size_t bytes) {
    static char zeros[128];
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {zeros, bytes};
    struct msghdr header = {.msg_iov = &part,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && bytes <= sizeof zeros);
    memset(&control, 0, sizeof control);
    struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    REQUIRE_EQ(sendmsg(socket, &header, MSG_NOSIGNAL), (ssize_t)bytes);
    close(fd);
}

TEST(descriptors_of_packets_that_are_no_messages_are_closed) {
    static bh__message message;
    int sockets[2];
    REQUIRE_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets), 0);
    unsigned before = count_descriptors();
    for (size_t bytes = 0; bytes < 20; bytes++) {
        send_packet(sockets[0], bytes);
        CHECK_EQ(bh__message_receive(sockets[1], &message), bytes ? -EBADMSG : -EPIPE);
        CHECK_EQ(message.fd_count, 0u);
        CHECK_EQ(count_descriptors(), before);
    }
    close(sockets[0]);
    CHECK_EQ(bh__message_receive(sockets[1], &message), -EPIPE);
    close(sockets[1]);
}
