/* SPDX-License-Identifier: Apache-2.0 */
/* Surroundings in which a system call does not exist. */
#ifndef TESTS_SUPPORT_SANDBOX_H
#define TESTS_SUPPORT_SANDBOX_H

/* From now on this process, and what it starts, has no pidfds, as in sandboxes that do not know them.
 * Where that cannot be brought about the test is skipped. */
void forbid_pidfds(void);

#endif
