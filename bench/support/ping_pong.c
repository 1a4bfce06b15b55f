/* SPDX-License-Identifier: Apache-2.0 */
/* What the machine itself needs for a word to travel to another process and back. */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

typedef struct table {
    _Alignas(64) _Atomic uint64_t ball;
    _Alignas(64) _Atomic uint64_t answer;
} table;

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

_Noreturn static void answer_for_ever(table *shared) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t next = 1;; next++) {
        while (atomic_load_explicit(&shared->ball, memory_order_acquire) != next) relax();
        atomic_store_explicit(&shared->answer, next, memory_order_release);
    }
}

double bench_ping_pong_ns(size_t rounds) {
    table *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) bench_wrong("no shared memory");
    pid_t child = fork();
    if (child < 0) bench_wrong("no process for the other end");
    if (child == 0) answer_for_ever(shared);
    bench_samples samples = bench_samples_new(rounds);
    for (uint64_t round = 1; round <= rounds; round++) {
        uint64_t before = bench_now_ns();
        atomic_store_explicit(&shared->ball, round, memory_order_release);
        while (atomic_load_explicit(&shared->answer, memory_order_acquire) != round) relax();
        bench_samples_add(&samples, (double)(bench_now_ns() - before));
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    munmap(shared, sizeof *shared);
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}
