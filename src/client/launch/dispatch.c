/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: a launch with its transfers in one call. Consecutive items are packed into one buffer
 * and one area of host memory with the same layout, so that one transfer each way serves them all.
 * Packs take turns on several lanes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "client/core/handles.h"
#include "client/core/hooks.h"
#include "client/core/sized.h"

enum {
    ALIGNMENT = 256,
    PACK_ITEMS = 64,
    MAX_ARGS = 1024,
    DEFAULT_LANES = 3,
    MAX_LANES = 8,
    MAX_RETRIES = 100,
    PACKS_PER_LANE = 2, /* one is transferred while the other is computed */
    MAX_PACKS = MAX_LANES * PACKS_PER_LANE
};

/* The status of an item that is to be retried. */
enum { RETRY = -1 };

/* The state of one call. */
typedef struct batch {
    bh_device device;
    uint8_t *items; /* bh_dispatch_item, `stride` bytes apart */
    size_t count, stride;
    bh_dispatch_options options;
    bh_lane lanes[MAX_LANES];
    uint32_t lane_count;
    bool own_lane; /* uses the device's own lane: none was opened */
    bh_status first_status;
    size_t first_at;
    bh_error first_error;
} batch;

typedef struct pack {
    size_t first, count;
    uint64_t upload_bytes; /* from the start: inputs, then in-outs */
    uint64_t read_from;    /* up to the end: in-outs, then outputs */
    uint64_t bytes;
    uint64_t
        offsets[PACK_ITEMS * 4]; /* of the arrays, in order; `offset` is owned if there are more */
    uint64_t *offset;
    bh_lane lane;
    bh_buffer buffer;
    int area; /* -1: none, each array is transferred by itself */
    uint8_t *host;
    bool reading;
    bh_ticket read;
    bh_ticket tickets[PACK_ITEMS]; /* zero: the item already has its status */
} pack;

static bh_dispatch_item *item_at(const batch *self, size_t index) {
    return (bh_dispatch_item *)(void *)(self->items + index * self->stride);
}

static bool is_array(const bh_arg *arg) {
    return arg->kind == BH_ARG_HOST;
}

/* ---- the results of items ---- */

/* Returns true if a retry can succeed: the item was lost, or it is only one of several that may
 * have caused the fault. */
static bool can_retry(bh_status status, const bh_error *error) {
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

/* A call for the item was refused. It is not retried: it would be refused again. */
static void fail_refused(batch *self, size_t index) {
    bh_error error = *bh__last();
    fail(self, index, error.status, &error);
}

/* Sets the status of an item that ran or was lost. */
static void set_result(batch *self, size_t index, bh_status status, const bh_error *error) {
    bh_dispatch_item *item = item_at(self, index);
    if (status != BH_OK && can_retry(status, error) && item->attempts <= self->options.retries)
        item->status = RETRY;
    else if (status != BH_OK)
        fail(self, index, status, error);
    else
        item->status = BH_OK;
}

/* ---- checking ---- */

/* The launch checks the others. */
static bh_status check_array(size_t item, size_t index, const bh_arg *arg) {
    static const char *const names[] = {[BH_ACCESS_IN] = "BH_HOST_IN",
                                        [BH_ACCESS_OUT] = "BH_HOST_OUT",
                                        [BH_ACCESS_INOUT] = "BH_HOST_INOUT"};
    if (arg->access < BH_ACCESS_IN || arg->access > BH_ACCESS_INOUT)
        return bh__refuse(BH_E_INVALID, "use BH_HOST_IN, BH_HOST_OUT or BH_HOST_INOUT",
                          "item %zu: the access of argument %zu (BH_ARG_HOST) is %u", item, index,
                          arg->access);
    if (arg->u.host.bytes == 0) return BH_OK; /* an array without elements */
    if (!arg->u.host.data || arg->u.host.bytes > INT64_MAX / MAX_ARGS)
        return bh__refuse(BH_E_INVALID, "pass the address and size of the array",
                          "item %zu: argument %zu (%s) has %llu bytes at %p", item, index,
                          names[arg->access], (unsigned long long)arg->u.host.bytes,
                          arg->u.host.data);
    return BH_OK;
}

static bh_status check_item(const batch *self, size_t index) {
    const bh_dispatch_item *item = item_at(self, index);
    const bh_args *args = &item->args;
    if (bh__reserved_check(item->reserved, "bh_dispatch_item") != BH_OK) return BH_E_UNSUPPORTED;
    if (args->count > MAX_ARGS || (args->count && !args->list)) {
        return bh__refuse(BH_E_INVALID, "pass at most 1024 arguments",
                          "item %zu: args.count is %zu, args.list is %p", index, args->count,
                          (const void *)args->list);
    }
    for (size_t i = 0; i < args->count; i++) {
        if (is_array(&args->list[i]) && check_array(index, i, &args->list[i]) != BH_OK)
            return BH_E_INVALID;
    }
    return BH_OK;
}

/* The bytes that an item's arrays take in a pack. */
static uint64_t item_bytes(const bh_dispatch_item *item, size_t *out_arrays) {
    uint64_t bytes = 0;
    *out_arrays = 0;
    for (size_t i = 0; i < item->args.count; i++) {
        if (!is_array(&item->args.list[i])) continue;
        bytes += (item->args.list[i].u.host.bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
        ++*out_arrays;
    }
    return bytes;
}

/* ---- packs ---- */

/* Inputs, in-outs, outputs, in this order: one range is uploaded, one is downloaded. */
static void lay_out(const batch *self, pack *out) {
    static const uint32_t order[] = {BH_ACCESS_IN, BH_ACCESS_INOUT, BH_ACCESS_OUT};
    uint64_t at = 0;
    for (int phase = 0; phase < 3; phase++) {
        size_t array = 0;
        if (phase == 1) out->read_from = at;
        for (size_t i = 0; i < out->count; i++) {
            const bh_dispatch_item *item = item_at(self, out->first + i);
            for (size_t k = 0; k < item->args.count; k++) {
                const bh_arg *arg = &item->args.list[k];
                if (!is_array(arg)) continue;
                if (arg->access == order[phase]) {
                    out->offset[array] = at;
                    at += (arg->u.host.bytes + ALIGNMENT - 1) & ~(uint64_t)(ALIGNMENT - 1);
                }
                array++;
            }
        }
        if (phase == 1) out->upload_bytes = at;
    }
    out->bytes = at;
}

/* Begins a pack with as many items as fit. All of them were checked. */
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

/* Called for each array of an item until it returns an error. */
typedef bh_status visit_fn(const batch *self, pack *p, const bh_arg *arg, uint64_t offset);

static bh_status each_array(const batch *self, pack *p, size_t index, visit_fn *visit) {
    size_t array = 0, unused;
    bh_status status = BH_OK;
    for (size_t i = 0; i < index; i++) {
        (void)item_bytes(item_at(self, p->first + i), &unused);
        array += unused;
    }
    const bh_dispatch_item *item = item_at(self, p->first + index);
    for (size_t k = 0; k < item->args.count && status == BH_OK; k++) {
        if (is_array(&item->args.list[k]))
            status = visit(self, p, &item->args.list[k], p->offset[array++]);
    }
    return status;
}

/* ---- host memory ---- */

/* Takes an area for the pack. If all are in use, the pack has none. */
static void area_take(const batch *self, pack *p) {
    if (p->bytes > BH__BATCH_BYTES) return;
    bh__device *device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", true);
    if (!device) return;
    int found = -1;
    for (int i = 0; i < BH__BATCH_AREAS; i++) {
        const bh__batch_area *area = &device->launch.batch_areas[i];
        if (area->taken || area->hold > atomic_load(&device->queue.reaped)) continue;
        if (found < 0 || area->memory) found = i;
        if (area->memory) break;
    }
    if (found >= 0) {
        device->launch.batch_areas[found].taken = true;
        p->host = device->launch.batch_areas[found].memory;
    }
    bh__device_unlock(device);
    if (found < 0) return;
    void *memory = p->host;
    if (!memory) (void)bh_host_alloc(self->device, BH__BATCH_BYTES, &memory);
    device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", false);
    if (!device) return;
    device->launch.batch_areas[found].memory = memory;
    if (memory) {
        p->area = found;
        p->host = memory;
    } else {
        device->launch.batch_areas[found].taken = false;
    }
    bh__device_unlock(device);
}

/* `failed`: a lost worker may still write to it. */
static void area_give(const batch *self, pack *p, bool failed) {
    if (p->area < 0) return;
    bh__device *device = bh__device_lock(self->device.id, BH__KIND_DEVICE, "device", false);
    if (!device) return;
    bh__batch_area *area = &device->launch.batch_areas[p->area];
    area->taken = false;
    area->hold = failed ? device->losses : 0;
    p->area = -1;
    bh__device_unlock(device);
}

/* ---- transfers and launches ---- */

static bh_status copy_in(const batch *self, pack *p, const bh_arg *arg, uint64_t offset) {
    (void)self;
    if ((arg->access & BH_ACCESS_IN) && arg->u.host.bytes)
        memcpy(p->host + offset, arg->u.host.data, arg->u.host.bytes);
    return BH_OK;
}

static bh_status upload(const batch *self, pack *p, const bh_arg *arg, uint64_t offset) {
    (void)self;
    if (!(arg->access & BH_ACCESS_IN) || !arg->u.host.bytes) return BH_OK;
    return bh_submit_write(p->lane, p->buffer, offset, arg->u.host.data, arg->u.host.bytes, NULL);
}

static bh_status copy_out(const batch *self, pack *p, const bh_arg *arg, uint64_t offset) {
    (void)self;
    if ((arg->access & BH_ACCESS_OUT) && arg->u.host.bytes)
        memcpy(arg->u.host.data, p->host + offset, arg->u.host.bytes);
    return BH_OK;
}

static bh_status download(const batch *self, pack *p, const bh_arg *arg, uint64_t offset) {
    (void)self;
    if (!(arg->access & BH_ACCESS_OUT) || !arg->u.host.bytes) return BH_OK;
    return bh_buffer_read(p->buffer, offset, arg->u.host.data, arg->u.host.bytes);
}

static bh_status launch(const batch *self, pack *p, size_t index, size_t *array) {
    bh_dispatch_item *item = item_at(self, p->first + index);
    size_t count = item->args.count, made = 0;
    bh_arg *args = malloc((count + 1) * sizeof *args);
    bh_buffer *views = malloc((count + 1) * sizeof *views);
    bh_status status = BH_OK;
    if (!args || !views)
        status = bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                            "no host memory for %zu arguments", count);
    for (size_t k = 0; k < count && status == BH_OK; k++) {
        const bh_arg *given = &item->args.list[k];
        args[k] = *given;
        if (!is_array(given)) continue;
        status = bh_buffer_view(p->buffer, 0, p->offset[*array + made], given->u.host.bytes,
                                &views[made]);
        if (status == BH_OK) args[k] = bh_arg_buffer(views[made++], given->access);
    }
    bh_launch_options options = BH_INIT(options);
    options.flags = self->options.flags;
    options.lane = p->lane;
    options.deadline_ns = self->options.deadline_ns;
    if (status == BH_OK)
        status = bh_launch(item->kernel, item->shape, (bh_args){args, count}, &options,
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

static bh_status upload_pack(const batch *self, pack *p) {
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
    device->counters.dispatches += count;
    bh__note(device, "dispatch", "items", count);
    bh__device_unlock(device);
}

/* Submits all of a pack. An error applies to all its items. */
static bh_status start(batch *self, pack *p) {
    area_take(self, p);
    if (p->area < 0) p->host = NULL;
    bh_status status =
        bh_buffer_alloc(self->device, BH_U8, p->bytes ? p->bytes : 1, NULL, &p->buffer);
    if (status == BH_OK) status = upload_pack(self, p);
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

/* Copies an item's outputs to the program. If the common transfer failed, perhaps because of
 * another item, it reads the arrays one by one. */
static void fetch(batch *self, pack *p, size_t index, bool together) {
    bh_status status = each_array(self, p, index, together ? copy_out : download);
    bh_error error = *bh__last();
    set_result(self, p->first + index, status, &error);
}

static void retry_item(batch *self, size_t index);

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
            set_result(self, p->first + i, status, &error);
        }
    }
    (void)bh_buffer_release(p->buffer);
    area_give(self, p, p->reading && !together);
    if (p->offset != p->offsets) free(p->offset);
    p->offset = NULL;
    for (size_t i = 0; i < p->count; i++) {
        if (item_at(self, p->first + i)->status == RETRY) retry_item(self, p->first + i);
    }
}

/* Runs a lost item again, alone. Its data on the host is intact: only success writes outputs. */
static void retry_item(batch *self, size_t index) {
    pack *alone = malloc(sizeof *alone);
    bh_status status = alone ? gather(self, index, index + 1, alone)
                             : bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                                          "no host memory to retry item %zu", index);
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
    pack *packs[MAX_PACKS];
    size_t first, count;
} in_flight;

/* Finishes the oldest pack in flight. */
static void finish_oldest(batch *self, in_flight *flight) {
    pack *p = flight->packs[flight->first++ % MAX_PACKS];
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

/* Submits items [first, end), which were checked. Some are still in flight when it returns. */
static void send(batch *self, size_t first, size_t end, in_flight *flight, uint32_t *turn) {
    while (first < end) {
        if (flight->count == self->lane_count * PACKS_PER_LANE) finish_oldest(self, flight);
        pack *p = malloc(sizeof *p);
        if (!p || gather(self, first, end, p) != BH_OK) {
            if (!p)
                bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                           "no host memory for a pack of items");
            for (size_t i = first; i < end; i++) fail_refused(self, i);
            free(p);
            return;
        }
        first = p->first + p->count;
        p->lane = self->lanes[(*turn)++ % self->lane_count];
        for (size_t i = 0; i < p->count; i++) item_at(self, p->first + i)->attempts++;
        bh_status status = start(self, p);
        /* Packs in flight may use the memory that is missing. */
        while (status == BH_E_NO_MEMORY && flight->count) {
            finish_oldest(self, flight);
            status = start(self, p);
        }
        if (status != BH_OK) {
            refuse_pack(self, p);
        } else {
            flight->packs[(flight->first + flight->count++) % MAX_PACKS] = p;
        }
    }
}

static void open_lanes(batch *self) {
    uint32_t wanted = self->options.lanes ? self->options.lanes : DEFAULT_LANES;
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
           bh_lane_open(self->device, NULL, &self->lanes[self->lane_count]) == BH_OK)
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
    while (flight.count) finish_oldest(self, &flight);
    for (uint32_t i = 0; !self->own_lane && i < self->lane_count; i++)
        (void)bh_lane_release(self->lanes[i]);
}

static bh_status check_options(const bh_dispatch_options *given, bh_dispatch_options *out) {
    *out = (bh_dispatch_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_dispatch_options") != BH_OK) return bh__last()->status;
    if (out->flags & ~(uint32_t)BH_SUBMIT_IDEMPOTENT) {
        return bh__refuse(BH_E_INVALID, "use BH_SUBMIT_IDEMPOTENT only",
                          "bh_dispatch_options.flags has unknown flags 0x%x",
                          out->flags & ~(uint32_t)BH_SUBMIT_IDEMPOTENT);
    }
    if (out->lanes > MAX_LANES || out->retries > MAX_RETRIES) {
        return bh__refuse(
            BH_E_INVALID, "use at most 8 lanes, or 0 for the default, and at most 100 retries",
            "bh_dispatch_options.lanes is %u, retries is %u", out->lanes, out->retries);
    }
    return BH_OK;
}

/* Enters the device of the first valid kernel: it must not be freed while the batch uses its areas.
 * The caller leaves it with bh__ticket_leave. NULL: no kernel is valid. */
static bh__device *enter_device(batch *self) {
    for (size_t i = 0; i < self->count; i++) {
        bh__device *device =
            bh__device_lock(item_at(self, i)->kernel.id, BH__KIND_KERNEL, "kernel", true);
        if (!device) continue;
        self->device.id = atomic_load(&device->id);
        bh__device_step_out(device);
        return device;
    }
    return NULL;
}

bh_status bh_dispatch_batch(bh_dispatch_item *items, size_t item_size, size_t count,
                            const bh_dispatch_options *given) {
    batch self = {.items = (uint8_t *)items, .count = count, .stride = item_size};
    if (check_options(given, &self.options) != BH_OK) return bh__last()->status;
    if (count == 0) return BH_OK;
    if (!items || item_size < sizeof *items || item_size > 4096 || item_size % 8)
        return bh__refuse(BH_E_INVALID, "pass the items and sizeof(bh_dispatch_item)",
                          "items is %p, item_size is %zu; an item has %zu bytes", (void *)items,
                          item_size, sizeof *items);
    if (count > PTRDIFF_MAX / item_size) /* most likely a negative count */
        return bh__refuse(BH_E_INVALID, "pass the number of items in the array",
                          "count is %zu, more than an array of items of %zu bytes can have", count,
                          item_size);
    for (size_t i = 0; i < count; i++) {
        item_at(&self, i)->status = BH_OK;
        item_at(&self, i)->attempts = 0;
    }
    bh__device *device = enter_device(&self);
    for (size_t i = 0; i < count; i++) {
        if (!device || check_item(&self, i) != BH_OK) fail_refused(&self, i);
    }
    if (device) {
        run(&self);
        bh__ticket_leave(device);
    }
    return self.first_status == BH_OK ? BH_OK : bh__refuse_with(&self.first_error);
}

bh_status bh_dispatch(bh_kernel kernel, bh_shape shape, bh_args args,
                      const bh_dispatch_options *options) {
    bh_dispatch_item item = BH_INIT(item);
    item.kernel = kernel;
    item.shape = shape;
    item.args = args;
    return bh_dispatch_batch(&item, sizeof item, 1, options);
}
