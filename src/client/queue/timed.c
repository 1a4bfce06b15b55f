/* SPDX-License-Identifier: Apache-2.0 */
/* The times of requests with BH_SUBMIT_TIMED. Each gets one of BH__TIMED places of its lane in the
 * worker's area, where the worker writes them when it completes the request; the library remembers
 * which request has which place, and reads them when it is asked, or when the worker is lost. */
#include <stdlib.h>
#include <time.h>

#include "base/ticks.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"

enum {
    PAUSE_NS = 20000,
    /* Queued devices complete requests themselves, and the worker writes the times when it sees
     * that. */
    MAX_DELAY_NS = 20000000
};

typedef struct note {
    uint64_t lane_id; /* 0: not in use */
    uint64_t start, sequence;
    uint64_t call;       /* of a piece: see bh__shadow */
    uint64_t submitted;  /* ticks */
    uint64_t generation; /* of the worker that completed it; 0: not known yet */
    bool known;          /* the times are */
    uint64_t queued_ns, waiting_ns, device_ns;
} note;

struct bh__lane_timed {
    uint64_t count; /* so far: the next one has the place count % BH__TIMED */
    note notes[BH__TIMED];
};

bool bh__timed_reserve(bh__lane *lane) {
    if (!lane->timed) lane->timed = calloc(1, sizeof *lane->timed);
    return lane->timed != NULL;
}

uint16_t bh__timed_note(bh__lane *lane, const bh__shadow *shadow, uint64_t submitted) {
    uint32_t place = (uint32_t)(lane->timed->count++ % BH__TIMED);
    lane->timed->notes[place] = (note){.lane_id = atomic_load(&lane->id),
                                       .start = shadow->start,
                                       .sequence = shadow->start + shadow->slots,
                                       .call = shadow->call,
                                       .submitted = submitted};
    return (uint16_t)(place + 1);
}

/* Reads the times from the area of the current worker, which has completed the request. They are
 * not trusted: each is clamped to be between the one before it and now. */
static bool read_times(bh__device *device, bh__lane *lane, note *self) {
    if (self->known) return true;
    uint32_t place = (uint32_t)(self - lane->timed->notes);
    bh__timed *times =
        bh__area_timed(atomic_load(&device->queue.area), device->queue.length, lane->index, place);
    if (atomic_load_explicit(&times->sequence, memory_order_acquire) != self->sequence)
        return false;
    uint64_t now = bh__ticks(device->queue.ticks_usable), scale = device->observe.tick_scale;
    if (now < self->submitted) now = self->submitted;
    uint64_t taken = bh__times_clamp(atomic_load_explicit(&times->taken, memory_order_relaxed),
                                     self->submitted, now);
    uint64_t begun =
        bh__times_clamp(atomic_load_explicit(&times->begun, memory_order_relaxed), taken, now);
    uint64_t device_ns = atomic_load_explicit(&times->device_ns, memory_order_relaxed);
    self->queued_ns = bh__ticks_ns(taken - self->submitted, scale);
    self->waiting_ns = bh__ticks_ns(begun - taken, scale);
    self->device_ns = bh__times_clamp(device_ns, 0, bh__ticks_ns(now - taken, scale));
    self->generation = device->generation;
    return self->known = true;
}

void bh__timed_frozen(bh__device *device) {
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        for (uint32_t k = 0; lane->timed && k < BH__TIMED; k++) {
            note *self = &lane->timed->notes[k];
            if (!self->lane_id || self->generation || self->sequence > lane->floor) continue;
            (void)read_times(device, lane, self);
            self->generation = device->generation;
        }
    }
}

/* ---- querying ---- */

static note *note_at(bh__lane *lane, uint64_t number) {
    return &lane->timed->notes[number % BH__TIMED];
}

/* Finds the note of a request by its number. Later notes have higher sequence numbers, also those
 * of a lane that was opened again. */
static bool find(bh__lane *lane, bh_ticket ticket, uint64_t *out) {
    uint64_t high = lane->timed ? lane->timed->count : 0;
    uint64_t low = high > BH__TIMED ? high - BH__TIMED : 0, end = high;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (note_at(lane, middle)->sequence < ticket.sequence)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    return low < end && note_at(lane, low)->sequence == ticket.sequence &&
           note_at(lane, low)->lane_id == ticket.lane;
}

/* Adds up the pieces of a call up to its last one, which is this note. Other requests may lie in
 * between. Returns true if the times of all are known. */
static bool add_pieces(bh__device *device, bh__lane *lane, uint64_t last, bh_ticket_info *out) {
    uint64_t call = note_at(lane, last)->call, count = lane->timed->count;
    uint64_t oldest = count > BH__TIMED ? count - BH__TIMED : 0;
    out->device_ns = 0;
    for (uint64_t number = last + 1; number-- > oldest;) {
        note *self = note_at(lane, number);
        if (self->call != call) continue;
        if (!read_times(device, lane, self)) return false;
        out->device_ns += self->device_ns;
        out->queued_ns = self->queued_ns;
        out->waiting_ns = self->waiting_ns;
        if (self->start + 1 == call) return true; /* the first one */
    }
    return false;
}

/* Fills in what is known of a ticket that has completed. Returns false if its times may still come.
 * With the lock held. */
static bool describe(bh__device *device, bh__lane *lane, bh_ticket ticket, bh_ticket_info *out) {
    bool current = !device->queue.frozen && ticket.sequence > lane->floor;
    if (lane->index < BH__MAX_LANES && current) out->generation = device->generation;
    uint64_t number;
    if (!find(lane, ticket, &number)) return true;
    note *self = note_at(lane, number);
    if (self->generation) out->generation = self->generation;
    if (!self->known && (self->generation || !current)) return true; /* its worker is lost */
    bool known = read_times(device, lane, self);
    out->queued_ns = self->queued_ns;
    out->waiting_ns = self->waiting_ns;
    out->device_ns = self->device_ns;
    if (known && self->call) known = add_pieces(device, lane, number, out);
    out->timed = known;
    return known;
}

/* Called by a thread that has entered the device. */
static void describe_soon(bh__device *device, bh__lane *lane, bh_ticket ticket,
                          bh_ticket_info *out) {
    uint64_t limit = bh__now_ns() + MAX_DELAY_NS;
    for (;;) {
        bh_ticket_info info = *out;
        bh__lock_take(&device->lock);
        bool over = describe(device, lane, ticket, &info);
        bh__lock_give(&device->lock);
        if (over || bh__now_ns() >= limit) {
            if (!info.timed) info.queued_ns = info.waiting_ns = info.device_ns = 0;
            *out = info;
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

bh_status bh_ticket_get_info(bh_ticket ticket, bh_ticket_info *out) {
    if (bh__sized_check(out, "bh_ticket_info") != BH_OK) return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh_error error;
    bh_status status = bh_ticket_error(ticket, &error);
    if (status == BH_E_INVALID && bh__verdicts_status(ticket) == BH_OK) return status;
    bh_ticket_info info = {
        .size = out->size, .status = status, .lane_index = bh__lane_id_index(ticket.lane)};
    if (status != BH_OK && status != BH_E_BUSY) info.generation = error.generation;
    bh__device *device;
    bh__lane *lane;
    if (status == BH_OK && bh__ticket_enter(ticket, &device, &lane) && lane) {
        describe_soon(device, lane, ticket, &info);
        bh__ticket_leave(device);
    }
    bh__sized_give(out, &info, sizeof info);
    return BH_OK;
}
