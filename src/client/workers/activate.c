/* SPDX-License-Identifier: Apache-2.0 */
/* Activating a worker, a standby or one started cold: from here on the library uses its control
 * words. If it replaces a lost worker, watchers are told of the loss. supervisor.c chooses it
 * (promote). */
#include "base/checked.h"
#include "base/futex.h"
#include "base/log.h"
#include "client/callback/callback.h"
#include "client/managed/managed.h"
#include "client/observe/trace.h"
#include "client/queue/queue.h"
#include "client/workers/report.h"

static void report_loss(bh__device *device) {
    if (!device->workers.loss_pending) return;
    bh__loss_report_finish(device);
    bh__log_info("worker %d took over as generation %llu after %llu us, %s",
                 (int)device->workers.active->process.program.pid,
                 (unsigned long long)device->generation,
                 (unsigned long long)(device->workers.loss.takeover_ns / 1000),
                 device->workers.loss.from_standby ? "from standby" : "started cold");
    bh__log_warning("worker of generation %llu lost and replaced in %llu us: %s",
                    (unsigned long long)device->workers.loss.generation,
                    (unsigned long long)(device->workers.loss.takeover_ns / 1000),
                    device->workers.loss.message);
    bh__dispatch_loss(device, &device->workers.loss);
    atomic_store(&device->workers.loss_pending, false);
}

/* Called with the lock held: a thread that sees the next generation also sees the takeover
 * counted. */
static void count_takeover(bh__device *device) {
    if (!device->workers.loss_pending) return;
    uint64_t took = bh__now_ns() - device->workers.loss_detected_ns;
    device->workers.loss.takeover_ns = took;
    device->counters.restarts++;
    device->counters.standby_takeovers += device->workers.loss.from_standby;
    bh__histogram_add(&device->counters.takeover, took);
    bh__trace_span(device, "takeover", took, "generation", device->generation,
                   device->workers.loss.from_standby ? "a standby took over"
                                                     : "a worker started cold");
}

/* The device's properties are those that the active worker reports, not those of a standby or of a
 * lost worker. Called with the lock held. */
static void take_info(bh__device *device, const bh__worker *worker) {
    const bh__device_facts *info = &worker->info;
    device->info = *info;
    device->traits = worker->traits;
    device->memory.chunk_granularity = worker->chunk_granularity;
    device->queue.warp_mask = bh__is_power_of_two(info->warp_size) ? info->warp_size - 1 : 0;
    if (!device->memory.limit_given) device->options.memory_limit = info->memory_total;
}

void bh__worker_activate(bh__device *device, bh__worker *worker) {
    bh__area *area = bh__worker_area(device, worker), *before = atomic_load(&device->queue.area);
    bh__lock_take(&device->lock);
    /* The words of each lane continue where the lane stopped. Set before the area is published. */
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists) continue;
        atomic_store(&area->lane[i].claim, bh__claim_word(lane->floor));
        atomic_store(&area->lane[i].done, lane->floor);
        /* A new era: positions confirmed from another worker's words do not count for this one. */
        uint64_t era = (atomic_load(&lane->answered) >> BH__ANSWERED_BITS) + 1;
        atomic_store(&lane->answered, era << BH__ANSWERED_BITS | lane->floor);
        /* The watchdog measures this worker from now on. */
        lane->head_position = lane->due_position = 0;
        lane->claimed = lane->floor;
    }
    bh__driver_managed_arrive(device, worker->area);
    take_info(device, worker);
    /* Before the state: a thread that sees the device running also sees the worker's pid. */
    atomic_store(&device->workers.worker_pid, worker->process.program.pid);
    atomic_store(&device->state, BH__DEVICE_RUNNING);
    device->generation++;
    count_takeover(device);
    worker->state = BH__WORKER_ACTIVE;
    /* Before the area: a thread that sees a result of this worker also sees its generation. */
    bh__health_note(device);
    device->queue.reports_taken = 0;
    atomic_store(&device->queue.area, area);
    atomic_store(&device->queue.halted, false);
    atomic_store(&device->queue.distrusted, false); /* that was its predecessor */
    atomic_fetch_add(&device->queue.epoch, 1);
    device->queue.frozen = false;
    bh__lock_give(&device->lock);
    device->workers.boot_failures = 0;
    bh__area_wake(before, device->queue.lane_limit);
    bh__dispatcher_listen(device, worker->bell_fd);
    bh__dispatcher_poke(device);
    report_loss(device);
    if (atomic_load(&device->workers.opened) == 0) {
        atomic_store(&device->workers.opened, 1);
        bh__futex_wake(&device->workers.opened, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    }
}
