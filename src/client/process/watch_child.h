/* SPDX-License-Identifier: Apache-2.0 */
/* Watches a child process where the system has no pidfds. */
#ifndef BH_CLIENT_PROCESS_WATCH_CHILD_H
#define BH_CLIENT_PROCESS_WATCH_CHILD_H

#include <sys/types.h>

typedef struct bh__child_watch bh__child_watch;

/* *out_fd becomes readable once the child has ended. It belongs to the watch. The child is not
 * reaped. Returns NULL and sets errno if there is no memory, descriptor or thread. */
bh__child_watch *bh__child_watch_start(pid_t child, int *out_fd);
void bh__child_watch_end(bh__child_watch *self);

#endif
