/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that are followed step by step: what they execute, values at lines, a line to stop at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/debug/debug.h"

enum { LINE_BYTES = 2048, QUOTED = 99, THREADS = LANES * BH__PTX_DEBUG_WARPS };

#define STOP_BIT (UINT64_C(1) << 63)

/* What to print in one function: a register, or a variable of the source, or nothing. */
typedef struct target {
    uint32_t reg;                            /* or NO_REG */
    const bh__ptx_source_variable *variable; /* or NULL */
} target;

typedef struct point { /* of --print */
    const char *name;  /* Owned by the debug object */
    target *in;        /* by index of the function */
} point;

struct bh__ptx_debug {
    const bh__ptx_module *module;
    uint32_t block[3];
    uint32_t threads[BH__PTX_DEBUG_WARPS];
    bool trace, stops;
    uint64_t limit;
    uint64_t *at; /* for each element of module->code: bits of points, and STOP_BIT */
    point points[BH__PTX_DEBUG_POINTS];
    uint32_t point_count;
    uint8_t **types; /* by index of the function */
    char *names;     /* of the points, one after the other */
    bh__ptx_variables variables;
};

/* ---- lines ---- */

typedef struct place { /* "31", "saxpy.cu:4" */
    const char *text;  /* as given, for messages */
    const char *file;
    size_t file_length; /* 0: a line of the PTX */
    uint32_t line;
} place;

static bh_status refuse(bh_error *error, const char *option, const char *text, const char *fix,
                        const char *what) {
    return bh__fail(error, BH_E_INVALID, fix, "%s \"%.100s\": %s", option, text, what);
}

static bh_status read_place(const char *text, const char *option, bh_error *error, place *out) {
    const char *colon = strrchr(text, ':');
    const char *digits = colon != NULL ? colon + 1 : text;
    uint64_t line = 0;
    size_t count = strspn(digits, "0123456789");
    for (size_t n = 0; n < count && n < 10; n++) {
        line = line * 10 + (uint64_t)(digits[n] - '0');
    }
    if (count == 0 || count > 9 || digits[count] != '\0' || line == 0 || colon == text) {
        return refuse(error, option, text, "write a line of the PTX, or FILE:LINE of the source",
                      "this is not a line");
    }
    *out = (place){.text = text,
                   .file = text,
                   .file_length = colon != NULL ? (size_t)(colon - text) : 0,
                   .line = (uint32_t)line};
    return BH_OK;
}

static bool same_name(const place *p, const char *name, size_t length) {
    return p->file_length == length && memcmp(p->file, name, length) == 0;
}

/* The line of an instruction in what `p` names, the PTX or a file; 0: it is of another file. */
static uint32_t line_in(const bh__ptx_module *m, const place *p, const bh__ptx_site *site) {
    const char *file;
    uint32_t length, shown = bh__ptx_shown_line(m, site->line, &file, &length);
    if (p->file_length == 0 || (file != NULL && same_name(p, file, length))) {
        return shown;
    }
    for (uint32_t n = 0; site->loc_line != 0 && n < m->file_count; n++) {
        const bh__ptx_file *f = &m->files[n];
        if (f->number == site->loc_file) {
            return same_name(p, m->text + f->start, f->length) ? site->loc_line : 0;
        }
    }
    return 0;
}

/* The code of a function, [*first, *end); empty if it is a kernel other than this one. */
static void code_of(const bh__ptx_module *m, uint32_t function, const bh__ptx_function *kernel,
                    uint32_t *first, uint32_t *end) {
    const bh__ptx_function *f = m->functions[function];
    *first = *end = 0;
    if (!f->defined || (f->entry && f != kernel)) {
        return;
    }
    *first = f->code;
    *end = m->code_count;
    for (uint32_t n = function + 1; n < m->function_count; n++) {
        if (m->functions[n]->defined) { /* their code lies in the same order */
            *end = m->functions[n]->code;
            break;
        }
    }
    --*end; /* the return that no line has */
}

/* Sets `bit` for the instructions of a line. The first of each function is passed to `found`. */
typedef bh_status found_line(void *context, uint32_t function, uint32_t code);

static bh_status mark_line(bh__ptx_debug *d, const bh__ptx_function *kernel, const place *p,
                           const char *option, uint64_t bit, found_line *found, void *context,
                           bh_error *error) {
    const bh__ptx_module *m = d->module;
    uint32_t before = 0, after = 0, count = 0;
    for (uint32_t n = 0; n < m->function_count; n++) {
        uint32_t c, end;
        bool any = false;
        for (code_of(m, n, kernel, &c, &end); c < end; c++) {
            uint32_t line = line_in(m, p, &m->sites[c]);
            if (line == p->line) {
                bh_status status = !any && found != NULL ? found(context, n, c) : BH_OK;
                if (status != BH_OK) {
                    return status;
                }
                d->at[c] |= bit;
                any = true;
                count++;
            } else if (line != 0 && line < p->line && line > before) {
                before = line;
            } else if (line > p->line && (after == 0 || line < after)) {
                after = line;
            }
        }
    }
    if (count > 0) {
        return BH_OK;
    }
    char fix[120];
    if (before == 0 && after == 0) {
        snprintf(fix, sizeof fix, "name a file as .file does in the PTX, without folders");
    } else if (before == 0 || after == 0) {
        snprintf(fix, sizeof fix, "the nearest line with instructions is %u",
                 (unsigned)(before != 0 ? before : after));
    } else {
        snprintf(fix, sizeof fix, "the nearest lines with instructions are %u and %u",
                 (unsigned)before, (unsigned)after);
    }
    return refuse(error, option, p->text, fix, "there is no instruction on this line");
}

/* ---- what to print ---- */

typedef struct finding_point {
    bh__ptx_debug *d;
    point *point;
    uint32_t found;
    bh_error *error;
} finding_point;

static bh_status find_target(void *context, uint32_t function, uint32_t code) {
    finding_point *self = context;
    const bh__ptx_module *m = self->d->module;
    const bh__ptx_function *f = m->functions[function];
    uint32_t reg =
        bh__ptx_register_find(f, self->point->name, strlen(self->point->name), m->sites[code].text);
    target *in = &self->point->in[function];
    if (reg != NO_REG && f->regs[reg].row != 0) {
        in->reg = reg;
    } else {
        in->variable =
            bh__ptx_variables_find(&self->d->variables, self->point->name, m->sites[code].text);
    }
    self->found += in->reg != NO_REG || in->variable != NULL;
    return BH_OK;
}

typedef struct naming {
    const bh__ptx_function *f;
    bh__ptx_string *text;
} naming;

static void name_register(void *context, uint32_t reg, bool written) {
    const naming *self = context;
    (void)written;
    if (self->f->regs[reg].name != NULL) {
        bh__ptx_string_add(self->text, "%s", self->text->length > 0 ? ", " : "");
        bh__ptx_register_name(self->text, &self->f->regs[reg]);
    }
}

/* "the instruction there uses: %r1, %rd2": the first one that has this bit. */
static void suggest(const bh__ptx_debug *d, const bh__ptx_function *kernel, uint64_t bit, char *out,
                    size_t size) {
    const bh__ptx_module *m = d->module;
    char names[120] = "";
    bh__ptx_string text = {.at = names, .capacity = sizeof names};
    for (uint32_t n = 0; n < m->function_count && text.length == 0; n++) {
        naming self = {m->functions[n], &text};
        uint32_t c, end;
        for (code_of(m, n, kernel, &c, &end); c < end && text.length == 0; c++) {
            if (d->at[c] & bit) {
                bh__ptx_registers_visit(&self.f->insns[m->sites[c].insn], name_register, &self);
            }
        }
    }
    snprintf(out, size, "%s%s",
             names[0] != '\0' ? "the instruction there uses: " : "name a register of the function",
             names);
}

/* REG@LINE */
static bh_status add_point(bh__ptx_debug *d, const bh__ptx_function *kernel, const char *text,
                           char **names, bh_error *error) {
    static const char option[] = "bh_debug_options.prints";
    const char *at = strrchr(text, '@');
    if (at == NULL || at == text) {
        return refuse(error, option, text, "write REGISTER@LINE, for example %r7@31",
                      "there is no register and line");
    }
    place p;
    bh_status status = read_place(at + 1, option, error, &p);
    if (status != BH_OK) {
        return status;
    }
    p.text = text;
    point *new = &d->points[d->point_count];
    new->name = *names;
    memcpy(*names, text, (size_t)(at - text));
    *names += at - text;
    *(*names)++ = '\0';
    new->in = malloc((d->module->function_count + 1) * sizeof *new->in);
    if (new->in == NULL) {
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory to debug a kernel");
    }
    for (uint32_t n = 0; n < d->module->function_count; n++) {
        new->in[n] = (target){.reg = NO_REG};
    }
    uint64_t bit = UINT64_C(1) << d->point_count++;
    finding_point finding = {d, new, 0, error};
    status = mark_line(d, kernel, &p, option, bit, find_target, &finding, error);
    if (status == BH_OK && finding.found == 0) {
        char fix[200];
        suggest(d, kernel, bit, fix, sizeof fix);
        return refuse(error, option, text, fix,
                      "there is no such register or variable on this line");
    }
    return status;
}

static bool make_types(bh__ptx_debug *d) {
    const bh__ptx_module *m = d->module;
    d->types = calloc((size_t)m->function_count + 1, sizeof *d->types);
    for (uint32_t n = 0; d->types != NULL && n < m->function_count; n++) {
        d->types[n] = bh__ptx_registers_types(m->functions[n]);
        if (d->types[n] == NULL) {
            return false;
        }
    }
    return d->types != NULL;
}

static bh_status fill(bh__ptx_debug *d, const bh__ptx_kernel *kernel,
                      const bh__ptx_debug_wish *wish, bh_error *error) {
    const bh__ptx_module *m = d->module;
    const bh__ptx_function *f = m->kernel_functions[kernel - m->kernels];
    size_t bytes = 1;
    for (uint32_t n = 0; n < wish->print_count; n++) {
        bytes += strlen(wish->prints[n]) + 1;
    }
    d->at = calloc((size_t)m->code_count + 1, sizeof *d->at);
    char *names = d->names = malloc(bytes);
    bh__ptx_variables_read(m, &d->variables);
    if (d->at == NULL || names == NULL || !make_types(d)) {
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory to debug a kernel");
    }
    bh_status status = BH_OK;
    for (uint32_t n = 0; n < wish->print_count && status == BH_OK; n++) {
        status = add_point(d, f, wish->prints[n], &names, error);
    }
    static const char option[] = "bh_debug_options.stop";
    place p;
    if (status == BH_OK && wish->stop != NULL) {
        status = read_place(wish->stop, option, error, &p);
        if (status == BH_OK) {
            status = mark_line(d, f, &p, option, STOP_BIT, NULL, NULL, error);
        }
    }
    return status;
}

bh_status bh__ptx_debug_create(const bh__ptx_module *module, const bh__ptx_kernel *kernel,
                               const bh__ptx_debug_wish *wish, bh_error *error,
                               bh__ptx_debug **out) {
    *out = NULL;
    if (wish->print_count > BH__PTX_DEBUG_POINTS) {
        return bh__fail(error, BH_E_INVALID, "print fewer registers",
                        "%u registers to print; at most %d are possible",
                        (unsigned)wish->print_count, BH__PTX_DEBUG_POINTS);
    }
    bh__ptx_debug *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory", "no memory to debug a kernel");
    }
    d->module = module;
    d->trace = wish->trace;
    d->stops = wish->stop != NULL;
    d->limit = wish->limit;
    memcpy(d->block, wish->block, sizeof d->block);
    memcpy(d->threads, wish->threads, sizeof d->threads);
    bh_status status = fill(d, kernel, wish, error);
    if (status != BH_OK) {
        bh__ptx_debug_destroy(d);
        return status;
    }
    *out = d;
    return BH_OK;
}

void bh__ptx_debug_destroy(bh__ptx_debug *d) {
    if (d == NULL) {
        return;
    }
    for (uint32_t n = 0; d->types != NULL && n < d->module->function_count; n++) {
        free(d->types[n]);
    }
    for (uint32_t n = 0; n < d->point_count; n++) {
        free(d->points[n].in);
    }
    bh__ptx_variables_free(&d->variables);
    free(d->types);
    free(d->names);
    free(d->at);
    free(d);
}

bh_status bh__ptx_debug_fits(const bh__ptx_debug *d, const bh__ptx_grid *grid, bh_error *error) {
    for (int n = 0; n < 3; n++) {
        if (d->block[n] >= grid->grid[n]) {
            return bh__fail(error, BH_E_LAUNCH, "choose a block of the grid",
                            "block (%u,%u,%u) is to be debugged, but the grid has %u x %u x %u "
                            "blocks",
                            (unsigned)d->block[0], (unsigned)d->block[1], (unsigned)d->block[2],
                            (unsigned)grid->grid[0], (unsigned)grid->grid[1],
                            (unsigned)grid->grid[2]);
        }
    }
    uint32_t threads = grid->block[0] * grid->block[1] * grid->block[2];
    for (uint32_t n = THREADS; n-- > threads;) {
        if (d->threads[n / LANES] >> n % LANES & 1) {
            return bh__fail(error, BH_E_LAUNCH, "choose threads of the block, counted from 0",
                            "thread %u is to be debugged, but a block has %u threads", (unsigned)n,
                            (unsigned)threads);
        }
    }
    return BH_OK;
}

/* ---- running ---- */

bool bh__ptx_tracing_begin(bh__ptx_tracing *t, const bh__ptx_debug *debug) {
    *t = (bh__ptx_tracing){.debug = debug};
    t->reads = debug->trace ? calloc(THREADS, sizeof *t->reads) : NULL;
    return !debug->trace || t->reads != NULL;
}

void bh__ptx_tracing_end(bh__ptx_tracing *t) {
    free(t->reads);
    *t = (bh__ptx_tracing){0};
}

bool bh__ptx_tracing_of(const bh__ptx_tracing *t, const uint32_t block[3]) {
    return t != NULL && memcmp(t->debug->block, block, sizeof t->debug->block) == 0;
}

uint32_t bh__ptx_trace_lanes(const bh__ptx_exec *x, const bh__ptx_warp *w) {
    const bh__ptx_tracing *t = x->tracing;
    bool over = t == NULL || (t->cut && !t->debug->stops); /* nothing more will be shown */
    return over ? 0 : t->debug->threads[w->index];
}

/* Text beyond the limit is left out, and the last line says so. */
static void emit(bh__ptx_exec *x, const bh__ptx_string *text, bool always) {
    bh__ptx_tracing *t = x->tracing;
    if (!always && t->cut) {
        return;
    }
    if (!always && t->bytes + text->length > t->debug->limit) {
        char line[160];
        int length = snprintf(line, sizeof line,
                              "... cut after %llu bytes: follow fewer threads, or stop earlier\n",
                              (unsigned long long)t->bytes);
        t->cut = true;
        x->grid->print(x->grid->print_context, line, (size_t)length);
        return;
    }
    t->bytes += text->length;
    x->grid->print(x->grid->print_context, text->at, text->length);
}

/* ---- tracing: what is read before, and what is written by an instruction ---- */

typedef struct values {
    bh__ptx_string *text;
    const bh__ptx_trace_step *step;
    const bh__ptx_exec *x;
    unsigned lane;
    bool written;
    const char *lead; /* before the first of them */
    uint32_t last;    /* shown last: a register that is read twice is shown once */
} values;

static void put_register(const values *v, uint32_t reg) {
    const bh__ptx_function *f = v->step->function;
    const bh__ptx_reg *r = &f->regs[reg];
    const uint8_t *types = v->x->tracing->debug->types[f->index];
    bool wide = bh__ptx_bytes(r->type) == 16;
    bh__ptx_register_name(v->text, r);
    bh__ptx_string_add(v->text, " = ");
    bh__ptx_string_value(v->text, (bh__ptx_type)types[reg],
                         bh__ptx_register_value(v->x->warp, v->step->base, r, v->lane, 0),
                         wide ? bh__ptx_register_value(v->x->warp, v->step->base, r, v->lane, 1)
                              : 0);
}

static void put_value(void *context, uint32_t reg, bool written) {
    values *v = context;
    if (written != v->written || reg == v->last || v->step->function->regs[reg].row == 0) {
        return;
    }
    bh__ptx_string_add(v->text, "%s", v->last == NO_REG ? v->lead : ", ");
    v->last = reg;
    put_register(v, reg);
}

static void put_values(bh__ptx_exec *x, const bh__ptx_trace_step *step, unsigned lane, bool written,
                       bh__ptx_string *text) {
    values v = {text, step, x, lane, written, written ? " gives " : " with ", NO_REG};
    if (step->insn != NULL) {
        bh__ptx_registers_visit(step->insn, put_value, &v);
    }
}

static bool is_skipped(const bh__ptx_exec *x, const bh__ptx_trace_step *step, unsigned lane) {
    const bh__ptx_insn *insn = step->insn;
    if (insn == NULL || insn->guard == NO_REG) {
        return false;
    }
    const bh__ptx_reg *r = &step->function->regs[insn->guard];
    return bh__ptx_register_value(x->warp, step->base, r, lane, 0) == insn->guard_negated;
}

/* Whether the results of an instruction are there when its step is done. */
static bool has_results(const bh__ptx_exec *x, uint32_t code) {
    switch (x->module->code[code].kind) {
    case CODE_RUN:
    case CODE_SYNC:
    case CODE_POLL:
        return true;
    default:
        return false;
    }
}

static void trace_line(bh__ptx_exec *x, const bh__ptx_trace_step *step, unsigned lane,
                       const char *end, bool results) {
    uint32_t thread = x->warp->index * LANES + lane;
    char line[LINE_BYTES], site[280];
    bh__ptx_string text = {.at = line, .capacity = sizeof line};
    bh__ptx_site_text(x->module, step->code, QUOTED, site, sizeof site);
    bh__ptx_string_add(&text, "thread %u, %s%s", (unsigned)thread, site, x->tracing->reads[thread]);
    if (results) {
        put_values(x, step, lane, true, &text);
    }
    bh__ptx_string_add(&text, "%s\n", end);
    emit(x, &text, false);
}

/* ---- the two sides of a step ---- */

static void stop_here(bh__ptx_exec *x, const bh__ptx_trace_step *step, unsigned first) {
    bh__ptx_tracing *t = x->tracing;
    const bh__ptx_block *b = x->block;
    enum { STATE = 32 * 1024 };
    uint32_t thread = x->warp->index * LANES + first;
    bh__ptx_site_text(x->module, step->code, QUOTED, t->where, sizeof t->where);
    char *room = malloc(STATE);
    bh__ptx_string text = {.at = room, .capacity = STATE};
    if (room == NULL) {
        return;
    }
    bh__ptx_string_add(&text, "stopped: block (%u,%u,%u), thread (%u,%u,%u) is at %s\n",
                       (unsigned)b->id[0], (unsigned)b->id[1], (unsigned)b->id[2],
                       (unsigned)b->tid[0][thread], (unsigned)b->tid[1][thread],
                       (unsigned)b->tid[2][thread], t->where);
    emit(x, &text, true);
    for (uint32_t n = 0; n < b->threads; n++) {
        const bh__ptx_warp *w = &b->warps[n / LANES];
        if (!(t->debug->threads[n / LANES] >> n % LANES & 1)) {
            continue;
        }
        text.length = 0;
        text.cut = false;
        room[0] = '\0';
        if (w->live >> n % LANES & 1) {
            bh__ptx_state_put(&text, &t->debug->variables, x, w, n % LANES, w->pc[n % LANES]);
        } else {
            bh__ptx_string_add(&text, "block (%u,%u,%u), thread (%u,%u,%u): has ended\n",
                               (unsigned)b->id[0], (unsigned)b->id[1], (unsigned)b->id[2],
                               (unsigned)b->tid[0][n], (unsigned)b->tid[1][n],
                               (unsigned)b->tid[2][n]);
        }
        emit(x, &text, true);
        if (text.cut) {
            static const char more[] = "... cut\n";
            emit(x, &(bh__ptx_string){.at = (char *)(uintptr_t)more, .length = sizeof more - 1},
                 true);
        }
    }
    free(room);
}

bool bh__ptx_trace_before(bh__ptx_exec *x, uint32_t code, uint32_t lanes,
                          bh__ptx_trace_step *step) {
    const bh__ptx_debug *d = x->tracing->debug;
    const bh__ptx_site *site = &x->module->sites[code];
    const bh__ptx_function *f = x->frame_function;
    *step = (bh__ptx_trace_step){.code = code,
                                 .lanes = lanes,
                                 .base = x->warp->base[__builtin_ctz(lanes)],
                                 .function = f,
                                 .insn = site->insn < f->insn_count ? &f->insns[site->insn] : NULL};
    bool begins = code == f->code || site[-1].insn != site->insn;
    if (begins && d->at[code] & STOP_BIT) {
        stop_here(x, step, (unsigned)__builtin_ctz(lanes));
        return false;
    }
    FOR_LANES_IN_ORDER(d->trace ? lanes : 0) {
        step->skipped |= is_skipped(x, step, l) ? 1u << l : 0;
    }
    FOR_LANES_IN_ORDER(d->trace && begins ? lanes : 0) {
        char *reads = x->tracing->reads[x->warp->index * LANES + l];
        bh__ptx_string text = {.at = reads, .capacity = sizeof *x->tracing->reads};
        reads[0] = '\0';
        if (step->skipped >> l & 1) {
            bh__ptx_string_add(&text, " is skipped: ");
            values v = {&text, step, x, l, false, "", NO_REG};
            put_register(&v, step->insn->guard);
        } else {
            put_values(x, step, l, false, &text);
        }
    }
    return true;
}

/* A lane has passed a line when its next instruction is of another one, or when a branch takes it
 * back. A call is passed when the function returns. Returns the bits of what is to be printed, and
 * makes *step that of the call. */
static uint64_t passed(const bh__ptx_exec *x, unsigned lane, bh__ptx_trace_step *step) {
    const uint64_t *at = x->tracing->debug->at;
    const bh__ptx_warp *w = x->warp;
    uint32_t next = w->pc[lane];
    switch (x->module->code[step->code].kind) {
    case CODE_CALL:
        if (w->base[lane] != step->base) {
            return 0;
        }
        break;
    case CODE_RET:
        if (w->base[lane] != step->base) {
            step->code = next - 1;
            step->base = w->base[lane];
            step->function =
                ((const bh__ptx_frame *)(const void *)(w->regs + step->base))->function;
        }
        break;
    case CODE_BRA:
        if (next <= step->code) {
            return at[step->code];
        }
        break;
    default:
        break;
    }
    bool ended = !(w->live >> lane & 1);
    return at[step->code] & (ended ? UINT64_MAX : ~at[next]);
}

static void print_points(bh__ptx_exec *x, const bh__ptx_trace_step *done, unsigned lane) {
    const bh__ptx_debug *d = x->tracing->debug;
    const bh__ptx_warp *w = x->warp;
    bh__ptx_trace_step where = *done, *step = &where;
    uint64_t bits = passed(x, lane, step) & ~STOP_BIT;
    for (; bits != 0; bits &= bits - 1) {
        const point *p = &d->points[__builtin_ctzll(bits)];
        const target *in = &p->in[step->function->index];
        char line[LINE_BYTES], site[280];
        bh__ptx_string text = {.at = line, .capacity = sizeof line};
        bh__ptx_site_text(x->module, step->code, 0, site, sizeof site);
        bh__ptx_string_add(&text, "thread %u, %s: ", (unsigned)(w->index * LANES + lane), site);
        if (in->reg != NO_REG) {
            values v = {&text, step, x, lane, false, "", NO_REG};
            put_register(&v, in->reg);
        } else if (in->variable != NULL) {
            bh__ptx_string_add(&text, "%.100s = ", p->name);
            if (!bh__ptx_variable_value(&text, in->variable, x, w, step->base, lane)) {
                bh__ptx_string_add(&text, "not known");
            }
        } else {
            continue;
        }
        bh__ptx_string_add(&text, "\n");
        emit(x, &text, false);
    }
}

void bh__ptx_trace_after(bh__ptx_exec *x, const bh__ptx_trace_step *step, bool faulted) {
    const bh__ptx_debug *d = x->tracing->debug;
    const bh__ptx_site *site = &x->module->sites[step->code];
    const bh__ptx_warp *w = x->warp;
    bool ends = step->insn == NULL || site[1].insn != site->insn;
    if (x->tracing->cut) {
        return;
    }
    FOR_LANES_IN_ORDER(step->lanes) {
        uint32_t bit = 1u << l;
        bool waits = w->at_sync & bit && w->pc[l] == step->code;
        if (faulted) {
            const uint32_t *at = x->fault->thread, *dims = x->block->dims;
            uint32_t thread = at[0] + dims[0] * (at[1] + dims[1] * at[2]);
            if (d->trace && thread == w->index * LANES + l) {
                trace_line(x, step, l, " faults", false);
            }
            continue;
        }
        if (d->trace && (ends || waits)) {
            trace_line(x, step, l, waits ? " waits for other lanes" : "",
                       !waits && !(step->skipped & bit) && has_results(x, step->code));
        }
        if (!waits) {
            print_points(x, step, l);
        } else {
            x->tracing->waiting[w->index] |= bit;
            x->tracing->waits_at[w->index * LANES + l] = step->code;
        }
    }
}

void bh__ptx_trace_settle(bh__ptx_exec *x) {
    bh__ptx_tracing *t = x->tracing;
    const bh__ptx_warp *w = x->warp;
    uint32_t passed_by = t->waiting[w->index] & ~w->at_sync;
    t->waiting[w->index] &= ~passed_by;
    FOR_LANES_IN_ORDER(t->cut ? 0 : passed_by) {
        uint32_t code = t->waits_at[w->index * LANES + l], base = w->base[l];
        const bh__ptx_function *f =
            ((const bh__ptx_frame *)(const void *)(w->regs + base))->function;
        bh__ptx_trace_step step = {.code = code,
                                   .lanes = 1u << l,
                                   .base = base,
                                   .function = f,
                                   .insn = &f->insns[x->module->sites[code].insn]};
        if (t->debug->trace) {
            trace_line(x, &step, l, "", true);
        }
        print_points(x, &step, l);
    }
}
