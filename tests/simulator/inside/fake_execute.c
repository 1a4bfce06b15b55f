/* SPDX-License-Identifier: Apache-2.0 */
/* What the fake device does for one request: in pieces, with time passing between them. */
#include <signal.h>
#include <string.h>

#include "base/checked.h"
#include "core/process.h"
#include "fake_state.h"

enum { PIECES = 4, ILLEGAL_ADDRESS = 700 };

typedef struct place {
    uint8_t *memory;
    uint64_t address; /* for the oracle; 0: no device memory */
} place;

typedef struct run {
    bh__device_instance *device;
    const bh__work *work;
    int access;
    place target, source;
    uint64_t bytes;
} run;

static place find(bh__device_instance *device, uint64_t address, uint64_t bytes) {
    for (uint32_t i = 0; i < FAKE_CHUNKS; i++) {
        const fake_chunk *it = &device->chunks[i];
        const uint64_t bases[] = {it->chunk.address, it->chunk.read_only_address};
        for (int b = 0; it->memory && b < 2; b++) {
            if (bases[b] && address >= bases[b] &&
                bh__range_fits(address - bases[b], bytes, it->chunk.bytes))
                return (place){it->memory + (address - bases[b]), it->place + (address - bases[b])};
        }
    }
    return (place){NULL, 0};
}

static place find_host(bh__device_instance *device, uint32_t id, uint64_t offset, uint64_t bytes) {
    for (uint32_t i = 0; i < FAKE_HOSTS; i++) {
        const fake_host *it = &device->hosts[i];
        if (it->memory && it->id == id && bh__range_fits(offset, bytes, it->bytes))
            return (place){it->memory + offset, 0};
    }
    return (place){NULL, 0};
}

static bh_status refuse(const run *self, bh_error *error, const char *what) {
    return bh__fail(error, BH_E_INTERNAL, "report this as a defect of libbulkhead",
                    "request %llu of lane %u, operation %u: %s",
                    (unsigned long long)self->work->sequence, self->work->lane, self->work->op,
                    what);
}

static void begin(run *self, uint64_t target_bytes, uint64_t source_bytes) {
    sim_access what = {.worker = sim_process(),
                       .lane = self->work->lane,
                       .sequence = self->work->sequence,
                       .target = self->target.address,
                       .target_bytes = self->target.address ? target_bytes : 0,
                       .source = self->source.address,
                       .source_bytes = self->source.address ? source_bytes : 0};
    self->access = sim_access_begin(&what);
}

static void pass_time(void) {
    if (sim_device.longest_ns) sim_sleep(sim_pick(sim_device.longest_ns) / PIECES + 1);
}

/* Copies or fills `bytes` piece by piece, up to `end`. */
static void write_piece(run *self, uint64_t from, uint64_t to, const uint8_t *source) {
    if (to <= from) return;
    if (self->target.address)
        sim_access_write(self->access, self->target.address + from, to - from);
    memcpy(self->target.memory + from, source + from, to - from);
}

static void move(run *self, const uint8_t *source, uint64_t end) {
    uint64_t step = self->bytes / PIECES;
    for (int i = 0; i < PIECES; i++) {
        uint64_t from = (uint64_t)i * step, to = i == PIECES - 1 ? self->bytes : from + step;
        if (from >= end) break;
        write_piece(self, from, to < end ? to : end, source);
        pass_time();
    }
}

/* ---- kernels ---- */

static uint32_t word_at(const uint8_t *params, uint32_t offset) {
    uint32_t word;
    memcpy(&word, params + offset, sizeof word);
    return word;
}

static bh_status fault(bh_error *error) {
    bh__fail(error, BH_E_FAULT, "mend the kernel", "the fake kernel faulted");
    bh__fail_device_code(error, ILLEGAL_ADDRESS, "FAKE_FAULT");
    return BH_E_FAULT;
}

static void store_words(run *self, uint32_t value, uint64_t end, bool add) {
    uint8_t bytes[4096];
    uint64_t words = self->bytes / 4;
    for (uint64_t i = 0; i < words; i++) {
        uint32_t old = 0, next = value;
        if (add) {
            memcpy(&old, self->target.memory + i * 4, sizeof old);
            next += old;
        }
        memcpy(bytes + i * 4, &next, sizeof next);
    }
    move(self, bytes, end);
}

static bh_status run_kernel(run *self, uint32_t kernel, uint32_t value, bh_error *error) {
    uint64_t half = self->bytes / 2;
    switch (kernel) {
    case FAKE_STORE:
    case FAKE_ADD:
        store_words(self, value, self->bytes, kernel == FAKE_ADD);
        return BH_OK;
    case FAKE_COPY:
        move(self, self->source.memory, self->bytes);
        return BH_OK;
    case FAKE_FAULT:
        store_words(self, value, half, false);
        return fault(error);
    case FAKE_ENDLESS:
        store_words(self, value, half, false);
        while (!fake_killed(self->device)) sim_sleep(1000000);
        return BH_E_STOPPED;
    case FAKE_CRASH:
        store_words(self, value, half, false);
        sim_process_kill(sim_process(), SIGSEGV);
        for (;;) sim_sleep(1000000);
    default:
        return refuse(self, error, "there is no such kernel");
    }
}

static bh_status launch(run *self, bh_error *error) {
    const bh__launch_body *body = &self->work->u.launch;
    fake_module *module = fake_module_of(self->device, body->module);
    const uint8_t *params = self->work->params;
    uint64_t target, source = 0;
    if (!module) return refuse(self, error, "its module is not loaded");
    if (body->kernel == FAKE_REFUSED) pass_time();
    if (body->kernel == FAKE_REFUSED)
        return bh__fail(error, BH_E_LAUNCH, "launch another kernel", "the device refuses this one");
    if (body->kernel == FAKE_SET) {
        pass_time();
        memcpy(module->variable, params, 4);
        return BH_OK;
    }
    memcpy(&target, params, sizeof target);
    uint32_t at = 8;
    if (body->kernel == FAKE_COPY) {
        source = target;
        memcpy(&target, params + 8, sizeof target);
        at = 16;
    }
    self->bytes = (uint64_t)word_at(params, at) * 4;
    if (self->bytes > 4096) return refuse(self, error, "a fake kernel of more than 1024 words");
    self->target = find(self->device, target, self->bytes);
    if (body->kernel == FAKE_COPY) self->source = find(self->device, source, self->bytes);
    if (!self->target.memory || (source && !self->source.memory))
        return refuse(self, error, "its memory is not mapped");
    uint32_t value =
        body->kernel == FAKE_GET || body->kernel == FAKE_COPY ? 0 : word_at(params, at + 4);
    uint32_t kernel = body->kernel;
    if (kernel == FAKE_GET) {
        memcpy(&value, module->variable, sizeof value);
        kernel = FAKE_STORE;
    }
    begin(self, self->bytes, self->bytes);
    bh_status status = run_kernel(self, kernel, value, error);
    sim_access_end(self->access);
    return status;
}

/* ---- transfers ---- */

static bh_status fill(run *self, bh_error *error) {
    const bh__copy_body *body = &self->work->u.copy;
    if (!body->pattern_bytes || body->pattern_bytes > sizeof body->pattern)
        return refuse(self, error, "the pattern has an unusual size");
    uint8_t bytes[65536];
    if (body->bytes > sizeof bytes) return refuse(self, error, "a fill of more than 64 KiB");
    for (uint64_t i = 0; i < body->bytes; i++) bytes[i] = body->pattern[i % body->pattern_bytes];
    begin(self, self->bytes, 0);
    move(self, bytes, self->bytes);
    sim_access_end(self->access);
    return BH_OK;
}

static bh_status rows(run *self, bh_error *error) {
    const bh__copy_body *body = &self->work->u.copy;
    uint16_t op = self->work->op;
    bool fills = op == BH__OP_FILL_ROWS, reads = op == BH__OP_READ_ROWS;
    uint64_t to, from = body->pattern_bytes;
    if (!bh__rows_extent(body->bytes, body->rows, body->pitch.target, &to) ||
        (!fills && !bh__rows_extent(body->bytes, body->rows, body->pitch.source, &from)))
        return refuse(self, error, "the rows make no sense");
    self->target = reads ? find_host(self->device, body->host, body->target, to)
                         : find(self->device, body->target, to);
    self->source = reads || op == BH__OP_COPY_ROWS
                       ? find(self->device, body->source, from)
                       : find_host(self->device, body->host, body->source, from);
    if (!self->target.memory || !self->source.memory)
        return refuse(self, error, "its memory is not mapped");
    begin(self, to, from);
    for (uint64_t row = 0; row < body->rows; row++) {
        uint64_t at = row * body->pitch.target;
        if (self->target.address)
            sim_access_write(self->access, self->target.address + at, body->bytes);
        for (uint64_t i = 0; i < body->bytes; i++)
            self->target.memory[at + i] =
                self->source.memory[fills ? i % from : row * body->pitch.source + i];
        pass_time();
    }
    sim_access_end(self->access);
    return BH_OK;
}

static bh_status transfer(run *self, bh_error *error) {
    const bh__copy_body *body = &self->work->u.copy;
    bh__device_instance *device = self->device;
    fake_module *module;
    self->bytes = body->bytes;
    switch (self->work->op) {
    case BH__OP_WRITE:
        self->target = find(device, body->target, body->bytes);
        self->source = find_host(device, body->host, body->source, body->bytes);
        break;
    case BH__OP_READ:
        self->target = find_host(device, body->host, body->target, body->bytes);
        self->source = find(device, body->source, body->bytes);
        break;
    case BH__OP_COPY:
        self->target = find(device, body->target, body->bytes);
        self->source = find(device, body->source, body->bytes);
        break;
    case BH__OP_FILL:
        self->target = find(device, body->target, body->bytes);
        if (!self->target.memory) return refuse(self, error, "its memory is not mapped");
        return fill(self, error);
    case BH__OP_GLOBAL_WRITE:
    case BH__OP_GLOBAL_READ:
        module = fake_module_of(device, body->module);
        if (!module) return refuse(self, error, "its module is not loaded");
        if (self->work->op == BH__OP_GLOBAL_WRITE) {
            self->source = find_host(device, body->host, body->source, body->bytes);
            if (bh__range_fits(body->target, body->bytes, FAKE_VARIABLE_BYTES))
                self->target.memory = module->variable + body->target;
        } else {
            self->target = find_host(device, body->host, body->target, body->bytes);
            if (bh__range_fits(body->source, body->bytes, FAKE_VARIABLE_BYTES))
                self->source.memory = module->variable + body->source;
        }
        break;
    case BH__OP_WRITE_ROWS:
    case BH__OP_READ_ROWS:
    case BH__OP_COPY_ROWS:
    case BH__OP_FILL_ROWS:
        return rows(self, error);
    case BH__OP_PREFETCH:
        return BH_OK;
    default:
        return refuse(self, error, "there is no such operation");
    }
    if (!self->target.memory || !self->source.memory)
        return refuse(self, error, "its memory is not mapped");
    begin(self, self->bytes, self->bytes);
    move(self, self->source.memory, self->bytes);
    sim_access_end(self->access);
    return BH_OK;
}

bh_status fake_execute(bh__device_instance *device, uint32_t lane, const bh__work *work,
                       bh_error *error) {
    run self = {.device = device, .work = work};
    (void)lane;
    if (sim_device.refuse_in && sim_chance(sim_device.refuse_in))
        return bh__fail(error, BH_E_LAUNCH, "submit it again", "the fake device refuses this one");
    if (sim_device.fault_in && work->op == BH__OP_LAUNCH && sim_chance(sim_device.fault_in))
        return fault(error);
    return work->op == BH__OP_LAUNCH ? launch(&self, error) : transfer(&self, error);
}
