/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that are dead and not gone. A worker stays so while somebody traces one of its threads
 * and does not collect it: its pidfd tells only when the last thread is collected. */
#ifndef TESTS_SUPPORT_UNDEAD_H
#define TESTS_SUPPORT_UNDEAD_H

#include "support.h"

/* The device's worker, once it is lost, is not gone before undead_let_go. Skips the test where
 * threads cannot be traced. */
pid_t undead_hold(bh_device device);
void undead_let_go(pid_t thread);

#endif
