/* SPDX-License-Identifier: Apache-2.0 */
/* One thread of the soak: rounds of work on buffers of its own, on several lanes, until the device
 * ends, and then on the next. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "soak.h"

/* No call takes this long on a machine that is merely busy. */
#define PATIENCE_NS (120 * BENCH_S)
#define MARK        0xa5a5a5a5u

/* ---- calls ---- */

void soak_call_begin(soak_thread *self, const char *name) {
    atomic_store(&self->call, name);
    atomic_store(&self->since_ns, bench_now_ns());
}

bh_status soak_call_end(soak_thread *self, bh_status status) {
    atomic_store(&self->since_ns, 0);
    return status;
}

bool soak_taken(soak_thread *self, bh_status status, const char *call) {
    if (status == BH_OK) return true;
    bool ending = atomic_load(&self->stage->ending) >= self->era.number;
    if (status == BH_E_STOPPED ||
        (ending && (status == BH_E_INVALID || status == BH_E_CANCELLED))) {
        self->ended = true;
        return false;
    }
    /* A crash of the worker can be anyone's doing, a transfer's too; and a call is given up when
     * three workers in a row were lost with its order. */
    if (status == BH_E_STALE || status == BH_E_BUSY || status == BH_E_QUARANTINED ||
        status == BH_E_FAULT || status == BH_E_LOAD) {
        self->refused++;
        return false;
    }
    bh_error error;
    bh_last_error(&error);
    if (status == BH_E_LOST && strstr(error.message, "workers in a row")) {
        self->refused++;
        return false;
    }
    soak_report(SOAK_ODD, "%s: %s: %s", call, bh_status_name(status), error.message);
    return false;
}

#define TRY(expression) soak_taken(self, SOAK_CALL(self, expression), #expression)

bool soak_memory_enter(soak_thread *self) {
    pthread_rwlock_rdlock(&self->stage->memory);
    if (atomic_load(&self->stage->open) == self->era.number) return true;
    pthread_rwlock_unlock(&self->stage->memory);
    self->ended = true;
    return false;
}

void soak_memory_leave(soak_thread *self) {
    pthread_rwlock_unlock(&self->stage->memory);
}

/* ---- answers ---- */

/* What was learned of a ticket, the first time or again. */
static void learn(soak_thread *self, soak_op *op, bh_status answer, const char *how) {
    if (answer == BH_E_BUSY || answer == BH_E_TIMEOUT) {
        if (op->status != BH_E_BUSY)
            soak_report(SOAK_CHANGED, "%s had answered %s, and %s says %s", op->name,
                        bh_status_name(op->status), how, bh_status_name(answer));
        return;
    }
    if (op->status == BH_E_BUSY) {
        op->status = answer;
        self->tickets++;
        soak_answers_add(&self->answers, &self->random, op->ticket, answer);
        if (op->shown) soak_board_learned(op->ticket, answer);
    } else if (op->status != answer) {
        soak_report(SOAK_CHANGED, "%s had answered %s, and %s says %s", op->name,
                    bh_status_name(op->status), how, bh_status_name(answer));
    }
}

static void on_done(void *context, bh_ticket ticket, bh_status status) {
    soak_op *op = context;
    (void)ticket;
    atomic_store(&op->called_with, status);
    atomic_fetch_add(&op->calls, 1);
}

/* After a ticket was given out: it may be queried, watched or cancelled at once. */
static void pester(soak_thread *self, soak_op *op) {
    soak_random *random = &self->random;
    op->shown = soak_chance(random, 4);
    if (op->shown) soak_board_show(random, op->ticket);
    if (soak_chance(random, 3)) {
        op->called = SOAK_CALL(self, bh_on_done(op->ticket, on_done, op)) == BH_OK;
        if (!op->called && atomic_load(&self->stage->ending) < self->era.number) {
            bh_error error;
            bh_last_error(&error);
            if (error.status != BH_E_STOPPED)
                soak_report(SOAK_ODD, "bh_on_done: %s", error.message);
        }
    }
    if (op->kind != SOAK_BAD && soak_chance(random, 6)) {
        bh_status status = SOAK_CALL(self, bh_cancel(op->ticket));
        op->cancelled = status == BH_OK;
        if (op->cancelled) learn(self, op, BH_E_CANCELLED, "bh_cancel");
    }
    if (soak_chance(random, 3))
        learn(self, op, SOAK_CALL(self, bh_wait(op->ticket, 0)), "bh_wait 0");
    if (soak_chance(random, 8)) (void)bh_notify(op->ticket);
}

static void settle_answer(soak_thread *self, soak_op *op) {
    learn(self, op, SOAK_CALL(self, bh_wait(op->ticket, PATIENCE_NS)), "bh_wait");
    if (op->status == BH_E_BUSY) {
        soak_report(SOAK_ODD, "%s: the ticket has no answer", op->name);
        op->status = BH_E_TIMEOUT;
    }
    if (!op->called) return;
    uint64_t until = bench_now_ns() + PATIENCE_NS;
    while (atomic_load(&op->calls) == 0 && bench_now_ns() < until) bench_sleep_ns(50 * BENCH_US);
    if (atomic_load(&op->calls) != 1)
        soak_report(SOAK_CALLBACKS, "%s: its callback ran %u times", op->name,
                    atomic_load(&op->calls));
    else
        learn(self, op, atomic_load(&op->called_with), "its callback");
}

/* ---- submitting ---- */

static bh_lane some_lane(soak_thread *self) {
    return self->lanes[soak_below(&self->random, SOAK_LANES)];
}

static soak_op *op_new(soak_thread *self, soak_op_kind kind, const char *name) {
    soak_op *op = &self->ops[self->op_count++];
    memset(op, 0, sizeof *op);
    op->kind = kind;
    op->name = name;
    op->status = BH_E_BUSY;
    op->seed = (uint32_t)soak_next(&self->random);
    return op;
}

/* A range of words of a block, often all of it. */
static void some_range(soak_thread *self, const soak_block *block, uint32_t *first,
                       uint32_t *count) {
    soak_random *random = &self->random;
    *first = soak_chance(random, 2) ? 0 : soak_below(random, block->words) & ~63u;
    *count = block->words - *first;
    if (soak_chance(random, 3)) *count = 1 + soak_below(random, *count);
}

static void submitted(soak_thread *self, soak_op *op, bh_status status) {
    if (op->waits) {
        op->submitted = true;
        op->status = status;
        if (status != BH_OK) (void)soak_taken(self, status, op->name);
        return;
    }
    op->submitted = status == BH_OK;
    if (!op->submitted) {
        op->status = status;
        (void)soak_taken(self, status, op->name);
        return;
    }
    pester(self, op);
}

static void put_words(uint32_t *out, uint32_t seed, uint32_t count) {
    for (uint32_t i = 0; i < count; i++) out[i] = soak_word(seed, i);
}

static void write_some(soak_thread *self, soak_block *block) {
    soak_op *op = op_new(self, SOAK_WRITE, "a write");
    op->target = block;
    some_range(self, block, &op->first, &op->count);
    put_words(self->scratch, op->seed, op->count);
    op->pieces = op->count * 4ull > 512 * 1024;
    op->waits = soak_chance(&self->random, 4);
    if (op->waits)
        submitted(self, op,
                  SOAK_CALL(self, bh_buffer_write(block->buffer, op->first * 4ull, self->scratch,
                                                  op->count * 4ull)));
    else
        submitted(self, op,
                  SOAK_CALL(self, bh_submit_write(some_lane(self), block->buffer, op->first * 4ull,
                                                  self->scratch, op->count * 4ull, &op->ticket)));
}

static bool has_op(const soak_thread *self, soak_op_kind kind) {
    for (uint32_t i = 0; i < self->op_count; i++)
        if (self->ops[i].kind == kind) return true;
    return false;
}

/* The source must stay as it is until the write is done: one a round. */
static void write_from_host(soak_thread *self, soak_block *block) {
    if (!self->host_out || has_op(self, SOAK_WRITE_HOST)) return;
    if (!soak_memory_enter(self)) return;
    soak_op *op = op_new(self, SOAK_WRITE_HOST, "a write from host memory");
    op->target = block;
    op->count = block->words < SOAK_HOST_WORDS ? block->words : SOAK_HOST_WORDS;
    put_words(self->host_out, op->seed, op->count);
    soak_memory_leave(self);
    submitted(self, op,
              SOAK_CALL(self, bh_submit_write(some_lane(self), block->buffer, 0, self->host_out,
                                              op->count * 4ull, &op->ticket)));
}

static void read_to_host(soak_thread *self, soak_block *block) {
    if (!self->host_in || self->host_marked || has_op(self, SOAK_READ_HOST)) return;
    soak_op *op = op_new(self, SOAK_READ_HOST, "a read");
    op->source = block;
    some_range(self, block, &op->source_first, &op->count);
    if (op->count > SOAK_HOST_WORDS) op->count = SOAK_HOST_WORDS;
    submitted(
        self, op,
        SOAK_CALL(self, bh_submit_read(some_lane(self), block->buffer, op->source_first * 4ull,
                                       self->host_in, op->count * 4ull, &op->ticket)));
}

static void fill_some(soak_thread *self, soak_block *block) {
    soak_op *op = op_new(self, SOAK_FILL, "a fill");
    op->target = block;
    some_range(self, block, &op->first, &op->count);
    op->waits = soak_chance(&self->random, 4);
    if (op->waits)
        submitted(self, op,
                  SOAK_CALL(self, bh_buffer_fill(block->buffer, op->first * 4ull, op->count * 4ull,
                                                 &op->seed, 4)));
    else
        submitted(self, op,
                  SOAK_CALL(self, bh_submit_fill(some_lane(self), block->buffer, op->first * 4ull,
                                                 op->count * 4ull, &op->seed, 4, &op->ticket)));
}

static void copy_some(soak_thread *self, soak_block *to, soak_block *from) {
    if (to == from) return;
    soak_op *op = op_new(self, SOAK_COPY, "a copy");
    op->target = to;
    op->source = from;
    some_range(self, to->words < from->words ? to : from, &op->first, &op->count);
    op->source_first = op->first;
    submitted(
        self, op,
        SOAK_CALL(self, bh_submit_copy(some_lane(self), to->buffer, op->first * 4ull, from->buffer,
                                       op->source_first * 4ull, op->count * 4ull, &op->ticket)));
}

static bh_status launch(soak_thread *self, bh_kernel kernel, uint32_t threads, bh_args args,
                        uint32_t flags, uint64_t deadline_ns, bh_ticket *out) {
    bh_launch_options options = BH_INIT(options);
    options.lane = some_lane(self);
    options.flags = flags;
    options.deadline_ns = deadline_ns;
    bh_status status =
        SOAK_CALL(self, bh_launch(kernel, BH_GRID(threads, 128), args, &options, out));
    if (status == BH_E_QUARANTINED) (void)bh_kernel_pardon(kernel);
    return status;
}

static bh_status launch_prepared(soak_thread *self, bh_kernel kernel, uint32_t threads,
                                 bh_args args, bh_ticket *out) {
    bh_launch_options options = BH_INIT(options);
    bh_prepared prepared;
    options.lane = some_lane(self);
    bh_status status =
        SOAK_CALL(self, bh_prepare(kernel, BH_GRID(threads, 128), args, &options, &prepared));
    if (status != BH_OK) return status;
    status = SOAK_CALL(self, bh_prepared_launch(prepared, NULL, 0, out));
    (void)SOAK_CALL(self, bh_prepared_release(prepared));
    return status;
}

/* As the only step of a sequence. */
static bh_status replay(soak_thread *self, bh_kernel kernel, uint32_t threads, bh_args args,
                        bh_ticket *out) {
    bh_submit_options options = BH_INIT(options);
    bh_sequence sequence;
    options.lane = some_lane(self);
    bh_status status = SOAK_CALL(self, bh_sequence_begin(self->era.device, NULL, &sequence));
    if (status != BH_OK) return status;
    status = SOAK_CALL(
        self, bh_sequence_launch(sequence, kernel, BH_GRID(threads, 128), args, NULL, NULL));
    if (status == BH_OK) status = SOAK_CALL(self, bh_sequence_finish(sequence));
    if (status == BH_OK) status = SOAK_CALL(self, bh_sequence_submit(sequence, &options, out));
    (void)SOAK_CALL(self, bh_sequence_release(sequence));
    return status;
}

/* On all of a block, or on a view that is let go of at once. */
static void work_some(soak_thread *self, soak_block *block) {
    soak_op *op = op_new(self, SOAK_WORK, "a launch that changes its buffer");
    op->target = block;
    op->count = block->words;
    op->rounds = soak_chance(&self->random, 8) ? 400 : 1;
    bh_buffer used = block->buffer;
    bool view = soak_chance(&self->random, 4);
    if (view) {
        op->first = soak_below(&self->random, block->words);
        op->count = 1 + soak_below(&self->random, block->words - op->first);
        view = TRY(bh_buffer_view(block->buffer, 0, op->first, op->count, &used));
        if (!view) {
            self->op_count--;
            return;
        }
    }
    bh_kernel kernel = self->module.id ? self->kernels.work : self->era.kernels.work;
    bh_args args = BH_ARGS(BH_INOUT(used), op->seed, op->count, op->rounds);
    uint32_t way = soak_below(&self->random, 40);
    bh_status status = way == 0  ? replay(self, kernel, op->count, args, &op->ticket)
                       : way < 4 ? launch_prepared(self, kernel, op->count, args, &op->ticket)
                                 : launch(self, kernel, op->count, args, 0, 0, &op->ticket);
    submitted(self, op, status);
    if (view) (void)TRY(bh_buffer_release(used));
}

static void blend_some(soak_thread *self, soak_block *to, soak_block *from) {
    if (to == from || to->words > from->words) return;
    soak_op *op = op_new(self, SOAK_BLEND, "a launch that overwrites its buffer");
    op->target = to;
    op->source = from;
    op->count = to->words;
    uint32_t flags = soak_chance(&self->random, 2) ? BH_SUBMIT_IDEMPOTENT : 0;
    submitted(self, op,
              launch(self, self->era.kernels.blend, op->count,
                     BH_ARGS(BH_OUT(to->buffer), BH_IN(from->buffer), op->seed, op->count), flags,
                     0, &op->ticket));
}

/* Launches one of the kernels that go wrong, if one is wanted. */
static void bad_some(soak_thread *self, soak_block *block) {
    for (int i = 0; i < SOAK_BADS; i++) {
        int32_t wanted = atomic_load(&self->stage->wanted[i]);
        if (wanted <= 0 ||
            !atomic_compare_exchange_strong(&self->stage->wanted[i], &wanted, wanted - 1))
            continue;
        static const char *const names[] = {"a launch to a bad address", "a launch that traps",
                                            "a launch past its deadline"};
        soak_op *op = op_new(self, SOAK_BAD, names[i]);
        op->target = block;
        op->count = block->words;
        bh_kernel kernel = i == SOAK_BAD_WILD   ? self->era.kernels.wild
                           : i == SOAK_BAD_TRAP ? self->era.kernels.trap
                                                : self->era.kernels.endless;
        submitted(self, op,
                  launch(self, kernel, 1, BH_ARGS(BH_INOUT(block->buffer)), 0,
                         i == SOAK_BAD_DEADLINE ? 3 * BENCH_MS : 0, &op->ticket));
        if (!op->submitted) atomic_fetch_add(&self->stage->wanted[i], 1);
        return;
    }
}

/* Shapes and buffers that are refused before anything is queued. */
static void refused_some(soak_thread *self, soak_block *block) {
    bh_ticket untouched = {77, 77}, ticket = untouched;
    bh_status status =
        SOAK_CALL(self, bh_launch(self->era.kernels.work, BH_SHAPE(1, 1, 1, 4096, 1, 1),
                                  BH_ARGS(BH_INOUT(block->buffer), 1u, 1u, 1u), NULL, &ticket));
    if (status == BH_E_LAUNCH)
        self->refused++;
    else if (!soak_taken(self, status, "a launch of 4096 threads in a block"))
        return;
    else
        soak_report(SOAK_ODD, "a launch of 4096 threads in a block: %s", bh_status_name(status));
    if (ticket.lane != untouched.lane || ticket.sequence != untouched.sequence)
        soak_report(SOAK_ODD, "a refused launch wrote a ticket");
}

/* ---- things that come and go ---- */

static void change_lane(soak_thread *self) {
    bh_lane *lane = &self->lanes[1 + soak_below(&self->random, SOAK_LANES - 1)];
    if (lane->id) {
        bh_lane gone = *lane;
        *lane = (bh_lane){0};
        (void)TRY(bh_lane_release(gone));
    } else if (TRY(bh_lane_open(self->era.device, NULL, lane))) {
        self->lanes_opened++;
    } else {
        *lane = (bh_lane){0};
    }
}

static void change_module(soak_thread *self) {
    if (self->module.id) {
        bh_module gone = self->module;
        self->module = (bh_module){0};
        (void)TRY(bh_module_release(gone));
        return;
    }
    self->modules++;
    if (!TRY(bh_module_load(self->era.device, soak_kernel_source, strlen(soak_kernel_source),
                            &self->module)) ||
        !TRY(bh_kernel_get(self->module, "work", &self->kernels.work)))
        self->module = (bh_module){0};
}

/* Also while a read into it, or a write from it, is queued: that is waited for. */
static void change_host(soak_thread *self) {
    uint32_t **memory = soak_chance(&self->random, 2) ? &self->host_in : &self->host_out;
    soak_op_kind kind = memory == &self->host_in ? SOAK_READ_HOST : SOAK_WRITE_HOST;
    if (*memory) {
        void *gone = *memory;
        if (kind == SOAK_READ_HOST && has_op(self, kind)) return; /* it is looked at later */
        *memory = NULL;
        if (kind == SOAK_READ_HOST) self->host_marked = false;
        (void)TRY(bh_host_free(self->era.device, gone));
        return;
    }
    void *made = NULL;
    if (TRY(bh_host_alloc(self->era.device, SOAK_HOST_WORDS * 4, &made))) *memory = made;
}

static void sync_some(soak_thread *self) {
    bh_lane lane = self->lanes[1];
    bh_status status = lane.id && soak_chance(&self->random, 2)
                           ? SOAK_CALL(self, bh_lane_sync(lane, PATIENCE_NS))
                           : SOAK_CALL(self, bh_device_sync(self->era.device, PATIENCE_NS));
    (void)soak_taken(self, status, "a sync");
}

/* Makes a block anew, and all of it known. */
static bool block_write(soak_thread *self, soak_block *block) {
    uint32_t seed = (uint32_t)soak_next(&self->random);
    put_words(self->scratch, seed, block->words);
    block->unknown = true; /* if the write fails: by how much is not known */
    if (!TRY(bh_buffer_write(block->buffer, 0, self->scratch, block->words * 4ull))) return false;
    memcpy(block->value, self->scratch, block->words * 4ull);
    memset(block->doubt, 0, block->words);
    block->unknown = false;
    return true;
}

static bool block_make(soak_thread *self, soak_block *block) {
    block->buffer = (bh_buffer){0};
    block->unknown = true;
    if (!TRY(bh_buffer_alloc(self->era.device, BH_U32, block->words, NULL, &block->buffer)))
        return false;
    bh_buffer_info info = BH_INIT(info);
    if (!TRY(bh_buffer_get_info(block->buffer, &info))) return false;
    if (info.suspect) soak_report(SOAK_UNEXPLAINED, "a new buffer is suspect");
    return block_write(self, block);
}

static void block_change(soak_thread *self, soak_block *block) {
    if (block->buffer.id) (void)TRY(bh_buffer_release(block->buffer));
    if (!self->ended) (void)block_make(self, block);
}

/* What a program does about doubt: overwrite it, accept it, or go on for a while. */
static void block_mend(soak_thread *self, soak_block *block) {
    bool any = memchr(block->doubt, 1, block->words) != NULL;
    if (!block->unknown && !any) return;
    if (!block->unknown && soak_chance(&self->random, 3)) return;
    if (soak_chance(&self->random, 3)) {
        (void)block_write(self, block);
        return;
    }
    if (!TRY(bh_buffer_accept(block->buffer)) ||
        !TRY(bh_buffer_read(block->buffer, 0, self->scratch, block->words * 4ull))) {
        block->unknown = true;
        return;
    }
    memcpy(block->value, self->scratch, block->words * 4ull);
    memset(block->doubt, 0, block->words);
    block->unknown = false;
}

/* ---- rounds ---- */

static soak_block *some_block(soak_thread *self) {
    soak_random *random = &self->random;
    uint32_t at = soak_chance(random, 8) ? SOAK_BLOCKS - 1 : soak_below(random, SOAK_BLOCKS - 1);
    return &self->blocks[at];
}

static soak_block *some_small(soak_thread *self) {
    return &self->blocks[soak_below(&self->random, SOAK_BLOCKS - 1)];
}

static void one_step(soak_thread *self) {
    switch (soak_below(&self->random, 28)) {
    case 0:
    case 1:
    case 2:
        write_some(self, some_block(self));
        break;
    case 3:
        write_from_host(self, some_block(self));
        break;
    case 4:
    case 5:
        read_to_host(self, some_block(self));
        break;
    case 6:
    case 7:
        fill_some(self, some_block(self));
        break;
    case 8:
    case 9:
    case 10:
        copy_some(self, some_block(self), some_block(self));
        break;
    case 11:
    case 12:
    case 13:
        blend_some(self, some_small(self), some_block(self));
        break;
    case 14:
        refused_some(self, some_small(self));
        break;
    case 15:
        change_lane(self);
        break;
    case 16:
        if (soak_chance(&self->random, 8)) change_module(self);
        break;
    case 17:
        if (soak_chance(&self->random, 3)) change_host(self);
        break;
    case 18:
        if (soak_chance(&self->random, 3)) sync_some(self);
        if (soak_chance(&self->random, 30)) (void)TRY(bh_memory_trim(self->era.device, 0, NULL));
        break;
    case 19:
        if (soak_chance(&self->random, 12)) soak_managed_round(self);
        break;
    case 20:
        if (soak_chance(&self->random, 6)) soak_transparent_round(self);
        if (soak_chance(&self->random, 6)) soak_dispatch_round(self);
        break;
    case 21:
        soak_board_ask(&self->random);
        soak_answers_ask(&self->answers, &self->random);
        break;
    default:
        work_some(self, some_small(self));
    }
}

/* Nothing may write there once a read has failed. */
static void mark_host(soak_thread *self) {
    if (!soak_memory_enter(self)) return;
    for (uint32_t i = 0; i < SOAK_HOST_WORDS; i++) self->host_in[i] = MARK;
    soak_memory_leave(self);
    self->host_marked = true;
}

static void check_mark(soak_thread *self) {
    if (!self->host_marked || !soak_memory_enter(self)) return;
    for (uint32_t i = 0; i < SOAK_HOST_WORDS; i++) {
        if (self->host_in[i] == MARK) continue;
        soak_report(SOAK_WRONG_BYTES, "a read that had failed wrote word %u of host memory", i);
        break;
    }
    soak_memory_leave(self);
    self->host_marked = false;
}

/* Learns every answer, and brings the model up to date. */
static void settle(soak_thread *self) {
    for (uint32_t i = 0; i < self->op_count; i++) {
        soak_op *op = &self->ops[i];
        if (op->submitted && !op->waits) settle_answer(self, op);
        if (op->status == BH_E_STOPPED) self->ended = true;
        /* By the closing of the device, which does not ask whether it had begun. */
        if (op->status == BH_E_CANCELLED && !op->cancelled) {
            if (atomic_load(&self->stage->ending) < self->era.number)
                soak_report(SOAK_ODD, "%s: nobody cancelled it", op->name);
            self->ended = true;
        }
    }
    for (uint32_t i = 0; i < self->op_count && !self->ended; i++) {
        soak_op *op = &self->ops[i];
        if (op->kind != SOAK_READ_HOST) {
            soak_model_apply(op, NULL);
        } else if (soak_memory_enter(self)) {
            soak_model_apply(op, self->host_in);
            soak_memory_leave(self);
            if (op->submitted && op->status != BH_OK) mark_host(self);
        }
    }
    self->settled = self->op_count;
    self->op_count = 0;
}

/* What was done in the round before something was found. */
static void print_round(const soak_thread *self, const soak_block *block) {
    char text[2048] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < self->settled && used < sizeof text; i++) {
        const soak_op *op = &self->ops[i];
        int more = snprintf(text + used, sizeof text - used, "%s%s%s%s of words %u to %u: %s%s",
                            i ? "; " : "", op->target == block ? "[to] " : "",
                            op->source == block ? "[from] " : "", op->name, op->first,
                            op->first + op->count, bh_status_name(op->status),
                            !op->submitted ? " (refused)"
                            : op->waits    ? " (call)"
                                           : "");
        if (more > 0) used += (size_t)more;
    }
    fprintf(stderr, "round %llu of thread %u on device %llu: %s\n",
            (unsigned long long)self->rounds, self->index, (unsigned long long)self->era.number,
            text);
}

static void check_blocks(soak_thread *self) {
    for (uint32_t i = 0; i < SOAK_BLOCKS && !self->ended; i++) {
        soak_block *block = &self->blocks[i];
        if (block->words == SOAK_LARGE_WORDS && !soak_chance(&self->random, 6)) continue;
        bool before = block->unknown;
        soak_call_begin(self, "reading a buffer");
        bool asked = soak_model_check(block, self->scratch);
        soak_call_end(self, BH_OK);
        if (block->unknown && !before) print_round(self, block);
        if (!asked) {
            bh_error error;
            (void)soak_taken(self, bh_last_error(&error), "reading a buffer");
        }
    }
}

static void one_round(soak_thread *self) {
    uint32_t steps = 1 + soak_below(&self->random, SOAK_OPS - 2);
    for (uint32_t i = 0; i < steps && !self->ended; i++) one_step(self);
    if (!self->ended) bad_some(self, some_small(self));
    bool marked = self->host_marked;
    settle(self);
    if (marked && !self->ended) check_mark(self);
    check_blocks(self);
    for (uint32_t i = 0; i < SOAK_BLOCKS && !self->ended; i++) {
        if (soak_chance(&self->random, 60))
            block_change(self, &self->blocks[i]);
        else
            block_mend(self, &self->blocks[i]);
    }
    self->rounds++;
    atomic_fetch_add(&self->stage->rounds, 1);
}

/* ---- eras ---- */

static bool next_era(soak_thread *self) {
    soak_stage *stage = self->stage;
    uint64_t last = self->era.number;
    pthread_mutex_lock(&stage->lock);
    stage->parked++;
    pthread_cond_broadcast(&stage->changed);
    while (stage->era.number <= last && !stage->over)
        pthread_cond_wait(&stage->changed, &stage->lock);
    stage->parked--;
    self->era = stage->era;
    bool over = stage->over;
    pthread_mutex_unlock(&stage->lock);
    return !over;
}

static void begin_era(soak_thread *self) {
    self->ended = self->host_marked = false;
    self->host_in = self->host_out = self->pages = NULL;
    self->module = (bh_module){0};
    self->transparent = (bh_buffer){0};
    memset(self->lanes, 0, sizeof self->lanes);
    for (uint32_t i = 0; i < SOAK_BLOCKS && !self->ended; i++)
        (void)block_make(self, &self->blocks[i]);
}

static void *need(size_t bytes) {
    void *made = calloc(1, bytes);
    if (!made) bench_wrong("no memory for %zu bytes", bytes);
    return made;
}

void *soak_thread_run(void *context) {
    soak_thread *self = context;
    self->scratch = need(SOAK_LARGE_WORDS * 4);
    for (uint32_t i = 0; i < SOAK_BLOCKS; i++) {
        soak_block *block = &self->blocks[i];
        block->words = i + 1 == SOAK_BLOCKS ? SOAK_LARGE_WORDS : SOAK_WORDS;
        block->value = need(block->words * 4ull);
        block->doubt = need(block->words);
    }
    while (next_era(self)) {
        begin_era(self);
        while (!self->ended) one_round(self);
        /* What was learned while the device was there holds when it is gone. */
        for (int i = 0; i < 64; i++) soak_answers_ask(&self->answers, &self->random);
    }
    for (uint32_t i = 0; i < SOAK_BLOCKS; i++) {
        free(self->blocks[i].value);
        free(self->blocks[i].doubt);
    }
    free(self->scratch);
    return NULL;
}
