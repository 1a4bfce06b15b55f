/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with managed buffers: a copy in host memory at the same address. */
#include "../../support/buffers.h"
#include "scenarios.h"
#include "world.h"

static bh_buffer managed(uint32_t flags, void **out_memory) {
    bh_buffer buffer = {0};
    OK(alloc_managed(device, BH_U32, WORDS, flags, &buffer, out_memory));
    return buffer;
}

/* A worker's report of a refused request is collected after the request's buffers were released. */
void scenario_managed_release(void) {
    bh_ticket refused;
    void *memory;
    world_open(BH_DEVICE_NO_STANDBY);
    (void)managed(0, &memory); /* there is one, and others come and go */
    bh_buffer source = world_buffer(WORDS, 1), buffer = world_buffer(WORDS, 2);
    sim_device.longest_ns = 20000;
    sim_snapshot();
    sim_device.refuse_in = 1;
    OK(bh_submit_copy((bh_lane){0}, buffer, 0, source, 0, WORDS * 4, &refused));
    ticket_watch(refused);
    /* Others have no processor: this thread is the first to see that the launch is done. */
    if (sim_chance(2)) sim_pause_process(0, 2 * MS);
    sim_sleep(sim_pick(100000));
    OK(bh_buffer_release(buffer));
    OK(bh_buffer_release(source));
    for (int i = 0; i < 3; i++) {
        bh_buffer other;
        if (bh_buffer_alloc(device, BH_U32, WORDS, NULL, &other) == BH_OK)
            OK(bh_buffer_release(other));
    }
    bh_status status = bh_wait(refused, BH_FOREVER);
    ticket_said(refused, status);
    if (status != BH_E_LAUNCH) BUG("a refused copy is %s", bh_status_name(status));
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

/* Pages of a transparent buffer are still to be written home when a ticket is final. */
static void answers(bool kills) {
    bh_ticket running, cancelled;
    void *memory;
    bh_lane lane;
    world_open(kills ? 0 : BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = managed(BH_BUFFER_TRANSPARENT | BH_BUFFER_UNTRACKED, &memory);
    OK(bh_lane_open(device, NULL, &lane));
    if (kills) world_wait_standby();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    int worker = world_worker();
    OK(world_launch(FAKE_STORE, lane, buffer, 1, 0, &running));
    OK(world_launch(FAKE_STORE, lane, buffer, 2, 0, &cancelled));
    ticket_watch(running);
    ticket_watch(cancelled);
    if (kills) {
        sim_sleep(sim_pick(30000));
        sim_kill(worker);
    } else if (bh_cancel(cancelled) == BH_OK) {
        ticket_said(cancelled, BH_E_CANCELLED);
    }
    tickets_start();
    bh_status first = bh_wait(running, 30 * S), second = bh_wait(cancelled, 30 * S);
    if (first == BH_E_TIMEOUT || second == BH_E_TIMEOUT) BUG("a wait of 30 s came to nothing");
    ticket_said(running, first);
    ticket_said(cancelled, second);
    uint32_t expected = second == BH_OK ? 2 : 1, got;
    memcpy(&got, memory, sizeof got);
    if (first == BH_OK && second != BH_E_LOST && second != BH_E_STALE && got != expected)
        BUG("the program sees %u and not %u", got, expected);
    tickets_stop();
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

/* A close comes between results that are complete, under way and queued. */
static void closes(bool queues, uint64_t close_timeout_ns) {
    enum { COUNT = 6 };
    bh_ticket tickets[COUNT];
    bool kept[COUNT];
    void *memory;
    bh_lane lane;
    sim_device.queues = queues;
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = close_timeout_ns;
    world_open_with(options);
    bh_buffer plain = world_buffer(WORDS, 1),
              buffer = managed(BH_BUFFER_TRANSPARENT | BH_BUFFER_UNTRACKED, &memory);
    OK(bh_lane_open(device, NULL, &lane));
    sim_device.longest_ns = 20000;
    sim_snapshot();
    for (int i = 0; i < COUNT; i++) {
        kept[i] = sim_chance(2);
        OK(world_launch(FAKE_STORE, lane, kept[i] ? buffer : plain, (uint32_t)i, 0, &tickets[i]));
        ticket_watch(tickets[i]);
        sim_sleep(sim_pick(20000));
    }
    tickets_start();
    OK(bh_device_close(device));
    bool cancelled = false;
    for (int i = 0; i < COUNT; i++) {
        bh_status status = bh_wait(tickets[i], 0);
        ticket_said(tickets[i], status);
        cancelled |= status == BH_E_CANCELLED;
        bool expected = cancelled ? status == BH_E_CANCELLED
                                  : status == BH_OK || (status == BH_E_STOPPED && kept[i]);
        if (!expected || (status != BH_OK && close_timeout_ns == 10 * S))
            BUG("launch %d on the %s buffer is %s", i, kept[i] ? "transparent" : "plain",
                bh_status_name(status));
    }
    tickets_stop();
    tickets_ask();
    sim_nothing_left();
}

/* A prefetch has moves that are refused or lost, and its buffer is released meanwhile. What its
 * ticket says is where the pages are. */
void scenario_managed_prefetch(void) {
    bh_ticket written, moved;
    void *memory;
    bh_lane lane;
    world_open(0);
    bh_buffer buffer = managed(0, &memory);
    OK(bh_lane_open(device, NULL, &lane));
    world_wait_standby();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    OK(world_launch(FAKE_STORE, (bh_lane){0}, buffer, 1, 0, &written));
    ticket_watch(written);
    bh_submit_options options = BH_INIT(options);
    options.lane = lane;
    uint32_t where = sim_chance(3) ? BH_TO_DEVICE : BH_TO_HOST;
    if (where == BH_TO_DEVICE) {
        OK(bh_managed_map(buffer, 0, WORDS * 4, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
        OK(bh_managed_unmap(memory, WORDS * 4));
    }
    if (sim_chance(2)) sim_device.refuse_in = 1 + (unsigned)sim_pick(2);
    OK(bh_managed_prefetch(buffer, 0, WORDS * 4, where, &options, &moved));
    ticket_watch(moved);
    tickets_start();
    bool released = sim_chance(2);
    if (released) OK(bh_buffer_release(buffer));
    sim_sleep(sim_pick(30000));
    if (sim_chance(2)) sim_kill(world_worker());
    bh_status status = bh_wait(moved, 30 * S);
    if (status == BH_E_TIMEOUT) BUG("a wait of 30 s came to nothing");
    ticket_said(moved, status);
    if (!released) {
        bh_managed_info info = BH_INIT(info);
        OK(bh_managed_get_info(buffer, &info));
        uint64_t left = where == BH_TO_HOST ? info.device_newest : info.host_newest;
        if (status == BH_OK && left)
            BUG("a prefetch that is BH_OK left %llu bytes behind", (unsigned long long)left);
        if (status != BH_OK && !left)
            BUG("a prefetch that moved all is %s", bh_status_name(status));
    }
    tickets_stop();
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

void scenario_managed_close(void) {
    closes(false, 10 * S);
}
void scenario_managed_close_soon(void) {
    closes(false, 30000);
}
void scenario_managed_close_queued(void) {
    closes(true, 30000);
}
void scenario_managed_cancel(void) {
    answers(false);
}
void scenario_managed_lost(void) {
    answers(true);
}
