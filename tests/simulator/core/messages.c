/* SPDX-License-Identifier: Apache-2.0 */
/* Reading, writing, messages with descriptors, and waiting for any of it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "objects.h"

#define HERE __builtin_return_address(0)

static ssize_t refuse(int error) {
    errno = error;
    return -1;
}

static object *get(int fd) {
    return sim_object_of(sim_current->process, fd);
}

static int events_of(const object *self) {
    bool over = self->peer_gone || self->shut;
    switch (self->kind) {
    case OBJECT_EVENT:
        return POLLOUT | (self->count ? POLLIN : 0);
    case OBJECT_SOCKET:
        return (self->first || over ? POLLIN : 0) | (over ? POLLHUP : 0) |
               (self->peer && sim_object_room(self->peer) ? POLLOUT : 0);
    case OBJECT_PIPE_OUT:
        return (self->first ? POLLIN : 0) | (self->peer_gone ? POLLHUP : 0);
    case OBJECT_PID:
        return sim_process_dead(self->process) ? POLLIN : 0;
    default:
        return POLLIN | POLLOUT;
    }
}

/* ---- poll ---- */

typedef struct polling {
    struct pollfd *fds;
    nfds_t count;
    int process;
    uint64_t epoch;
    bool ready;
} polling;

static int poll_now(int process, struct pollfd *fds, nfds_t count) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        fds[i].revents = 0;
        if (fds[i].fd < 0) continue;
        const object *self = sim_object_of(process, fds[i].fd);
        int events = self ? events_of(self) & (fds[i].events | POLLHUP | POLLERR) : POLLNVAL;
        fds[i].revents = (short)events;
        ready += events != 0;
    }
    return ready;
}

static bool poll_ready(fiber *self) {
    polling *it = self->ready_argument;
    if (it->epoch != sim_fd_epoch) {
        it->epoch = sim_fd_epoch;
        it->ready = poll_now(it->process, it->fds, it->count) > 0;
    }
    return it->ready;
}

static int poll_until(struct pollfd *fds, nfds_t count, uint64_t deadline, const void *where) {
    sim_point(where);
    int process = sim_current->process, ready = poll_now(process, fds, count);
    if (ready || deadline <= sim_now_ns()) return ready;
    polling it = {fds, count, process, sim_fd_epoch, false};
    sim_block_until(WAIT_POLL, poll_ready, &it, deadline, where);
    return poll_now(process, fds, count);
}

int sim_os_poll(struct pollfd *fds, nfds_t count, int ms);
int sim_os_poll(struct pollfd *fds, nfds_t count, int ms) {
    return poll_until(fds, count, ms < 0 ? NEVER : sim_now_ns() + (uint64_t)ms * 1000000, HERE);
}
int sim_os_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const void *mask);
int sim_os_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *time, const void *mask) {
    (void)mask;
    uint64_t deadline = NEVER;
    if (time)
        deadline = sim_now_ns() + (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
    return poll_until(fds, count, deadline, HERE);
}

/* ---- bytes ---- */

static bool is_readable(fiber *self) {
    return events_of(self->ready_argument) & (POLLIN | POLLHUP);
}

/* False, with errno: nothing is there and nobody waits for it. */
static bool wait_readable(object *self, bool nonblocking, const void *where) {
    while (!(events_of(self) & (POLLIN | POLLHUP))) {
        if (nonblocking) return errno = EAGAIN, false;
        sim_block_until(WAIT_MESSAGE, is_readable, self, NEVER, where);
    }
    return true;
}

static message *next_message(object *self) {
    message *it = self->first;
    self->first = it->next;
    if (!self->first) self->last = &self->first;
    self->queued--;
    sim_fd_events();
    return it;
}

static void append(object *to, message *it) {
    *to->last = it;
    to->last = &it->next;
    to->queued++;
    sim_fd_events();
}

ssize_t sim_os_read(int fd, void *to, size_t bytes);
ssize_t sim_os_read(int fd, void *to, size_t bytes) {
    sim_point(HERE);
    object *self = get(fd);
    if (!self) return refuse(EBADF);
    if (!wait_readable(self, self->nonblocking, HERE)) return -1;
    if (self->kind == OBJECT_EVENT) {
        memcpy(to, &self->count, sizeof self->count);
        self->count = 0;
        sim_fd_events();
        return sizeof self->count;
    }
    if (self->kind != OBJECT_PIPE_OUT) sim_fail(SIM_UNSUPPORTED, "read of kind %d", self->kind);
    if (!self->first) return 0;
    message *it = next_message(self);
    size_t got = it->bytes < bytes ? it->bytes : bytes;
    memcpy(to, it->data, got);
    free(it);
    return (ssize_t)got;
}

ssize_t sim_os_write(int fd, const void *from, size_t bytes) {
    sim_point(HERE);
    object *self = get(fd);
    if (!self) return refuse(EBADF);
    if (self->kind == OBJECT_EVENT) {
        uint64_t more;
        memcpy(&more, from, sizeof more);
        self->count += more;
        sim_fd_events();
        sim_point(HERE);
        return sizeof more;
    }
    if (self->kind != OBJECT_PIPE_IN) sim_fail(SIM_UNSUPPORTED, "write of kind %d", self->kind);
    if (!self->peer) return refuse(EPIPE);
    message *it = calloc(1, sizeof *it + bytes);
    it->bytes = bytes;
    memcpy(it->data, from, bytes);
    append(self->peer, it);
    return (ssize_t)bytes;
}

/* ---- messages ---- */

static message *message_of(const struct msghdr *header) {
    size_t bytes = 0;
    for (size_t i = 0; i < header->msg_iovlen; i++) bytes += header->msg_iov[i].iov_len;
    message *it = calloc(1, sizeof *it + bytes);
    for (size_t i = 0; i < header->msg_iovlen; i++) {
        memcpy(it->data + it->bytes, header->msg_iov[i].iov_base, header->msg_iov[i].iov_len);
        it->bytes += header->msg_iov[i].iov_len;
    }
    struct msghdr *all = (struct msghdr *)(uintptr_t)header;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(all); part; part = CMSG_NXTHDR(all, part)) {
        size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        int fds[MESSAGE_OBJECTS];
        if (count > MESSAGE_OBJECTS) sim_fail(SIM_UNSUPPORTED, "%zu descriptors", count);
        memcpy(fds, CMSG_DATA(part), count * sizeof *fds);
        for (size_t i = 0; i < count; i++) {
            object *passed = get(fds[i]);
            if (!passed)
                sim_fail(SIM_BUG, "a message with descriptor %d, which is not open", fds[i]);
            passed->uses++;
            it->objects[it->object_count++] = passed;
        }
    }
    return it;
}

static bool is_writable(fiber *self) {
    const object *it = self->ready_argument;
    return !it->peer || it->shut || sim_object_room(it->peer);
}

ssize_t sim_os_sendmsg(int fd, const struct msghdr *header, int flags);
ssize_t sim_os_sendmsg(int fd, const struct msghdr *header, int flags) {
    sim_point(HERE);
    object *self = get(fd);
    if (!self || self->kind != OBJECT_SOCKET) return refuse(EBADF);
    while (self->peer && !self->shut && !sim_object_room(self->peer)) {
        if (self->nonblocking || (flags & MSG_DONTWAIT)) return refuse(EAGAIN);
        sim_block_until(WAIT_MESSAGE, is_writable, self, NEVER, HERE);
    }
    if (!self->peer || self->shut) return refuse(EPIPE);
    message *it = message_of(header);
    append(self->peer, it);
    size_t bytes = it->bytes;
    sim_point(HERE);
    return (ssize_t)bytes;
}

static void hand_over(message *it, struct msghdr *header) {
    size_t bytes = (size_t)it->object_count * sizeof(int);
    int fds[MESSAGE_OBJECTS];
    for (int i = 0; i < it->object_count; i++) {
        fds[i] = sim_fd_give(it->objects[i], sim_current->process, 0);
        sim_object_release(it->objects[i]);
    }
    header->msg_flags = 0;
    header->msg_controllen = bytes ? CMSG_SPACE(bytes) : 0;
    if (!bytes) return;
    struct cmsghdr *part = CMSG_FIRSTHDR(header);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(bytes);
    memcpy(CMSG_DATA(part), fds, bytes);
}

ssize_t sim_os_recvmsg(int fd, struct msghdr *header, int flags);
ssize_t sim_os_recvmsg(int fd, struct msghdr *header, int flags) {
    sim_point(HERE);
    object *self = get(fd);
    if (!self || self->kind != OBJECT_SOCKET) return refuse(EBADF);
    if (!wait_readable(self, self->nonblocking || (flags & MSG_DONTWAIT), HERE)) return -1;
    if (!self->first) return 0;
    message *it = next_message(self);
    size_t copied = 0;
    for (size_t i = 0; i < header->msg_iovlen && copied < it->bytes; i++) {
        size_t room = header->msg_iov[i].iov_len, some = it->bytes - copied;
        if (some > room) some = room;
        memcpy(header->msg_iov[i].iov_base, it->data + copied, some);
        copied += some;
    }
    hand_over(it, header);
    free(it);
    return (ssize_t)copied;
}

int sim_os_shutdown(int fd, int how);
int sim_os_shutdown(int fd, int how) {
    (void)how;
    object *self = get(fd);
    if (!self) return (int)refuse(EBADF);
    self->shut = true;
    if (self->peer) self->peer->shut = true;
    sim_fd_events();
    return 0;
}
