/* SPDX-License-Identifier: Apache-2.0 */
/* What kind of processor this is: native code made for one kind may not run on another. */
#ifndef BH_BASE_PROCESSOR_KIND_H
#define BH_BASE_PROCESSOR_KIND_H

#include <stdint.h>

/* A hash of the instructions that the processor has and that the system lets programs use. The same
 * on all processors of a machine. */
uint64_t bh__processor_kind(void);

#endif
