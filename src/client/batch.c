/* SPDX-License-Identifier: Apache-2.0 */
/* One-call dispatch: items that follow each other are packed into one device buffer and one piece of
 * host memory of the same layout, so that one transfer each way serves them all. Packs take turns on
 * several lanes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/trace.h"

enum {
    ALIGNMENT = 256,
    PACK_ITEMS = 64,
    MOST_ARGS = 1024,
    USUAL_LANES = 3,
    MOST_LANES = 8,
    MOST_RETRIES = 100,
    PACKS_PER_LANE = 2, /* one comes and goes while the other is computed */
    MOST_PACKS = MOST_LANES * PACKS_PER_LANE
};

/* The status of an item that is to be run again. */
enum { AGAIN = -1 };

/* What one call works with. */
typedef struct batch {
    bh_device device;
    uint8_t *items; /* bh_dispatch_item, `stride` bytes apart */
    size_t count, stride;
    bh_dispatch_options options;
    bh_lane lanes[MOST_LANES];
    uint32_t lane_count;
    bool own_lane; /* the device's, none was opened */
    bh_status first_status;
    size_t first_at;
    bh_error first_error;
} batch;

typedef struct pack {
    size_t first, count;
    uint64_t upload_bytes; /* from the start: inputs, then what is read and written */
    uint64_t read_from;    /* up to the end: what is read and written, then outputs */
    uint64_t bytes;
    uint64_t offsets[PACK_ITEMS * 4]; /* of the arrays, in order; or owned, if there are more */
    uint64_t *offset;
    bh_lane lane;
    bh_buffer buffer;
    int area; /* -1: none, each array travels by itself */
    uint8_t *host;
    bool reading;
    bh_ticket read;
    bh_ticket tickets[PACK_ITEMS]; /* zero: it has its status already */
} pack;

static bh_dispatch_item *item_at(const batch *self, size_t index) {
    return (bh_dispatch_item *)(void *)(self->items + index * self->stride);
}

static bool is_array(const bh_dispatch_arg *arg) {
    return arg->kind != BH_DISPATCH_VALUE;
}

/* ---- what became of an item ---- */

/* Of one of several that may be to blame it shows when it runs alone. */
static bool was_unlucky(bh_status status, const bh_error *error) {
    if (status == BH_E_FAULT || status == BH_E_DEADLINE) return !error->certain;
    return status == BH_E_LOST || status == BH_E_STALE;
}

static void fail(batch *self, size_t index, bh_status status, const bh_error *error) {
    bh_dispatch_item *item = item_at(self, index);
    item->status = status;
    if (item->error) *item->error = *error;
    if (self->first_status == BH_OK || index < self->first_at) {
        self->first_status = status;
        self->first_at = index;
        self->first_error = *error;
    }
}

/* A call was refused: it would be again. */
static void fail_refused(batch *self, size_t index) {
    bh_error error = *bh__last();
    fail(self, index, error.status, &error);
}

/* It ran, or was lost. */
static void settle(batch *self, size_t index, bh_status status, const bh_error *error) {
    bh_dispatch_item *item = item_at(self, index);
    if (status != BH_OK && was_unlucky(status, error) && item->attempts <= self->options.retries)
        item->status = AGAIN;
    else if (status != BH_OK)
        fail(self, index, status, error);
    else
        item->status = BH_OK;
}

/* ---- checking ---- */

static bh_status check_arg(size_t item, size_t index, const bh_dispatch_arg *arg) {
    bool in = arg->kind == BH_DISPATCH_VALUE || arg->kind == BH_DISPATCH_IN ||
              arg->kind == BH_DISPATCH_INOUT;
    bool out = arg->kind == BH_DISPATCH_OUT || arg->kind == BH_DISPATCH_INOUT;
    if (!in && !out) {
        return bh__refuse(BH_E_INVALID, "use BH_DISPATCH_VALUE, _IN, _OUT or _INOUT",
                          "item %zu: argument %zu has kind %u", item, index, arg->kind);
    }
    if (arg->bytes == 0 || arg->bytes > INT64_MAX / MOST_ARGS || (in && !arg->input) ||
        (out && !arg->output)) {
        return bh__refuse(BH_E_INVALID, "pass the address and size of the array or value",
                          "item %zu: argument %zu has %llu bytes, from %p, to %p", item, index,
                          (unsigned long long)arg->bytes, arg->input, arg->output);
    }
    if (arg->kind == BH_DISPATCH_VALUE && arg->bytes > BH__MAX_PARAM_BYTES) {
        return bh__refuse(BH_E_LAUNCH, "pass it as an array",
                          "item %zu: argument %zu is a value of %llu bytes; at most %d fit", item,
                          index, (unsigned long long)arg->bytes, BH__MAX_PARAM_BYTES);
    }
    return BH_OK;
}

static bh_status check_item(const batch *self, size_t index) {
    const bh_dispatch_item *item = item_at(self, index);
    if (item->arg_count > MOST_ARGS || (item->arg_count && !item->args)) {
        return bh__refuse(BH_E_INVALID, "pass at most 1024 arguments",
                          "item %zu: %zu arguments at %p", index, item->arg_count,
                          (const void *)item->args);
    }
    for (size_t i = 0; i < item->arg_count; i++) {
        if (check_arg(index, i, &item->args[i]) != BH_OK) return bh__last()->status;
    }
    return BH_OK;
}

/* Bytes of an item in a pack, at most. */
static uint64_t item_bytes(const bh_dispatch_item *item, size_t *out_arrays) {
    uint64_t bytes = 0;
    *out_arrays = 0;
    for (size_t i = 0; i < item->arg_count; i++) {
        if (!is_array(&item->args[i])) continue;
        bytes += (item->args[i].bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
        ++*out_arrays;
    }
    return bytes;
}

/* ---- packs ---- */

/* Inputs first, then what goes both ways, then outputs: two ranges that overlap in the middle. */
static void lay_out(const batch *self, pack *out) {
    static const uint32_t order[] = {BH_DISPATCH_IN, BH_DISPATCH_INOUT, BH_DISPATCH_OUT};
    uint64_t at = 0;
    for (int phase = 0; phase < 3; phase++) {
        size_t array = 0;
        if (phase == 1) out->read_from = at;
        for (size_t i = 0; i < out->count; i++) {
            const bh_dispatch_item *item = item_at(self, out->first + i);
            for (size_t k = 0; k < item->arg_count; k++) {
                const bh_dispatch_arg *arg = &item->args[k];
                if (!is_array(arg)) continue;
                if (arg->kind == order[phase]) {
                    out->offset[array] = at;
                    at += (arg->bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
                }
                array++;
            }
        }
        if (phase == 1) out->upload_bytes = at;
    }
    out->bytes = at;
}

/* Takes as many items as travel well together, all of them sound. */
static bh_status gather(const batch *self, size_t first, size_t end, pack *out) {
    uint64_t bytes = 0;
    size_t arrays = 0;
    *out = (pack){.first = first, .area = -1};
    while (first + out->count < end && out->count < PACK_ITEMS) {
        size_t more;
        uint64_t size = item_bytes(item_at(self, first + out->count), &more);
        if (out->count && bytes + size > BH__BATCH_BYTES) break;
        bytes += size;
        arrays += more;
        out->count++;
    }
    out->offset = out->offsets;
    if (arrays > sizeof out->offsets / sizeof *out->offsets) {
        out->offset = malloc(arrays * sizeof *out->offset);
        if (!out->offset)
            return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                              "no host memory for %zu arrays", arrays);
    }
    lay_out(self, out);
    return BH_OK;
}

/* Calls `visit` for each array of one item; stops at what is not BH_OK. */
typedef bh_status visit_fn(const batch *self, pack *p, const bh_dispatch_arg *arg, uint64_t offset);

static bh_status each_array(const batch *self, pack *p, size_t index, visit_fn *visit) {
    size_t array = 0, unused;
    bh_status status = BH_OK;
    for (size_t i = 0; i < index; i++) {
        (void)item_bytes(item_at(self, p->first + i), &unused);
        array += unused;
    }
    const bh_dispatch_item *item = item_at(self, p->first + index);
    for (size_t k = 0; k < item->arg_count && status == BH_OK; k++) {
        if (is_array(&item->args[k])) status = visit(self, p, &item->args[k], p->offset[array++]);
    }
    return status;
}

/* ---- host memory ---- */

/* None where all are in use. */
static void area_take(const batch *self, pack *p) {
    if (p->bytes > BH__BATCH_BYTES) return;
    bh__device *device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", true);
    if (!device) return;
    int found = -1;
    for (int i = 0; i < BH__BATCH_AREAS; i++) {
        const bh__batch_area *area = &device->batch_areas[i];
        if (area->taken || area->hold > atomic_load(&device->front->reaped)) continue;
        if (found < 0 || area->memory) found = i;
        if (area->memory) break;
    }
    if (found >= 0) {
        device->batch_areas[found].taken = true;
        p->host = device->batch_areas[found].memory;
    }
    bh__device_unlock(device);
    if (found < 0) return;
    void *memory = p->host;
    if (!memory) (void)bh_host_alloc(self->device, BH__BATCH_BYTES, &memory);
    device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", false);
    if (!device) return;
    device->batch_areas[found].memory = memory;
    if (memory) {
        p->area = found;
        p->host = memory;
    } else {
        device->batch_areas[found].taken = false;
    }
    bh__device_unlock(device);
}

/* `failed`: a lost worker may still write to it. */
static void area_give(const batch *self, pack *p, bool failed) {
    if (p->area < 0) return;
    bh__device *device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", false);
    if (!device) return;
    bh__batch_area *area = &device->batch_areas[p->area];
    area->taken = false;
    area->hold = failed ? device->losses : 0;
    p->area = -1;
    bh__device_unlock(device);
}

/* ---- on the way ---- */

static bh_status copy_in(const batch *self, pack *p, const bh_dispatch_arg *arg, uint64_t offset) {
    (void)self;
    if (arg->kind != BH_DISPATCH_OUT) memcpy(p->host + offset, arg->input, arg->bytes);
    return BH_OK;
}

static bh_status upload(const batch *self, pack *p, const bh_dispatch_arg *arg, uint64_t offset) {
    (void)self;
    if (arg->kind == BH_DISPATCH_OUT) return BH_OK;
    return bh_submit_write(p->lane, p->buffer, offset, arg->input, arg->bytes, NULL);
}

static bh_status copy_out(const batch *self, pack *p, const bh_dispatch_arg *arg, uint64_t offset) {
    (void)self;
    if (arg->kind != BH_DISPATCH_IN) memcpy(arg->output, p->host + offset, arg->bytes);
    return BH_OK;
}

static bh_status download(const batch *self, pack *p, const bh_dispatch_arg *arg, uint64_t offset) {
    (void)self;
    if (arg->kind == BH_DISPATCH_IN) return BH_OK;
    return bh_buffer_read(p->buffer, offset, arg->output, arg->bytes);
}

static bh_arg to_arg(const bh_dispatch_arg *from, bh_buffer view) {
    if (!is_array(from)) return bh_arg_data(from->input, (size_t)from->bytes);
    return bh_arg_buffer(view, from->kind == BH_DISPATCH_IN    ? BH_ACCESS_IN
                               : from->kind == BH_DISPATCH_OUT ? BH_ACCESS_OUT
                                                               : BH_ACCESS_INOUT);
}

static bh_status launch(const batch *self, pack *p, size_t index, size_t *array) {
    bh_dispatch_item *item = item_at(self, p->first + index);
    size_t count = item->arg_count, made = 0;
    bh_arg *args = malloc((count + 1) * sizeof *args);
    bh_buffer *views = malloc((count + 1) * sizeof *views);
    bh_status status = BH_OK;
    if (!args || !views)
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory for %zu arguments", count);
    for (size_t k = 0; k < count && status == BH_OK; k++) {
        bh_buffer view = {0};
        if (is_array(&item->args[k])) {
            status =
                bh_buffer_view(p->buffer, p->offset[*array + made], item->args[k].bytes, &view);
            if (status == BH_OK) views[made++] = view;
        }
        if (status == BH_OK) args[k] = to_arg(&item->args[k], view);
    }
    bh_launch_options options = BH_INIT(options);
    options.flags = self->options.flags;
    options.lane = p->lane;
    options.deadline_ns = self->options.deadline_ns;
    if (status == BH_OK)
        status = bh_launch_with(item->kernel, item->shape, (bh_args){args, count}, &options,
                                &p->tickets[index]);
    bh_error error = *bh__last();
    for (size_t k = 0; k < made; k++) (void)bh_buffer_release(views[k]);
    free(args);
    free(views);
    size_t arrays;
    (void)item_bytes(item, &arrays);
    *array += arrays;
    return status == BH_OK ? BH_OK : bh__refuse_with(&error);
}

static bh_status send_up(const batch *self, pack *p) {
    bh_status status = BH_OK;
    for (size_t i = 0; i < p->count && status == BH_OK; i++)
        status = each_array(self, p, i, p->host ? copy_in : upload);
    if (status == BH_OK && p->host && p->upload_bytes)
        status = bh_submit_write(p->lane, p->buffer, 0, p->host, p->upload_bytes, NULL);
    return status;
}

static void count_items(const batch *self, size_t count) {
    bh__device *device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", false);
    if (!device) return;
    device->tally.dispatches += count;
    bh__trace_instant(device, "dispatch", "items", count, NULL);
    bh__device_unlock(device);
}

/* Submits all of a pack. An error is one of all its items. */
static bh_status start(batch *self, pack *p) {
    area_take(self, p);
    if (p->area < 0) p->host = NULL;
    bh_status status = bh_buffer_alloc(self->device, BH_U8, p->bytes ? p->bytes : 1, &p->buffer);
    if (status == BH_OK) status = send_up(self, p);
    if (status != BH_OK) {
        bh_error error = *bh__last();
        if (p->buffer.id) (void)bh_buffer_release(p->buffer);
        p->buffer.id = 0;
        area_give(self, p, true);
        return bh__refuse_with(&error);
    }
    size_t array = 0;
    count_items(self, p->count);
    for (size_t i = 0; i < p->count; i++) {
        if (launch(self, p, i, &array) != BH_OK) fail_refused(self, p->first + i);
    }
    p->reading = p->host && p->bytes > p->read_from &&
                 bh_submit_read(p->lane, p->buffer, p->read_from, p->host + p->read_from,
                                p->bytes - p->read_from, &p->read) == BH_OK;
    return BH_OK;
}

/* Fetches what an item left. The transfer for all of them may have failed because of another one. */
static void fetch(batch *self, pack *p, size_t index, bool together) {
    bh_status status = each_array(self, p, index, together ? copy_out : download);
    bh_error error = *bh__last();
    settle(self, p->first + index, status, &error);
}

static void run_again(batch *self, size_t index);

static void finish(batch *self, pack *p) {
    bool together = p->reading && bh_wait(p->read, BH_FOREVER) == BH_OK;
    for (size_t i = 0; i < p->count; i++) {
        bh_ticket ticket = p->tickets[i];
        if (ticket.lane == 0) continue;
        if (bh_wait(ticket, BH_FOREVER) == BH_OK) {
            fetch(self, p, i, together);
        } else {
            bh_error error;
            bh_status status = bh_ticket_error(ticket, &error);
            settle(self, p->first + i, status, &error);
        }
    }
    (void)bh_buffer_release(p->buffer);
    area_give(self, p, p->reading && !together);
    if (p->offset != p->offsets) free(p->offset);
    p->offset = NULL;
    for (size_t i = 0; i < p->count; i++) {
        if (item_at(self, p->first + i)->status == AGAIN) run_again(self, p->first + i);
    }
}

/* An item that was lost is still whole on the host: its outputs were not touched. */
static void run_again(batch *self, size_t index) {
    pack *alone = malloc(sizeof *alone);
    bh_status status = alone ? gather(self, index, index + 1, alone)
                             : bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                          "no host memory to run item %zu again", index);
    item_at(self, index)->attempts++;
    if (status == BH_OK) {
        alone->lane = self->lanes[0];
        status = start(self, alone);
    }
    if (status == BH_OK)
        finish(self, alone);
    else
        fail_refused(self, index);
    free(alone);
}

/* ---- the batch ---- */

typedef struct in_flight {
    pack *packs[MOST_PACKS];
    size_t first, count;
} in_flight;

static void land(batch *self, in_flight *flight) {
    pack *p = flight->packs[flight->first++ % MOST_PACKS];
    flight->count--;
    finish(self, p);
    free(p);
}

static void refuse_pack(batch *self, pack *p) {
    bh_error error = *bh__last();
    for (size_t i = 0; i < p->count; i++) fail(self, p->first + i, error.status, &error);
    if (p->offset != p->offsets) free(p->offset);
    free(p);
}

/* Sends items [first, end), all sound, and returns with some of them on their way. */
static void send(batch *self, size_t first, size_t end, in_flight *flight, uint32_t *turn) {
    while (first < end) {
        if (flight->count == self->lane_count * PACKS_PER_LANE) land(self, flight);
        pack *p = malloc(sizeof *p);
        if (!p || gather(self, first, end, p) != BH_OK) {
            if (!p)
                bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory", "no host memory for a pack");
            for (size_t i = first; i < end; i++) fail_refused(self, i);
            free(p);
            return;
        }
        first = p->first + p->count;
        p->lane = self->lanes[(*turn)++ % self->lane_count];
        for (size_t i = 0; i < p->count; i++) item_at(self, p->first + i)->attempts++;
        bh_status status = start(self, p);
        /* What is on its way may be what takes up the room. */
        while (status == BH_E_NO_MEMORY && flight->count) {
            land(self, flight);
            status = start(self, p);
        }
        if (status != BH_OK) {
            refuse_pack(self, p);
        } else {
            flight->packs[(flight->first + flight->count++) % MOST_PACKS] = p;
        }
    }
}

static void open_lanes(batch *self) {
    uint32_t wanted = self->options.lanes ? self->options.lanes : USUAL_LANES;
    size_t packs = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < self->count; i++) {
        size_t arrays;
        if (item_at(self, i)->status != BH_OK) continue;
        bytes += item_bytes(item_at(self, i), &arrays);
    }
    packs = (size_t)(bytes / BH__BATCH_BYTES) + 1 + self->count / PACK_ITEMS;
    if (packs > self->count) packs = self->count;
    if (wanted > packs) wanted = (uint32_t)packs;
    while (wanted > 1 && self->lane_count < wanted &&
           bh_lane_open(self->device, &self->lanes[self->lane_count]) == BH_OK)
        self->lane_count++;
    if (self->lane_count) return;
    self->own_lane = true;
    self->lanes[0] = (bh_lane){0};
    self->lane_count = 1;
}

static void run(batch *self) {
    in_flight flight = {.count = 0};
    uint32_t turn = 0;
    size_t first = 0;
    open_lanes(self);
    while (first < self->count) {
        size_t end = first;
        while (end < self->count && item_at(self, end)->status == BH_OK) end++;
        send(self, first, end, &flight, &turn);
        first = end + 1;
    }
    while (flight.count) land(self, &flight);
    for (uint32_t i = 0; !self->own_lane && i < self->lane_count; i++)
        (void)bh_lane_close(self->lanes[i]);
}

static bh_status check_options(const bh_dispatch_options *given, bh_dispatch_options *out) {
    *out = (bh_dispatch_options)BH_INIT(*out);
    if (!given) return BH_OK;
    if (given->size < 2 * sizeof(uint32_t) || given->size > 4096) {
        return bh__refuse(BH_E_INVALID, "initialise the struct with BH_INIT",
                          "bh_dispatch_options.size is %u", given->size);
    }
    memcpy(out, given, given->size < sizeof *out ? given->size : sizeof *out);
    if (out->flags & ~(uint32_t)BH_LAUNCH_IDEMPOTENT) {
        return bh__refuse(BH_E_INVALID, "use BH_LAUNCH_IDEMPOTENT only",
                          "flags 0x%x are not known for a dispatch",
                          out->flags & ~(uint32_t)BH_LAUNCH_IDEMPOTENT);
    }
    if (out->lanes > MOST_LANES || out->retries > MOST_RETRIES) {
        return bh__refuse(BH_E_INVALID,
                          "use at most 8 lanes, or 0 for the usual number, and 100 retries",
                          "%u lanes and %u retries asked for", out->lanes, out->retries);
    }
    return BH_OK;
}

/* The device that the first sound kernel belongs to. */
static bool find_device(batch *self) {
    for (size_t i = 0; i < self->count; i++) {
        bh__device *device =
            bh__device_lock(item_at(self, i)->kernel.id, BH__KIND_KERNEL, "kernel", true);
        if (!device) continue;
        self->device.id = atomic_load(&device->id);
        bh__device_unlock(device);
        return true;
    }
    return false;
}

bh_status bh_dispatch_batch(bh_dispatch_item *items, size_t count,
                            const bh_dispatch_options *given) {
    batch self = {.items = (uint8_t *)items, .count = count};
    if (check_options(given, &self.options) != BH_OK) return BH_E_INVALID;
    if (count == 0) return BH_OK;
    if (!items || items->size < sizeof *items || items->size > 4096 || items->size % 8) {
        return bh__refuse(BH_E_INVALID, "initialise each item with BH_INIT",
                          "items is %p; items[0].size is %u", (void *)items,
                          items ? items->size : 0);
    }
    self.stride = items->size;
    for (size_t i = 0; i < count; i++) {
        item_at(&self, i)->status = BH_OK;
        item_at(&self, i)->attempts = 0;
    }
    bool found = find_device(&self);
    for (size_t i = 0; i < count; i++) {
        if (!found || check_item(&self, i) != BH_OK) fail_refused(&self, i);
    }
    if (found) run(&self);
    return self.first_status == BH_OK ? BH_OK : bh__refuse_with(&self.first_error);
}

bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, const bh_dispatch_arg *args,
                      size_t arg_count, const bh_dispatch_options *options) {
    bh_dispatch_item item = BH_INIT(item);
    item.kernel = kernel;
    item.shape = shape;
    item.args = args;
    item.arg_count = arg_count;
    return bh_dispatch_batch(&item, 1, options);
}
