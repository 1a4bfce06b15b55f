/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel costs that was compiled before: found on disk by a new process, found in memory,
 * and asked for by many threads at once. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bench.h"

enum { THREADS = 64 };

static const char source[] =
    "extern \"C\" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {\n"
    "    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    if (i < n) y[i] = a * x[i] + y[i];\n"
    "}\n";

static bh_compile_options options;

static bh_binary_info compile(const char *text, uint64_t *out_ns) {
    bh_binary binary;
    bh_binary_info info = BH_INIT(info);
    uint64_t begun = bench_now_ns();
    BENCH_NEED(bh_compile(text, &options, &binary));
    *out_ns = bench_now_ns() - begun;
    BENCH_NEED(bh_binary_get_info(binary, &info));
    BENCH_NEED(bh_binary_release(binary));
    return info;
}

/* In a process that has never compiled anything. */
static double first_in_process(uint32_t expected) {
    int ends[2];
    if (pipe(ends) != 0) bench_wrong("no pipe");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        uint64_t ns;
        bh_binary_info info = compile(source, &ns);
        if (info.cache != expected) _exit(2);
        _exit(write(ends[1], &ns, sizeof ns) == sizeof ns ? 0 : 3);
    }
    close(ends[1]);
    uint64_t ns = 0;
    int status = 0;
    bool got = read(ends[0], &ns, sizeof ns) == sizeof ns;
    close(ends[0]);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0 || !got)
        bench_wrong("the process that compiles ended with status 0x%x", status);
    return (double)ns;
}

static pthread_barrier_t barrier;

static void *ask(void *text) {
    bh_binary binary;
    pthread_barrier_wait(&barrier);
    BENCH_NEED(bh_compile(text, &options, &binary));
    BENCH_NEED(bh_binary_release(binary));
    return NULL;
}

static void measure_threads(void) {
    static char text[] = "__global__ void asked_for_by_many(int *p) { *p = 1; }\n";
    pthread_t threads[THREADS];
    bh_cache_info before = BH_INIT(before), after = BH_INIT(after);
    BENCH_NEED(bh_cache_get_info(NULL, &before));
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, ask, text) != 0) bench_wrong("no thread %d", i);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    BENCH_NEED(bh_cache_get_info(NULL, &after));
    bench_target("compile.64_threads.compiles", (double)(after.misses - before.misses), "", 1);
}

/* From the call to a kernel that can be launched, on the device. */
static void measure_device(size_t count) {
    bench_samples launchable = bench_samples_new(count);
    for (size_t i = 0; i < count; i++) {
        bh_device device;
        bh_device_options device_options = bench_options();
        bh_module module;
        bh_kernel kernel;
        device_options.flags |= BH_DEVICE_NO_STANDBY;
        BENCH_NEED(bh_device_open(&device_options, &device));
        uint64_t begun = bench_now_ns();
        BENCH_NEED(bh_module_compile(device, source, &options, &module));
        BENCH_NEED(bh_kernel_get(module, "saxpy", &kernel));
        bench_samples_add(&launchable, (double)(bench_now_ns() - begun));
        BENCH_NEED(bh_device_close(device));
    }
    bench_note("cached in memory: from bh_module_compile to a kernel that can be launched");
    bench_spread("compile.memory_to_launchable", &launchable, 1e3, "us");
    bench_samples_free(&launchable);
}

/* The same by CuPy, where it is installed; the script says why if not. */
static void compare_with_cupy(const char *program) {
    char command[4200];
    const char *slash = strrchr(program, '/');
    int length = slash ? (int)(slash - program) : 1;
    snprintf(command, sizeof command,
             "python3 \"%.*s/../../bench/compile_cupy.py\" 2>&1 || echo '# CuPy: python3 failed'",
             length, slash ? program : ".");
    fflush(stdout);
    if (system(command) != 0) bench_note("CuPy: no shell");
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "compile: a small kernel that was compiled before");
    size_t count = bench_count(50);
    char folder[] = "/tmp/bulkhead-bench-XXXXXX", command[80];
    if (!mkdtemp(folder)) bench_wrong("no folder for a cache");
    setenv("BULKHEAD_CACHE_DIR", folder, 1);
    options = (bh_compile_options)BH_INIT(options);

    bench_figure("compile.first", first_in_process(BH_CACHE_MISS) / 1e6, "ms");
    bench_samples disk = bench_samples_new(count), memory = bench_samples_new(count * 20);
    for (size_t i = 0; i < count; i++) bench_samples_add(&disk, first_in_process(BH_CACHE_DISK));
    bench_spread("compile.new_process", &disk, 1e6, "ms");
    bench_target("compile.new_process.target", bench_percentile(&disk, 50) / 1e6, "ms", 1.0);

    uint64_t ns;
    bh_binary_info info = compile(source, &ns);
    bench_note("by %s: %s", info.compiler, info.why);
    for (size_t i = 0; i < count * 20; i++) {
        if (compile(source, &ns).cache != BH_CACHE_MEMORY) bench_wrong("not found in memory");
        bench_samples_add(&memory, (double)ns);
    }
    bench_spread("compile.memory", &memory, 1e3, "us");
    bench_target("compile.memory.target", bench_percentile(&memory, 50) / 1e3, "us", 10.0);
    measure_threads();
    measure_device(count);
    compare_with_cupy(argv[0]);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command) == 0 ? 0 : 1;
}
