/* SPDX-License-Identifier: Apache-2.0 */
/* Losses while threads wait, submit, read and write: everyone is woken, calls that wait go
 * through. */
#include <poll.h>
#include <signal.h>

#include "../support/support.h"

struct waiter {
    bh_ticket ticket;
    bh_device device;
    bh_lane lane;
    _Atomic(int) begun;
    bh_status status;
};

static void *wait_ticket(void *context) {
    struct waiter *w = context;
    atomic_store(&w->begun, 1);
    w->status = bh_wait(w->ticket, LONG_NS);
    return NULL;
}

static void *wait_device(void *context) {
    struct waiter *w = context;
    atomic_store(&w->begun, 1);
    w->status = bh_device_sync(w->device, LONG_NS);
    return NULL;
}

static void *wait_lane(void *context) {
    struct waiter *w = context;
    atomic_store(&w->begun, 1);
    w->status = bh_lane_sync(w->lane, LONG_NS);
    return NULL;
}

TEST(sleeping_waiters_are_woken_by_a_loss) {
    static void *(*const kinds[])(void *) = {wait_ticket, wait_device, wait_lane, wait_ticket};
    static const bh_status expected[] = {BH_E_LOST, BH_OK, BH_OK, BH_E_LOST};
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    struct waiter waiters[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        waiters[i] = (struct waiter){g.ticket, r.device, lane, 0, -1};
        REQUIRE(pthread_create(&threads[i], NULL, kinds[i], &waiters[i]) == 0);
    }
    for (int i = 0; i < 4; i++)
        while (atomic_load(&waiters[i].begun) == 0) sleep_ms(1);
    sleep_ms(20); /* well asleep */
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        CHECK_EQ(waiters[i].status, expected[i]);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_sleeping_waiter_of_repeated_work_sleeps_on_until_it_is_done) {
    rig r = rig_open(0);
    gate g = gate_close(&r, open_lane(r.device), BH_SUBMIT_IDEMPOTENT);
    struct waiter w = {g.ticket, r.device, {0}, 0, -1};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_ticket, &w) == 0);
    while (atomic_load(&w.begun) == 0) sleep_ms(1);
    sleep_ms(20);
    kill_worker(r.device, SIGKILL);
    sleep_ms(20);
    gate_open(&g);
    pthread_join(thread, NULL);
    CHECK_EQ(w.status, BH_OK);
    CHECK_EQ(word_read(g.mark, 0), g.value);
    CHECK_OK(bh_device_close(r.device));
}

struct told {
    _Atomic(int) calls;
    _Atomic(int) status;
};

static void note_status(void *context, bh_ticket ticket, bh_status status) {
    struct told *told = context;
    (void)ticket;
    atomic_store(&told->status, status);
    atomic_fetch_add(&told->calls, 1);
}

TEST(callbacks_tell_of_a_loss_once) {
    rig r = rig_open(0);
    gate g = gate_close(&r, open_lane(r.device), 0);
    struct told told = {0, -1};
    CHECK_OK(bh_on_done(g.ticket, note_status, &told));
    kill_worker(r.device, SIGKILL);
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&told.calls) == 0 && now_ns() < limit) sleep_ms(1);
    CHECK_EQ(atomic_load(&told.status), BH_E_LOST);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&told.calls), 1);
}

TEST(callbacks_of_work_that_runs_after_the_takeover_come_too) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options again = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    gate g = gate_close(&r, lane, BH_SUBMIT_IDEMPOTENT);
    bh_buffer x = words_filled(r.device, 1, 0);
    struct told told = {0, -1};
    bh_ticket t =
        submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(x), 6u), &again);
    CHECK_OK(bh_on_done(t, note_status, &told));
    kill_worker(r.device, SIGKILL);
    gate_open(&g);
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&told.calls) == 0 && now_ns() < limit) sleep_ms(1);
    CHECK_EQ(atomic_load(&told.status), BH_OK);
    CHECK_EQ(word_read(x, 0), 6);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_eventfd_tells_of_a_loss) {
    rig r = rig_open(0);
    int fd = -1;
    uint64_t count;
    gate g = gate_close(&r, open_lane(r.device), 0);
    REQUIRE_OK(bh_device_eventfd(r.device, &fd));
    CHECK_OK(bh_notify(g.ticket));
    struct pollfd poll_fd = {fd, POLLIN, 0};
    CHECK_EQ(poll(&poll_fd, 1, 10), 0);
    kill_worker(r.device, SIGKILL);
    CHECK_EQ(poll(&poll_fd, 1, 20000), 1);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_LOST);
    CHECK_OK(bh_device_close(r.device));
}

struct churner {
    rig r;
    _Atomic(int) stop;
    _Atomic(int) done;
};

/* Kills eight workers while a thread runs `run` with a churner. */
static void lose_workers_beside(void *(*run)(void *)) {
    struct churner c = {.r = rig_open(BH_DEVICE_NO_RESTART_LIMIT)};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, run, &c) == 0);
    for (int i = 0; i < 8; i++) {
        int before = atomic_load(&c.done);
        uint64_t limit = now_ns() + LONG_NS;
        while (atomic_load(&c.done) < before + 5 && now_ns() < limit) sleep_ms(1);
        kill_worker(c.r.device, SIGKILL);
    }
    atomic_store(&c.stop, 1);
    pthread_join(thread, NULL);
    check_device_works(&c.r);
    CHECK_OK(bh_device_close(c.r.device));
}

/* Reads and writes buffers of its own. Nothing else touches them, so they are never in doubt for
 * long: a call that waits goes through or says that its own transfer was lost. */
static void move_data(void *context, unsigned index) {
    struct churner *c = context;
    enum { N = 3000 };
    uint32_t *out = malloc(N * 4), *in = malloc(N * 4);
    bh_buffer x = words_alloc(c->r.device, N);
    for (uint32_t round = 0; !atomic_load(&c->stop); round++) {
        for (uint32_t i = 0; i < N; i++) out[i] = index * 1000000 + round + i;
        CHECK_OK(bh_buffer_write(x, 0, out, N * 4));
        memset(in, 0, N * 4);
        CHECK_OK(bh_buffer_read(x, 0, in, N * 4));
        CHECK_MEM_EQ(in, out, N * 4);
        atomic_fetch_add(&c->done, 1);
    }
    free(out);
    free(in);
}

static void *run_movers(void *context) {
    run_threads(3, move_data, context);
    return NULL;
}

TEST(calls_that_wait_go_through_losses) {
    lose_workers_beside(run_movers);
}

static void allocate_and_load(void *context, unsigned index) {
    struct churner *c = context;
    while (!atomic_load(&c->stop)) {
        if (index == 0) {
            bh_module module = {0};
            CHECK_OK(bh_module_load(c->r.device, ptx_factor, strlen(ptx_factor), &module));
            CHECK_OK(bh_module_release(module));
        } else if (index == 1) {
            bh_lane lane = {0};
            void *host = NULL;
            CHECK_OK(bh_lane_open(c->r.device, NULL, &lane));
            CHECK_OK(bh_host_alloc(c->r.device, 10000, &host));
            CHECK_OK(bh_host_free(c->r.device, host));
            CHECK_OK(bh_lane_release(lane));
        } else {
            bh_buffer x = {0};
            CHECK_OK(bh_buffer_alloc(c->r.device, BH_U8, 40u << 20, NULL, &x));
            CHECK_OK(bh_buffer_release(x));
        }
        atomic_fetch_add(&c->done, 1);
    }
}

static void *run_loaders(void *context) {
    run_threads(3, allocate_and_load, context);
    return NULL;
}

TEST(loads_lanes_and_allocations_go_through_losses) {
    lose_workers_beside(run_loaders);
}

static void *fill_queue(void *context) {
    struct churner *c = context;
    bh_launch_options again = on_lane((bh_lane){0}, BH_SUBMIT_IDEMPOTENT);
    bh_buffer x = words_filled(c->r.device, 64, 0);
    while (!atomic_load(&c->stop)) {
        CHECK_OK(bh_launch(rig_kernel(&c->r, "iota"), BH_GRID(64, 64), BH_ARGS(BH_OUT(x), 3u, 64u),
                           &again, NULL));
        atomic_fetch_add(&c->done, 1);
    }
    CHECK_OK(bh_device_sync(c->r.device, LONG_NS));
    CHECK(words_count(x, 64, 3));
    return NULL;
}

TEST(a_thread_blocked_on_a_full_queue_goes_on_after_a_loss) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.queue_length = 64;
    struct churner c = {.r = rig_open_with(&options)};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, fill_queue, &c) == 0);
    for (int i = 0; i < 6; i++) {
        int before = atomic_load(&c.done);
        uint64_t limit = now_ns() + LONG_NS;
        while (atomic_load(&c.done) < before + 200 && now_ns() < limit) sleep_ms(1);
        kill_worker(c.r.device, SIGKILL);
    }
    atomic_store(&c.stop, 1);
    pthread_join(thread, NULL);
    CHECK_OK(bh_device_close(c.r.device));
}

TEST(a_device_can_be_closed_right_after_a_loss) {
    for (int i = 0; i < 4; i++) {
        rig r = rig_open(0);
        gate g = gate_close(&r, open_lane(r.device), i % 2 ? BH_SUBMIT_IDEMPOTENT : 0);
        bh_health health = health_of(r.device);
        gate_open(&g);
        REQUIRE(kill(health.worker_pid, SIGKILL) == 0);
        CHECK_OK(bh_device_close(r.device));
        CHECK_NE(bh_wait(g.ticket, 0), BH_E_BUSY);
        CHECK(wait_process_gone(health.worker_pid, 5000));
        if (health.standby_pids[0] > 0) CHECK(wait_process_gone(health.standby_pids[0], 5000));
    }
}
