/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables, which a privileged program must not trust. */
#ifndef BH_BASE_ENVIRONMENT_H
#define BH_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* Returns true if this program has privileges that the user who started it does not have
 * (set-user-ID, set-group-ID, file capabilities). Stays true after the program drops them. */
bool bh__is_privileged(void);

/* Returns the value of a variable. Returns NULL if it is not set or empty, or if this program is
 * privileged: its environment is under the control of another user. All of src/ uses this. */
const char *bh__environment(const char *name);

#endif
