/* SPDX-License-Identifier: Apache-2.0 */
/* A buffer mapped into the program's own CUDA context: how long that takes, and that what CUDA code
 * of the program does there is no slower than on memory of its own, and is there for kernels at
 * once. */
#include <bulkhead_cuda.h>
#include <dlfcn.h>
#include <stdio.h>

#include "support/bench.h"

enum { SMALL = 1 << 20, LARGE = 1 << 30, ROUNDS = 15 };

/* The driver, as a program that uses CUDA has it. */
typedef struct driver {
    int (*alloc)(uint64_t *out, size_t bytes);
    int (*fill)(uint64_t address, unsigned value, size_t count);
    int (*copy_out)(void *to, uint64_t from, size_t bytes);
    int (*synchronize)(void);
    int (*retain)(void **out, int device);
    int (*enter)(void *context);
} driver;

static void need(int result, const char *call) {
    if (result != 0) bench_wrong("%s returned %d", call, result);
}
#define NEED(call) need((call), #call)

static driver driver_open(int device) {
    static const char *const names[] = {
        "cuMemAlloc_v2",    "cuMemsetD32_v2",           "cuMemcpyDtoH_v2",
        "cuCtxSynchronize", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent"};
    driver self;
    void **slots[] = {(void **)&self.alloc,       (void **)&self.fill,   (void **)&self.copy_out,
                      (void **)&self.synchronize, (void **)&self.retain, (void **)&self.enter};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *context;
    if (!library) bench_wrong("libcuda.so.1 cannot be loaded");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *slots[i] = dlsym(library, names[i]);
        if (!*slots[i]) bench_wrong("the driver has no %s", names[i]);
    }
    NEED(self.retain(&context, device));
    NEED(self.enter(context));
    return self;
}

static bh_buffer shareable(bh_device device, uint64_t bytes) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_SHAREABLE;
    bh_buffer buffer;
    BENCH_NEED(bh_buffer_alloc(device, BH_U8, bytes, &options, &buffer));
    return buffer;
}

/* Microseconds, the median. */
static double map_time(bh_device device, uint64_t bytes) {
    bench_samples samples = bench_samples_new(ROUNDS);
    bh_buffer buffer = shareable(device, bytes);
    for (int i = 0; i < ROUNDS; i++) {
        bh_cuda_mapping mapping = BH_INIT(mapping);
        uint64_t before = bench_now_ns();
        BENCH_NEED(bh_cuda_map(buffer, &mapping));
        bench_samples_add(&samples, (double)(bench_now_ns() - before) / 1e3);
        BENCH_NEED(bh_cuda_unmap(&mapping));
    }
    BENCH_NEED(bh_buffer_release(buffer));
    double median = bench_percentile(&samples, 50);
    bench_samples_free(&samples);
    return median;
}

/* The device turns from the worker to this program first, which is not what is measured. */
static double fill_time(const driver *cuda, uint64_t address, unsigned value) {
    NEED(cuda->fill(address, value, 1));
    NEED(cuda->synchronize());
    uint64_t before = bench_now_ns();
    NEED(cuda->fill(address, value, LARGE / 4));
    NEED(cuda->synchronize());
    return (double)(bench_now_ns() - before) / 1e3;
}

/* What the program's CUDA code wrote, read through the device; and the other way round. */
static void check(const driver *cuda, bh_buffer buffer, uint64_t address, uint32_t expected) {
    uint32_t word = 0, other = expected + 1;
    BENCH_NEED(bh_buffer_read(buffer, LARGE - 4, &word, 4));
    if (word != expected) bench_wrong("the device sees 0x%x, not 0x%x", word, expected);
    BENCH_NEED(bh_buffer_write(buffer, LARGE - 4, &other, 4));
    NEED(cuda->copy_out(&word, address + LARGE - 4, 4));
    if (word != other) bench_wrong("the program sees 0x%x, not 0x%x", word, other);
}

static void compare(bh_device device) {
    uint64_t own;
    bh_buffer buffer = shareable(device, LARGE);
    bh_cuda_mapping mapping = BH_INIT(mapping);
    BENCH_NEED(bh_cuda_map(buffer, &mapping));
    driver cuda = driver_open(mapping.device); /* its context stays, as in any program with CUDA */
    bench_figure("interop.map_1MiB", map_time(device, SMALL), "us");
    bench_figure("interop.map_1GiB", map_time(device, LARGE), "us");
    NEED(cuda.alloc(&own, LARGE));
    bh_lane_counters before = BH_INIT(before), after = BH_INIT(after);
    bench_samples mapped = bench_samples_new(ROUNDS), plain = bench_samples_new(ROUNDS);
    BENCH_NEED(bh_lane_get_counters(device, BH_ALL_LANES, &before));
    for (unsigned i = 0; i <= ROUNDS; i++) {
        double there = fill_time(&cuda, mapping.address, i), here = fill_time(&cuda, own, i);
        if (i == 0) continue; /* the first of each warms up */
        bench_samples_add(&mapped, there);
        bench_samples_add(&plain, here);
        check(&cuda, buffer, mapping.address, i);
    }
    BENCH_NEED(bh_lane_get_counters(device, BH_ALL_LANES, &after));
    bench_figure("interop.moved", (double)(after.bytes_to_device - before.bytes_to_device) / ROUNDS,
                 "bytes a round");
    bench_figure("interop.fill_1GiB.mapped", bench_percentile(&mapped, 50), "us");
    bench_figure("interop.fill_1GiB.own", bench_percentile(&plain, 50), "us");
    bench_target("interop.fill_1GiB.ratio",
                 bench_percentile(&mapped, 50) / bench_percentile(&plain, 50), "ratio", 1.05);
    bench_samples_free(&mapped);
    bench_samples_free(&plain);
    BENCH_NEED(bh_cuda_unmap(&mapping));
    BENCH_NEED(bh_buffer_release(buffer));
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "interop: a buffer in the program's own CUDA context");
    bh_device device;
    bh_device_options options = bench_options();
    BENCH_NEED(bh_device_open(&options, &device));
    if (bench_device_is_cpu(device)) {
        printf("skipped: interop: the CPU device has no memory that CUDA can map\n");
    } else {
        compare(device);
    }
    BENCH_NEED(bh_device_close(device));
    return 0;
}
