/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of a worker: defined by the control thread, copied by the lanes that replay them. Lanes
 * run the copies in lane/lane_direct.c and lane/queued_sequence.c. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "wire/share.h"
#include "worker/state.h"

/* A lane's copy of a sequence. Only this lane touches it while the sequence exists. */
typedef struct sequence_use {
    uint64_t serial; /* of the copy; 0: none */
    uint8_t *copy;   /* Owned */
    void *made;      /* what the device made of it */
} sequence_use;

typedef struct bh__worker_sequence {
    struct bh__worker_sequence *next;
    bh__sequence_message about;
    const uint8_t *versions; /* shared with the application, which writes them */
    void *made;              /* by sequence_define, until a lane takes it; under sequence_lock */
    sequence_use uses[BH__MAX_LANES];
} sequence;

/* ---- defining: the control thread ---- */

static uint64_t shared_bytes(const sequence *self) {
    return self->about.version_bytes * self->about.version_count;
}

static void destroy(bh__worker_instance *worker, sequence *self) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        if (self->uses[i].made) worker->ops->sequence_drop(worker->device, self->uses[i].made);
        free(self->uses[i].copy);
    }
    if (self->made) worker->ops->sequence_drop(worker->device, self->made);
    if (self->versions) bh__share_unmap((void *)(uintptr_t)self->versions, shared_bytes(self));
    free(self);
}

/* True if the steps and parameters of a copy lie within it, so that nothing outside is ever read.
 */
static bool is_valid(const bh__sequence_message *about, const uint8_t *copy) {
    const bh__sequence_step *steps = (const bh__sequence_step *)(const void *)copy;
    uint64_t from = (uint64_t)about->step_count * sizeof *steps;
    for (uint32_t i = 0; i < about->step_count; i++) {
        uint32_t op = steps[i].op;
        if (op != BH__OP_LAUNCH) {
            if (op != BH__OP_SKIP && (op < BH__OP_WRITE || op > BH__OP_FILL)) return false;
        } else if (steps[i].params % 16 || steps[i].params < from ||
                   steps[i].u.launch.param_bytes > BH__MAX_PARAM_BYTES ||
                   !bh__range_fits(steps[i].params, steps[i].u.launch.param_bytes,
                                   about->version_bytes)) {
            return false;
        }
    }
    return true;
}

static bh_status check_size(const bh__sequence_message *about, const bh__message *message,
                            bh_error *error) {
    struct stat info;
    uint64_t bytes;
    if (message->fds_refused)
        return bh__fail(
            error, BH_E_NO_HOST_MEMORY, bh__errno_fix(EMFILE, ""),
            "the worker has reached its limit on descriptors, and sequence %u comes with one",
            about->id);
    if (message->fd_count == 1 && fstat(message->fds[0], &info) == 0 && about->step_count &&
        about->version_bytes % 64 == 0 &&
        (uint64_t)about->step_count * sizeof(bh__sequence_step) <= about->version_bytes &&
        bh__mul_u64(about->version_bytes, about->version_count, &bytes) && bytes &&
        (uint64_t)info.st_size >= bytes)
        return BH_OK;
    return bh__fail(
        error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
        "sequence %u of %u steps, %u versions of %llu bytes, came with memory too small for it",
        about->id, about->step_count, about->version_count,
        (unsigned long long)about->version_bytes);
}

static bh__sequence_image image_of(const sequence *self, const uint8_t *copy, uint64_t serial) {
    return (bh__sequence_image){.id = self->about.id,
                                .name = self->about.name,
                                .step_count = self->about.step_count,
                                .bytes = self->about.version_bytes,
                                .serial = serial,
                                .steps = (const bh__sequence_step *)(const void *)copy};
}

/* Reads the first version, which never changes, so that every worker makes the same of it. It is
 * read, not mapped, so that workers which are threads of one process do not share it either. */
static bool read_first(const sequence *self, int fd, uint8_t *out) {
    for (uint64_t got = 0; got < self->about.version_bytes;) {
        ssize_t some = pread(fd, out + got, self->about.version_bytes - got, (off_t)got);
        if (some <= 0) return false;
        got += (uint64_t)some;
    }
    return true;
}

static bh_status make_ready(bh__worker_instance *worker, sequence *self, int fd, bh_error *error) {
    uint8_t *first = aligned_alloc(64, self->about.version_bytes);
    if (!first)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the steps of sequence %u", self->about.id);
    bh_status status = BH_OK;
    char reason[128];
    errno = 0;
    if (!read_first(self, fd, first))
        status = bh__fail(error, BH_E_IO, "try again, and look at the system's log",
                          "the %llu bytes of sequence %u's steps cannot be read: %s",
                          (unsigned long long)self->about.version_bytes, self->about.id,
                          bh__errno_text(errno ? errno : EIO, reason, sizeof reason));
    else if (!is_valid(&self->about, first))
        status = bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                          "the steps of sequence %u are not valid", self->about.id);
    bh__sequence_image image = image_of(self, first, 0);
    if (status == BH_OK && worker->ops->sequence_define)
        status = worker->ops->sequence_define(worker->device, &image, error, &self->made);
    free(first);
    return status;
}

bh_status bh__worker_sequence_define(bh__worker_instance *worker, const bh__message *message,
                                     bh_error *error) {
    const bh__sequence_message *about = &message->u.sequence;
    bh_status status = check_size(about, message, error);
    if (status != BH_OK) return status;
    sequence *self = calloc(1, sizeof *self);
    if (self) {
        self->about = *about;
        self->about.name[sizeof self->about.name - 1] = 0;
    }
    if (self) self->versions = bh__share_map(message->fds[0], 0, shared_bytes(self), false);
    if (!self || !self->versions) {
        char reason[128];
        int number = self ? errno : ENOMEM;
        free(self);
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "sequence %u of %u steps cannot be mapped in the worker: %s", about->id,
                        about->step_count, bh__errno_text(number, reason, sizeof reason));
    }
    status = make_ready(worker, self, message->fds[0], error);
    if (status != BH_OK) {
        destroy(worker, self);
        return status;
    }
    pthread_mutex_lock(&worker->sequence_lock);
    self->next = worker->sequences;
    worker->sequences = self;
    pthread_mutex_unlock(&worker->sequence_lock);
    return BH_OK;
}

void bh__worker_sequence_drop(bh__worker_instance *worker, uint32_t id) {
    pthread_mutex_lock(&worker->sequence_lock);
    sequence **link = &worker->sequences;
    while (*link && (*link)->about.id != id) link = &(*link)->next;
    sequence *self = *link;
    if (self) *link = self->next;
    pthread_mutex_unlock(&worker->sequence_lock);
    if (self) destroy(worker, self);
}

void bh__worker_sequences_free(bh__worker_instance *worker) {
    while (worker->sequences) bh__worker_sequence_drop(worker, worker->sequences->about.id);
}

/* ---- replaying: a lane's thread ---- */

static sequence *find(bh__worker_instance *worker, uint32_t id, sequence_use **out_use,
                      uint32_t lane) {
    pthread_mutex_lock(&worker->sequence_lock);
    sequence *self = worker->sequences;
    while (self && self->about.id != id) self = self->next;
    if (self) {
        *out_use = &self->uses[lane];
        if (!self->uses[lane].made) {
            self->uses[lane].made = self->made;
            self->made = NULL;
        }
    }
    pthread_mutex_unlock(&worker->sequence_lock);
    return self;
}

bool bh__worker_sequence_copy(bh__worker_lane *lane, const bh__sequence_body *which) {
    sequence_use *use;
    sequence *self = find(lane->worker, which->id, &use, lane->index);
    if (!self || which->version >= self->about.version_count) return false;
    uint64_t bytes = self->about.version_bytes;
    if (!use->copy) use->copy = aligned_alloc(64, bytes);
    if (!use->copy) return false;
    if (use->serial != which->serial || which->serial == 0) {
        memcpy(use->copy, self->versions + which->version * bytes, bytes);
        use->serial = 0;
        if (!is_valid(&self->about, use->copy)) return false;
        use->serial = which->serial;
    }
    lane->image = image_of(self, use->copy, which->serial);
    lane->made = &use->made;
    return true;
}

bh__work bh__sequence_work(const bh__sequence_image *image, uint32_t step, const bh__work *whole) {
    const bh__sequence_step *from = &image->steps[step];
    bh__work work = {.op = (uint16_t)from->op, .lane = whole->lane, .sequence = whole->sequence};
    memcpy(&work.u, &from->u, sizeof from->u);
    if (from->op == BH__OP_LAUNCH) work.params = bh__sequence_params(image, step);
    return work;
}

void bh__worker_sequence_name_step(const bh__worker_lane *lane, uint32_t step, bh_error *error) {
    char message[sizeof error->message];
    snprintf(message, sizeof message, "step %u of %u, counted from 0: %.440s", step,
             lane->image.step_count, error->message);
    memcpy(error->message, message, sizeof message);
}
