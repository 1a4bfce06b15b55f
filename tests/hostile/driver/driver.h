/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application that uses a device whose workers are hostile, from several threads, through the
 * public calls alone. Whatever the workers do: it does not crash, each call returns in time,
 * answers do not change, memory and descriptors stay within bounds, another device's results are
 * right, and so are this one's once its workers are honest.
 */
#ifndef TESTS_HOSTILE_DRIVER_H
#define TESTS_HOSTILE_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

#include "../chance.h"
#include "bulkhead.h"

#define DRIVER_MS UINT64_C(1000000)
#define DRIVER_S  UINT64_C(1000000000)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DRIVER_SCALE 4
#else
#define DRIVER_SCALE 1
#endif

/* ---- calls.c: what went wrong, and how long calls take ---- */

/* Says what is broken, and counts it. */
void problem(const char *format, ...) __attribute__((format(printf, 1, 2)));
unsigned problem_count(void);
uint64_t driver_now(void);
/* Prints the calls that have not returned and the workers' log, when the process gets SIGQUIT. With
 * HOSTILE_HOLD set it then waits for a debugger. */
void calls_watch(const char *log);
void call_begin(const char *text, uint64_t limit_ns);
int32_t call_end(int32_t status);

/* A call that is given a time-out returns by then; one that is given none waits through the losses
 * of a few workers, of which one may take its 10 s to start, and no longer. The rest is for a
 * machine with much else to do. */
#define SLACK_NS                 (2 * DRIVER_S * DRIVER_SCALE)
#define AT_LENGTH                (30 * DRIVER_S * DRIVER_SCALE)
#define WITHIN(timeout_ns, call) (call_begin(#call, (timeout_ns) + SLACK_NS), call_end(call))
#define AT_ONCE(call)            WITHIN(0, call)
#define IN_THE_END(call)         WITHIN(AT_LENGTH, call)

/* ---- book.c: what tickets answered ---- */

/* Notes an answer; one that differs from an earlier one is a problem. */
void book_note(bh_ticket ticket, bh_status status);
/* Asks all of them again. */
void book_check(void);
void book_clear(void);

/* ---- load.c: work of every kind ---- */

typedef struct stage {
    bh_device device;
    bh_device honest;
    bh_buffer honest_buffer;
    const char *folder; /* for traces */
    _Atomic bool over;
    _Atomic uint64_t callbacks_wanted, callbacks_run;
} stage;

typedef struct loader {
    stage *stage;
    chance chance;
    uint32_t index;
} loader;

/* A thread's body: calls of every kind until the stage is over. */
void *load_main(void *loader);

/* ---- honest.c: what must be right ---- */

/* A thread's body: work on the stage's honest device, every byte of which is checked. */
void *honest_main(void *stage);
/* Once its workers are honest, the device comes to serve: writes, kernels and reads are right.
 * False: it has stopped. */
bool serves_again(bh_device device);

/* ---- run.c ---- */

/* One seed, in this process. Returns the exit code. */
int run_seed(uint64_t seed, const char *only);

/* ---- seeds.c ---- */

typedef struct seeds_options {
    uint64_t first, count, jobs, seconds;
    const char *only;
} seeds_options;

/* Each in a process of its own. Returns how many failed. */
unsigned run_seeds(const seeds_options *options);

#endif
