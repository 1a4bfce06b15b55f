/* SPDX-License-Identifier: Apache-2.0 */
/* Module variables through a loss: what was written from outside is restored, the rest is said to
 * be gone. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../support/support.h"

static void check_scaled(bh_device device, bh_module module, uint32_t factor) {
    bh_buffer x = words_filled(device, 64, 5);
    CHECK_OK(run_now(get_kernel(module, "scale_by"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u)));
    CHECK(words_are(x, 64, 5 * factor));
    CHECK_OK(bh_buffer_release(x));
}

TEST(values_written_from_outside_are_restored) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, ptx_factor);
    for (uint32_t factor = 3; factor < 7; factor++) {
        uint32_t got = 0;
        CHECK_OK(bh_module_global_write(module, "factor", 0, &factor, 4));
        check_scaled(r.device, module, factor);
        kill_worker(r.device, SIGKILL);
        CHECK_OK(bh_module_global_read(module, "factor", 0, &got, 4));
        CHECK_EQ(got, factor);
        check_scaled(r.device, module, factor);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(values_are_restored_in_a_worker_started_cold) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_module module = load_module(r.device, ptx_factor);
    uint32_t factor = 9;
    CHECK_OK(bh_module_global_write(module, "factor", 0, &factor, 4));
    kill_worker(r.device, SIGKILL);
    check_scaled(r.device, module, factor);
    CHECK_OK(bh_device_close(r.device));
}

TEST(values_are_restored_byte_by_byte) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_factor);
    uint32_t factor = 0x01020304, got = 0;
    for (uint64_t i = 0; i < 4; i++)
        CHECK_OK(bh_module_global_write(module, "factor", i, (char *)&factor + i, 1));
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_module_global_read(module, "factor", 0, &got, 4));
    CHECK_EQ(got, factor);
    check_scaled(r.device, module, factor);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_module_whose_variables_died_is_stale_until_accepted) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_globals);
    bh_module other = load_module(r.device, ptx_factor);
    bh_kernel bump = get_kernel(module, "bump"), show = get_kernel(module, "show");
    bh_buffer out = words_filled(r.device, 6, 0);
    uint32_t factor = 2;
    CHECK_OK(bh_module_global_write(other, "factor", 0, &factor, 4));
    for (int i = 0; i < 3; i++) CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 3);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))), BH_E_STALE);
    CHECK_STATUS(run_now(show, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))), BH_E_STALE);
    check_scaled(r.device, other, 2); /* others are not concerned */
    check_device_works(&r);
    CHECK_OK(bh_module_accept(module));
    uint32_t got[6], fresh[6] = {0, 10, 20, 30, 40, 7};
    CHECK_OK(run_now(show, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_OK(bh_buffer_read(out, 0, got, sizeof got));
    CHECK_MEM_EQ(got, fresh, sizeof got);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_stale_module_says_what_to_do) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_buffer out = words_filled(r.device, 1, 0);
    bh_ticket t;
    bh_error error;
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    kill_worker(r.device, SIGKILL);
    bh_status status = bh_launch(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out)), NULL, &t);
    if (status == BH_OK) {
        CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_STALE);
        bh_ticket_error(t, &error);
    } else {
        CHECK_REFUSED(status, BH_E_STALE);
        bh_last_error(&error);
    }
    CHECK_STR_CONTAINS(error.fix, "bh_module_accept");
    CHECK_OK(bh_device_close(r.device));
}

TEST(queued_kernels_of_a_module_that_lost_its_variables_are_stale) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer out = words_filled(r.device, 1, 0), y = words_filled(r.device, 64, 0);
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    gate g = gate_close(&r, lane, 0);
    bh_ticket stale = {0, 0};
    for (int i = 0; i < BEYOND_QUEUES; i++)
        stale = submit(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out)), &there);
    bh_ticket fine =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(y), 64u), &there);
    kill_worker(r.device, SIGKILL);
    bh_status status = bh_wait(stale, LONG_NS);
    CHECK(status == BH_E_STALE || status == BH_E_LOST);
    CHECK(is_suspect(out));
    status = bh_wait(fine, LONG_NS);
    CHECK(status == BH_OK || status == BH_E_LOST);
    if (is_cpu(r.device)) {
        CHECK_OK(status);
        CHECK(words_are(y, 64, 1));
    }
    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_accepted_module_works_through_the_next_loss_the_same_way) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_buffer out = words_filled(r.device, 1, 0);
    for (int i = 0; i < 3; i++) {
        uint32_t counter = 0;
        CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
        CHECK_EQ(word_read(out, 0), 1);
        kill_worker(r.device, SIGKILL);
        CHECK_STATUS(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))), BH_E_STALE);
        CHECK_OK(bh_module_accept(module));
        CHECK_OK(bh_module_global_read(module, "counter", 0, &counter, 4));
        CHECK_EQ(counter, 0);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_module_loaded_and_never_run_has_nothing_to_lose) {
    rig r = rig_open(0);
    bh_module module = load_module(r.device, ptx_globals);
    bh_buffer out = words_filled(r.device, 1, 0);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(run_now(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

/* As headers bring them along: one that nothing names, one that kernels read, one whose address
 * goes to a function that reads. */
static const char read_only[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".global .align 1 .b8 _ZN4cuda3std3__48in_placeE[1];\n"
    ".visible .global .align 4 .b8 matrix[16] = {5, 0, 0, 0, 6, 0, 0, 0, 7, 0, 0, 0, 8};\n"
    ".func (.param .b32 r) look(.param .b64 a)\n{\n"
    "  .reg .b32 %r<3>;\n  .reg .b64 %rd<3>;\n"
    "  ld.param.u64 %rd1, [a];\n  ld.u32 %r1, [%rd1+4];\n  st.param.b32 [r], %r1;\n  ret;\n}\n"
    ".visible .entry sum(.param .u64 p)\n{\n  .reg .b32 %r<5>;\n  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [p];\n  mov.u64 %rd2, matrix;\n  ld.global.u32 %r1, [%rd2];\n"
    "  cvta.global.u64 %rd3, %rd2;\n"
    "  {\n  .param .b64 a;\n  .param .b32 r;\n  st.param.b64 [a], %rd3;\n"
    "  call.uni (r), look, (a);\n  ld.param.b32 %r2, [r];\n  }\n"
    "  add.u32 %r1, %r1, %r2;\n  st.global.u32 [%rd1], %r1;\n  ret;\n}\n";

TEST(variables_that_no_kernel_writes_make_nothing_stale) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, read_only);
    bh_kernel sum = get_kernel(module, "sum");
    bh_buffer out = words_filled(r.device, 1, 0);
    for (uint32_t first = 5; first < 8; first++) {
        CHECK_OK(run_now(sum, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
        CHECK_EQ(word_read(out, 0), first + 6);
        kill_worker(r.device, SIGKILL);
        CHECK_OK(run_now(sum, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
        CHECK_EQ(word_read(out, 0), first + 6);
        uint32_t next = first + 1;
        CHECK_OK(bh_module_global_write(module, "matrix", 0, &next, 4));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* What the program set is not what kernels left there: never put back without a word. */
TEST(a_variable_that_was_set_and_kernels_can_write_makes_its_module_stale) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_buffer out = words_filled(r.device, 1, 0);
    uint32_t counter = 100, got = 0, table[4] = {1, 2, 3, 4};
    CHECK_OK(bh_module_global_write(module, "counter", 0, &counter, 4));
    CHECK_OK(bh_module_global_write(module, "table", 0, table, sizeof table));
    kill_worker(r.device, SIGKILL); /* nothing has run: nothing is lost */
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 101);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))), BH_E_STALE);
    CHECK_OK(bh_module_accept(module));
    CHECK_OK(bh_module_global_read(module, "counter", 0, &got, 4));
    CHECK_EQ(got, 100);
    CHECK_OK(run_now(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 101);
    CHECK_OK(bh_device_close(r.device));
}

TEST(accepting_a_module_without_doubt_is_fine) {
    rig r = rig_open(0);
    CHECK_OK(bh_module_accept(r.module));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- writes while workers are lost ---- */

enum { WRITERS = 4, SLOTS = 16, LARGE = 1536 * 1024 + 8 };

/* Kernels read `slots`; nothing names `large`. */
static const char set_outside[] =
    ".version 7.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 slots[16];\n"
    ".visible .global .align 8 .b8 large[1572872];\n"
    ".visible .entry copy_slot(.param .u64 p, .param .u32 i)\n{\n"
    "  .reg .b32 %r<3>;\n  .reg .b64 %rd<5>;\n"
    "  ld.param.u64 %rd1, [p];\n  ld.param.u32 %r1, [i];\n  mul.wide.u32 %rd2, %r1, 4;\n"
    "  mov.u64 %rd3, slots;\n  add.s64 %rd3, %rd3, %rd2;\n  ld.global.u32 %r2, [%rd3];\n"
    "  st.global.u32 [%rd1], %r2;\n  ret;\n}\n";

typedef struct writers {
    bh_device device;
    bh_module module;
    _Atomic(int) stop;
    _Atomic(unsigned) rounds, wrong;
} writers;

static void write_and_read(void *context, unsigned index) {
    writers *self = context;
    uint32_t value = 0;
    while (!atomic_load(&self->stop)) {
        uint32_t got = 0;
        value++;
        CHECK_OK(bh_module_global_write(self->module, "slots", index * 4, &value, 4));
        CHECK_OK(bh_module_global_read(self->module, "slots", index * 4, &got, 4));
        if (got != value) {
            CHECK_EQ(got, value);
            atomic_fetch_add(&self->wrong, 1);
        }
        atomic_fetch_add(&self->rounds, 1);
    }
}

static void *write_in_threads(void *context) {
    run_threads(WRITERS, write_and_read, context);
    return NULL;
}

static void run_and_kill(writers *self, void *(*body)(void *), unsigned seconds) {
    struct killer killer = {.device = self->device, .seed = 4711};
    pthread_t killing, writing;
    REQUIRE(pthread_create(&writing, NULL, body, self) == 0);
    REQUIRE(pthread_create(&killing, NULL, kill_now_and_then, &killer) == 0);
    sleep_ms((unsigned)(test_span_ns(seconds * 1000) / MS));
    atomic_store(&self->stop, 1);
    pthread_join(writing, NULL);
    atomic_store(&killer.stop, 1);
    pthread_join(killing, NULL);
    CHECK(killer.kills > 0 && self->rounds > 0);
    fprintf(stderr, "%d kills, %u rounds, %u wrong\n", killer.kills, self->rounds, self->wrong);
}

TEST_TIMEOUT(a_write_that_is_done_is_never_forgotten, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    writers self = {.device = r.device, .module = load_module(r.device, set_outside)};
    run_and_kill(&self, write_in_threads, 4);
    CHECK_OK(bh_device_close(r.device));
}

/* Larger than what goes in one piece. */
static void *write_large(void *context) {
    writers *self = context;
    uint8_t *bytes = malloc(LARGE), *got = malloc(LARGE);
    for (unsigned round = 1; !atomic_load(&self->stop); round++) {
        memset(bytes, (int)(round % 251), LARGE);
        CHECK_OK(bh_module_global_write(self->module, "large", 0, bytes, LARGE));
        CHECK_OK(bh_module_global_read(self->module, "large", 0, got, LARGE));
        if (memcmp(bytes, got, LARGE) != 0) atomic_fetch_add(&self->wrong, 1);
        atomic_fetch_add(&self->rounds, 1);
    }
    free(bytes);
    free(got);
    return NULL;
}

TEST_TIMEOUT(a_large_write_that_is_done_is_whole, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    writers self = {.device = r.device, .module = load_module(r.device, set_outside)};
    run_and_kill(&self, write_large, 2);
    CHECK_EQ(self.wrong, 0);
    CHECK_OK(bh_device_close(r.device));
}

static void write_all_slots(void *context, unsigned index) {
    writers *self = context;
    uint32_t values[SLOTS];
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < SLOTS; i++) values[i] = round * WRITERS + index + 1;
        uint32_t from = (round + index) % SLOTS;
        CHECK_OK(bh_module_global_write(self->module, "slots", from * 4, values,
                                        (SLOTS - from) * sizeof *values));
    }
}

/* Of writes that overlap, the next worker has the one that the lost worker carried out last. */
TEST_TIMEOUT(writes_that_overlap_are_remembered_in_their_order, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    writers self = {.device = r.device, .module = load_module(r.device, set_outside)};
    for (int i = 0; i < 20; i++) {
        uint32_t before[SLOTS], after[SLOTS];
        run_threads(WRITERS, write_all_slots, &self);
        CHECK_OK(bh_module_global_read(self.module, "slots", 0, before, sizeof before));
        kill_worker(r.device, SIGKILL);
        CHECK_OK(bh_module_global_read(self.module, "slots", 0, after, sizeof after));
        CHECK_MEM_EQ(after, before, sizeof after);
    }
    CHECK_OK(bh_device_close(r.device));
}

static void *write_until_unloaded(void *context) {
    writers *self = context;
    bh_status status = BH_OK;
    for (uint32_t value = 0; status == BH_OK; value++) {
        status = bh_module_global_write(self->module, "slots", 0, &value, 4);
        atomic_fetch_add(&self->rounds, 1);
    }
    CHECK(status == BH_E_INVALID);
    return NULL;
}

TEST_TIMEOUT(a_module_may_be_unloaded_while_its_variables_are_written, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    for (int i = 0; i < 20; i++) {
        writers self = {.device = r.device, .module = load_module(r.device, set_outside)};
        pthread_t writing;
        REQUIRE(pthread_create(&writing, NULL, write_until_unloaded, &self) == 0);
        while (atomic_load(&self.rounds) < 5) sleep_ms(1);
        if (i % 2) kill_worker(r.device, SIGKILL);
        CHECK_OK(bh_module_release(self.module));
        pthread_join(writing, NULL);
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* A launch that is queued before the write sees the old value, on whichever worker it runs. */
TEST(a_write_that_waits_is_not_seen_by_what_is_before_it) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, set_outside);
    bh_kernel copy_slot = get_kernel(module, "copy_slot");
    bh_buffer out = words_filled(r.device, 1, 0);
    for (uint32_t value = 1; value < 20; value++) {
        bh_launch_options again = BH_INIT(bh_launch_options);
        again.flags = BH_SUBMIT_IDEMPOTENT;
        bh_ticket before = submit(copy_slot, BH_GRID(1, 1), BH_ARGS(BH_OUT(out), 3u), &again);
        bh_health now = health_of(r.device);
        if (value % 2) kill(now.worker_pid, SIGKILL);
        CHECK_OK(bh_module_global_write(module, "slots", 12, &value, 4));
        CHECK_OK(bh_wait(before, LONG_NS));
        CHECK_EQ(word_read(out, 0), value - 1);
    }
    CHECK_OK(bh_device_close(r.device));
}

/* What kernels left in a variable is gone: it is not read as if nothing had happened. */
TEST(a_variable_that_kernels_write_is_not_read_from_a_stale_module) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_module module = load_module(r.device, ptx_globals);
    bh_buffer out = words_filled(r.device, 1, 0);
    uint32_t got = 0;
    CHECK_OK(run_now(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    kill_worker(r.device, SIGKILL);
    CHECK_REFUSED(bh_module_global_read(module, "counter", 0, &got, 4), BH_E_STALE);
    CHECK_OK(bh_module_global_read(module, "scale", 0, &got, 4)); /* a constant */
    CHECK_EQ(got, 7);
    got = 5;
    CHECK_OK(bh_module_global_write(module, "counter", 0, &got, 4));
    CHECK_REFUSED(bh_module_global_read(module, "counter", 0, &got, 4), BH_E_STALE);
    CHECK_OK(bh_module_accept(module));
    CHECK_OK(bh_module_global_read(module, "counter", 0, &got, 4));
    CHECK_EQ(got, 5);
    CHECK_OK(bh_device_close(r.device));
}
