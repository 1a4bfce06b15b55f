/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of simulated processes; see heap.c. */
#ifndef SIM_HEAP_H
#define SIM_HEAP_H

#include <stddef.h>

#include "sim.h"

#define HEAP_BASE  ((char *)0x510000000000) /* the same in every run */
#define HEAP_BYTES ((size_t)1 << 36)
enum { SIM_STACK_BYTES = 256 * 1024 };

void *sim_os_malloc(size_t bytes);
void *sim_os_calloc(size_t count, size_t bytes);
void *sim_os_aligned_alloc(size_t align, size_t bytes);
void *sim_os_realloc(void *block, size_t bytes);
void sim_os_free(void *block);
char *sim_os_strdup(const char *text);
char *sim_os_strndup(const char *text, size_t most);

/* Bytes of the application that nothing points to, in how many blocks, and where one was
 * allocated. */
size_t sim_heap_leaked(const void **out_where, size_t *out_count);
void sim_fiber_tls(const fiber *self, void (*each)(const void *from, const void *to));

#endif
