/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulator's inside: fibers in place of threads, simulated time, kernel objects in ordinary
 * memory. Everything here runs on one thread of the system; "the current fiber" is whoever runs.
 * What simulated code calls instead of the C library has the prefix sim_os_ (replaced.txt).
 */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "simulator.h"

enum {
    MAX_FIBERS = 1024,
    MAX_PROCESSES = 96,
    MAX_FDS = 512,
    THE_KERNEL = MAX_PROCESSES - 1, /* the process of fibers that model the machine */
    NAME_BYTES = 24,
    MAX_KEYS = 8
};
#define NEVER UINT64_MAX

typedef enum wait_kind {
    WAIT_NONE,
    WAIT_FUTEX,
    WAIT_MUTEX,
    WAIT_CONDITION,
    WAIT_JOIN,
    WAIT_POLL,
    WAIT_SLEEP,
    WAIT_MESSAGE
} wait_kind;

typedef struct fiber fiber;
struct fiber {
    int id, process;
    bool dead, blocked, woken, timed_out, stopped;
    bool hardware; /* a device at work for a process: it ends after the threads, and cannot be
                      stopped */
    wait_kind kind;
    const void *key;        /* what it waits on */
    uint64_t deadline;      /* of the wait */
    bool (*ready)(fiber *); /* or a question instead of a key */
    void *ready_argument;
    void *stack_pointer, *stack, *tls;
    int saved_errno;
    uint64_t priority, steps;
    void *(*body)(void *);
    void *argument, *result;
    void *specific[MAX_KEYS];
    struct object *kept; /* a descriptor of its own: unshare(CLONE_FILES) */
    char name[NAME_BYTES];
};

/* ---- fibers and time: fiber.c, schedule.c ---- */

extern fiber *sim_fibers[MAX_FIBERS];
extern int sim_fiber_count;
extern fiber *sim_current; /* NULL until the first one runs */
extern uint64_t sim_steps;
extern bool sim_exploring; /* false: before the snapshot, where nothing is left to chance */
extern bool sim_changed;   /* somebody may be able to run who was not */

fiber *sim_spawn(int process, void *(*body)(void *), void *argument);
void sim_fiber_end(fiber *self); /* of another fiber; its stack is left as it is */
void sim_switch_to(fiber *next);
void sim_fibers_start(void *(*body)(void *));
void sim_backtraces(void);

/* A scheduling point. */
void sim_point(const void *where);
/* The same for a thread that spins: others go first. */
void sim_give_way(uint64_t ns, const void *where);
/* True: woken; false: the deadline came. */
bool sim_block(wait_kind kind, const void *key, uint64_t deadline, const void *where);
bool sim_block_until(wait_kind kind, bool (*ready)(fiber *), void *argument, uint64_t deadline,
                     const void *where);
int sim_wake(wait_kind kind, const void *key, int count);
uint64_t sim_now_ns(void);
void sim_time_pass(uint64_t ns);

typedef struct strategy {
    enum { STRATEGY_MIX, STRATEGY_WALK, STRATEGY_STICKY, STRATEGY_PCT } kind;
    unsigned sticky;       /* a switch at one step in so many */
    unsigned depth;        /* PCT */
    unsigned pause_every;  /* a thread loses its processor at one step in so many; 0: never */
    unsigned store_buffer; /* a store stays in it with this weight; 0: no store buffers */
    unsigned jump;         /* per million steps: the clock jumps to the next deadline */
} strategy;
extern strategy sim_strategy; /* as asked for; MIX: drawn from the seed */
void sim_schedule_begin(uint64_t seed);
const char *sim_strategy_text(void);
uint64_t sim_hash(void);
extern uint64_t sim_step_limit, sim_time_limit;

/* ---- memory: access.c, heap.c, mapping.c ---- */

void sim_stores_flush(void);      /* of the current fiber */
extern unsigned sim_store_weight; /* 0: no store buffers */
void sim_access_check(const volatile void *at, size_t bytes, bool write, const void *where);
void sim_heap_begin(void);
const char *sim_heap_fault(const void *at, int process);
void sim_heap_forget(int process); /* it ended: what it had is gone with it */
void sim_mapping_check(const void *at, bool write, const void *where);
void sim_mappings_drop(int process);
unsigned sim_mappings_left(int process);
bool sim_refuses(void); /* a fault: memory or a descriptor is refused now */

/* ---- kernel objects: objects.c ---- */

typedef struct object object;
object *sim_object_of(int process, int fd);
void sim_object_release(object *self);
void sim_fds_close(int process);
bool sim_fds_close_one(int process);
unsigned sim_fds_left(int process);
int sim_fd_give(object *self, int process, int from);
object *sim_pidfd_new(int process);
void sim_fd_events(void); /* something became readable or writable */
/* From mapping.c: zeroed memory, at an address of its own or at the wanted one. */
void *sim_memory_new(size_t bytes, void *wanted);
/* For mapping.c: a memfd's memory and size; NULL: it is none. */
char *sim_object_memory(object *self, void *wanted);
uint64_t sim_object_bytes(const object *self);
/* Nobody can map it for writing any more. */
bool sim_object_published(const object *self);

/* ---- processes: process.c ---- */

int sim_process_new(void);
bool sim_process_dead(int process);

/* ---- the end of a run ---- */

void sim_finish(int code) __attribute__((noreturn));

#endif
