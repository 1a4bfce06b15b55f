/* SPDX-License-Identifier: Apache-2.0 */
/* Collects a module's kernels and variables and writes them to a memfd. */
#include "worker/module_blob.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/plain_text.h"
#include "wire/share.h"

/* Returns where the bytes were put, counted from the start of the part. */
static size_t append(bh__blob *blob, bh__blob_part *part, const void *bytes, size_t count) {
    if (part->count + count > part->capacity) {
        size_t capacity = (part->count + count) * 2 + 256;
        uint8_t *larger = realloc(part->bytes, capacity);
        if (!larger) {
            blob->failed = true;
            return 0;
        }
        part->bytes = larger;
        part->capacity = capacity;
    }
    size_t offset = part->count;
    if (count) memcpy(part->bytes + offset, bytes, count);
    part->count += count;
    return offset;
}

/* Names in images may be anything; the application takes none with control characters. */
static size_t append_name(bh__blob *blob, const char *name) {
    size_t length = strlen(name), at = append(blob, &blob->names, name, length + 1);
    if (blob->failed) return at;
    char *copy = (char *)blob->names.bytes + at;
    bh__plain_text(copy, length);
    for (size_t i = 0; i < length; i++) {
        if (copy[i] == '\n' || copy[i] == '\t') copy[i] = '?';
    }
    return at;
}

void bh__blob_add_kernel(bh__blob *blob, const char *name, bh__blob_kernel kernel,
                         const bh__blob_param *params) {
    kernel.name_offset = append_name(blob, name);
    kernel.params_offset = append(blob, &blob->params, params, kernel.param_count * sizeof *params);
    append(blob, &blob->kernels, &kernel, sizeof kernel);
}

void bh__blob_add_variable(bh__blob *blob, const char *name, bh__blob_variable variable) {
    variable.name_offset = append_name(blob, name);
    append(blob, &blob->variables, &variable, sizeof variable);
}

static bool write_all(int fd, uint64_t offset, const void *bytes, size_t count) {
    const uint8_t *from = bytes;
    while (count) {
        ssize_t written = pwrite(fd, from, count, (off_t)offset);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return false;
        from += written;
        offset += (uint64_t)written;
        count -= (size_t)written;
    }
    return true;
}

/* Turns offsets within parts into offsets from the start of the blob. */
static void place(bh__blob *blob, const bh__module_blob *head) {
    uint64_t params = head->kernels_offset + blob->kernels.count;
    uint64_t names = head->variables_offset + blob->variables.count;
    bh__blob_kernel *kernels = (bh__blob_kernel *)(void *)blob->kernels.bytes;
    for (uint32_t i = 0; i < head->kernel_count; i++) {
        kernels[i].params_offset += params;
        kernels[i].name_offset += names;
    }
    bh__blob_variable *variables = (bh__blob_variable *)(void *)blob->variables.bytes;
    for (uint32_t i = 0; i < head->variable_count; i++) variables[i].name_offset += names;
}

static int write_blob(bh__blob *blob) {
    bh__module_blob head = {
        .magic = BH__BLOB_MAGIC,
        .kernel_count = (uint32_t)(blob->kernels.count / sizeof(bh__blob_kernel)),
        .variable_count = (uint32_t)(blob->variables.count / sizeof(bh__blob_variable)),
        .kernels_offset = sizeof head};
    head.variables_offset = head.kernels_offset + blob->kernels.count + blob->params.count;
    head.total_bytes = head.variables_offset + blob->variables.count + blob->names.count;
    place(blob, &head);

    int fd = bh__share_create("bulkhead-module", head.total_bytes);
    if (fd < 0) return fd;
    const bh__blob_part *parts[] = {&blob->kernels, &blob->params, &blob->variables, &blob->names};
    uint64_t offset = sizeof head;
    bool written = write_all(fd, 0, &head, sizeof head);
    for (size_t i = 0; written && i < sizeof parts / sizeof *parts; i++) {
        written = write_all(fd, offset, parts[i]->bytes, parts[i]->count);
        offset += parts[i]->count;
    }
    if (!written) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

bh_status bh__blob_finish(bh__blob *blob, bh_error *error, int *out_fd) {
    int fd = blob->failed ? -ENOMEM : write_blob(blob);
    free(blob->kernels.bytes);
    free(blob->params.bytes);
    free(blob->variables.bytes);
    free(blob->names.bytes);
    memset(blob, 0, sizeof *blob);
    if (fd < 0) {
        char reason[128];
        return bh__fail(error, BH_E_NO_HOST_MEMORY,
                        bh__errno_fix(-fd, "free memory in this machine"),
                        "the description of a module cannot be written: %s",
                        bh__errno_text(-fd, reason, sizeof reason));
    }
    *out_fd = fd;
    return BH_OK;
}
