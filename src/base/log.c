/* SPDX-License-Identifier: Apache-2.0 */
/* The log callback: called without a lock, and replaced without a race. */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/*
 * A sink is a callback with its context. One sink is current. A logging thread increments `active`,
 * then checks that the sink is still current. A thread that replaces the sink makes another one
 * current, then waits for `active` to reach zero. Both are sequentially consistent, so one of the
 * two always sees the other. Sinks are never freed.
 */
struct sink {
    _Atomic(bool) claimed;
    _Atomic(uint32_t) active;
    bh__log_fn *log;
    void *context;
    _Atomic(int32_t) max_level;
    pid_t owner;
};

static struct sink sinks[BH__LOG_SINKS];
static _Atomic(struct sink *) current;
static _Thread_local int depth;

static struct sink *claim_sink(void) {
    for (size_t i = 0; i < sizeof sinks / sizeof sinks[0]; i++) {
        bool expected = false;
        if (!atomic_compare_exchange_strong(&sinks[i].claimed, &expected, true)) {
            continue;
        }
        /* A sink that was replaced from inside its own callback may still be running. */
        if (atomic_load(&sinks[i].active) == 0) {
            return &sinks[i];
        }
        atomic_store(&sinks[i].claimed, false);
    }
    return NULL;
}

static void retire_sink(struct sink *sink) {
    /* In a forked child, other threads that were logging do not exist. */
    while (depth == 0 && sink->owner == getpid() && atomic_load(&sink->active) != 0) {
        struct timespec pause = bh__timespec(50 * BH__NS_PER_US);
        nanosleep(&pause, NULL);
    }
    atomic_store(&sink->claimed, false);
}

int bh__log_set(bh__log_fn *log, void *context, int32_t max_level) {
    struct sink *next = NULL;
    if (log != NULL) {
        next = claim_sink();
        if (next == NULL) {
            return EBUSY;
        }
        next->log = log;
        next->context = context;
        atomic_store_explicit(&next->max_level, max_level, memory_order_relaxed);
        next->owner = getpid();
    }
    struct sink *last = atomic_exchange(&current, next);
    if (last != NULL) {
        retire_sink(last);
    }
    return 0;
}

bool bh__log_wants(int32_t level) {
    struct sink *sink = atomic_load_explicit(&current, memory_order_acquire);
    return sink != NULL && level <= atomic_load_explicit(&sink->max_level, memory_order_relaxed);
}

static struct sink *enter_sink(void) {
    for (;;) {
        struct sink *sink = atomic_load(&current);
        if (sink == NULL) {
            return NULL;
        }
        atomic_fetch_add(&sink->active, 1);
        if (atomic_load(&current) == sink) {
            return sink;
        }
        atomic_fetch_sub(&sink->active, 1);
    }
}

void bh__log(int32_t level, const char *format, ...) {
    if (!bh__log_wants(level)) {
        return;
    }
    struct sink *sink = enter_sink();
    if (sink == NULL) {
        return;
    }
    if (level <= atomic_load_explicit(&sink->max_level, memory_order_relaxed)) {
        char text[1024];
        va_list list;
        va_start(list, format);
        int length = vsnprintf(text, sizeof text, format, list);
        va_end(list);
        if (length >= 0) {
            depth++;
            sink->log(sink->context, level, text);
            depth--;
        }
    }
    atomic_fetch_sub(&sink->active, 1);
}
