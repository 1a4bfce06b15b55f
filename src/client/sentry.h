/* SPDX-License-Identifier: Apache-2.0 */
/* Watching a child process where the system has no pidfds. */
#ifndef BH_CLIENT_SENTRY_H
#define BH_CLIENT_SENTRY_H

#include <sys/types.h>

typedef struct bh__sentry bh__sentry;

/* *out_fd, the sentry's own, becomes readable once the child is gone; it is not reaped. NULL with
 * errno: no memory, descriptor or thread. */
bh__sentry *bh__sentry_start(pid_t child, int *out_fd);
void bh__sentry_end(bh__sentry *self);

#endif
