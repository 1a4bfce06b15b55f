/* SPDX-License-Identifier: Apache-2.0 */
/* Two lanes side by side, and a kernel on one that needs what the other made.
 * usage: two_lanes [DEVICE] */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* churn: out[i] = a random number generator after `rounds` steps from seed + i, on one block.
 * blend: out[i] = a[i] xor b[i]. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry churn(\n"
    "    .param .u64 .ptr .global .align 4 out, .param .u32 seed, .param .u32 rounds)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %i, %x, %rounds;\n"
    "    .reg .b64 %to, %offset;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    ld.param.u32 %x, [seed];\n"
    "    add.u32 %x, %x, %i;\n"
    "    ld.param.u32 %rounds, [rounds];\n"
    "AGAIN:\n"
    "    mad.lo.u32 %x, %x, 1664525, 1013904223;\n"
    "    sub.u32 %rounds, %rounds, 1;\n"
    "    setp.ne.u32 %p, %rounds, 0;\n"
    "    @%p bra AGAIN;\n"
    "    ld.param.u64 %to, [out];\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    add.u64 %to, %to, %offset;\n"
    "    st.global.u32 [%to], %x;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry blend(\n"
    "    .param .u64 .ptr .global .align 4 a, .param .u64 .ptr .global .align 4 b,\n"
    "    .param .u64 .ptr .global .align 4 out)\n"
    "{\n"
    "    .reg .b32 %i, %x, %y;\n"
    "    .reg .b64 %from, %to, %offset;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    ld.param.u64 %from, [a];\n"
    "    add.u64 %from, %from, %offset;\n"
    "    ld.global.u32 %x, [%from];\n"
    "    ld.param.u64 %from, [b];\n"
    "    add.u64 %from, %from, %offset;\n"
    "    ld.global.u32 %y, [%from];\n"
    "    xor.b32 %x, %x, %y;\n"
    "    ld.param.u64 %to, [out];\n"
    "    add.u64 %to, %to, %offset;\n"
    "    st.global.u32 [%to], %x;\n"
    "    ret;\n"
    "}\n";

enum { N = 64, ROUNDS = 400000 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static uint32_t churned(uint32_t x) {
    for (int i = 0; i < ROUNDS; i++) x = x * 1664525u + 1013904223u;
    return x;
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    const uint32_t rounds = ROUNDS, seed_a = 1, seed_b = 1000;
    const bh_shape shape = BH_GRID(N, N);
    bh_device gpu;
    bh_launch_options left = BH_INIT(left), right = BH_INIT(right);
    bh_module mod;
    bh_kernel churn, blend;
    bh_buffer a, b, out;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_lane_open(gpu, NULL, &left.lane), "open a lane");
    must(bh_lane_open(gpu, NULL, &right.lane), "open a lane");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "churn", &churn), "get churn");
    must(bh_kernel_get(mod, "blend", &blend), "get blend");
    must(bh_buffer_alloc(gpu, BH_U32, N, NULL, &a), "allocate");
    must(bh_buffer_alloc(gpu, BH_U32, N, NULL, &b), "allocate");
    must(bh_buffer_alloc(gpu, BH_U32, N, NULL, &out), "allocate");

    /* One lane runs its work in order. */
    double start = now_ms();
    must(bh_launch(churn, shape, BH_ARGS(BH_OUT(a), seed_b, rounds), &left, NULL), "launch");
    must(bh_launch(churn, shape, BH_ARGS(BH_OUT(b), seed_a, rounds), &left, NULL), "launch");
    must(bh_lane_sync(left.lane, BH_FOREVER), "wait");
    double one_lane = now_ms() - start;

    /* Two lanes run side by side. blend reads what both wrote: it runs after both, without a wait
     * in between, because the library knows who writes a and b. */
    start = now_ms();
    bh_ticket two[2], done;
    must(bh_launch(churn, shape, BH_ARGS(BH_OUT(a), seed_a, rounds), &left, &two[0]), "launch");
    must(bh_launch(churn, shape, BH_ARGS(BH_OUT(b), seed_b, rounds), &right, &two[1]), "launch");
    must(bh_launch(blend, shape, BH_ARGS(BH_IN(a), BH_IN(b), BH_OUT(out)), &right, &done),
         "launch");
    must(bh_wait_all(two, 2, BH_FOREVER), "run churn");
    double two_lanes = now_ms() - start;
    must(bh_wait(done, BH_FOREVER), "run blend");

    uint32_t host[N];
    must(bh_buffer_read(out, 0, host, sizeof host), "read");
    must(bh_device_close(gpu), "close"); /* lanes, buffers and modules go with it */
    int wrong = 0;
    for (uint32_t i = 0; i < N; i++)
        wrong += host[i] != (churned(seed_a + i) ^ churned(seed_b + i));
    printf("two kernels on one lane: %.1f ms; on two lanes: %.1f ms\n", one_lane, two_lanes);
    printf("blend of both: %d of %d elements wrong\n", wrong, N);
    return wrong != 0;
}
