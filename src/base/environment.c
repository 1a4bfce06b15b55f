/* SPDX-License-Identifier: Apache-2.0 */
/* Environment variables. */
#include "base/environment.h"

#include <stdlib.h>
#include <sys/auxv.h>

bool bh__is_privileged(void) {
    return getauxval(AT_SECURE) != 0;
}

const char *bh__environment(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}
