/* SPDX-License-Identifier: Apache-2.0 */
/* Recording a trace: notes of requests, their way into the ring, and the calls that start and stop it. */
#include "client/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/thread.h"

/* For a lane of a device with queues to say when it saw a request done. */
#define TIMES_LATE_NS (100 * BH__NS_PER_MS)

enum { LONGEST_NAME = 255 };

static void ring_bell(bh__trace *trace) {
    atomic_fetch_add(&trace->bell, 1);
    bh__futex_wake(&trace->bell, 1, BH__FUTEX_PRIVATE);
}

/* ---- the ring ---- */

/* A place for the next record; NULL, and counted, if the writer is too far behind. */
static bh__trace_record *record_begin(bh__device *device) {
    bh__trace *trace = device->trace;
    uint64_t made = atomic_load_explicit(&trace->made, memory_order_relaxed);
    if (made - atomic_load_explicit(&trace->taken, memory_order_acquire) == BH__TRACE_RING) {
        atomic_fetch_add_explicit(&trace->dropped, 1, memory_order_relaxed);
        device->tally.trace_dropped++;
        return NULL;
    }
    return &trace->ring[made % BH__TRACE_RING];
}

static void record_end(bh__device *device) {
    bh__trace *trace = device->trace;
    uint64_t made = atomic_load_explicit(&trace->made, memory_order_relaxed) + 1;
    atomic_store_explicit(&trace->made, made, memory_order_release);
    device->tally.trace_records++;
    uint64_t waiting = made - atomic_load_explicit(&trace->taken, memory_order_relaxed);
    if (waiting == BH__TRACE_RING / 2 ||
        atomic_load_explicit(&trace->asleep, memory_order_relaxed)) {
        atomic_store(&trace->asleep, false);
        ring_bell(trace);
    }
}

static void put_event(bh__device *device, uint32_t kind, const char *name, uint64_t from,
                      uint64_t to, const char *label, uint64_t value, const char *text) {
    if (!device->trace) return;
    bh__trace_record *record = record_begin(device);
    if (!record) return;
    record->kind = kind;
    record->lane = 0;
    record->u.event.name = name;
    record->u.event.label = label;
    record->u.event.value = value;
    record->u.event.from = from;
    record->u.event.to = to;
    snprintf(record->u.event.text, sizeof record->u.event.text, "%.*s", BH__TRACE_TEXT - 1,
             text ? text : "");
    record_end(device);
}

void bh__trace_instant(bh__device *device, const char *name, const char *label, uint64_t value,
                       const char *text) {
    uint64_t now = bh__ticks(device->ticks_usable);
    put_event(device, BH__TRACE_INSTANT, name, now, now, label, value, text);
}

void bh__trace_span(bh__device *device, const char *name, uint64_t ns, const char *label,
                    uint64_t value, const char *text) {
    uint64_t now = bh__ticks(device->ticks_usable), scale = atomic_load(&device->front->tick_scale);
    uint64_t ticks = scale ? (uint64_t)((double)ns * (double)BH__TICKS_ONE / (double)scale) : 0;
    put_event(device, BH__TRACE_SPAN, name, now - ticks, now, label, value, text);
}

/* ---- requests ---- */

/* What the worker wrote down about a request, as far as it makes sense. True: all of it. */
static bool read_times(bh__device *device, bh__lane *lane, bh__trace_note *note) {
    bh__times *times = bh__area_times(atomic_load(&device->area), device->front->queue_length,
                                      lane->index, note->start);
    if (atomic_load_explicit(&times->sequence, memory_order_acquire) != note->sequence)
        return false;
    uint64_t done = atomic_load_explicit(&times->done, memory_order_acquire);
    uint64_t taken = atomic_load_explicit(&times->taken, memory_order_relaxed);
    uint64_t begun = atomic_load_explicit(&times->begun, memory_order_relaxed);
    uint64_t now = bh__ticks(device->ticks_usable);
    note->taken = taken > now ? now : taken < note->submitted ? note->submitted : taken;
    if (begun) note->begun = begun > now ? now : begun < note->taken ? note->taken : begun;
    if (begun && done) note->done = done > now ? now : done < note->begun ? note->begun : done;
    return begun && done;
}

static void put_request(bh__device *device, bh__lane *lane, const bh__trace_note *note) {
    bh__trace_record *record = record_begin(device);
    if (!record) return;
    record->kind = BH__TRACE_REQUEST;
    record->lane = lane->index;
    record->u.request = *note;
    record_end(device);
}

/* The request at the cursor, which is done. False: its times are not there yet, and it can wait. */
static bool collect_one(bh__device *device, bh__lane *lane, bool must) {
    bh__lane_trace *trace = lane->trace;
    bh__trace_note *note = &trace->notes[trace->cursor & trace->mask];
    if (!note->resolved && !read_times(device, lane, note)) {
        uint64_t now = bh__ticks(device->ticks_usable);
        uint64_t scale = atomic_load(&device->front->tick_scale);
        if (!trace->waits_since) trace->waits_since = now;
        if (!must && bh__ticks_ns(now - trace->waits_since, scale) < TIMES_LATE_NS) return false;
        note->done = now;
    }
    trace->waits_since = 0;
    /* A lane runs one after another, also where the end of one had to be guessed. */
    if (note->begun && note->begun < trace->ended) note->begun = trace->ended;
    if (note->done < note->begun) note->done = note->begun;
    trace->ended = note->done;
    put_request(device, lane, note);
    trace->cursor += note->slots;
    return true;
}

static bh__lane_trace *lane_trace_of(bh__device *device, bh__lane *lane, uint64_t start) {
    if (lane->trace) return lane->trace;
    uint32_t length = device->front->queue_length;
    bh__lane_trace *trace = calloc(1, sizeof *trace + length * sizeof trace->notes[0]);
    if (!trace) return NULL;
    trace->cursor = start;
    trace->mask = length - 1;
    trace->ticks_usable = device->ticks_usable;
    return lane->trace = trace;
}

/* Kernels and sequences are gone before the file is written: their names are kept. *known is where
 * it was put when it was last asked for; 0: no room. */
static uint32_t name_of(bh__trace *trace, const char *name, uint32_t *known) {
    if (*known && *known <= trace->name_count) {
        const char *kept = atomic_load_explicit(&trace->names[*known - 1], memory_order_relaxed);
        if (strncmp(kept, name, LONGEST_NAME) == 0) return *known;
    }
    char *copy = trace->name_count < BH__TRACE_NAMES ? strndup(name, LONGEST_NAME) : NULL;
    if (!copy) return 0;
    atomic_store_explicit(&trace->names[trace->name_count], copy, memory_order_release);
    return *known = ++trace->name_count;
}

void bh__trace_submit(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end) {
    bh__lane *lane = submission->lane;
    bh__lane_trace *trace = lane_trace_of(device, lane, start);
    if (!trace) {
        atomic_fetch_add_explicit(&device->trace->dropped, 1, memory_order_relaxed);
        device->tally.trace_dropped++;
        return;
    }
    /* The slots that this request takes hold notes and times of others, which are done. */
    while (trace->cursor + trace->mask + 1 < end) (void)collect_one(device, lane, true);

    bh__trace_note *note = &trace->notes[start & trace->mask];
    const bh__request *request = bh__ring_request(lane->ring, device->front->queue_length, start);
    *note = (bh__trace_note){.start = start,
                             .sequence = end,
                             .submitted = request->submitted,
                             .op = submission->op,
                             .slots = (uint16_t)(end - start)};
    for (uint64_t at = start + 1; at < end; at++) trace->notes[at & trace->mask].start = start;
    if (submission->op == BH__OP_LAUNCH) {
        bh__kernel *kernel = submission->kernel;
        note->name = name_of(device->trace, kernel->name, &kernel->trace_name);
        memcpy(note->grid, submission->launch->grid, sizeof note->grid);
        memcpy(note->block, submission->launch->block, sizeof note->block);
    } else if (submission->op == BH__OP_SEQUENCE) {
        const bh__sequence *sequence = submission->sequence;
        note->name = name_of(device->trace, bh__sequence_name(sequence),
                             bh__sequence_trace_name(submission->sequence));
        note->steps = bh__sequence_step_count(sequence);
        note->repeat = submission->replay->repeat;
    } else {
        note->bytes = bh__copy_bytes(&submission->copy);
    }
    if (atomic_load_explicit(&device->trace->asleep, memory_order_relaxed)) {
        atomic_store(&device->trace->asleep, false);
        ring_bell(device->trace);
    }
}

void bh__trace_verdict(bh__lane *lane, uint64_t sequence, bh_status status) {
    bh__lane_trace *trace = lane->trace;
    if (!trace || sequence <= trace->cursor) return;
    bh__trace_note *last = &trace->notes[(sequence - 1) & trace->mask];
    bh__trace_note *note = &trace->notes[last->start & trace->mask];
    if (note->sequence != sequence) return; /* submitted before the trace began */
    note->verdict = status;
    note->resolved = 1;
    note->done = bh__ticks(trace->ticks_usable);
}

void bh__trace_frozen(bh__device *device, const uint64_t *taken) {
    if (!device->trace) return;
    (void)bh__trace_sweep(device, false);
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        for (uint64_t at = lane->trace ? lane->floor : 0; lane->trace && at < taken[i];) {
            bh__trace_note *note = &lane->trace->notes[at & lane->trace->mask];
            if (note->start != at || at < lane->trace->cursor) {
                at++; /* one from before the trace began, or a further slot of it */
                continue;
            }
            (void)read_times(device, lane, note);
            note->done = 0;
            at += note->slots ? note->slots : 1;
        }
    }
}

bool bh__trace_sweep(bh__device *device, bool all) {
    bool left = false;
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        bh__lane_trace *trace = lane->trace;
        if (!trace) continue;
        uint64_t done = bh__lane_done(device, lane), tail = atomic_load(&lane->tail);
        while (trace->cursor < done && collect_one(device, lane, all || device->frozen)) {
        }
        while (all && trace->cursor < tail) {
            bh__trace_note *note = &trace->notes[trace->cursor & trace->mask];
            note->pending = !note->resolved;
            (void)collect_one(device, lane, true);
        }
        left |= trace->cursor < tail;
    }
    return left;
}

/* ---- starting and stopping ---- */

static void trace_delete(bh__trace *trace) {
    for (uint32_t i = 0; i < BH__TRACE_NAMES; i++) free(atomic_load(&trace->names[i]));
    free(trace->ring);
    bh__fd_close(trace->fd);
    free(trace);
}

static bh_status refuse_file(const char *path, int number) {
    char text[128];
    return bh__refuse(number == ENOENT ? BH_E_NOT_FOUND : BH_E_IO,
                      "name a file in a folder that exists and can be written",
                      "a trace cannot be written to %s: %s", path,
                      bh__errno_text(number, text, sizeof text));
}

static bh_status trace_new(const char *path, bh__trace **out) {
    bh__trace *trace = aligned_alloc(64, (sizeof *trace + 63) & ~(size_t)63);
    bh__trace_record *ring = calloc(BH__TRACE_RING, sizeof *ring);
    if (!trace || !ring) {
        free(trace);
        free(ring);
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a trace's ring of %d records", BH__TRACE_RING);
    }
    memset(trace, 0, sizeof *trace);
    trace->ring = ring;
    trace->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (trace->fd < 0) {
        int number = errno;
        trace_delete(trace);
        return refuse_file(path, number);
    }
    trace->fd = bh__fd_keep(trace->fd);
    *out = trace;
    return BH_OK;
}

static bh_status writer_start(bh__trace *trace) {
    int failed = bh__thread_start(&trace->writer, NULL, bh__trace_writer, trace);
    char text[128];
    if (!failed) return BH_OK;
    return bh__refuse(BH_E_NO_HOST_MEMORY, "raise the limit on processes (ulimit -u)",
                      "the thread that writes a trace cannot be started: %s",
                      bh__errno_text(failed, text, sizeof text));
}

bh_status bh_trace_start(bh_device handle, const char *path) {
    if (!path) return bh__refuse(BH_E_INVALID, "pass the name of a file", "path is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__trace *trace = NULL;
    bh_status status = BH_OK;
    if (device->trace) {
        status = bh__refuse(BH_E_BUSY, "stop it first with bh_trace_stop",
                            "the device is being traced already");
    } else if ((status = trace_new(path, &trace)) == BH_OK) {
        trace->device = device;
        trace->ticks_usable = device->ticks_usable;
        trace->scale = atomic_load(&device->front->tick_scale);
        trace->origin = bh__ticks(device->ticks_usable);
        status = writer_start(trace);
        if (status != BH_OK) {
            trace_delete(trace);
        } else {
            device->trace = trace;
            atomic_store(&device->front->trace, 1);
        }
    }
    bh__device_unlock(device);
    return status;
}

/* Nothing more is recorded; what is known goes into the ring. With the lock held. */
static bh__trace *detach(bh__device *device) {
    bh__trace *trace = device->trace;
    if (!trace) return NULL;
    (void)bh__trace_sweep(device, true);
    atomic_store(&device->front->trace, 0);
    device->trace = NULL;
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        free(device->lanes[i].trace);
        device->lanes[i].trace = NULL;
    }
    return trace;
}

/* Without the lock, which the writer may be waiting for. Returns errno. */
static int finish(bh__trace *trace) {
    atomic_store(&trace->ending, true);
    ring_bell(trace);
    pthread_join(trace->writer, NULL);
    int failed = trace->failed;
    trace_delete(trace);
    return failed;
}

bh_status bh_trace_stop(bh_device handle) {
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", false);
    if (!device) return bh__last()->status;
    bh__trace *trace = detach(device);
    bh__device_step_out(device);
    if (!trace) bh__ticket_leave(device);
    if (!trace)
        return bh__refuse(BH_E_NOT_FOUND, "start one with bh_trace_start",
                          "the device is not being traced");
    int failed = finish(trace);
    bh__ticket_leave(device);
    char text[128];
    if (!failed) return BH_OK;
    return bh__refuse(BH_E_IO, "make room on the disk and trace again",
                      "the trace is not whole: %s", bh__errno_text(failed, text, sizeof text));
}

void bh__trace_close(bh__device *device) {
    bh__lock_take(&device->lock);
    bh__trace *trace = detach(device);
    bh__lock_give(&device->lock);
    if (trace) (void)finish(trace);
}
