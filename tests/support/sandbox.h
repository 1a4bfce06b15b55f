/* SPDX-License-Identifier: Apache-2.0 */
/* Surroundings in which a system call does not exist. */
#ifndef TESTS_SUPPORT_SANDBOX_H
#define TESTS_SUPPORT_SANDBOX_H

#include <stddef.h>

/* From now on this process, and what it starts, does not have these system calls (ENOSYS). Where
 * that cannot be brought about the test is skipped. */
void forbid_calls(const long *numbers, size_t count);

/* The same for pidfds, as in sandboxes that do not know them. */
void forbid_pidfds(void);
/* The same for seals against later writers (F_SEAL_FUTURE_WRITE), as on Linux before 5.1. */
void forbid_write_seals(void);

/* Likewise without Landlock, as on kernels before 5.13. */
void forbid_landlock(void);

#endif
