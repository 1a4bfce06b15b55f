/* SPDX-License-Identifier: Apache-2.0 */
/* The model: what is known of each byte after work that was done, failed, cancelled or refused. */
#include "../../support/buffers.h"
#include "promises.h"

const char *const kind_names[KINDS] = {
    "iota",      "mix",        "churn",     "copy_words", "spin",      "gather",     "scatter",
    "prepared",  "sequence",   "fill",      "copy",       "write",     "write_host", "read",
    "read_pool", "write_rows", "read_rows", "copy_rows",  "fill_rows", "write_now",  "read_now",
    "copy_now",  "fill_now",   "accept",    "break",      "hang"};

area *area_new(world *w, uint64_t bytes, uint32_t managed) {
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

void area_free(area *a) {
    free(a->value);
    free(a->state);
    free(a);
}

bool is_all(const use *u, uint8_t state) {
    const uint8_t *at = u->of->state + u->offset;
    return at[0] == state && memcmp(at, at + 1, u->bytes - 1) == 0;
}

bool has_any(const use *u, uint8_t state) {
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

void repeat_pattern(uint8_t *to, uint64_t bytes, uint32_t step, uint32_t length) {
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
        if (is_all(&o->reads[0], KNOWN)) CHECK_MEM_EQ(o->target, a, o->reads[0].bytes);
        break;
    case WRITE_ROWS:
        for (uint64_t i = 0; i < rows->height; i++)
            memcpy(to + i * rows->target_pitch, o->source + i * rows->source_pitch, rows->width);
        break;
    case READ_ROWS:
        if (is_all(&o->reads[0], KNOWN))
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
        if (!is_all(&o->reads[i], KNOWN)) return false;
    return true;
}

void explain(const world *w, const op *about) {
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

bool refusing(void) {
    return getenv("BULKHEAD_TEST_REFUSE") != NULL;
}

static bool uses_managed(const op *o) {
    for (uint32_t i = 0; i < o->read_count; i++)
        if (o->reads[i].of->mapped) return true;
    for (uint32_t i = 0; i < o->write_count; i++)
        if (o->writes[i].of->mapped) return true;
    return false;
}

/* Transfers, and launches that were said to be; managed buffers move in pages, which count
 * whole. */
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

void apply_to_model(world *w, op *o) {
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
            if (has_any(&o->reads[i], DOUBT)) {
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
            if (!has_any(&o->writes[0], DOUBT) || !is_all(&o->writes[0], DOUBT))
                set(&o->writes[0], ANY);
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
        /* A call of several pieces may have had some of them done; a lost worker may have begun
         * it. */
        if (o->kind == SEQUENCE && o->has_ticket) break;
        for (uint32_t i = 0; i < o->write_count; i++) {
            const use *u = &o->writes[i];
            bool whole = u->bytes < 512 * KIB - 1 && !w->losing;
            if (!whole && !is_all(u, DOUBT)) set(u, ANY);
        }
        return;
    default:
        WRONG(w, o, "step %u (%s) is %s", o->step, kind_names[o->kind], bh_status_name(o->status));
    }
    for (uint32_t i = 0; i < o->write_count; i++) set(&o->writes[i], DOUBT);
}
