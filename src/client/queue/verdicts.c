/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts of failed tickets. A verdict is written here once, before any other place shows
 * that the request has ended. It is kept until the process ends, also after its lane and device
 * are closed. Every failure keeps its status, in eight bytes; the most recent ones keep their
 * details. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/queue/queue.h"

/* The failures of one lane id. */
struct bh__verdicts {
    uint64_t id;
    uint64_t *failed; /* Owned. Sorted: sequence << STATUS_BITS | status. */
    size_t count, capacity;
    /* Tickets whose results in transparent buffers never reached the host. The list has all but the
     * last run. */
    bh__run *stranded; /* Owned. */
    size_t stranded_count;
    bh__run last_stranded; /* to: 0: none */
};

/* The details of one failure. */
typedef struct detail {
    struct detail *newer;
    bh_ticket ticket;
    uint64_t loss;
    uint32_t certain;
    int32_t device_code;
    char text[]; /* kernel, message, fix, device name, each zero-terminated; "": not known */
} detail;

enum { STATUS_BITS = 8, DEFAULT_DETAILS = 65536 };

/* Under BH__LOCK_VERDICTS, the innermost lock: no other lock is taken while it is held. Both
 * tables are open-addressed, with linear probing. */
static bh__verdicts **lanes;
static size_t lane_count, lane_capacity;
static detail **details;
static size_t detail_count, detail_capacity, detail_limit = DEFAULT_DETAILS;
static detail *oldest, *newest;

/* ---- the table of lanes ---- */

static size_t lane_home(uint64_t id, size_t capacity) {
    return bh__hash_u64(id) & (capacity - 1);
}

/* Returns the slot of the id, or the empty slot to put it in. */
static size_t lane_slot(bh__verdicts *const *table, size_t capacity, uint64_t id) {
    size_t at = lane_home(id, capacity);
    while (table[at] && table[at]->id != id) at = (at + 1) & (capacity - 1);
    return at;
}

static bool lanes_reserve(void) {
    if (lane_count * 2 < lane_capacity) return true;
    size_t capacity = lane_capacity ? lane_capacity * 2 : 64;
    bh__verdicts **table = calloc(capacity, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < lane_capacity; i++) {
        if (lanes[i]) table[lane_slot(table, capacity, lanes[i]->id)] = lanes[i];
    }
    free(lanes);
    lanes = table;
    lane_capacity = capacity;
    return true;
}

static void lane_remove(uint64_t id) {
    size_t mask = lane_capacity - 1, hole = lane_slot(lanes, lane_capacity, id);
    for (size_t at = (hole + 1) & mask; lanes[at]; at = (at + 1) & mask) {
        size_t home = lane_home(lanes[at]->id, lane_capacity);
        /* The entry may move to the hole, unless its home lies after the hole. */
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        lanes[hole] = lanes[at];
        hole = at;
    }
    lanes[hole] = NULL;
    lane_count--;
}

/* ---- room for verdicts ---- */

static bool reserve(bh__verdicts *self, size_t room) {
    if (self->capacity - self->count >= room) return true;
    size_t least = self->count + room, capacity = self->capacity * 2;
    if (capacity < least) capacity = least;
    uint64_t *failed = realloc(self->failed, capacity * sizeof *failed);
    if (!failed) return false;
    self->failed = failed;
    self->capacity = capacity;
    return true;
}

bool bh__verdicts_reserve(bh__verdicts *self, size_t room) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    bool reserved = reserve(self, room);
    bh__process_lock_give(BH__LOCK_VERDICTS);
    return reserved;
}

static void verdicts_free(bh__verdicts *self) {
    free(self->failed);
    free(self->stranded);
    free(self);
}

bh__verdicts *bh__verdicts_open(uint64_t lane_id, size_t room) {
    bh__verdicts *self = calloc(1, sizeof *self);
    if (!self) return NULL;
    self->id = lane_id;
    bh__process_lock_take(BH__LOCK_VERDICTS);
    bool made = reserve(self, room) && lanes_reserve();
    if (made) {
        lanes[lane_slot(lanes, lane_capacity, lane_id)] = self;
        lane_count++;
    }
    bh__process_lock_give(BH__LOCK_VERDICTS);
    if (made) return self;
    verdicts_free(self);
    return NULL;
}

void bh__verdicts_close(bh__verdicts *self) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    bool none = self->count == 0 && self->last_stranded.to == 0;
    if (none) lane_remove(self->id);
    /* The entries are kept until the process ends, so they are copied to an array of their exact
     * size. realloc could leave the large array split; free makes all of it available to the next
     * lane. */
    uint64_t *exact = self->count ? malloc(self->count * sizeof *exact) : NULL;
    if (exact) {
        memcpy(exact, self->failed, self->count * sizeof *exact);
        free(self->failed);
        self->failed = exact;
        self->capacity = self->count;
    }
    bh__process_lock_give(BH__LOCK_VERDICTS);
    if (none) verdicts_free(self);
}

/* ---- details ---- */

static size_t detail_home(bh_ticket ticket, size_t capacity) {
    return bh__hash_u64(ticket.lane ^ ticket.sequence * 0x9e3779b97f4a7c15ull) & (capacity - 1);
}

static bool is_of(const detail *self, bh_ticket ticket) {
    return self->ticket.lane == ticket.lane && self->ticket.sequence == ticket.sequence;
}

static size_t detail_slot(detail *const *table, size_t capacity, bh_ticket ticket) {
    size_t at = detail_home(ticket, capacity);
    while (table[at] && !is_of(table[at], ticket)) at = (at + 1) & (capacity - 1);
    return at;
}

static void detail_remove(bh_ticket ticket) {
    size_t mask = detail_capacity - 1, hole = detail_slot(details, detail_capacity, ticket);
    for (size_t at = (hole + 1) & mask; details[at]; at = (at + 1) & mask) {
        size_t home = detail_home(details[at]->ticket, detail_capacity);
        if (((at - home) & mask) < ((at - hole) & mask)) continue;
        details[hole] = details[at];
        hole = at;
    }
    details[hole] = NULL;
    detail_count--;
}

static void drop_oldest(void) {
    detail *dropped = oldest;
    detail_remove(dropped->ticket);
    oldest = dropped->newer;
    if (!oldest) newest = NULL;
    free(dropped);
}

static bool details_reserve(void) {
    if (detail_count * 2 < detail_capacity) return true;
    size_t capacity = detail_capacity ? detail_capacity * 2 : 64;
    detail **table = calloc(capacity, sizeof *table);
    if (!table) return false;
    for (detail *each = oldest; each; each = each->newer)
        table[detail_slot(table, capacity, each->ticket)] = each;
    free(details);
    details = table;
    detail_capacity = capacity;
    return true;
}

static char *put_text(char *at, const char *text, size_t length) {
    memcpy(at, text, length);
    at[length] = 0;
    return at + length + 1;
}

static detail *detail_new(uint64_t lane_id, const bh__failure *failure) {
    static const bh_error unknown;
    const bh_error *error = failure->detail ? failure->detail : &unknown;
    const char *kernel = failure->kernel ? failure->kernel : "";
    size_t names = strlen(kernel), message = strnlen(error->message, sizeof error->message - 1),
           fix = strnlen(error->fix, sizeof error->fix - 1),
           device = strnlen(error->device_name, sizeof error->device_name - 1);
    detail *self = malloc(sizeof *self + names + message + fix + device + 4);
    if (!self) return NULL;
    *self = (detail){.ticket = {lane_id, failure->sequence},
                     .loss = failure->loss,
                     .certain = failure->certain,
                     .device_code = error->device_code};
    char *at = put_text(self->text, kernel, names);
    at = put_text(at, error->message, message);
    at = put_text(at, error->fix, fix);
    (void)put_text(at, error->device_name, device);
    return self;
}

/* If there is no host memory, the failure has no details. Its status is kept in any case. */
static void note_detail(uint64_t lane_id, const bh__failure *failure) {
    if (detail_limit == 0) return;
    while (detail_count >= detail_limit) drop_oldest();
    detail *self = details_reserve() ? detail_new(lane_id, failure) : NULL;
    if (!self) return;
    details[detail_slot(details, detail_capacity, self->ticket)] = self;
    detail_count++;
    if (newest) {
        newest->newer = self;
    } else {
        oldest = self;
    }
    newest = self;
}

bh_status bh_failure_set_limit(uint64_t count) {
    if (count > UINT32_MAX)
        return bh__refuse(BH_E_INVALID, "keep the details of at most 4294967295 failures",
                          "count is %llu failures", (unsigned long long)count);
    bh__process_lock_take(BH__LOCK_VERDICTS);
    detail_limit = (size_t)count;
    while (detail_count > detail_limit) drop_oldest();
    bh__process_lock_give(BH__LOCK_VERDICTS);
    return BH_OK;
}

/* ---- verdicts ---- */

/* Returns the index of the first failure with at least this sequence. */
static size_t lower_bound(const bh__verdicts *self, uint64_t sequence) {
    size_t low = 0, high = self->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (self->failed[middle] >> STATUS_BITS < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool in_run(const bh__run *run, uint64_t sequence) {
    return run->from <= sequence && sequence <= run->to;
}

static bool is_stranded(const bh__verdicts *self, uint64_t sequence) {
    for (size_t i = 0; i < self->stranded_count; i++)
        if (in_run(&self->stranded[i], sequence)) return true;
    return self->last_stranded.to && in_run(&self->last_stranded, sequence);
}

static bh_status find_failed(const bh__verdicts *self, uint64_t sequence) {
    size_t at = lower_bound(self, sequence);
    if (at < self->count && self->failed[at] >> STATUS_BITS == sequence)
        return (bh_status)(self->failed[at] & ((1u << STATUS_BITS) - 1));
    return BH_OK;
}

static bh_status find(const bh__verdicts *self, uint64_t sequence) {
    bh_status status = find_failed(self, sequence);
    return status == BH_OK && is_stranded(self, sequence) ? BH_E_STOPPED : status;
}

/* The capacity was reserved before the request was submitted. */
static void add(bh__verdicts *self, uint64_t sequence, bh_status status) {
    size_t at = lower_bound(self, sequence);
    memmove(&self->failed[at + 1], &self->failed[at], (self->count - at) * sizeof *self->failed);
    self->failed[at] = sequence << STATUS_BITS | (uint64_t)status;
    self->count++;
}

/* A deferred verdict may come after the device has stopped, and lie in a run of stranded tickets:
 * the ticket has had no answer. */
bool bh__verdicts_fail(bh__verdicts *self, const bh__failure *failure) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    bool first = find_failed(self, failure->sequence) == BH_OK;
    if (first) {
        add(self, failure->sequence, failure->status);
        note_detail(self->id, failure);
    }
    bh__process_lock_give(BH__LOCK_VERDICTS);
    return first;
}

/* Without host memory for the list the last run grows: what lies between counts as stranded. */
static void put_last_in_list(bh__verdicts *self, bh__run *next) {
    const bh__run *last = &self->last_stranded;
    bh__run *list = realloc(self->stranded, (self->stranded_count + 1) * sizeof *list);
    if (list) {
        self->stranded = list;
        list[self->stranded_count++] = *last;
    } else {
        if (last->from < next->from) next->from = last->from;
        if (last->to > next->to) next->to = last->to;
    }
}

void bh__verdicts_strand(bh__verdicts *self, bh__run run) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    if (self->last_stranded.to) put_last_in_list(self, &run);
    self->last_stranded = run;
    bh__process_lock_give(BH__LOCK_VERDICTS);
}

bh_status bh__verdicts_status(bh_ticket ticket) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    const bh__verdicts *self =
        lane_capacity ? lanes[lane_slot(lanes, lane_capacity, ticket.lane)] : NULL;
    bh_status status = self ? find(self, ticket.sequence) : BH_OK;
    bh__process_lock_give(BH__LOCK_VERDICTS);
    return status;
}

/* ---- messages ---- */

/* Composes the message of a verdict that was written without one. */
static void compose(bh_status status, const char *kernel, uint64_t loss, bh_error *out) {
    const char *subject = *kernel ? kernel : "the request";
    switch (status) {
    case BH_E_LOST:
        bh__fail(out, BH_E_LOST,
                 "submit it again; launches and sequences marked idempotent are retried "
                 "automatically, unless their inputs may be lost",
                 "%s was in flight when worker %llu was lost; it may have run in part", subject,
                 (unsigned long long)loss);
        break;
    case BH_E_STALE:
        bh__fail(
            out, BH_E_STALE,
            "write the data again or accept it (bh_buffer_accept, bh_module_accept), then "
            "submit again",
            "%s has stale input: it reads data that a lost worker may have left half written, and "
            "the request that should have overwritten that data did not complete",
            subject);
        break;
    case BH_E_QUARANTINED:
        bh__fail(out, BH_E_QUARANTINED,
                 "correct the kernel, or allow it again with bh_kernel_pardon "
                 "(an operation of a library: bh_library_load)",
                 "%s was not run: the kernel is quarantined after repeated faults", subject);
        break;
    case BH_E_CANCELLED:
        bh__fail(out, BH_E_CANCELLED, "nothing to do: it was cancelled before it began",
                 "%s was cancelled", subject);
        break;
    default:
        bh__fail(out, status, "see bh_device_get_health for the state of the device",
                 "%s was not run: %s", subject, bh_status_name(status));
    }
}

static void describe_without_details(bh_status status, bh_error *out) {
    bh__fail(out, status, "call earlier, or keep more details with bh_failure_set_limit",
             "the request failed with %s; details are kept only for the last %zu failures",
             bh_status_name(status), detail_limit);
}

static void describe_stranded(bh_error *out) {
    bh__fail(out, BH_E_STOPPED, "open the device again and repeat the work",
             "the request completed, but the device stopped or was closed before its results in a "
             "transparent buffer were copied to host memory");
}

static void describe(const detail *self, bh_status status, bh_error *out) {
    const char *kernel = self->text, *message = kernel + strlen(kernel) + 1,
               *fix = message + strlen(message) + 1, *device = fix + strlen(fix) + 1;
    if (*message)
        bh__fail(out, status, fix, "%s", message);
    else
        compose(status, kernel, self->loss, out);
    bh__fail_device_code(out, self->device_code, device);
    snprintf(out->kernel, sizeof out->kernel, "%s", kernel);
    out->generation = self->loss;
    out->certain = self->certain;
}

bh_status bh__verdicts_describe(bh_ticket ticket, bh_error *out) {
    bh__process_lock_take(BH__LOCK_VERDICTS);
    const bh__verdicts *lane =
        lane_capacity ? lanes[lane_slot(lanes, lane_capacity, ticket.lane)] : NULL;
    bh_status status = lane ? find(lane, ticket.sequence) : BH_OK;
    if (status != BH_OK) {
        const detail *known =
            detail_capacity ? details[detail_slot(details, detail_capacity, ticket)] : NULL;
        if (known)
            describe(known, status, out);
        else if (is_stranded(lane, ticket.sequence))
            describe_stranded(out);
        else
            describe_without_details(status, out);
        out->ticket = ticket;
    }
    bh__process_lock_give(BH__LOCK_VERDICTS);
    return status;
}
