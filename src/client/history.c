/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets that did not end well, for as long as anybody may ask. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "client/internal.h"

static void add_unnoted(bh__failures *failures, const bh__failure *failure) {
    bh__failure *unnoted = &failures->unnoted;
    if (!unnoted->sequence || failure->sequence < failures->unnoted_from)
        failures->unnoted_from = failure->sequence;
    if (failure->sequence > unnoted->sequence) unnoted->sequence = failure->sequence;
    unnoted->status = BH_E_LOST;
    unnoted->loss = failure->loss;
    free(failure->kernel);
    free(failure->detail);
}

void bh__failures_add(bh__failures *failures, const bh__failure *failure) {
    if (failures->count == failures->capacity) {
        size_t capacity = failures->capacity ? failures->capacity * 2 : 8;
        bh__failure *list = realloc(failures->list, capacity * sizeof *list);
        if (!list) {
            add_unnoted(failures, failure);
            return;
        }
        failures->list = list;
        failures->capacity = capacity;
    }
    size_t at = failures->count;
    while (at > 0 && failures->list[at - 1].sequence > failure->sequence) at--;
    memmove(&failures->list[at + 1], &failures->list[at],
            (failures->count - at) * sizeof *failures->list);
    failures->list[at] = *failure;
    failures->count++;
}

const bh__failure *bh__failures_find(const bh__failures *failures, uint64_t sequence) {
    size_t low = 0, high = failures->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (failures->list[middle].sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < failures->count && failures->list[low].sequence == sequence)
        return &failures->list[low];
    return sequence >= failures->unnoted_from && sequence <= failures->unnoted.sequence
               ? &failures->unnoted
               : NULL;
}

void bh__failures_clear(bh__failures *failures) {
    for (size_t i = 0; i < failures->count; i++) {
        free(failures->list[i].kernel);
        free(failures->list[i].detail);
    }
    free(failures->list);
    memset(failures, 0, sizeof *failures);
}

void bh__failure_describe(const bh__failure *failure, bh_ticket ticket, bh_error *out) {
    if (failure->detail) {
        *out = *failure->detail;
    } else {
        const char *who = failure->kernel ? failure->kernel : "the request";
        switch (failure->status) {
        case BH_E_LOST:
            bh__fail(out, BH_E_LOST,
                     "submit it again, or mark it idempotent so that this happens by itself",
                     "%s was in flight when worker %llu was lost; it may have run in part", who,
                     (unsigned long long)failure->loss);
            break;
        case BH_E_STALE:
            bh__fail(
                out, BH_E_STALE,
                "write the data again or accept it (bh_buffer_accept, bh_module_accept), then submit again",
                "%s was not run: it needs data that worker %llu may have left half written", who,
                (unsigned long long)failure->loss);
            break;
        case BH_E_QUARANTINED:
            bh__fail(out, BH_E_QUARANTINED,
                     "mend the kernel, or let it run again with bh_kernel_pardon",
                     "%s was not run: the kernel faulted too often", who);
            break;
        case BH_E_CANCELLED:
            bh__fail(out, BH_E_CANCELLED, "nothing: it was taken back before it began",
                     "%s was cancelled", who);
            break;
        default:
            bh__fail(out, failure->status, "see bh_device_get_status for the state of the device",
                     "%s was not run: %s", who, bh_status_name(failure->status));
        }
    }
    if (failure->kernel) snprintf(out->kernel, sizeof out->kernel, "%s", failure->kernel);
    out->ticket = ticket;
    out->generation = failure->loss;
    out->certain = failure->certain;
}

/* Lanes that closed with failures: an open-addressed table that only grows. A lane without failures
 * leaves nothing behind: every ticket of it is done. */
typedef struct closed_lane {
    uint64_t id;
    bh__failures failures;
} closed_lane;

static pthread_mutex_t closed_lock = PTHREAD_MUTEX_INITIALIZER;
static closed_lane *closed;
static size_t closed_count, closed_capacity;

static closed_lane *closed_slot(closed_lane *table, size_t capacity, uint64_t id) {
    size_t at = bh__hash_u64(id) & (capacity - 1);
    while (table[at].id && table[at].id != id) at = (at + 1) & (capacity - 1);
    return &table[at];
}

static bool closed_grow(void) {
    size_t capacity = closed_capacity ? closed_capacity * 2 : 64;
    closed_lane *table = calloc(capacity, sizeof *table);
    if (!table) return false;
    for (size_t i = 0; i < closed_capacity; i++) {
        if (closed[i].id) *closed_slot(table, capacity, closed[i].id) = closed[i];
    }
    free(closed);
    closed = table;
    closed_capacity = capacity;
    return true;
}

void bh__history_keep(uint64_t lane_id, bh__failures *failures) {
    pthread_mutex_lock(&closed_lock);
    bool any = failures->count || failures->unnoted.sequence;
    if (any && (closed_count * 2 < closed_capacity || closed_grow())) {
        closed_lane *slot = closed_slot(closed, closed_capacity, lane_id);
        slot->id = lane_id;
        slot->failures = *failures;
        closed_count++;
        memset(failures, 0, sizeof *failures);
    }
    pthread_mutex_unlock(&closed_lock);
    bh__failures_clear(failures);
}

bh_status bh__history_ask(bh_ticket ticket, bh_error *out) {
    bh_status status = BH_OK;
    pthread_mutex_lock(&closed_lock);
    if (closed_capacity) {
        const closed_lane *slot = closed_slot(closed, closed_capacity, ticket.lane);
        const bh__failure *failure =
            slot->id ? bh__failures_find(&slot->failures, ticket.sequence) : NULL;
        if (failure) {
            bh__failure_describe(failure, ticket, out);
            status = failure->status;
        }
    }
    pthread_mutex_unlock(&closed_lock);
    return status;
}
