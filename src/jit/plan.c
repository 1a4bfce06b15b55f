/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel as steps, rows and blocks; which rows are alive where. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "jit/unit.h"

bool bh__jit_refuse(bh__jit_unit *u, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(u->result->note, sizeof u->result->note, format, list);
    va_end(list);
    return false;
}

static bool no_memory(bh__jit_unit *u) {
    return bh__jit_refuse(u, "there is no memory to compile it");
}

int32_t bh__jit_row_index(const bh__jit_unit *u, int32_t row) {
    if (row < HEADER_BYTES || (uint32_t)row / 4 >= u->frame_words) {
        return -1;
    }
    return u->row_at[row / 4];
}

/* ---- rows ---- */

static void add_row(bh__jit_unit *u, int32_t row, unsigned bytes) {
    if (bytes > 8 || row < HEADER_BYTES || (uint32_t)row / 4 >= u->frame_words ||
        u->row_at[row / 4] >= 0 || u->row_count == u->row_capacity) {
        return;
    }
    uint8_t kind = bytes == 0 ? KIND_PREDICATE : bytes == 8 ? KIND_WIDE : KIND_WORD;
    u->row_at[row / 4] = (int32_t)u->row_count;
    u->rows[u->row_count++] = (bh__jit_row){.row = row, .kind = kind};
}

static bool is_temporary(const bh__jit_unit *u, const bh__jit_step *s) {
    const bh__jit_request *r = u->request;
    bool made =
        s->code->run == r->run_sreg || s->code->run == r->run_address || s->code->run == r->run_not;
    return s->insn != NULL && s->code->kind == CODE_RUN && made;
}

/* Rows that only handlers touch stay in the frame; to have them all here is simpler. */
static bool list_rows(bh__jit_unit *u) {
    const bh__ptx_function *f = u->request->function;
    u->frame_words = f->frame_bytes / 4;
    u->row_capacity = f->reg_count + u->step_count;
    u->row_at = bh__arena_alloc(&u->arena, u->frame_words + 1, sizeof *u->row_at);
    u->rows = bh__arena_alloc(&u->arena, u->row_capacity + 1, sizeof *u->rows);
    if (u->row_at == NULL || u->rows == NULL) {
        return no_memory(u);
    }
    memset(u->row_at, 0xff, (u->frame_words + 1) * sizeof *u->row_at);
    for (uint32_t n = 0; n < f->reg_count; n++) {
        if (f->regs[n].row != 0) {
            add_row(u, (int32_t)f->regs[n].row, bh__ptx_bytes(f->regs[n].type));
        }
    }
    for (uint32_t n = 0; n < u->step_count; n++) {
        const bh__jit_step *s = &u->steps[n];
        if (is_temporary(u, s)) {
            add_row(u, s->code->d, s->code->run == u->request->run_not ? 0 : s->code->bytes);
        }
    }
    if (u->row_count > BH__JIT_MAX_ROWS) {
        return bh__jit_refuse(u, "it has %u registers, more than %u", (unsigned)u->row_count,
                              (unsigned)BH__JIT_MAX_ROWS);
    }
    u->words = (u->row_count + 63) / 64;
    return true;
}

/* ---- what a step reads and writes ---- */

typedef struct refs {
    uint32_t at[2 * MAX_REFS];
    uint32_t count;
    bool full;
} refs;

static void note(const bh__jit_unit *u, refs *list, int32_t row) {
    int32_t index = bh__jit_row_index(u, row);
    for (uint32_t n = 0; index >= 0 && n < list->count; n++) {
        if (list->at[n] == (uint32_t)index) {
            return;
        }
    }
    if (index >= 0 && list->count == 2 * MAX_REFS) {
        list->full = true;
    } else if (index >= 0) {
        list->at[list->count++] = (uint32_t)index;
    }
}

static void note_operand(const bh__jit_unit *u, refs *list, const bh__ptx_operand *o) {
    bool has_register = o->kind == OPERAND_REG || (o->kind == OPERAND_MEMORY && o->has_reg);
    if (has_register) {
        note(u, list, (int32_t)u->request->function->regs[o->reg].row);
    }
    for (uint32_t n = 0; o->elements != NULL && o->kind != OPERAND_REG && n < o->count; n++) {
        note_operand(u, list, &o->elements[n]);
    }
}

/* Whether the table of operations says which operands are results; others may be both. */
static bool is_result(const bh__ptx_insn *insn, uint32_t operand, bool *known) {
    const char *s = bh__ptx_op_table[insn->op].operands;
    *known = true;
    if (insn->op == OP_MOV || insn->op == OP_CVTA) {
        return operand == 0;
    }
    if (*s == '*') {
        *known = false;
        return true;
    }
    uint32_t n = 0;
    bool result = false;
    for (; *s != 0; s++) {
        if (*s == '=') {
            result = true;
        } else if (*s != ' ' && *s != '?') {
            if (n++ == operand) {
                return result;
            }
            result = false;
        }
    }
    return false;
}

static void note_step(bh__jit_unit *u, uint32_t at, refs *uses, refs *defs) {
    bh__jit_step *s = &u->steps[at];
    const bh__ptx_code *c = s->code;
    bool guarded = c->guard != NO_ROW;
    note(u, uses, guarded ? c->guard : 0);
    s->guard = guarded ? bh__jit_row_index(u, c->guard) : -1;
    if (s->insn == NULL) {
        return;
    }
    if (is_temporary(u, s)) {
        note(u, defs, c->d);
        note(u, uses, c->run == u->request->run_not ? c->a : 0);
    } else {
        for (uint32_t n = 0; n < s->insn->operand_count; n++) {
            bool known, result = is_result(s->insn, n, &known);
            if (result) {
                note_operand(u, defs, &s->insn->operands[n]);
            }
            if (!result || !known) {
                note_operand(u, uses, &s->insn->operands[n]);
            }
        }
        for (uint32_t n = at; n > 0 && u->steps[n - 1].insn == s->insn; n--) {
            if (is_temporary(u, &u->steps[n - 1])) {
                note(u, uses, u->steps[n - 1].code->d);
            }
        }
    }
    for (uint32_t n = 0; guarded && n < defs->count; n++) { /* lanes that it leaves out */
        note(u, uses, u->rows[defs->at[n]].row);
    }
}

static uint32_t *copy_refs(bh__jit_unit *u, const refs *list) {
    uint32_t *copy = bh__arena_alloc(&u->arena, list->count + 1, sizeof *copy);
    if (copy != NULL) {
        memcpy(copy, list->at, list->count * sizeof *copy);
    }
    return copy;
}

static bool list_refs(bh__jit_unit *u) {
    for (uint32_t n = 0; n < u->step_count; n++) {
        bh__jit_step *s = &u->steps[n];
        refs uses = {.count = 0}, defs = {.count = 0};
        note_step(u, n, &uses, &defs);
        if (uses.full || defs.full) {
            return bh__jit_refuse(u, "%s has more than %u operands",
                                  bh__ptx_op_table[s->insn->op].mnemonic, 2 * MAX_REFS);
        }
        s->uses = copy_refs(u, &uses);
        s->defs = copy_refs(u, &defs);
        s->use_count = uses.count;
        s->def_count = defs.count;
        if (s->uses == NULL || s->defs == NULL) {
            return no_memory(u);
        }
    }
    return true;
}

/* ---- steps ---- */

static bool list_steps(bh__jit_unit *u) {
    const bh__ptx_module *m = u->request->module;
    const bh__ptx_function *f = u->request->function;
    uint32_t end = f->code;
    while (end < m->code_count && m->sites[end].insn < f->insn_count) {
        end++;
    }
    end++; /* the exit at the end */
    u->first = f->code;
    u->step_count = end - f->code;
    if (u->step_count > BH__JIT_MAX_CODE) {
        return bh__jit_refuse(u, "it has %u instructions, more than %u", (unsigned)u->step_count,
                              (unsigned)BH__JIT_MAX_CODE);
    }
    u->steps = bh__arena_alloc(&u->arena, u->step_count, sizeof *u->steps);
    if (u->steps == NULL) {
        return no_memory(u);
    }
    for (uint32_t n = 0; n < u->step_count; n++) {
        bh__jit_step *s = &u->steps[n];
        uint32_t insn = m->sites[f->code + n].insn;
        memset(s, 0, sizeof *s);
        s->code = &m->code[f->code + n];
        s->insn = insn < f->insn_count ? &f->insns[insn] : NULL;
        s->op =
            s->insn == NULL ? JIT_EXIT : bh__jit_select(u->request, s->code, s->insn, &s->uniform);
        s->sync = s->code->kind == CODE_SYNC;
        s->guard = -1;
    }
    return true;
}

/* ---- blocks ---- */

static bool ends_block(const bh__jit_step *s) {
    return s->op == JIT_BRANCH || s->op == JIT_EXIT || s->op == JIT_STOP || s->sync;
}

static bool mark_leaders(bh__jit_unit *u) {
    u->block_at = bh__arena_alloc(&u->arena, u->step_count + 1, sizeof *u->block_at);
    if (u->block_at == NULL) {
        return no_memory(u);
    }
    memset(u->block_at, 0xff, (u->step_count + 1) * sizeof *u->block_at);
    u->block_at[0] = 0;
    for (uint32_t n = 0; n < u->step_count; n++) {
        const bh__ptx_code *c = u->steps[n].code;
        if (ends_block(&u->steps[n])) {
            u->block_at[n + 1] = 0;
        }
        if (c->kind == CODE_BRA) {
            u->block_at[c->target - u->first] = 0;
        } else if (c->kind == CODE_BRX) {
            const bh__ptx_targets *t = c->extra;
            for (uint32_t k = 0; k < t->count; k++) {
                u->block_at[t->at[k] - u->first] = 0;
            }
        }
    }
    return true;
}

static void link_block(bh__jit_unit *u, bh__jit_block *b) {
    const bh__jit_step *last = &u->steps[b->end - 1];
    bool guarded = last->code->guard != NO_ROW;
    int32_t after = b->end < u->step_count ? u->block_at[b->end] : -1;
    b->next[0] = b->next[1] = -1;
    if (last->op == JIT_BRANCH) {
        b->next[0] = u->block_at[last->code->target - u->first];
        b->next[1] = guarded ? after : -1;
    } else if (last->code->kind != CODE_EXIT || guarded) {
        b->next[0] = after;
    }
}

static uint64_t *new_set(bh__jit_unit *u, uint32_t words) {
    uint64_t *set = bh__arena_alloc(&u->arena, words + 1, sizeof *set);
    if (set != NULL) {
        memset(set, 0, (words + 1) * sizeof *set);
    }
    return set;
}

static bool make_sets(bh__jit_unit *u) {
    u->block_words = (u->block_count + 63) / 64;
    for (uint32_t n = 0; n < u->block_count; n++) {
        bh__jit_block *b = &u->blocks[n];
        b->live = new_set(u, u->words);
        b->keep = new_set(u, u->words);
        b->pending = new_set(u, u->block_words);
        if (b->live == NULL || b->keep == NULL || b->pending == NULL) {
            return no_memory(u);
        }
    }
    return true;
}

/* The interpreter hands lanes over where loops begin and after what it runs itself. */
static void mark_entries(bh__jit_unit *u) {
    for (uint32_t n = 0; n < u->block_count; n++) {
        const bh__jit_step *before = n == 0 ? NULL : &u->steps[u->blocks[n].first - 1];
        u->blocks[n].entered =
            before == NULL || u->blocks[n].loops || before->op == JIT_STOP || before->sync;
    }
    for (uint32_t n = 0; n < u->step_count; n++) {
        const bh__ptx_code *c = u->steps[n].code;
        const bh__ptx_targets *t = c->kind == CODE_BRX ? c->extra : NULL;
        for (uint32_t k = 0; t != NULL && k < t->count; k++) {
            u->blocks[u->block_at[t->at[k] - u->first]].entered = true;
        }
    }
}

static bool list_blocks(bh__jit_unit *u) {
    if (!mark_leaders(u)) {
        return false;
    }
    u->blocks = bh__arena_alloc(&u->arena, u->step_count + 1, sizeof *u->blocks);
    if (u->blocks == NULL) {
        return no_memory(u);
    }
    for (uint32_t n = 0; n < u->step_count; n++) {
        if (u->block_at[n] >= 0) {
            bh__jit_block *b = &u->blocks[u->block_count];
            memset(b, 0, sizeof *b);
            b->first = n;
            u->block_at[n] = (int32_t)u->block_count++;
        }
        u->blocks[u->block_count - 1].end = n + 1;
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        link_block(u, &u->blocks[n]);
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        const bh__jit_step *last = &u->steps[u->blocks[n].end - 1];
        int32_t to = last->op == JIT_BRANCH ? u->blocks[n].next[0] : -1;
        if (to >= 0 && to <= (int32_t)n) {
            u->blocks[to].loops = true;
        }
    }
    mark_entries(u);
    return make_sets(u);
}

/* ---- what is alive ---- */

static void step_backwards(const bh__jit_step *s, uint64_t *set) {
    for (uint32_t n = 0; n < s->def_count; n++) {
        set[s->defs[n] / 64] &= ~(UINT64_C(1) << (s->defs[n] % 64));
    }
    for (uint32_t n = 0; n < s->use_count; n++) {
        ROW_PUT(set, s->uses[n]);
    }
}

static void live_at_end(const bh__jit_unit *u, const bh__jit_block *b, uint64_t *out) {
    memset(out, 0, (u->words + 1) * sizeof *out);
    const bh__ptx_code *last = u->steps[b->end - 1].code;
    if (last->kind == CODE_BRX) {
        const bh__ptx_targets *t = last->extra;
        for (uint32_t k = 0; k < t->count; k++) {
            const bh__jit_block *to = &u->blocks[u->block_at[t->at[k] - u->first]];
            for (uint32_t w = 0; w < u->words; w++) {
                out[w] |= to->live[w];
            }
        }
    }
    for (int k = 0; k < 2; k++) {
        for (uint32_t w = 0; b->next[k] >= 0 && w < u->words; w++) {
            out[w] |= u->blocks[b->next[k]].live[w];
        }
    }
}

void bh__jit_live_before(const bh__jit_unit *u, uint32_t step, uint64_t *out) {
    uint32_t first = step;
    while (u->block_at[first] < 0) {
        first--;
    }
    const bh__jit_block *b = &u->blocks[u->block_at[first]];
    live_at_end(u, b, out);
    for (uint32_t n = b->end; n > step; n--) {
        step_backwards(&u->steps[n - 1], out);
    }
}

static bool find_live(bh__jit_unit *u) {
    uint64_t *set = bh__arena_alloc(&u->arena, u->words + 1, sizeof *set);
    if (set == NULL) {
        return no_memory(u);
    }
    bool changed = true;
    while (changed) {
        changed = false;
        for (uint32_t n = u->block_count; n > 0; n--) {
            bh__jit_block *b = &u->blocks[n - 1];
            bh__jit_live_before(u, b->first, set);
            if (memcmp(set, b->live, u->words * sizeof *set) != 0) {
                memcpy(b->live, set, u->words * sizeof *set);
                changed = true;
            }
        }
    }
    uint32_t moves = 0;
    for (uint32_t n = 0; n < u->block_count; n++) {
        for (uint32_t w = 0; u->blocks[n].entered && w < u->words; w++) {
            moves += (uint32_t)__builtin_popcountll(u->blocks[n].live[w]);
        }
    }
    if (moves > BH__JIT_MAX_MOVES) {
        return bh__jit_refuse(u,
                              "%u registers are alive at its %u labels and barriers, all added "
                              "up; %u is the limit",
                              (unsigned)moves, (unsigned)u->block_count,
                              (unsigned)BH__JIT_MAX_MOVES);
    }
    return true;
}

/* ---- the stack ---- */

static uint32_t bytes_of(const bh__jit_unit *u, const bh__jit_row *r) {
    uint32_t lanes = r->class == CLASS_VARYING ? LANES : r->parted ? u->parts : 1;
    return r->kind == KIND_WIDE ? 8 * lanes : r->kind == KIND_WORD ? 4 * lanes : 4;
}

static uint32_t bytes_alive(const bh__jit_unit *u, const uint64_t *live) {
    uint32_t bytes = 0;
    for (uint32_t n = 0; n < u->row_count; n++) {
        bytes += ROW_IN(live, n) ? bytes_of(u, &u->rows[n]) : 0;
    }
    return bytes;
}

bool bh__jit_fits_stack(bh__jit_unit *u) {
    uint64_t *live = bh__arena_alloc(&u->arena, u->words + 1, sizeof *live);
    uint32_t most = 0;
    if (live == NULL) {
        return no_memory(u);
    }
    for (uint32_t n = 0; n < u->block_count; n++) {
        const bh__jit_block *b = &u->blocks[n];
        live_at_end(u, b, live);
        for (uint32_t at = b->end; at > b->first; at--) {
            step_backwards(&u->steps[at - 1], live);
            uint32_t bytes = bytes_alive(u, live);
            most = bytes > most ? bytes : most;
        }
    }
    return most <= BH__JIT_MAX_STACK ||
           bh__jit_refuse(u, "its registers need %u bytes of stack at once; %u is the limit",
                          (unsigned)most, (unsigned)BH__JIT_MAX_STACK);
}

bool bh__jit_plan(bh__jit_unit *u) {
    return list_steps(u) && list_rows(u) && list_refs(u) && list_blocks(u) && find_live(u);
}
