/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and lost workers: the step at fault is named, the standby has them ready, and what the
 * replay was to write is in doubt, no more. */
#include <signal.h>

#include "../support/support.h"
#include "../support/transfers.h"

enum { N = 64, STEPS = 30, BAD = 19 };

static const bh_lane own = {0};

static bh_ticket replay(bh_sequence sequence, bh_lane lane, uint32_t repeat, uint32_t flags) {
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.repeat = repeat;
    options.flags = flags;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(sequence, &options, &ticket));
    return ticket;
}

/* The steps a message names, counted from 0 as in the API: "step 19 of 30", "one of steps 16 to 23
 * of 30". */
static void named_steps(const char *message, unsigned *first, unsigned *last) {
    const char *one = strstr(message, "step "), *some = strstr(message, "steps ");
    *first = 1, *last = 0;
    if (some && sscanf(some, "steps %u to %u of", first, last) == 2) return;
    if (one && sscanf(one, "step %u of", first) == 1) *last = *first;
}

TEST_TIMEOUT(a_fault_in_a_sequence_names_its_step, 60) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 100;
    rig r = rig_open_with(&options);
    bh_buffer p = words_filled(r.device, N, 0), sink = words_filled(r.device, 1, 0),
              intact = words_counting(r.device, N, 3);
    bh_kernel add = rig_kernel(&r, "add_one"), poke = rig_kernel(&r, "poke");
    bh_sequence seq = sequence_open(r.device, "pokes");
    for (uint32_t i = 0; i < STEPS; i++) {
        if (i == BAD)
            REQUIRE_OK(bh_sequence_launch(seq, poke, BH_GRID(1, 1), BH_ARGS(address_of(sink), 5u),
                                          NULL, NULL));
        else
            REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(N, 64),
                                          BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    }
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_wait(replay(seq, own, 2, 0), LONG_NS));
    CHECK(words_are(p, N, 2 * (STEPS - 1)));
    wait_standby(r.device);
    CHECK_OK(bh_sequence_set(seq, BAD, 0, BH_ARG(NOWHERE)));
    bh_ticket bad = replay(seq, own, 3, 0);
    CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
    bh_error error;
    unsigned first, last;
    CHECK_STATUS(bh_ticket_error(bad, &error), BH_E_FAULT);
    CHECK_EQ(error.certain, 1);
    CHECK_STR_CONTAINS(error.message, "sequence \"pokes\"");
    CHECK_STR_CONTAINS(error.message, "poke");
    named_steps(error.message, &first, &last);
    CHECK(first <= BAD && BAD <= last);
    CHECK_LE(last - first + 1, has_queues(r.device) ? 16 : 1);
    if (first == last) CHECK_STR_EQ(error.kernel, "poke");
    CHECK(is_suspect(p));
    CHECK(words_count(intact, N, 3));
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_STALE); /* it reads what is in doubt */
    CHECK_OK(bh_buffer_accept(p));
    CHECK_OK(bh_sequence_set(seq, BAD, 0, BH_ARG(address_of(sink))));
    uint32_t before = word_read(p, 0);
    CHECK_OK(bh_wait(replay(seq, own, 1, 0), LONG_NS));
    CHECK_EQ(word_read(p, 0), before + STEPS - 1);
    CHECK_OK(bh_device_close(r.device));
}

/* However long it is, no more than sixteen steps are named, and each of them is. */
TEST_TIMEOUT(a_fault_in_a_long_sequence_is_put_down_to_few_steps, 90) {
    static const uint32_t lengths[] = {65, 200, 200, 200, 1000, 1000},
                          bads[] = {64, 0, 100, 199, 7, 777};
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1000;
    rig r = rig_open_with(&options);
    bh_kernel add = rig_kernel(&r, "add_one"), poke = rig_kernel(&r, "poke"),
              churn = rig_kernel(&r, "churn");
    bh_buffer p = words_filled(r.device, N, 0), sink = words_filled(r.device, 1, 0);
    for (int k = 0; k < 6; k++) {
        bh_sequence seq = sequence_open(r.device, "long");
        for (uint32_t i = 0; i < lengths[k]; i++) {
            bh_args adds = BH_ARGS(BH_INOUT(p), (uint32_t)N),
                    churns = BH_ARGS(BH_INOUT(p), 1u, (uint32_t)N),
                    pokes = BH_ARGS(address_of(sink), 5u);
            bool odd = i % 2;
            bh_kernel kernel = i == bads[k] ? poke : odd ? churn : add;
            REQUIRE_OK(bh_sequence_launch(seq, kernel,
                                          i == bads[k] ? BH_GRID(1, 1) : BH_GRID(N, 64),
                                          i == bads[k] ? pokes
                                          : odd        ? churns
                                                       : adds,
                                          NULL, NULL));
        }
        REQUIRE_OK(bh_sequence_finish(seq));
        CHECK_OK(bh_wait(replay(seq, own, 2, 0), LONG_NS));
        CHECK_OK(bh_sequence_set(seq, bads[k], 0, BH_ARG(NOWHERE)));
        bh_ticket bad = replay(seq, own, 3, 0);
        CHECK_STATUS(bh_wait(bad, LONG_NS), BH_E_FAULT);
        bh_error error;
        unsigned first, last;
        CHECK_STATUS(bh_ticket_error(bad, &error), BH_E_FAULT);
        named_steps(error.message, &first, &last);
        CHECK(first <= bads[k] && bads[k] <= last);
        CHECK_LE(last - first + 1, has_queues(r.device) ? 16 : 1);
        /* Each kernel with its steps, which never follow each other here. */
        unsigned add_first = first % 2 ? first + 1 : first,
                 churn_first = first % 2 ? first : first + 1;
        if (add_first == bads[k]) add_first += 2;
        if (churn_first == bads[k]) churn_first += 2;
        const struct {
            const char *name;
            unsigned step;
        } all[] = {{"poke", bads[k]}, {"add_one", add_first}, {"churn", churn_first}};
        for (int i = 0; i < 3 && last > first; i++) {
            char named[40];
            if (all[i].step > last) continue;
            snprintf(named, sizeof named, "%s %u", all[i].name, all[i].step);
            CHECK_STR_CONTAINS(error.message, named);
        }
        if (last > first + 2) {
            char last_two[2][24]; /* the end of the list is there too */
            for (unsigned i = 0; i < 2; i++) {
                snprintf(last_two[i], sizeof last_two[i], "%u", last - i);
                CHECK_STR_CONTAINS(strchr(error.message, '('), last_two[i]);
            }
        }
        CHECK_OK(bh_buffer_accept(p));
        CHECK_OK(bh_sequence_release(seq));
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_kernel_that_faults_in_sequences_is_quarantined) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1;
    rig r = rig_open_with(&options);
    bh_sequence seq = sequence_open(r.device, "bad");
    REQUIRE_OK(
        bh_sequence_launch(seq, rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_STATUS(bh_wait(replay(seq, own, 1, 0), LONG_NS), BH_E_FAULT);
    CHECK_REFUSED(bh_sequence_submit(seq, NULL, NULL), BH_E_QUARANTINED);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_standby_has_sequences_ready) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer p = words_filled(r.device, N, 0), q = words_filled(r.device, N, 100);
    bh_sequence seq = sequence_open(r.device, "survivor");
    for (int i = 0; i < STEPS; i++)
        REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                      BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_OK(bh_sequence_bind(seq, p, q));
    for (uint32_t i = 1; i <= 3; i++) {
        wait_standby(r.device);
        kill_worker(r.device, SIGKILL);
        CHECK_OK(bh_wait(replay(seq, own, 2, 0), LONG_NS));
        CHECK(words_are(q, N, 100 + i * 2 * STEPS));
        CHECK(words_are(p, N, 0));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* Some replays done, one running, others queued with bindings of their own: each gets what it
 * deserves. */
TEST_TIMEOUT(a_worker_killed_in_a_replay_takes_only_that_one, 60) {
    enum { REPLAYS = 6 };
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    bh_kernel gate_kernel = rig_kernel(&r, "gate");
    bh_buffer flag = flag_alloc(r.device), mark = words_filled(r.device, 1, 0);
    bh_buffer a = words_counting(r.device, N, 0), out[REPLAYS],
              first = words_filled(r.device, N, 0);
    bh_sequence seq = sequence_open(r.device, "copies"), stuck = sequence_open(r.device, "stuck");
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "copy_words"), BH_GRID(N, 64),
                                  BH_ARGS(BH_IN(a), BH_OUT(first), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_buffer half = words_filled(r.device, N, 1);
    REQUIRE_OK(record_copy(stuck, half, 0, a, 0, N * 4, NULL));
    REQUIRE_OK(bh_sequence_launch(stuck, gate_kernel, BH_GRID(1, 1),
                                  BH_ARGS(address_of(flag), BH_OUT(mark), 1u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(stuck));
    wait_standby(r.device);
    bh_ticket tickets[REPLAYS], held = {0, 0};
    for (uint32_t i = 0; i < REPLAYS; i++) {
        out[i] = words_filled(r.device, N, 77);
        CHECK_OK(bh_sequence_bind(seq, first, out[i]));
        if (i == 2) held = replay(stuck, lane, 1, 0);
        tickets[i] = replay(seq, lane, 1, i == 5 ? 0 : BH_SUBMIT_IDEMPOTENT);
    }
    flag_wait_begun(flag);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(bh_wait(held, LONG_NS), BH_E_LOST);
    CHECK(is_suspect(half));
    CHECK(is_suspect(mark));
    CHECK(!is_suspect(a));
    for (uint32_t i = 0; i < REPLAYS; i++) {
        bh_status status = bh_wait(tickets[i], LONG_NS);
        if (i == 5 && status == BH_E_LOST) continue; /* was in flight and may not be sent again */
        CHECK_OK(status);
        CHECK(words_count(out[i], N, 0));
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_deadline_is_for_the_whole_replay, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    bh_buffer flag = flag_alloc(r.device), p = words_filled(r.device, 1, 0),
              q = words_filled(r.device, N, 0);
    bh_sequence seq = sequence_open(r.device, "late");
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(q), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "endless"), BH_GRID(1, 1),
                                  BH_ARGS(address_of(flag), BH_INOUT(p)), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    options.deadline_ns = 200 * MS;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(seq, &options, &ticket));
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_DEADLINE);
    bh_error error;
    bh_ticket_error(ticket, &error);
    CHECK_STR_CONTAINS(error.message, "sequence \"late\"");
    unsigned first, last;
    named_steps(error.message, &first, &last);
    CHECK(first <= 1 && 1 <= last);
    CHECK(is_suspect(q));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* What a sequence overwrites before it reads it may have been in doubt. */
TEST(a_sequence_that_overwrites_what_is_in_doubt_runs) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer p = words_filled(r.device, N, 1), q = words_filled(r.device, N, 2);
    uint32_t zero = 0;
    bh_sequence seq = sequence_open(r.device, NULL);
    REQUIRE_OK(record_fill(seq, p, 0, N * 2, &zero, 4, NULL));
    REQUIRE_OK(record_fill(seq, p, N * 2, N * 2, &zero, 4, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, rig_kernel(&r, "add_one"), BH_GRID(N, 64),
                                  BH_ARGS(BH_INOUT(p), (uint32_t)N), NULL, NULL));
    REQUIRE_OK(record_copy(seq, q, 0, p, 0, N * 2, NULL)); /* a half of q */
    REQUIRE_OK(bh_sequence_finish(seq));
    CHECK_STATUS(run_now(rig_kernel(&r, "write_then_poke"), BH_GRID(N, 64),
                         BH_ARGS(BH_INOUT(p), (uint32_t)N, NOWHERE)),
                 BH_E_FAULT);
    CHECK(is_suspect(p));
    CHECK_OK(bh_wait(replay(seq, own, 1, 0), LONG_NS));
    CHECK(!is_suspect(p));
    CHECK(words_are(p, N, 1));
    CHECK_EQ(word_read(q, 0), 1);
    CHECK_EQ(word_read(q, N - 1), 2);
    CHECK_OK(bh_device_close(r.device));
}

static void lose_workers(void *context, unsigned index) {
    const rig *r = context;
    if (index == 0) {
        for (int i = 0; i < 5; i++) {
            sleep_ms(60);
            pid_t pid = health_of(r->device).worker_pid;
            if (pid > 0) kill(pid, SIGKILL);
        }
        return;
    }
    bh_lane lane = open_lane(r->device);
    bh_kernel mix = rig_kernel(r, "mix");
    bh_buffer a = words_counting(r->device, N, index), out = words_filled(r->device, N, 0);
    bh_sequence seq = sequence_open(r->device, "storm");
    uint32_t step;
    REQUIRE_OK(bh_sequence_launch(seq, mix, BH_GRID(N, 64),
                                  BH_ARGS(BH_OUT(out), BH_IN(a), BH_IN(a), 0u, (uint32_t)N), NULL,
                                  &step));
    REQUIRE_OK(bh_sequence_finish(seq));
    for (uint32_t i = 0; i < 200; i++) {
        CHECK_OK(bh_sequence_set(seq, step, 3, BH_ARG(i)));
        bh_ticket ticket = replay(seq, lane, 1 + i % 3, BH_SUBMIT_IDEMPOTENT);
        CHECK_OK(bh_wait(ticket, LONG_NS));
        uint32_t words[N];
        CHECK_OK(bh_buffer_read(out, 0, words, sizeof words));
        CHECK_EQ(words[N - 1], mix_word(index + N - 1, index + N - 1, i));
        sleep_ms(1);
    }
    CHECK_OK(bh_sequence_release(seq));
}

TEST_TIMEOUT(replays_go_on_while_workers_are_killed, 90) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    run_threads(3, lose_workers, &r);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
