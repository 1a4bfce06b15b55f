/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel objects in ordinary memory: sockets that carry descriptors, pipes, eventfds, memory files,
 * pidfds; and each process's table of descriptors. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "objects.h"

enum { FIRST_FD = 3, MAX_QUEUED = 64 };

static object *tables[MAX_PROCESSES][MAX_FDS];
static int object_count;
uint64_t sim_fd_epoch = 1;

void sim_fd_events(void) {
    sim_fd_epoch++;
    sim_changed = true;
}

object *sim_object_new(object_kind kind) {
    object *self = calloc(1, sizeof *self);
    self->kind = kind;
    self->id = ++object_count;
    self->last = &self->first;
    return self;
}

object *sim_pidfd_new(int process) {
    object *self = sim_object_new(OBJECT_PID);
    self->process = process;
    return self;
}

object *sim_object_of(int process, int fd) {
    return fd >= 0 && fd < MAX_FDS ? tables[process][fd] : NULL;
}

int sim_fd_give(object *self, int process, int from) {
    for (int fd = from < FIRST_FD ? FIRST_FD : from; fd < MAX_FDS; fd++) {
        if (tables[process][fd]) continue;
        sim_fd_install(self, process, fd);
        return fd;
    }
    errno = EMFILE;
    return -1;
}

void sim_fd_install(object *self, int process, int fd) {
    tables[process][fd] = self;
    self->uses++;
}

void sim_object_release(object *self) {
    if (--self->uses) return;
    if (self->peer) {
        self->peer->peer_gone = true;
        self->peer->peer = NULL;
    }
    for (message *it = self->first, *next; it; it = next) {
        next = it->next;
        for (int i = 0; i < it->object_count; i++) sim_object_release(it->objects[i]);
        free(it);
    }
    self->first = NULL; /* the object stays: its number is never used again */
    sim_fd_events();
}

static void close_fd(int process, int fd) {
    object *self = tables[process][fd];
    tables[process][fd] = NULL;
    sim_object_release(self);
}

bool sim_fds_close_one(int process) {
    for (int fd = 0; fd < MAX_FDS; fd++) {
        if (!tables[process][fd]) continue;
        close_fd(process, fd);
        return true;
    }
    return false;
}

void sim_fds_close(int process) {
    while (sim_fds_close_one(process)) {
    }
}

unsigned sim_fds_left(int process) {
    unsigned left = 0;
    for (int fd = 0; fd < MAX_FDS; fd++) left += tables[process][fd] != NULL;
    return left;
}
unsigned sim_fds_open(void) {
    return sim_fds_left(0);
}

char *sim_object_memory(object *self, void *wanted) {
    if (self->kind != OBJECT_MEMORY) return NULL;
    if (!self->memory) self->memory = sim_memory_new(self->bytes, wanted);
    return self->memory;
}

bool sim_object_published(const object *self) {
    return self->seals & F_SEAL_FUTURE_WRITE;
}

uint64_t sim_object_bytes(const object *self) {
    return self->bytes;
}

bool sim_object_room(const object *self) {
    return self->queued < MAX_QUEUED;
}

/* ---- made and closed ---- */

static int refuse(int error) {
    errno = error;
    return -1;
}
static int give(object *self) {
    return sim_fd_give(self, sim_current->process, 0);
}

static int give_pair(object_kind kind, object_kind other, bool nonblocking, int out[2]) {
    if (sim_refuses()) return refuse(EMFILE);
    object *a = sim_object_new(kind), *b = sim_object_new(other);
    a->peer = b;
    b->peer = a;
    a->nonblocking = b->nonblocking = nonblocking;
    out[0] = give(a);
    out[1] = give(b);
    return 0;
}

int sim_os_socketpair(int domain, int type, int protocol, int out[2]) {
    (void)domain, (void)protocol;
    return give_pair(OBJECT_SOCKET, OBJECT_SOCKET, type & SOCK_NONBLOCK, out);
}
int sim_os_pipe2(int out[2], int flags) {
    return give_pair(OBJECT_PIPE_OUT, OBJECT_PIPE_IN, flags & O_NONBLOCK, out);
}
int sim_os_eventfd(unsigned count, int flags) {
    if (sim_refuses()) return refuse(EMFILE);
    object *self = sim_object_new(OBJECT_EVENT);
    self->count = count;
    self->nonblocking = flags & EFD_NONBLOCK;
    return give(self);
}
int sim_os_memfd_create(const char *name, unsigned flags) {
    (void)name, (void)flags;
    if (sim_refuses()) return refuse(ENFILE);
    return give(sim_object_new(OBJECT_MEMORY));
}
int sim_os_close(int fd) {
    sim_point(__builtin_return_address(0));
    if (!sim_object_of(sim_current->process, fd))
        sim_fail(SIM_BUG, "close of descriptor %d, which is not open, at %p", fd,
                 __builtin_return_address(0));
    close_fd(sim_current->process, fd);
    return 0;
}

/* ---- about them ---- */

int sim_os_fcntl(int fd, int command, long value) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self) return refuse(EBADF);
    switch (command) {
    case F_GETFL:
        return O_RDWR | (self->nonblocking ? O_NONBLOCK : 0);
    case F_SETFL:
        self->nonblocking = value & O_NONBLOCK;
        return 0;
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return sim_fd_give(self, sim_current->process, (int)value);
    case F_ADD_SEALS:
        self->seals |= (int)value;
        return 0;
    case F_GET_SEALS:
        return self->seals;
    case F_SETFD:
    case F_GETFD:
        return 0;
    default:
        sim_fail(SIM_UNSUPPORTED, "fcntl %d", command);
    }
}

int sim_os_fstat(int fd, struct stat *out) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self) return refuse(EBADF);
    memset(out, 0, sizeof *out);
    out->st_mode = self->kind == OBJECT_MEMORY ? S_IFREG : 0;
    out->st_dev = 77;
    out->st_ino = (ino_t)self->id;
    out->st_size = (off_t)self->bytes;
    return 0;
}

int sim_os_ftruncate(int fd, off_t bytes) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self) return refuse(EBADF);
    if (self->memory) sim_fail(SIM_UNSUPPORTED, "a mapped file changes its size");
    if (sim_refuses()) return refuse(ENOMEM);
    self->bytes = (uint64_t)bytes;
    return 0;
}

int sim_os_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self || self->kind != OBJECT_SOCKET || level != SOL_SOCKET || name != SO_TYPE)
        return refuse(ENOTSOCK);
    *(int *)value = SOCK_SEQPACKET;
    *bytes = sizeof(int);
    return 0;
}

ssize_t sim_os_pread(int fd, void *to, size_t bytes, off_t offset) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self || self->kind != OBJECT_MEMORY) return refuse(EBADF);
    uint64_t at = (uint64_t)offset;
    if (at >= self->bytes) return 0;
    if (bytes > self->bytes - at) bytes = self->bytes - at;
    memcpy(to, sim_object_memory(self, NULL) + at, bytes);
    return (ssize_t)bytes;
}
ssize_t sim_os_pwrite(int fd, const void *from, size_t bytes, off_t offset) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self || self->kind != OBJECT_MEMORY) return refuse(EBADF);
    if ((uint64_t)offset + bytes > self->bytes) return refuse(ENOSPC);
    memcpy(sim_object_memory(self, NULL) + offset, from, bytes);
    return (ssize_t)bytes;
}
int sim_os_fallocate(int fd, int mode, off_t offset, off_t bytes) {
    (void)fd, (void)mode, (void)offset, (void)bytes;
    return refuse(EOPNOTSUPP);
}

/* A thread with a table of its own in which it leaves one descriptor open: worker/canary.c. */
void sim_fd_keep_for_thread(int fd) {
    object *self = sim_object_of(sim_current->process, fd);
    if (!self || sim_current->kept) return;
    self->uses++;
    sim_current->kept = self;
}
