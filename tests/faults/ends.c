/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are asked for while a device is closed or stops: the worker goes on for a moment
 * after the application has judged what is done, and what it says then does not count. */
#include <signal.h>

#include "../support/support.h"

enum { ROUNDS = 200, GPU_ROUNDS = 4, LANES = 4, TICKETS = 60 };

typedef struct lane_of_tickets {
    bh_ticket tickets[TICKETS];
    bh_status first[TICKETS];
} lane_of_tickets;

typedef struct scene {
    lane_of_tickets lanes[LANES];
    _Atomic unsigned asking;
    void (*end)(bh_device device, const rig *r, unsigned round);
    rig r;
    unsigned round;
} scene;

static void ask_or_end(void *context, unsigned index) {
    scene *s = context;
    if (index == LANES) {
        while (atomic_load(&s->asking) < LANES) sleep_ms(0);
        usleep(s->round * 97 % 1500);
        s->end(s->r.device, &s->r, s->round);
        return;
    }
    lane_of_tickets *lane = &s->lanes[index];
    atomic_fetch_add(&s->asking, 1);
    for (unsigned i = 0; i < TICKETS; i++) {
        do lane->first[i] = bh_wait(lane->tickets[i], 0);
        while (lane->first[i] == BH_E_BUSY);
    }
}

static void one_round(scene *s) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = 1;
    s->r = rig_open_with(&options);
    atomic_store(&s->asking, 0);
    bh_kernel spin = rig_kernel(&s->r, "spin");
    for (unsigned i = 0; i < LANES; i++) {
        bh_launch_options there = on_lane(open_lane(s->r.device), 0);
        bh_buffer x = words_alloc(s->r.device, 32);
        for (unsigned k = 0; k < TICKETS; k++)
            s->lanes[i].tickets[k] =
                submit(spin, BH_GRID(32, 32), BH_ARGS(BH_OUT(x), k, 200u), &there);
    }
    run_threads(LANES + 1, ask_or_end, s);
    for (unsigned i = 0; i < LANES; i++) {
        for (unsigned k = 0; k < TICKETS; k++)
            CHECK_STATUS(bh_wait(s->lanes[i].tickets[k], 0), s->lanes[i].first[k]);
    }
}

static void close_it(bh_device device, const rig *r, unsigned round) {
    (void)r;
    (void)round;
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(tickets_asked_while_the_device_is_closed, 60) {
    static scene s = {.end = close_it};
    rig r = rig_open(0);
    unsigned rounds = is_cpu(r.device) ? ROUNDS : GPU_ROUNDS; /* which opens devices slowly */
    CHECK_OK(bh_device_close(r.device));
    for (s.round = 0; s.round < rounds; s.round++) one_round(&s);
}

/* ---- cancels ---- */

/* Whoever cancels wakes the waiters of all lanes there are, and lanes come meanwhile. */
static void cancel_or_open(void *context, unsigned index) {
    const rig *r = context;
    enum { OPENED = 20, CANCELLED = 300 };
    if (index == 0) {
        for (unsigned i = 0; i < OPENED; i++) (void)open_lane(r->device);
        return;
    }
    bh_launch_options there = on_lane(open_lane(r->device), 0);
    bh_buffer x = words_alloc(r->device, 32);
    bh_kernel spin = rig_kernel(r, "spin");
    for (unsigned i = 0; i < CANCELLED; i++) {
        bh_ticket ticket = submit(spin, BH_GRID(32, 32), BH_ARGS(BH_OUT(x), i, 20u), &there);
        if (bh_cancel(ticket) == BH_OK) CHECK_STATUS(bh_wait(ticket, 0), BH_E_CANCELLED);
    }
    CHECK_OK(bh_lane_sync(there.lane, LONG_NS));
}

TEST(cancels_while_lanes_are_opened) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    run_threads(4, cancel_or_open, &r);
    CHECK_OK(bh_device_close(r.device));
}
