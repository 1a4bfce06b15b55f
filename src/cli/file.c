/* SPDX-License-Identifier: Apache-2.0 */
/* Reading whole files, and output files that are opened before the work begins. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

uint64_t bh__memory_limit(void) {
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0) return UINT64_C(1) << 32;
    return (uint64_t)pages * (uint64_t)page;
}

static bh_status cannot(const char *verb, const char *path, int number, bh_error *error) {
    bh_status status = number == ENOENT || number == ENOTDIR ? BH_E_NOT_FOUND : BH_E_IO;
    bh__report_set(error, status, "%s cannot be %s: %s", path, verb, strerror(number));
    const char *fix = number == ENOENT || number == ENOTDIR ? "check the path"
                      : number == EACCES                    ? "check the permissions of the file"
                      : number == EISDIR                    ? "name a file, not a directory"
                      : number == ENOSPC                    ? "free space on that disk"
                                                            : "check the file and its disk";
    return bh__report_fix(error, "%s", fix);
}

static bh_status too_large(const char *path, uint64_t bytes, bh_error *error) {
    char size[BH__TEXT], limit[BH__TEXT];
    bh__report_set(error, BH_E_NO_HOST_MEMORY, "%s has at least %s, this machine has %s of memory",
                   path, bh__text_size(bytes, size), bh__text_size(bh__memory_limit(), limit));
    return bh__report_fix(error, "use a smaller file or a machine with more memory");
}

static bh_status read_all(int fd, const char *path, bh__bytes *out, bh_error *error) {
    struct stat info;
    size_t capacity = 1 << 16;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
        if ((uint64_t)info.st_size >= bh__memory_limit())
            return too_large(path, (uint64_t)info.st_size, error);
        capacity = (size_t)info.st_size + 2; /* one byte more, so that read finds the end */
    }
    out->size = 0;
    out->data = NULL;
    for (;;) {
        if (out->data == NULL || out->size + 1 >= capacity) {
            if (out->data != NULL) capacity *= 2;
            unsigned char *grown =
                capacity < bh__memory_limit() ? realloc(out->data, capacity) : NULL;
            if (grown == NULL) return too_large(path, capacity, error);
            out->data = grown;
        }
        ssize_t got = read(fd, out->data + out->size, capacity - out->size - 1);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot("read", path, errno, error);
        if (got == 0) break;
        out->size += (size_t)got;
    }
    out->data[out->size] = '\0';
    return BH_OK;
}

bh_status bh__file_read(const char *path, bh__bytes *out, bh_error *error) {
    out->data = NULL;
    out->size = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return cannot("read", path, errno, error);
    bh_status status = read_all(fd, path, out, error);
    close(fd);
    if (status != BH_OK) {
        free(out->data);
        out->data = NULL;
        out->size = 0;
    }
    return status;
}

bh_status bh__output_open(const char *path, bh__output *out, bh_error *error) {
    out->path = path;
    out->created = true;
    out->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out->fd < 0 && errno == EEXIST) {
        out->created = false;
        out->fd = open(path, O_WRONLY | O_CLOEXEC);
    }
    return out->fd < 0 ? cannot("written", path, errno, error) : BH_OK;
}

bh_status bh__output_begin(bh__output *output, bh_error *error) {
    struct stat info;
    if (fstat(output->fd, &info) == 0 && S_ISREG(info.st_mode) && ftruncate(output->fd, 0) != 0)
        return cannot("written", output->path, errno, error);
    return BH_OK;
}

bh_status bh__output_write(bh__output *output, const void *data, size_t size, bh_error *error) {
    const char *from = data;
    while (size > 0) {
        ssize_t put = write(output->fd, from, size);
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return cannot("written", output->path, errno, error);
        from += put;
        size -= (size_t)put;
    }
    return BH_OK;
}

bh_status bh__output_close(bh__output *output, bool kept, bh_error *error) {
    if (output->fd < 0) return BH_OK;
    int result = close(output->fd);
    output->fd = -1;
    if (output->created && !kept) unlink(output->path);
    return result != 0 && kept ? cannot("written", output->path, errno, error) : BH_OK;
}
