/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: what other threads ask the supervisor for, and wait for. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/futex.h"
#include "client/supervisor.h"

/* Orders are answered soon, most by the CPU device within a tenth of a millisecond. A thread that
 * sleeps meanwhile leaves its processor idle and finds the caches cold, so that its next calls take
 * twice as long and more. One that waits this long only gives way to others, and in between fetches
 * what such calls need. */
enum { GIVE_WAY_NS = 2000000 };

/* If the program has closed our descriptors, the supervisor still sleeps on what they were: the end
 * of its worker wakes it. */
void bh__supervisor_poke(bh__device *device) {
    if (bh__fd_poke(device->jobs_fd)) return;
    pid_t worker = atomic_load(&device->worker_pid);
    if (worker > 0) kill(worker, SIGKILL);
}

void bh__job_finish(bh__device *device, bh__job *job) {
    if (job->module) bh__module_resolve(device, job->module, &job->error);
    if (job->self_owned) {
        free(job);
        return;
    }
    atomic_store(&job->done, 1);
    bh__futex_wake(&job->done, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

static void fail_job(bh__device *device, bh__job *job) {
    bh__fail(&job->error, BH_E_STOPPED, "use the device before closing it",
             "the device is being closed");
    bh__job_finish(device, job);
}

void bh__job_post(bh__device *device, bh__job *job) {
    pthread_mutex_lock(&device->jobs_lock);
    job->next = NULL;
    bool closed = device->jobs_closed;
    if (closed) {
        pthread_mutex_unlock(&device->jobs_lock);
        fail_job(device, job);
        return;
    }
    if (device->jobs_last) {
        device->jobs_last->next = job;
    } else {
        device->jobs = job;
    }
    device->jobs_last = job;
    pthread_mutex_unlock(&device->jobs_lock);
    bh__supervisor_poke(device);
}

bh__job *bh__jobs_take(bh__device *device, bool close) {
    pthread_mutex_lock(&device->jobs_lock);
    bh__job *all = device->jobs;
    device->jobs = device->jobs_last = NULL;
    device->jobs_closed |= close;
    pthread_mutex_unlock(&device->jobs_lock);
    return all;
}

void bh__jobs_close(bh__device *device) {
    for (bh__job *late = bh__jobs_take(device, true), *next; late; late = next) {
        next = late->next;
        fail_job(device, late);
    }
    bh__flushes_answer(device, atomic_load(&device->flushes_wanted));
}

static bool jobs_closed(bh__device *device) {
    pthread_mutex_lock(&device->jobs_lock);
    bool closed = device->jobs_closed;
    pthread_mutex_unlock(&device->jobs_lock);
    return closed;
}

/* Counted first, looked second: the supervisor closes its queue first and answers the last flushes
 * second. */
bool bh__workers_flush(bh__device *device, uint64_t deadline) {
    uint32_t wanted = atomic_fetch_add(&device->flushes_wanted, 1) + 1;
    if (jobs_closed(device)) return true;
    bh__supervisor_poke(device);
    for (;;) {
        uint32_t done = atomic_load(&device->flushes_done);
        if ((int32_t)(done - wanted) >= 0) return true;
        if (!bh__futex_wait(&device->flushes_done, done, deadline, BH__FUTEX_PRIVATE)) return false;
    }
}

void bh__flushes_answer(bh__device *device, uint32_t wanted) {
    atomic_store(&device->flushes_done, wanted);
    bh__futex_wake(&device->flushes_done, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__job_wait(bh__job *job) {
    while (!atomic_load(&job->done)) bh__futex_wait(&job->done, 0, BH__NEVER, BH__FUTEX_PRIVATE);
}

/* The device that this thread is the supervisor of. */
static _Thread_local const bh__device *supervised;

void bh__supervise(const bh__device *device) {
    supervised = device;
}

bool bh__supervises(const bh__device *device) {
    return supervised == device;
}

bh_status bh__order_run(bh__device *device, bh__job *job) {
    if (bh__supervises(device)) /* it would wait for itself */
        return bh__refuse(BH_E_BUSY, "make the call from another thread",
                          "a log function makes a call that waits for the thread it runs on");
    bh__device_step_out(device);
    bh__job_post(device, job);
    uint64_t until = bh__now_ns() + GIVE_WAY_NS;
    bh__fetched fetched = {0};
    while (!atomic_load(&job->done) && bh__now_ns() < until) {
        bh__lock_take(&device->lock);
        bh__memory_fetch_some(device, &fetched);
        bh__lock_give(&device->lock);
        sched_yield();
    }
    bh__job_wait(job);
    bh__device_step_in(device);
    return job->error.status == BH_OK ? BH_OK : bh__refuse_with(&job->error);
}
