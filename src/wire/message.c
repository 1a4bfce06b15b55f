/* SPDX-License-Identifier: Apache-2.0 */
/* Messages: sending and receiving them, with their descriptors. */
#include "wire/message.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* On the wire: everything before `fds`, then data_bytes of data. */
#define HEAD_BYTES offsetof(bh__message, fds)

int bh__message_send(int socket, const bh__message *message, const int *fds, uint32_t fd_count) {
    if (fd_count > BH__MESSAGE_FDS || message->data_bytes > BH__MESSAGE_BYTES) return -EINVAL;
    struct iovec parts[2] = {{(void *)(uintptr_t)message, HEAD_BYTES},
                             {(void *)(uintptr_t)message->data, message->data_bytes}};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(BH__MESSAGE_FDS * sizeof(int))];
    } control;
    memset(&control, 0, sizeof control);
    struct msghdr header = {.msg_iov = parts, .msg_iovlen = message->data_bytes ? 2 : 1};
    if (fd_count) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(rights), fds, fd_count * sizeof(int));
    }
    for (;;) {
        if (sendmsg(socket, &header, MSG_NOSIGNAL) >= 0) return 0;
        if (errno != EINTR) return -errno;
    }
}

static void collect_fds(struct msghdr *header, bh__message *message) {
    message->fd_count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
            if (message->fd_count < BH__MESSAGE_FDS) {
                message->fds[message->fd_count++] = fd;
            } else {
                close(fd);
            }
        }
    }
}

int bh__message_receive(int socket, bh__message *message) {
    struct iovec parts[2] = {{message, HEAD_BYTES}, {message->data, BH__MESSAGE_BYTES}};
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(BH__MESSAGE_FDS * sizeof(int))];
    } control;
    struct msghdr header = {.msg_iov = parts,
                            .msg_iovlen = 2,
                            .msg_control = &control,
                            .msg_controllen = sizeof control};
    ssize_t got;
    do {
        got = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return errno == ECONNRESET ? -EPIPE : -errno;

    uint32_t data_bytes = message->data_bytes;
    collect_fds(&header, message);
    if (got == 0) { /* the end, or an empty packet, which may carry descriptors */
        bh__message_close_fds(message);
        return -EPIPE;
    }
    bool complete = (size_t)got >= HEAD_BYTES && data_bytes == (size_t)got - HEAD_BYTES &&
                    !(header.msg_flags & MSG_TRUNC);
    bool cut = header.msg_flags & MSG_CTRUNC;
    /* Cut with room left: the process reached its descriptor limit. Cut without: malformed. */
    message->fds_refused = cut && message->fd_count < BH__MESSAGE_FDS;
    if (!complete || cut) bh__message_close_fds(message);
    return complete && (!cut || message->fds_refused) ? 0 : -EBADMSG;
}

void bh__message_close_fds(bh__message *message) {
    for (uint32_t i = 0; i < message->fd_count; i++) {
        if (message->fds[i] >= 0) close(message->fds[i]);
        message->fds[i] = -1;
    }
    message->fd_count = 0;
}
