/* SPDX-License-Identifier: Apache-2.0 */
/* The trace file: a JSON array of events that Perfetto and chrome://tracing read. A comma is
 * written before each event, so that a truncated file lacks only its closing bracket. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "client/core/fork.h"
#include "client/observe/trace.h"

enum {
    BUFFER = 64 * 1024,
    MAX_RECORD = 8 * 1024, /* bytes of one record in the file */
    SWEEP_EVERY_NS = 10000000,
    EVENTS_TRACK = 0,
    LANE_TRACKS = 1 /* the track of lane 0 */
};

typedef struct page {
    bh__trace *trace;
    size_t length;
    char text[BUFFER];
} page;

static void flush(page *self) {
    bh__trace *trace = self->trace;
    for (size_t at = 0; at < self->length && !trace->failed;) {
        /* The application may have closed the descriptor and reused its number. */
        if (!bh__fd_is_ours(trace->fd)) {
            trace->failed = EBADF;
            break;
        }
        ssize_t some = write(trace->fd, self->text + at, self->length - at);
        if (some > 0)
            at += (size_t)some;
        else if (some == 0 || errno != EINTR)
            trace->failed = some < 0 ? errno : EIO;
    }
    self->length = 0;
}

__attribute__((format(printf, 2, 3))) static void put(page *self, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t room = sizeof self->text - self->length;
    int some = vsnprintf(self->text + self->length, room, format, list);
    va_end(list);
    if (some > 0) self->length += (size_t)some < room ? (size_t)some : room - 1;
}

static void put_string(page *self, const char *text) {
    put(self, "\"");
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            put(self, "\\%c", *at);
        else if (*at < 0x20 || *at >= 0x7f)
            put(self, "\\u%04x", *at);
        else
            put(self, "%c", *at);
    }
    put(self, "\"");
}

/* Writes ticks as microseconds. */
static void put_time(page *self, const char *key, uint64_t ticks) {
    uint64_t ns = bh__ticks_ns(ticks, self->trace->scale);
    put(self, ",\"%s\":%" PRIu64 ".%03" PRIu64, key, ns / 1000, ns % 1000);
}

/* Ticks since the trace began; 0 for earlier events. */
static uint64_t since_origin(const page *self, uint64_t ticks) {
    return bh__ticks_between(self->trace->origin, ticks);
}

static void begin(page *self, const char *phase, uint32_t track) {
    put(self, "%s{\"ph\":\"%s\",\"pid\":%d,\"tid\":%u", self->trace->begun ? ",\n" : "[\n", phase,
        (int)getpid(), track);
    self->trace->begun = true;
}

static void name_track(page *self, uint32_t track, const char *what, const char *name) {
    begin(self, "M", track);
    put(self, ",\"name\":\"%s\",\"args\":{\"name\":", what);
    put_string(self, name);
    put(self, "}}");
    if (track == EVENTS_TRACK) return;
    begin(self, "M", track);
    put(self, ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}", track);
}

/* ---- records ---- */

static const char *op_name(uint16_t op) {
    switch (op) {
    case BH__OP_WRITE:
    case BH__OP_WRITE_ROWS:
        return "write";
    case BH__OP_READ:
    case BH__OP_READ_ROWS:
        return "read";
    case BH__OP_COPY:
    case BH__OP_COPY_ROWS:
        return "copy";
    case BH__OP_FILL:
    case BH__OP_FILL_ROWS:
        return "fill";
    case BH__OP_GLOBAL_WRITE:
        return "variable write";
    case BH__OP_GLOBAL_READ:
        return "variable read";
    case BH__OP_PREFETCH:
        return "prefetch";
    default:
        return "request";
    }
}

static const char *name_of(const page *self, const bh__trace_note *note) {
    bool named = note->op == BH__OP_LAUNCH || note->op == BH__OP_SEQUENCE;
    if (!named) return op_name(note->op);
    const char *name =
        note->name ? atomic_load_explicit(&self->trace->names[note->name - 1], memory_order_acquire)
                   : NULL;
    return name ? name : note->op == BH__OP_LAUNCH ? "kernel" : "sequence";
}

static void put_args(page *self, const bh__trace_note *note) {
    put(self, ",\"args\":{\"ticket\":%" PRIu64, note->sequence);
    if (note->op == BH__OP_LAUNCH)
        put(self, ",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]", note->grid[0], note->grid[1],
            note->grid[2], note->block[0], note->block[1], note->block[2]);
    else if (note->op == BH__OP_SEQUENCE)
        put(self, ",\"steps\":%u,\"repeat\":%u", note->steps, note->repeat);
    else
        put(self, ",\"bytes\":%" PRIu64, note->bytes);
    put(self, ",\"verdict\":\"%s\"}}", note->pending ? "pending" : bh_status_name(note->verdict));
}

/* An asynchronous span, which may overlap others, from submission to completion, with a mark when
 * the worker took the request. */
static void put_lifetime(page *self, uint32_t lane, const bh__trace_note *note) {
    static const char *const phases[] = {"b", "n", "e"};
    uint64_t end = note->done ? note->done : note->begun ? note->begun : note->submitted;
    uint64_t at[] = {note->submitted, note->taken, end};
    for (int i = 0; i < 3; i++) {
        if (i == 1 && !note->taken) continue;
        begin(self, phases[i], LANE_TRACKS + lane);
        put(self, ",\"cat\":\"request\",\"id\":\"%u.%" PRIu64 "\",\"name\":", lane, note->sequence);
        put_string(self, i == 1 ? "taken" : name_of(self, note));
        put_time(self, "ts", since_origin(self, at[i]));
        if (i == 0)
            put_args(self, note);
        else
            put(self, "}");
    }
}

static void put_request(page *self, uint32_t lane, const bh__trace_note *note) {
    if (!(self->trace->lanes_named >> lane & 1)) {
        char name[32];
        snprintf(name, sizeof name, "lane %u", lane);
        name_track(self, LANE_TRACKS + lane, "thread_name", name);
        self->trace->lanes_named |= 1ull << lane;
    }
    put_lifetime(self, lane, note);
    /* A lost request may not have run: no running span is written for it. */
    bool ran = note->verdict != BH_E_LOST && note->verdict != BH_E_STALE;
    if (!note->begun || !ran) return;
    uint64_t from = since_origin(self, note->begun), to = since_origin(self, note->done);
    uint64_t *ended = &self->trace->ended[lane]; /* spans of a track must not overlap */
    if (from < *ended) from = *ended;
    /* A fast device may finish before its lane has recorded the start. */
    if (from > to) from = to;
    *ended = to;
    begin(self, "X", LANE_TRACKS + lane);
    put(self, ",\"cat\":\"running\",\"name\":");
    put_string(self, name_of(self, note));
    put_time(self, "ts", from);
    put_time(self, "dur", to - from);
    put_args(self, note);
}

static void put_event(page *self, const bh__trace_record *record) {
    bool span = record->kind == BH__TRACE_SPAN;
    uint64_t from = since_origin(self, record->u.event.from);
    begin(self, span ? "X" : "i", EVENTS_TRACK);
    put(self, ",\"cat\":\"device\",\"name\":");
    put_string(self, record->u.event.name);
    put_time(self, "ts", from);
    if (span)
        put_time(self, "dur", since_origin(self, record->u.event.to) - from);
    else
        put(self, ",\"s\":\"p\"");
    put(self, ",\"args\":{");
    if (record->u.event.label)
        put(self, "\"%s\":%" PRIu64, record->u.event.label, record->u.event.value);
    if (record->u.event.text[0]) {
        put(self, "%s\"text\":", record->u.event.label ? "," : "");
        put_string(self, record->u.event.text);
    }
    put(self, "}}");
}

static void put_drops(page *self) {
    bh__trace *trace = self->trace;
    uint64_t dropped = atomic_load(&trace->dropped);
    if (dropped == trace->drops_reported) return;
    begin(self, "i", EVENTS_TRACK);
    put(self, ",\"cat\":\"device\",\"name\":\"dropped\",\"s\":\"p\"");
    put_time(self, "ts", since_origin(self, bh__ticks(trace->ticks_usable)));
    put(self, ",\"args\":{\"records\":%" PRIu64 ",\"in_all\":%" PRIu64 "}}",
        dropped - trace->drops_reported, dropped);
    trace->drops_reported = dropped;
}

static void drain(page *self) {
    bh__trace *trace = self->trace;
    uint64_t made = atomic_load_explicit(&trace->made, memory_order_acquire);
    uint64_t taken = atomic_load_explicit(&trace->taken, memory_order_relaxed);
    while (taken != made) {
        const bh__trace_record *record = &trace->ring[taken % BH__TRACE_RING];
        if (record->kind == BH__TRACE_REQUEST)
            put_request(self, record->lane, &record->u.request);
        else
            put_event(self, record);
        atomic_store_explicit(&trace->taken, ++taken, memory_order_release);
        if (self->length > BUFFER - MAX_RECORD) flush(self);
    }
    put_drops(self);
    flush(self);
}

/* Returns true if nothing is in flight: the next submission wakes the writer. */
static bool sweep(bh__trace *trace) {
    bh__device *device = trace->device;
    bool idle = false;
    bh__lock_take(&device->lock);
    if (device->observe.trace == trace) {
        idle = !bh__trace_sweep(device, false) &&
               atomic_load_explicit(&trace->made, memory_order_relaxed) ==
                   atomic_load_explicit(&trace->taken, memory_order_relaxed);
        atomic_store(&trace->asleep, idle);
    }
    bh__lock_give(&device->lock);
    return idle;
}

void *bh__trace_writer(void *argument) {
    bh__trace *trace = argument;
    page self = {.trace = trace};
    pthread_setname_np(pthread_self(), "bh-trace");
    name_track(&self, EVENTS_TRACK, "process_name", "bulkhead");
    name_track(&self, EVENTS_TRACK, "thread_name", "device");
    flush(&self);
    while (!atomic_load(&trace->ending)) {
        uint32_t bell = atomic_load(&trace->bell);
        bool idle = sweep(trace);
        drain(&self);
        if (atomic_load(&trace->ending)) break;
        bh__futex_wait(&trace->bell, bell, idle ? BH__NEVER : bh__deadline_after(SWEEP_EVERY_NS),
                       BH__FUTEX_PRIVATE);
    }
    drain(&self);
    put(&self, "\n]\n");
    flush(&self);
    return NULL;
}
