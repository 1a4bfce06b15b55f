/* SPDX-License-Identifier: Apache-2.0 */
/* Names of NVTX ranges: the names of kernels, and a request as a line of text. */
#include "worker/lane/nvtx_range.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "worker/state.h"

enum { TEXT_BYTES = 320, MAX_NAME = 240 };

/* A module's description, as the application gets it. */
typedef struct bh__kernel_names {
    struct bh__kernel_names *next;
    uint32_t module;
    uint64_t bytes;
    _Alignas(16) uint8_t blob[];
} kernel_names;

static kernel_names *read_blob(int fd) {
    struct stat info;
    if (fstat(fd, &info) < 0 || info.st_size < (off_t)sizeof(bh__module_blob)) return NULL;
    uint64_t bytes = (uint64_t)info.st_size;
    kernel_names *self = malloc(sizeof *self + bytes + 1);
    if (!self) return NULL;
    for (uint64_t got = 0; got < bytes;) {
        ssize_t some = pread(fd, self->blob + got, bytes - got, (off_t)got);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) {
            free(self);
            return NULL;
        }
        got += (uint64_t)some;
    }
    self->blob[bytes] = 0; /* terminates the last name */
    self->bytes = bytes;
    return self;
}

void bh__range_learn(bh__worker_instance *worker, uint32_t module, int blob) {
    if (!bh__nvtx_listens || blob < 0) return;
    bh__range_forget(worker, module);
    kernel_names *self = read_blob(blob);
    if (!self) return;
    self->module = module;
    pthread_mutex_lock(&worker->names_lock);
    self->next = worker->kernel_names;
    worker->kernel_names = self;
    pthread_mutex_unlock(&worker->names_lock);
}

void bh__range_forget(bh__worker_instance *worker, uint32_t module) {
    if (!bh__nvtx_listens) return;
    pthread_mutex_lock(&worker->names_lock);
    kernel_names **link = &worker->kernel_names;
    while (*link && (*link)->module != module) link = &(*link)->next;
    kernel_names *self = *link;
    if (self) *link = self->next;
    pthread_mutex_unlock(&worker->names_lock);
    free(self);
}

void bh__range_free(bh__worker_instance *worker) {
    while (worker->kernel_names) bh__range_forget(worker, worker->kernel_names->module);
}

static const char *name_in(const kernel_names *self, uint32_t kernel) {
    bh__module_blob head;
    bh__blob_kernel about;
    memcpy(&head, self->blob, sizeof head);
    uint64_t offset;
    if (kernel >= head.kernel_count ||
        !bh__add_u64(head.kernels_offset, (uint64_t)kernel * sizeof about, &offset) ||
        !bh__range_fits(offset, sizeof about, self->bytes))
        return NULL;
    memcpy(&about, self->blob + offset, sizeof about);
    return about.name_offset < self->bytes ? (const char *)self->blob + about.name_offset : NULL;
}

/* Valid while the module is loaded. It is loaded while a lane has a launch of it. */
static const char *kernel_name(const bh__worker_lane *lane, const bh__launch_body *launch) {
    bh__worker_instance *worker = lane->worker;
    pthread_mutex_lock(&worker->names_lock);
    const kernel_names *self = worker->kernel_names;
    while (self && self->module != launch->module) self = self->next;
    pthread_mutex_unlock(&worker->names_lock);
    const char *name = self ? name_in(self, launch->kernel) : NULL;
    return name ? name : "kernel";
}

static void describe(const bh__worker_lane *lane, const bh__work *work, char *text, size_t size) {
    static const char *const copies[] = {
        [BH__OP_WRITE] = "write",
        [BH__OP_READ] = "read",
        [BH__OP_COPY] = "copy",
        [BH__OP_FILL] = "fill",
        [BH__OP_GLOBAL_WRITE] = "write variable",
        [BH__OP_GLOBAL_READ] = "read variable",
    };
    if (work->op == BH__OP_LAUNCH) {
        snprintf(text, size, "%.*s", MAX_NAME, kernel_name(lane, &work->u.launch));
    } else if (work->op == BH__OP_SEQUENCE) {
        uint32_t steps = lane->image.step_count, repeat = work->u.sequence.repeat;
        int length =
            snprintf(text, size, "%s: %u step%s", lane->image.name, steps, steps == 1 ? "" : "s");
        if (repeat != 1) snprintf(text + length, size - (size_t)length, " x %u", repeat);
    } else {
        bool known = work->op < sizeof copies / sizeof *copies && copies[work->op];
        snprintf(text, size, "%s %llu B", known ? copies[work->op] : "request",
                 (unsigned long long)work->u.copy.bytes);
    }
}

static bool all_the_same(const bh__work *works, uint32_t count) {
    for (uint32_t i = 1; i < count; i++) {
        if (works[i].u.launch.module != works->u.launch.module ||
            works[i].u.launch.kernel != works->u.launch.kernel)
            return false;
    }
    return true;
}

void bh__range_push(const bh__worker_lane *lane, const bh__work *works, uint32_t count) {
    char what[MAX_NAME + 1], text[TEXT_BYTES];
    describe(lane, works, what, sizeof what);
    if (count == 1)
        snprintf(text, sizeof text, "%s #%llu", what, (unsigned long long)works->sequence);
    else
        snprintf(text, sizeof text, "train of %u: %s%s #%llu-#%llu", count, what,
                 all_the_same(works, count) ? "" : " ...", (unsigned long long)works->sequence,
                 (unsigned long long)works[count - 1].sequence);
    bh__nvtx_push(text);
}

void bh__range_push_step(const bh__worker_lane *lane, uint32_t step, const bh__work *work) {
    char what[MAX_NAME + 1], text[TEXT_BYTES];
    describe(lane, work, what, sizeof what);
    snprintf(text, sizeof text, "step %u of %u: %s", step, lane->image.step_count, what);
    bh__nvtx_push(text);
}

void bh__range_name_lane(const bh__worker_lane *lane) {
    if (!bh__nvtx_listens) return;
    char name[32];
    snprintf(name, sizeof name, "bulkhead lane %u", lane->index);
    bh__nvtx_name_thread(name);
}
