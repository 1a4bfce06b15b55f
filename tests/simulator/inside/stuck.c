/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios with workers that are stuck and not dead. Whatever is called, something must happen
 * within the stuck time-out and a little more. */
#include "scenarios.h"
#include "world.h"

static const uint64_t most = 8 * S; /* the stuck time-out is 5 s */

static void begin(void) {
    world_open(0);
    world_wait_standby();
}

static void end(uint64_t start, const char *what) {
    if (sim_now() - start > most)
        BUG("%s took %.1f s with a worker that is stopped", what,
            (double)(sim_now() - start) / 1e9);
    OK(bh_device_close(device));
    sim_nothing_left();
}

static void check_wait(bh_ticket ticket, const char *what) {
    bh_status status = bh_wait(ticket, most);
    if (status == BH_E_TIMEOUT) BUG("%s: nothing for 8 s with a worker that is stopped", what);
}

/* ---- launches ---- */

static void stop_and_launch(uint64_t deadline, bool after) {
    bh_ticket ticket;
    begin();
    bh_buffer buffer = world_buffer(WORDS, 0);
    sim_device.longest_ns = 50000;
    sim_snapshot();
    uint64_t start = sim_now();
    int worker = world_worker();
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = deadline;
    if (!after) sim_stop(worker, true);
    OK(bh_launch(kernels[FAKE_STORE], BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), (uint32_t)WORDS, 1u),
                 &options, &ticket));
    if (after) {
        sim_sleep(sim_pick(60000));
        sim_stop(worker, true);
    }
    check_wait(ticket, "a launch");
    OK(world_launch(FAKE_STORE, (bh_lane){0}, buffer, 2, 0, &ticket));
    check_wait(ticket, "the next launch");
    end(start, "two launches");
}

void scenario_stopped_deadline(void) {
    stop_and_launch(50 * MS, false);
}
void scenario_stopped_idle(void) {
    stop_and_launch(0, false);
}
void scenario_stopped_busy(void) {
    stop_and_launch(0, true);
}

/* A standby that is stopped is promoted. */
void scenario_stopped_standby(void) {
    bh_ticket ticket;
    begin();
    bh_buffer buffer = world_buffer(WORDS, 0);
    sim_snapshot();
    uint64_t start = sim_now();
    sim_stop(world_standby(), true);
    sim_kill(world_worker());
    OK(world_launch(FAKE_STORE, (bh_lane){0}, buffer, 1, 0, &ticket));
    check_wait(ticket, "a launch");
    if (world_launch(FAKE_STORE, (bh_lane){0}, buffer, 2, 0, &ticket) == BH_OK)
        check_wait(ticket, "the next launch");
    end(start, "two launches");
}

/* ---- calls that wait for an answer of the worker ---- */

typedef bh_status call(void);
static bh_buffer target;

static bh_status call_write(void) {
    static const uint8_t bytes[WORDS * 4];
    return bh_buffer_write(target, 0, bytes, sizeof bytes);
}
static bh_status call_alloc(void) {
    bh_buffer large;
    return bh_buffer_alloc(device, BH_U8, 64 << 20, NULL, &large);
}
static bh_status call_load(void) {
    bh_module other;
    return bh_module_load(device, FAKE_IMAGE, sizeof FAKE_IMAGE, &other);
}
static bh_status call_lane(void) {
    bh_lane lane;
    return bh_lane_open(device, NULL, &lane);
}
static bh_status call_host(void) {
    void *memory;
    return bh_host_alloc(device, 4096, &memory);
}
static bh_status call_preflight(void) {
    bh_preflight answer = BH_INIT(answer);
    return bh_launch_preflight(kernels[FAKE_STORE], BH_GRID(1, 1), NULL, NULL, &answer);
}

static call *called;

static void *calls(void *done) {
    (void)called();
    atomic_store((_Atomic bool *)done, true);
    return NULL;
}

static void stop_and_call(call *what, const char *name) {
    static _Atomic bool done;
    begin();
    target = world_buffer(WORDS, 0);
    called = what;
    sim_snapshot();
    uint64_t start = sim_now();
    sim_stop(world_worker(), true);
    pthread_t caller = world_thread(calls, &done);
    while (!atomic_load(&done)) {
        sim_sleep(10 * MS);
        if (sim_now() - start > most) BUG("%s does not return: a worker is stopped", name);
    }
    world_join(caller);
    end(start, name);
}

void scenario_stopped_write(void) {
    stop_and_call(call_write, "bh_buffer_write");
}
void scenario_stopped_alloc(void) {
    stop_and_call(call_alloc, "bh_buffer_alloc");
}
void scenario_stopped_load(void) {
    stop_and_call(call_load, "bh_module_load");
}
void scenario_stopped_lane(void) {
    stop_and_call(call_lane, "bh_lane_open");
}
void scenario_stopped_host(void) {
    stop_and_call(call_host, "bh_host_alloc");
}
void scenario_stopped_preflight(void) {
    stop_and_call(call_preflight, "bh_launch_preflight");
}

/* A worker that says it is ready and then nothing more. */
static _Atomic int opened;

static void *opens(void *unused) {
    (void)unused;
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    bh_device mine;
    bh_status status = bh_device_open(&options, &mine);
    atomic_store(&opened, status == BH_OK ? 1 : 2);
    if (status == BH_OK) OK(bh_device_close(mine));
    atomic_store(&opened, 3);
    return NULL;
}

void scenario_stopped_open(void) {
    sim_snapshot();
    uint64_t start = sim_now();
    pthread_t opener = world_thread(opens, NULL);
    sim_sleep(sim_pick(200000));
    sim_stop(1001, true); /* the first worker */
    while (atomic_load(&opened) != 3) {
        sim_sleep(20 * MS);
        if (sim_now() - start > 4 * most)
            BUG("bh_device_open or bh_device_close does not return: the worker is stopped");
    }
    world_join(opener);
    sim_nothing_left();
}

/* ---- endless kernels ---- */

static void endless(bool queues) {
    bh_ticket ticket, next;
    sim_device.queues = queues;
    begin();
    bh_buffer buffer = world_buffer(WORDS, 0), other = world_buffer(WORDS, 0);
    sim_snapshot();
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 20 * MS;
    OK(bh_launch(kernels[FAKE_ENDLESS], BH_GRID(1, 1), BH_ARGS(BH_OUT(buffer), (uint32_t)WORDS, 1u),
                 &options, &ticket));
    OK(world_launch(FAKE_STORE, (bh_lane){0}, other, 2, 0, &next));
    bh_status status = bh_wait(ticket, S);
    if (status != BH_E_DEADLINE) BUG("an endless kernel is %s", bh_status_name(status));
    if (!world_suspect(buffer)) BUG("what an endless kernel wrote is not suspect");
    status = bh_wait(next, 10 * S);
    if (status == BH_E_TIMEOUT) BUG("the launch behind an endless one never ends");
    OK(bh_device_close(device));
    sim_nothing_left();
}

void scenario_endless(void) {
    endless(false);
}
void scenario_endless_queued(void) {
    endless(true);
}
