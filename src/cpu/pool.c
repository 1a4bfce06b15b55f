/* SPDX-License-Identifier: Apache-2.0 */
/* The pool: threads that run blocks of grids beside the lanes' own threads. They are started when
 * first needed. */
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "cpu/cpu.h"

bh_status bh__cpu_pool_open(bh__cpu_pool *pool, bh__device_instance *device, uint32_t size,
                            bh_error *error) {
    pool->device = device;
    pool->size = size;
    pool->threads = calloc(size + 1, sizeof *pool->threads);
    if (!pool->threads)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for a list of %u threads", size);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->called, NULL);
    pthread_cond_init(&pool->left, NULL);
    return BH_OK;
}

/* The job with the fewest helpers that wants one more. */
static bh__cpu_job *choose(const bh__cpu_pool *pool) {
    bh__cpu_job *best = NULL;
    for (bh__cpu_job *job = pool->jobs; job; job = job->newer) {
        if (job->wanted == 0 || (best && best->helpers <= job->helpers) ||
            atomic_load_explicit(&job->next, memory_order_relaxed) >= job->total)
            continue;
        best = job;
    }
    return best;
}

/* Called by the thread itself: naming another thread writes to a file, which a worker cannot open.
 */
static void name_thread(uint32_t number) {
    char name[16];
    snprintf(name, sizeof name, "bh-pool-%u", number % 1000);
    pthread_setname_np(pthread_self(), name);
}

static void *pool_main(void *argument) {
    bh__cpu_pool *pool = argument;
    bh__ptx_cluster *cluster = NULL;
    pthread_mutex_lock(&pool->lock);
    name_thread(pool->named++);
    while (!pool->closing) {
        bh__cpu_job *job = choose(pool);
        if (!job) {
            pool->idle++;
            pthread_cond_wait(&pool->called, &pool->lock);
            pool->idle--;
            continue;
        }
        job->wanted--;
        job->helpers++;
        pthread_mutex_unlock(&pool->lock);
        bh__cpu_job_help(job, &cluster);
        pthread_mutex_lock(&pool->lock);
        if (--job->helpers == 0) pthread_cond_broadcast(&pool->left);
    }
    pthread_mutex_unlock(&pool->lock);
    if (cluster) bh__ptx_cluster_destroy(cluster);
    return NULL;
}

/* Called with the lock held. If a thread cannot be started, the pool works without it. */
static void start_thread(bh__cpu_pool *pool) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, BH__CPU_STACK_BYTES);
    pthread_t *thread = &pool->threads[pool->started];
    if (bh__thread_start(thread, &attributes, pool_main, pool) == 0) pool->started++;
    pthread_attr_destroy(&attributes);
}

void bh__cpu_pool_call(bh__cpu_pool *pool, bh__cpu_job *job, uint64_t helpers) {
    uint32_t wanted = helpers < pool->size ? (uint32_t)helpers : pool->size;
    if (wanted == 0) return;
    pthread_mutex_lock(&pool->lock);
    job->wanted = wanted;
    job->helpers = 0;
    job->newer = NULL;
    job->listed = true;
    bh__cpu_job **last = &pool->jobs;
    while (*last) last = &(*last)->newer;
    *last = job;
    for (uint32_t i = pool->idle; i < wanted && pool->started < pool->size; i++) start_thread(pool);
    for (uint32_t i = 0; i < wanted && i < pool->idle; i++) pthread_cond_signal(&pool->called);
    pthread_mutex_unlock(&pool->lock);
}

void bh__cpu_pool_dismiss(bh__cpu_pool *pool, bh__cpu_job *job) {
    if (!job->listed) return;
    pthread_mutex_lock(&pool->lock);
    bh__cpu_job **link = &pool->jobs;
    while (*link != job) link = &(*link)->newer;
    *link = job->newer;
    job->listed = false;
    while (job->helpers) pthread_cond_wait(&pool->left, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void bh__cpu_pool_close(bh__cpu_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->closing = true;
    pthread_cond_broadcast(&pool->called);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 0; i < pool->started; i++) pthread_join(pool->threads[i], NULL);
    free(pool->threads);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->called);
    pthread_cond_destroy(&pool->left);
}
