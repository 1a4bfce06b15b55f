/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for errno values. */
#include "base/errno_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *bh__errno_text(int number, char *storage, size_t size) {
    if (storage == NULL || size == 0) {
        return "";
    }
    /* strerrordesc_np is neither translated nor dependent on the locale, and needs no lock. */
    const char *text = strerrordesc_np(number);
    if (text != NULL) {
        snprintf(storage, size, "%s", text);
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
