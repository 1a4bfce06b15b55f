/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: defined by the control thread, replayed by lanes, as one thing where the device can and
 * step by step elsewhere. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "wire/share.h"
#include "worker/state.h"

enum {
    /* Replays before the device. With many of them the driver makes everybody wait until the first
     * has begun, lanes that have nothing to do with it too. */
    REPLAYS_AHEAD = 4,
    /* Steps that are queued one by one before the device is asked to have done as many. */
    STEPS_PER_PULSE = 64,
    PULSES_AHEAD = 2
};

/* What a lane has of a sequence. Only this lane touches it while the sequence is there. */
typedef struct sequence_use {
    uint64_t serial; /* of the copy; 0: none */
    uint8_t *copy;   /* Owned */
    void *made;      /* the device's */
} sequence_use;

typedef struct bh__sequence {
    struct bh__sequence *next;
    bh__sequence_message about;
    const uint8_t *versions; /* shared with the application, which writes them */
    void *made;              /* by define, until a lane takes it; under sequence_lock */
    sequence_use uses[BH__MAX_LANES];
} sequence;

/* ---- defining: the control thread ---- */

static uint64_t shared_bytes(const sequence *self) {
    return self->about.version_bytes * self->about.version_count;
}

static void destroy(bh__worker *worker, sequence *self) {
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        if (self->uses[i].made) worker->ops->sequence_drop(worker->device, self->uses[i].made);
        free(self->uses[i].copy);
    }
    if (self->made) worker->ops->sequence_drop(worker->device, self->made);
    if (self->versions) bh__share_unmap((void *)(uintptr_t)self->versions, shared_bytes(self));
    free(self);
}

/* Whether the steps of a copy are within it, so that nothing outside is ever looked at. */
static bool is_sound(const bh__sequence_message *about, const uint8_t *copy) {
    const bh__sequence_step *steps = (const bh__sequence_step *)(const void *)copy;
    uint64_t from = (uint64_t)about->step_count * sizeof *steps;
    for (uint32_t i = 0; i < about->step_count; i++) {
        uint32_t op = steps[i].op;
        if (op != BH__OP_LAUNCH) {
            if (op < BH__OP_WRITE || op > BH__OP_FILL) return false;
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
    if (message->fd_count == 1 && fstat(message->fds[0], &info) == 0 && about->step_count &&
        about->version_bytes % 64 == 0 &&
        (uint64_t)about->step_count * sizeof(bh__sequence_step) <= about->version_bytes &&
        bh__mul_u64(about->version_bytes, about->version_count, &bytes) && bytes &&
        (uint64_t)info.st_size >= bytes)
        return BH_OK;
    return bh__fail(
        error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
        "sequence %u of %u steps, %u times %llu bytes, came with memory too small for it",
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

/* The first version, which is never changed: what is made of it here is the same in every worker.
 * Read, not mapped, so that not even a test build shares it. */
static bool read_first(const sequence *self, int fd, uint8_t *out) {
    for (uint64_t got = 0; got < self->about.version_bytes;) {
        ssize_t some = pread(fd, out + got, self->about.version_bytes - got, (off_t)got);
        if (some <= 0) return false;
        got += (uint64_t)some;
    }
    return true;
}

static bh_status make_ready(bh__worker *worker, sequence *self, int fd, bh_error *error) {
    uint8_t *first = aligned_alloc(64, self->about.version_bytes);
    if (!first)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for the steps of sequence %u", self->about.id);
    bh_status status = BH_OK;
    if (!read_first(self, fd, first) || !is_sound(&self->about, first))
        status = bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                          "the steps of sequence %u make no sense", self->about.id);
    bh__sequence_image image = image_of(self, first, 0);
    if (status == BH_OK && worker->ops->sequence_define)
        status = worker->ops->sequence_define(worker->device, &image, error, &self->made);
    free(first);
    return status;
}

bh_status bh__serve_sequence_define(bh__worker *worker, const bh__message *message,
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

void bh__serve_sequence_drop(bh__worker *worker, uint32_t id) {
    pthread_mutex_lock(&worker->sequence_lock);
    sequence **link = &worker->sequences;
    while (*link && (*link)->about.id != id) link = &(*link)->next;
    sequence *self = *link;
    if (self) *link = self->next;
    pthread_mutex_unlock(&worker->sequence_lock);
    if (self) destroy(worker, self);
}

void bh__serve_sequences_free(bh__worker *worker) {
    while (worker->sequences) bh__serve_sequence_drop(worker, worker->sequences->about.id);
}

/* ---- replaying: a lane's thread ---- */

static sequence *find(bh__worker *worker, uint32_t id, sequence_use **out_use, uint32_t lane) {
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

bool bh__serve_sequence_copy(bh__lane *lane, const bh__sequence_body *which) {
    sequence_use *use;
    sequence *self = find(lane->worker, which->id, &use, lane->index);
    if (!self || which->version >= self->about.version_count) return false;
    uint64_t bytes = self->about.version_bytes;
    if (!use->copy) use->copy = aligned_alloc(64, bytes);
    if (!use->copy) return false;
    if (use->serial != which->serial || which->serial == 0) {
        memcpy(use->copy, self->versions + which->version * bytes, bytes);
        use->serial = 0;
        if (!is_sound(&self->about, use->copy)) return false;
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

/* What is wrong with a step that did no harm. */
static void name_step(const bh__lane *lane, uint32_t step, bh_error *error) {
    char message[sizeof error->message];
    snprintf(message, sizeof message, "step %u of %u: %.450s", step + 1, lane->image.step_count,
             error->message);
    memcpy(error->message, message, sizeof message);
}

bh_status bh__sequence_execute(bh__lane *lane, bh_error *error) {
    bh__worker *worker = lane->worker;
    const bh__sequence_image *image = &lane->image;
    uint32_t repeat = lane->work->u.sequence.repeat;
    for (uint32_t replay = 0; replay < repeat; replay++) {
        for (uint32_t i = 0; i < image->step_count; i++) {
            if (bh__serve_killed(worker)) return BH_E_STOPPED;
            atomic_store_explicit(&lane->area->step, bh__step_word(i, 1), memory_order_relaxed);
            lane->step_at = i + 1;
            bh__work work = bh__sequence_work(image, i, lane->work);
            bool ranged = bh__range_begin_step(lane, i, &work);
            bh_status status = worker->ops->execute(lane->context, &work, error);
            bh__range_end(ranged);
            if (status == BH_OK) continue;
            if (status != BH_E_FAULT && status != BH_E_STOPPED) {
                name_step(lane, i, error);
                lane->step_at = 0;
            }
            return status;
        }
    }
    lane->step_at = 0;
    return BH_OK;
}

static bh_status tell_step(bh__lane *lane, uint32_t done, bh_error *error) {
    uint64_t word = bh__step_word(done, BH__STEP_GROUP);
    return lane->worker->ops->tell(lane->context, offsetof(bh__lane_area, step), word, error);
}

/* Counts a piece of a long request, and waits until the device has done most of those before it. */
static bh_status pulse(bh__lane *lane, uint64_t most, bh_error *error) {
    bh_status status = lane->worker->ops->tell(lane->context, offsetof(bh__lane_area, pulse),
                                               ++lane->pulses, error);
    if (status != BH_OK) return status;
    return bh__queue_wait_for_pulse(lane, most) ? BH_OK : BH_E_STOPPED;
}

static bh_status queue_steps(bh__lane *lane, bh_error *error) {
    const bh__sequence_image *image = &lane->image;
    bh_status status = tell_step(lane, 0, error);
    for (uint32_t i = 0; i < image->step_count && status == BH_OK; i++) {
        bh__work work = bh__sequence_work(image, i, lane->work);
        bool ranged = bh__range_begin_step(lane, i, &work);
        status = lane->worker->ops->enqueue(lane->context, &work, error);
        bh__range_end(ranged);
        if (status == BH_E_BUSY) status = bh__queue_settle(lane) ? BH_OK : BH_E_STOPPED;
        if (status != BH_OK && status != BH_E_FAULT && status != BH_E_STOPPED)
            name_step(lane, i, error);
        if (status == BH_OK && (i + 1) % BH__STEP_GROUP == 0)
            status = tell_step(lane, i + 1, error);
        if (status == BH_OK && (i + 1) % STEPS_PER_PULSE == 0)
            status = pulse(lane, PULSES_AHEAD, error);
    }
    if (status == BH_OK) return tell_step(lane, 0, error);
    bh_error ignored; /* the next replay begins at its first step */
    if (status != BH_E_FAULT && status != BH_E_STOPPED) (void)tell_step(lane, 0, &ignored);
    return status;
}

bh_status bh__sequence_queue(bh__lane *lane, bh_error *error) {
    const bh__device_ops *ops = lane->worker->ops;
    uint32_t repeat = lane->work->u.sequence.repeat;
    uint64_t slots =
        lane->work->sequence - atomic_load_explicit(&lane->queued, memory_order_relaxed);
    if (!bh__queue_wait_for_few(lane, (uint32_t)slots * REPLAYS_AHEAD)) return BH_E_STOPPED;
    bool prints = false;
    for (uint32_t replay = 0; replay < repeat; replay++) {
        if (bh__serve_killed(lane->worker)) return BH_E_STOPPED;
        bh_status status = BH_E_UNSUPPORTED;
        if (ops->sequence_replay)
            status =
                ops->sequence_replay(lane->context, lane->work, &lane->image, lane->made, error);
        if (status == BH_E_UNSUPPORTED) status = queue_steps(lane, error);
        prints |= status == BH_E_BUSY;
        if (status == BH_E_BUSY) status = BH_OK;
        if (status == BH_OK && repeat > 1) status = pulse(lane, REPLAYS_AHEAD, error);
        if (status != BH_OK) return status;
    }
    return prints ? BH_E_BUSY : BH_OK;
}
