/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds, before and after. */
#ifndef TESTS_FAILING_BALANCE_H
#define TESTS_FAILING_BALANCE_H

#include <sys/types.h>

#include "page.h"
#include "world.h"

typedef struct balance {
    int64_t blocks, mapped;
    unsigned descriptors, threads, children;
} balance;

/* Once threads that end by themselves have ended. */
balance balance_take(const failing_page *page, unsigned threads);
/* Says what there is more of. */
void balance_compare(world *w, const balance *before, const balance *after);
/* Chunks of device memory that this process has descriptors of, and that the process maps. */
unsigned chunks_held(void);
unsigned chunks_mapped(pid_t process);

#endif
