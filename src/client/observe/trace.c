/* SPDX-License-Identifier: Apache-2.0 */
/* Recording a trace: notes of requests, the ring, and the calls that start and stop a trace. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/thread.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/observe/trace.h"
#include "client/queue/queue.h"
#include "client/sequence/sequence.h"

/* How long to wait for the times of a completed request: a device with queues may write them
 * late. */
#define MAX_TIMES_DELAY_NS (100 * BH__NS_PER_MS)

enum { MAX_NAME = 255 };

static void wake_writer(bh__trace *trace) {
    atomic_fetch_add(&trace->bell, 1);
    bh__futex_wake(&trace->bell, 1, BH__FUTEX_PRIVATE);
}

/* ---- the ring ---- */

/* Returns a slot for the next record. Returns NULL, and counts the drop, if the ring is full. */
static bh__trace_record *record_begin(bh__device *device) {
    bh__trace *trace = device->observe.trace;
    uint64_t made = atomic_load_explicit(&trace->made, memory_order_relaxed);
    if (made - atomic_load_explicit(&trace->taken, memory_order_acquire) == BH__TRACE_RING) {
        atomic_fetch_add_explicit(&trace->dropped, 1, memory_order_relaxed);
        device->counters.trace_dropped++;
        return NULL;
    }
    return &trace->ring[made % BH__TRACE_RING];
}

static void record_end(bh__device *device) {
    bh__trace *trace = device->observe.trace;
    uint64_t made = atomic_load_explicit(&trace->made, memory_order_relaxed) + 1;
    atomic_store_explicit(&trace->made, made, memory_order_release);
    device->counters.trace_records++;
    uint64_t waiting = made - atomic_load_explicit(&trace->taken, memory_order_relaxed);
    if (waiting == BH__TRACE_RING / 2 ||
        atomic_load_explicit(&trace->asleep, memory_order_relaxed)) {
        atomic_store(&trace->asleep, false);
        wake_writer(trace);
    }
}

static void put_event(bh__device *device, uint32_t kind, const char *name, uint64_t from,
                      uint64_t to, const char *label, uint64_t value, const char *text) {
    if (!device->observe.trace) return;
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
    uint64_t now = bh__ticks(device->queue.ticks_usable);
    put_event(device, BH__TRACE_INSTANT, name, now, now, label, value, text);
}

void bh__trace_span(bh__device *device, const char *name, uint64_t ns, const char *label,
                    uint64_t value, const char *text) {
    uint64_t now = bh__ticks(device->queue.ticks_usable), scale = device->observe.tick_scale;
    uint64_t ticks = scale ? (uint64_t)((double)ns * (double)BH__TICKS_ONE / (double)scale) : 0;
    put_event(device, BH__TRACE_SPAN, name, now - ticks, now, label, value, text);
}

/* ---- requests ---- */

/* Reads the times that the worker wrote for a request. They are not trusted: each is clamped to be
 * between the one before it and now. Returns true if all times are there. */
static bool read_times(bh__device *device, bh__lane *lane, bh__trace_note *note) {
    bh__times *times = bh__area_times(atomic_load(&device->queue.area), device->queue.length,
                                      lane->index, note->start);
    if (atomic_load_explicit(&times->sequence, memory_order_acquire) != note->sequence)
        return false;
    uint64_t done = atomic_load_explicit(&times->done, memory_order_acquire);
    uint64_t taken = atomic_load_explicit(&times->taken, memory_order_relaxed);
    uint64_t begun = atomic_load_explicit(&times->begun, memory_order_relaxed);
    uint64_t now = bh__ticks(device->queue.ticks_usable);
    note->taken = bh__times_clamp(taken, note->submitted, now);
    if (begun) note->begun = bh__times_clamp(begun, note->taken, now);
    if (begun && done) note->done = bh__times_clamp(done, note->begun, now);
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

/* Puts the request at the cursor, which has completed, into the ring. Returns false if its times
 * are missing and may still arrive. With `must`, it does not wait for them. */
static bool collect_one(bh__device *device, bh__lane *lane, bool must) {
    bh__lane_trace *trace = lane->trace;
    bh__trace_note *note = &trace->notes[trace->cursor & trace->mask];
    if (!note->resolved && !read_times(device, lane, note)) {
        uint64_t now = bh__ticks(device->queue.ticks_usable);
        uint64_t scale = device->observe.tick_scale;
        if (!trace->waits_since) trace->waits_since = now;
        if (!must && bh__ticks_ns(now - trace->waits_since, scale) < MAX_TIMES_DELAY_NS)
            return false;
        note->done = now;
    }
    trace->waits_since = 0;
    /* Requests of a lane run one after another; an estimated end must not overlap the next. */
    if (note->begun && note->begun < trace->ended) note->begun = trace->ended;
    if (note->done < note->begun) note->done = note->begun;
    trace->ended = note->done;
    put_request(device, lane, note);
    trace->cursor += note->slots;
    return true;
}

static bh__lane_trace *lane_trace_of(bh__device *device, bh__lane *lane, uint64_t start) {
    if (lane->trace) return lane->trace;
    uint32_t length = device->queue.length;
    bh__lane_trace *trace = calloc(1, sizeof *trace + length * sizeof trace->notes[0]);
    if (!trace) return NULL;
    trace->cursor = start;
    trace->mask = length - 1;
    trace->ticks_usable = device->queue.ticks_usable;
    return lane->trace = trace;
}

/* Copies a name into the trace: kernels and sequences may be freed before the file is written.
 * *known caches the result for this kernel or sequence. Returns the number of the name, or 0 if
 * there is no room. */
static uint32_t name_of(bh__trace *trace, const char *name, uint32_t *known) {
    if (*known && *known <= trace->name_count) {
        const char *kept = atomic_load_explicit(&trace->names[*known - 1], memory_order_relaxed);
        if (strncmp(kept, name, MAX_NAME) == 0) return *known;
    }
    char *copy = trace->name_count < BH__TRACE_NAMES ? strndup(name, MAX_NAME) : NULL;
    if (!copy) return 0;
    atomic_store_explicit(&trace->names[trace->name_count], copy, memory_order_release);
    return *known = ++trace->name_count;
}

void bh__trace_submit(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end) {
    bh__lane *lane = submission->lane;
    bh__lane_trace *trace = lane_trace_of(device, lane, start);
    if (!trace) {
        atomic_fetch_add_explicit(&device->observe.trace->dropped, 1, memory_order_relaxed);
        device->counters.trace_dropped++;
        return;
    }
    /* The slots of this request hold the notes and times of older requests, which have
     * completed. */
    while (trace->cursor + trace->mask + 1 < end) (void)collect_one(device, lane, true);

    bh__trace_note *note = &trace->notes[start & trace->mask];
    const bh__request *request = bh__ring_request(lane->ring, device->queue.length, start);
    *note = (bh__trace_note){.start = start,
                             .sequence = end,
                             .submitted = request->submitted,
                             .op = submission->op,
                             .slots = (uint16_t)(end - start)};
    for (uint64_t at = start + 1; at < end; at++) trace->notes[at & trace->mask].start = start;
    if (submission->op == BH__OP_LAUNCH) {
        bh__kernel *kernel = submission->kernel;
        note->name = name_of(device->observe.trace, kernel->name, &kernel->trace_name);
        memcpy(note->grid, submission->launch->grid, sizeof note->grid);
        memcpy(note->block, submission->launch->block, sizeof note->block);
    } else if (submission->op == BH__OP_SEQUENCE) {
        const bh__sequence *sequence = submission->sequence;
        note->name = name_of(device->observe.trace, bh__sequence_name(sequence),
                             bh__sequence_trace_name(submission->sequence));
        note->steps = bh__sequence_step_count(sequence);
        note->repeat = submission->replay->repeat;
    } else {
        note->bytes = bh__copy_bytes(&submission->copy);
    }
    if (atomic_load_explicit(&device->observe.trace->asleep, memory_order_relaxed)) {
        atomic_store(&device->observe.trace->asleep, false);
        wake_writer(device->observe.trace);
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
    if (!device->observe.trace) return;
    (void)bh__trace_sweep(device, false);
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        for (uint64_t at = lane->trace ? lane->floor : 0; lane->trace && at < taken[i];) {
            bh__trace_note *note = &lane->trace->notes[at & lane->trace->mask];
            if (note->start != at || at < lane->trace->cursor) {
                at++; /* submitted before the trace began, or a further slot of such a request */
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
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        bh__lane_trace *trace = lane->trace;
        if (!trace) continue;
        uint64_t done = bh__lane_done(device, lane), tail = atomic_load(&lane->tail);
        while (trace->cursor < done && collect_one(device, lane, all || device->queue.frozen)) {
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
    return bh__refuse(
        number == ENOENT ? BH_E_NOT_FOUND : BH_E_IO,
        bh__errno_fix(number, "name a file in a folder that exists and can be written"),
        "the trace file %s cannot be opened: %s", path, bh__errno_text(number, text, sizeof text));
}

/* Opens what never keeps a writer waiting: a file, or a device such as /dev/null. Returns -1 after
 * setting the thread's error. */
static int open_file(const char *path) {
    struct stat info;
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
    if (fd < 0 && errno != ENXIO) {
        refuse_file(path, errno);
    } else if (fd < 0 || fstat(fd, &info) < 0 ||
               !(S_ISREG(info.st_mode) || S_ISCHR(info.st_mode))) {
        bh__refuse(BH_E_IO, "name a regular file",
                   "the trace file %s is a pipe, a socket or a device that is not there", path);
        if (fd >= 0) close(fd);
        fd = -1;
    }
    return fd < 0 ? -1 : bh__fd_keep(fd);
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
    trace->fd = open_file(path);
    if (trace->fd < 0) {
        trace_delete(trace);
        return bh__last()->status;
    }
    *out = trace;
    return BH_OK;
}

static bh_status writer_start(bh__trace *trace) {
    int failed = bh__thread_start(&trace->writer, NULL, bh__trace_writer, trace);
    char text[128];
    if (!failed) return BH_OK;
    return bh__refuse(BH_E_NO_HOST_MEMORY, bh__errno_fix(failed, "free host memory"),
                      "the trace writer thread cannot be started: %s",
                      bh__errno_text(failed, text, sizeof text));
}

static bh_status begin(bh__device *device, bh__trace *trace) {
    trace->device = device;
    trace->ticks_usable = device->queue.ticks_usable;
    trace->scale = device->observe.tick_scale;
    trace->origin = bh__ticks(device->queue.ticks_usable);
    bh_status status = bh__takes_work(device) ? writer_start(trace) : bh__refuse_work(device);
    if (status != BH_OK) return status;
    device->observe.trace = trace;
    atomic_store(&device->queue.front->trace, 1);
    return BH_OK;
}

bh_status bh_trace_start(bh_device handle, const char *path) {
    if (!path) return bh__refuse(BH_E_INVALID, "pass the name of a file", "path is NULL");
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__trace *trace = NULL;
    bh_status status;
    if (device->observe.trace || device->observe.starting) {
        status = bh__refuse(BH_E_BUSY, "stop it first with bh_trace_stop",
                            "the device is already being traced");
    } else {
        device->observe.starting = true;
        bh__device_step_out(device); /* a file system may take its time */
        status = trace_new(path, &trace);
        bh__device_step_in(device);
        device->observe.starting = false;
        if (status == BH_OK) status = begin(device, trace);
        if (status != BH_OK && trace) trace_delete(trace);
    }
    bh__device_unlock(device);
    return status;
}

/* Ends recording. Requests that have not completed are recorded as pending. Called with the lock
 * held. */
static bh__trace *detach(bh__device *device) {
    bh__trace *trace = device->observe.trace;
    if (!trace) return NULL;
    (void)bh__trace_sweep(device, true);
    atomic_store(&device->queue.front->trace, 0);
    device->observe.trace = NULL;
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        free(device->lanes[i].trace);
        device->lanes[i].trace = NULL;
    }
    return trace;
}

/* Ends the writer and frees the trace. Called without the lock, which the writer may be waiting
 * for. Returns 0 or an errno. */
static int finish(bh__trace *trace) {
    atomic_store(&trace->ending, true);
    wake_writer(trace);
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
    return bh__refuse(BH_E_IO, bh__errno_fix(failed, "make room on the disk and trace again"),
                      "the trace is incomplete: %s", bh__errno_text(failed, text, sizeof text));
}

void bh__trace_close(bh__device *device) {
    bh__lock_take(&device->lock);
    bh__trace *trace = detach(device);
    bh__lock_give(&device->lock);
    if (trace) (void)finish(trace);
}
