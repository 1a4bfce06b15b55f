/* SPDX-License-Identifier: Apache-2.0 */
/* What an errno means and what to do about it, for messages. */
#ifndef BH_BASE_ERRNO_TEXT_H
#define BH_BASE_ERRNO_TEXT_H

#include <stddef.h>

/* Returns the fix for an errno that means a limit was reached; `otherwise` for other values. */
const char *bh__errno_fix(int number, const char *otherwise);

/* Writes the description of an errno value to the caller's storage, and returns it. */
const char *bh__errno_text(int number, char *storage, size_t size);

#endif
