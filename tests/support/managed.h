/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of managed buffers share. */
#ifndef BULKHEAD_TESTS_SUPPORT_MANAGED_H
#define BULKHEAD_TESTS_SUPPORT_MANAGED_H

#include "support.h"

typedef struct made {
    bh_buffer buffer;
    uint32_t *words; /* where the program has them */
} made;

made managed_made(bh_device device, uint64_t words, uint32_t flags);
/* One on the driver's own memory. Skips the test where there is none. */
bh_buffer managed_driven(bh_device device, uint64_t words);
bh_managed_info managed_info(bh_buffer buffer);
bh_status prefetch_on(bh_lane lane, bh_buffer buffer, uint64_t offset, uint64_t bytes,
                      uint32_t where, bh_ticket *out);

/* first, first + 1 ...; says which word is not. */
bool counts_up(const uint32_t *words, uint64_t count, uint32_t first);

#endif
