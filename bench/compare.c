/* SPDX-License-Identifier: Apache-2.0 */
/* Bulkhead beside the plain driver API: the same loops and kernels on both, in turns. The driver is
 * measured in a process of its own; this one never loads it. */
#include <stdio.h>
#include <string.h>

#include "support/bench.h"
#include "support/peer.h"
#include "support/rounds.h"

#define PATIENCE_NS (60 * BENCH_S)

typedef struct bulkhead {
    bh_device device;
    bench_kernels kernels;
    bh_buffer outputs[BENCH_OUTPUTS];
    bh_buffer copies;
    bh_ticket last;
} bulkhead;

/* ---- what each measurement means with the library ---- */

static void put(void *context, uint32_t output, uint32_t index, uint32_t value, uint32_t salt) {
    bulkhead *self = context;
    bh_status status =
        bh_launch(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                  BH_ARGS(BH_INOUT(self->outputs[output]), index, value, salt), NULL, &self->last);
    if (status != BH_OK) bench_need(status, "bh_launch");
}

static void finish(void *context) {
    bulkhead *self = context;
    bh_status status = bh_wait(self->last, PATIENCE_NS);
    if (status != BH_OK) bench_need(status, "bh_wait");
}

static void read_output(void *context, uint32_t output, uint32_t *words, uint32_t count) {
    bulkhead *self = context;
    BENCH_NEED(bh_buffer_read(self->outputs[output], 0, words, count * sizeof *words));
}

static void copy_in(void *context, int memory, const void *source) {
    bulkhead *self = context;
    (void)memory;
    BENCH_NEED(bh_buffer_write(self->copies, 0, source, BENCH_COPY_BYTES));
}

static void copy_out(void *context, int memory, void *target) {
    bulkhead *self = context;
    (void)memory;
    BENCH_NEED(bh_buffer_read(self->copies, 0, target, BENCH_COPY_BYTES));
}

static void *host_alloc(void *context, size_t bytes) {
    bulkhead *self = context;
    void *host = NULL;
    BENCH_NEED(bh_host_alloc(self->device, bytes, &host));
    return host;
}

static void alloc_free(void *context) {
    bulkhead *self = context;
    bh_buffer buffer;
    bh_status status = bh_buffer_alloc(self->device, BH_U8, BENCH_ALLOC_BYTES, NULL, &buffer);
    if (status == BH_OK) status = bh_buffer_release(buffer);
    if (status != BH_OK) bench_need(status, "bh_buffer_alloc, bh_buffer_release");
}

static uint32_t alloc_use(void *context, uint32_t value) {
    bulkhead *self = context;
    uint32_t left = 0, last = BENCH_ALLOC_BYTES / sizeof left - 1;
    bh_buffer buffer = bench_buffer(self->device, BH_U32, last + 1);
    BENCH_NEED(bh_launch(self->kernels.put, BH_SHAPE(1, 1, 1, 1, 1, 1),
                         BH_ARGS(BH_INOUT(buffer), last, value, 0u), NULL, NULL));
    BENCH_NEED(bh_buffer_read(buffer, last * sizeof left, &left, sizeof left));
    BENCH_NEED(bh_buffer_release(buffer));
    return left;
}

static bench_side side_of(bulkhead *self) {
    self->kernels = bench_kernels_load(self->device);
    for (int i = 0; i < BENCH_OUTPUTS; i++)
        self->outputs[i] = bench_buffer(self->device, BH_U32, BENCH_OUTPUT_WORDS);
    self->copies = bench_buffer(self->device, BH_U8, BENCH_COPY_BYTES);
    return (bench_side){.self = self,
                        .put = put,
                        .finish = finish,
                        .read_output = read_output,
                        .copy_in = copy_in,
                        .copy_out = copy_out,
                        .host_alloc = host_alloc,
                        .alloc_free = alloc_free,
                        .alloc_use = alloc_use};
}

/* ---- side by side ---- */

typedef struct goal {
    const char *name, *what;
    double at_most, at_least; /* Bulkhead's figure divided by the driver's; 0: no such bound */
} goal;

static const goal goals[] = {
    {"submit", "a launch with four arguments, enqueued | cuLaunchKernel", 0.05, 0},
    {"roundtrip", "a launch until known-done | cuLaunchKernel + cuStreamSynchronize", 1.05, 0},
    {"launches", "100,000 launches from one thread, through to done | the same", 0, 2.5},
    {"host_in", "256 MiB from bh_host_alloc memory | from cuMemHostAlloc memory", 0, 0.95},
    {"host_out", "256 MiB to bh_host_alloc memory | to cuMemHostAlloc memory", 0, 0.95},
    {"plain_in", "256 MiB from malloc memory | the same, cuMemcpyHtoD", 0, 1.5},
    {"plain_out", "256 MiB to malloc memory | the same, cuMemcpyDtoH", 0, 1.5},
    {"alloc_free", "1 MiB allocated and freed | cuMemAllocAsync + cuMemFreeAsync, pool warm", 0.3,
     0},
};
enum { GOALS = sizeof goals / sizeof *goals };

static const bench_round *round_named(const char *name) {
    for (size_t i = 0; i < bench_round_count; i++) {
        if (strcmp(bench_rounds[i].name, name) == 0) return &bench_rounds[i];
    }
    bench_wrong("there is no measurement named %s", name);
}

static void compare(const goal *wanted, bench_side *side, bench_peer *driver, size_t rounds) {
    const bench_round *round = round_named(wanted->name);
    bench_samples ours = bench_samples_new(rounds), theirs = bench_samples_new(rounds),
                  ratios = bench_samples_new(rounds);
    for (size_t i = 0; i <= rounds; i++) {
        double our = round->run(side), their = bench_peer_measure(driver, wanted->name);
        if (i == 0) continue; /* first touches */
        bench_samples_add(&ours, our);
        bench_samples_add(&theirs, their);
        bench_samples_add(&ratios, our / their);
    }
    double our = bench_percentile(&ours, 50), their = bench_percentile(&theirs, 50);
    char name[64];
    bench_note("%s: %s; ratios of single rounds %.3g to %.3g", wanted->name, wanted->what,
               bench_percentile(&ratios, 0), bench_percentile(&ratios, 100));
    snprintf(name, sizeof name, "compare.%s.bulkhead", wanted->name);
    bench_figure(name, our, round->unit);
    snprintf(name, sizeof name, "compare.%s.driver", wanted->name);
    bench_figure(name, their, round->unit);
    snprintf(name, sizeof name, "compare.%s.ratio", wanted->name);
    if (wanted->at_most > 0)
        bench_target(name, our / their, "ratio", wanted->at_most);
    else
        bench_target_least(name, our / their, "ratio", wanted->at_least);
    bench_samples_free(&ours);
    bench_samples_free(&theirs);
    bench_samples_free(&ratios);
}

/* What only the driver has: nothing of ours stands beside it. */
static void show_driver(const char *name, const char *what, bench_peer *driver, size_t rounds) {
    bench_samples samples = bench_samples_new(rounds);
    for (size_t i = 0; i <= rounds; i++) {
        double value = bench_peer_measure(driver, name);
        if (i > 0) bench_samples_add(&samples, value);
    }
    char text[64];
    bench_note("%s: %s", name, what);
    snprintf(text, sizeof text, "compare.%s.driver", name);
    bench_figure(text, bench_percentile(&samples, 50), "us");
    bench_samples_free(&samples);
}

int main(int argc, char **argv) {
    bench_begin(argc, argv, "compare: Bulkhead | the plain driver API, in turns; medians");
    size_t rounds = bench_count(7);
    bulkhead self = {0};
    bh_device_options options = bench_options();
    options.wait_spin_ns = options.worker_spin_ns = BENCH_S; /* cuStreamSynchronize is awake too */
    BENCH_NEED(bh_device_open(&options, &self.device));
    if (bench_device_is_cpu(self.device)) {
        bench_note("on the CPU device there is nothing to be compared with");
        BENCH_NEED(bh_device_close(self.device));
        return 0;
    }
    bench_peer driver;
    if (!bench_peer_start(&driver, "driver-baseline", bench_device_name())) {
        bench_peer_end(&driver);
        BENCH_NEED(bh_device_close(self.device));
        return 0;
    }
    bench_side side = side_of(&self);
    bh_device_wait_standby(self.device, 10 * BENCH_S); /* its boot is not to disturb what follows */
    for (int i = 0; i < GOALS; i++) compare(&goals[i], &side, &driver, rounds);
    show_driver("graph_replay", "each of 200 kernels in a row in a graph, replayed as it is",
                &driver, rounds);
    show_driver("graph_replay_set",
                "with cuGraphExecKernelNodeSetParams on each before each replay", &driver, rounds);
    bench_peer_end(&driver);
    bench_side_end(&side);
    BENCH_NEED(bh_device_close(self.device));
    return 0;
}
