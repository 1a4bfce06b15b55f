/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: each operation with what it reads and writes, and how it is submitted. */
#include "../../support/transfers.h"
#include "promises.h"

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

use some_use(world *w, area *a, uint64_t most) {
    uint64_t bytes = some_bytes(w, a->bytes < most ? a->bytes : most);
    uint64_t room = a->bytes - bytes;
    uint64_t offset = below(w, 3) == 0 ? 0 : below(w, 2) ? room : room ? below(w, room) : 0;
    return (use){a, offset, bytes, true};
}

/* A range of words, and a view of it. */
use word_use(area *a, uint64_t first, uint32_t words) {
    return (use){a, first * 4, words * UINT64_C(4), true};
}

static uint64_t some_first(world *w, const area *a, uint32_t words) {
    uint64_t room = a->bytes / 4 - words;
    return below(w, 2) || room == 0 ? 0 : below(w, room + 1);
}

bh_buffer view_of(const use *u) {
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(u->of->buffer, 0, u->offset, u->bytes, &view));
    return view;
}

static uint8_t *host_take(world *w, uint64_t bytes) {
    if (w->host_used + bytes > w->host_bytes) return NULL;
    w->host_used += (bytes + 63) / 64 * 64;
    return w->host + w->host_used - (bytes + 63) / 64 * 64;
}

const uint8_t *some_source(world *w, uint64_t bytes) {
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
bool submit_one(world *w, op *o, bool breaks) {
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

void cancel_one(world *w) {
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
void ask_one(world *w) {
    if (w->count == 0) return;
    op *o = &w->batch[below(w, w->count)];
    if (!o->has_ticket) return;
    bh_status status = bh_wait(o->ticket, 0);
    if (o->seen != BH_E_BUSY && status != o->seen)
        WRONG(w, o, "step %u was %s and is %s", o->step, bh_status_name(o->seen),
              bh_status_name(status));
    o->seen = status;
}
