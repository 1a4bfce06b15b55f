/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, kills and watches a worker's process. */
#include "client/process/worker_process.h"

#include <errno.h>
#include <string.h>

enum { WORKER_ERRORS = 2, WORKER_SOCKET = 3 };

bh_status bh__process_start(const char *path, int socket, int errors, bh__process *out,
                            bh_error *error) {
    char text[128];
    const bh__given_fd given[] = {{errors, WORKER_ERRORS}, {socket, WORKER_SOCKET}};
    memset(out, 0, sizeof *out);
    int number;
    bh__spawn_step failed = bh__spawn(path, given, 2, NULL, &out->program, &number);
    if (failed == BH__SPAWN_START) {
        return bh__fail(
            error, BH_E_NO_DEVICE,
            number == EACCES
                ? "make the worker program executable (chmod +x), on a file system without noexec"
                : bh__errno_fix(number,
                                "reinstall Bulkhead, or name the worker programs' folder in "
                                "worker_dir"),
            "cannot start %s: %s", path, bh__errno_text(number, text, sizeof text));
    }
    if (failed == BH__SPAWN_WATCH) {
        return bh__fail(error, BH_E_NO_DEVICE, bh__errno_fix(number, "free memory"),
                        "cannot watch worker process %d: %s", (int)out->program.pid,
                        bh__errno_text(number, text, sizeof text));
    }
    return BH_OK;
}

void bh__process_kill(const bh__process *process) {
    bh__spawned_kill(&process->program);
}

bool bh__process_gone(const bh__process *process, bh__process_end *out_end) {
    return bh__spawned_gone(&process->program, out_end);
}

void bh__process_close(bh__process *process) {
    bh__spawned_close(&process->program);
}

int bh__process_self(void) {
    return bh__spawn_self();
}
