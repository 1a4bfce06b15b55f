/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs over the public API, checked against the model. Each of several threads has
 * buffers, lanes and modules of its own; the device, its workers and what befalls them they
 * share. */
#include "swarm.h"

#include <stdlib.h>

#include "../../support/buffers.h"
#include "../../support/transfers.h"
#include "world.h"

enum { LONGEST_PROGRAM = 14 };

bh_lane any_lane(program *self) {
    return sim_chance(3) ? (bh_lane){0} : self->lanes[sim_pick(PROGRAM_LANES)];
}

int any_buffer(void) {
    return (int)sim_pick(MODEL_BUFFERS);
}

bool has(program *self, int index) {
    model_buffer *buffer = &self->model.buffers[index];
    return buffer->handle.id && !buffer->gone;
}

uint64_t bytes_of(program *self, int index) {
    return (uint64_t)self->model.buffers[index].words * 4;
}

/* All of a buffer or a half of it, as operations use it. The handle of a view is released by
 * place_end, right after it was used. */
typedef struct place {
    bh_buffer handle;
    unsigned halves;
    uint32_t words;
    uint64_t offset, bytes; /* in the buffer */
} place;

static place place_make(program *self, int index, unsigned halves) {
    const model_buffer *buffer = &self->model.buffers[index];
    uint32_t half = buffer->words / 2;
    place made = {.handle = buffer->handle, .halves = WHOLE, .words = buffer->words};
    bh_buffer view;
    if (halves != WHOLE &&
        model_allows(&self->model,
                     bh_buffer_view(buffer->handle, 0, halves == UPPER ? half : 0, half, &view),
                     "bh_buffer_view")) {
        made = (place){view, halves, half, halves == UPPER ? half * 4ull : 0, 0};
    }
    made.bytes = made.words * 4ull;
    return made;
}

static void place_end(program *self, const place *it) {
    if (it->halves != WHOLE)
        (void)model_allows(&self->model, bh_buffer_release(it->handle), "bh_buffer_release");
}

static unsigned any_halves(void) {
    return sim_without("views") || sim_chance(2) ? WHOLE : sim_chance(2) ? LOWER : UPPER;
}

uint32_t next_value(program *self) {
    return self->value += 16;
}

/* Asks about a ticket, which may complete, fail or get its times meanwhile. */
static void check_info(bh_ticket ticket) {
    bh_ticket_info info = BH_INIT(info);
    bh_status status = bh_ticket_get_info(ticket, &info);
    if (status != BH_OK) BUG("bh_ticket_get_info: %s", bh_status_name(status));
    if (info.timed && info.status != BH_OK)
        BUG("a ticket with %s has times", bh_status_name(info.status));
    if (!info.timed && (info.queued_ns | info.waiting_ns | info.device_ns))
        BUG("a ticket without times has some");
}

void submitted(program *self, model_op *op, bh_status status, const char *call) {
    model *it = &self->model;
    sim_note("%s on buffer %d: %s", call, op->target == NO_BUFFER ? op->source : op->target,
             bh_status_name(status));
    if (model_allows(it, status, call)) {
        ticket_watch(op->ticket);
        if (sim_chance(3)) callback_register(op->ticket);
        if (sim_chance(6)) check_info(op->ticket);
        if (!sim_without("cancel") && sim_chance(6)) {
            bh_status cancel = bh_cancel(op->ticket);
            op->cancelled = cancel == BH_OK;
            sim_note("bh_cancel: %s", bh_status_name(cancel));
        }
        return;
    }
    model_op_refused(it, op);
}

/* ---- steps ---- */

static void step_alloc(program *self) {
    int index = any_buffer();
    model_buffer *buffer = &self->model.buffers[index];
    if (buffer->gone) return;
    if (buffer->handle.id) {
        /* One reference more, which is given back, changes nothing. */
        if (sim_chance(2) &&
            model_allows(&self->model, bh_buffer_retain(buffer->handle), "bh_buffer_retain"))
            (void)model_allows(&self->model, bh_buffer_release(buffer->handle),
                               "bh_buffer_release");
        if (model_allows(&self->model, bh_buffer_release(buffer->handle), "bh_buffer_release"))
            buffer->gone = true;
        return;
    }
    static const uint32_t sizes[] = {WORDS, 64, 700};
    uint32_t words = sizes[sim_pick(sim_without("large") ? 2 : 3)];
    bool managed = !sim_without("managed") && sim_chance(3);
    bool transparent = managed && !sim_without("transparent") && sim_chance(2);
    uint32_t flags = transparent ? BH_BUFFER_TRANSPARENT | BH_BUFFER_UNTRACKED : 0;
    if (transparent) atomic_store(&model_writes_back, true);
    bh_buffer handle = {0};
    void *host = NULL;
    bh_status status = managed
                           ? alloc_managed(self->model.device, BH_U32, words, flags, &handle, &host)
                           : bh_buffer_alloc(self->model.device, BH_U32, words, NULL, &handle);
    if (model_allows(&self->model, status, "bh_buffer_alloc"))
        *buffer = (model_buffer){
            .handle = handle, .words = words, .host = host, .transparent = transparent};
}

/* Maps a managed buffer, in order with what is submitted: to write all of it, or to read it. */
static void step_map(program *self) {
    int index = any_buffer();
    model_buffer *buffer = &self->model.buffers[index];
    if (!has(self, index) || !buffer->host || buffer->transparent) return;
    model_op *op = model_op_new(&self->model);
    if (!op) return;
    bool writes = sim_chance(2);
    uint32_t flags = writes ? BH_MAP_WRITE | BH_MAP_DISCARD : BH_MAP_READ;
    bh_status status = bh_managed_map(buffer->handle, 0, bytes_of(self, index), flags, NULL);
    sim_note("bh_managed_map of buffer %d to %s: %s", index, writes ? "write" : "read",
             bh_status_name(status));
    if (!model_allows(&self->model, status, "bh_managed_map")) {
        model_op_drop(&self->model); /* nothing was written */
        return;
    }
    op->is_over = true;
    op->status = BH_OK;
    if (writes) {
        op->target = index;
        op->value = next_value(self);
        for (uint32_t i = 0; i < buffer->words; i++) buffer->host[i] = op->value;
    } else {
        op->source = index;
        op->reads_host = true;
        memcpy(op->mapped, buffer->host, bytes_of(self, index));
        op->memory = op->mapped;
    }
    status = bh_managed_unmap(buffer->host, bytes_of(self, index));
    if (!model_allows(&self->model, status, "bh_managed_unmap")) model_op_refused(&self->model, op);
}

static void step_prefetch(program *self) {
    int index = any_buffer();
    model_buffer *buffer = &self->model.buffers[index];
    if (!has(self, index) || !buffer->host) return;
    bh_submit_options options = BH_INIT(options);
    options.lane = any_lane(self);
    (void)model_allows(&self->model,
                       bh_managed_prefetch(buffer->handle, 0, bytes_of(self, index),
                                           sim_chance(2) ? BH_TO_DEVICE : BH_TO_HOST, &options,
                                           NULL),
                       "bh_managed_prefetch");
}

/* The ticket of pending work to come after, of any lane; zero: none. */
static bh_ticket any_pending(program *self) {
    const model *it = &self->model;
    const model_op *op = it->op_count > 1 ? &it->ops[sim_pick((unsigned)it->op_count - 1)] : NULL;
    return !op || op->is_over || sim_without("after") ? (bh_ticket){0} : op->ticket;
}

static void launch(program *self, int kernel, uint64_t deadline) {
    int index = any_buffer();
    model_op *op = has(self, index) ? model_op_new(&self->model) : NULL;
    if (!op) return;
    place to = place_make(self, index, any_halves());
    op->target = index;
    op->to = op->from = to.halves;
    op->value = next_value(self);
    op->adds = kernel == FAKE_ADD;
    if (op->adds) op->source = index;
    bh_launch_options options = BH_INIT(options);
    options.lane = any_lane(self);
    options.deadline_ns = deadline;
    if (sim_chance(3) && !op->adds) options.flags |= BH_SUBMIT_IDEMPOTENT;
    if (sim_chance(8)) options.flags |= BH_SUBMIT_NO_BLOCK;
    if (sim_chance(4)) options.flags |= BH_SUBMIT_TIMED;
    if (sim_chance(3)) op->after = any_pending(self);
    options.after = &op->after;
    options.after_count = op->after.sequence ? 1 : 0;
    bh_arg target = op->adds ? BH_INOUT(to.handle) : BH_OUT(to.handle);
    bh_status status = bh_launch(self->kernels[kernel], BH_GRID(1, 1),
                                 BH_ARGS(target, to.words, op->value), &options, &op->ticket);
    place_end(self, &to);
    submitted(self, op, status, "bh_launch");
}

static void step_launch(program *self) {
    static const int usual[] = {FAKE_STORE, FAKE_STORE, FAKE_ADD, FAKE_REFUSED};
    launch(self, usual[sim_pick(sim_without("refused") ? 3 : 4)], 0);
}

static void step_fault(program *self) {
    if (!self->faults || sim_without("fault")) return;
    static const int bad[] = {FAKE_FAULT, FAKE_CRASH, FAKE_ENDLESS};
    int kernel = bad[sim_pick(3)];
    launch(self, kernel, kernel == FAKE_ENDLESS ? 3 * MS : 0);
}

/* Also from one half of a buffer to the other. */
static void step_copy(program *self) {
    int target = any_buffer(), source = any_buffer();
    unsigned to_halves = any_halves(), from_halves = any_halves();
    bool halves = to_halves != WHOLE;
    if (!has(self, target) || !has(self, source) ||
        bytes_of(self, target) != bytes_of(self, source) || halves != (from_halves != WHOLE) ||
        (target == source && (!halves || to_halves == from_halves)))
        return;
    model_op *op = model_op_new(&self->model);
    if (!op) return;
    place to = place_make(self, target, to_halves), from = place_make(self, source, from_halves);
    if (to.bytes != from.bytes || (target == source && to.offset == from.offset)) {
        place_end(self, &to); /* one of the views was refused */
        place_end(self, &from);
        model_op_drop(&self->model);
        return;
    }
    op->target = target;
    op->source = source;
    op->to = to.halves;
    op->from = from.halves;
    if (sim_chance(4)) {
        op->is_over = true;
        op->status = bh_buffer_copy(self->model.buffers[target].handle, to.offset,
                                    self->model.buffers[source].handle, from.offset, to.bytes);
        place_end(self, &to);
        place_end(self, &from);
        if (model_allows(&self->model, op->status, "bh_buffer_copy")) return;
        if (op->status == BH_E_FAULT || op->status == BH_E_LOST) return; /* counts in its turn */
        model_op_refused(&self->model, op); /* it says nothing of how far it came */
        return;
    }
    bh_launch_options options = BH_INIT(options);
    options.lane = any_lane(self);
    bh_status status =
        sim_chance(2)
            ? bh_submit_copy(options.lane, self->model.buffers[target].handle, to.offset,
                             self->model.buffers[source].handle, from.offset, to.bytes, &op->ticket)
            : bh_launch(self->kernels[FAKE_COPY], BH_GRID(1, 1),
                        BH_ARGS(BH_IN(from.handle), BH_OUT(to.handle), to.words), &options,
                        &op->ticket);
    place_end(self, &to);
    place_end(self, &from);
    submitted(self, op, status, "a copy");
}

static void step_fill(program *self) {
    int index = any_buffer();
    model_op *op = has(self, index) ? model_op_new(&self->model) : NULL;
    if (!op) return;
    op->target = index;
    op->value = next_value(self);
    bh_buffer handle = self->model.buffers[index].handle;
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = WORDS * 4;
    rows.height = bytes_of(self, index) / rows.width;
    bool by_rows = rows.width * rows.height == bytes_of(self, index) && sim_chance(3);
    submitted(self, op,
              by_rows ? submit_fill_rows(any_lane(self), handle, &rows, &op->value, 4, &op->ticket)
                      : bh_submit_fill(any_lane(self), handle, 0, bytes_of(self, index), &op->value,
                                       4, &op->ticket),
              by_rows ? "bh_submit_fill_2d" : "bh_submit_fill");
}

static void step_write(program *self) {
    int index = any_buffer();
    model_op *op = has(self, index) ? model_op_new(&self->model) : NULL;
    if (!op) return;
    uint32_t words[MODEL_WORDS];
    op->target = index;
    op->value = next_value(self);
    for (uint32_t i = 0; i < self->model.buffers[index].words; i++) words[i] = op->value;
    bh_buffer handle = self->model.buffers[index].handle;
    op->to = any_halves();
    uint64_t bytes = bytes_of(self, index) / (op->to == WHOLE ? 1 : 2);
    uint64_t offset = op->to == UPPER ? bytes : 0;
    if (sim_chance(3)) {
        op->is_over = true;
        op->status = bh_buffer_write(handle, offset, words, bytes);
        if (model_allows(&self->model, op->status, "bh_buffer_write")) return;
        if (op->status == BH_E_FAULT || op->status == BH_E_LOST) return; /* counts in its turn */
        model_op_refused(&self->model, op); /* it says nothing of how far it came */
        return;
    }
    submitted(self, op, bh_submit_write(any_lane(self), handle, offset, words, bytes, &op->ticket),
              "bh_submit_write");
}

static void step_read(program *self) {
    int index = any_buffer();
    if (!has(self, index)) return;
    for (int i = 0; i < PROGRAM_HOSTS; i++) {
        if (!self->hosts[i] || self->host_used[i]) continue;
        model_op *op = model_op_new(&self->model);
        if (!op) return;
        op->source = index;
        op->from = any_halves();
        op->reads_host = true;
        op->memory = self->hosts[i];
        self->host_used[i] = true;
        uint64_t bytes = bytes_of(self, index) / (op->from == WHOLE ? 1 : 2);
        submitted(self, op,
                  bh_submit_read(any_lane(self), self->model.buffers[index].handle,
                                 op->from == UPPER ? bytes : 0, self->hosts[i], bytes, &op->ticket),
                  "bh_submit_read");
        return;
    }
}

static void step_host(program *self) {
    if (sim_without("host")) return;
    int i = (int)sim_pick(PROGRAM_HOSTS);
    if (self->host_used[i]) return;
    void *memory = self->hosts[i];
    if (memory) {
        if (model_allows(&self->model, bh_host_free(self->model.device, memory), "bh_host_free"))
            self->hosts[i] = NULL;
    } else if (model_allows(&self->model, bh_host_alloc(self->model.device, 4096, &memory),
                            "bh_host_alloc")) {
        self->hosts[i] = memory;
    }
}

static void step_lane(program *self) {
    if (sim_without("lane")) return;
    int i = (int)sim_pick(PROGRAM_LANES);
    if (self->lanes[i].id) {
        if (model_allows(&self->model, bh_lane_release(self->lanes[i]), "bh_lane_release"))
            self->lanes[i].id = 0;
    } else {
        bh_lane lane;
        bh_lane_options options = BH_INIT(options);
        options.flags = sim_chance(3) ? BH_LANE_NO_BLOCK : 0;
        if (model_allows(&self->model, bh_lane_open(self->model.device, &options, &lane),
                         "bh_lane_open"))
            self->lanes[i] = lane;
    }
}

static void step_sync(program *self) {
    uint64_t start = sim_now();
    bh_status status = sim_chance(2) ? bh_device_sync(self->model.device, 30 * S)
                                     : bh_lane_sync(self->lanes[0], 30 * S);
    if (status == BH_E_INVALID && !self->lanes[0].id) return;
    if (status == BH_E_TIMEOUT) sim_fail(SIM_HANG, "a sync of 30 s came to nothing");
    (void)model_allows(&self->model, status, "a sync");
    if (sim_now() - start > 40 * S) BUG("a sync took longer than its timeout");
}

static void step_sequence(program *self) {
    if (sim_without("sequence")) return;
    int target = any_buffer(), second = any_buffer();
    if (target == second || !has(self, target) || !has(self, second) ||
        bytes_of(self, target) != bytes_of(self, second))
        return;
    model_op *op = model_op_new(&self->model);
    if (!op) return;
    bh_sequence sequence;
    bh_buffer to = self->model.buffers[target].handle, also = self->model.buffers[second].handle;
    op->target = target;
    op->second = second;
    op->value = next_value(self);
    bh_status status = bh_sequence_begin(self->model.device, NULL, &sequence);
    if (!model_allows(&self->model, status, "bh_sequence_begin")) {
        model_op_drop(&self->model);
        return;
    }
    status = bh_sequence_launch(sequence, self->kernels[FAKE_STORE], BH_GRID(1, 1),
                                BH_ARGS(BH_OUT(to), self->model.buffers[target].words, op->value),
                                NULL, NULL);
    if (status == BH_OK)
        status = record_copy(sequence, also, 0, to, 0, bytes_of(self, target), NULL);
    if (status == BH_OK) status = bh_sequence_finish(sequence);
    bh_submit_options options = BH_INIT(options);
    options.lane = any_lane(self);
    if (sim_chance(2)) options.flags = BH_SUBMIT_IDEMPOTENT;
    if (status == BH_OK) status = bh_sequence_submit(sequence, &options, &op->ticket);
    submitted(self, op, status, "a sequence");
    (void)model_allows(&self->model, bh_sequence_release(sequence), "bh_sequence_release");
}

static void step_prepared(program *self) {
    int index = any_buffer();
    model_op *op = has(self, index) ? model_op_new(&self->model) : NULL;
    if (!op) return;
    bh_prepared prepared;
    bh_launch_options options = BH_INIT(options);
    options.lane = any_lane(self);
    op->target = index;
    op->value = next_value(self);
    bh_status status = bh_prepare(
        self->kernels[FAKE_STORE], BH_GRID(1, 1),
        BH_ARGS(BH_OUT(self->model.buffers[index].handle), self->model.buffers[index].words, 0u),
        &options, &prepared);
    if (!model_allows(&self->model, status, "bh_prepare")) {
        model_op_drop(&self->model);
        return;
    }
    bh_change change = {.index = 2, .arg = BH_ARG(op->value)};
    submitted(self, op, bh_prepared_launch(prepared, &change, 1, &op->ticket),
              "bh_prepared_launch");
    (void)model_allows(&self->model, bh_prepared_release(prepared), "bh_prepared_release");
}

static void step_module(program *self) {
    if (sim_without("module")) return;
    static const char image[] = FAKE_IMAGE;
    bh_module other;
    bh_status status = bh_module_load(self->model.device, image, sizeof image, &other);
    if (!model_allows(&self->model, status, "bh_module_load")) return;
    bh_kernel store;
    int index = any_buffer();
    if (model_allows(&self->model, bh_kernel_get(other, "store", &store), "bh_kernel_get") &&
        has(self, index)) {
        model_op *op = model_op_new(&self->model);
        if (op) {
            op->target = index;
            op->value = next_value(self);
            submitted(self, op,
                      bh_launch(store, BH_GRID(1, 1),
                                BH_ARGS(BH_OUT(self->model.buffers[index].handle),
                                        self->model.buffers[index].words, op->value),
                                NULL, &op->ticket),
                      "bh_launch");
        }
    }
    (void)model_allows(&self->model, bh_module_release(other), "bh_module_release");
}

static void step_variable(program *self) {
    if (!self->variable.id || sim_without("variable")) return;
    uint32_t value[4] = {next_value(self), 1, 2, 3}, got[4];
    if (sim_chance(2)) {
        bh_status status = bh_module_global_write(self->variable, "var", 0, value, sizeof value);
        self->variable_known = model_allows(&self->model, status, "bh_module_global_write");
        self->variable_value = value[0];
        return;
    }
    bh_status status = bh_module_global_read(self->variable, "var", 0, got, sizeof got);
    if (!model_allows(&self->model, status, "bh_module_global_read")) return;
    if (self->variable_known && got[0] != self->variable_value)
        BUG("a variable was set to %u and %u is read", self->variable_value, got[0]);
}

static void step_dispatch(program *self) {
    if (sim_without("dispatch")) return;
    uint32_t out[WORDS] = {0}, words = WORDS, value = next_value(self);
    bh_args args = BH_ARGS(BH_HOST_OUT(out, sizeof out), words, value);
    bh_status status = bh_dispatch(self->kernels[FAKE_STORE], BH_GRID(1, 1), args, NULL);
    if (!model_allows(&self->model, status, "bh_dispatch")) return;
    for (int i = 0; i < WORDS; i++)
        if (out[i] != value) BUG("bh_dispatch has %u in word %d and not %u", out[i], i, value);
}

static void step_look(program *self) {
    bh_health health = BH_INIT(health);
    bh_device_info info = BH_INIT(info);
    bh_memory_info memory = BH_INIT(memory);
    bh_device_counters counters = BH_INIT(counters);
    bh_device it = self->model.device;
    (void)model_allows(&self->model, bh_device_get_health(it, &health), "bh_device_get_health");
    (void)model_allows(&self->model, bh_device_get_info(it, &info), "bh_device_get_info");
    (void)model_allows(&self->model, bh_memory_get_info(it, &memory), "bh_memory_get_info");
    (void)model_allows(&self->model, bh_device_get_counters(it, &counters),
                       "bh_device_get_counters");
    if (!sim_without("trim") && sim_chance(4)) {
        uint64_t freed;
        (void)model_allows(&self->model, bh_memory_trim(it, 0, &freed), "bh_memory_trim");
    }
}

/* Only of what is settled: a suspect buffer that is declared good has any contents. */
static void accept_some(program *self) {
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        model_buffer *buffer = &self->model.buffers[i];
        if (!buffer->handle.id || buffer->gone || !sim_chance(3)) continue;
        if (!model_allows(&self->model, bh_buffer_accept(buffer->handle), "bh_buffer_accept"))
            continue;
        for (int k = 0; k < 2; k++) {
            if (buffer->half[k].suspect) buffer->half[k].known = false;
            buffer->half[k].suspect = false;
        }
    }
}

/* Between launches the program stores to transparent buffers as it likes. */
static void store_some(program *self) {
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        model_buffer *buffer = &self->model.buffers[i];
        model_half *half = buffer->half;
        if (!has(self, i) || !buffer->transparent || half[0].suspect || half[1].suspect ||
            half[0].unsure || half[1].unsure || !sim_chance(3))
            continue;
        half[0] = half[1] = (model_half){.known = true, .value = next_value(self)};
        for (uint32_t k = 0; k < buffer->words; k++) buffer->host[k] = half[0].value;
    }
}

/* ---- programs ---- */

typedef void step(program *self);
static step *const steps[] = {
    step_alloc,  step_alloc,    step_launch,   step_launch, step_launch,   step_fault,
    step_copy,   step_copy,     step_fill,     step_write,  step_write,    step_read,
    step_host,   step_lane,     step_lane,     step_sync,   step_sequence, step_prepared,
    step_module, step_variable, step_dispatch, step_look,   step_map,      step_prefetch,
};
/* Of swarm_calls.c, less often: they say little of the order of the others. */
static step *const more_steps[] = {
    step_share,           step_changed_sequence, step_batch,  step_background_load,
    step_variable_kernel, step_advise,           step_attach, step_watch,
    step_notify,          step_wait_all,         step_ask,
};

static step *any_step(void) {
    if (sim_chance(6)) return more_steps[sim_pick(sizeof more_steps / sizeof *more_steps)];
    return steps[sim_pick(sizeof steps / sizeof *steps)];
}

bool program_begin(program *self) {
    static const char *const names[] = {"store",   "add",   "copy", "fault", "endless",
                                        "refused", "crash", "get",  "set"};
    static const char image[] = FAKE_IMAGE, variable[] = FAKE_VARIABLE;
    model *it = &self->model;
    self->value = (uint32_t)(self->number << 16);
    if (!model_allows(it, bh_module_load(it->device, image, sizeof image, &self->module),
                      "bh_module_load"))
        return false;
    for (int i = 0; i < FAKE_KERNELS; i++)
        if (!model_allows(it, bh_kernel_get(self->module, names[i], &self->kernels[i]),
                          "bh_kernel_get"))
            return false;
    bh_module made;
    if (sim_chance(2) &&
        model_allows(it, bh_module_load(it->device, variable, sizeof variable, &made),
                     "bh_module_load"))
        self->variable = made;
    return true;
}

static void settle(program *self) {
    model_settle(&self->model);
    self->model.op_count = 0;
    memset(self->host_used, 0, sizeof self->host_used);
    if (self->model.closing) return;
    accept_some(self);
    store_some(self);
}

void *program_run(void *argument) {
    program *self = argument;
    int rounds = 1 + (int)sim_pick(3);
    for (int i = 0; i < rounds; i++) {
        int length = 2 + (int)sim_pick(LONGEST_PROGRAM);
        for (int k = 0; k < length; k++) {
            any_step()(self);
            if (sim_chance(4)) sim_sleep(sim_pick(50000));
        }
        settle(self);
    }
    return NULL;
}
