/* SPDX-License-Identifier: Apache-2.0 */
/* Native code for kernels of the CPU device: how soon it is there, in a process that is the first
 * to want it and in the next one, and what launches of very little work cost with it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bench.h"

enum { BLOCKS = 1000000, ROUNDS = 7 };

/* One thread of all stores: its number is `chosen`. */
static const char source[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                             ".visible .entry touch(.param .u64 out, .param .u32 chosen) {\n"
                             ".reg .b32 %r<5>; .reg .b64 %rd<2>; .reg .pred %p;\n"
                             "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                             "mad.lo.u32 %r0, %r0, %r1, %r2; ld.param.u32 %r3, [chosen];\n"
                             "setp.ne.u32 %p, %r0, %r3; @%p bra DONE;\n"
                             "ld.param.u64 %rd0, [out]; add.u32 %r4, %r3, 1;\n"
                             "st.global.u32 [%rd0], %r4;\nDONE: ret;\n}\n";

typedef struct rig {
    bh_device device;
    bh_kernel touch;
    bh_buffer word;
} rig;

static rig open_rig(void) {
    rig r;
    bh_module module;
    bh_device_options options = bench_options();
    options.executor = BH_EXECUTE_AUTO;
    BENCH_NEED(bh_device_open(&options, &r.device));
    BENCH_NEED(bh_module_load(r.device, source, sizeof source - 1, &module));
    BENCH_NEED(bh_kernel_get(module, "touch", &r.touch));
    r.word = bench_buffer(r.device, BH_U32, 1);
    return r;
}

static void launch(const rig *r, uint32_t blocks, uint32_t threads, uint32_t chosen) {
    bh_ticket ticket;
    BENCH_NEED(bh_launch(r->touch, BH_SHAPE(blocks, 1, 1, threads, 1, 1),
                         BH_ARGS(BH_INOUT(r->word), chosen), NULL, &ticket));
    BENCH_NEED(bh_wait(ticket, 60 * BENCH_S));
}

static void check(const rig *r, uint32_t chosen) {
    uint32_t value;
    BENCH_NEED(bh_buffer_read(r->word, 0, &value, sizeof value));
    if (value != chosen + 1) bench_wrong("the kernel left %u", value);
}

static bool is_native(const rig *r) {
    bh_kernel_info info = BH_INIT(info);
    BENCH_NEED(bh_kernel_get_info(r->touch, &info));
    if (strstr(info.executor_note, "LLVM")) bench_wrong("%s", info.executor_note);
    return info.executor == BH_EXECUTOR_JIT;
}

typedef struct times {
    double first, native; /* milliseconds from the first launch on */
} times;

static times measure_start(void) {
    rig r = open_rig();
    times t;
    uint64_t began = bench_now_ns();
    launch(&r, 64, 32, 100);
    t.first = (double)(bench_now_ns() - began) / 1e6;
    while (!is_native(&r)) {
        if (bench_now_ns() - began > 20 * BENCH_S) bench_wrong("no native code after 20 s");
    }
    t.native = (double)(bench_now_ns() - began) / 1e6;
    launch(&r, 64, 32, 7);
    check(&r, 7);
    BENCH_NEED(bh_device_close(r.device));
    return t;
}

/* In a process of its own: what one process has compiled, it keeps in memory. */
static times measure_apart(void) {
    int ends[2];
    times t;
    if (pipe(ends) != 0) bench_wrong("no pipe");
    pid_t child = fork();
    if (child < 0) bench_wrong("no process");
    if (child == 0) {
        t = measure_start();
        _exit(write(ends[1], &t, sizeof t) != sizeof t);
    }
    int status;
    close(ends[1]);
    if (read(ends[0], &t, sizeof t) != sizeof t) bench_wrong("the process measured nothing");
    close(ends[0]);
    waitpid(child, &status, 0);
    return t;
}

static void measure_launches(void) {
    rig r = open_rig();
    launch(&r, 64, 32, 1);
    while (!is_native(&r)) continue;
    bench_samples empty = bench_samples_new(20000), many = bench_samples_new(ROUNDS);
    for (int i = 0; i < 20000; i++) {
        uint64_t began = bench_now_ns();
        launch(&r, 1, 1, 1);
        bench_samples_add(&empty, (double)(bench_now_ns() - began));
    }
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t began = bench_now_ns();
        launch(&r, BLOCKS, 32, i * 1000003);
        bench_samples_add(&many, (double)(bench_now_ns() - began) * (double)processors / BLOCKS);
        check(&r, i * 1000003);
    }
    bench_target("native.empty_launch.p50", bench_percentile(&empty, 50) / 1e3, "us", 4);
    bench_target("native.block_and_core", bench_percentile(&many, 50), "ns", 25);
    bench_samples_free(&empty);
    bench_samples_free(&many);
    BENCH_NEED(bh_device_close(r.device));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "native: how soon native code is there, and launches of little work");
    if (!bench_on_cpu()) {
        bench_note("native code is of the CPU device");
        return 0;
    }
    bench_samples first = bench_samples_new(ROUNDS), made = bench_samples_new(ROUNDS),
                  found = bench_samples_new(ROUNDS);
    char folder[] = "/tmp/bench-native-XXXXXX", command[64];
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(strrchr(folder, '-') + 1, "XXXXXX", 6);
        if (!mkdtemp(folder)) bench_wrong("no folder for a cache");
        setenv("BULKHEAD_CACHE_DIR", folder, 1);
        times cold = measure_apart(), warm = measure_apart();
        bench_samples_add(&first, cold.first);
        bench_samples_add(&made, cold.native);
        bench_samples_add(&found, warm.native);
        if (i == ROUNDS - 1) measure_launches();
        snprintf(command, sizeof command, "rm -r %s", folder);
        if (system(command) != 0) bench_wrong("%s failed", command);
    }
    bench_target("native.first_result", bench_percentile(&first, 50), "ms", 10);
    bench_target("native.compiled", bench_percentile(&made, 50), "ms", 80);
    bench_target("native.from_cache", bench_percentile(&found, 50), "ms", 3);
    return 0;
}
