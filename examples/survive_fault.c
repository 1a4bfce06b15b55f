/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel writes where it must not. The program learns which one and why, and goes on.
 * usage: survive_fault [DEVICE] */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* fill: out[i] = value. stray: the same, but thread 100 stores to address 16. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry fill(.param .u64 .ptr .global .align 4 out, .param .u32 value)\n"
    "{\n"
    "    .reg .b32 %i, %value;\n"
    "    .reg .b64 %to, %offset;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    ld.param.u64 %to, [out];\n"
    "    ld.param.u32 %value, [value];\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    add.u64 %to, %to, %offset;\n"
    "    st.global.u32 [%to], %value;\n"
    "    ret;\n"
    "}\n"
    ".visible .entry stray(.param .u64 .ptr .global .align 4 out, .param .u32 value)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %i, %value;\n"
    "    .reg .b64 %to, %offset;\n"
    "    mov.u32 %i, %tid.x;\n"
    "    ld.param.u64 %to, [out];\n"
    "    ld.param.u32 %value, [value];\n"
    "    mul.wide.u32 %offset, %i, 4;\n"
    "    add.u64 %to, %to, %offset;\n"
    "    setp.eq.u32 %p, %i, 100;\n"
    "    @%p mov.u64 %to, 16;\n"
    "    st.global.u32 [%to], %value;\n"
    "    ret;\n"
    "}\n";

enum { N = 256 };

static int failures;

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

static void expect(int holds, const char *what) {
    printf("%s %s\n", holds ? "ok    " : "FAILED", what);
    failures += !holds;
}

/* Whether all of the buffer reads as `value`. */
static int holds_only(bh_buffer buffer, uint32_t value) {
    uint32_t host[N];
    if (bh_buffer_read(buffer, 0, host, sizeof host) != BH_OK) return 0;
    for (int i = 0; i < N; i++) {
        if (host[i] != value) return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel fill, stray;
    bh_buffer kept, touched;
    bh_ticket done;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "fill", &fill), "get fill");
    must(bh_kernel_get(mod, "stray", &stray), "get stray");
    must(bh_buffer_alloc(gpu, BH_U32, N, NULL, &kept), "allocate");
    must(bh_buffer_alloc(gpu, BH_U32, N, NULL, &touched), "allocate");
    must(bh_launch(fill, BH_GRID(N, N), BH_ARGS(BH_OUT(kept), (uint32_t)7), NULL, &done),
         "launch fill");
    must(bh_wait(done, BH_FOREVER), "run fill");

    /* The fault comes with the ticket: the launch itself went well. */
    must(bh_launch(stray, BH_GRID(N, N), BH_ARGS(BH_OUT(touched), (uint32_t)9), NULL, &done),
         "launch");
    bh_status status = bh_wait(done, BH_FOREVER);
    expect(status == BH_E_FAULT, "the kernel's ticket ends with BH_E_FAULT");
    bh_error why;
    bh_ticket_error(done, &why);
    printf("       %s\n       Fix: %s\n", why.message, why.fix);
    expect(strcmp(why.kernel, "stray") == 0 && why.certain == 1, "the kernel to blame is named");

    /* What the lost worker had in hand to write is in doubt; everything else is as it was. */
    expect(holds_only(kept, 7), "the buffer it was not given is intact");
    uint32_t word;
    status = bh_buffer_read(touched, 0, &word, sizeof word);
    expect(status == BH_E_STALE, "the buffer it was writing is not passed off as good");

    /* A launch that writes the whole buffer (BH_OUT) settles the doubt; bh_buffer_accept would
     * too. */
    must(bh_launch(fill, BH_GRID(N, N), BH_ARGS(BH_OUT(touched), (uint32_t)5), NULL, &done),
         "launch");
    expect(bh_wait(done, BH_FOREVER) == BH_OK, "the next kernel runs, on the standby");
    expect(holds_only(touched, 5), "and what it wrote is good");

    bh_health now = BH_INIT(now);
    must(bh_device_get_health(gpu, &now), "ask for the device's status");
    printf("       generation %d, workers lost: %d\n", (int)now.generation, (int)now.losses);
    expect(now.losses == 1, "one worker was lost");
    must(bh_device_close(gpu), "close");
    return failures != 0;
}
