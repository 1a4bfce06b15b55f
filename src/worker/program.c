/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of worker programs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "worker/state.h"

static void print_help(const bh__device_ops *ops) {
    printf("%s: %s\n\n"
           "libbulkhead starts this program, with a socket at descriptor %d.\n"
           "It is of no use when started by hand.\n\n"
           "  --version    print the version\n"
           "  --help       print this\n",
           ops->program, ops->about, BH__WORKER_SOCKET);
}

static bool is_supervised(void) {
    int type = 0;
    socklen_t size = sizeof type;
    return getsockopt(BH__WORKER_SOCKET, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
           type == SOCK_SEQPACKET;
}

/* Returns the exit code if the program is to end, -1 if it is to serve. */
static int handle_arguments(int argc, char **argv, const bh__device_ops *ops) {
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("%s %d.%d.%d\n", ops->program, BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
        return BH__EXIT_DONE;
    }
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        print_help(ops);
        return BH__EXIT_DONE;
    }
    if (argc > 1) {
        fprintf(stderr, "%s: unknown argument \"%s\"; see --help\n", ops->program, argv[1]);
        return BH__EXIT_USAGE;
    }
    if (!is_supervised()) {
        fprintf(stderr,
                "%s: started by libbulkhead, not by hand: descriptor %d is not its socket\n",
                ops->program, BH__WORKER_SOCKET);
        return BH__EXIT_USAGE;
    }
    return -1;
}

/* A profiler writes its last records when devices are closed and programs exit. If that hangs, the
 * application may be gone and nobody else would end this process: an alarm does. */
_Noreturn static void finish(bh__worker_instance *worker) {
    signal(SIGALRM, SIG_DFL);
    alarm(BH__FINISH_SECONDS);
    int code = atomic_load(&worker->exit_code);
    bh__worker_tear_down(worker);
    exit(code);
}

void bh__worker_main(int argc, char **argv, const bh__device_ops *ops) {
    int code = handle_arguments(argc, argv, ops);
    if (code >= 0) {
        fflush(stdout);
        _exit(code);
    }
    signal(SIGXFSZ,
           SIG_IGN); /* a file of the driver that exceeds a limit must not end the worker */
    bh__worker_instance *worker = bh__worker_create(BH__WORKER_SOCKET, ops);
    if (!worker) {
        fprintf(stderr, "%s: cannot start: %s\n", ops->program, strerror(errno));
        _exit(BH__EXIT_FAILED);
    }
    worker->is_process = true;
    /* Like bh__worker_run, without the teardown: the kernel does it faster. */
    if (bh__worker_boot(worker)) bh__worker_serve_messages(worker);
    if (bh__nvtx_listens) finish(worker);
    _exit(atomic_load(&worker->exit_code));
}
