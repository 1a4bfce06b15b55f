/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, mutexes, conditions, futexes, clocks. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim.h"

#define HERE __builtin_return_address(0)

static uint64_t ns_of(const struct timespec *time) {
    return (uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec;
}

/* ---- clocks ---- */

int sim_os_clock_gettime(clockid_t clock, struct timespec *out);
int sim_os_clock_gettime(clockid_t clock, struct timespec *out) {
    (void)clock;
    sim_time_pass(40);
    out->tv_sec = (time_t)(sim_now_ns() / 1000000000ull);
    out->tv_nsec = (long)(sim_now_ns() % 1000000000ull);
    return 0;
}
int sim_os_nanosleep(const struct timespec *time, struct timespec *rest);
int sim_os_nanosleep(const struct timespec *time, struct timespec *rest) {
    (void)rest;
    sim_block(WAIT_SLEEP, NULL, sim_now_ns() + ns_of(time), HERE);
    return 0;
}
int sim_os_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest);
int sim_os_clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                           struct timespec *rest) {
    (void)clock, (void)rest;
    sim_block(WAIT_SLEEP, NULL, ns_of(time) + (flags & TIMER_ABSTIME ? 0 : sim_now_ns()), HERE);
    return 0;
}
int sim_os_sched_yield(void);
int sim_os_sched_yield(void) {
    sim_give_way(2000, HERE);
    return 0;
}
int sim_os_pause(void);
int sim_os_pause(void) {
    sim_block(WAIT_SLEEP, NULL, NEVER, HERE);
    return -1;
}

/* ---- futexes, in place of src/base/futex.c ---- */

bool bh__futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline, int scope);
bool bh__futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline, int scope) {
    (void)scope;
    sim_access_check(word, sizeof *word, false, HERE);
    sim_stores_flush();
    sim_point(HERE);
    if (atomic_load(word) != expected) return true;
    if (deadline <= sim_now_ns()) return false;
    /* A futex may return for no reason. */
    if (sim_exploring && sim_chance(64)) return true;
    return sim_block(WAIT_FUTEX, word, deadline, HERE);
}
int bh__futex_wake(_Atomic(uint32_t) *word, int count, int scope);
int bh__futex_wake(_Atomic(uint32_t) *word, int count, int scope) {
    (void)scope;
    sim_stores_flush();
    sim_point(HERE);
    int woken = sim_wake(WAIT_FUTEX, word, count);
    sim_point(HERE);
    return woken;
}

/* ---- mutexes and conditions: the first word is the holder's number ---- */

static int *holder_of(void *mutex) {
    return mutex;
}

static void lock(pthread_mutex_t *mutex, const void *where) {
    int *holder = holder_of(mutex), self = sim_current->id + 1;
    sim_access_check(mutex, sizeof *holder, true, where);
    sim_stores_flush();
    sim_point(where);
    while (*holder) {
        if (*holder == self) sim_fail(SIM_BUG, "a thread locks a mutex twice, at %p", where);
        sim_block(WAIT_MUTEX, mutex, NEVER, where);
    }
    *holder = self;
}

static void unlock(pthread_mutex_t *mutex, const void *where) {
    sim_access_check(mutex, sizeof(int), true, where);
    if (*holder_of(mutex) != sim_current->id + 1)
        sim_fail(SIM_BUG, "a thread unlocks a mutex that it does not hold, at %p", where);
    sim_stores_flush();
    *holder_of(mutex) = 0;
    sim_wake(WAIT_MUTEX, mutex, MAX_FIBERS);
}

int sim_os_pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes);
int sim_os_pthread_mutex_init(pthread_mutex_t *mutex, const void *attributes) {
    (void)attributes;
    memset(mutex, 0, sizeof *mutex);
    return 0;
}
int sim_os_pthread_mutex_destroy(pthread_mutex_t *mutex);
int sim_os_pthread_mutex_destroy(pthread_mutex_t *mutex) {
    if (*holder_of(mutex)) sim_fail(SIM_BUG, "a mutex is destroyed while it is held, at %p", HERE);
    return 0;
}
int sim_os_pthread_mutex_lock(pthread_mutex_t *mutex);
int sim_os_pthread_mutex_lock(pthread_mutex_t *mutex) {
    lock(mutex, HERE);
    return 0;
}
int sim_os_pthread_mutex_trylock(pthread_mutex_t *mutex);
int sim_os_pthread_mutex_trylock(pthread_mutex_t *mutex) {
    sim_point(HERE);
    if (*holder_of(mutex)) return EBUSY;
    *holder_of(mutex) = sim_current->id + 1;
    return 0;
}
int sim_os_pthread_mutex_unlock(pthread_mutex_t *mutex);
int sim_os_pthread_mutex_unlock(pthread_mutex_t *mutex) {
    unlock(mutex, HERE);
    sim_point(HERE);
    return 0;
}

static int cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex, uint64_t deadline,
                     const void *where) {
    unlock(mutex, where);
    bool woken =
        (sim_exploring && sim_chance(64)) || sim_block(WAIT_CONDITION, cond, deadline, where);
    lock(mutex, where);
    return woken ? 0 : ETIMEDOUT;
}
int sim_os_pthread_cond_init(pthread_cond_t *cond, const void *attributes);
int sim_os_pthread_cond_init(pthread_cond_t *cond, const void *attributes) {
    (void)attributes;
    memset(cond, 0, sizeof *cond);
    return 0;
}
int sim_os_pthread_cond_destroy(pthread_cond_t *cond);
int sim_os_pthread_cond_destroy(pthread_cond_t *cond) {
    (void)cond;
    return 0;
}
int sim_os_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int sim_os_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
    return cond_wait(cond, mutex, NEVER, HERE);
}
int sim_os_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until);
int sim_os_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until) {
    return cond_wait(cond, mutex, ns_of(until), HERE);
}
int sim_os_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until);
int sim_os_pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                                  const struct timespec *until) {
    (void)clock;
    return cond_wait(cond, mutex, ns_of(until), HERE);
}
int sim_os_pthread_cond_signal(pthread_cond_t *cond);
int sim_os_pthread_cond_signal(pthread_cond_t *cond) {
    sim_wake(WAIT_CONDITION, cond, 1);
    sim_point(HERE);
    return 0;
}
int sim_os_pthread_cond_broadcast(pthread_cond_t *cond);
int sim_os_pthread_cond_broadcast(pthread_cond_t *cond) {
    sim_wake(WAIT_CONDITION, cond, MAX_FIBERS);
    sim_point(HERE);
    return 0;
}

int sim_os_pthread_once(pthread_once_t *once, void (*run)(void));
int sim_os_pthread_once(pthread_once_t *once, void (*run)(void)) {
    sim_point(HERE);
    while (*once == 1) sim_give_way(1000, HERE);
    if (*once == 2) return 0;
    *once = 1;
    run();
    *once = 2;
    return 0;
}

/* ---- threads ---- */

static void (*key_ends[MAX_KEYS])(void *);
static unsigned key_count;

typedef struct start {
    void *(*body)(void *);
    void *argument;
} start;

static void run_key_ends(void) {
    for (unsigned i = 0; i < key_count; i++) {
        void *value = sim_current->specific[i];
        sim_current->specific[i] = NULL;
        if (value && key_ends[i]) key_ends[i](value);
    }
}

static void *thread_main(void *argument) {
    start self = *(start *)argument;
    free(argument);
    void *result = self.body(self.argument);
    run_key_ends();
    return result;
}

int sim_os_pthread_create(pthread_t *out, const void *attributes, void *(*body)(void *),
                          void *argument);
int sim_os_pthread_create(pthread_t *out, const void *attributes, void *(*body)(void *),
                          void *argument) {
    (void)attributes;
    if (sim_refuses()) return EAGAIN;
    start *self = malloc(sizeof *self);
    *self = (start){body, argument};
    fiber *made = sim_spawn(sim_current->process, thread_main, self);
    *out = (pthread_t)made->id + 1;
    sim_point(HERE);
    return 0;
}
int sim_os_pthread_join(pthread_t thread, void **result);
int sim_os_pthread_join(pthread_t thread, void **result) {
    if (thread == 0 || thread > (pthread_t)sim_fiber_count)
        sim_fail(SIM_BUG, "a join of no thread, at %p", HERE);
    fiber *it = sim_fibers[thread - 1];
    sim_stores_flush();
    sim_point(HERE);
    while (!it->dead) sim_block(WAIT_JOIN, it, NEVER, HERE);
    if (result) *result = it->result;
    return 0;
}
int sim_os_pthread_detach(pthread_t thread);
int sim_os_pthread_detach(pthread_t thread) {
    (void)thread;
    return 0;
}
pthread_t sim_os_pthread_self(void);
pthread_t sim_os_pthread_self(void) {
    return (pthread_t)sim_current->id + 1;
}
int sim_os_pthread_setname_np(pthread_t thread, const char *name);
int sim_os_pthread_setname_np(pthread_t thread, const char *name) {
    snprintf(sim_fibers[thread - 1]->name, NAME_BYTES, "%s", name);
    return 0;
}
int sim_os_pthread_setcancelstate(int state, int *old);
int sim_os_pthread_setcancelstate(int state, int *old) {
    (void)state;
    if (old) *old = 0;
    return 0;
}
int sim_os_pthread_sigmask(int how, const void *set, void *old);
int sim_os_pthread_sigmask(int how, const void *set, void *old) {
    (void)how, (void)set, (void)old;
    return 0;
}
int sim_os_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void));
int sim_os_pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
    (void)before, (void)parent, (void)child; /* a snapshot is no fork of the program */
    return 0;
}
int sim_os_pthread_key_create(pthread_key_t *out, void (*end)(void *));
int sim_os_pthread_key_create(pthread_key_t *out, void (*end)(void *)) {
    if (key_count == MAX_KEYS) return EAGAIN;
    key_ends[key_count] = end;
    *out = key_count++;
    return 0;
}
void *sim_os_pthread_getspecific(pthread_key_t key);
void *sim_os_pthread_getspecific(pthread_key_t key) {
    return sim_current->specific[key];
}
int sim_os_pthread_setspecific(pthread_key_t key, const void *value);
int sim_os_pthread_setspecific(pthread_key_t key, const void *value) {
    sim_current->specific[key] = (void *)(uintptr_t)value;
    return 0;
}
void sim_os___pthread_register_cancel(void *buffer);
void sim_os___pthread_register_cancel(void *buffer) {
    (void)buffer;
}
void sim_os___pthread_unregister_cancel(void *buffer);
void sim_os___pthread_unregister_cancel(void *buffer) {
    (void)buffer;
}
