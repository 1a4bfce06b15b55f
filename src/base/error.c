/* SPDX-License-Identifier: Apache-2.0 */
/* Filling a bh_error. */
#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void copy_text(char *target, size_t size, const char *text) {
    snprintf(target, size, "%s", text ? text : "");
}

/* Messages quote names from programs, files and workers, and are written to logs and terminals,
 * where control characters could do harm. */
static void make_plain(char *text) {
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f) *text = '?';
    }
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
    make_plain(message);
    copy_text(advice, sizeof advice, fix);

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

const char *bh__errno_text(int number, char *storage, size_t size) {
    if (storage == NULL || size == 0) {
        return "";
    }
    /* strerrordesc_np is neither translated nor dependent on the locale, and needs no lock. */
    const char *text = strerrordesc_np(number);
    if (text != NULL) {
        copy_text(storage, size, text);
    } else {
        snprintf(storage, size, "error %d", number);
    }
    return storage;
}

const char *bh__errno_fix(int number, const char *otherwise) {
    switch (number) {
    case EMFILE:
    case ETOOMANYREFS: /* descriptors in flight on sockets count too */
        return "raise the limit on open files (ulimit -n)";
    case ENFILE:
        return "close files elsewhere, or raise fs.file-max of this machine";
    case EFBIG:
        return "raise the limit on file size (ulimit -f)";
    case EAGAIN:
        return "raise the limit on processes and threads (ulimit -u, or the container's)";
    case ENOMEM:
        return "free memory, or raise the limit on address space (ulimit -v)";
    default:
        return otherwise;
    }
}
