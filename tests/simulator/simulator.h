/* SPDX-License-Identifier: Apache-2.0 */
/* What scenarios, random programs and the fake device use of the simulator. */
#ifndef SIMULATOR_H
#define SIMULATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a run can end. */
enum { SIM_OK, SIM_BUG, SIM_DEADLOCK, SIM_HANG, SIM_CRASH, SIM_UNSUPPORTED, SIM_RESULTS };

void sim_fail(int result, const char *format, ...) __attribute__((noreturn, format(printf, 2, 3)));
/* Everything before is the same for all seeds and is done once. */
void sim_snapshot(void);
/* Runs from here on are left to chance, in this process too. */
uint64_t sim_random(void);
/* 0 .. below - 1 */
static inline uint64_t sim_pick(uint64_t below) {
    return sim_random() % below;
}
static inline bool sim_chance(unsigned in) {
    return sim_random() % in == 0;
}
uint64_t sim_now(void);
void sim_sleep(uint64_t ns);
/* A note in the trace, and in what a failing run prints. */
void sim_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Whether random programs are to do without something: without=WHAT,WHAT on the command line. For
 * looking past a defect that is known. */
bool sim_without(const char *what);

/* ---- faults ---- */

void sim_kill(int pid);            /* dies slowly: threads, descriptors, then it can be reaped */
void sim_crash(int pid);           /* the same, by a fault of its own: SIGSEGV */
void sim_stop(int pid, bool stop); /* SIGSTOP and SIGCONT */
void sim_pause_process(int pid, uint64_t ns); /* 0: the application; all of its threads but this */
/* From now on, one request for memory or a descriptor in so many is refused; 0: none. */
void sim_refuse_memory(unsigned in, bool workers_only);

/* What the fake device does. Set by scenarios. */
typedef struct sim_device_faults {
    bool queues;              /* it has queues of its own, as a GPU; set before it is opened */
    uint64_t longest_ns;      /* a request takes up to this long; 0: no time */
    uint64_t longest_boot_ns; /* a worker takes up to this long to open the device; 0: no time */
    bool broken;              /* workers cannot open the device any more */
    unsigned refuse_in;       /* one request in so many is refused; 0: none */
    unsigned fault_in;        /* ... faults */
} sim_device_faults;
extern sim_device_faults sim_device;

/* ---- the oracle: what the device does is told here, step by step ---- */

typedef struct sim_access {
    int worker; /* process */
    unsigned lane;
    uint64_t sequence;
    uint64_t target, target_bytes; /* device addresses; 0 bytes: none */
    uint64_t source, source_bytes;
} sim_access;

int sim_access_begin(const sim_access *what); /* returns its number */
void sim_access_write(int number, uint64_t address, uint64_t bytes);
void sim_access_end(int number);

/* The current thread stands for hardware: it outlives the threads of its process for a while. */
void sim_hardware(void);

int sim_process(void); /* of the current fiber; 0: the application */

/* ---- the end ---- */

/* Fails if anything of the application is left: threads but this one, descriptors, mappings, memory
 * that nothing points to. */
void sim_nothing_left(void);
unsigned sim_fds_open(void);
unsigned sim_threads_alive(void);

typedef struct sim_scenario {
    const char *name, *about;
    void (*run)(void);
} sim_scenario;
extern const sim_scenario sim_scenarios[]; /* the last one has no name */

#endif
