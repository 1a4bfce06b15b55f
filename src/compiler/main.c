/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-compiler: CUDA C++ to PTX, cubin or LTO-IR, one job at a time. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/compile.h"

enum { EXIT_USAGE = 2 };

static void print_help(void) {
    printf("bulkhead-compiler: compiles CUDA C++ with NVRTC or clang, and links\n\n"
           "libbulkhead starts this program, with a job at descriptor %d and room for the\n"
           "answer at descriptor %d. It is of no use when started by hand: see\n"
           "bulkhead compile.\n\n"
           "  --version    print the version\n"
           "  --help       print this\n",
           BH__COMPILE_JOB_FD, BH__COMPILE_ANSWER_FD);
}

static bool is_file(int fd) {
    struct stat info;
    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--version") == 0) {
        printf("bulkhead-compiler %d.%d.%d\n", BH_VERSION_MAJOR, BH_VERSION_MINOR,
               BH_VERSION_PATCH);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        print_help();
        return 0;
    }
    if (argc > 1) {
        fprintf(stderr, "bulkhead-compiler: unknown argument \"%s\"; see --help\n", argv[1]);
        return EXIT_USAGE;
    }
    if (!is_file(BH__COMPILE_JOB_FD) || !is_file(BH__COMPILE_ANSWER_FD)) {
        fprintf(stderr,
                "bulkhead-compiler: started by libbulkhead, not by hand: descriptors %d and %d are "
                "not its job and answer\n",
                BH__COMPILE_JOB_FD, BH__COMPILE_ANSWER_FD);
        return EXIT_USAGE;
    }
    signal(SIGXFSZ,
           SIG_IGN); /* a file beyond the limit is an error, not a signal, here and in compilers */
    return bh__job_run(BH__COMPILE_JOB_FD, BH__COMPILE_ANSWER_FD);
}
