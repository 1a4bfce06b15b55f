/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a bh_error. */
#include "error/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/plain_text.h"

static void copy_text(char *target, size_t size, const char *text) {
    snprintf(target, size, "%s", text ? text : "");
}

bh_status bh__fail(bh_error *error, bh_status status, const char *fix, const char *format, ...) {
    if (error == NULL) {
        return status;
    }
    /* The arguments may point into *error (a message being wrapped), so it is written last. */
    char message[sizeof error->message];
    char advice[sizeof error->fix];
    va_list list;
    va_start(list, format);
    if (vsnprintf(message, sizeof message, format, list) < 0) {
        copy_text(message, sizeof message, format);
    }
    va_end(list);
    copy_text(advice, sizeof advice, fix);
    /* They quote names from programs, files and workers, and are written to logs and terminals,
     * where control characters could do harm. */
    BH__PLAIN(message);
    BH__PLAIN(advice);

    memset(error, 0, sizeof *error);
    error->status = status;
    /* Errors are sent to other processes: stack contents behind the texts must not be copied. */
    memcpy(error->message, message, strlen(message));
    memcpy(error->fix, advice, strlen(advice));
    return status;
}

void bh__fail_device_code(bh_error *error, int code, const char *name) {
    if (error == NULL) {
        return;
    }
    error->device_code = code;
    copy_text(error->device_name, sizeof error->device_name, name);
}
