/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the source: which one a name means, and its value in a thread. */
#include <string.h>

#include "ptx/debug/debug.h"

const bh__ptx_source_variable *bh__ptx_variables_find(const bh__ptx_variables *variables,
                                                      const char *name, uint32_t place) {
    const bh__ptx_source_variable *best = NULL;
    for (uint32_t n = 0; n < variables->count; n++) {
        const bh__ptx_source_variable *v = &variables->list[n];
        bool here = place >= v->from && place < v->to && strcmp(v->name, name) == 0;
        if (here && (best == NULL || v->to - v->from <= best->to - best->from)) {
            best = v;
        }
    }
    return best;
}

static const bh__ptx_var *find_memory(const bh__ptx_exec *x, const bh__ptx_function *f,
                                      const bh__ptx_source_variable *v) {
    for (uint32_t n = 0; n < f->named_count; n++) {
        if (strlen(f->named[n].name) == v->symbol_length &&
            memcmp(f->named[n].name, x->module->text + v->symbol, v->symbol_length) == 0) {
            return f->named[n].var;
        }
    }
    return NULL;
}

static void put_bytes(bh__ptx_string *text, const bh__ptx_source_variable *v, const uint8_t *at) {
    enum { SHOWN = 32 };
    uint64_t value[2] = {0, 0};
    if (v->type != T_NONE && v->bytes <= 8) {
        memcpy(value, at, v->bytes);
        bh__ptx_string_value(text, v->type, value[0], 0);
        return;
    }
    bh__ptx_string_add(text, "%u bytes", (unsigned)v->bytes);
    for (uint32_t n = 0; n < v->bytes && n < SHOWN; n++) {
        bh__ptx_string_add(text, " %02x", (unsigned)at[n]);
    }
    bh__ptx_string_add(text, "%s", v->bytes > SHOWN ? " ..." : "");
}

static bool memory_value(bh__ptx_string *text, const bh__ptx_source_variable *v,
                         const bh__ptx_exec *x, const bh__ptx_warp *w, const bh__ptx_frame *frame,
                         unsigned lane) {
    const bh__ptx_var *var = find_memory(x, frame->function, v);
    if (var == NULL || v->bytes == 0 || v->offset > var->size || v->bytes > var->size - v->offset) {
        return false;
    }
    uint64_t offset = (uint64_t)var->offset + v->offset;
    if (var->formal && frame->function->entry) {
        put_bytes(text, v, (const uint8_t *)x->grid->params + offset);
        return true;
    }
    offset += frame->stack;
    if (offset + v->bytes > w->local_stride) {
        return false;
    }
    put_bytes(text, v, w->local + (size_t)lane * w->local_stride + offset);
    return true;
}

bool bh__ptx_variable_value(bh__ptx_string *text, const bh__ptx_source_variable *v,
                            const bh__ptx_exec *x, const bh__ptx_warp *w, uint32_t base,
                            unsigned lane) {
    const bh__ptx_frame *frame = (const bh__ptx_frame *)(const void *)(w->regs + base);
    if (v->reg[0] == '\0') {
        return memory_value(text, v, x, w, frame, lane);
    }
    const bh__ptx_function *f = frame->function;
    uint32_t reg = bh__ptx_register_find(f, v->reg, strlen(v->reg), v->from);
    if (reg == NO_REG || f->regs[reg].row == 0) {
        return false;
    }
    const bh__ptx_reg *r = &f->regs[reg];
    bh__ptx_type type = v->type != T_NONE && v->type != T_PRED ? v->type : r->type;
    bh__ptx_string_value(text, type, bh__ptx_register_value(w, base, r, lane, 0),
                         bh__ptx_bytes(r->type) == 16 ? bh__ptx_register_value(w, base, r, lane, 1)
                                                      : 0);
    return true;
}
