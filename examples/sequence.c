/* SPDX-License-Identifier: Apache-2.0 */
/* Work recorded once and replayed: with other buffers, with other values, many times over, and
 * after its worker was killed. Then the same kernel on arrays of the host, in one call. usage:
 * sequence [DEVICE] */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <bulkhead.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* scale_add: y[i] = a * x[i] + y[i], on one block. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry scale_add(\n"
    "    .param .f32 a, .param .u64 .ptr .global .align 4 x, .param .u64 .ptr .global .align 4 y)\n"
    "{\n"
    "    .reg .b32 %i;\n"
    "    .reg .f32 %a, %x, %y;\n"
    "    .reg .b64 %from, %to, %offset;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    ld.param.f32 %a, [a];\n"
    "    ld.param.u64 %from, [x];\n"
    "    add.u64 %from, %from, %offset;\n"
    "    ld.global.f32 %x, [%from];\n"
    "    ld.param.u64 %to, [y];\n"
    "    add.u64 %to, %to, %offset;\n"
    "    ld.global.f32 %y, [%to];\n"
    "    fma.rn.f32 %y, %a, %x, %y;\n"
    "    st.global.f32 [%to], %y;\n"
    "    ret;\n"
    "}\n";

enum { N = 256, STEPS = 10 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "cannot %s: %s\nFix: %s\n", what, why.message, why.fix);
    exit(1);
}

static bh_buffer filled(bh_device gpu, float value) {
    bh_buffer buffer;
    must(bh_buffer_alloc(gpu, BH_F32, N, NULL, &buffer), "allocate");
    must(bh_buffer_fill(buffer, 0, N * sizeof value, &value, sizeof value), "fill");
    return buffer;
}

/* How many elements are not `value`. */
static int wrong(bh_buffer buffer, float value) {
    float host[N];
    int count = 0;
    must(bh_buffer_read(buffer, 0, host, sizeof host), "read");
    for (int i = 0; i < N; i++) count += host[i] != value;
    return count;
}

static void replay(bh_sequence sequence, uint32_t repeat) {
    bh_submit_options options = BH_INIT(options);
    options.repeat = repeat;
    must(bh_sequence_submit(sequence, &options, NULL), "submit");
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel scale_add;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "scale_add", &scale_add), "get scale_add");
    bh_buffer x = filled(gpu, 1), y = filled(gpu, 0), other = filled(gpu, 0);

    /* Ten launches, recorded. Nothing runs yet. */
    bh_sequence sequence;
    uint32_t first = 0;
    must(bh_sequence_begin(gpu, NULL, &sequence), "begin a sequence");
    for (uint32_t i = 0; i < STEPS; i++)
        must(bh_sequence_launch(sequence, scale_add, BH_GRID(N, N),
                                BH_ARGS(1.0f, BH_IN(x), BH_INOUT(y)), NULL, i ? NULL : &first),
             "record");
    must(bh_sequence_finish(sequence), "finish");

    /* Five times over; then with another buffer and value, while the first may still be queued. */
    replay(sequence, 5);
    must(bh_sequence_bind(sequence, y, other), "bind");
    must(bh_sequence_set(sequence, first, 0, BH_ARG(100.0f)), "set");
    replay(sequence, 1);
    int bad = wrong(y, 5 * STEPS) + wrong(other, 100 + STEPS - 1);
    printf("replayed: %d of %d elements wrong\n", bad, 2 * N);

    /* The worker is killed. Its standby has the sequence too. */
    bh_health health = BH_INIT(health);
    (void)bh_device_wait_standby(gpu, BH_FOREVER); /* where there is none, one is started cold */
    must(bh_device_get_health(gpu, &health), "ask");
    uint64_t generation = health.generation;
    if (kill((pid_t)health.worker_pid, SIGKILL) != 0) perror("kill");
    while (health.generation == generation) must(bh_device_get_health(gpu, &health), "ask");
    replay(sequence, 1);
    int after = wrong(other, 2 * (100 + STEPS - 1));
    printf("replayed by worker %llu: %d of %d elements wrong\n",
           (unsigned long long)health.generation, after, N);
    must(bh_sequence_release(sequence), "release");

    /* Arrays in, kernel, arrays out. */
    float a = 2, in[N], out[N];
    int dispatched = 0;
    for (int i = 0; i < N; i++) in[i] = (float)i, out[i] = 1;
    must(bh_dispatch(scale_add, BH_GRID(N, N),
                     BH_ARGS(a, BH_HOST_IN(in, sizeof in), BH_HOST_INOUT(out, sizeof out)), NULL),
         "dispatch");
    for (int i = 0; i < N; i++) dispatched += out[i] != (float)(2 * i + 1);
    printf("dispatched: %d of %d elements wrong\n", dispatched, N);
    must(bh_device_close(gpu), "close");
    return bad || after || dispatched;
}
