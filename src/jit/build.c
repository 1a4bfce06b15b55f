/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that runs a group of lanes: its entries, its blocks, its exits.
 *
 * It has the interpreter's contract: the lanes in state->mask are all at state->pc, and it runs them
 * until something has to be decided. Its registers are the frame's rows while it is not running, so
 * interpreter and code can take turns at every label. Each entry checks that the rows which the code
 * holds as one scalar are what the code takes them for; if not, the interpreter runs these lanes.
 */
#include <stddef.h>
#include <stdlib.h>

#include "jit/unit.h"

static LLVMBasicBlockRef new_block(bh__jit_unit *u) {
    return LLVMAppendBasicBlockInContext(u->context, u->function, "");
}

static void go(bh__jit_unit *u, LLVMBasicBlockRef to) {
    LLVMBuildBr(u->b, to);
}

static void start_at(bh__jit_unit *u, LLVMBasicBlockRef block) {
    LLVMPositionBuilderAtEnd(u->b, block);
}

static void set_field(bh__jit_unit *u, LLVMValueRef base, size_t offset, LLVMValueRef v) {
    LLVMValueRef index = bh__jit_int(u, u->i64, offset);
    LLVMBuildStore(u->b, v, LLVMBuildInBoundsGEP2(u->b, u->i8, base, &index, 1, ""));
}

static LLVMValueRef outcome(bh__jit_unit *u, bh__ptx_compiled_end end) {
    return bh__jit_int(u, u->i32, end);
}

/* ---- exits ---- */

void bh__jit_leave(bh__jit_unit *u, uint32_t step, LLVMValueRef code) {
    uint64_t *live = calloc(u->words + 1, sizeof *live);
    if (live == NULL) {
        u->failed = true;
        LLVMBuildUnreachable(u->b);
        return;
    }
    bh__jit_live_before(u, step, live);
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(live, n)) {
            bh__jit_spill(u, &u->rows[n]);
        }
    }
    free(live);
    set_field(u, u->state, offsetof(bh__ptx_group_state, pc),
              bh__jit_int(u, u->i32, u->first + step));
    set_field(u, u->state, offsetof(bh__ptx_group_state, left),
              LLVMBuildLoad2(u->b, u->i64, u->left, ""));
    LLVMBuildRet(u->b, code);
}

/* Leaves if `condition`, else goes on in a new LLVM block. */
static void leave_if(bh__jit_unit *u, LLVMValueRef condition, uint32_t step, LLVMValueRef code) {
    LLVMBasicBlockRef out = new_block(u), on = new_block(u);
    LLVMBuildCondBr(u->b, condition, out, on);
    start_at(u, out);
    bh__jit_leave(u, step, code);
    start_at(u, on);
}

void bh__jit_step_if(bh__jit_unit *u, LLVMValueRef condition) {
    leave_if(u, condition, u->at, outcome(u, COMPILED_STEP));
}

void bh__jit_call_handler(bh__jit_unit *u, const bh__jit_step *s) {
    for (uint32_t n = 0; n < s->use_count; n++) {
        bh__jit_spill(u, &u->rows[s->uses[n]]);
    }
    /* Found through the module: the code holds no addresses, so that any process can use it. */
    LLVMValueRef module = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, module), u->ptr);
    LLVMValueRef all = bh__jit_field(u, module, offsetof(bh__ptx_module, code), u->ptr);
    LLVMValueRef offset = bh__jit_int(
        u, u->i64, (uint64_t)(s->code - u->request->module->code) * sizeof(bh__ptx_code));
    LLVMValueRef code = LLVMBuildInBoundsGEP2(u->b, u->i8, all, &offset, 1, "");
    LLVMValueRef run = bh__jit_field(u, code, offsetof(bh__ptx_code, run), u->ptr);
    set_field(u, u->x, offsetof(bh__ptx_exec, code), code);
    LLVMValueRef args[] = {u->x, code, u->active};
    LLVMValueRef ok = LLVMBuildCall2(u->b, u->handler_type, run, args, 3, "");
    LLVMBasicBlockRef fault = new_block(u), on = new_block(u);
    LLVMValueRef failed = LLVMBuildICmp(u->b, LLVMIntEQ, ok, bh__jit_int(u, u->i8, 0), "");
    LLVMBuildCondBr(u->b, failed, fault, on);
    start_at(u, fault);
    LLVMBuildRet(u->b, outcome(u, COMPILED_FAULT));
    start_at(u, on);
    for (uint32_t n = 0; n < s->def_count; n++) {
        bh__jit_reload(u, &u->rows[s->defs[n]]);
    }
}

/* ---- steps ---- */

static void begin_step(bh__jit_unit *u, const bh__jit_step *s) {
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

static LLVMValueRef is_equal(bh__jit_unit *u, LLVMValueRef a, LLVMValueRef b) {
    return LLVMBuildICmp(u->b, LLVMIntEQ, a, b, "");
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
        LLVMBasicBlockRef body = new_block(u);
        after = new_block(u);
        LLVMBuildCondBr(u->b, none_active(u), after, body);
        start_at(u, body);
    }
    if (s->op == JIT_LOAD || s->op == JIT_STORE) {
        bh__jit_access(u, s);
    } else if (s->op == JIT_SHFL && has_constant_lanes(s)) {
        bh__jit_shuffle(u, s);
    } else {
        bh__jit_call_handler(u, s);
    }
    if (after != NULL) {
        go(u, after);
        start_at(u, after);
    }
}

/* All lanes of the warp are here, with one member mask; else the interpreter makes them wait. */
static void make_sync(bh__jit_unit *u, const bh__jit_step *s) {
    if (!bh__jit_is_uniform(u, s->code->e)) {
        bh__jit_leave(u, u->at, outcome(u, COMPILED_STEP));
        start_at(u, new_block(u));
        return;
    }
    LLVMValueRef warp = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, warp), u->ptr);
    LLVMValueRef live = bh__jit_field(u, warp, offsetof(bh__ptx_warp, live), u->i32);
    LLVMValueRef stop = LLVMBuildNot(u->b, is_equal(u, u->active, live), "");
    if (u->guarded) {
        stop = LLVMBuildAnd(u->b, stop, LLVMBuildNot(u->b, none_active(u), ""), "");
    }
    leave_if(u, stop, u->at, outcome(u, COMPILED_STEP));
    make_effect(u, s);
}

static void make_step(bh__jit_unit *u, const bh__jit_step *s) {
    begin_step(u, s);
    if (s->sync) {
        make_sync(u, s);
    } else if (s->op == JIT_HANDLED || s->op == JIT_LOAD || s->op == JIT_STORE) {
        make_effect(u, s);
    } else if (s->op >= JIT_FADD && s->op <= JIT_INT_TO_F32) {
        bh__jit_floating(u, s);
    } else {
        bh__jit_integer(u, s);
    }
}

/* ---- the ends of blocks ---- */

static LLVMBasicBlockRef block_of(const bh__jit_unit *u, int32_t block) {
    return u->blocks[block].body;
}

static void make_branch(bh__jit_unit *u, const bh__jit_block *b) {
    const bh__jit_step *s = &u->steps[b->end - 1];
    if (s->code->guard == NO_ROW) {
        go(u, block_of(u, b->next[0]));
        return;
    }
    begin_step(u, s);
    LLVMBasicBlockRef taken = block_of(u, b->next[0]), on = block_of(u, b->next[1]);
    if (u->guard_bit != NULL) {
        LLVMBuildCondBr(u->b, u->guard_bit, taken, on);
        return;
    }
    LLVMBasicBlockRef some = new_block(u), split = new_block(u);
    LLVMBuildCondBr(u->b, is_equal(u, u->active, u->mask), taken, some);
    start_at(u, some);
    LLVMBuildCondBr(u->b, none_active(u), on, split);
    start_at(u, split);
    bh__jit_leave(u, b->end - 1, outcome(u, COMPILED_STEP));
}

static void make_stop(bh__jit_unit *u, const bh__jit_block *b) {
    const bh__jit_step *s = &u->steps[b->end - 1];
    if (s->code->guard != NO_ROW && b->next[0] >= 0) {
        begin_step(u, s);
        LLVMBasicBlockRef stop = new_block(u);
        LLVMBuildCondBr(u->b, none_active(u), block_of(u, b->next[0]), stop);
        start_at(u, stop);
    }
    bh__jit_leave(u, b->end - 1, outcome(u, COMPILED_STEP));
}

/* Other lanes wait further on: stop where they are. Loops stop when their time is up. */
static void make_checks(bh__jit_unit *u, const bh__jit_block *b) {
    LLVMValueRef pc = bh__jit_int(u, u->i32, u->first + b->first);
    LLVMValueRef stop = LLVMBuildICmp(u->b, LLVMIntUGE, pc, u->limit, "");
    LLVMValueRef code = outcome(u, COMPILED_LIMIT);
    LLVMValueRef left = LLVMBuildLoad2(u->b, u->i64, u->left, "");
    if (b->loops) {
        LLVMValueRef over = LLVMBuildICmp(u->b, LLVMIntSLE, left, bh__jit_int(u, u->i64, 0), "");
        code = LLVMBuildSelect(u->b, stop, code, outcome(u, COMPILED_SLICE), "");
        stop = LLVMBuildOr(u->b, stop, over, "");
    }
    leave_if(u, stop, b->first, code);
    LLVMValueRef count = bh__jit_int(u, u->i64, b->end - b->first);
    LLVMBuildStore(u->b, LLVMBuildSub(u->b, left, count, ""), u->left);
}

static void make_block(bh__jit_unit *u, bh__jit_block *b) {
    start_at(u, b->body);
    make_checks(u, b);
    const bh__jit_step *last = &u->steps[b->end - 1];
    bool ends = last->op == JIT_BRANCH || last->op == JIT_STOP;
    for (uint32_t n = b->first; n < b->end - (ends ? 1 : 0); n++) {
        u->at = n;
        make_step(u, &u->steps[n]);
    }
    u->at = b->end - 1;
    if (last->op == JIT_BRANCH) {
        make_branch(u, b);
    } else if (ends) {
        make_stop(u, b);
    } else {
        go(u, block_of(u, b->next[0]));
    }
}

/* ---- entries ---- */

static void make_entry(bh__jit_unit *u, const bh__jit_block *b, LLVMBasicBlockRef refuse) {
    LLVMValueRef fine = bh__jit_int(u, u->i1, 1);
    for (uint32_t n = 0; n < u->row_count; n++) {
        if (ROW_IN(b->live, n)) {
            LLVMValueRef ok = bh__jit_enter_row(u, &u->rows[n]);
            fine = ok == NULL ? fine : LLVMBuildAnd(u->b, fine, ok, "");
        }
    }
    LLVMBuildCondBr(u->b, fine, b->body, refuse);
}

static LLVMTypeRef type_of_slot(const bh__jit_unit *u, const bh__jit_row *r) {
    LLVMTypeRef word = r->kind == KIND_WIDE ? u->i64 : u->i32;
    if (r->class == CLASS_VARYING) {
        return r->kind == KIND_PREDICATE ? u->i32 : LLVMVectorType(word, LANES);
    }
    return r->kind == KIND_PREDICATE ? u->i1 : word;
}

static LLVMValueRef make_prologue(bh__jit_unit *u, LLVMBasicBlockRef refuse) {
    start_at(u, new_block(u));
    for (uint32_t n = 0; n < u->row_count; n++) {
        LLVMTypeRef type = type_of_slot(u, &u->rows[n]);
        u->rows[n].slot = LLVMBuildAlloca(u->b, type, "");
        LLVMBuildStore(u->b, LLVMConstNull(type), u->rows[n].slot);
    }
    u->left = LLVMBuildAlloca(u->b, u->i64, "");
    u->x = LLVMGetParam(u->function, 0);
    u->state = LLVMGetParam(u->function, 1);
    u->frame = bh__jit_field(u, u->x, offsetof(bh__ptx_exec, bases), u->ptr);
    u->mask = bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, mask), u->i32);
    u->limit = bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, limit), u->i32);
    u->lanes = LLVMBuildBitCast(u->b, u->mask, LLVMVectorType(u->i1, LANES), "");
    LLVMBuildStore(u->b, bh__jit_field(u, u->state, offsetof(bh__ptx_group_state, left), u->i64),
                   u->left);
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
    LLVMBasicBlockRef first = new_block(u), refuse = new_block(u);
    LLVMValueRef choice = make_prologue(u, refuse);
    LLVMBasicBlockRef prologue = LLVMGetInstructionParent(choice);
    LLVMMoveBasicBlockBefore(prologue, first);
    LLVMDeleteBasicBlock(first);
    start_at(u, refuse);
    LLVMBuildRet(u->b, outcome(u, COMPILED_NOT));
    for (uint32_t n = 0; n < u->block_count; n++) {
        u->blocks[n].body = new_block(u);
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        LLVMBasicBlockRef entry = new_block(u);
        LLVMAddCase(choice, bh__jit_int(u, u->i32, u->first + u->blocks[n].first), entry);
        start_at(u, entry);
        make_entry(u, &u->blocks[n], refuse);
        make_block(u, &u->blocks[n]);
    }
    return !u->failed || bh__jit_refuse(u, "there is no memory to compile it");
}
