/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a program's buffers. */
#include "model.h"

#include "world.h"

static const uint64_t longest_wait = 60 * S;

model_op *model_op_new(model *self) {
    if (self->op_count == MODEL_OPS) return NULL;
    model_op *op = &self->ops[self->op_count++];
    memset(op, 0, sizeof *op);
    op->target = op->source = op->second = NO_BUFFER;
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

static void doubt(model_buffer *buffer) {
    if (!buffer) return;
    buffer->suspect = true;
    buffer->known = false;
}

static void take(model_buffer *to, const model_buffer *from) {
    to->suspect = false;
    to->unsure = from->unsure;
    to->known = from->known;
    to->value = from->value;
}

static void was_done(model *self, const model_op *op) {
    model_buffer *target = buffer_of(self, op->target), *source = buffer_of(self, op->source);
    if (source && source->suspect && !source->unsure)
        BUG("an operation that reads a suspect buffer is BH_OK");
    if (op->reads_host) {
        /* A close frees the memory. */
        bool look = source->known && !source->unsure && !self->closing;
        for (uint32_t i = 0; look && i < source->words; i++)
            if (op->memory[i] != source->value)
                BUG("a read that is BH_OK has %u in word %u and not %u", op->memory[i], i,
                    source->value);
        return;
    }
    if (op->adds) {
        target->value += op->value;
    } else if (source) {
        take(target, source);
    } else {
        target->suspect = target->unsure = false;
        target->known = true;
        target->value = op->value;
    }
    if (op->second != NO_BUFFER) take(buffer_of(self, op->second), target);
}

static void unsure(model *self, const model_op *op) {
    if (op->target != NO_BUFFER) self->buffers[op->target].unsure = true;
    if (op->second != NO_BUFFER) self->buffers[op->second].unsure = true;
}

static void apply(model *self, const model_op *op, bh_status status) {
    model_buffer *source = buffer_of(self, op->source), *target = buffer_of(self, op->target);
    sim_note("operation %d on buffer %d: %s", (int)(op - self->ops),
             target ? op->target : op->source, bh_status_name(status));
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
        if (!source || (!source->suspect && !source->unsure))
            BUG("a ticket is BH_E_STALE and nothing that it reads is suspect");
        break;
    case BH_E_LOST:
    case BH_E_FAULT:
    case BH_E_DEADLINE:
    case BH_E_QUARANTINED:
        break;
    case BH_E_STOPPED:
        unsure(self, op);
        if (self->closing || self->short_of_memory || self->gives_up) return;
        /* fall through */
    default: {
        bh_error error;
        (void)bh_ticket_error(op->ticket, &error);
        BUG("a ticket is %s: %.150s", bh_status_name(status), error.message);
    }
    }
    if (op->reads_host) return;
    doubt(target);
    doubt(buffer_of(self, op->second));
}

/* ---- comparing ---- */

/* Doubtful pages are not copied to the program's memory, and a close takes it away. */
static void check_host(const model *self, const model_buffer *buffer) {
    bool look = buffer->transparent && buffer->known && !buffer->suspect && !buffer->unsure;
    for (uint32_t i = 0; look && !self->closing && i < buffer->words; i++)
        if (buffer->host[i] != buffer->value)
            BUG("the program sees %u in word %u of transparent buffer %d and not %u",
                buffer->host[i], i, (int)(buffer - self->buffers), buffer->value);
}

static void check_buffer(model *self, model_buffer *buffer) {
    static const char *const words[] = {"intact", "suspect"};
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_get_info(buffer->handle, &info);
    if (!model_allows(self, status, "bh_buffer_get_info") || buffer->unsure) return;
    if (info.suspect != buffer->suspect)
        BUG("buffer %d is %s and must be %s", (int)(buffer - self->buffers),
            words[info.suspect != 0], words[buffer->suspect]);
    uint32_t got[MODEL_WORDS];
    status = bh_buffer_read(buffer->handle, 0, got, (uint64_t)buffer->words * 4);
    if (!model_allows(self, status, "bh_buffer_read")) {
        if (status == BH_E_STALE && !buffer->suspect) BUG("a read of an intact buffer is stale");
        return;
    }
    if (buffer->suspect) BUG("a suspect buffer can be read");
    for (uint32_t i = 0; buffer->known && i < buffer->words; i++)
        if (got[i] != buffer->value)
            BUG("word %u of a buffer is %u and must be %u", i, got[i], buffer->value);
}

/* Before anything else is waited for: what an operation comes after has ended when it has. */
static void check_after(const model_op *op) {
    if (!op->after.sequence || op->is_over || op->refused) return;
    if (bh_wait(op->ticket, longest_wait) == BH_OK && bh_wait(op->after, 0) == BH_E_BUSY)
        BUG("a launch is done before the work that it comes after");
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
        check_host(self, buffer);
        check_buffer(self, buffer);
        check_host(self, buffer);
    }
}
