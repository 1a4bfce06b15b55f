/* SPDX-License-Identifier: Apache-2.0 */
/* Module variables in order with launches and sequences: a write waits for what may read them, and
 * an accept is for what comes after it. */
#include <signal.h>

#include "../support/support.h"

enum { BIG = 2 << 20 };

/* `stamp` writes the first word and the last one, which are in different pieces of a read. */
static const char stamped[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .global .align 4 .b8 big[2097152];\n"
    ".visible .entry stamp(.param .u64 p, .param .u32 v)\n{\n"
    "  .reg .b32 %r<3>;\n  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [p];\n  ld.param.u32 %r1, [v];\n  mov.u64 %rd2, big;\n"
    "  st.global.u32 [%rd2], %r1;\n  st.global.u32 [%rd2+2097148], %r1;\n"
    "  st.global.u32 [%rd1], %r1;\n  ret;\n}\n";

/* ---- writes ---- */

typedef struct writer {
    bh_module module;
    uint32_t value;
    _Atomic(int) done;
} writer;

static void *write_factor(void *context) {
    writer *self = context;
    CHECK_OK(bh_module_global_write(self->module, "factor", 0, &self->value, 4));
    atomic_store(&self->done, 1);
    return NULL;
}

/* Launched from a sequence or directly, on another lane than that of the write. */
static void check_write_waits(bool in_sequence) {
    rig r = rig_open(0);
    writer self = {.module = load_module(r.device, ptx_factor), .value = 3};
    bh_kernel scale = get_kernel(self.module, "scale_by");
    bh_buffer x = words_filled(r.device, 64, 5);
    bh_sequence sequence = {0};
    if (in_sequence) {
        sequence = sequence_open(r.device, "scale");
        REQUIRE_OK(bh_sequence_launch(sequence, scale, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u),
                                      NULL, NULL));
        REQUIRE_OK(bh_sequence_finish(sequence));
    }
    write_factor(&self);
    atomic_store(&self.done, 0);
    self.value = 7;
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_launch_options there = on_lane(lane, 0);
    bh_submit_options replay = BH_INIT(replay);
    replay.lane = lane;
    bh_ticket before;
    if (in_sequence)
        REQUIRE_OK(bh_sequence_submit(sequence, &replay, &before));
    else
        before = submit(scale, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &there);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, write_factor, &self) == 0);
    sleep_ms(50);
    CHECK(!atomic_load(&self.done));
    gate_open(&g);
    CHECK_OK(bh_wait(before, LONG_NS));
    pthread_join(thread, NULL);
    CHECK(words_are(x, 64, 5 * 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_write_waits_for_launches_of_all_lanes) {
    check_write_waits(false);
}

TEST(a_write_waits_for_sequences_of_all_lanes) {
    check_write_waits(true);
}

/* ---- accepts ---- */

typedef struct slow_policy {
    _Atomic(int) asked, may_answer;
} slow_policy;

static void decide_slowly(void *context, const bh_loss *loss, bh_verdict *verdict) {
    slow_policy *self = context;
    (void)loss;
    (void)verdict;
    atomic_store(&self->asked, 1);
    while (!atomic_load(&self->may_answer)) sleep_ms(1);
}

/* What was submitted before the loss would have found the values that are lost. */
static void check_accept_is_for_later(bool in_sequence) {
    slow_policy policy = {0};
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.policy = decide_slowly;
    options.policy_context = &policy;
    rig r = rig_open_with(&options);
    bh_module module = load_module(r.device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_buffer early = words_filled(r.device, 1, 0), late = words_filled(r.device, 1, 0);
    bh_sequence sequence = {0};
    if (in_sequence) {
        sequence = sequence_open(r.device, "bump");
        REQUIRE_OK(
            bh_sequence_launch(sequence, bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(early)), NULL, NULL));
        REQUIRE_OK(bh_sequence_finish(sequence));
    }
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(late))));
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    bh_submit_options replay = BH_INIT(replay);
    replay.lane = lane;
    replay.flags = BH_SUBMIT_IDEMPOTENT;
    bh_ticket before, after;
    if (in_sequence)
        REQUIRE_OK(bh_sequence_submit(sequence, &replay, &before));
    else
        before = submit(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(early)), &there);
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    while (!atomic_load(&policy.asked)) sleep_ms(1);
    CHECK_REFUSED(bh_launch(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(late)), NULL, &after), BH_E_STALE);
    CHECK_OK(bh_module_accept(module));
    after = submit(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(late)), NULL);
    atomic_store(&policy.may_answer, 1);
    bh_status status = bh_wait(before, LONG_NS);
    CHECK(status == BH_E_STALE || status == BH_E_LOST);
    CHECK(is_suspect(early));
    CHECK_OK(bh_wait(after, LONG_NS));
    CHECK_EQ(word_read(late, 0), 1);
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_accept_is_not_for_launches_before_the_loss) {
    check_accept_is_for_later(false);
}

TEST(an_accept_is_not_for_sequences_before_the_loss) {
    check_accept_is_for_later(true);
}

typedef struct accepter {
    bh_module module;
    _Atomic(int) stop;
} accepter;

static void *accept_always(void *context) {
    accepter *self = context;
    while (!atomic_load(&self->stop)) {
        struct timespec pause = {.tv_nsec = 100000};
        CHECK_OK(bh_module_accept(self->module));
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* Another thread accepts the module at once. What a read returns is of one worker even so. */
TEST(a_read_is_not_of_two_workers) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    accepter other = {.module = load_module(r.device, stamped)};
    bh_kernel stamp = get_kernel(other.module, "stamp");
    bh_buffer out = words_filled(r.device, 1, 0);
    uint32_t *got = malloc(BIG);
    REQUIRE(got != NULL);
    struct killer killer = {.device = r.device, .seed = 99};
    pthread_t accepting, killing;
    REQUIRE(pthread_create(&accepting, NULL, accept_always, &other) == 0);
    REQUIRE(pthread_create(&killing, NULL, kill_now_and_then, &killer) == 0);
    unsigned whole = 0, refused = 0;
    uint64_t end = now_ns() + 700 * MS;
    for (uint32_t value = 1; now_ns() < end && test_failures() == 0; value++) {
        (void)run_now(stamp, BH_GRID(1, 1), BH_ARGS(BH_OUT(out), value));
        bh_status status = bh_module_global_read(other.module, "big", 0, got, BIG);
        CHECK(status == BH_OK || status == BH_E_STALE || status == BH_E_LOST);
        whole += status == BH_OK;
        refused += status != BH_OK;
        if (status != BH_OK) sleep_ms(1);
        if (status == BH_OK) CHECK_EQ(got[0], got[BIG / sizeof *got - 1]);
    }
    atomic_store(&killer.stop, 1);
    pthread_join(killing, NULL);
    /* Where a read takes longer than a worker lives, it is done when nobody kills any more. */
    for (int i = 0; whole == 0 && i < 1000; i++) {
        (void)run_now(stamp, BH_GRID(1, 1), BH_ARGS(BH_OUT(out), 7u));
        whole += bh_module_global_read(other.module, "big", 0, got, BIG) == BH_OK;
        sleep_ms(10);
    }
    atomic_store(&other.stop, 1);
    pthread_join(accepting, NULL);
    fprintf(stderr, "%u reads, %u refused, %u kills\n", whole, refused, killer.kills);
    CHECK(whole > 0);
    free(got);
    CHECK_OK(bh_device_close(r.device));
}
