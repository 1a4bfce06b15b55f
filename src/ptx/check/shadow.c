/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: where the undefined bits of registers are kept, which loads they come from, and reports
 * of what they decide. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/check/values.h"

/* ---- rows ---- */

static size_t row_bytes(bh__check_row row) {
    return row.bytes == 0 ? 4 : row.bytes >= 8 ? 8 * LANES : 4 * LANES;
}

/* The row's offset in the register file; SIZE_MAX: nothing is known of it. */
static size_t offset_of(const bh__ptx_exec *x, bh__check_row row) {
    const bh__ptx_warp *w = x->warp;
    if (row.row < 0 || row.row == NO_ROW || w->shadow == NULL) {
        return SIZE_MAX;
    }
    size_t at = (size_t)(x->bases[0] - w->regs) + (uint32_t)row.row;
    return at + row_bytes(row) <= w->shadow->capacity ? at : SIZE_MAX;
}

bool bh__check_row_any(const bh__ptx_exec *x, bh__check_row row) {
    size_t at = offset_of(x, row);
    return at != SIZE_MAX && x->warp->shadow->rows[at / 4];
}

bh__check_undefined bh__check_row_get(const bh__ptx_exec *x, bh__check_row row, unsigned lane) {
    if (!bh__check_row_any(x, row)) {
        return (bh__check_undefined){0, 0};
    }
    const bh__check_shadow *s = x->warp->shadow;
    size_t at = offset_of(x, row);
    const void *bits = s->bits + at;
    if (row.bytes == 0) {
        return (bh__check_undefined){*(const bh__u32 *)bits >> lane & 1, s->origins[at / 4]};
    }
    return (bh__check_undefined){row.bytes >= 8 ? ((const bh__u64 *)bits)[lane]
                                                : ((const bh__u32 *)bits)[lane],
                                 s->origins[at / 4 + lane]};
}

/* Makes the shadow as large as the register file. */
static bool room(bh__ptx_exec *x) {
    bh__ptx_warp *w = x->warp;
    if (w->shadow == NULL) {
        w->shadow = calloc(1, sizeof *w->shadow);
    }
    bh__check_shadow *s = w->shadow;
    if (s == NULL || s->capacity >= w->regs_capacity) {
        return s != NULL;
    }
    bh__check_shadow grown = {.capacity = w->regs_capacity,
                              .bits = calloc(1, w->regs_capacity),
                              .origins = calloc(1, w->regs_capacity),
                              .rows = calloc(1, w->regs_capacity / 4 + 1)};
    bool ok = grown.bits != NULL && grown.origins != NULL && grown.rows != NULL;
    if (ok && s->capacity > 0) {
        memcpy(grown.bits, s->bits, s->capacity);
        memcpy(grown.origins, s->origins, s->capacity);
        memcpy(grown.rows, s->rows, s->capacity / 4);
    }
    bh__check_shadow old = ok ? *s : grown;
    if (ok) {
        *s = grown;
    }
    free(old.bits);
    free(old.origins);
    free(old.rows);
    return ok;
}

static void put(bh__check_shadow *s, size_t at, bh__check_row row, unsigned lane,
                bh__check_undefined v) {
    void *bits = s->bits + at;
    if (row.bytes == 0) {
        bh__u32 *word = bits;
        *word = (*word & ~(1u << lane)) | (uint32_t)(v.bits != 0) << lane;
        s->origins[at / 4] = v.bits != 0 ? v.origin : s->origins[at / 4];
        return;
    }
    if (row.bytes >= 8) {
        ((bh__u64 *)bits)[lane] = v.bits;
    } else {
        ((bh__u32 *)bits)[lane] = (uint32_t)v.bits;
    }
    s->origins[at / 4 + lane] = v.origin;
}

void bh__check_row_set(bh__ptx_exec *x, bh__check_row row, uint32_t mask,
                       const bh__check_undefined values[LANES]) {
    uint64_t any = 0;
    FOR_LANES_IN_ORDER(mask) {
        any |= values[l].bits;
    }
    if (any == 0 && !bh__check_row_any(x, row)) {
        return;
    }
    if (!room(x)) {
        atomic_store(&x->check->incomplete, true);
        return;
    }
    bh__check_shadow *s = x->warp->shadow;
    size_t at = offset_of(x, row);
    if (at == SIZE_MAX) {
        return;
    }
    FOR_LANES_IN_ORDER(mask) {
        put(s, at, row, l, values[l]);
    }
    const bh__u32 *words = (const bh__u32 *)(const void *)(s->bits + at);
    uint32_t left = 0;
    for (size_t n = 0; n < row_bytes(row) / 4; n++) {
        left |= words[n];
    }
    x->warp->undefined += (uint32_t)(left != 0) - s->rows[at / 4];
    s->rows[at / 4] = left != 0;
}

void bh__check_forget_registers(bh__ptx_warp *w, uint32_t base, uint32_t size) {
    bh__check_shadow *s = w->shadow;
    if (w->undefined == 0 || s == NULL || base >= s->capacity) {
        return;
    }
    size_t bytes = size < s->capacity - base ? size : s->capacity - base;
    for (size_t n = base / 4; n < (base + bytes) / 4; n++) {
        w->undefined -= s->rows[n];
        s->rows[n] = 0;
    }
    memset(s->bits + base, 0, bytes);
}

void bh__check_shadow_free(bh__check_shadow *s) {
    if (s != NULL) {
        free(s->bits);
        free(s->origins);
        free(s->rows);
        free(s);
    }
}

/* ---- origins ---- */

uint32_t bh__check_origin_new(bh__ptx_exec *x, const bh__check_access *access, unsigned lane,
                              bool whole, bool global, bool padding) {
    bh__check_block *c = x->block->check;
    if (c->origins == NULL) {
        c->origins = calloc(ORIGINS, sizeof *c->origins);
    }
    if (c->origins == NULL) {
        return 0;
    }
    c->origin_count = (c->origin_count + 1) & ~ORIGIN_COMPUTED;
    c->origins[c->origin_count % ORIGINS] =
        (bh__check_origin){.id = c->origin_count,
                           .code = (uint32_t)(x->code - x->module->code),
                           .address = access->address[lane],
                           .bytes = (uint16_t)access->bytes,
                           .space = (uint8_t)access->space,
                           .whole = whole,
                           .global = global,
                           .padding = padding};
    return c->origin_count;
}

const bh__check_origin *bh__check_origin_of(const bh__ptx_exec *x, uint32_t origin) {
    const bh__check_block *c = x->block->check;
    uint32_t id = origin & ~ORIGIN_COMPUTED;
    bool known = id != 0 && c->origins != NULL && c->origins[id % ORIGINS].id == id;
    return known ? &c->origins[id % ORIGINS] : NULL;
}

/* ---- reports ---- */

static const char *nobody(const bh__check_origin *o) {
    if (o->global) {
        return o->whole ? "where nothing was ever written" : "of which not all was ever written";
    }
    if (o->space == SPACE_LOCAL || o->space == SPACE_PARAM) {
        return o->whole ? "where the thread never wrote a value"
                        : "of which the thread never wrote some bits";
    }
    return o->whole ? "where no value was written" : "of which some bits were not written";
}

void bh__check_report_use(bh__ptx_exec *x, unsigned lane, uint32_t origin, const char *use) {
    const bh__check_origin *o = bh__check_origin_of(x, origin);
    uint32_t here = (uint32_t)(x->code - x->module->code);
    char place[BH__PTX_PLACE];
    bh__ptx_place(x->module, x->module->sites[here].line, place);
    if (o == NULL) {
        bh__check_report(x, BH__PTX_FAULT_UNINITIALISED, lane,
                         "%s comes from memory that nobody wrote", use);
        return;
    }
    if (bh__check_seen_at(x, BH__PTX_FAULT_UNINITIALISED, o->code)) {
        return;
    }
    bh__ptx_fault fault, *outer = x->fault;
    const bh__ptx_code *code = x->code;
    const char *space = bh__ptx_space_name((bh__ptx_space)o->space);
    x->fault = &fault;
    x->code = &x->module->code[o->code];
    bh__ptx_fault_other(x, BH__PTX_FAULT_UNINITIALISED, lane,
                        "read of %u bytes at%s%s address 0x%llx, %s; %s on PTX %.60s",
                        (unsigned)o->bytes, space[0] ? " " : "", space,
                        (unsigned long long)o->address, nobody(o), use, place);
    x->fault = outer;
    x->code = code;
    fault.address = o->address;
    fault.size = o->bytes;
    fault.global = o->global;
    bh__check_found_at(x, &fault, o->code);
}
