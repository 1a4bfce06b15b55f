/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: requests from other threads to the supervisor, and waiting for their completion. */
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

#include "base/futex.h"
#include "client/core/fork.h"
#include "client/core/handles.h"
#include "client/jobs/jobs.h"

/* The waiting thread calls sched_yield for this long before it sleeps. Most orders complete sooner:
 * the CPU device takes about 0.1 ms. After a sleep the caches are cold, and the thread's next calls
 * take at least twice as long. */
enum { YIELD_NS = 2000000 };

/* If the program has closed the eventfd, only the end of the worker can still wake the supervisor,
 * so the worker is killed. */
void bh__supervisor_poke(bh__device *device) {
    if (bh__fd_poke(device->jobs.fd)) return;
    pid_t worker = atomic_load(&device->workers.worker_pid);
    if (worker > 0) kill(worker, SIGKILL);
}

/* An order that nobody was given has its data still. */
static void drop_data(bh__job *job) {
    free(job->order.data);
    job->order.data = NULL;
}

void bh__job_finish(bh__device *device, bh__job *job) {
    drop_data(job);
    if (job->finished) job->finished(device, job);
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
    bool closed = device->jobs.closed;
    if (closed) {
        pthread_mutex_unlock(&device->jobs_lock);
        fail_job(device, job);
        return;
    }
    if (device->jobs.last) {
        device->jobs.last->next = job;
    } else {
        device->jobs.first = job;
    }
    device->jobs.last = job;
    pthread_mutex_unlock(&device->jobs_lock);
    bh__supervisor_poke(device);
}

bool bh__order_post(bh__device *device, const bh__order *order) {
    bh__job *job = calloc(1, sizeof *job);
    if (!job) return false;
    job->kind = BH__JOB_ORDER;
    job->order = *order;
    job->self_owned = true;
    bh__job_post(device, job);
    return true;
}

bh__job *bh__jobs_take(bh__device *device, bool close) {
    pthread_mutex_lock(&device->jobs_lock);
    bh__job *all = device->jobs.first;
    device->jobs.first = device->jobs.last = NULL;
    device->jobs.closed |= close;
    pthread_mutex_unlock(&device->jobs_lock);
    return all;
}

void bh__jobs_close(bh__device *device) {
    for (bh__job *job = bh__jobs_take(device, true), *next; job; job = next) {
        next = job->next;
        fail_job(device, job);
    }
    bh__flushes_answer(device, atomic_load(&device->jobs.flushes_wanted));
}

static bool jobs_closed(bh__device *device) {
    pthread_mutex_lock(&device->jobs_lock);
    bool closed = device->jobs.closed;
    pthread_mutex_unlock(&device->jobs_lock);
    return closed;
}

/* This thread counts the flush before it checks `closed`. The supervisor closes its queue before it
 * answers the last flushes. So no flush is left unanswered. */
bool bh__workers_flush(bh__device *device, uint64_t deadline) {
    uint32_t wanted = atomic_fetch_add(&device->jobs.flushes_wanted, 1) + 1;
    if (jobs_closed(device)) return true;
    bh__supervisor_poke(device);
    for (;;) {
        uint32_t done = atomic_load(&device->jobs.flushes_done);
        if ((int32_t)(done - wanted) >= 0) return true;
        if (!bh__futex_wait(&device->jobs.flushes_done, done, deadline, BH__FUTEX_PRIVATE))
            return false;
    }
}

void bh__flushes_answer(bh__device *device, uint32_t wanted) {
    atomic_store(&device->jobs.flushes_done, wanted);
    bh__futex_wake(&device->jobs.flushes_done, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
}

void bh__job_wait(bh__job *job) {
    while (!atomic_load(&job->done)) bh__futex_wait(&job->done, 0, BH__NEVER, BH__FUTEX_PRIVATE);
}

/* The device whose supervisor this thread is. */
static _Thread_local const bh__device *supervised;

void bh__supervise(const bh__device *device) {
    supervised = device;
}

bool bh__supervises(const bh__device *device) {
    return supervised == device;
}

bh_status bh__order_run(bh__device *device, bh__job *job) {
    if (bh__supervises(device)) { /* it would deadlock */
        drop_data(job);
        return bh__refuse(BH_E_BUSY, "make the call from another thread",
                          "the log function made a call that waits for the thread it runs on");
    }
    bh__device_step_out(device);
    bh__job_post(device, job);
    uint64_t until = bh__now_ns() + YIELD_NS;
    while (!atomic_load(&job->done) && bh__now_ns() < until) sched_yield();
    bh__job_wait(job);
    bh__device_step_in(device);
    return job->error.status == BH_OK ? BH_OK : bh__refuse_with(&job->error);
}
