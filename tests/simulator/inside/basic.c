/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios in which nothing goes wrong, or only a worker dies. */
#include "scenarios.h"
#include "world.h"

static void *plays(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument, got = 0;
    bh_lane lane;
    bh_buffer buffer = world_buffer(WORDS, 0);
    OK(bh_lane_open(device, NULL, &lane));
    for (uint32_t i = 0; i < 6; i++) {
        bh_ticket ticket;
        OK(world_launch(FAKE_STORE, lane, buffer, number * 100 + i, 0, &ticket));
        OK(bh_wait(ticket, BH_FOREVER));
        if (i % 3 != 2) continue;
        OK(world_read(buffer, &got));
        if (got != number * 100 + i) BUG("%u was stored and %u read", number * 100 + i, got);
    }
    OK(bh_lane_release(lane));
    OK(bh_buffer_release(buffer));
    return NULL;
}

/* Little spinning: threads sleep and must be woken. */
void scenario_steady(void) {
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.wait_spin_ns = options.worker_spin_ns = 1;
    world_open_with(options);
    sim_snapshot();
    uint64_t start = sim_now();
    pthread_t other = world_thread(plays, (void *)1);
    plays((void *)2);
    world_join(other);
    world_was_smooth(start);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- lanes that work on the same bytes ---- */

static void hand_over(bool queues) {
    enum { ROUNDS = 8 };
    bh_lane lanes[2];
    bh_ticket last;
    uint32_t got;
    sim_device.queues = queues;
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.wait_spin_ns = options.worker_spin_ns = 1;
    world_open_with(options);
    bh_buffer buffer = world_buffer(WORDS, 0), copy = world_buffer(WORDS, 0);
    for (int i = 0; i < 2; i++) OK(bh_lane_open(device, NULL, &lanes[i]));
    sim_device.longest_ns = 20000;
    sim_snapshot();
    uint64_t start = sim_now();
    for (uint32_t i = 1; i <= ROUNDS; i++) {
        OK(world_launch(FAKE_ADD, lanes[i % 2], buffer, i, 0, &last));
        OK(bh_submit_copy(lanes[(i + 1) % 2], copy, 0, buffer, 0, WORDS * 4, &last));
        if (sim_chance(3)) OK(bh_wait(last, BH_FOREVER));
    }
    OK(bh_wait(last, BH_FOREVER));
    OK(world_read(copy, &got));
    if (got != ROUNDS * (ROUNDS + 1) / 2) BUG("the sum is %u", got);
    world_was_smooth(start);
    OK(bh_device_close(device));
    sim_nothing_left();
}

void scenario_handover(void) {
    hand_over(false);
}
void scenario_handover_queued(void) {
    hand_over(true);
}

/* ---- staging: more pieces in flight than there are slots ---- */

static void *transfers(void *argument) {
    enum { BYTES = 6000 };
    uint8_t number = (uint8_t)(uintptr_t)argument, out[BYTES], in[BYTES];
    bh_buffer buffer;
    bh_ticket ticket;
    OK(bh_buffer_alloc(device, BH_U8, BYTES, NULL, &buffer));
    for (uint8_t round = 0; round < 3; round++) {
        for (int i = 0; i < BYTES; i++) out[i] = (uint8_t)(number * 50 + round * 7 + i / 512);
        OK(bh_submit_write((bh_lane){0}, buffer, 0, out, BYTES, &ticket));
        if (round == 1) OK(bh_wait(ticket, BH_FOREVER));
        OK(bh_buffer_read(buffer, 0, in, BYTES));
        for (int i = 0; i < BYTES; i++)
            if (in[i] != out[i])
                BUG("byte %d was written as %u and is read as %u", i, out[i], in[i]);
    }
    OK(bh_buffer_release(buffer));
    return NULL;
}

void scenario_transfers(void) {
    world_open(BH_DEVICE_NO_STANDBY);
    sim_device.longest_ns = 20000;
    sim_snapshot();
    uint64_t start = sim_now();
    pthread_t other = world_thread(transfers, (void *)1);
    transfers((void *)2);
    world_join(other);
    world_was_smooth(start);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- reports of requests that are refused ---- */

void scenario_refusals(void) {
    bh_ticket refused[3], fine;
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = world_buffer(WORDS, 5);
    uint32_t got;
    sim_device.longest_ns = 5000;
    sim_snapshot();
    uint64_t start = sim_now();
    for (int i = 0; i < 3; i++)
        OK(world_launch(FAKE_REFUSED, (bh_lane){0}, buffer, 1, 0, &refused[i]));
    OK(world_launch(FAKE_ADD, (bh_lane){0}, buffer, 1, 0, &fine));
    for (int i = 0; i < 3; i++) {
        ticket_watch(refused[i]);
        bh_status status = bh_wait(refused[i], BH_FOREVER);
        ticket_said(refused[i], status);
        if (status != BH_E_LAUNCH) BUG("a refused launch is %s", bh_status_name(status));
    }
    OK(bh_wait(fine, BH_FOREVER));
    OK(world_read(buffer, &got));
    if (got != 6) BUG("5 and 1 are %u behind launches that were refused", got);
    world_was_smooth(start);
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

/* ---- many threads at the device's lock ---- */

static void *crowds(void *unused) {
    (void)unused;
    for (int i = 0; i < 4; i++) {
        bh_buffer buffer;
        OK(bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer));
        if (world_suspect(buffer)) BUG("a fresh buffer is suspect");
        OK(bh_buffer_release(buffer));
    }
    return NULL;
}

void scenario_crowd(void) {
    enum { CROWD = 4 };
    pthread_t threads[CROWD];
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer keeps_chunk = world_buffer(WORDS, 0);
    sim_snapshot();
    uint64_t start = sim_now();
    for (int i = 0; i < CROWD; i++) threads[i] = world_thread(crowds, NULL);
    for (int i = 0; i < CROWD; i++) world_join(threads[i]);
    OK(bh_buffer_release(keeps_chunk));
    world_was_smooth(start);
    OK(bh_device_close(device));
    sim_nothing_left();
}
