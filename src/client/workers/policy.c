/* SPDX-License-Identifier: Apache-2.0 */
/* What follows from a loss: whether the device continues and whether a kernel is quarantined,
 * decided by the limits in bh_device_options and by the program's policy callback. */
#include <stdio.h>
#include <string.h>

#include "client/queue/counts.h"
#include "client/workers/judge_loss.h"

enum {
    /* The default limits stop a device after this many losses without one completed request in
     * between: that is a broken installation, not bad requests. */
    FUTILE_LOSSES = 20
};

/* ---- the restart budget ---- */

/* The budget is in ns: each loss costs restart_window_ns / restart_limit, and it refills with
 * time. */
static uint64_t cost_of_loss(const bh_device_options *options) {
    uint64_t cost = options->restart_window_ns / options->restart_limit;
    return cost ? cost : 1;
}

static uint64_t budget_now(const bh_device_options *options, const bh__restart_budget *budget,
                           uint64_t now) {
    uint64_t grown = now - budget->at, room = options->restart_window_ns - budget->ns;
    return grown < room ? budget->ns + grown : options->restart_window_ns;
}

static bool spend_restart(bh__device *device) {
    bh__restart_budget *budget = &device->workers.policy.budget;
    uint64_t cost = cost_of_loss(&device->options), now = bh__now_ns();
    *budget = (bh__restart_budget){budget_now(&device->options, budget, now), now};
    if (budget->ns < cost) return false;
    budget->ns -= cost;
    return true;
}

uint32_t bh__restarts_spent(const bh_device_options *options, const bh__restart_budget *budget) {
    uint64_t spent = options->restart_window_ns - budget_now(options, budget, bh__now_ns());
    uint64_t cost = cost_of_loss(options);
    return (uint32_t)(spent / cost + (spent % cost != 0));
}

/* Requests that completed since the device was opened. */
static uint64_t count_completed(const bh__judgement *self) {
    const bh__device *device = self->device;
    uint64_t submitted = 0;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++)
        submitted += bh__tally_requests(&device->lanes[i].tally);
    return submitted - device->queue.dropped - self->unfinished;
}

static void count_futile(bh__judgement *self) {
    bh__device *device = self->device;
    uint64_t completed = count_completed(self);
    device->workers.policy.futile =
        completed == device->workers.policy.completed ? device->workers.policy.futile + 1 : 1;
    device->workers.policy.completed = completed;
}

/* ---- quarantine ---- */

/* Each certain fault of the culprit adds one to its score. By default each completed launch
 * subtracts one, so that only a kernel that mostly faults is quarantined. */
static bool count_fault(bh__judgement *self) {
    bh__device *device = self->device;
    bh__kernel *kernel = self->culprit;
    if (!kernel || self->cause->innocent) return false;
    kernel->faults++;
    uint64_t completed = kernel->submitted - kernel->dropped - self->unfinished_launches;
    uint64_t good = completed - kernel->completed;
    kernel->completed = completed;
    if (device->workers.policy.quarantine_by_rate)
        kernel->score = kernel->score > good ? kernel->score - (uint32_t)good : 0;
    kernel->score++;
    return kernel->score >= device->options.quarantine_after;
}

/* ---- the decision ---- */

#define STOP_FIX                                                                                   \
    "find out why workers are lost, or raise restart_limit; then close and reopen the device"

/* Returns false, with *why set, if the limits stop the device. */
static bool limits_allow(bh__judgement *self, bh_error *why) {
    bh__device *device = self->device;
    const bh__cause *cause = self->cause;
    count_futile(self);
    if (cause->broken) {
        bh__fail(why, BH_E_STOPPED, cause->error.fix,
                 "the device has stopped and is not restarted: %.400s", cause->error.message);
        bh__fail_device_code(why, cause->error.device_code, cause->error.device_name);
        return false;
    }
    if (device->options.flags & BH_DEVICE_NO_RESTART_LIMIT) return true;
    if (!spend_restart(device)) {
        bh__fail(why, BH_E_STOPPED, STOP_FIX,
                 "the device has stopped: more than %u losses in %.1f s (restart_limit); "
                 "the last: %.300s",
                 device->options.restart_limit, (double)device->options.restart_window_ns / 1e9,
                 self->summary->message);
        return false;
    }
    if (device->workers.policy.default_limit && device->workers.policy.futile >= FUTILE_LOSSES) {
        bh__fail(why, BH_E_STOPPED,
                 "run `bulkhead doctor`; to continue anyway, set restart_limit or a policy",
                 "the device has stopped: %u losses in a row without one completed request in "
                 "between; the last: %.300s",
                 device->workers.policy.futile, self->summary->message);
        return false;
    }
    return true;
}

static void call_policy(bh__device *device, const bh_loss *loss, bh_verdict *verdict) {
    verdict->size = sizeof *verdict;
    device->options.policy(device->options.policy_context, loss, verdict);
    verdict->go_on = verdict->go_on != 0;
    verdict->quarantine = verdict->quarantine != 0;
    verdict->resend = verdict->resend != 0;
}

static void stop_by_policy(const bh_loss *loss, bh_error *why) {
    bh__fail(why, BH_E_STOPPED,
             "check the program's policy callback; then close and reopen the device",
             "the device has stopped: the program's policy stopped it after loss %llu: %.300s",
             (unsigned long long)loss->number, loss->message);
}

void bh__policy_decide(bh__judgement *self, bh_verdict *out, bh_error *why) {
    bh__device *device = self->device;
    bool allowed = limits_allow(self, why);
    *out = (bh_verdict){
        .size = sizeof *out, .go_on = allowed, .quarantine = count_fault(self), .resend = 1};
    if (out->quarantine) device->workers.policy.futile = 0; /* the cause cannot recur */
    if (!device->options.policy) return;
    self->summary->stopped = !allowed;
    atomic_store(&device->workers.deciding, true);
    bh__lock_give(&device->lock);
    call_policy(device, self->summary, out);
    bh__lock_take(&device->lock);
    atomic_store(&device->workers.deciding, false);
    self->summary->stopped = 0;
    if (allowed && !out->go_on) stop_by_policy(self->summary, why);
}

bool bh__policy_retries(bh__device *device, const bh_error *why) {
    if (!device->options.policy) return false;
    bh_loss loss = device->workers.loss;
    loss.size = sizeof loss;
    loss.stopped = 1;
    loss.cause = BH_E_LOST;
    loss.kind = why->status == BH_E_NO_MEMORY ? BH_LOSS_NO_MEMORY : BH_LOSS_BROKEN;
    loss.kernel[0] = 0;
    snprintf(loss.message, sizeof loss.message, "%s", why->message);
    bh_verdict verdict = {0};
    atomic_store(&device->workers.deciding, true);
    call_policy(device, &loss, &verdict);
    atomic_store(&device->workers.deciding, false);
    return verdict.go_on;
}
