/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: frames with registers and local memory, and the passing of arguments and results. */
#include <stdlib.h>
#include <string.h>

#include "ptx/exec.h"

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

uint64_t bh__ptx_call_argument(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane) {
    uint64_t v = 0;
    if (slot->row == NO_ROW) {
        memcpy(&v, local_at(x, lane, x->stack, slot->offset), slot->bytes > 8 ? 8 : slot->bytes);
    } else if (slot->bytes == 8) {
        v = ((const bh__u64 *)bh__row(x, slot->row))[lane];
    } else {
        v = ((const bh__u32 *)bh__row(x, slot->row))[lane];
    }
    return v;
}

void bh__ptx_call_result(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane,
                         uint64_t value) {
    if (slot->row == NO_ROW) {
        memcpy(local_at(x, lane, x->stack, slot->offset), &value,
               slot->bytes > 8 ? 8 : slot->bytes);
    } else if (slot->bytes == 8) {
        ((bh__u64 *)bh__row(x, slot->row))[lane] = value;
    } else {
        ((bh__u32 *)bh__row(x, slot->row))[lane] = (uint32_t)value;
    }
}

static bool signature_fits(const bh__ptx_call *call, const bh__ptx_function *f) {
    if (f->param_count != call->arg_count || f->result_count < call->result_count) {
        return false;
    }
    for (uint32_t n = 0; n < f->param_count; n++) {
        if (f->params[n]->size != call->args[n].bytes) {
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
    for (uint32_t n = 0; n < call->arg_count; n++) {
        const bh__ptx_slot *slot = &call->args[n];
        const bh__ptx_var *formal = f->params[n];
        FOR_LANES_IN_ORDER(mask) {
            if (slot->row == NO_ROW && formal->reg == NO_REG) {
                memcpy(local_at(x, l, stack, formal->offset),
                       local_at(x, l, x->stack, slot->offset), slot->bytes);
                continue;
            }
            uint64_t v = bh__ptx_call_argument(x, slot, l);
            if (formal->reg == NO_REG) {
                memcpy(local_at(x, l, stack, formal->offset), &v,
                       slot->bytes > 8 ? 8 : slot->bytes);
            } else if (slot->bytes == 8) {
                ((bh__u64 *)(void *)(frame + f->regs[formal->reg].row))[l] = v;
            } else {
                ((bh__u32 *)(void *)(frame + f->regs[formal->reg].row))[l] = (uint32_t)v;
            }
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
        frame->next = w->free_frame;
        w->free_frame = base;
    }
}

void bh__ptx_call_abandon(bh__ptx_warp *w, uint32_t mask) {
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
    uint64_t stack = ((uint64_t)x->stack + x->frame_function->local_bytes + f->local_align - 1) &
                     ~((uint64_t)f->local_align - 1);
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
        const bh__ptx_var *formal = f->results[n];
        bh__ptx_slot from = {.row = NO_ROW, .offset = formal->offset, .bytes = slot->bytes};
        if (formal->reg != NO_REG) {
            from.row = (int32_t)f->regs[formal->reg].row;
        }
        FOR_LANES_IN_ORDER(mask) {
            if (slot->row == NO_ROW && from.row == NO_ROW) {
                memcpy(local_at(x, l, caller.stack, slot->offset),
                       local_at(x, l, frame->stack, formal->offset), slot->bytes);
            } else {
                bh__ptx_call_result(&caller, slot, l, bh__ptx_call_argument(x, &from, l));
            }
        }
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
        ok = var->space == SPACE_PARAM && !entry && var->size == formal->size && o->imm == 0;
        slot->offset = var->offset;
    } else if (o->kind == OPERAND_REG && !o->negated) {
        bh__ptx_type type = low->function->regs[o->reg].type;
        ok = type != T_PRED && bh__ptx_bytes(type) == formal->size;
        slot->row = bh__ptx_row_in(low, o, type);
    } else if (o->kind == OPERAND_SINK && result) {
        ok = formal->size <= 8;
        slot->row = bh__ptx_row_out(low, o, formal->size == 8 ? T_B64 : T_B32);
    } else {
        ok = !result && (o->kind == OPERAND_INT || o->kind == OPERAND_FLOAT) && formal->size <= 8;
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

static bool lower_list(bh__ptx_lowering *low, const bh__ptx_operand *list, bh__ptx_var **formals,
                       uint32_t formal_count, bool results, bh__ptx_slot **out, uint32_t *count) {
    uint32_t n = list == NULL ? 0 : list->count;
    if (results ? n > formal_count : n != formal_count) {
        return bh__ptx_lower_fail(low, BH_E_LOAD, "pass the parameters that the function declares",
                                  "%u %s given; the function declares %u", (unsigned)n,
                                  results ? "results" : "arguments", (unsigned)formal_count);
    }
    *count = n;
    *out = bh__arena_alloc(&low->module->arena, n, sizeof **out);
    if (*out == NULL) {
        return bh__ptx_lower_fail(low, BH_E_NO_HOST_MEMORY, "free memory", "no memory for a call");
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!lower_slot(low, &list->elements[i], formals[i], results, &(*out)[i])) {
            return false;
        }
    }
    return true;
}

static bool bad_call(bh__ptx_lowering *low) {
    return bh__ptx_lower_fail(low, BH_E_LOAD,
                              "write call (results), function, (arguments) and a prototype where "
                              "the function is in a register",
                              "the call is malformed");
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
    if (o < end && o->kind == OPERAND_PROTOTYPE) {
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
    } else if (target->kind == OPERAND_REG && prototype != NULL &&
               prototype->symbol->kind == SYMBOL_PROTOTYPE &&
               bh__ptx_bytes(low->function->regs[target->reg].type) == 8) {
        shape = prototype->symbol->function;
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
        unsigned wanted = call->callee->builtin == BUILTIN_VPRINTF ? 2 : 5;
        if (call->arg_count != wanted) {
            return bad_call(low);
        }
        code.kind = CODE_RUN;
        code.run =
            call->callee->builtin == BUILTIN_VPRINTF ? bh__ptx_run_vprintf : bh__ptx_run_assertfail;
    }
    return bh__ptx_emit(low, &code, true);
}
