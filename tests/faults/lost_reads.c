/* SPDX-License-Identifier: Apache-2.0 */
/* A read that is lost with its worker: the program does not learn of it before the worker has
 * ended, since until then its memory may be written. */
#include <signal.h>

#include "../support/undead.h"

enum { WORDS = 512 };

typedef struct scene {
    rig r;
    bh_lane writes, reads;
    bh_ticket fault, read;
    void *memory;
    pid_t held;
} scene;

/* Lets the kernel go on, and does not wait: it may fault before this write is known to be done, and
 * then the write waits for the end of the worker. */
static void let_fault(bh_buffer flag) {
    uint32_t raised = 1;
    CHECK_OK(bh_submit_write((bh_lane){0}, flag, 0, &raised, sizeof raised, NULL));
}

/* A kernel that faults, and a read of what it was writing, which its worker had begun on: one
 * verdict each. The worker is dead and not gone. */
static void lose_read(scene *s, uint32_t restart_limit) {
    bh_device_options options = device_options(0);
    options.restart_limit = restart_limit;
    s->r = rig_open_with(&options);
    if (restart_limit == 1) kill_worker(s->r.device, SIGKILL);
    s->writes = open_lane(s->r.device);
    s->reads = open_lane(s->r.device);
    bh_buffer x = words_filled(s->r.device, WORDS, 1), flag = flag_alloc(s->r.device);
    CHECK_OK(bh_host_alloc(s->r.device, WORDS * 4, &s->memory));
    wait_standby(s->r.device);
    s->held = undead_hold(s->r.device);
    bh_launch_options on = on_lane(s->writes, 0);
    s->fault = submit(rig_kernel(&s->r, "wait_then_poke"), BH_GRID(1, 1),
                      BH_ARGS(address_of(flag), BH_INOUT(x), NOWHERE), &on);
    flag_wait_begun(flag);
    CHECK_OK(bh_submit_read(s->reads, x, 0, s->memory, WORDS * 4, &s->read));
    sleep_ms(50); /* the lane takes it, and waits for the kernel */
    let_fault(flag);
    CHECK_STATUS(bh_wait(s->fault, LONG_NS), BH_E_FAULT);
}

static void note_done(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    atomic_fetch_add((_Atomic(int) *)context, status == BH_E_LOST ? 1 : 1000);
}

static void check_untold(const scene *s, _Atomic(int) *told) {
    bh_error error;
    for (int i = 0; i < 10; i++, sleep_ms(10)) {
        CHECK_STATUS(bh_wait(s->read, 0), BH_E_BUSY);
        CHECK_STATUS(bh_ticket_error(s->read, &error), BH_E_BUSY);
        CHECK_EQ(atomic_load(told), 0);
    }
    CHECK_STATUS(bh_wait(s->read, 20 * MS), BH_E_TIMEOUT);
    CHECK_STATUS(bh_cancel(s->read), BH_E_BUSY);
}

static void check_told(const scene *s, _Atomic(int) *told) {
    CHECK_STATUS(bh_wait(s->read, LONG_NS), BH_E_LOST);
    CHECK_STATUS(bh_wait(s->read, 0), BH_E_LOST);
    for (uint64_t limit = now_ns() + LONG_NS; !atomic_load(told) && now_ns() < limit;) sleep_ms(1);
    CHECK_EQ(atomic_load(told), 1);
}

TEST(a_lost_read_is_reported_when_its_worker_has_ended) {
    scene s;
    _Atomic(int) told = 0;
    lose_read(&s, 0);
    CHECK_OK(bh_on_done(s.read, note_done, &told));
    wait_generation(s.r.device, 2);
    check_untold(&s, &told);
    CHECK_STATUS(bh_lane_sync(s.reads, 20 * MS), BH_E_TIMEOUT);
    check_device_works(&s.r); /* other lanes go on */

    undead_let_go(s.held);
    check_told(&s, &told);
    CHECK_OK(bh_lane_sync(s.reads, LONG_NS));
    CHECK_OK(bh_host_free(s.r.device, s.memory));
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(a_lost_read_is_reported_when_its_worker_has_ended_after_a_stop_too) {
    scene s;
    _Atomic(int) told = 0;
    lose_read(&s, 1);
    CHECK_OK(bh_on_done(s.read, note_done, &told));
    while (health_of(s.r.device).state != BH_HEALTH_STOPPED) sleep_ms(1);
    check_untold(&s, &told);
    undead_let_go(s.held);
    check_told(&s, &told);
    CHECK_OK(bh_device_close(s.r.device));
}

/* Whoever waits when the worker goes is woken. */
static void *wait_read(void *context) {
    const scene *s = context;
    CHECK_STATUS(bh_wait(s->read, LONG_NS), BH_E_LOST);
    return NULL;
}

TEST(a_waiter_for_a_lost_read_is_woken_when_its_worker_ends) {
    scene s;
    lose_read(&s, 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, wait_read, &s) == 0);
    sleep_ms(100);
    CHECK_STATUS(bh_wait(s.read, 0), BH_E_BUSY);
    uint64_t begin = now_ns();
    undead_let_go(s.held);
    pthread_join(thread, NULL);
    CHECK(now_ns() - begin < 5000 * MS);
    CHECK_OK(bh_device_close(s.r.device));
}
