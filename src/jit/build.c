/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that runs the lanes of a warp: its entries, its blocks, its exits.
 *
 * The lanes in state->mask are all at state->pc, and no other lane of the warp can run. It runs
 * them until something has to be decided. Its registers are the frame's rows while it is not
 * running, so interpreter and code can take turns. Each entry checks that the rows which the code
 * holds as one scalar are what the code takes them for; if not, the interpreter runs these lanes.
 */
#include <stddef.h>
#include <stdlib.h>

#include "jit/unit.h"

LLVMBasicBlockRef bh__jit_new_block(bh__jit_unit *u) {
    return LLVMAppendBasicBlockInContext(u->context, u->function, "");
}

void bh__jit_rarely(bh__jit_unit *u, LLVMValueRef condition, LLVMBasicBlockRef rare,
                    LLVMBasicBlockRef usual) {
    LLVMMetadataRef parts[] = {
        LLVMMDStringInContext2(u->context, "branch_weights", 14),
        LLVMValueAsMetadata(bh__jit_int(u, u->i32, 1)),
        LLVMValueAsMetadata(bh__jit_int(u, u->i32, 4000)),
    };
    LLVMMetadataRef weights = LLVMMDNodeInContext2(u->context, parts, 3);
    LLVMValueRef branch = LLVMBuildCondBr(u->b, condition, rare, usual);
    LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(u->context, "prof", 4),
                    LLVMMetadataAsValue(u->context, weights));
}

static void go(bh__jit_unit *u, LLVMBasicBlockRef to) {
    LLVMBuildBr(u->b, to);
}

static void start_at(bh__jit_unit *u, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(u->b, block);
}

static LLVMValueRef is_equal(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(u->b, LLVMIntEQ, a, b, "");
}

void bh__jit_set_field(bh__jit_unit *u, LLVMValueRef base, size_t offset, LLVMValueRef v) {
    LLVMValueRef index = bh__jit_int(u, u->i64, offset);
    LLVMBuildStore(u->b, v, LLVMBuildInBoundsGEP2(u->b, u->i8, base, &index, 1, ""));
}

LLVMValueRef bh__jit_outcome(bh__jit_unit *u, bh__ptx_compiled_end end) {
    return bh__jit_int(u, u->i32, end);
}

/* ---- exits ---- */

/* The lanes that wait at other blocks have their pc in the warp. */
static void place_waiting(bh__jit_unit *u) {
    LLVMTypeRef types[] = {LLVMVectorType(u->i32, LANES), u->ptr};
    LLVMValueRef at = bh__jit_int(u, u->i64, offsetof(bh__ptx_warp, pc));
    at = LLVMBuildInBoundsGEP2(u->b, u->i8, u->warp, &at, 1, "");
    for (uint32_t n = 0; n < u->block_count; n++) {
        if (ROW_IN(u->block->pending, n)) {
            const bh__jit_block *b = &u->blocks[n];
            LLVMValueRef lanes = LLVMBuildLoad2(u->b, u->i32, b->waiting, "");
            lanes = LLVMBuildBitCast(u->b, lanes, LLVMVectorType(u->i1, LANES), "");
            LLVMValueRef pc = bh__jit_splat(u, bh__jit_int(u, u->i32, u->first + b->first));
            LLVMValueRef args[] = {pc, at, bh__jit_int(u, u->i32, 4), lanes};
            bh__jit_intrinsic(u, "llvm.masked.store", types, 2, args, 4);
        }
    }
}

void bh__jit_leave(bh__jit_unit *u, uint32_t step, LLVMValueRef code) {
    uint64_t *live = calloc(u->words + 1, sizeof *live);
    if (live == NULL) {
        u->failed = true;
        LLVMBuildUnreachable(u->b);
        return;
    }
    bh__jit_live_before(u, step, live);
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(live, n) || (!u->full && ROW_IN(u->block->keep, n))) {
            bh__jit_spill(u, &u->rows[n], true);
        }
    }
    free(live);
    LLVMValueRef warp_live = bh__jit_field(u, u->warp, offsetof(bh__ptx_warp, live), u->i32);
    LLVMValueRef exited = LLVMBuildAnd(u->b, u->all, LLVMBuildNot(u->b, warp_live, ""), "");
    if (!u->full) {
        place_waiting(u);
        bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, exited), exited);
        bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, mask), u->mask);
    }
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, pc),
                      bh__jit_int(u, u->i32, u->first + step));
    bh__jit_set_field(u, u->state, offsetof(bh__ptx_group_state, left),
                      LLVMBuildLoad2(u->b, u->i64, u->left, ""));
    LLVMBuildRet(u->b, code);
}

/* Leaves if `condition`, else goes on in a new LLVM block. */
static void leave_if(bh__jit_unit *u, LLVMValueRef condition, uint32_t step, LLVMValueRef code) {
    LLVMBasicBlockRef out = bh__jit_new_block(u), on = bh__jit_new_block(u);
    bh__jit_rarely(u, condition, out, on);
    start_at(u, out);
    bh__jit_leave(u, step, code);
    start_at(u, on);
}

void bh__jit_step_if(bh__jit_unit *u, LLVMValueRef condition) {
    leave_if(u, condition, u->at, bh__jit_outcome(u, COMPILED_STEP));
}

void bh__jit_call_handler(bh__jit_unit *u, const bh__jit_step *s) {
    for (uint32_t n = 0; n < s->use_count; n++) {
        bh__jit_spill(u, &u->rows[s->uses[n]], false);
    }
    /* Found through the module: the code holds no addresses, so that any process can use it. */
    LLVMValueRef module = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, module), u->ptr);
    LLVMValueRef all = bh__jit_field(u, module, offsetof(bh__ptx_module, code), u->ptr);
    LLVMValueRef offset = bh__jit_int(
        u, u->i64, (uint64_t)(s->code - u->request->module->code) * sizeof(bh__ptx_code));
    LLVMValueRef code = LLVMBuildInBoundsGEP2(u->b, u->i8, all, &offset, 1, "");
    LLVMValueRef run = bh__jit_field(u, code, offsetof(bh__ptx_code, run), u->ptr);
    bh__jit_set_field(u, u->x, offsetof(bh__ptx_exec, code), code);
    LLVMValueRef args[] = {u->x, code, u->active};
    LLVMValueRef ok = LLVMBuildCall2(u->b, u->handler_type, run, args, 3, "");
    LLVMBasicBlockRef fault = bh__jit_new_block(u), on = bh__jit_new_block(u);
    LLVMValueRef failed = LLVMBuildICmp(u->b, LLVMIntEQ, ok, bh__jit_int(u, u->i8, 0), "");
    bh__jit_rarely(u, failed, fault, on);
    start_at(u, fault);
    LLVMBuildRet(u->b, bh__jit_outcome(u, COMPILED_FAULT));
    start_at(u, on);
    for (uint32_t n = 0; n < s->def_count; n++) {
        bh__jit_reload(u, &u->rows[s->defs[n]]);
    }
}

/* ---- steps ---- */

void bh__jit_begin_step(bh__jit_unit *u, const bh__jit_step *s) {
    const bh__ptx_code *c = s->code;
    u->guarded = c->guard != NO_ROW;
    u->guard_bit = NULL;
    u->active = u->mask;
    u->active_lanes = u->lanes;
    if (!u->guarded) {
        return;
    }
    if (bh__jit_is_uniform(u, c->guard)) {
        LLVMValueRef bit = bh__jit_bit_of(u, c->guard);
        u->guard_bit = c->guard_flip ? LLVMBuildNot(u->b, bit, "") : bit;
        u->active = LLVMBuildSelect(u->b, u->guard_bit, u->mask, bh__jit_int(u, u->i32, 0), "");
        u->active_lanes = LLVMBuildBitCast(u->b, u->active, LLVMVectorType(u->i1, LANES), "");
        return;
    }
    LLVMValueRef lanes = bh__jit_lanes_of(u, c->guard);
    lanes = c->guard_flip ? LLVMBuildNot(u->b, lanes, "") : lanes;
    u->active_lanes = LLVMBuildAnd(u->b, lanes, u->lanes, "");
    u->active = LLVMBuildBitCast(u->b, u->active_lanes, u->i32, "");
}

static LLVMValueRef none_active(bh__jit_unit *u) {
    return is_equal(u, u->active, bh__jit_int(u, u->i32, 0));
}

static bool has_constant_lanes(const bh__jit_step *s) {
    return s->code->b < 0 && s->code->c < 0;
}

/* Instructions for which the lanes that run matter: not executed if there are none. */
static void make_effect(bh__jit_unit *u, const bh__jit_step *s) {
    LLVMBasicBlockRef after = NULL;
    if (u->guarded) {
        LLVMBasicBlockRef body = bh__jit_new_block(u);
        after = bh__jit_new_block(u);
        LLVMBuildCondBr(u->b, none_active(u), after, body);
        start_at(u, body);
    }
    if (s->op == JIT_ATOMIC) {
        bh__jit_atomic(u, s);
    } else if (s->op == JIT_LOAD || s->op == JIT_STORE) {
        bh__jit_access(u, s);
    } else if (s->op == JIT_SHFL && has_constant_lanes(s)) {
        bh__jit_shuffle(u, s);
    } else if (s->op == JIT_VOTE) {
        bh__jit_vote(u, s);
    } else if (s->op == JIT_FENCE) {
        LLVMBuildFence(u->b, LLVMAtomicOrderingSequentiallyConsistent, false, "");
    } else if (s->op != JIT_MEET) {
        bh__jit_call_handler(u, s);
    }
    if (after != NULL) {
        go(u, after);
        start_at(u, after);
    }
}

/* All lanes of the member mask are here; else the interpreter makes them wait. */
static void make_sync(bh__jit_unit *u, const bh__jit_step *s) {
    if (!bh__jit_is_uniform(u, s->code->e)) {
        bh__jit_leave(u, u->at, bh__jit_outcome(u, COMPILED_STEP));
        start_at(u, bh__jit_new_block(u));
        return;
    }
    if (!u->full || u->guarded) {
        LLVMValueRef live = bh__jit_field(u, u->warp, offsetof(bh__ptx_warp, live), u->i32);
        LLVMValueRef absent = LLVMBuildAnd(u->b, live, bh__jit_scalar(u, s->code->e, false), "");
        absent = LLVMBuildAnd(u->b, absent, LLVMBuildNot(u->b, u->active, ""), "");
        LLVMValueRef none = is_equal(u, absent, bh__jit_int(u, u->i32, 0));
        LLVMValueRef stop = LLVMBuildNot(u->b, none, "");
        if (u->guarded) {
            stop = LLVMBuildAnd(u->b, stop, LLVMBuildNot(u->b, none_active(u), ""), "");
        }
        leave_if(u, stop, u->at, bh__jit_outcome(u, COMPILED_STEP));
    }
    make_effect(u, s);
}

static void make_step(bh__jit_unit *u, const bh__jit_step *s) {
    bh__jit_begin_step(u, s);
    if (s->sync) {
        make_sync(u, s);
    } else if (s->op == JIT_HANDLED || s->op == JIT_FENCE ||
               (s->op >= JIT_LOAD && s->op <= JIT_ATOMIC)) {
        make_effect(u, s);
    } else if (s->op >= JIT_INT_TO_FLOAT && s->op <= JIT_CLAMP) {
        bh__jit_convert(u, s);
    } else if (s->op >= JIT_FADD && s->op <= JIT_QUOTIENT) {
        bh__jit_floating(u, s);
    } else {
        bh__jit_integer(u, s);
    }
}

/* ---- blocks ---- */

static void make_stop(bh__jit_unit *u, const bh__jit_step *s) {
    if (s->code->guard != NO_ROW && u->block->next[0] >= 0) {
        bh__jit_begin_step(u, s);
        LLVMBasicBlockRef stop = bh__jit_new_block(u), on = bh__jit_new_block(u);
        LLVMBuildCondBr(u->b, none_active(u), on, stop);
        start_at(u, on);
        bh__jit_go_on(u, (uint32_t)u->block->next[0]);
        start_at(u, stop);
    }
    bh__jit_leave(u, u->block->end - 1, bh__jit_outcome(u, COMPILED_STEP));
}

/* From the version for 32 lanes to the other one. */
static void go_masked(bh__jit_unit *u, LLVMBasicBlockRef to) {
    LLVMBuildStore(u->b, bh__jit_int(u, u->i32, FULL_MASK), u->running);
    go(u, to);
}

static void use_mask(bh__jit_unit *u) {
    u->mask =
        u->full ? bh__jit_int(u, u->i32, FULL_MASK) : LLVMBuildLoad2(u->b, u->i32, u->running, "");
    u->lanes = LLVMBuildBitCast(u->b, u->mask, LLVMVectorType(u->i1, LANES), "");
    u->active = u->mask;
    u->active_lanes = u->lanes;
    u->guarded = false;
}

/* Loops stop when their time is up. Lanes that have all converged run without masks. */
static void make_checks(bh__jit_unit *u, const bh__jit_block *b) {
    LLVMValueRef left = LLVMBuildLoad2(u->b, u->i64, u->left, "");
    if (b->loops) {
        LLVMValueRef over = LLVMBuildICmp(u->b, LLVMIntSLE, left, bh__jit_int(u, u->i64, 0), "");
        LLVMBasicBlockRef stop = bh__jit_new_block(u), on = bh__jit_new_block(u);
        bh__jit_rarely(u, over, stop, on);
        start_at(u, stop);
        if (u->full) {
            go_masked(u, b->masked);
        } else {
            bh__jit_leave(u, b->first, bh__jit_outcome(u, COMPILED_SLICE));
        }
        start_at(u, on);
    }
    if (!u->full && (b->loops || b->awaited)) {
        LLVMBasicBlockRef on = bh__jit_new_block(u);
        LLVMValueRef every = is_equal(u, u->mask, bh__jit_int(u, u->i32, FULL_MASK));
        LLVMBuildCondBr(u->b, every, b->full, on);
        start_at(u, on);
    }
    LLVMValueRef count = bh__jit_int(u, u->i64, b->end - b->first);
    LLVMBuildStore(u->b, LLVMBuildSub(u->b, left, count, ""), u->left);
}

static void make_end(bh__jit_unit *u, const bh__jit_step *last) {
    switch (last->op) {
    case JIT_BRANCH:
        bh__jit_branch(u, last);
        return;
    case JIT_EXIT:
        bh__jit_exit(u, last);
        return;
    case JIT_STOP:
        if (u->full && bh__jit_is_barrier(u, last)) {
            bh__jit_wait(u);
        }
        if (u->full) {
            go_masked(u, u->block->masked_end);
            return;
        }
        go(u, u->block->masked_end);
        start_at(u, u->block->masked_end);
        use_mask(u);
        if (bh__jit_is_barrier(u, last)) {
            bh__jit_wait(u);
        }
        make_stop(u, last);
        return;
    default:
        bh__jit_go_on(u, (uint32_t)u->block->next[0]);
        return;
    }
}

static void make_block(bh__jit_unit *u, const bh__jit_block *b, bool full) {
    u->block = b;
    u->full = full;
    start_at(u, full ? b->full : b->masked);
    use_mask(u);
    make_checks(u, b);
    const bh__jit_step *last = &u->steps[b->end - 1];
    bool ends = last->op == JIT_BRANCH || last->op == JIT_EXIT || last->op == JIT_STOP;
    for (uint32_t n = b->first; n < b->end - (ends ? 1 : 0); n++) {
        u->at = n;
        make_step(u, &u->steps[n]);
    }
    u->at = b->end - 1;
    make_end(u, last);
}

/* ---- entries ---- */

/* A row that is read before it is written is zero in all lanes; 128-bit values are only in the
 * frame. */
static bool may_begin_compact(const bh__jit_unit *u) {
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(u->blocks[0].live, n) && u->rows[n].stride != 0) {
            return false;
        }
    }
    const bh__ptx_function *f = u->request->function;
    for (uint32_t n = 0; n < f->reg_count; n++) {
        if (f->regs[n].row != 0 && bh__ptx_bytes(f->regs[n].type) > 8) {
            return false;
        }
    }
    return true;
}

/* The rows of a warp whose block runs in native code alone. Goes to `start`. */
static void enter_compact(bh__jit_unit *u, const bh__jit_block *b, LLVMBasicBlockRef start,
                          LLVMBasicBlockRef refuse) {
    if (b->first == 0) {
        go(u, may_begin_compact(u) ? start : refuse);
        return;
    }
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(b->live, n)) {
            bh__jit_unpack(u, &u->rows[n]);
        }
    }
    LLVMBasicBlockRef expand = bh__jit_new_block(u);
    LLVMBuildCondBr(u->b, bh__jit_rows_are(u, LLVMIntEQ, ROWS_EXPAND), expand, start);
    start_at(u, expand);
    u->block = b;
    u->full = true;
    bh__jit_leave(u, b->first, bh__jit_outcome(u, COMPILED_SLICE));
    u->block = NULL;
}

static bool is_entered_compact(const bh__jit_unit *u, const bh__jit_block *b) {
    return b->first == 0 || bh__jit_is_barrier(u, &u->steps[b->first - 1]);
}

static void make_entry(bh__jit_unit *u, const bh__jit_block *b, LLVMBasicBlockRef refuse) {
    LLVMBasicBlockRef start = bh__jit_new_block(u);
    if (is_entered_compact(u, b)) {
        LLVMBasicBlockRef compact = bh__jit_new_block(u), whole = bh__jit_new_block(u);
        LLVMBuildCondBr(u->b, bh__jit_rows_are(u, LLVMIntNE, ROWS_WHOLE), compact, whole);
        start_at(u, compact);
        enter_compact(u, b, start, refuse);
        start_at(u, whole);
    }
    LLVMValueRef fine = bh__jit_int(u, u->i1, 1);
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(b->live, n)) {
            LLVMValueRef ok = bh__jit_enter_row(u, &u->rows[n]);
            fine = ok == NULL ? fine : LLVMBuildAnd(u->b, fine, ok, "");
        }
    }
    LLVMBuildCondBr(u->b, fine, start, refuse);
    start_at(u, start);
    LLVMValueRef every = is_equal(u, u->all, bh__jit_int(u, u->i32, FULL_MASK));
    LLVMBuildCondBr(u->b, every, b->full, b->masked);
}

static void make_prologue(bh__jit_unit *u) {
    for (uint32_t n = 0; n < u->row_count; n++) {
        u->rows[n].slot = LLVMBuildAlloca(u->b, bh__jit_slot_type(u, &u->rows[n]), "");
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        u->blocks[n].waiting = u->blocks[n].awaited ? LLVMBuildAlloca(u->b, u->i32, "") : NULL;
    }
    u->left = LLVMBuildAlloca(u->b, u->i64, "");
    u->running = LLVMBuildAlloca(u->b, u->i32, "");
    u->scratch =
        LLVMBuildAlloca(u->b, LLVMArrayType2(LLVMVectorType(u->i64, LANES), SCRATCH_ROWS), "");
    u->x = LLVMGetParam(u->function, 0);
    u->state = LLVMGetParam(u->function, 1);
    LLVMBuildStore(u->b, bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, left), u->i64),
                   u->left);
    bh__jit_load_ranges(u);
}

/* Where a warp begins or goes on. */
static LLVMValueRef make_head(bh__jit_unit *u, LLVMBasicBlockRef refuse) {
    u->frame = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, bases), u->ptr);
    u->warp = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, warp), u->ptr);
    u->all = bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, mask), u->i32);
    u->all_lanes = LLVMBuildBitCast(u->b, u->all, LLVMVectorType(u->i1, LANES), "");
    u->mask = u->all;
    u->lanes = u->all_lanes;
    LLVMBuildStore(u->b, u->all, u->running);
    for (uint32_t n = 0; n < u->row_count; n++) {
        LLVMTypeRef type = bh__jit_slot_type(u, &u->rows[n]);
        LLVMBuildStore(u->b, LLVMConstNull(type), u->rows[n].slot);
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        if (u->blocks[n].awaited) {
            LLVMBuildStore(u->b, bh__jit_int(u, u->i32, 0), u->blocks[n].waiting);
        }
    }
    LLVMValueRef pc = bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, pc), u->i32);
    return LLVMBuildSwitch(u->b, pc, refuse, u->block_count);
}

static void make_types(bh__jit_unit *u) {
    u->i1 = LLVMInt1TypeInContext(u->context);
    u->i8 = LLVMInt8TypeInContext(u->context);
    u->i16 = LLVMInt16TypeInContext(u->context);
    u->i32 = LLVMInt32TypeInContext(u->context);
    u->i64 = LLVMInt64TypeInContext(u->context);
    u->f32 = LLVMFloatTypeInContext(u->context);
    u->f64 = LLVMDoubleTypeInContext(u->context);
    u->ptr = LLVMPointerTypeInContext(u->context, 0);
    LLVMTypeRef handler[] = {u->ptr, u->ptr, u->i32};
    u->handler_type = LLVMFunctionType(u->i8, handler, 3, false);
}

bool bh__jit_build(bh__jit_unit *u) {
    make_types(u);
    LLVMTypeRef params[] = {u->ptr, u->ptr};
    u->function = LLVMAddFunction(u->module, "kernel", LLVMFunctionType(u->i32, params, 2, false));
    start_at(u, bh__jit_new_block(u));
    make_prologue(u);
    LLVMBasicBlockRef head = bh__jit_new_block(u), refuse = bh__jit_new_block(u);
    u->next_warp = bh__jit_new_block(u);
    go(u, head);
    start_at(u, head);
    LLVMValueRef choice = make_head(u, refuse);
    bh__jit_make_next_warp(u, head);
    start_at(u, refuse);
    LLVMBuildRet(u->b, bh__jit_outcome(u, COMPILED_NOT));
    for (uint32_t n = 0; n < u->block_count; n++) {
        u->blocks[n].full = bh__jit_new_block(u);
        u->blocks[n].masked = bh__jit_new_block(u);
        u->blocks[n].masked_end =
            u->steps[u->blocks[n].end - 1].op == JIT_STOP ? bh__jit_new_block(u) : NULL;
        if (u->blocks[n].entered) {
            LLVMBasicBlockRef entry = bh__jit_new_block(u);
            LLVMAddCase(choice, bh__jit_int(u, u->i32, u->first + u->blocks[n].first), entry);
            start_at(u, entry);
            make_entry(u, &u->blocks[n], refuse);
        }
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        make_block(u, &u->blocks[n], true);
        make_block(u, &u->blocks[n], false);
    }
    return !u->failed || bh__jit_refuse(u, "there is no memory to compile it");
}
