/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel objects as objects.c and messages.c see them. */
#ifndef SIM_OBJECTS_H
#define SIM_OBJECTS_H

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "sim.h"

typedef enum object_kind {
    OBJECT_EVENT = 1,
    OBJECT_SOCKET,
    OBJECT_PIPE_OUT,
    OBJECT_PIPE_IN,
    OBJECT_MEMORY,
    OBJECT_PID
} object_kind;

enum { MESSAGE_OBJECTS = 16 };

typedef struct message {
    struct message *next;
    size_t bytes;
    int object_count;
    object *objects[MESSAGE_OBJECTS];
    char data[];
} message;

struct object {
    object_kind kind;
    int uses, id;
    bool nonblocking;
    uint64_t count; /* eventfd */
    object *peer;   /* socket, pipe: messages stand where they are read */
    message *first, **last;
    int queued;
    bool shut, peer_gone;
    char *memory; /* memory file */
    uint64_t bytes;
    int seals;
    int process; /* pidfd */
};

extern uint64_t sim_fd_epoch; /* goes up when anything may have become ready */
object *sim_object_new(object_kind kind);
void sim_fd_install(object *self, int process, int fd);
bool sim_object_room(const object *self);
void sim_fd_keep_for_thread(int fd);

int sim_os_socketpair(int domain, int type, int protocol, int out[2]);
int sim_os_pipe2(int out[2], int flags);
int sim_os_eventfd(unsigned count, int flags);
int sim_os_memfd_create(const char *name, unsigned flags);
int sim_os_close(int fd);
int sim_os_fcntl(int fd, int command, long value);
int sim_os_fstat(int fd, struct stat *out);
int sim_os_ftruncate(int fd, off_t bytes);
int sim_os_getsockopt(int fd, int level, int name, void *value, socklen_t *bytes);
ssize_t sim_os_pread(int fd, void *to, size_t bytes, off_t offset);
ssize_t sim_os_pwrite(int fd, const void *from, size_t bytes, off_t offset);
ssize_t sim_os_write(int fd, const void *from, size_t bytes);
int sim_os_fallocate(int fd, int mode, off_t offset, off_t bytes);

#endif
