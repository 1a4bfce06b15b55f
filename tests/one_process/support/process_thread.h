/* SPDX-License-Identifier: Apache-2.0 */
/* Killing a worker that is a thread. */
#ifndef TESTS_PROCESS_THREAD_H
#define TESTS_PROCESS_THREAD_H

/* As kill(pid, SIGKILL) for a pid from bh_device_get_health. */
void kill_worker_thread(int pid);

#endif
