/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated processes, for what stands in for src/client/process/worker_process.c. */
#ifndef SIM_PROCESS_H
#define SIM_PROCESS_H

#include <stdbool.h>

enum { FIRST_PID = 1000 };

int sim_process_new(void);
int sim_process_pid(int process);
bool sim_process_ended(int process, int *out_signal, int *out_code);
void sim_process_kill(int process, int signal);
void sim_process_exit(int code) __attribute__((noreturn));
/* Starts `body` as the first thread of a process with these descriptors of the current one as its
 * own numbers 2 and 3. */
int sim_process_start(void *(*body)(void *), void *argument, int errors, int socket);
/* A descriptor that becomes readable when the process is gone. */
int sim_process_fd(int process);
int sim_os_kill(int pid, int signal);

#endif
