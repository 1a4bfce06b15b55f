/* SPDX-License-Identifier: Apache-2.0 */
/* A call that fails has not written the ticket it was given storage for, whatever it fails of, also
 * where it is several requests and some of them were taken. */
#include <signal.h>

#include "../support/managed.h"
#include "../support/transfers.h"

enum { WORDS = 1024, LARGE = 6 << 20, CALLS = 14 };

static const bh_ticket untouched = {0x1111, 0x2222};

typedef struct scene {
    rig r;
    bh_lane lane;
    bh_buffer from, to, large;
    uint64_t offset, bytes;
    void *host;
    uint8_t *plain;
    bh_kernel kernel;
    bh_prepared prepared;
    bh_sequence sequence;
    uint32_t flags;
} scene;

static void scene_open(scene *s, const bh_device_options *options) {
    memset(s, 0, sizeof *s);
    s->r = rig_open_with(options);
    s->lane = open_lane(s->r.device);
    s->from = words_filled(s->r.device, WORDS, 1);
    s->to = words_filled(s->r.device, WORDS, 2);
    s->bytes = WORDS * 4;
    s->plain = calloc(1, LARGE);
    REQUIRE(s->plain != NULL);
    REQUIRE_OK(bh_buffer_alloc(s->r.device, BH_U8, LARGE, NULL, &s->large));
    REQUIRE_OK(bh_host_alloc(s->r.device, LARGE, &s->host));
    s->kernel = rig_kernel(&s->r, "copy_words");
}

/* What keeps the buffers that are there now. */
static void scene_keep(scene *s) {
    bh_launch_options options = on_lane(s->lane, s->flags);
    REQUIRE_OK(bh_prepare(s->kernel, BH_GRID(WORDS, 64),
                          BH_ARGS(BH_IN(s->from), BH_OUT(s->to), (uint32_t)WORDS), &options,
                          &s->prepared));
    REQUIRE_OK(bh_sequence_begin(s->r.device, NULL, &s->sequence));
    REQUIRE_OK(record_copy(s->sequence, s->to, 0, s->from, 0, s->bytes, NULL));
    REQUIRE_OK(bh_sequence_finish(s->sequence));
}

static void scene_close(scene *s) {
    (void)bh_device_close(s->r.device);
    free(s->plain);
}

static bh_status make_call(scene *s, int which, bh_ticket *out) {
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = s->bytes / 4;
    rows.height = 4;
    rows.source_pitch = rows.target_pitch = rows.width;
    uint32_t pattern[5] = {1, 2, 3, 4, 5};
    bh_launch_options options = on_lane(s->lane, s->flags);
    bh_submit_options replay = BH_INIT(replay);
    replay.lane = s->lane;
    replay.flags = s->flags;
    switch (which) {
    case 0:
        return bh_submit_write(s->lane, s->from, s->offset, s->plain, s->bytes, out);
    case 1:
        return bh_submit_write(s->lane, s->from, s->offset, s->host, s->bytes, out);
    case 2:
        return bh_submit_read(s->lane, s->from, s->offset, s->host, s->bytes, out);
    case 3:
        return bh_submit_copy(s->lane, s->to, s->offset, s->from, s->offset, s->bytes, out);
    case 4:
        return bh_submit_fill(s->lane, s->from, s->offset, s->bytes, pattern, 4, out);
    case 5: /* through a staging slot */
        return bh_submit_fill(s->lane, s->from, s->offset, s->bytes / 20 * 20, pattern, 20, out);
    case 6:
        rows.target_offset = rows.source_offset = s->offset;
        return submit_copy_rows(s->lane, s->to, s->from, &rows, out);
    case 7:
        rows.target_offset = s->offset;
        return submit_write_rows(s->lane, s->from, s->plain, &rows, out);
    case 8:
        rows.source_offset = s->offset;
        return submit_read_rows(s->lane, s->host, s->from, &rows, out);
    case 9:
        rows.target_offset = s->offset;
        return submit_fill_rows(s->lane, s->from, &rows, pattern, 4, out);
    case 10:
        return bh_launch(s->kernel, BH_GRID(WORDS, 64),
                         BH_ARGS(BH_IN(s->from), BH_OUT(s->to), (uint32_t)WORDS), &options, out);
    case 11:
        return s->prepared.id ? bh_prepared_launch(s->prepared, NULL, 0, out) : BH_OK;
    case 12:
        return s->sequence.id ? bh_sequence_submit(s->sequence, &replay, out) : BH_OK;
    default:
        return prefetch_on(s->lane, s->from, s->offset, s->bytes, BH_TO_DEVICE, out);
    }
}

/* All calls; returns a bit for each that failed. */
static unsigned call_all(scene *s, const char *when) {
    unsigned failed = 0;
    for (int which = 0; which < CALLS; which++) {
        bh_ticket ticket = untouched;
        bh_status status = make_call(s, which, &ticket);
        if (status == BH_OK) continue;
        failed |= 1u << which;
        bool same = ticket.lane == untouched.lane && ticket.sequence == untouched.sequence;
        if (!same) printf("%s: call %d failed with %d and wrote its ticket\n", when, which, status);
        CHECK(same);
    }
    return failed;
}

enum {
    READERS = 1u << 2 | 1u << 3 | 1u << 6 | 1u << 8 | 1u << 10 | 1u << 11 | 1u << 12,
    TRANSFERS = 0x3ff,
    ALL = (1u << CALLS) - 1,
    ALL_BUT_PREFETCH = ALL & ~(1u << 13)
};
#define CHECK_FAILED(bits, wanted) CHECK_EQ((bits) & (wanted), (unsigned)(wanted))

TEST(an_invalid_range_is_refused) {
    scene s;
    bh_device_options options = device_options(0);
    scene_open(&s, &options);
    s.offset = WORDS * 4 - 40;
    CHECK_FAILED(call_all(&s, "out of range"), TRANSFERS);
    scene_close(&s);
}

TEST(a_lane_that_is_closed) {
    scene s;
    bh_device_options options = device_options(0);
    scene_open(&s, &options);
    scene_keep(&s);
    CHECK_OK(bh_lane_release(s.lane));
    CHECK_FAILED(call_all(&s, "closed lane"), ALL);
    scene_close(&s);
}

TEST(suspect_inputs) {
    scene s;
    bh_device_options options = device_options(0);
    scene_open(&s, &options);
    scene_keep(&s);
    CHECK_STATUS(run_now(rig_kernel(&s.r, "write_then_poke"), BH_GRID(WORDS, 64),
                         BH_ARGS(BH_INOUT(s.from), (uint32_t)WORDS, NOWHERE)),
                 BH_E_FAULT);
    wait_generation(s.r.device, 2);
    for (int which = 0; which < CALLS; which++) {
        bh_ticket ticket = untouched;
        if (!(READERS >> which & 1)) continue;
        CHECK_REFUSED(make_call(&s, which, &ticket), BH_E_STALE);
        CHECK_EQ(ticket.lane, untouched.lane);
        CHECK_EQ(ticket.sequence, untouched.sequence);
    }
    scene_close(&s);
}

TEST(a_full_queue) {
    scene s;
    bh_device_options options = device_options(0);
    options.queue_length = 64;
    scene_open(&s, &options);
    s.flags = BH_SUBMIT_NO_BLOCK;
    scene_keep(&s);
    gate g = gate_close(&s.r, s.lane, 0);
    bh_launch_options there = on_lane(s.lane, BH_SUBMIT_NO_BLOCK);
    bh_args args = BH_ARGS(BH_INOUT(s.to), 1u);
    bh_kernel add_one = rig_kernel(&s.r, "add_one");
    while (bh_launch(add_one, BH_GRID(1, 1), args, &there, NULL) == BH_OK) continue;
    for (int which = 10; which <= 12; which++) {
        bh_ticket ticket = untouched;
        CHECK_REFUSED(make_call(&s, which, &ticket), BH_E_BUSY);
        CHECK_EQ(ticket.lane, untouched.lane);
        CHECK_EQ(ticket.sequence, untouched.sequence);
    }
    gate_open(&g);
    CHECK_OK(bh_device_sync(s.r.device, LONG_NS));
    scene_close(&s);
}

TEST(a_managed_buffer_that_is_mapped) {
    scene s;
    bh_device_options options = device_options(0);
    scene_open(&s, &options);
    s.from = managed_made(s.r.device, WORDS, 0).buffer;
    scene_keep(&s);
    void *words;
    CHECK_OK(bh_managed_map(s.from, 0, s.bytes, BH_MAP_READ | BH_MAP_WRITE, &words));
    CHECK_FAILED(call_all(&s, "mapped"), ALL);
    CHECK_OK(bh_managed_unmap(words, s.bytes));
    scene_close(&s);
}

static void wait_stopped(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(device).state != BH_HEALTH_STOPPED) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

TEST(a_device_that_has_stopped) {
    scene s;
    bh_device_options options = device_options(0);
    options.restart_limit = 1;
    scene_open(&s, &options);
    scene_keep(&s);
    kill_worker(s.r.device, SIGKILL);
    kill(health_of(s.r.device).worker_pid, SIGKILL);
    wait_stopped(s.r.device);
    CHECK_FAILED(call_all(&s, "stopped"), ALL);
    CHECK_OK(bh_device_close(s.r.device));
    CHECK_FAILED(call_all(&s, "closed"), ALL);
    free(s.plain);
}

/* ---- several requests, of which some are taken ---- */

struct large {
    scene s;
    _Atomic(int) ended, failed;
};

static void *submit_large(void *context) {
    struct large *self = context;
    scene *s = &self->s;
    s->from = s->to = s->large;
    for (int which = 0; !atomic_load(&self->ended); which = which == 0 ? 7 : 0) {
        bh_ticket ticket = untouched;
        s->bytes = LARGE;
        bh_status status = make_call(s, which, &ticket);
        if (status == BH_OK) continue;
        bool same = ticket.lane == untouched.lane && ticket.sequence == untouched.sequence;
        if (!same) printf("call %d failed with %d and wrote its ticket\n", which, status);
        CHECK(same);
        atomic_fetch_add(&self->failed, 1);
        if (status == BH_E_STOPPED) break;
    }
    return NULL;
}

TEST(several_requests_that_a_stop_divides) {
    for (int round = 0; round < 12; round++) {
        struct large self = {.ended = 0};
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.restart_limit = 1;
        scene_open(&self.s, &options);
        kill_worker(self.s.r.device, SIGKILL);
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, submit_large, &self) == 0);
        sleep_ms(5 + (unsigned)round);
        kill(health_of(self.s.r.device).worker_pid, SIGKILL);
        wait_stopped(self.s.r.device);
        sleep_ms(2);
        atomic_store(&self.ended, 1);
        pthread_join(thread, NULL);
        scene_close(&self.s);
    }
}
