/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: frames with registers and local memory, and the passing of arguments and results. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "ptx/check/check.h"

#define MAX_REGS_BYTES ((size_t)16 << 20) /* of one warp, all frames */
#define MAX_DEPTH      2000

bool bh__ptx_regs_room(bh__ptx_warp *w, size_t bytes) {
    if (bytes <= w->regs_capacity) {
        return true;
    }
    size_t capacity = bytes * 2 > 4096 ? (bytes * 2 + 63) & ~(size_t)63 : 4096;
    uint8_t *regs = aligned_alloc(64, capacity);
    if (regs == NULL) {
        return false;
    }
    if (w->regs != NULL) {
        memcpy(regs, w->regs, w->regs_capacity);
    }
    free(w->regs);
    w->regs = regs;
    w->regs_capacity = capacity;
    return true;
}

bool bh__ptx_local_room(bh__ptx_warp *w, uint32_t bytes) {
    if (bytes <= w->local_stride) {
        return true;
    }
    uint32_t stride = (bytes + 63) & ~63u;
    if (w->local_stride > 0) {
        stride = stride > w->local_stride * 2 ? stride : w->local_stride * 2;
    }
    uint8_t *local = aligned_alloc(64, (size_t)stride * LANES);
    if (local == NULL) {
        return false;
    }
    memset(local, 0, (size_t)stride * LANES);
    for (unsigned l = 0; l < LANES && w->local != NULL; l++) {
        memcpy(local + (size_t)l * stride, w->local + (size_t)l * w->local_stride, w->local_stride);
    }
    free(w->local);
    w->local = local;
    w->local_stride = stride;
    return true;
}

static uint8_t *local_at(const bh__ptx_exec *x, unsigned lane, uint32_t stack, uint32_t offset) {
    return x->warp->local + (size_t)lane * x->warp->local_stride + stack + offset;
}

/* Of a value of 16 bytes, `part` 1 is the upper half. A predicate is a bit in the word of its
 * row. */
static uint64_t get(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane, unsigned part) {
    uint64_t v = 0;
    if (slot->row == NO_ROW) {
        const uint8_t *at = local_at(x, lane, x->stack, slot->offset) + (size_t)8 * part;
        memcpy(&v, at, slot->bytes > 8 ? 8 : slot->bytes);
    } else if (slot->bytes == 0) {
        v = *(const bh__u32 *)bh__row(x, slot->row) >> lane & 1;
    } else if (slot->bytes >= 8) {
        v = ((const bh__u64 *)bh__row(x, slot->row + (int32_t)part * HIGH_HALF))[lane];
    } else {
        v = ((const bh__u32 *)bh__row(x, slot->row))[lane];
    }
    return v;
}

static void put(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane, unsigned part,
                uint64_t value) {
    if (slot->row == NO_ROW) {
        uint8_t *at = local_at(x, lane, x->stack, slot->offset) + (size_t)8 * part;
        memcpy(at, &value, slot->bytes > 8 ? 8 : slot->bytes);
    } else if (slot->bytes == 0) {
        bh__set_predicate(x, slot->row, (uint32_t)value << lane, 1u << lane);
    } else if (slot->bytes >= 8) {
        ((bh__u64 *)bh__row(x, slot->row + (int32_t)part * HIGH_HALF))[lane] = value;
    } else {
        ((bh__u32 *)bh__row(x, slot->row))[lane] = (uint32_t)value;
    }
}

uint64_t bh__ptx_call_argument(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane) {
    return get(x, slot, lane, 0);
}

/* With checks: a value that no instruction stored. */
static void mark_written(bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane) {
    if (x->check != NULL && slot->row == NO_ROW) {
        bh__check_written(x, lane, BH__PTX_WINDOW(WINDOW_LOCAL) + x->stack + slot->offset,
                          slot->bytes);
    }
}

void bh__ptx_call_result(bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane, uint64_t value) {
    put(x, slot, lane, 0, value);
    mark_written(x, slot, lane);
}

/* From a slot of one function to that of another; both have the same size. */
static void copy_value(bh__ptx_exec *from, const bh__ptx_slot *a, bh__ptx_exec *to,
                       const bh__ptx_slot *d, uint32_t mask) {
    if (from->check != NULL) {
        bh__check_passed(from, a, to, d, mask);
    }
    FOR_LANES_IN_ORDER(mask) {
        if (a->row == NO_ROW && d->row == NO_ROW) {
            memcpy(local_at(to, l, to->stack, d->offset), local_at(from, l, from->stack, a->offset),
                   a->bytes);
            continue;
        }
        put(to, d, l, 0, get(from, a, l, 0));
        if (a->bytes == 16) {
            put(to, d, l, 1, get(from, a, l, 1));
        }
    }
}

static bh__ptx_slot slot_of(const bh__ptx_function *f, const bh__ptx_var *formal) {
    return (bh__ptx_slot){.row = formal->reg == NO_REG ? NO_ROW : (int32_t)f->regs[formal->reg].row,
                          .offset = formal->offset,
                          .bytes = (uint32_t)formal->size};
}

static bool signature_fits(const bh__ptx_call *call, const bh__ptx_function *f) {
    if (f->param_count != call->arg_count || f->result_count < call->result_count) {
        return false;
    }
    for (uint32_t n = 0; n < f->param_count; n++) {
        if (f->params[n]->unsized != call->args[n].reference ||
            (!f->params[n]->unsized && f->params[n]->size != call->args[n].bytes)) {
            return false;
        }
    }
    for (uint32_t n = 0; n < call->result_count; n++) {
        if (f->results[n]->size != call->results[n].bytes) {
            return false;
        }
    }
    return true;
}

static const bh__ptx_function *indirect_callee(bh__ptx_exec *x, const bh__ptx_code *i,
                                               uint32_t *mask) {
    const bh__u64 *row = bh__row(x, i->a);
    unsigned first = (unsigned)__builtin_ctz(*mask);
    uint64_t address = row[first], offset = address - BH__PTX_WINDOW(WINDOW_CODE);
    uint32_t same = 0;
    FOR_LANES_IN_ORDER(*mask) {
        same |= (uint32_t)(row[l] == address) << l;
    }
    *mask = same;
    const bh__ptx_function *f = NULL;
    if (offset % 16 == 0 && offset / 16 < x->module->function_count) {
        f = x->module->functions[offset / 16];
    }
    if (f == NULL || !f->defined || f->entry || !signature_fits(i->extra, f)) {
        bool is_function = f != NULL && f->defined && !f->entry;
        bh__ptx_fault_other(
            x, BH__PTX_FAULT_BAD_CALL, first,
            is_function ? "indirect call to %s%s, whose parameters differ from the prototype"
                        : "the address of an indirect call is not a function%s%s",
            is_function ? f->name : "", "");
        x->fault->address = address;
        return NULL;
    }
    return f;
}

static void pass_arguments(bh__ptx_exec *x, const bh__ptx_call *call, const bh__ptx_function *f,
                           uint32_t mask, uint8_t *frame, uint32_t stack) {
    bh__ptx_exec callee = *x;
    callee.bases[0] = frame;
    callee.stack = stack;
    for (uint32_t n = 0; n < call->arg_count; n++) {
        const bh__ptx_slot *slot = &call->args[n];
        bh__ptx_slot formal = slot_of(f, f->params[n]);
        if (!slot->reference) {
            copy_value(x, slot, &callee, &formal, mask);
            continue;
        }
        formal.bytes = 8;
        FOR_LANES_IN_ORDER(mask) {
            put(&callee, &formal, l, 0, (uint64_t)x->stack + slot->offset);
            mark_written(&callee, &formal, l);
        }
    }
}

static bh__ptx_frame *frame_at(const bh__ptx_warp *w, uint32_t base) {
    return (bh__ptx_frame *)(void *)(w->regs + base);
}

/*
 * Divergent lanes hold different frames and leave them in any order. A frame is kept until every
 * lane that entered it has left; it is then reused for a function with a frame of the same size.
 */
static uint32_t take_frame(bh__ptx_warp *w, uint32_t size) {
    for (uint32_t *link = &w->free_frame; *link != 0; link = &frame_at(w, *link)->next) {
        uint32_t base = *link;
        if (frame_at(w, base)->size == size) {
            *link = frame_at(w, base)->next;
            return base;
        }
    }
    uint32_t base = w->top;
    if ((size_t)base + size > MAX_REGS_BYTES || !bh__ptx_regs_room(w, (size_t)base + size)) {
        return 0;
    }
    w->top = base + size;
    return base;
}

static void leave_frame(bh__ptx_warp *w, uint32_t base, uint32_t mask) {
    bh__ptx_frame *frame = frame_at(w, base);
    frame->lanes &= ~mask;
    if (frame->lanes == 0 && base != 0) {
        bh__check_forget_registers(w, base, frame->size);
        frame->next = w->free_frame;
        w->free_frame = base;
    }
}

static void copy_words(const uint8_t *from, uint8_t *to, uint32_t mask) {
    const bh__u32 *a = (const bh__u32 *)(const void *)from;
    bh__u32 *d = (bh__u32 *)(void *)to;
    FOR_LANES(mask, d[l] = a[l];);
}

static void copy_wide(const uint8_t *from, uint8_t *to, uint32_t mask) {
    const bh__u64 *a = (const bh__u64 *)(const void *)from;
    bh__u64 *d = (bh__u64 *)(void *)to;
    FOR_LANES(mask, d[l] = a[l];);
}

static void copy_registers(const bh__ptx_warp *w, uint32_t from, uint32_t to, uint32_t mask) {
    const bh__ptx_function *f = frame_at(w, from)->function;
    for (uint32_t n = 0; n < f->row_count; n++) {
        uint32_t row = f->rows[n] & ~(uint32_t)ROW_KIND;
        const uint8_t *a = w->regs + from + row;
        uint8_t *d = w->regs + to + row;
        if ((f->rows[n] & ROW_KIND) == ROW_WIDE) {
            copy_wide(a, d, mask);
        } else if ((f->rows[n] & ROW_KIND) == ROW_WORDS) {
            copy_words(a, d, mask);
        } else {
            bh__u32 *bits = (bh__u32 *)(void *)d;
            *bits = (*bits & ~mask) | (*(const bh__u32 *)(const void *)a & mask);
        }
    }
}

/* The columns that lanes do not use in each other's frames may hold their outer calls: so they meet
 * in a frame that is nobody's. */
uint32_t bh__ptx_call_gather(bh__ptx_warp *w, uint32_t mask) {
    uint32_t own = w->base[__builtin_ctz(mask)];
    uint32_t base = take_frame(w, frame_at(w, own)->size);
    if (base == 0) {
        return 0;
    }
    *frame_at(w, base) = *frame_at(w, own);
    frame_at(w, base)->lanes = mask;
    FOR_LANES_IN_ORDER(mask) {
        copy_registers(w, w->base[l], base, 1u << l);
    }
    return base;
}

void bh__ptx_call_scatter(bh__ptx_warp *w, uint32_t base, uint32_t mask) {
    FOR_LANES_IN_ORDER(mask) {
        copy_registers(w, base, w->base[l], 1u << l);
    }
    leave_frame(w, base, mask);
}

void bh__ptx_call_abandon(bh__ptx_warp *w, uint32_t mask) {
    uint32_t inside = 0;
    for (unsigned l = 0; l < LANES; l++) {
        inside |= w->base[l];
    }
    if (inside == 0) {
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        for (uint32_t base = w->base[l]; base != 0;) {
            uint32_t outer = frame_at(w, base)->return_base;
            leave_frame(w, base, 1u << l);
            base = outer;
        }
    }
}

uint32_t bh__ptx_call_enter(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, uint32_t pc) {
    const bh__ptx_call *call = i->extra;
    const bh__ptx_function *f = call->callee;
    if (f == NULL && (f = indirect_callee(x, i, &mask)) == NULL) {
        return 0;
    }
    bh__ptx_warp *w = x->warp;
    unsigned first = (unsigned)__builtin_ctz(mask);
    uint32_t caller_base = w->base[first];
    uint64_t stack =
        ((uint64_t)x->local_end + f->local_align - 1) & ~((uint64_t)f->local_align - 1);
    uint32_t base = 0;
    if (w->depth[first] < MAX_DEPTH && stack + f->local_bytes <= BH__PTX_MAX_LOCAL &&
        bh__ptx_local_room(w, (uint32_t)stack + f->local_bytes)) {
        base = take_frame(w, f->frame_bytes);
    }
    if (base == 0) {
        x->bases[0] = w->regs + caller_base;
        bh__ptx_fault_other(x, BH__PTX_FAULT_STACK, first,
                            "call stack overflow at a call of %.60s: calls nested %u deep", f->name,
                            (unsigned)w->depth[first] + 1);
        return 0;
    }
    x->bases[0] = w->regs + caller_base;
    uint8_t *frame = w->regs + base;
    memset(frame, 0, f->frame_bytes);
    *(bh__ptx_frame *)(void *)frame = (bh__ptx_frame){.size = f->frame_bytes,
                                                      .return_pc = pc + 1,
                                                      .return_base = caller_base,
                                                      .stack = (uint32_t)stack,
                                                      .depth = w->depth[first] + 1,
                                                      .lanes = mask,
                                                      .function = f,
                                                      .call = i};
    if (x->check != NULL) {
        bh__check_frame(x, mask, (uint32_t)stack, f);
    }
    pass_arguments(x, call, f, mask, frame, (uint32_t)stack);
    FOR_LANES_IN_ORDER(mask) {
        w->base[l] = base;
        w->pc[l] = f->code;
        w->depth[l]++;
    }
    return mask;
}

void bh__ptx_call_leave(bh__ptx_exec *x, uint32_t mask) {
    bh__ptx_warp *w = x->warp;
    uint32_t base = w->base[__builtin_ctz(mask)];
    const bh__ptx_frame *frame = (const bh__ptx_frame *)(const void *)(w->regs + base);
    const bh__ptx_function *f = frame->function;
    const bh__ptx_call *call = frame->call->extra;
    bh__ptx_exec caller = *x;
    bh__ptx_bind(&caller, w, frame->return_base);
    for (uint32_t n = 0; n < call->result_count; n++) {
        const bh__ptx_slot *slot = &call->results[n];
        bh__ptx_slot formal = slot_of(f, f->results[n]);
        copy_value(x, &formal, &caller, slot, mask);
    }
    FOR_LANES_IN_ORDER(mask) {
        w->pc[l] = frame->return_pc;
        w->base[l] = frame->return_base;
        w->depth[l]--;
    }
    leave_frame(w, base, mask);
}

static bool lower_slot(bh__ptx_lowering *low, const bh__ptx_operand *o, const bh__ptx_var *formal,
                       bool result, bh__ptx_slot *slot) {
    *slot = (bh__ptx_slot){.row = NO_ROW, .bytes = (uint32_t)formal->size};
    bool ok;
    if (o->kind == OPERAND_ADDRESS && o->symbol->kind == SYMBOL_VAR) {
        const bh__ptx_var *var = o->symbol->var;
        bool entry = low->function->entry && var->formal;
        bool sized = formal->unsized ? !var->unsized : var->size == formal->size;
        ok = var->space == SPACE_PARAM && !entry && sized && o->imm == 0 &&
             (var->unsized || bh__range_fits(var->offset, var->size, low->function->local_bytes));
        slot->offset = var->offset;
        slot->reference = formal->unsized;
    } else if (o->kind == OPERAND_REG && !o->negated) {
        bh__ptx_type type = low->function->regs[o->reg].type;
        ok = (type == T_PRED) == (formal->type == T_PRED) && bh__ptx_bytes(type) == formal->size &&
             !formal->unsized;
        slot->row = bh__ptx_row_in(low, o, type);
    } else if (o->kind == OPERAND_SINK && result) {
        ok = formal->size <= 8 || formal->type == T_B128;
        slot->row = bh__ptx_row_out(low, o, formal->type);
    } else {
        ok = !result && (o->kind == OPERAND_INT || o->kind == OPERAND_FLOAT) && formal->size <= 8 &&
             !formal->unsized && bh__ptx_bytes(formal->type) == formal->size;
        if (ok) {
            slot->row = bh__ptx_row_in(low, o, formal->type);
        }
    }
    if (!ok) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "pass the parameters that the function declares",
                                  "an argument or result does not fit the function's %u bytes",
                                  (unsigned)formal->size);
    }
    return true;
}

/* The operands of a list, those of vectors one by one. */
static uint32_t flatten(const bh__ptx_operand *list, bh__ptx_operand *out) {
    uint32_t count = 0;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        const bh__ptx_operand *o = &list->elements[i];
        bool vector = o->kind == OPERAND_VECTOR;
        for (uint32_t n = 0; n < (vector ? o->count : 1); n++, count++) {
            if (out != NULL) {
                out[count] = vector ? o->elements[n] : *o;
            }
        }
    }
    return count;
}

static bool lower_list(bh__ptx_lowering *low, const bh__ptx_operand *list, bh__ptx_var **formals,
                       uint32_t formal_count, bool results, bh__ptx_slot **out, uint32_t *count) {
    uint32_t n = flatten(list, NULL);
    /* What a parameter of unknown size is given may be left out. */
    bool open = !results && formal_count > 0 && formals[formal_count - 1]->unsized;
    if (n != formal_count && !(open && n + 1 == formal_count)) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "pass the parameters that the function declares",
                                  "%u %s given; the function declares %u", (unsigned)n,
                                  results ? "results" : "arguments", (unsigned)formal_count);
    }
    *count = results ? n : formal_count;
    *out = bh__arena_alloc(&low->module->arena, *count, sizeof **out);
    bh__ptx_operand *all = bh__arena_alloc(&low->module->arena, n, sizeof *all);
    if (*out == NULL || all == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a call");
    }
    flatten(list, all);
    for (uint32_t i = 0; i < n; i++) {
        if (!lower_slot(low, &all[i], formals[i], results, &(*out)[i])) {
            return false;
        }
    }
    if (*count > n) {
        (*out)[n] = (bh__ptx_slot){.row = NO_ROW, .reference = true};
    }
    return true;
}

static bool bad_call(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD,
                              "write call (results), function, (arguments) and a prototype where "
                              "the function is in a register",
                              "the call is malformed");
}

/* What an indirect call passes: a prototype, or that of the functions in a list or a table. */
static const bh__ptx_function *shape_of(const bh__ptx_operand *o) {
    if (o == NULL) {
        return NULL;
    }
    if (o->kind == OPERAND_PROTOTYPE) {
        return o->symbol->function;
    }
    bool table = o->kind == OPERAND_ADDRESS && o->symbol->kind == SYMBOL_VAR &&
                 o->symbol->var->reloc_count > 0 &&
                 o->symbol->var->relocs[0].symbol->kind == SYMBOL_FUNCTION;
    return table ? o->symbol->var->relocs[0].symbol->function : NULL;
}

bool bh__ptx_lower_call(bh__ptx_lowering *low) {
    const bh__ptx_insn *insn = low->insn;
    const bh__ptx_operand *o = insn->operands, *end = o + insn->operand_count;
    const bh__ptx_operand *results = NULL, *args = NULL, *target = NULL, *prototype = NULL;
    if (o < end && o->kind == OPERAND_LIST) {
        results = o++;
    }
    target = o < end ? o++ : NULL;
    if (o < end && o->kind == OPERAND_LIST) {
        args = o++;
    }
    if (o < end) {
        prototype = o++;
    }
    if (target == NULL || o != end) {
        return bad_call(low);
    }
    bh__ptx_call *call = bh__arena_alloc(&low->module->arena, 1, sizeof *call);
    if (call == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a call");
    }
    bh__ptx_code code = {.kind = CODE_CALL, .extra = call, .a = NO_ROW};
    const bh__ptx_function *shape;
    if (target->kind == OPERAND_ADDRESS && target->symbol->kind == SYMBOL_FUNCTION &&
        target->imm == 0) {
        shape = call->callee = target->symbol->function;
        if (shape->entry) {
            return bh__ptx_lower_fail(low, BH_E_LOAD, "call a .func", "a kernel cannot be called");
        }
        if (prototype != NULL) {
            return bad_call(low);
        }
    } else if (target->kind == OPERAND_REG && (shape = shape_of(prototype)) != NULL &&
               bh__ptx_bytes(low->function->regs[target->reg].type) == 8) {
        code.a = bh__ptx_row_in(low, target, T_B64);
    } else {
        return bad_call(low);
    }
    if (!lower_list(low, args, shape->params, shape->param_count, false, &call->args,
                    &call->arg_count) ||
        !lower_list(low, results, shape->results, shape->result_count, true, &call->results,
                    &call->result_count)) {
        return false;
    }
    bool builtin = call->callee != NULL && !call->callee->defined;
    if (builtin) {
        static const struct {
            unsigned args;
            bh__ptx_handler *run;
        } builtins[] = {[BUILTIN_VPRINTF] = {2, bh__ptx_run_vprintf},
                        [BUILTIN_ASSERTFAIL] = {5, bh__ptx_run_assertfail},
                        [BUILTIN_MALLOC] = {1, bh__ptx_run_malloc},
                        [BUILTIN_FREE] = {1, bh__ptx_run_free}};
        bh__ptx_builtin which = call->callee->builtin;
        if (call->arg_count != builtins[which].args) {
            return bad_call(low);
        }
        low->module->uses_heap |= which == BUILTIN_MALLOC || which == BUILTIN_FREE;
        code.kind = CODE_RUN;
        code.run = builtins[which].run;
    }
    return bh__ptx_emit(low, &code, true);
}
