/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences: the same results as the same work launched one by one, however they are bound, set,
 * repeated, shared by threads and given up. */
#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 256, STEPS = 40 };

static bh_ticket replay(bh_sequence sequence, bh_lane lane, uint32_t repeat) {
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.repeat = repeat;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(sequence, &options, &ticket));
    return ticket;
}

static const bh_lane own = {0};

TEST(a_replay_does_what_its_launches_would) {
    rig r = rig_open(0);
    bh_kernel churn = rig_kernel(&r, "churn"), mix = rig_kernel(&r, "mix");
    bh_buffer p = words_counting(r.device, N, 7), q = words_filled(r.device, N, 0),
              s = words_filled(r.device, N, 0);
    bh_buffer half;
    REQUIRE_OK(bh_buffer_view(s, 0, 0, N / 2, &half));
    bh_sequence seq = sequence_open(r.device, "mixed");
    uint32_t step = 99, pattern = 0x01020304;
    for (uint32_t i = 0; i < STEPS; i++) {
        REQUIRE_OK(bh_sequence_launch(seq, churn, BH_GRID(N, 64),
                                      BH_ARGS(BH_INOUT(p), i, (uint32_t)N), NULL, &step));
        CHECK_EQ(step, i);
    }
    REQUIRE_OK(record_copy(seq, q, 0, p, 0, N * 4, NULL));
    REQUIRE_OK(record_fill(seq, half, 0, N * 2, &pattern, 4, &step));
    CHECK_EQ(step, STEPS + 1);
    REQUIRE_OK(bh_sequence_launch(seq, mix, BH_GRID(N / 2, 64),
                                  BH_ARGS(BH_OUT(p), BH_IN(q), BH_IN(s), 5u, (uint32_t)N / 2), NULL,
                                  NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK(words_count(p, N, 7)); /* nothing ran yet */
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    uint32_t words[N], copies[N];
    CHECK_OK(bh_buffer_read(p, 0, words, sizeof words));
    CHECK_OK(bh_buffer_read(q, 0, copies, sizeof copies));
    for (uint32_t i = 0; i < N; i++) {
        uint32_t want = 7 + i;
        for (uint32_t k = 0; k < STEPS; k++) want = churn_word(want, k);
        CHECK_EQ(copies[i], want);
        if (i < N / 2) want = mix_word(want, pattern, 5);
        CHECK_EQ(words[i], want);
    }
    CHECK(words_are(half, N / 2, pattern));
    CHECK_OK(bh_sequence_release(seq));
    CHECK_OK(bh_device_close(r.device));
}

TEST(steps_run_as_often_as_asked) {
    rig r = rig_open(0);
    bh_buffer p = words_counting(r.device, N, 0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_lane lane = open_lane(r.device);
    bh_sequence seq = sequence_open(r.device, NULL);
    for (int i = 0; i < 3; i++)
        REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), (uint32_t)N),
                                      NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_wait(replay(seq, lane, 100), LONG_NS));
    CHECK(words_count(p, N, 300));
    for (int i = 0; i < 50; i++) replay(seq, i % 2 ? lane : own, 2);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK(words_count(p, N, 600));
    CHECK_OK(bh_device_close(r.device)); /* with the sequence still there */
}

/* Every replay in the queue has the buffers and values it was submitted with, also where there are
 * more of them than versions. */
TEST_TIMEOUT(replays_in_the_queue_keep_their_bindings, 60) {
    enum { REPLAYS = 40 };
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_kernel mix = rig_kernel(&r, "mix");
    bh_buffer a = words_counting(r.device, N, 0), b = words_counting(r.device, N, 1000);
    bh_buffer first = words_filled(r.device, N, 0), out[REPLAYS];
    bh_sequence seq = sequence_open(r.device, "bound");
    uint32_t step;
    REQUIRE_OK(bh_sequence_launch(seq, mix, BH_GRID(N, 64),
                                  BH_ARGS(BH_OUT(first), BH_IN(a), BH_IN(b), 0u, (uint32_t)N), NULL,
                                  &step));
    REQUIRE_OK(bh_sequence_finish(seq));
    for (uint32_t i = 0; i < REPLAYS; i++) out[i] = words_filled(r.device, N, 0);
    bh_ticket tickets[REPLAYS];
    for (int round = 0; round < 2; round++) {
        bool gated = round == 0;
        uint32_t count = gated ? 10 : REPLAYS; /* with the gate closed, no more than fit */
        gate g = {0};
        if (gated) g = gate_close(&r, lane, 0);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(bh_sequence_bind(seq, first, out[i]));
            CHECK_OK(bh_sequence_bind(seq, a, i % 2 ? b : a));
            CHECK_OK(bh_sequence_set(seq, step, 3, BH_ARG(i * 77 + (uint32_t)round)));
            tickets[i] = replay(seq, lane, 1);
        }
        if (gated) CHECK_STATUS(bh_wait(tickets[0], 0), BH_E_BUSY);
        if (gated) gate_open(&g);
        for (uint32_t i = 0; i < count; i++) {
            CHECK_OK(bh_wait(tickets[i], LONG_NS));
            uint32_t words[N];
            CHECK_OK(bh_buffer_read(out[i], 0, words, sizeof words));
            for (uint32_t k = 0; k < N; k++)
                CHECK_EQ(words[k],
                         mix_word(i % 2 ? 1000 + k : k, 1000 + k, i * 77 + (uint32_t)round));
        }
    }
    CHECK(words_are(first, N, 0));
    CHECK_OK(bh_device_close(r.device));
}

/* The device is done with a version at any moment, also while a replay looks for one. */
TEST_TIMEOUT(changes_wait_for_room_that_comes_at_any_moment, 60) {
    enum { CHANGES = 5000 };
    rig r = rig_open(0);
    bh_buffer p = words_filled(r.device, 1, 0);
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "store_word"), BH_GRID(1, 1),
                                  BH_ARGS(BH_OUT(p), 0u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    for (uint32_t i = 1; i <= CHANGES; i++) {
        REQUIRE_OK(bh_sequence_set(seq, 0, 1, BH_ARG(i)));
        replay(seq, own, 1);
    }
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK(words_are(p, 1, CHANGES));
    CHECK_OK(bh_device_close(r.device));
}

TEST(changes_beyond_the_room_for_them_wait_or_say_busy) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer p = words_filled(r.device, 1, 0);
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "store_word"), BH_GRID(1, 1),
                                  BH_ARGS(BH_OUT(p), 0u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    gate g = gate_close(&r, lane, 0);
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = BH_SUBMIT_NO_BLOCK;
    bh_status status = BH_OK;
    uint32_t sent = 0;
    while (status == BH_OK && sent < 1000) {
        CHECK_OK(bh_sequence_set(seq, 0, 1, BH_ARG(sent + 1)));
        status = bh_sequence_submit(seq, &options, NULL);
        sent += status == BH_OK;
    }
    CHECK_EQ(status, BH_E_BUSY);
    CHECK_GE(sent, 4);
    gate_open(&g);
    CHECK_OK(
        bh_wait(replay(seq, lane, 1), LONG_NS)); /* waits for room, then runs the last change */
    CHECK_EQ(word_read(p, 0), sent + 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(transfers_are_steps_too) {
    rig r = rig_open(0);
    void *memory;
    REQUIRE_OK(bh_host_alloc(r.device, 2 * N * 4, &memory));
    uint32_t *in = memory, *out = in + N;
    bh_buffer p = words_filled(r.device, N, 0);
    bh_sequence seq = sequence_open(r.device, "round trip");
    REQUIRE_OK(record_write(seq, p, 0, in, N * 4, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "churn"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(p), 3u, (uint32_t)N), NULL, NULL));
    REQUIRE_OK(record_read(seq, p, 0, out, N * 4, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    for (uint32_t round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < N; i++) in[i] = round * 1000 + i;
        CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
        for (uint32_t i = 0; i < N; i++) CHECK_EQ(out[i], churn_word(round * 1000 + i, 3));
    }
    CHECK_REFUSED(bh_host_free(r.device, memory), BH_E_BUSY);
    CHECK_OK(bh_sequence_release(seq));
    CHECK_OK(bh_host_free(r.device, memory));
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_a_sequence_uses_stays_alive) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_basic);
    bh_buffer p = words_counting(r.device, N, 0), q = words_filled(r.device, N, 0);
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, get_kernel(module, "copy_words"), BH_GRID(N, 64),
                                  BH_ARGS(BH_IN(p), BH_OUT(q), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_module_release(module));
    CHECK_OK(bh_buffer_release(p));
    for (int i = 0; i < 8; i++) /* would take its place */
        (void)words_filled(r.device, N, 0xdead);
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    CHECK(words_count(q, N, 0));
    bh_buffer again = words_counting(r.device, N, 50);
    CHECK_OK(bh_sequence_bind(seq, p, again)); /* by the name it was recorded under */
    uint64_t buffers = memory_of(r.device).buffers;
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    CHECK(words_count(q, N, 50));
    CHECK_OK(bh_sequence_release(seq));
    CHECK_EQ(memory_of(r.device).buffers, buffers);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_sequence_released_while_it_is_queued_still_runs) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_buffer p = words_filled(r.device, N, 5), keep = words_filled(r.device, N, 0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL,
                                  NULL));
    REQUIRE_OK(record_copy(seq, keep, 0, p, 0, N * 4, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    gate g = gate_close(&r, lane, 0);
    bh_ticket ticket = replay(seq, lane, 3);
    CHECK_OK(bh_sequence_release(seq));
    CHECK_OK(bh_buffer_release(p));
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_release(seq), BH_E_INVALID);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_are(keep, N, 8));
    bh_sequence next = sequence_open(r.device, NULL); /* sweeps the first one */
    CHECK_OK(bh_sequence_release(next));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(replays_come_after_tickets_of_other_lanes) {
    rig r = rig_open(0);
    bh_lane other = open_lane(r.device), lane = open_lane(r.device);
    bh_buffer p = words_filled(r.device, 1, 0);
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "store_word"), BH_GRID(1, 1),
                                  BH_ARGS(BH_OUT(p), 9u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    gate g = gate_close(&r, other, 0);
    flag_wait_begun(g.flag);
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.after = &g.ticket;
    options.after_count = 1;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &ticket));
    sleep_ms(50);
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_EQ(word_read(p, 0), 9);
    options.flags = BH_SUBMIT_WAIT;
    CHECK_OK(bh_sequence_submit(seq, &options, NULL)); /* what has ended is not waited for */
    CHECK_OK(bh_device_close(r.device));
}

/* An input that is bound to what the launch also writes goes by the writable address. */
TEST(inputs_bound_onto_outputs_work) {
    rig r = rig_open(0);
    bh_buffer a = words_counting(r.device, N, 0), b = words_filled(r.device, N, 0);
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "mix"), BH_GRID(N, 64),
                                  BH_ARGS(BH_OUT(b), BH_IN(a), BH_IN(a), 1u, (uint32_t)N), NULL,
                                  NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_sequence_bind(seq, b, a));
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    uint32_t words[N];
    CHECK_OK(bh_buffer_read(a, 0, words, sizeof words));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(words[i], mix_word(i, i, 1));
    CHECK_OK(bh_device_close(r.device));
}

typedef struct shared {
    rig r;
    bh_sequence seq;
    uint32_t step;
} shared;

static void use_at_once(void *context, unsigned index) {
    shared *s = context;
    bh_lane lane = open_lane(s->r.device);
    bh_kernel add = rig_kernel(&s->r, "add_one");
    bh_buffer p = words_filled(s->r.device, N, index);
    for (uint32_t i = 0; i < 20; i++) {
        CHECK_OK(bh_sequence_set(s->seq, s->step, 1, BH_ARG(index * 100 + i)));
        CHECK_OK(bh_wait(replay(s->seq, lane, 1), LONG_NS));
        if (i % 5) continue;
        bh_sequence mine = sequence_open(s->r.device, "mine");
        REQUIRE_OK(bh_sequence_launch(mine, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), (uint32_t)N),
                                      NULL, NULL));
        REQUIRE_OK(bh_sequence_finish(mine));
        replay(mine, lane, 2);
        CHECK_OK(bh_sequence_release(mine));
    }
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    CHECK(words_are(p, N, index + 8));
    CHECK_OK(bh_lane_release(lane));
}

TEST_TIMEOUT(threads_share_a_sequence, 60) {
    shared s = {.r = rig_open(0)};
    bh_buffer p = words_filled(s.r.device, 1, 0);
    s.seq = sequence_open(s.r.device, "shared");
    REQUIRE_OK(bh_sequence_launch(s.seq, rig_kernel(&s.r, "store_word"), BH_GRID(1, 1),
                                  BH_ARGS(BH_OUT(p), 0u), NULL, &s.step));
    REQUIRE_OK(bh_sequence_finish(s.seq));
    run_threads(4, use_at_once, &s);
    uint32_t last = word_read(p, 0);
    CHECK(last % 100 < 20 && last / 100 < 4);
    CHECK_OK(bh_device_close(s.r.device));
}

/* As with bh_submit, nothing is done. */
TEST(transfers_of_no_bytes_are_steps) {
    rig r = rig_open(0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer p = words_filled(r.device, N, 5), q = words_filled(r.device, N, 7),
              other = words_filled(r.device, N, 9);
    uint32_t word = 1, step = 77;
    bh_sequence seq = sequence_open(r.device, "gaps"), empty = sequence_open(r.device, "empty");
    REQUIRE_OK(record_copy(seq, p, 0, q, N * 4, 0, &step));
    CHECK_EQ(step, 0);
    REQUIRE_OK(record_fill(seq, p, 4, 0, &word, 4, &step));
    REQUIRE_OK(record_write(seq, p, 0, NULL, 0, &step));
    CHECK_EQ(step, 2);
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL,
                                  &step));
    CHECK_EQ(step, 3);
    bh_transfer rows = bh_transfer_read(p, 0, NULL, 0);
    rows.height = 3;
    rows.source_pitch = 16;
    for (uint32_t i = 4; i < 40; i++) {
        REQUIRE_OK(bh_sequence_add(seq, &rows.request, &step));
        CHECK_EQ(step, i);
    }
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_wait(replay(seq, own, 3), LONG_NS));
    CHECK(words_are(p, N, 8));
    CHECK_OK(bh_sequence_bind(seq, q, other)); /* recorded, though nothing was copied */
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    CHECK(words_are(p, N, 9));
    CHECK(words_are(q, N, 7));
    for (int i = 0; i < 20; i++) REQUIRE_OK(record_fill(empty, q, 0, 0, &word, 4, NULL));
    REQUIRE_OK(bh_sequence_finish(empty));
    CHECK_OK(bh_wait(replay(empty, own, 2), LONG_NS));
    CHECK(words_are(q, N, 7));
    CHECK_OK(bh_device_close(r.device));
}

TEST(names_have_up_to_63_bytes) {
    bh_device device = open_device();
    char name[65];
    memset(name, 'n', 64);
    name[64] = 0;
    bh_sequence_options options = BH_INIT(options);
    options.name = name;
    bh_sequence seq;
    CHECK_REFUSED(bh_sequence_begin(device, &options, &seq), BH_E_INVALID);
    name[63] = 0;
    REQUIRE_OK(bh_sequence_begin(device, &options, &seq));
    CHECK_REFUSED(bh_sequence_finish(seq), BH_E_INVALID); /* no steps */
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, name);
    CHECK_OK(bh_device_close(device));
}

TEST(wrong_calls_are_refused) {
    rig r = rig_open(0);
    bh_device other = open_device();
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer p = words_filled(r.device, N, 0), small = words_filled(r.device, 8, 0);
    bh_buffer foreign = words_filled(other, N, 0);
    uint32_t word = 1;
    void *host;
    REQUIRE_OK(bh_host_alloc(r.device, 64, &host));
    bh_sequence none = {0}, made_up = {0x6123456789abcdef}, seq;
    bh_args args = BH_ARGS(BH_INOUT(p), (uint32_t)N);

    CHECK_REFUSED(bh_sequence_begin(r.device, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_begin((bh_device){0}, NULL, &seq), BH_E_INVALID);
    bh_sequence_options bad = BH_INIT(bad);
    bad.flags = 1;
    CHECK_REFUSED(bh_sequence_begin(r.device, &bad, &seq), BH_E_INVALID);
    bad.size = 3;
    CHECK_REFUSED(bh_sequence_begin(r.device, &bad, &seq), BH_E_INVALID);
    bh_sequence bads[] = {none, made_up, {p.id}};
    for (int i = 0; i < 3; i++) {
        CHECK_REFUSED(bh_sequence_launch(bads[i], add, BH_GRID(N, 64), args, NULL, NULL),
                      BH_E_INVALID);
        CHECK_REFUSED(record_copy(bads[i], p, 0, small, 0, 4, NULL), BH_E_INVALID);
        CHECK_REFUSED(record_fill(bads[i], p, 0, 4, &word, 4, NULL), BH_E_INVALID);
        CHECK_REFUSED(record_write(bads[i], p, 0, host, 4, NULL), BH_E_INVALID);
        CHECK_REFUSED(record_read(bads[i], p, 0, host, 4, NULL), BH_E_INVALID);
        CHECK_REFUSED(bh_sequence_finish(bads[i]), BH_E_INVALID);
        CHECK_REFUSED(bh_sequence_bind(bads[i], p, small), BH_E_INVALID);
        CHECK_REFUSED(bh_sequence_set(bads[i], 0, 0, BH_ARG(1u)), BH_E_INVALID);
        CHECK_REFUSED(bh_sequence_submit(bads[i], NULL, NULL), BH_E_INVALID);
        CHECK_REFUSED(bh_sequence_release(bads[i]), BH_E_INVALID);
    }
    seq = sequence_open(r.device, "wrong");
    CHECK_REFUSED(bh_sequence_finish(seq), BH_E_INVALID); /* no steps */
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, p, p), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 0, 0, BH_ARG(1u)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_launch(seq, (bh_kernel){0}, BH_GRID(N, 64), args, NULL, NULL),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(0, 64), args, NULL, NULL), BH_E_LAUNCH);
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_NO_ARGS, NULL, NULL),
                  BH_E_LAUNCH);
    CHECK_REFUSED(
        bh_sequence_launch(seq, add, BH_GRID(N, 64), BH_ARGS(BH_INOUT(foreign), 1u), NULL, NULL),
        BH_E_INVALID);
    bh_launch_options there = on_lane(own, BH_SUBMIT_IDEMPOTENT);
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(N, 64), args, &there, NULL), BH_E_INVALID);
    there = on_lane(own, 0);
    there.deadline_ns = 1;
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(N, 64), args, &there, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_copy(seq, p, 0, small, 0, 100, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_copy(seq, small, UINT64_MAX, p, 0, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_copy(seq, p, 0, foreign, 0, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_copy(seq, p, 0, small, 33, 0, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_fill(seq, p, N * 4 + 1, 0, &word, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_fill(seq, p, 0, 4, NULL, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_fill(seq, p, 0, 6, &word, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_fill(seq, p, 0, 6, &word, 3, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_write(seq, p, 0, &word, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_read(seq, p, 0, &word, 4, NULL), BH_E_INVALID);
    CHECK_REFUSED(record_read(seq, p, 0, NULL, 4, NULL), BH_E_INVALID);
    uint32_t step = 77;
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64), args, NULL, &step));
    CHECK_EQ(step, 0); /* what was refused left nothing */
    REQUIRE_OK(record_fill(seq, small, 0, 4, &word, 4, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_REFUSED(bh_sequence_finish(seq), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_launch(seq, add, BH_GRID(N, 64), args, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, p, small), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, p, foreign), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, foreign, p), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_bind(seq, (bh_buffer){0}, p), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 2, 0, BH_ARG(1u)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 1, 0, BH_ARG(1u)), BH_E_INVALID); /* a fill */
    CHECK_REFUSED(bh_sequence_set(seq, 0, 2, BH_ARG(1u)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 0, 0, BH_ARG(1ull)), BH_E_INVALID); /* a buffer */
    CHECK_REFUSED(bh_sequence_set(seq, 0, 1, BH_ARG(1ull)), BH_E_LAUNCH);
    CHECK_REFUSED(bh_sequence_set(seq, 0, 1, BH_INOUT(p)), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_set(seq, 0, 1, BH_VALUE(NULL, 4)), BH_E_INVALID);
    bh_submit_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    CHECK_REFUSED(bh_sequence_submit(seq, &options, NULL), BH_E_INVALID);
    options.flags = 0;
    options.size = 1;
    CHECK_REFUSED(bh_sequence_submit(seq, &options, NULL), BH_E_INVALID);
    options.size = sizeof options;
    options.lane.id = 1;
    CHECK_REFUSED(bh_sequence_submit(seq, &options, NULL), BH_E_INVALID);
    CHECK_OK(bh_wait(replay(seq, own, 1), LONG_NS));
    CHECK(words_are(p, N, 1));
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_sequence_release(seq), BH_E_INVALID);
    CHECK_OK(bh_device_close(other));
}

/* Each step with a buffer of its own: recording and finishing take time for each step, not for each
 * pair of them. */
TEST(as_many_buffers_as_steps) {
    enum { MOST = 65536 };
    rig r = rig_open(0);
    bh_buffer all = words_filled(r.device, MOST, 7), view;
    bh_sequence seq = sequence_open(r.device, "many");
    uint32_t step, pattern = 0x01020304;
    for (uint32_t i = 0; i < MOST; i++) {
        REQUIRE_OK(bh_buffer_view(all, 0, i, 1, &view));
        REQUIRE_OK(record_fill(seq, view, 0, 4, &pattern, 4, &step));
        REQUIRE_EQ(step, i);
    }
    CHECK_REFUSED(record_fill(seq, view, 0, 4, &pattern, 4, NULL), BH_E_INVALID);
    CHECK_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_sequence_release(seq));
    CHECK_OK(bh_device_close(r.device));
}
