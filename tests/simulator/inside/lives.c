/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios about the lives of devices, lanes and dispatchers: opened, used and closed at once. */
#include "scenarios.h"
#include "world.h"

/* ---- two threads open a lane ---- */

static void *opens(void *out) {
    OK(bh_lane_open(device, NULL, out));
    return NULL;
}

void scenario_lanes(void) {
    world_open(BH_DEVICE_NO_STANDBY);
    sim_snapshot();
    bh_lane a, b;
    pthread_t other = world_thread(opens, &b);
    opens(&a);
    world_join(other);
    bh_lane_counters of_a = BH_INIT(of_a), of_b = BH_INIT(of_b);
    OK(bh_lane_get_counters(device, a, &of_a));
    OK(bh_lane_get_counters(device, b, &of_b));
    if (of_a.index == of_b.index) BUG("two lanes that are open are both number %u", of_a.index);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- lanes opened, used and closed while the device closes ---- */

static bool is_refusal(bh_status status) {
    return status == BH_E_INVALID || status == BH_E_STOPPED || status == BH_E_CANCELLED;
}

static void expect(bh_status status, const char *what) {
    if (status != BH_OK && !is_refusal(status))
        BUG("%s against a close returned %s", what, bh_status_name(status));
}

static void *uses_lanes(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        bh_lane lane;
        bh_buffer buffer;
        bh_ticket ticket;
        const uint32_t zero = 0;
        bh_status status = bh_lane_open(device, NULL, &lane);
        expect(status, "bh_lane_open");
        if (status != BH_OK) break;
        if (bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer) == BH_OK) {
            status = bh_submit_fill(lane, buffer, 0, WORDS * 4, &zero, 4, &ticket);
            expect(status, "bh_submit_fill");
            if (status == BH_OK) ticket_watch(ticket);
            status = world_launch(FAKE_STORE, lane, buffer, 1, 0, &ticket);
            expect(status, "bh_launch");
            if (status == BH_OK) ticket_watch(ticket);
            bh_buffer_release(buffer);
        }
        expect(bh_lane_release(lane), "bh_lane_release");
        tickets_ask();
    }
    return NULL;
}

static void *uses_hosts(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        void *memory;
        bh_status status = bh_host_alloc(device, 4096, &memory);
        expect(status, "bh_host_alloc");
        if (status == BH_OK) expect(bh_host_free(device, memory), "bh_host_free");
    }
    return NULL;
}

void scenario_lanes_close(void) {
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = 100000;
    world_open_with(options);
    sim_device.longest_ns = 50000;
    sim_snapshot();
    pthread_t a = world_thread(uses_lanes, NULL), b = world_thread(uses_lanes, NULL);
    pthread_t c = world_thread(uses_hosts, NULL);
    sim_sleep(sim_pick(100000));
    OK(bh_device_close(device));
    world_join(a);
    world_join(b);
    world_join(c);
    tickets_ask();
    sim_nothing_left();
}

/* ---- sync against close ---- */

static void watches(void *context, const bh_event *event) {
    (void)context, (void)event;
}

static void *syncs(void *unused) {
    (void)unused;
    uint64_t start = sim_now();
    bh_status status = bh_device_sync(device, 100 * MS);
    if (sim_now() - start > 300 * MS)
        BUG("bh_device_sync with a timeout of 100 ms took %llu ms",
            (unsigned long long)((sim_now() - start) / MS));
    if (status != BH_E_TIMEOUT) expect(status, "bh_device_sync");
    return NULL;
}

void scenario_sync_close(void) {
    world_open(BH_DEVICE_NO_STANDBY);
    bh_watch watch;
    OK(bh_watch_open(device, NULL, watches, NULL, &watch));
    sim_snapshot();
    pthread_t other = world_thread(syncs, NULL);
    OK(bh_device_close(device));
    world_join(other);
    sim_nothing_left();
}

/* ---- callbacks registered while the device closes ---- */

static _Atomic int told[4];
static bh_ticket finished;

static void tells(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket, (void)status;
    atomic_fetch_add(&told[(uintptr_t)context], 1);
}

static void *registers(void *unused) {
    (void)unused;
    for (uintptr_t i = 0; i < 3; i++) {
        if (bh_on_done(finished, tells, (void *)i) == BH_OK) atomic_fetch_add(&told[i], 16);
    }
    return NULL;
}

void scenario_on_done_close(void) {
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = world_buffer(WORDS, 0);
    OK(world_launch(FAKE_STORE, (bh_lane){0}, buffer, 1, 0, &finished));
    sim_snapshot();
    pthread_t other = world_thread(registers, NULL);
    OK(bh_device_close(device));
    world_join(other);
    for (int i = 0; i < 3; i++) {
        int is = atomic_load(&told[i]);
        if (is != 0 && is != 17)
            BUG("callback %d was %s and ran %d times", i, is >= 16 ? "taken" : "refused", is % 16);
    }
    sim_nothing_left();
}

/* ---- answers while the device closes ---- */

void scenario_close_answers(void) {
    bh_ticket failed;
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = world_buffer(WORDS, 0);
    OK(world_launch(FAKE_FAULT, (bh_lane){0}, buffer, 1, 0, &failed));
    if (bh_wait(failed, BH_FOREVER) != BH_E_FAULT) sim_fail(SIM_UNSUPPORTED, "it did not fail");
    ticket_watch(failed);
    tickets_ask();
    sim_snapshot();
    tickets_start();
    OK(bh_device_close(device));
    tickets_stop();
    sim_nothing_left();
}

/* ---- submission against close and against a stop ---- */

static _Atomic bool go_on;

static void *submits(void *argument) {
    bh_buffer buffer = *(bh_buffer *)argument;
    static const uint8_t bytes[3000];
    for (int i = 0; i < 5 && atomic_load(&go_on); i++) {
        bh_ticket ticket;
        bh_status status = i % 2 ? bh_submit_write((bh_lane){0}, buffer, 0, bytes, 3000, &ticket)
                                 : world_launch(FAKE_STORE, (bh_lane){0}, buffer, 7, 0, &ticket);
        if (status != BH_OK) continue;
        ticket_watch(ticket);
        tickets_ask();
    }
    return NULL;
}

static void submit_against(bool stop) {
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    if (stop) {
        options.flags &= ~(uint32_t)BH_DEVICE_NO_RESTART_LIMIT;
        options.restart_limit = 1;
    }
    options.close_timeout_ns = 1000;
    world_open_with(options);
    bh_buffer buffer = world_buffer(1024, 0);
    sim_device.longest_ns = 20000;
    go_on = true;
    sim_snapshot();
    pthread_t a = world_thread(submits, &buffer), b = world_thread(submits, &buffer);
    sim_sleep(sim_pick(200000));
    for (int i = 0; stop && i < 3; i++) {
        sim_kill(world_worker());
        sim_sleep(sim_pick(5 * MS));
    }
    if (!stop) OK(bh_device_close(device));
    atomic_store(&go_on, false);
    world_join(a);
    world_join(b);
    if (stop) OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

void scenario_submit_close(void) {
    submit_against(false);
}
void scenario_submit_stop(void) {
    submit_against(true);
}

/* ---- a lane that is used again ---- */

static bh_ticket cancelled;

static void *waits(void *unused) {
    (void)unused;
    ticket_said(cancelled, bh_wait(cancelled, BH_FOREVER));
    return NULL;
}

void scenario_lane_reuse(void) {
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = world_buffer(WORDS, 0), other = world_buffer(WORDS, 0);
    bh_lane lane;
    OK(bh_lane_open(device, NULL, &lane));
    sim_device.longest_ns = 20000;
    sim_snapshot();
    bh_ticket running, next;
    OK(world_launch(FAKE_STORE, lane, buffer, 1, 0, &running));
    OK(world_launch(FAKE_STORE, lane, other, 1, 0, &cancelled));
    bh_status status = bh_cancel(cancelled);
    OK(bh_lane_release(lane));
    ticket_watch(cancelled);
    if (status == BH_OK) ticket_said(cancelled, BH_E_CANCELLED);
    pthread_t waiter = world_thread(waits, NULL);
    tickets_start();
    (void)bh_wait(running, BH_FOREVER);
    OK(bh_lane_open(device, NULL, &lane));
    OK(world_launch(FAKE_STORE, lane, buffer, 1, 0, &next));
    OK(bh_wait(next, BH_FOREVER));
    world_join(waiter);
    tickets_stop();
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

/* ---- open and close again and again ---- */

static void *opens_devices(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        bh_device mine;
        bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
        bh_status status = bh_device_open(&options, &mine);
        if (status != BH_OK) BUG("bh_device_open returned %s", bh_status_name(status));
        bh_buffer buffer;
        OK(bh_buffer_alloc(mine, BH_U32, WORDS, NULL, &buffer));
        OK(bh_device_close(mine));
        if (bh_buffer_release(buffer) != BH_E_INVALID) BUG("a buffer outlived its device");
        if (bh_device_close(mine) != BH_E_INVALID) BUG("a device was closed twice");
    }
    return NULL;
}

void scenario_open_close(void) {
    sim_snapshot();
    pthread_t other = world_thread(opens_devices, NULL);
    opens_devices(NULL);
    world_join(other);
    sim_nothing_left();
}
