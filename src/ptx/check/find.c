/* SPDX-License-Identifier: Apache-2.0 */
/* Checks: what was found, each once, and how many times it happened. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/debug/debug.h"

/* Called with the lock held. */
static bh__ptx_finding *find(bh__ptx_check *check, bh__ptx_fault_kind kind, uint32_t code,
                             uint32_t other) {
    uint32_t count = atomic_load_explicit(&check->finding_count, memory_order_relaxed);
    for (uint32_t n = 0; n < count; n++) {
        bh__ptx_finding *f = &check->findings[n];
        /* Of a race it does not matter which access came first. */
        bool same = (f->here.code == code && f->other.code == other) ||
                    (f->here.code == other && f->other.code == code);
        if (f->fault.kind == kind && same) {
            return f;
        }
    }
    return NULL;
}

static void count_occurrence(bh__ptx_check *check, bh__ptx_finding *f) {
    f->count++;
    if (++check->occurrences >= BH__PTX_OCCURRENCES) {
        atomic_store(&check->over, true);
    }
}

static uint32_t code_of(const bh__ptx_exec *x) {
    return (uint32_t)(x->code - x->module->code);
}

static bool seen(bh__ptx_exec *x, bh__ptx_fault_kind kind, uint32_t code, uint32_t other) {
    pthread_mutex_lock(&x->check->lock);
    bh__ptx_finding *f = find(x->check, kind, code, other);
    if (f != NULL) {
        count_occurrence(x->check, f);
    }
    pthread_mutex_unlock(&x->check->lock);
    return f != NULL;
}

bool bh__check_seen(bh__ptx_exec *x, bh__ptx_fault_kind kind, uint32_t other) {
    return seen(x, kind, code_of(x), other);
}

bool bh__check_seen_at(bh__ptx_exec *x, bh__ptx_fault_kind kind, uint32_t code) {
    return seen(x, kind, code, NO_CODE);
}

static void set_source(const bh__ptx_module *m, bh__ptx_finding_place *place) {
    const bh__ptx_site *site = &m->sites[place->code];
    const char *text;
    uint32_t length;
    place->line = bh__ptx_shown_line(m, site->line, &text, &length);
    for (uint32_t n = 0; site->loc_line != 0 && n < m->file_count; n++) {
        const bh__ptx_file *file = &m->files[n];
        if (file->number == site->loc_file) {
            bh__ptx_quote(m, file->start, file->length, place->file, sizeof place->file);
            place->source_line = site->loc_line;
            return;
        }
    }
}

static void unfold(uint32_t index, const uint32_t dims[3], uint32_t out[3]) {
    out[0] = index % dims[0];
    out[1] = index / dims[0] % dims[1];
    out[2] = index / dims[0] / dims[1];
}

static void set_other(const bh__ptx_exec *x, bh__check_record record,
                      bh__ptx_finding_place *place) {
    const bh__check_site *s = bh__check_site_of(x->check, record);
    place->code = s->code;
    place->read = !(s->flags & ACCESS_WRITE) || s->flags & ACCESS_ATOMIC;
    place->write = s->flags & ACCESS_WRITE;
    unfold(s->block, x->grid->grid, place->block);
    unfold(s->warp * LANES + RECORD_LANE(record), x->grid->block, place->thread);
    set_source(x->module, place);
}

static void found(bh__ptx_exec *x, const bh__ptx_fault *fault, uint32_t code,
                  bh__check_record other) {
    bh__ptx_finding new = {.fault = *fault, .here.code = code, .other.code = NO_CODE};
    memcpy(new.here.block, fault->block, sizeof new.here.block);
    memcpy(new.here.thread, fault->thread, sizeof new.here.thread);
    new.here.write = fault->write;
    new.here.read = fault->size > 0 && !fault->write;
    set_source(x->module, &new.here);
    if (other != 0) {
        set_other(x, other, &new.other);
    }
    bh__ptx_check *check = x->check;
    pthread_mutex_lock(&check->lock);
    /* Another thread may have found the same meanwhile. */
    bh__ptx_finding *f = find(check, fault->kind, new.here.code, new.other.code);
    uint32_t count = atomic_load_explicit(&check->finding_count, memory_order_relaxed);
    bool first = f == NULL && count == 0;
    if (f == NULL && count < BH__PTX_FINDINGS) {
        f = &check->findings[count];
        *f = new;
        atomic_store(&check->finding_count, count + 1);
    }
    if (f != NULL) {
        count_occurrence(check, f);
    }
    if (count + 1 >= BH__PTX_FINDINGS) {
        atomic_store(&check->over, true);
    }
    pthread_mutex_unlock(&check->lock);
    if (first) { /* so that no other thread does it */
        check->state = bh__ptx_state_of_fault(x, fault);
    }
}

void bh__check_found(bh__ptx_exec *x, const bh__ptx_fault *fault, bh__check_record other) {
    found(x, fault, code_of(x), other);
}

void bh__check_found_at(bh__ptx_exec *x, const bh__ptx_fault *fault, uint32_t code) {
    found(x, fault, code, 0);
}

void bh__check_report(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane, const char *format,
                      ...) {
    if (bh__check_seen(x, kind, NO_CODE)) {
        return;
    }
    char what[240];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    bh__ptx_fault fault, *outer = x->fault;
    x->fault = &fault;
    bh__ptx_fault_other(x, kind, lane, "%s", what);
    x->fault = outer;
    bh__check_found(x, &fault, 0);
}

void bh__check_report_access(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane,
                             const bh__check_access *access, const char *what) {
    if (bh__check_seen(x, kind, NO_CODE)) {
        return;
    }
    bh__ptx_fault fault, *outer = x->fault;
    uint64_t address = access->address[lane];
    const char *space = bh__ptx_space_name(access->space);
    x->fault = &fault;
    bh__ptx_fault_other(x, kind, lane, "%s%s of %u bytes at%s%s address 0x%llx%s",
                        kind == BH__PTX_FAULT_MISALIGNED ? "misaligned " : "",
                        access->flags & ACCESS_ATOMIC  ? "atomic operation"
                        : access->flags & ACCESS_WRITE ? "write"
                                                       : "read",
                        access->bytes, space[0] ? " " : "", space, (unsigned long long)address,
                        what);
    x->fault = outer;
    fault.address = address;
    fault.size = access->bytes;
    fault.write = access->flags & ACCESS_WRITE;
    fault.global = address >> BH__PTX_WINDOW_SHIFT == WINDOW_GLOBAL &&
                   access->space != SPACE_SHARED && access->space != SPACE_LOCAL &&
                   access->space != SPACE_PARAM;
    bh__check_found(x, &fault, 0);
}

const bh__ptx_finding *bh__ptx_check_findings(const bh__ptx_check *check, uint32_t *count) {
    *count = atomic_load(&check->finding_count);
    return check->findings;
}

char *bh__ptx_check_take_state(bh__ptx_check *check) {
    char *state = check->state;
    check->state = NULL;
    return state;
}
