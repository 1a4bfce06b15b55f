/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated processes: their ends, stops and pauses. Process 0 is the application. */
#include "process.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "objects.h"

#define HERE __builtin_return_address(0)

static struct {
    bool dying, dead;
    int signal, exit_code;
} processes[MAX_PROCESSES];
static int process_count = 1;

int sim_process_new(void) {
    if (process_count == THE_KERNEL)
        sim_fail(SIM_UNSUPPORTED, "more than %d processes in one run", THE_KERNEL - 1);
    return process_count++;
}

bool sim_process_dead(int process) {
    return processes[process].dead;
}
bool sim_process_ended(int process, int *out_signal, int *out_code) {
    if (!processes[process].dead) return false;
    *out_signal = processes[process].signal;
    *out_code = processes[process].exit_code;
    return true;
}
int sim_process(void) {
    return sim_current->process;
}
void sim_hardware(void) {
    sim_current->hardware = true;
}
int sim_process_pid(int process) {
    return FIRST_PID + process;
}

static void buried(int process) {
    sim_mappings_drop(process);
    sim_heap_forget(process);
    processes[process].dead = true;
    sim_fd_events();
}

/* ---- death ---- */

/* For up to 2^bits ns, mostly much less. */
static void rest(unsigned bits) {
    sim_block(WAIT_SLEEP, NULL, sim_now_ns() + ((uint64_t)1 << sim_random() % bits), HERE);
}

enum { LONGEST_BITS = 21, THREAD_BITS = 17, HARDWARE_BITS = 25 };

/* Other processors run on for a while; threads end one by one; what the device still does for the
 * process ends; then descriptors are closed; only then can the process be reaped. An instant death
 * would hide what goes wrong meanwhile. */
static bool end_one(int process, bool hardware) {
    fiber *picked = NULL;
    unsigned alive = 0;
    for (int i = 0; i < sim_fiber_count; i++) {
        fiber *one = sim_fibers[i];
        if (one->process == process && !one->dead && one->hardware == hardware &&
            sim_random() % ++alive == 0)
            picked = one;
    }
    if (picked) sim_fiber_end(picked);
    return picked != NULL;
}

static bool has_hardware(int process) {
    for (int i = 0; i < sim_fiber_count; i++)
        if (sim_fibers[i]->process == process && !sim_fibers[i]->dead && sim_fibers[i]->hardware)
            return true;
    return false;
}

static void *die_slowly(void *argument) {
    int process = (int)(intptr_t)argument;
    rest(LONGEST_BITS);
    while (end_one(process, false)) {
        sim_point(HERE);
        if (sim_chance(2)) rest(THREAD_BITS);
    }
    if (has_hardware(process)) rest(HARDWARE_BITS);
    while (end_one(process, true)) sim_point(HERE);
    while (sim_fds_close_one(process)) sim_point(HERE);
    if (sim_chance(2)) rest(LONGEST_BITS);
    buried(process);
    return NULL;
}

void sim_process_kill(int process, int signal) {
    if (processes[process].dying) return;
    processes[process].dying = true;
    processes[process].signal = signal;
    processes[process].exit_code = -1;
    sim_spawn(THE_KERNEL, die_slowly, (void *)(intptr_t)process);
    sim_point(HERE);
}

void sim_process_exit(int code) {
    int process = sim_current->process;
    if (process == 0) sim_fail(SIM_BUG, "the application exits with %d", code);
    sim_stores_flush();
    if (!processes[process].dying) {
        processes[process].dying = true;
        processes[process].exit_code = code;
    }
    for (int i = 0; i < sim_fiber_count; i++)
        if (sim_fibers[i]->process == process && sim_fibers[i] != sim_current)
            sim_fiber_end(sim_fibers[i]);
    sim_fds_close(process);
    buried(process);
    sim_fiber_end(sim_current);
    sim_point(HERE);
    abort(); /* a dead fiber is never chosen */
}

/* ---- stops ---- */

static void set_stopped(int process, bool stop, const fiber *but) {
    for (int i = 0; i < sim_fiber_count; i++)
        if (sim_fibers[i]->process == process && sim_fibers[i] != but)
            sim_fibers[i]->stopped = stop;
    sim_changed = true;
}

typedef struct pause {
    int process;
    uint64_t ns;
} pause_order;

static void *end_pause(void *argument) {
    pause_order order = *(pause_order *)argument;
    free(argument);
    sim_block(WAIT_SLEEP, NULL, sim_now_ns() + order.ns, HERE);
    set_stopped(order.process, false, NULL);
    return NULL;
}

static int process_of(int pid) {
    return pid == 0 ? 0 : pid - FIRST_PID;
}

void sim_pause_process(int pid, uint64_t ns) {
    int process = process_of(pid);
    if (process < 0 || process >= process_count || processes[process].dead) return;
    pause_order *order = malloc(sizeof *order);
    *order = (pause_order){process, ns};
    set_stopped(process, true, sim_current);
    sim_spawn(THE_KERNEL, end_pause, order);
    sim_point(HERE);
}

void sim_stop(int pid, bool stop) {
    int process = process_of(pid);
    if (process > 0 && process < process_count) set_stopped(process, stop, NULL);
    sim_point(HERE);
}

static void end_by(int pid, int signal) {
    int process = process_of(pid);
    if (process > 0 && process < process_count && !processes[process].dead)
        sim_process_kill(process, signal);
}
void sim_kill(int pid) {
    end_by(pid, SIGKILL);
}
void sim_crash(int pid) {
    end_by(pid, SIGSEGV);
}

int sim_os_kill(int pid, int signal) {
    int process = process_of(pid);
    if (process <= 0 || process >= process_count || processes[process].dead) {
        errno = ESRCH;
        return -1;
    }
    if (signal == SIGKILL)
        sim_process_kill(process, SIGKILL);
    else if (signal == SIGSTOP || signal == SIGCONT)
        set_stopped(process, signal == SIGSTOP, NULL);
    else if (signal)
        sim_fail(SIM_UNSUPPORTED, "signal %d", signal);
    return 0;
}

unsigned sim_threads_alive(void) {
    unsigned alive = 0;
    for (int i = 0; i < sim_fiber_count; i++)
        alive += sim_fibers[i]->process == 0 && !sim_fibers[i]->dead;
    return alive;
}

int sim_process_start(void *(*body)(void *), void *argument, int errors, int socket) {
    int parent = sim_current->process, process = sim_process_new();
    sim_fd_install(sim_object_of(parent, errors), process, 2);
    sim_fd_install(sim_object_of(parent, socket), process, 3);
    sim_spawn(process, body, argument);
    return process;
}

int sim_process_fd(int process) {
    return sim_fd_give(sim_pidfd_new(process), sim_current->process, 0);
}
