/* SPDX-License-Identifier: Apache-2.0 */
/* Signals while the library works: one of the program's that interrupts system calls again and
 * again, and one that must never be raised. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "../support/buffers.h"
#include "../support/support.h"
#include "stand_in.h"

static volatile sig_atomic_t ticks, pipes;

static void count_tick(int number) {
    (void)number;
    ticks++;
}

static void count_pipe(int number) {
    (void)number;
    pipes++;
}

/* Without SA_RESTART each call that waits returns EINTR. */
static void storm_begin(void) {
    struct sigaction action = {.sa_handler = count_tick};
    struct itimerval each = {{0, 1000}, {0, 1000}};
    REQUIRE(sigaction(SIGALRM, &action, NULL) == 0);
    REQUIRE(setitimer(ITIMER_REAL, &each, NULL) == 0);
}

static void storm_end(void) {
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
}

static void copy_much(const rig *r) {
    enum { BYTES = 20 << 20 };
    uint8_t *from = malloc(BYTES), *to = calloc(1, BYTES);
    bh_buffer buffer = words_alloc(r->device, BYTES / 4);
    memset(from, 0x17, BYTES);
    CHECK_OK(bh_buffer_write(buffer, 0, from, BYTES));
    CHECK_OK(bh_buffer_read(buffer, 0, to, BYTES));
    CHECK_MEM_EQ(from, to, BYTES);
    CHECK_OK(bh_buffer_release(buffer));
    free(from);
    free(to);
}

static void manage(const rig *r) {
    bh_buffer buffer = {0};
    uint32_t *words = NULL;
    CHECK_OK(alloc_managed(r->device, BH_U32, 4096, 0, &buffer, (void **)&words));
    CHECK_OK(bh_managed_map(buffer, 0, 16384, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
    memset(words, 0, 16384);
    CHECK_OK(bh_managed_unmap(words, 16384));
    CHECK_OK(
        run_now(rig_kernel(r, "add_one"), BH_GRID(4096, 64), BH_ARGS(BH_INOUT(buffer), 4096u)));
    CHECK_OK(bh_managed_map(buffer, 0, 16384, BH_MAP_READ, NULL));
    CHECK_EQ(words[4095], 1);
    CHECK_OK(bh_managed_unmap(words, 16384));
    CHECK_OK(bh_buffer_release(buffer));
}

static void take_from_pool(const rig *r) {
    bh_host_pool pool;
    void *piece;
    CHECK_OK(bh_host_pool_open(r->device, NULL, &pool));
    CHECK_OK(bh_host_pool_take(pool, 100000, LONG_NS, &piece));
    CHECK_OK(bh_host_pool_give(pool, piece));
    CHECK_OK(bh_host_pool_release(pool));
}

static void trace(const rig *r) {
    char path[600];
    CHECK_OK(bh_trace_start(r->device, test_path(path, sizeof path, "%s/trace", test_tmp_dir())));
    check_device_works(r);
    CHECK_OK(bh_trace_stop(r->device));
}

/* A wait that is interrupted goes on, and ends when it should. */
static void wait_in_vain(const rig *r) {
    bh_lane lane = open_lane(r->device);
    gate g = gate_close(r, lane, 0);
    uint64_t begun = now_ns();
    CHECK_STATUS(bh_wait(g.ticket, 50 * MS), BH_E_TIMEOUT);
    CHECK_GE(now_ns() - begun, 50 * MS);
    CHECK_STATUS(bh_device_sync(r->device, 50 * MS), BH_E_TIMEOUT);
    CHECK_LT(now_ns() - begun, 5000 * MS * test_time_scale());
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_OK(bh_lane_release(lane));
}

TEST_TIMEOUT(interrupted_calls_go_on, 60) {
    storm_begin();
    for (int round = 0; round < 3; round++) {
        rig r = rig_open(0);
        CHECK_OK(bh_device_wait_standby(r.device, LONG_NS));
        copy_much(&r);
        manage(&r);
        take_from_pool(&r);
        trace(&r);
        wait_in_vain(&r);
        CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
        check_device_works(&r);
        CHECK_OK(bh_device_sync(r.device, LONG_NS));
        CHECK_OK(bh_device_close(r.device));
    }
    storm_end();
    CHECK_GT(ticks, 10);
}

TEST(interrupted_compiles_go_on) {
    char cache[600];
    bh_compile_options options =
        stand_in_options(test_path(cache, sizeof cache, "%s/cache", test_tmp_dir()));
    storm_begin();
    for (int i = 0; i < 5; i++) {
        char source[64];
        bh_binary binary;
        snprintf(source, sizeof source, "// SLOW=20 number %d", i);
        CHECK_OK(bh_compile(source, &options, &binary));
        CHECK_OK(bh_binary_release(binary));
    }
    storm_end();
    CHECK_GT(ticks, 10);
}

TEST(losing_workers_raises_no_sigpipe) {
    signal(SIGPIPE, count_pipe);
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    rig r = rig_open_with(&options);
    for (int i = 0; i < 12; i++) {
        bh_health health = health_of(r.device);
        if (health.worker_pid > 0) kill(health.worker_pid, SIGKILL);
        bh_buffer buffer;
        void *memory;
        if (bh_buffer_alloc(r.device, BH_U8, 5 << 20, NULL, &buffer) == BH_OK)
            CHECK_OK(bh_buffer_release(buffer));
        if (bh_host_alloc(r.device, 4096, &memory) == BH_OK)
            CHECK_OK(bh_host_free(r.device, memory));
        wait_worker(r.device);
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(pipes, 0);
}
