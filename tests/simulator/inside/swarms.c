/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios of random programs, and what befalls them. */
#include "scenarios.h"
#include "swarm.h"
#include "world.h"

enum { PROGRAMS = 3 };
static program programs[PROGRAMS];

typedef struct weather {
    bool queues, standby;
    unsigned kills; /* at most */
    bool faults;    /* programs launch bad kernels; the device refuses requests */
    bool closes;    /* in the middle */
    bool stops;     /* processes are stopped for a while */
    bool memory;    /* is refused */
    bool gives_up;  /* the device stops after a loss or two */
} weather;

static void befall(const weather *it) {
    int worker = sim_chance(4) ? world_standby() : world_worker();
    unsigned what = (unsigned)sim_pick(it->stops ? 5 : 2);
    if ((what == 0 && sim_without("kill")) || (what == 1 && sim_without("crash")) ||
        (what > 1 && sim_without("stop")))
        return;
    switch (what) {
    case 0:
        sim_kill(worker);
        break;
    case 1:
        sim_crash(worker);
        break;
    case 2:
        sim_pause_process(worker, sim_pick(20 * MS));
        break;
    case 3:
        sim_pause_process(0, sim_pick(5 * MS));
        break;
    default:
        sim_pause_process(worker, sim_pick(2 * S));
    }
}

static void open_for(const weather *it) {
    sim_device.queues = it->queues;
    bh_device_options options = world_options(it->standby ? 0 : BH_DEVICE_NO_STANDBY);
    if (it->gives_up) {
        options.flags &= ~(uint32_t)BH_DEVICE_NO_RESTART_LIMIT;
        options.restart_limit = 1;
    }
    options.close_timeout_ns = it->closes ? 100000 : 10 * S;
    options.wait_spin_ns = options.worker_spin_ns = 1000;
    OK(bh_device_open(&options, &device));
    if (it->standby) world_wait_standby();
    for (unsigned i = 0; i < PROGRAMS; i++) {
        programs[i].model.device = device;
        programs[i].number = i + 1;
        if (!program_begin(&programs[i])) sim_fail(SIM_UNSUPPORTED, "a program cannot begin");
        programs[i].faults = it->faults;
        programs[i].model.closing = it->closes;
        programs[i].model.short_of_memory = it->memory;
        programs[i].model.gives_up = it->gives_up;
    }
}

static void run(weather it) {
    pthread_t threads[PROGRAMS];
    open_for(&it);
    sim_snapshot();
    uint64_t start = sim_now();
    sim_device.longest_ns = (uint64_t)1 << (10 + sim_pick(8));
    sim_device.longest_boot_ns = sim_chance(3) ? S : 0; /* who waits polls each millisecond */
    unsigned count = 1 + (unsigned)sim_pick(PROGRAMS);
    for (unsigned i = 0; i < count; i++) threads[i] = world_thread(program_run, &programs[i]);
    tickets_start();
    if (it.memory) sim_refuse_memory(50 + (unsigned)sim_pick(400), sim_chance(3));
    unsigned kills = it.kills ? (unsigned)sim_pick(it.kills + 1) : 0;
    for (unsigned i = 0; i < kills; i++) {
        sim_sleep(sim_pick(500000));
        befall(&it);
        sim_device.broken |= it.gives_up && sim_chance(6);
    }
    if (it.closes) {
        sim_sleep(sim_pick(400000));
        OK(bh_device_close(device));
    }
    for (unsigned i = 0; i < count; i++) world_join(threads[i]);
    if (it.memory) sim_refuse_memory(0, false);
    if (!it.kills && !it.faults && !it.memory) world_was_smooth(start);
    if (!it.closes) OK(bh_device_close(device));
    tickets_stop();
    callbacks_check();
    sim_nothing_left();
}

void scenario_swarm(void) {
    run((weather){0});
}
void scenario_swarm_kills(void) {
    run((weather){.standby = true, .kills = 3, .faults = true});
}
void scenario_swarm_queued(void) {
    run((weather){.queues = true, .standby = true, .kills = 3, .faults = true});
}
void scenario_swarm_close(void) {
    run((weather){.standby = true, .kills = 1, .faults = true, .closes = true});
}
void scenario_swarm_stops(void) {
    run((weather){.standby = true, .kills = 3, .faults = true, .stops = true});
}
void scenario_swarm_gives_up(void) {
    run((weather){.standby = true, .kills = 3, .faults = true, .gives_up = true});
}
void scenario_swarm_memory(void) {
    run((weather){.standby = true, .kills = 1, .memory = true});
}
