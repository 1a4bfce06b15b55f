/* SPDX-License-Identifier: Apache-2.0 */
/* In place of src/client/process/worker_process.c: a worker is a group of fibers that run the
 * worker's own main. */
#include <signal.h>
#include <string.h>

#include "client/core/fork.h"
#include "client/process/worker_process.h"
#include "core/process.h"

void *fake_worker_main(void *unused); /* the first thread of a worker: fake_device.c */

static int process_of(const bh__process *process) {
    return (int)process->program.pid - FIRST_PID;
}

bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error) {
    (void)path, (void)error;
    int process = sim_process_start(fake_worker_main, NULL, errors, socket);
    memset(out, 0, sizeof *out);
    out->program.pid = sim_process_pid(process);
    out->program.end_fd = bh__fd_keep(sim_process_fd(process));
    return BH_OK;
}

void bh__process_kill(const bh__process *process) {
    sim_process_kill(process_of(process), SIGKILL);
}

bool bh__process_gone(const bh__process *process, bh__process_end *out_end) {
    memset(out_end, 0, sizeof *out_end);
    out_end->known = sim_process_ended(process_of(process), &out_end->signal, &out_end->exit_code);
    return out_end->known;
}

void bh__process_close(bh__process *process) {
    bh__fd_close(process->program.end_fd);
    process->program.end_fd = -1;
}

int bh__process_self(void) {
    return sim_process_fd(0);
}
