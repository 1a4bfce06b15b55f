/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a program's buffers. */
#include "model.h"

#include "world.h"

static const uint64_t longest_wait = 60 * S;

_Atomic bool model_writes_back;

model_op *model_op_new(model *self) {
    if (self->op_count == MODEL_OPS) return NULL;
    model_op *op = &self->ops[self->op_count++];
    memset(op, 0, sizeof *op);
    op->target = op->source = op->second = NO_BUFFER;
    op->to = op->from = WHOLE;
    return op;
}

void model_op_drop(model *self) {
    self->op_count--;
}

void model_op_refused(model *self, model_op *op) {
    if (op->adds || op->target == NO_BUFFER) {
        model_op_drop(self);
        return;
    }
    op->refused = op->is_over = true;
}

bool model_allows(const model *self, bh_status status, const char *call) {
    switch (status) {
    case BH_OK:
        return true;
    case BH_E_STALE:
    case BH_E_LOST:
    case BH_E_BUSY:
    case BH_E_FAULT: /* of a call that waits for its work, and is one of several candidates */
        return false;
    case BH_E_STOPPED:
        if (self->short_of_memory || self->gives_up) return false; /* no worker is started */
        /* fall through */
    case BH_E_INVALID:
    case BH_E_CANCELLED:
        if (self->closing) return false;
        break;
    case BH_E_NO_HOST_MEMORY:
    case BH_E_NO_MEMORY:
    case BH_E_NO_DEVICE:
    case BH_E_LOAD:
        if (self->short_of_memory) return false;
        break;
    case BH_E_LAUNCH:
    case BH_E_DEADLINE:
        return false;
    }
    bh_error error;
    bh_last_error(&error);
    BUG("%s returned %s: %.150s", call, bh_status_name(status), error.message);
}

/* ---- effects ---- */

static model_buffer *buffer_of(model *self, int index) {
    return index == NO_BUFFER ? NULL : &self->buffers[index];
}

/* Calls `what` for each half of `to`, with the half of `from` that belongs to it, if any. */
static void each_half(model_buffer *to, unsigned to_halves, const model_buffer *from,
                      unsigned from_halves, uint32_t value,
                      void (*what)(model_half *to, const model_half *from, uint32_t value)) {
    for (unsigned i = 0; i < 2; i++) {
        if (!(to_halves >> i & 1)) continue;
        unsigned k = from_halves == WHOLE ? i : from_halves == UPPER;
        what(&to->half[i], from ? &from->half[k] : NULL, value);
    }
}

static void doubt(model_half *it, const model_half *from, uint32_t value) {
    (void)from;
    (void)value;
    it->suspect = true;
    it->known = false;
}

static void lose_track(model_half *it, const model_half *from, uint32_t value) {
    (void)from;
    (void)value;
    it->unsure = true;
}

static void store(model_half *it, const model_half *from, uint32_t value) {
    (void)from;
    *it = (model_half){.known = true, .value = value};
}

static void add(model_half *it, const model_half *from, uint32_t value) {
    (void)from;
    it->value += value;
}

static void take(model_half *it, const model_half *from, uint32_t value) {
    (void)value;
    *it = (model_half){.unsure = from->unsure, .known = from->known, .value = from->value};
}

static bool any_half(const model_buffer *buffer, unsigned halves, bool suspect, bool uncertain) {
    for (unsigned i = 0; i < 2; i++) {
        const model_half *half = &buffer->half[i];
        if ((halves >> i & 1) && ((suspect && half->suspect) || (uncertain && half->unsure)))
            return true;
    }
    return false;
}

/* The words of one half. */
static void check_words(const model_half *half, const uint32_t *got, uint32_t words,
                        const char *what) {
    for (uint32_t i = 0; half->known && !half->unsure && i < words; i++)
        if (got[i] != half->value)
            BUG("%s has %u in word %u and not %u", what, got[i], i, half->value);
}

static void check_read(const model_op *op, const model_buffer *source) {
    const uint32_t *got = op->memory;
    for (unsigned i = 0; i < 2; i++) {
        if (!(op->from >> i & 1)) continue;
        check_words(&source->half[i], got, source->words / 2, "a read that is BH_OK");
        got += source->words / 2;
    }
}

static void was_done(model *self, const model_op *op) {
    model_buffer *target = buffer_of(self, op->target), *source = buffer_of(self, op->source);
    for (unsigned i = 0; source && i < 2; i++)
        if ((op->from >> i & 1) && source->half[i].suspect && !source->half[i].unsure)
            BUG("an operation that reads suspect bytes is BH_OK");
    if (op->reads_host) {
        if (!self->closing) check_read(op, source); /* a close frees the memory */
        return;
    }
    each_half(target, op->to, source, op->from, op->value, op->adds ? add : source ? take : store);
    if (op->second != NO_BUFFER)
        each_half(buffer_of(self, op->second), WHOLE, target, WHOLE, 0, take);
}

static void on_targets(model *self, const model_op *op,
                       void (*what)(model_half *to, const model_half *from, uint32_t value)) {
    if (op->target != NO_BUFFER)
        each_half(&self->buffers[op->target], op->to, NULL, WHOLE, 0, what);
    if (op->second != NO_BUFFER) each_half(&self->buffers[op->second], WHOLE, NULL, WHOLE, 0, what);
}

static void unsure(model *self, const model_op *op) {
    on_targets(self, op, lose_track);
}

static bool writes_transparent(const model *self, const model_op *op) {
    return (op->target != NO_BUFFER && self->buffers[op->target].transparent) ||
           (op->second != NO_BUFFER && self->buffers[op->second].transparent);
}

/* A close keeps only results of work that is complete from the program's memory. What it does not
 * wait for is cancelled, with all that comes after it. */
static void check_kept_by_close(const model *self, const model_op *op) {
    if (!writes_transparent(self, op))
        BUG("a close made a ticket BH_E_STOPPED that has no results in a transparent buffer");
    for (const model_op *other = self->ops; other < op; other++) {
        bool before = other->ticket.lane == op->ticket.lane ||
                      (other->target == op->target && (other->to & op->to));
        if (before && other->status == BH_E_CANCELLED && !other->cancelled && !other->refused)
            BUG("a close cancelled one operation, and a later one that must come after it is "
                "complete");
    }
}

static void apply(model *self, const model_op *op, bh_status status) {
    const model_buffer *source = buffer_of(self, op->source);
    sim_note("operation %d on buffer %d: %s", (int)(op - self->ops),
             op->target != NO_BUFFER ? op->target : op->source, bh_status_name(status));
    if (op->cancelled && status != BH_E_CANCELLED)
        BUG("bh_cancel returned BH_OK and the ticket is %s", bh_status_name(status));
    switch (status) {
    case BH_OK:
        was_done(self, op);
        return;
    case BH_E_CANCELLED:
        if (op->cancelled) return;
        if (!self->closing) BUG("a ticket is cancelled that nobody cancelled");
        unsure(self, op); /* a close cancels what has begun, too */
        return;
    case BH_E_LAUNCH: {
        /* A lost worker may have begun it, before its successor refused it. */
        bh_health state = BH_INIT(state);
        if (bh_device_get_health(self->device, &state) != BH_OK || state.losses) unsure(self, op);
        return;
    }
    case BH_E_STALE:
        if (!source || !any_half(source, op->from, true, true))
            BUG("a ticket is BH_E_STALE and nothing that it reads is suspect");
        break;
    case BH_E_LOST:
    case BH_E_FAULT:
    case BH_E_DEADLINE:
    case BH_E_QUARANTINED:
        break;
    case BH_E_STOPPED:
        unsure(self, op);
        if (self->short_of_memory || self->gives_up) return;
        if (self->closing) {
            check_kept_by_close(self, op);
            return;
        }
        /* fall through */
    default: {
        bh_error error;
        (void)bh_ticket_error(op->ticket, &error);
        BUG("a ticket is %s: %.150s", bh_status_name(status), error.message);
    }
    }
    if (op->reads_host) return;
    on_targets(self, op, doubt);
}

/* ---- comparing ---- */

/* Suspect bytes are not copied to the program's memory, and a close takes it away. */
static void check_host(const model *self, const model_buffer *buffer) {
    if (!buffer->transparent || self->closing) return;
    for (unsigned i = 0; i < 2; i++)
        check_words(&buffer->half[i], buffer->host + i * buffer->words / 2, buffer->words / 2,
                    "the program's copy of a transparent buffer");
}

/* The range that must be suspect: no byte more. */
static void check_suspect(const model_buffer *buffer, const bh_buffer_info *info, int index) {
    uint64_t half = (uint64_t)buffer->words * 2;
    uint64_t from = buffer->half[0].suspect ? 0 : half,
             to = buffer->half[1].suspect ? 2 * half : half;
    bool suspect = from < to;
    if (info->suspect != suspect)
        BUG("buffer %d is %s and must not be", index, suspect ? "intact" : "suspect");
    if (suspect && (info->suspect_offset != from || info->suspect_bytes != to - from))
        BUG("buffer %d: %llu suspect bytes from %llu on, and not %llu from %llu on", index,
            (unsigned long long)info->suspect_bytes, (unsigned long long)info->suspect_offset,
            (unsigned long long)(to - from), (unsigned long long)from);
}

static void check_half(model *self, const model_buffer *buffer, unsigned i) {
    const model_half *half = &buffer->half[i];
    uint64_t bytes = (uint64_t)buffer->words * 2;
    uint32_t got[MODEL_WORDS];
    bh_status status = bh_buffer_read(buffer->handle, i * bytes, got, bytes);
    if (!model_allows(self, status, "bh_buffer_read")) {
        if (status == BH_E_STALE && !half->suspect && !half->unsure)
            BUG("a read of intact bytes is stale");
        return;
    }
    if (half->suspect && !half->unsure) BUG("suspect bytes can be read");
    check_words(half, got, buffer->words / 2, "a buffer");
}

static void check_buffer(model *self, model_buffer *buffer) {
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_get_info(buffer->handle, &info);
    if (!model_allows(self, status, "bh_buffer_get_info")) return;
    if (!any_half(buffer, WHOLE, false, true))
        check_suspect(buffer, &info, (int)(buffer - self->buffers));
    for (unsigned i = 0; i < 2; i++) check_half(self, buffer, i);
}

/* Before anything else is waited for: what an operation comes after has ended when it has. */
static void check_after(const model_op *op) {
    if (!op->after.sequence || op->is_over || op->refused) return;
    if (bh_wait(op->ticket, longest_wait) == BH_OK && bh_wait(op->after, 0) == BH_E_BUSY &&
        !atomic_load(&model_writes_back))
        BUG("a launch is done before the work that it comes after");
}

/* No worker can read what is on the device any more: results that the program knows of, and that
 * were not written back yet, are suspect. */
static void lose_unreadable(model_buffer *buffer) {
    bh_buffer_info info = BH_INIT(info);
    if (!sim_device.broken || !buffer->transparent ||
        bh_buffer_get_info(buffer->handle, &info) != BH_OK || !info.suspect)
        return;
    for (unsigned i = 0; i < 2; i++) buffer->half[i].unsure = true;
}

void model_settle(model *self) {
    for (int i = self->op_count - 1; i >= 0; i--) check_after(&self->ops[i]);
    for (int i = 0; i < self->op_count; i++) {
        model_op *op = &self->ops[i];
        bh_status status = op->status;
        if (op->refused) {
            unsure(self, op);
            continue;
        }
        if (!op->is_over) {
            status = bh_wait(op->ticket, longest_wait);
            if (status == BH_E_TIMEOUT) sim_fail(SIM_HANG, "a ticket has no answer after 60 s");
            ticket_said(op->ticket, status);
        }
        op->status = status;
        op->is_over = true;
        apply(self, op, status);
    }
    for (int i = 0; i < MODEL_BUFFERS; i++) {
        model_buffer *buffer = &self->buffers[i];
        if (buffer->gone) memset(buffer, 0, sizeof *buffer);
        if (!buffer->handle.id) continue;
        lose_unreadable(buffer);
        check_host(self, buffer);
        check_buffer(self, buffer);
        check_host(self, buffer);
    }
}
