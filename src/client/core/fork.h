/* SPDX-License-Identifier: Apache-2.0 */
/* The library's file descriptors, and fork: a forked child must not keep memory or workers
 * alive. */
#ifndef BH_CLIENT_CORE_FORK_H
#define BH_CLIENT_CORE_FORK_H

#include <pthread.h>
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
/* The locks that belong to no device, outermost first; they are held for short sections. A fork
 * takes all of them: a child, which has no other threads, finds them free and what they protect
 * whole. */
typedef enum bh__process_lock {
    BH__LOCK_COMPILES,      /* compile requests and the compile cache: bh__compile_lock */
    BH__LOCK_CACHE_PROBLEM, /* why the cache folder cannot be used */
    BH__LOCK_COMPILE_LOGS,  /* the logs of compiles */
    BH__LOCK_MAPPINGS,      /* bh_share_map */
    BH__LOCK_MIRRORS,       /* the registry of managed buffers */
    BH__LOCK_SLOTS,         /* the slots of devices */
    BH__LOCK_VERDICTS,      /* the verdicts of failed tickets */
    BH__PROCESS_LOCKS
} bh__process_lock;
extern pthread_mutex_t bh__process_locks[BH__PROCESS_LOCKS];

static inline void bh__process_lock_take(bh__process_lock lock) {
    pthread_mutex_lock(&bh__process_locks[lock]);
}
static inline void bh__process_lock_give(bh__process_lock lock) {
    pthread_mutex_unlock(&bh__process_locks[lock]);
}

/* Counts open devices. A child that is forked while none is open may use the library. */
void bh__fork_count(int change);

/* Returns true and sets the thread's error in a forked child. */
bool bh__refuse_forked(void);

#endif
