/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios in which nothing goes wrong, or only a worker dies. */
#include "scenarios.h"
#include "world.h"

static void *plays(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument, got = 0;
    bh_lane lane;
    bh_buffer buffer = world_buffer(WORDS, 0);
    OK(bh_lane_open(device, &lane));
    for (uint32_t i = 0; i < 6; i++) {
        bh_ticket ticket;
        OK(world_launch(FAKE_STORE, lane, buffer, number * 100 + i, 0, &ticket));
        OK(bh_wait(ticket, BH_FOREVER));
        if (i % 3 != 2) continue;
        OK(world_read(buffer, &got));
        if (got != number * 100 + i) BUG("%u was stored and %u read", number * 100 + i, got);
    }
    OK(bh_lane_close(lane));
    OK(bh_buffer_release(buffer));
    return NULL;
}

/* Little spinning: threads sleep and must be woken. */
void scenario_steady(void) {
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.wait_spin_ns = options.worker_spin_ns = 1;
    world_open_with(options);
    sim_snapshot();
    pthread_t other = world_thread(plays, (void *)1);
    plays((void *)2);
    world_join(other);
    OK(bh_device_close(device));
    sim_nothing_left();
}
