/* SPDX-License-Identifier: Apache-2.0 */
/* The words that the library and its worker share, for tests that play the worker. */
#ifndef BULKHEAD_TESTS_SUPPORT_CONTROL_H
#define BULKHEAD_TESTS_SUPPORT_CONTROL_H

#include "support.h"
#include "wire/control.h"

/* This process's own mapping of the control block. What is written to a worker's area here looks
 * the same as if the worker had written it. */
bh__front *control_block(void);
bh__area *area_at(bh__front *front, uint32_t index);

#endif
