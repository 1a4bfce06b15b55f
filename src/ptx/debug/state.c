/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a thread as text: where it is, who called whom, what registers hold. */
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"

enum {
    STATE_BYTES = 24 * 1024,  /* fits a message to the application */
    SHOWN_FRAMES = 8,         /* innermost */
    SHOWN_REGISTERS = 64,     /* of a kind, of a frame */
    SEARCHED_VARIABLES = 256, /* of the source, of a frame: each is compared with all others */
    QUOTED = 99
};

typedef struct frame {
    const bh__ptx_function *function;
    uint32_t base, code; /* of its registers; of the instruction it is at */
} frame;

static const bh__ptx_frame *header(const bh__ptx_warp *w, uint32_t base) {
    return (const bh__ptx_frame *)(const void *)(w->regs + base);
}

/* The frame that called `in`; false: it is the kernel's. */
static bool caller(const bh__ptx_warp *w, frame *in) {
    if (in->base == 0) {
        return false;
    }
    const bh__ptx_frame *callee = header(w, in->base);
    in->base = callee->return_base;
    in->code = callee->return_pc - 1;
    in->function = header(w, in->base)->function;
    return true;
}

/* ---- registers ---- */

typedef struct listing {
    bh__ptx_string *text;
    const bh__ptx_warp *w;
    const frame *in;
    unsigned lane;
    const uint8_t *marks, *types;
} listing;

static void put_register(const listing *l, uint32_t n) {
    const bh__ptx_reg *r = &l->in->function->regs[n];
    bh__ptx_string_add(l->text, "    ");
    bh__ptx_register_name(l->text, r);
    bh__ptx_string_add(l->text, " = ");
    bh__ptx_string_value(l->text, (bh__ptx_type)l->types[n],
                         bh__ptx_register_value(l->w, l->in->base, r, l->lane, 0),
                         bh__ptx_bytes(r->type) == 16
                             ? bh__ptx_register_value(l->w, l->in->base, r, l->lane, 1)
                             : 0);
    bh__ptx_string_add(l->text, "\n");
}

static void put_registers(const listing *l, uint8_t marks, const char *title) {
    const bh__ptx_function *f = l->in->function;
    uint32_t shown = 0, more = 0;
    for (uint32_t n = 0; n < f->reg_count; n++) {
        if (l->marks[n] != marks || f->regs[n].row == 0 || f->regs[n].name == NULL) {
            continue;
        }
        if (shown == SHOWN_REGISTERS) {
            more++;
            continue;
        }
        if (shown++ == 0) {
            bh__ptx_string_add(l->text, "  %s:\n", title);
        }
        put_register(l, n);
    }
    if (more > 0) {
        bh__ptx_string_add(l->text, "    and %u more\n", (unsigned)more);
    }
}

/* ---- variables ---- */

/* Of a register that nothing has written yet, the value means nothing. */
static bool is_set(const listing *l, const bh__ptx_source_variable *v) {
    const bh__ptx_function *f = l->in->function;
    uint32_t reg = bh__ptx_register_find(f, v->reg, strlen(v->reg), v->from);
    return reg == NO_REG || l->marks[reg] & REGISTER_WRITTEN;
}

static void put_variables(const listing *l, const bh__ptx_variables *variables,
                          const bh__ptx_exec *x) {
    bh__ptx_string *text = l->text;
    const frame *in = l->in;
    uint32_t place = x->module->sites[in->code].text, shown = 0, searched = 0;
    for (uint32_t n = 0; n < variables->count && shown < SHOWN_REGISTERS; n++) {
        const bh__ptx_source_variable *v = &variables->list[n];
        char value[200];
        bh__ptx_string one = {.at = value, .capacity = sizeof value};
        if (place < v->from || place >= v->to) {
            continue;
        }
        if (searched++ == SEARCHED_VARIABLES) {
            break;
        }
        if (bh__ptx_variables_find(variables, v->name, place) != v ||
            !bh__ptx_variable_value(&one, v, x, l->w, in->base, l->lane)) {
            continue;
        }
        bh__ptx_string_add(text, "%s    %.100s = %s", shown++ == 0 ? "  variables:\n" : "", v->name,
                           is_set(l, v) ? value : "not set yet");
        bh__ptx_string_add(text, v->reg[0] != '\0' ? ", in %s\n" : "%s\n", v->reg);
    }
}

/* ---- frames ---- */

/* Native code keeps registers elsewhere. It runs kernels, not the functions that they call. */
static bool is_native(const bh__ptx_exec *x, const frame *in) {
    return x->grid->compiled != NULL && x->check == NULL && x->tracing == NULL && in->base == 0;
}

static void put_frame(bh__ptx_string *text, const bh__ptx_variables *variables,
                      const bh__ptx_exec *x, const bh__ptx_warp *w, unsigned lane, const frame *in,
                      bool innermost) {
    char site[280];
    bh__ptx_site_text(x->module, in->code, QUOTED, site, sizeof site);
    bh__ptx_string_add(text, "%s %.100s, %s\n", innermost ? "in" : "called from",
                       in->function->name, site);
    if (innermost && is_native(x, in)) {
        bh__ptx_string_add(text, "  registers are not known: native code ran; the interpreter "
                                 "knows them (BULKHEAD_EXECUTOR=interp)\n");
        return;
    }
    uint8_t *marks = bh__ptx_registers_at(in->function, x->module->sites[in->code].insn);
    uint8_t *types = bh__ptx_registers_types(in->function);
    if (marks != NULL && types != NULL) {
        listing l = {text, w, in, lane, marks, types};
        put_variables(&l, variables, x);
        put_registers(&l, REGISTER_WRITTEN | REGISTER_WANTED,
                      "registers that are read here or later");
        if (innermost) {
            put_registers(&l, REGISTER_WRITTEN, "registers that are not read any more");
        }
    } else {
        bh__ptx_string_add(text, "  no memory to list its registers\n");
    }
    free(marks);
    free(types);
}

void bh__ptx_state_put(bh__ptx_string *text, const bh__ptx_variables *variables,
                       const bh__ptx_exec *x, const bh__ptx_warp *w, unsigned lane, uint32_t code) {
    uint32_t thread = w->index * LANES + lane, depth = w->depth[lane];
    const bh__ptx_block *b = x->block;
    bh__ptx_string_add(text, "block (%u,%u,%u), thread (%u,%u,%u)\n", (unsigned)b->id[0],
                       (unsigned)b->id[1], (unsigned)b->id[2], (unsigned)b->tid[0][thread],
                       (unsigned)b->tid[1][thread], (unsigned)b->tid[2][thread]);
    frame in = {header(w, w->base[lane])->function, w->base[lane], code};
    for (uint32_t n = 0; n <= depth; n++) {
        if (n < SHOWN_FRAMES || n == depth) {
            put_frame(text, variables, x, w, lane, &in, n == 0);
        } else if (n == SHOWN_FRAMES) {
            bh__ptx_string_add(text, "... %u calls\n", (unsigned)(depth - n));
        }
        if (!caller(w, &in)) {
            break;
        }
    }
}

char *bh__ptx_block_state(const bh__ptx_block *b, const bh__ptx_fault *fault) {
    return bh__ptx_state_of_fault(&b->x, fault);
}

char *bh__ptx_state_of_fault(const bh__ptx_exec *x, const bh__ptx_fault *fault) {
    const bh__ptx_block *b = x->block;
    const uint32_t *at = fault->thread;
    uint32_t thread = at[0] + b->dims[0] * (at[1] + b->dims[1] * at[2]);
    bh__ptx_string text = {.at = malloc(STATE_BYTES), .capacity = STATE_BYTES};
    if (text.at == NULL || thread >= b->threads || x->code == NULL) {
        free(text.at);
        return NULL;
    }
    text.at[0] = '\0';
    const bh__ptx_warp *w = &b->warps[thread / LANES];
    bh__ptx_variables variables;
    bh__ptx_variables_read(x->module, &variables);
    bh__ptx_state_put(&text, &variables, x, w, thread % LANES,
                      (uint32_t)(x->code - x->module->code));
    bh__ptx_variables_free(&variables);
    if (text.cut) { /* there is always room for this much more */
        static const char end[] = "... cut\n";
        size_t from =
            text.length < STATE_BYTES - sizeof end ? text.length : STATE_BYTES - sizeof end;
        memcpy(text.at + from, end, sizeof end);
    }
    return text.at;
}
