/* SPDX-License-Identifier: Apache-2.0 */
/* The whole of a small program: y = 2 * x + y on a device.
 * usage: saxpy [DEVICE], where DEVICE is auto, cpu, cuda or cuda:N */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A compiler makes this from saxpy.cu; kernels are loaded as PTX. */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry saxpy(\n"
                          "    .param .f32 a,\n"
                          "    .param .u64 .ptr .global .align 4 x,\n"
                          "    .param .u64 .ptr .global .align 4 y,\n"
                          "    .param .u32 n)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .f32 %a, %x, %y;\n"
                          "    .reg .b32 %i, %n, %block, %size;\n"
                          "    .reg .b64 %offset, %from, %to;\n"
                          "    mov.u32 %i, %tid.x;\n"
                          "    mov.u32 %block, %ctaid.x;\n"
                          "    mov.u32 %size, %ntid.x;\n"
                          "    mad.lo.u32 %i, %block, %size, %i;\n"
                          "    ld.param.u32 %n, [n];\n"
                          "    setp.ge.u32 %p, %i, %n;\n"
                          "    @%p ret;\n"
                          "    ld.param.f32 %a, [a];\n"
                          "    ld.param.u64 %from, [x];\n"
                          "    ld.param.u64 %to, [y];\n"
                          "    mul.wide.u32 %offset, %i, 4;\n"
                          "    add.u64 %from, %from, %offset;\n"
                          "    add.u64 %to, %to, %offset;\n"
                          "    ld.global.f32 %x, [%from];\n"
                          "    ld.global.f32 %y, [%to];\n"
                          "    fma.rn.f32 %y, %a, %x, %y;\n"
                          "    st.global.f32 [%to], %y;\n"
                          "    ret;\n"
                          "}\n";

/* Ends the program when a call failed, saying why and what to do. */
static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

enum { N = 10000 };

int main(int argc, char **argv) {
    static float hx[N], hy[N];
    const uint32_t n = N;
    for (int i = 0; i < N; i++) {
        hx[i] = (float)i;
        hy[i] = 1.0f;
    }

    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel saxpy;
    bh_buffer x, y;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "saxpy", &saxpy), "get the kernel");
    must(bh_buffer_alloc(gpu, BH_F32, n, NULL, &x), "allocate x");
    must(bh_buffer_alloc(gpu, BH_F32, n, NULL, &y), "allocate y");
    must(bh_buffer_write(x, 0, hx, sizeof hx), "write x");
    must(bh_buffer_write(y, 0, hy, sizeof hy), "write y");

    /* Arguments have exactly the types of the kernel's parameters: a float, pointers, 32 bits. */
    bh_ticket done;
    must(bh_launch(saxpy, BH_GRID(n, 256), BH_ARGS(2.0f, BH_IN(x), BH_INOUT(y), n), NULL, &done),
         "launch");
    must(bh_wait(done, BH_FOREVER), "run");

    must(bh_buffer_read(y, 0, hy, sizeof hy), "read y");
    must(bh_device_close(gpu), "close"); /* and all that belongs to it */

    int wrong = 0;
    for (int i = 0; i < N; i++) wrong += hy[i] != 2.0f * (float)i + 1.0f;
    printf("saxpy: y[%d] = %g, %d of %d elements wrong\n", N - 1, (double)hy[N - 1], wrong, N);
    return wrong != 0;
}
