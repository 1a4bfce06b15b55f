/* SPDX-License-Identifier: Apache-2.0 */
/* What processes use: processor time, memory, descriptors, children. Read from /proc. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Processor time of a process so far, of all its threads, those that have ended too. */
uint64_t process_cpu_ns(pid_t pid);
/* Of the living threads of this process other than the calling one. */
uint64_t process_other_threads_cpu_ns(void);

typedef struct process_thread {
    uint64_t cpu_ns;
    uint64_t delayed_ns; /* ready to run, and no processor free */
} process_thread;
/* The sum over the threads whose names begin with `prefix`. */
process_thread process_threads(pid_t pid, const char *prefix);

/* Returns when the worker's first lane is running the kernel just launched on it: sleeps for 5 ms,
 * and on a CPU device, where that shows, until the lane's thread has been at work since. `before`
 * is its time at the launch. */
void process_await_kernel(pid_t worker, bool cpu, process_thread before);

/* A field of /proc/PID/FILE that is given in kB ("VmRSS:", "RssAnon:", "Pss:"), in bytes. */
uint64_t process_memory(pid_t pid, const char *file, const char *field);

size_t process_descriptors(void);
/* Bytes in memory behind this process's memfd descriptors, each file counted once. */
uint64_t process_shared_bytes(void);
/* Living and unreaped children of this process. */
size_t process_children(void);

/* When a process started, in clock ticks, which with its pid tells it from all others; 0: there is
 * none. */
uint64_t process_start_time(pid_t pid);

#endif
