/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs of every kind of work, while workers are killed and stopped, kernels fault and overrun
 * deadlines, and the program cancels, accepts, releases and closes at random; checked byte by byte against a model
 * that carries the work out in the order it was submitted. What is done read nothing in doubt and left exact bytes;
 * what did not end well leaves just its targets in doubt; what was cancelled or refused leaves no trace. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/transfers.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)

enum {
    LANES_MOST = 8,
    SLOTS = 9,
    SCATTERED = 64,
    SEQUENCES = 3,
    PREPARED = 3,
    BATCH = 70,
    USES = 4,
    OLD = 4096
};

/* What the model knows of a byte: its value; that it must be suspect; nothing at all. */
enum { KNOWN, DOUBT, ANY };

typedef struct area {
    bh_buffer buffer;
    uint64_t bytes;
    uint8_t *value, *state;
    uint8_t *mapped; /* of a managed one */
    bool transparent;
    uint32_t users;
} area;

enum kind {
    IOTA,
    MIX,
    CHURN,
    COPY_WORDS,
    SPIN,
    GATHER,
    SCATTER,
    PREPARED_MIX,
    SEQUENCE,
    FILL,
    COPY,
    WRITE,
    WRITE_HOST,
    READ,
    READ_POOL,
    WRITE_ROWS,
    READ_ROWS,
    COPY_ROWS,
    FILL_ROWS,
    WRITE_NOW,
    READ_NOW,
    COPY_NOW,
    FILL_NOW,
    ACCEPT,
    BREAK,
    HANG,
    KINDS
};

static const char *const kind_names[KINDS] = {
    "iota",      "mix",        "churn",     "copy_words", "spin",      "gather",     "scatter",
    "prepared",  "sequence",   "fill",      "copy",       "write",     "write_host", "read",
    "read_pool", "write_rows", "read_rows", "copy_rows",  "fill_rows", "write_now",  "read_now",
    "copy_now",  "fill_now",   "accept",    "break",      "hang"};

typedef struct use {
    area *of;
    uint64_t offset, bytes;
    bool whole; /* a write that leaves nothing of what was there */
} use;

typedef struct op {
    enum kind kind;
    uint32_t step, words, repeat, pattern;
    bool idempotent, has_ticket, cancelled, watched;
    bh_ticket ticket;
    bh_status status, seen;
    use reads[USES], writes[USES];
    uint32_t read_count, write_count;
    bh_transfer rows;
    const uint8_t *source; /* of a write */
    uint8_t *target;       /* of a read */
    uint8_t *read_now;     /* what a read that waits got, to be freed */
    uint32_t callbacks;
    bh_status told;
} op;

typedef struct replay {
    bh_sequence sequence;
    area *a, *b, *c; /* churn(a), b = a, fill(c) */
    uint32_t launch;
} replay;

typedef struct world {
    rig r;
    rng random;
    area *slots[SLOTS];
    bh_lane lanes[LANES_MOST];
    uint32_t lane_count, step, count;
    op batch[BATCH];
    uint8_t *arena, *host;
    uint64_t arena_bytes, host_bytes, host_used;
    bh_host_pool pool;
    void *pieces[BATCH];
    uint32_t piece_count;
    bh_buffer flag, table;
    uint32_t scattered[SCATTERED];
    replay replays[SEQUENCES];
    bh_prepared prepared[PREPARED];
    area *prepared_areas[PREPARED][3];
    bool losing;
    struct {
        bh_ticket ticket;
        bh_status status;
    } old[OLD];
    uint64_t old_count;
    uint64_t tally[BH_E_INTERNAL + 1];
} world;

static uint32_t below(world *w, uint64_t limit) {
    return rng_below(&w->random, (uint32_t)limit);
}

/* ---- the model ---- */

static area *area_new(world *w, uint64_t bytes, uint32_t managed) {
    area *a = calloc(1, sizeof *a);
    REQUIRE(a != NULL);
    a->bytes = bytes;
    a->value = malloc(bytes);
    a->state = malloc(bytes);
    REQUIRE(a->value != NULL && a->state != NULL);
    memset(a->state, ANY, bytes);
    if (managed) {
        uint32_t flags = managed == 2 ? BH_BUFFER_TRANSPARENT : 0;
        a->transparent = managed == 2;
        REQUIRE_OK(
            alloc_managed(w->r.device, BH_U8, bytes, flags, &a->buffer, (void **)&a->mapped));
    } else {
        REQUIRE_OK(bh_buffer_alloc(w->r.device, BH_U8, bytes, NULL, &a->buffer));
    }
    CHECK(!is_suspect(a->buffer));
    return a;
}

static void area_free(area *a) {
    free(a->value);
    free(a->state);
    free(a);
}

static bool all(const use *u, uint8_t state) {
    const uint8_t *at = u->of->state + u->offset;
    return at[0] == state && memcmp(at, at + 1, u->bytes - 1) == 0;
}

static bool any(const use *u, uint8_t state) {
    return memchr(u->of->state + u->offset, state, u->bytes) != NULL;
}

static void set(const use *u, uint8_t state) {
    memset(u->of->state + u->offset, state, u->bytes);
}

static uint8_t *bytes_of(const use *u) {
    return u->of->value + u->offset;
}

static uint32_t word_at(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, 4);
    return word;
}

static void word_put(uint8_t *at, uint32_t word) {
    memcpy(at, &word, 4);
}

static void repeat_pattern(uint8_t *to, uint64_t bytes, uint32_t step, uint32_t length) {
    for (uint64_t i = 0; i < bytes; i++) to[i] = (uint8_t)((step + i % length) * 37 + step / 7);
}

/* The values that an operation leaves, which was done. */
static void compute(world *w, op *o) {
    uint8_t *to = o->write_count ? bytes_of(&o->writes[0]) : NULL;
    const uint8_t *a = o->read_count ? bytes_of(&o->reads[0]) : NULL;
    const uint8_t *b = o->read_count > 1 ? bytes_of(&o->reads[1]) : NULL;
    const bh_transfer *rows = &o->rows;
    switch (o->kind) {
    case IOTA:
        for (uint32_t i = 0; i < o->words; i++) word_put(to + i * 4, o->step + i);
        break;
    case MIX:
    case PREPARED_MIX:
        for (uint32_t i = 0; i < o->words; i++)
            word_put(to + i * 4, mix_word(word_at(a + i * 4), word_at(b + i * 4), o->step));
        break;
    case CHURN:
        for (uint32_t i = 0; i < o->words; i++)
            word_put(to + i * 4, churn_word(word_at(to + i * 4), o->step));
        break;
    case COPY_WORDS:
    case COPY:
    case COPY_NOW:
        memmove(to, a, o->writes[0].bytes);
        break;
    case SPIN:
        for (uint32_t i = 0; i < o->words; i++)
            word_put(to + i * 4, spin_word(o->step + i, o->repeat));
        break;
    case GATHER:
        for (uint32_t i = 0; i < SCATTERED; i++)
            word_put(to + i * 4, word_at(a + w->scattered[i] * 4));
        break;
    case SCATTER:
        for (uint32_t i = 0; i < SCATTERED; i++) word_put(to + w->scattered[i] * 4, o->step + i);
        break;
    case SEQUENCE:
        for (uint32_t k = 0; k < o->repeat; k++) {
            for (uint32_t i = 0; i < o->words; i++)
                word_put(to + i * 4, churn_word(word_at(to + i * 4), o->step));
            memcpy(bytes_of(&o->writes[1]), to, o->writes[1].bytes);
            memset(bytes_of(&o->writes[2]), 0x5a, o->writes[2].bytes);
        }
        break;
    case FILL:
    case FILL_NOW:
        repeat_pattern(to, o->writes[0].bytes, o->step, o->pattern);
        break;
    case WRITE:
    case WRITE_HOST:
    case WRITE_NOW:
        memcpy(to, o->source, o->writes[0].bytes);
        break;
    case READ:
    case READ_POOL:
    case READ_NOW:
        if (all(&o->reads[0], KNOWN)) CHECK_MEM_EQ(o->target, a, o->reads[0].bytes);
        break;
    case WRITE_ROWS:
        for (uint64_t i = 0; i < rows->height; i++)
            memcpy(to + i * rows->target_pitch, o->source + i * rows->source_pitch, rows->width);
        break;
    case READ_ROWS:
        if (all(&o->reads[0], KNOWN))
            for (uint64_t i = 0; i < rows->height; i++)
                CHECK_MEM_EQ(o->target + i * rows->target_pitch, a + i * rows->source_pitch,
                             rows->width);
        break;
    case COPY_ROWS:
        for (uint64_t i = 0; i < rows->height; i++)
            memcpy(to + i * rows->target_pitch, a + i * rows->source_pitch, rows->width);
        break;
    case FILL_ROWS:
        for (uint64_t i = 0; i < rows->height; i++)
            repeat_pattern(to + i * rows->target_pitch, rows->width, o->step, o->pattern);
        break;
    case ACCEPT:
    case BREAK:
    case HANG:
    case KINDS:
        break;
    }
}

static bool good_input(const op *o) {
    for (uint32_t i = 0; i < o->read_count; i++)
        if (!all(&o->reads[i], KNOWN)) return false;
    return true;
}

static void explain(const world *w, const op *about) {
    for (uint32_t i = 0; i < w->count; i++) {
        const op *o = &w->batch[i];
        bool touches = o == about;
        for (uint32_t a = 0; a < about->read_count + about->write_count; a++) {
            const use *x =
                a < about->read_count ? &about->reads[a] : &about->writes[a - about->read_count];
            for (uint32_t b = 0; b < o->write_count + o->read_count; b++) {
                const use *y = b < o->write_count ? &o->writes[b] : &o->reads[b - o->write_count];
                touches = touches || (x->of == y->of && x->offset < y->offset + y->bytes &&
                                      y->offset < x->offset + x->bytes);
            }
        }
        if (!touches) continue;
        fprintf(stderr, "  %c step %u %s%s lane %#llx seq %llu: %s%s;", o == about ? '*' : ' ',
                o->step, kind_names[o->kind], o->idempotent ? " idempotent" : "",
                (unsigned long long)o->ticket.lane, (unsigned long long)o->ticket.sequence,
                bh_status_name(o->status), o->has_ticket ? "" : " (by the call)");
        for (uint32_t k = 0; k < o->read_count; k++)
            fprintf(stderr, " reads %p+%llu(%llu)", (void *)o->reads[k].of,
                    (unsigned long long)o->reads[k].offset, (unsigned long long)o->reads[k].bytes);
        for (uint32_t k = 0; k < o->write_count; k++)
            fprintf(stderr, " writes %p+%llu(%llu)%s", (void *)o->writes[k].of,
                    (unsigned long long)o->writes[k].offset, (unsigned long long)o->writes[k].bytes,
                    o->writes[k].whole ? "" : " in part");
        fprintf(stderr, "\n");
    }
}

#define WRONG(w, o, ...) (FAIL(__VA_ARGS__), explain((w), (o)))

/* Whether something submitted later writes what this one reads: then it may not be run again. */
static bool swept(const world *w, const op *o) {
    for (const op *later = o + 1; later < w->batch + w->count; later++)
        for (uint32_t i = 0; i < later->write_count; i++)
            for (uint32_t k = 0; k < o->read_count; k++)
                if (later->writes[i].of == o->reads[k].of &&
                    later->writes[i].offset < o->reads[k].offset + o->reads[k].bytes &&
                    o->reads[k].offset < later->writes[i].offset + later->writes[i].bytes)
                    return true;
    return false;
}

/* The worker refuses one request or other: see tests/queued/. */
static bool refusing(void) {
    return getenv("BULKHEAD_TEST_REFUSE") != NULL;
}

static bool uses_managed(const op *o) {
    for (uint32_t i = 0; i < o->read_count; i++)
        if (o->reads[i].of->mapped) return true;
    for (uint32_t i = 0; i < o->write_count; i++)
        if (o->writes[i].of->mapped) return true;
    return false;
}

/* Transfers, and launches that were said to be; managed buffers move in pages, which count whole. */
static bool may_repeat(const op *o) {
    if (uses_managed(o)) return false;
    switch (o->kind) {
    case CHURN:
    case SCATTER:
    case SEQUENCE:
    case BREAK:
    case HANG:
        return false;
    case IOTA:
    case MIX:
    case COPY_WORDS:
    case SPIN:
    case GATHER:
    case PREPARED_MIX:
        return o->idempotent;
    default:
        return true;
    }
}

static void apply(world *w, op *o) {
    bool good = good_input(o);
    /* Moves of pages are refused, too: work that needs them is stale then. */
    if (o->status == BH_E_STALE && refusing() && uses_managed(o)) {
        for (uint32_t i = 0; i < o->write_count; i++) set(&o->writes[i], ANY);
        return;
    }
    if (o->kind == ACCEPT) {
        area *a = o->writes[0].of;
        bool all_of_it = refusing() && a->mapped;
        for (uint64_t i = 0; i < a->bytes; i++)
            if (all_of_it || a->state[i] == DOUBT) a->state[i] = ANY;
        return;
    }
    switch (o->status) {
    case BH_OK:
        for (uint32_t i = 0; i < o->read_count; i++)
            if (any(&o->reads[i], DOUBT)) {
                WRONG(w, o, "step %u (%s) was done with data in doubt", o->step,
                      kind_names[o->kind]);
                break;
            }
        if (o->kind == BREAK || o->kind == HANG)
            WRONG(w, o, "step %u (%s) was done", o->step, kind_names[o->kind]);
        compute(w, o);
        for (uint32_t i = 0; i < o->write_count; i++) {
            const use *u = &o->writes[i];
            if (!good)
                set(u, ANY);
            else if (u->whole)
                set(u, KNOWN);
        }
        return;
    case BH_E_CANCELLED:
        if (!o->cancelled) WRONG(w, o, "step %u was cancelled by nobody", o->step);
        return;
    case BH_E_STALE:
        if (good)
            WRONG(w, o, "step %u (%s) is stale and reads nothing in doubt", o->step,
                  kind_names[o->kind]);
        /* What the call refused never was; one that waits may have been refused later on. */
        if (o->kind == COPY_NOW) {
            if (!any(&o->writes[0], DOUBT) || !all(&o->writes[0], DOUBT)) set(&o->writes[0], ANY);
            return;
        }
        if (!o->has_ticket) return;
        break;
    case BH_E_LOST:
        if (may_repeat(o) && good && !swept(w, o))
            WRONG(w, o, "step %u (%s) was lost and could have been run again", o->step,
                  kind_names[o->kind]);
        break;
    case BH_E_FAULT:
    case BH_E_DEADLINE:
        break;
    case BH_E_LAUNCH:
        /* A call of several pieces may have had some of them done; a lost worker may have begun it. */
        if (o->kind == SEQUENCE && o->has_ticket) break;
        for (uint32_t i = 0; i < o->write_count; i++) {
            const use *u = &o->writes[i];
            bool whole = u->bytes < 512 * KIB - 1 && !w->losing;
            if (!whole && !all(u, DOUBT)) set(u, ANY);
        }
        return;
    default:
        WRONG(w, o, "step %u (%s) is %s", o->step, kind_names[o->kind], bh_status_name(o->status));
    }
    for (uint32_t i = 0; i < o->write_count; i++) set(&o->writes[i], DOUBT);
}

/* ---- programs ---- */

static area *some_area(world *w) {
    return w->slots[below(w, SLOTS)];
}

static area *other_area(world *w, const area *than) {
    for (;;) {
        area *a = some_area(w);
        if (a != than) return a;
    }
}

static uint64_t some_bytes(world *w, uint64_t most) {
    uint64_t bytes = 1;
    switch (below(w, 6)) {
    case 0:
        bytes = most;
        break;
    case 1:
        bytes = 1 + below(w, 8);
        break;
    case 2:
        bytes = 512 * KIB - 1 + below(w, 3);
        break;
    default:
        bytes = 1 + below(w, most);
    }
    return bytes < most ? bytes : most;
}

static use some_use(world *w, area *a, uint64_t most) {
    uint64_t bytes = some_bytes(w, a->bytes < most ? a->bytes : most);
    uint64_t room = a->bytes - bytes;
    uint64_t offset = below(w, 3) == 0 ? 0 : below(w, 2) ? room : room ? below(w, room) : 0;
    return (use){a, offset, bytes, true};
}

/* A range of words, and a view of it. */
static use word_use(area *a, uint64_t first, uint32_t words) {
    return (use){a, first * 4, words * UINT64_C(4), true};
}

static uint64_t some_first(world *w, const area *a, uint32_t words) {
    uint64_t room = a->bytes / 4 - words;
    return below(w, 2) || room == 0 ? 0 : below(w, room + 1);
}

static bh_buffer view_of(const use *u) {
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(u->of->buffer, 0, u->offset, u->bytes, &view));
    return view;
}

static uint8_t *host_take(world *w, uint64_t bytes) {
    if (w->host_used + bytes > w->host_bytes) return NULL;
    w->host_used += (bytes + 63) / 64 * 64;
    return w->host + w->host_used - (bytes + 63) / 64 * 64;
}

static const uint8_t *some_source(world *w, uint64_t bytes) {
    return w->arena + below(w, w->arena_bytes - bytes);
}

static bh_status launch(world *w, op *o, const char *name, uint32_t words, bh_args args,
                        const bh_use *also, uint64_t deadline_ns, bh_lane lane) {
    bh_launch_options options = on_lane(lane, o->idempotent ? BH_SUBMIT_IDEMPOTENT : 0);
    options.also = also;
    options.also_count = also != NULL;
    options.deadline_ns = deadline_ns;
    return bh_launch(rig_kernel(&w->r, name), BH_GRID(words, 64), args, &options, &o->ticket);
}

static bh_transfer some_rows(world *w, uint64_t *bytes) {
    bh_transfer rows = bh_transfer_init(0, 0);
    bool large = below(w, 8) == 0;
    rows.width = 1 + below(w, large ? 9000 : 60);
    rows.height = 1 + below(w, large ? 180 : 12);
    rows.target_pitch = rows.width + (below(w, 3) ? below(w, 20) : 0);
    rows.source_pitch = rows.width + (below(w, 3) ? below(w, 20) : 0);
    *bytes = rows.height * (rows.width + 20);
    return rows;
}

static uint64_t span(const bh_transfer *rows, uint64_t pitch) {
    return (rows->height - 1) * pitch + rows->width;
}

static bool gapless(const bh_transfer *rows) {
    return rows->height == 1 || rows->target_pitch == rows->width;
}

static void on_done(void *context, bh_ticket ticket, bh_status status) {
    op *o = context;
    (void)ticket;
    o->told = status;
    __atomic_add_fetch(&o->callbacks, 1, __ATOMIC_SEQ_CST);
}

/* Fills in and submits one operation. False: none came of it. */
static bool submit_one(world *w, op *o, bool breaks) {
    static const enum kind common[] = {WRITE, COPY, CHURN, MIX, SPIN, FILL};
    bh_lane lane = w->lanes[below(w, w->lane_count)];
    area *a = some_area(w), *b = other_area(w, a), *c = other_area(w, a);
    bh_buffer va = {0}, vb = {0}, vc = {0};
    uint8_t pattern[64];
    uint64_t room;
    memset(o, 0, sizeof *o);
    o->seen = BH_E_BUSY;
    o->step = ++w->step;
    o->kind = below(w, 4) == 0 ? common[below(w, 6)] : (enum kind)below(w, BREAK);
    if (breaks && below(w, 50) == 0) o->kind = below(w, 4) ? BREAK : HANG;
    o->idempotent = below(w, 2);
    o->has_ticket = true;
    o->words = 1 + below(w, below(w, 6) ? 200 : 1024);
    switch (o->kind) {
    case IOTA:
    case SPIN:
    case CHURN:
    case BREAK:
    case HANG:
        o->writes[0] = word_use(a, some_first(w, a, o->words), o->words);
        o->write_count = 1;
        va = view_of(&o->writes[0]);
        if (o->kind == IOTA) {
            o->status = launch(w, o, "iota", o->words, BH_ARGS(BH_OUT(va), o->step, o->words), NULL,
                               0, lane);
        } else if (o->kind == SPIN) {
            o->words = (o->words + 63) / 64 * 64;
            bh_buffer_release(va);
            o->writes[0] = word_use(a, 0, o->words);
            va = view_of(&o->writes[0]);
            o->repeat = below(w, 8) ? below(w, 300) : below(w, 20000);
            o->status = launch(w, o, "spin", o->words, BH_ARGS(BH_OUT(va), o->step, o->repeat),
                               NULL, 0, lane);
        } else {
            o->idempotent = o->idempotent && o->kind == CHURN;
            o->reads[0] = o->writes[0];
            o->read_count = 1;
            if (o->kind == CHURN) {
                o->status = launch(w, o, "churn", o->words,
                                   BH_ARGS(BH_INOUT(va), o->step, o->words), NULL, 0, lane);
                o->idempotent = false;
            } else if (o->kind == BREAK) {
                o->status = launch(w, o, "write_then_poke", o->words,
                                   BH_ARGS(BH_INOUT(va), o->words, NOWHERE), NULL, 0, lane);
            } else {
                o->status = launch(w, o, "endless", 1, BH_ARGS(address_of(w->flag), BH_INOUT(va)),
                                   NULL, 20 * MS, lane);
            }
        }
        break;
    case MIX:
    case COPY_WORDS:
        o->writes[0] = word_use(a, some_first(w, a, o->words), o->words);
        o->reads[0] = word_use(b, some_first(w, b, o->words), o->words);
        o->reads[1] = word_use(c, some_first(w, c, o->words), o->words);
        o->write_count = 1;
        va = view_of(&o->writes[0]), vb = view_of(&o->reads[0]), vc = view_of(&o->reads[1]);
        if (o->kind == MIX) {
            o->read_count = 2;
            o->status =
                launch(w, o, "mix", o->words,
                       BH_ARGS(BH_OUT(va), BH_IN(vb), BH_IN(vc), o->step, o->words), NULL, 0, lane);
        } else {
            o->read_count = 1;
            o->status = launch(w, o, "copy_words", o->words,
                               BH_ARGS(BH_IN(vb), BH_OUT(va), o->words), NULL, 0, lane);
        }
        break;
    case GATHER:
    case SCATTER: {
        /* The table lists words of the first slot, whose buffer is never replaced. */
        bh_use also = {w->slots[0]->buffer, BH_ACCESS_INOUT, 0};
        uint32_t n = SCATTERED;
        o->reads[0] = (use){w->slots[0], 0, w->slots[0]->bytes, true};
        o->read_count = 1;
        o->write_count = 1;
        if (o->kind == SCATTER) {
            o->idempotent = false;
            o->writes[0] = o->reads[0];
            o->status =
                launch(w, o, "scatter", n, BH_ARGS(BH_IN(w->table), o->step, n), &also, 0, lane);
        } else {
            if (a == w->slots[0]) return false;
            also.access = BH_ACCESS_IN;
            o->writes[0] = word_use(a, some_first(w, a, n), n);
            va = view_of(&o->writes[0]);
            o->status =
                launch(w, o, "gather", n, BH_ARGS(BH_IN(w->table), BH_OUT(va), n), &also, 0, lane);
        }
        break;
    }
    case PREPARED_MIX: {
        uint32_t which = below(w, PREPARED);
        bh_change change = {3, 0, BH_ARG(o->step)};
        o->words = 48;
        o->idempotent = which % 2;
        o->writes[0] = word_use(w->prepared_areas[which][0], 0, 48);
        o->reads[0] = word_use(w->prepared_areas[which][1], 0, 48);
        o->reads[1] = word_use(w->prepared_areas[which][2], 0, 48);
        o->read_count = 2;
        o->write_count = 1;
        o->status = bh_prepared_launch(w->prepared[which], &change, 1, &o->ticket);
        break;
    }
    case SEQUENCE: {
        replay *p = &w->replays[below(w, SEQUENCES)];
        bh_submit_options options = BH_INIT(options);
        options.lane = lane;
        options.repeat = o->repeat = 1 + below(w, 3);
        o->idempotent = false;
        o->words = 64;
        o->writes[0] = o->reads[0] = word_use(p->a, 0, 64);
        o->writes[1] = (use){p->b, 8, 256, true};
        o->writes[2] = (use){p->c, 300, 100, true};
        o->read_count = 1;
        o->write_count = 3;
        CHECK_OK(bh_sequence_set(p->sequence, p->launch, 1, BH_ARG(o->step)));
        o->status = bh_sequence_submit(p->sequence, &options, &o->ticket);
        break;
    }
    case FILL:
    case FILL_NOW:
        o->pattern = 1 + below(w, sizeof pattern);
        o->writes[0] = some_use(w, a, MIB);
        o->writes[0].bytes = o->writes[0].bytes / o->pattern * o->pattern;
        if (o->writes[0].bytes == 0) return false;
        o->write_count = 1;
        repeat_pattern(pattern, o->pattern, o->step, o->pattern);
        if (o->kind == FILL) {
            o->status = bh_submit_fill(lane, a->buffer, o->writes[0].offset, o->writes[0].bytes,
                                       pattern, o->pattern, &o->ticket);
        } else {
            o->has_ticket = false;
            o->status = bh_buffer_fill(a->buffer, o->writes[0].offset, o->writes[0].bytes, pattern,
                                       o->pattern);
        }
        break;
    case COPY:
    case COPY_NOW:
        o->writes[0] = some_use(w, a, b->bytes);
        o->reads[0] = (use){b, 0, o->writes[0].bytes, true};
        room = b->bytes - o->reads[0].bytes;
        o->reads[0].offset = room ? below(w, room) : 0;
        o->read_count = o->write_count = 1;
        if (o->kind == COPY) {
            o->status = bh_submit_copy(lane, a->buffer, o->writes[0].offset, b->buffer,
                                       o->reads[0].offset, o->writes[0].bytes, &o->ticket);
        } else {
            o->has_ticket = false;
            o->status = bh_buffer_copy(a->buffer, o->writes[0].offset, b->buffer,
                                       o->reads[0].offset, o->writes[0].bytes);
        }
        break;
    case WRITE:
    case WRITE_HOST:
    case WRITE_NOW:
        o->writes[0] = some_use(w, a, a->bytes);
        o->write_count = 1;
        o->source = some_source(w, o->writes[0].bytes);
        if (o->kind == WRITE_HOST) {
            uint8_t *host = host_take(w, o->writes[0].bytes);
            if (host == NULL) return false;
            memcpy(host, o->source, o->writes[0].bytes);
            o->source = host;
        }
        if (o->kind == WRITE_NOW) {
            o->has_ticket = false;
            o->status =
                bh_buffer_write(a->buffer, o->writes[0].offset, o->source, o->writes[0].bytes);
        } else {
            o->status = bh_submit_write(lane, a->buffer, o->writes[0].offset, o->source,
                                        o->writes[0].bytes, &o->ticket);
        }
        break;
    case READ:
    case READ_POOL:
    case READ_NOW:
        o->reads[0] = some_use(w, a, a->bytes);
        o->read_count = 1;
        if (o->kind == READ) {
            o->target = host_take(w, o->reads[0].bytes);
        } else if (o->kind == READ_NOW) {
            o->target = o->read_now = malloc(o->reads[0].bytes);
        } else if (bh_host_pool_take(w->pool, o->reads[0].bytes, 0, (void **)&o->target) == BH_OK) {
            w->pieces[w->piece_count++] = o->target;
        }
        if (o->target == NULL) return false;
        memset(o->target, 0xee, o->reads[0].bytes);
        if (o->kind == READ_NOW) {
            o->has_ticket = false;
            o->status = bh_buffer_read(a->buffer, o->reads[0].offset, o->target, o->reads[0].bytes);
        } else {
            o->status = bh_submit_read(lane, a->buffer, o->reads[0].offset, o->target,
                                       o->reads[0].bytes, &o->ticket);
        }
        break;
    case WRITE_ROWS:
    case READ_ROWS:
    case COPY_ROWS:
    case FILL_ROWS:
        o->rows = some_rows(w, &room);
        if (o->kind != READ_ROWS) {
            uint64_t bytes = span(&o->rows, o->rows.target_pitch);
            if (bytes > a->bytes) return false;
            o->rows.target_offset = below(w, a->bytes - bytes + 1);
            o->writes[0] = (use){a, o->rows.target_offset, bytes, gapless(&o->rows)};
            o->write_count = 1;
        }
        if (o->kind == READ_ROWS || o->kind == COPY_ROWS) {
            uint64_t bytes = span(&o->rows, o->rows.source_pitch);
            if (bytes > b->bytes) return false;
            o->rows.source_offset = below(w, b->bytes - bytes + 1);
            o->reads[0] = (use){b, o->rows.source_offset, bytes, true};
            o->read_count = 1;
        }
        if (o->kind == WRITE_ROWS) {
            o->source = some_source(w, room);
            o->status = submit_write_rows(lane, a->buffer, o->source, &o->rows, &o->ticket);
        } else if (o->kind == READ_ROWS) {
            o->target = host_take(w, room);
            if (o->target == NULL) return false;
            o->status = submit_read_rows(lane, o->target, b->buffer, &o->rows, &o->ticket);
        } else if (o->kind == COPY_ROWS) {
            o->status = submit_copy_rows(lane, a->buffer, b->buffer, &o->rows, &o->ticket);
        } else {
            o->pattern = 1 + below(w, sizeof pattern);
            repeat_pattern(pattern, o->pattern, o->step, o->pattern);
            o->status =
                submit_fill_rows(lane, a->buffer, &o->rows, pattern, o->pattern, &o->ticket);
        }
        break;
    case ACCEPT:
        o->has_ticket = false;
        o->writes[0].of = a;
        CHECK_OK(bh_buffer_accept(a->buffer));
        return true;
    case KINDS:
        break;
    }
    if (va.id) CHECK_OK(bh_buffer_release(va));
    if (vb.id) CHECK_OK(bh_buffer_release(vb));
    if (vc.id) CHECK_OK(bh_buffer_release(vc));
    if (o->status != BH_OK) {
        bh_error why;
        CHECK_EQ(bh_last_error(&why), o->status);
        CHECK(why.message[0] != 0);
        CHECK(why.fix[0] != 0);
        o->has_ticket = false;
    }
    if (o->has_ticket && below(w, 8) == 0) {
        o->watched = true;
        CHECK_OK(bh_on_done(o->ticket, on_done, o));
    }
    return true;
}

static void cancel_one(world *w) {
    if (w->count == 0) return;
    op *o = &w->batch[w->count - 1 - below(w, w->count < 6 ? w->count : 6)];
    if (!o->has_ticket) return;
    bh_status status = bh_cancel(o->ticket);
    if (status == BH_OK) {
        if (o->cancelled) FAIL("cancelled twice");
        o->cancelled = true;
        CHECK_STATUS(bh_wait(o->ticket, 0), BH_E_CANCELLED);
    } else if (status == BH_E_INVALID) {
        bh_error why;
        bh_last_error(&why);
        if (bh_wait(o->ticket, 0) == BH_E_BUSY)
            WRONG(w, o, "step %u is not done, and cancelling it gave: %s", o->step, why.message);
    } else {
        CHECK_STATUS(status, BH_E_BUSY);
    }
}

/* A ticket may be asked at any time; what it has said it goes on to say. */
static void ask_one(world *w) {
    if (w->count == 0) return;
    op *o = &w->batch[below(w, w->count)];
    if (!o->has_ticket) return;
    bh_status status = bh_wait(o->ticket, 0);
    if (o->seen != BH_E_BUSY && status != o->seen)
        WRONG(w, o, "step %u was %s and is %s", o->step, bh_status_name(o->seen),
              bh_status_name(status));
    o->seen = status;
}

static bool is_launch(const op *o) {
    return o->kind <= PREPARED_MIX || o->kind == BREAK || o->kind == HANG;
}

static void check_answer(world *w, op *o) {
    bh_error why;
    o->status = bh_wait(o->ticket, 0);
    if (o->seen != BH_E_BUSY && o->status != o->seen)
        WRONG(w, o, "step %u was %s and is %s", o->step, bh_status_name(o->seen),
              bh_status_name(o->status));
    if (o->cancelled != (o->status == BH_E_CANCELLED))
        WRONG(w, o, "step %u: cancel said %d, it is %s", o->step, o->cancelled,
              bh_status_name(o->status));
    w->old[w->old_count % OLD].ticket = o->ticket;
    w->old[w->old_count++ % OLD].status = o->status;
    for (int i = 0; o->watched && __atomic_load_n(&o->callbacks, __ATOMIC_SEQ_CST) == 0; i++) {
        if (i == 5000) {
            WRONG(w, o, "step %u: no callback", o->step);
            break;
        }
        sleep_ms(1);
    }
    if (o->callbacks > 1) WRONG(w, o, "step %u: %u callbacks", o->step, o->callbacks);
    if (o->callbacks == 1 && o->told != o->status)
        WRONG(w, o, "step %u: the callback was told %s, it is %s", o->step, bh_status_name(o->told),
              bh_status_name(o->status));
    if (o->status == BH_OK) return;
    CHECK_STATUS(bh_ticket_error(o->ticket, &why), o->status);
    if (why.status != o->status || !why.message[0] || !why.fix[0] ||
        (is_launch(o) && !why.kernel[0]) || why.ticket.sequence != o->ticket.sequence)
        WRONG(w, o, "step %u (%s): %s, message \"%s\", fix \"%s\", kernel \"%s\"", o->step,
              kind_names[o->kind], bh_status_name(o->status), why.message, why.fix, why.kernel);
}

/* Suspect where the model says so, and nowhere else: over runs of bytes that are of one state. */
static void check_doubt(world *w, area *a) {
    uint64_t at = 0;
    while (at < a->bytes) {
        uint64_t end = at + 1;
        while (end < a->bytes && a->state[end] == a->state[at]) end++;
        if (a->state[at] != ANY) {
            use run = {a, at, end - at, true};
            bh_buffer view = view_of(&run);
            bh_buffer_info info = BH_INIT(info);
            CHECK_OK(bh_buffer_get_info(view, &info));
            bool right = a->state[at] == KNOWN ? !info.suspect
                                               : info.suspect && info.suspect_bytes == info.bytes;
            if (!right) {
                op about = {.reads = {run}, .read_count = 1};
                FAIL(
                    "after step %u: %p, bytes %llu to %llu of %llu are %s: %llu bytes from %llu on "
                    "are suspect",
                    w->step, (void *)a, (unsigned long long)at, (unsigned long long)end,
                    (unsigned long long)a->bytes, a->state[at] == KNOWN ? "good" : "in doubt",
                    (unsigned long long)info.suspect_bytes,
                    (unsigned long long)info.suspect_offset);
                explain(w, &about);
            }
            CHECK_OK(bh_buffer_release(view));
        }
        at = end;
    }
}

static void read_back(area *a) {
    CHECK_OK(bh_buffer_accept(a->buffer));
    bh_status status = bh_buffer_read(a->buffer, 0, a->value, a->bytes);
    while (status == BH_E_LOST || status == BH_E_FAULT || status == BH_E_LAUNCH ||
           (status == BH_E_STALE && refusing()))
        status = bh_buffer_read(a->buffer, 0, a->value, a->bytes);
    CHECK_OK(status);
    memset(a->state, KNOWN, a->bytes);
}

static void check_area(world *w, area *a) {
    if (refusing() && a->mapped && is_suspect(a->buffer)) memset(a->state, ANY, a->bytes);
    if (!refusing() || !a->mapped) check_doubt(w, a);
    for (uint64_t at = 0; at < a->bytes && test_failures() == 0;) {
        uint64_t end = at + 1;
        if (a->state[at] != KNOWN) {
            at++;
            continue;
        }
        while (end < a->bytes && a->state[end] == KNOWN) end++;
        uint8_t *got = malloc(end - at);
        bh_status status = bh_buffer_read(a->buffer, at, got, end - at);
        while (status == BH_E_LOST || status == BH_E_LAUNCH ||
               (status == BH_E_STALE && refusing() && a->mapped && !is_suspect(a->buffer)))
            status = bh_buffer_read(a->buffer, at, got, end - at);
        CHECK_OK(status);
        if (memcmp(got, a->value + at, end - at) != 0) {
            uint64_t k = 0;
            while (got[k] == a->value[at + k]) k++;
            uint64_t last = end - at - 1;
            while (got[last] == a->value[at + last]) last--;
            op about = {.reads = {{a, at + k, last - k + 1, true}}, .read_count = 1};
            FAIL(
                "after step %u: %p: bytes %llu to %llu of %llu are intact and not what they should "
                "be",
                w->step, (void *)a, (unsigned long long)(at + k),
                (unsigned long long)(at + last + 1), (unsigned long long)a->bytes);
            explain(w, &about);
        }
        free(got);
        at = end;
    }
    /* What the program has of a managed buffer. */
    if (a->mapped && below(w, 2)) {
        use whole = {a, 0, a->bytes, true};
        bool good = all(&whole, KNOWN), bad = any(&whole, DOUBT);
        bh_status status = bh_managed_map(a->buffer, 0, a->bytes, BH_MAP_READ, NULL);
        if (good) CHECK_OK(status);
        if (bad) CHECK_STATUS(status, BH_E_STALE);
        if (status == BH_OK) {
            if (good) CHECK_MEM_EQ(a->mapped, a->value, a->bytes);
            CHECK_OK(bh_managed_unmap(a->mapped, a->bytes));
        }
        use part = some_use(w, a, a->bytes);
        if (good && below(w, 2)) {
            const uint8_t *source = some_source(w, part.bytes);
            CHECK_OK(bh_managed_map(a->buffer, part.offset, part.bytes, BH_MAP_WRITE, NULL));
            memcpy(a->mapped + part.offset, source, part.bytes);
            memcpy(a->value + part.offset, source, part.bytes);
            CHECK_OK(bh_managed_unmap(a->mapped + part.offset, part.bytes));
        } else if (good && a->transparent) {
            const uint8_t *source = some_source(w, part.bytes);
            CHECK_MEM_EQ(a->mapped, a->value, a->bytes);
            memcpy(a->mapped + part.offset, source, part.bytes);
            memcpy(a->value + part.offset, source, part.bytes);
        }
    }
    if (memchr(a->state, ANY, a->bytes)) read_back(a);
    if (below(w, 4) == 0 && memchr(a->state, DOUBT, a->bytes)) read_back(a);
}

static void run_batch(world *w, bool breaks, bool cancels, bool changes) {
    area *gone[BATCH];
    uint32_t gone_count = 0;
    uint32_t length = 1 + below(w, BATCH);
    w->count = w->host_used = w->piece_count = 0;
    while (w->count < length) {
        op *o = &w->batch[w->count];
        if (submit_one(w, o, breaks)) w->count++;
        if (cancels && below(w, 5) == 0) cancel_one(w);
        if (below(w, 4) == 0) ask_one(w);
        if (below(w, 60) == 0) sleep_ms(below(w, 6));
        if (changes && below(w, 60) == 0) {
            uint32_t which = below(w, w->lane_count);
            CHECK_OK(bh_lane_release(w->lanes[which]));
            bh_status status = bh_lane_open(w->r.device, NULL, &w->lanes[which]);
            while (status == BH_E_BUSY)
                sleep_ms(1), status = bh_lane_open(w->r.device, NULL, &w->lanes[which]);
            REQUIRE_OK(status);
        }
        if (changes && below(w, 80) == 0 && gone_count < BATCH) {
            /* Slots from 6 on are not used by what was prepared and recorded. */
            uint32_t which = 6 + below(w, 3);
            area *a = w->slots[which];
            CHECK_OK(bh_buffer_release(a->buffer));
            gone[gone_count++] = a;
            w->slots[which] = area_new(w, a->bytes, a->mapped ? 1 : 0);
        }
    }
    if (below(w, 2)) {
        CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    } else {
        for (uint32_t i = 0; i < w->count; i++) {
            const op *o = &w->batch[i];
            if (o->has_ticket && bh_wait(o->ticket, LONG_NS) == BH_E_TIMEOUT)
                WRONG(w, o, "step %u never ends", o->step);
        }
        if (below(w, 2)) CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    }
    for (uint32_t i = 0; i < w->count; i++) {
        op *o = &w->batch[i];
        w->tally[o->has_ticket ? bh_wait(o->ticket, 0) : o->status]++;
        if (o->has_ticket) check_answer(w, o);
        apply(w, o);
        free(o->read_now);
        o->read_now = NULL;
    }
    for (uint32_t i = 0; i < SLOTS; i++) check_area(w, w->slots[i]);
    for (uint32_t i = 0; i < w->piece_count; i++)
        CHECK_OK(bh_host_pool_give(w->pool, w->pieces[i]));
    for (uint32_t i = 0; i < 20 && w->old_count; i++) {
        uint64_t which = below(w, w->old_count < OLD ? w->old_count : OLD);
        CHECK_STATUS(bh_wait(w->old[which].ticket, 0), w->old[which].status);
    }
    CHECK_OK(bh_device_sync(w->r.device, LONG_NS));
    for (uint32_t i = 0; i < gone_count; i++) area_free(gone[i]);
}

/* ---- workers that die ---- */

struct striker {
    bh_device device;
    _Atomic(int) stop;
    uint64_t seed;
    uint32_t period;
    int strikes;
};

static void *strike_now_and_then(void *context) {
    struct striker *self = context;
    rng random = {self->seed};
    while (!atomic_load(&self->stop)) {
        /* Workers that start slowly must get something done in between. */
        uint32_t pause = test_time_scale() > 1 ? 500 : 0;
        sleep_ms(pause + rng_below(&random, self->period));
        bh_device_status status = status_of(self->device);
        if (status.worker_pid <= 0) continue;
        uint32_t way = rng_below(&random, 8);
        if (way > 1) {
            kill(status.worker_pid, SIGKILL);
        } else {
            kill(status.worker_pid, SIGSTOP);
            sleep_ms(rng_below(&random, 20));
            kill(status.worker_pid, way ? SIGCONT : SIGKILL);
        }
        self->strikes++;
    }
    return NULL;
}

static void world_open(world *w, rig r, uint64_t seed) {
    static const uint64_t sizes[SLOTS] = {
        4 * KIB, 4 * KIB + 4, 8 * KIB, 5000, 64 * KIB + 8, MIB + 12, 6000, 3 * MIB + 500, 20 * KIB};
    w->r = r;
    w->random.state = seed;
    w->lane_count = 1 + below(w, LANES_MOST);
    for (uint32_t i = 0; i < w->lane_count; i++) w->lanes[i] = open_lane(w->r.device);
    w->arena_bytes = 48 * MIB;
    w->arena = malloc(w->arena_bytes);
    for (uint64_t i = 0; i < w->arena_bytes; i += 4) {
        uint32_t word = (uint32_t)(i * 2654435761u) ^ (uint32_t)(i >> 9);
        memcpy(w->arena + i, &word, 4);
    }
    w->host_bytes = 48 * MIB;
    REQUIRE_OK(bh_host_alloc(w->r.device, w->host_bytes, (void **)&w->host));
    REQUIRE_OK(bh_host_pool_open(w->r.device, NULL, &w->pool));
    for (uint32_t i = 0; i < SLOTS; i++) {
        uint64_t bytes = sizes[i];
        if (i == 7 && below(w, 6) == 0 && !refusing()) bytes = 40 * MIB;
        w->slots[i] = area_new(w, bytes, i == 4 ? 1 : i == 8 ? 1 : i == 3 ? 2 : 0);
        read_back(w->slots[i]);
    }
    w->flag = flag_alloc(w->r.device);
    uint64_t addresses[SCATTERED], base = address_of(w->slots[0]->buffer);
    for (uint32_t i = 0; i < SCATTERED; i++) {
        w->scattered[i] = i * 16 + below(w, 16);
        addresses[i] = base + w->scattered[i] * 4;
    }
    REQUIRE_OK(bh_buffer_alloc(w->r.device, BH_U64, SCATTERED, NULL, &w->table));
    REQUIRE_OK(bh_buffer_write(w->table, 0, addresses, sizeof addresses));
    for (uint32_t i = 0; i < SEQUENCES; i++) {
        replay *p = &w->replays[i];
        p->a = w->slots[below(w, 6)];
        do p->b = w->slots[below(w, 6)];
        while (p->b == p->a);
        do p->c = w->slots[below(w, 6)];
        while (p->c == p->a || p->c == p->b);
        use u = {p->a, 0, 256, true};
        bh_buffer view = view_of(&u);
        uint32_t n = 64, zero = 0;
        uint8_t byte = 0x5a;
        REQUIRE_OK(bh_sequence_begin(w->r.device, NULL, &p->sequence));
        REQUIRE_OK(bh_sequence_launch(p->sequence, rig_kernel(&w->r, "churn"), BH_GRID(64, 64),
                                      BH_ARGS(BH_INOUT(view), zero, n), NULL, &p->launch));
        REQUIRE_OK(record_copy(p->sequence, p->b->buffer, 8, p->a->buffer, 0, 256, NULL));
        REQUIRE_OK(record_fill(p->sequence, p->c->buffer, 300, 100, &byte, 1, NULL));
        REQUIRE_OK(bh_sequence_finish(p->sequence));
        CHECK_OK(bh_buffer_release(view));
    }
    for (uint32_t i = 0; i < PREPARED; i++) {
        area **of = w->prepared_areas[i];
        of[0] = w->slots[below(w, 6)];
        do of[1] = w->slots[below(w, 6)];
        while (of[1] == of[0]);
        do of[2] = w->slots[below(w, 6)];
        while (of[2] == of[0]);
        bh_launch_options how = on_lane((bh_lane){0}, i % 2 ? BH_SUBMIT_IDEMPOTENT : 0);
        use to = word_use(of[0], 0, 48), x = word_use(of[1], 0, 48), y = word_use(of[2], 0, 48);
        bh_buffer vt = view_of(&to), vx = view_of(&x), vy = view_of(&y);
        uint32_t n = 48, k = 0;
        REQUIRE_OK(bh_prepare(rig_kernel(&w->r, "mix"), BH_GRID(n, 64),
                              BH_ARGS(BH_OUT(vt), BH_IN(vx), BH_IN(vy), k, n), &how,
                              &w->prepared[i]));
        bh_buffer_release(vt), bh_buffer_release(vx), bh_buffer_release(vy);
    }
}

enum { KILLS = 1, BREAKS = 2, CANCELS = 4, CHANGES = 8 };

static void world_close(world *w) {
    fprintf(stderr, "%u steps, %llu losses;", w->step,
            (unsigned long long)status_of(w->r.device).losses);
    for (uint32_t i = 0; i <= BH_E_INTERNAL; i++)
        if (w->tally[i])
            fprintf(stderr, " %s %llu", bh_status_name((bh_status)i),
                    (unsigned long long)w->tally[i]);
    fprintf(stderr, "\n");
}

/* Several threads, each with a world of its own on one device. */
enum { WORLDS_MOST = 3 };

typedef struct worlds {
    world *of[WORLDS_MOST];
    uint32_t what;
    uint64_t end;
} worlds;

static void live(void *context, unsigned index) {
    worlds *self = context;
    world *w = self->of[index];
    w->losing = self->what & (KILLS | BREAKS);
    do run_batch(w, self->what & BREAKS, self->what & CANCELS, self->what & CHANGES);
    while (test_failures() == 0 && now_ns() < self->end);
}

static void run_worlds(uint64_t seed, uint32_t flags, unsigned count, uint32_t what, unsigned ms) {
    worlds self = {.what = what};
    rng random = rng_seeded(seed);
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = UINT32_MAX;
    options.queue_length = rng_below(&random, 2) ? 64 : 0;
    rig r = rig_open_with(&options);
    pthread_t thread;
    for (unsigned i = 0; i < count; i++) {
        self.of[i] = calloc(1, sizeof *self.of[i]);
        REQUIRE(self.of[i] != NULL);
        world_open(self.of[i], r, (uint64_t)rng_next(&random) << 32 | rng_next(&random));
    }
    struct striker striker = {
        .device = r.device, .seed = random.state, .period = 15 + rng_below(&random, 60)};
    if (what & KILLS) REQUIRE(pthread_create(&thread, NULL, strike_now_and_then, &striker) == 0);
    self.end = now_ns() + ms * MS;
    run_threads(count, live, &self);
    if (what & KILLS) {
        atomic_store(&striker.stop, 1);
        pthread_join(thread, NULL);
    }
    for (unsigned i = 0; i < count; i++) world_close(self.of[i]);
    CHECK_OK(bh_device_close(r.device));
    for (unsigned i = 0; i < count; i++) {
        world *w = self.of[i];
        for (uint64_t k = 0; k < (w->old_count < OLD ? w->old_count : OLD); k++)
            CHECK_STATUS(bh_wait(w->old[k].ticket, 0), w->old[k].status);
        for (uint32_t k = 0; k < SLOTS; k++) area_free(w->slots[k]);
        free(w->arena);
        free(w);
    }
}

TEST(work_that_is_cancelled) {
    run_worlds(2, 0, 1, CANCELS | CHANGES, 700);
}

TEST(workers_die) {
    run_worlds(3, 0, 1, KILLS, 800);
}

TEST(workers_die_and_work_is_cancelled) {
    run_worlds(4, 0, 1, KILLS | CANCELS | CHANGES, 1200);
}

TEST(kernels_fault) {
    run_worlds(5, 0, 1, BREAKS | CANCELS, 1200);
}

TEST(everything_at_once) {
    run_worlds(6, 0, 1, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}

TEST(everything_at_once_without_standby) {
    run_worlds(7, BH_DEVICE_NO_STANDBY, 1, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}

TEST(everything_at_once_in_three_threads) {
    rig r = rig_open(0);
    bool slow = has_queues(r.device) && test_time_scale() > 1;
    CHECK_OK(bh_device_close(r.device));
    if (slow) SKIP("kernels take too long behind queues and under a sanitizer");
    run_worlds(8, 0, 3, KILLS | BREAKS | CANCELS | CHANGES, 1500);
}
