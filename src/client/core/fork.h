/* SPDX-License-Identifier: Apache-2.0 */
/* The library's file descriptors, and fork: a forked child must not keep memory or workers
 * alive. */
#ifndef BH_CLIENT_CORE_FORK_H
#define BH_CLIENT_CORE_FORK_H

#include <stdatomic.h>
#include <stdbool.h>

/* Registers a descriptor, so that a forked child closes it. Returns the descriptor. Its number is
 * different if the program has closed a registered descriptor of the same number. */
int bh__fd_keep(int fd);
/* Adds a holder: the descriptor stays open until every holder has called bh__fd_close. Returns the
 * descriptor to close, or -1 on failure. */
int bh__fd_hold(int fd);
/* Returns true if the number still refers to the registered file. The program may have closed it
 * and reused the number. */
bool bh__fd_is_ours(int fd);
/* Removes a holder. The last one closes the descriptor, if it is still ours. */
void bh__fd_close(int fd);
/* Adds one to an eventfd. Returns false if the descriptor is no longer ours. */
bool bh__fd_poke(int fd);
extern _Atomic bool bh__in_forked_child;
static inline bool bh__is_forked_child(void) {
    return atomic_load_explicit(&bh__in_forked_child, memory_order_relaxed);
}
/* Counts open devices. A child that is forked while none is open may use the library. */
void bh__fork_count(int change);

/* Returns true and sets the thread's error in a forked child. */
bool bh__refuse_forked(void);

#endif
