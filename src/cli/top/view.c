/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `bulkhead top`: rates between two looks, histories, order. */
#include "cli/top/top.h"

#include <stdlib.h>
#include <string.h>

const char *const bh__order_names[BH__ORDERS] = {"launches", "busy",   "memory",
                                                 "queue",    "losses", "pid"};

static bool same(const bh__offer *a, const bh__offer *b) {
    return a->pid == b->pid && a->start == b->start && a->slot == b->slot;
}

static void add_up(const bh__figures *from, bh_lane_counters *out) {
    *out = (bh_lane_counters){.size = sizeof *out};
    for (uint32_t i = 0; i < from->lane_count && i < BH__FIGURES_LANES; i++) {
        const bh_lane_counters *lane = &from->lanes[i];
        out->requests += lane->requests;
        out->launches += lane->launches;
        out->failed += lane->failed;
        out->bytes_to_device += lane->bytes_to_device;
        out->bytes_to_host += lane->bytes_to_host;
        out->queue_depth += lane->queue_depth;
        out->running.sum_ns += lane->running.sum_ns;
        out->running.count += lane->running.count;
    }
}

static double per_second(uint64_t now, uint64_t before, double seconds) {
    return now > before ? (double)(now - before) / seconds : 0;
}

static void rate(bh__row *row, uint64_t at_ns) {
    double seconds = (double)(at_ns - row->at_ns) / 1e9;
    bool before = row->at_ns != 0 && seconds > 0;
    row->before = row->total;
    add_up(row->now, &row->total);
    row->at_ns = at_ns;
    if (!before) return;
    const bh_lane_counters *a = &row->before, *b = &row->total;
    row->rated = true;
    row->launches = per_second(b->launches, a->launches, seconds);
    row->requests = per_second(b->requests, a->requests, seconds);
    row->failures = per_second(b->failed, a->failed, seconds);
    row->to_device = per_second(b->bytes_to_device, a->bytes_to_device, seconds);
    row->to_host = per_second(b->bytes_to_host, a->bytes_to_host, seconds);
    row->busy = per_second(b->running.sum_ns, a->running.sum_ns, seconds) / 1e9;
}

/* The first look has no rates. */
static void remember(bh__row *row) {
    if (!row->rated) return;
    size_t at = row->samples++ % BH__HISTORY;
    row->history[BH__SERIES_LAUNCHES][at] = (float)row->launches;
    row->history[BH__SERIES_BUSY][at] = (float)(row->busy * 100);
    row->history[BH__SERIES_DEPTH][at] = (float)row->total.queue_depth;
    row->history[BH__SERIES_MEMORY][at] = (float)row->now->device.bytes_allocated;
}

float bh__row_past(const bh__row *row, bh__series which, size_t back) {
    if (back >= row->samples || back >= BH__HISTORY) return 0;
    return row->history[which][(row->samples - 1 - back) % BH__HISTORY];
}

void bh__row_device(const bh__row *row, char out[32]) {
    const bh__figures_device *device = &row->now->device;
    if (strcmp(device->kind, "cpu") == 0)
        snprintf(out, 32, "cpu");
    else
        snprintf(out, 32, "%s:%u", device->kind, device->index);
}

const char *bh__health_text(uint32_t state) {
    static const char *const names[] = {"?", "ok", "degraded", "replacing", "stopped", "closing"};
    return names[state < sizeof names / sizeof *names ? state : 0];
}

/* ---- order ---- */

static double weight(const bh__row *row, bh__order order) {
    switch (order) {
    case BH__ORDER_LAUNCHES:
        return row->launches;
    case BH__ORDER_BUSY:
        return row->busy;
    case BH__ORDER_MEMORY:
        return (double)row->now->device.bytes_allocated;
    case BH__ORDER_DEPTH:
        return (double)row->total.queue_depth;
    case BH__ORDER_LOSSES:
        return (double)row->now->counters.losses;
    default:
        return 0;
    }
}

/* qsort has no context. */
static bh__order sorted_by;

static int compare(const void *a, const void *b) {
    const bh__row *left = *(bh__row *const *)a, *right = *(bh__row *const *)b;
    double x = weight(left, sorted_by), y = weight(right, sorted_by);
    if (x != y) return x < y ? 1 : -1;
    if (left->key.pid != right->key.pid) return left->key.pid < right->key.pid ? -1 : 1;
    return (left->key.slot > right->key.slot) - (left->key.slot < right->key.slot);
}

void bh__view_sort(bh__view *view) {
    sorted_by = view->order;
    if (view->count) qsort(view->rows, view->count, sizeof *view->rows, compare);
}

/* ---- looking ---- */

static bh__row *find_row(bh__view *view, const bh__offer *key) {
    for (size_t i = 0; i < view->count; i++)
        if (same(&view->rows[i]->key, key)) return view->rows[i];
    bh__row **more = realloc(view->rows, (view->count + 1) * sizeof *more);
    if (!more) return NULL;
    view->rows = more;
    bh__row *row = calloc(1, sizeof *row);
    if (!row) return NULL;
    row->key = *key;
    return view->rows[view->count++] = row;
}

static void drop_unseen(bh__view *view) {
    size_t kept = 0;
    for (size_t i = 0; i < view->count; i++) {
        if (view->rows[i]->seen)
            view->rows[kept++] = view->rows[i];
        else
            free(view->rows[i]);
    }
    view->count = kept;
}

bool bh__view_refresh(bh__view *view, uint64_t patience_ns) {
    bh__sightings next;
    bool fits = bh__gather(&next, patience_ns);
    for (size_t i = 0; i < view->count; i++) view->rows[i]->seen = false;
    for (size_t i = 0; i < next.count && fits; i++) {
        if (!next.list[i].figures) continue;
        bh__row *row = find_row(view, &next.list[i].entry);
        fits = row != NULL;
        if (!row) break;
        row->now = next.list[i].figures;
        row->seen = true;
        rate(row, bh__now_ns());
        remember(row);
        bh__gpu_look(row->now->info.uuid, &row->gpu);
    }
    drop_unseen(view);
    bh__sightings_free(&view->sightings);
    view->sightings = next;
    bh__view_sort(view);
    return fits;
}

void bh__view_free(bh__view *view) {
    for (size_t i = 0; i < view->count; i++) free(view->rows[i]);
    free(view->rows);
    bh__sightings_free(&view->sightings);
    *view = (bh__view){0};
}
