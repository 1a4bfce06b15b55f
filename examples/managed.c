/* SPDX-License-Identifier: Apache-2.0 */
/* One pointer, good on both sides: a managed buffer mapped by ranges, and one that is simply used.
 * usage: managed [DEVICE], where DEVICE is auto, cpu, cuda or cuda:N */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* x[i] += 1 for i < n */
static const char ptx[] = ".version 7.0\n"
                          ".target sm_70\n"
                          ".address_size 64\n"
                          ".visible .entry add_one(\n"
                          "    .param .u64 .ptr .global .align 4 x,\n"
                          "    .param .u32 n)\n"
                          "{\n"
                          "    .reg .pred %p;\n"
                          "    .reg .b32 %i, %n, %x, %block, %size;\n"
                          "    .reg .b64 %offset, %at;\n"
                          "    mov.u32 %i, %tid.x;\n"
                          "    mov.u32 %block, %ctaid.x;\n"
                          "    mov.u32 %size, %ntid.x;\n"
                          "    mad.lo.u32 %i, %block, %size, %i;\n"
                          "    ld.param.u32 %n, [n];\n"
                          "    setp.ge.u32 %p, %i, %n;\n"
                          "    @%p ret;\n"
                          "    ld.param.u64 %at, [x];\n"
                          "    mul.wide.u32 %offset, %i, 4;\n"
                          "    add.u64 %at, %at, %offset;\n"
                          "    ld.global.u32 %x, [%at];\n"
                          "    add.u32 %x, %x, 1;\n"
                          "    st.global.u32 [%at], %x;\n"
                          "    ret;\n"
                          "}\n";

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

enum { N = 1 << 20 };
static const uint64_t bytes = (uint64_t)N * sizeof(uint32_t);

static int check(const char *what, const uint32_t *x, uint32_t first) {
    int wrong = 0;
    for (uint32_t i = 0; i < N; i++) wrong += x[i] != first + i;
    printf("%s: %d of %d wrong\n", what, wrong, (int)N);
    return wrong;
}

/* Ranges are mapped, and only what is needed moves. */
static int mapped(bh_device gpu, bh_kernel add_one) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_MANAGED;
    bh_buffer buffer;
    void *memory;
    const uint32_t n = N;
    must(bh_buffer_alloc(gpu, BH_U32, n, &options, &buffer), "allocate");
    must(bh_managed_map(buffer, 0, bytes, BH_MAP_WRITE | BH_MAP_DISCARD, &memory), "map");
    uint32_t *x = (uint32_t *)memory;
    for (uint32_t i = 0; i < n; i++) x[i] = i;
    must(bh_managed_unmap(x, bytes), "unmap");
    must(bh_launch(add_one, BH_GRID(n, 256), BH_ARGS(BH_INOUT(buffer), n), NULL, NULL), "launch");
    must(bh_managed_map(buffer, 0, bytes, BH_MAP_READ, NULL), "map again"); /* waits */
    int wrong = check("mapped", x, 1);
    must(bh_managed_unmap(x, bytes), "unmap again");
    must(bh_buffer_release(buffer), "release");
    return wrong;
}

/* Plain loads and stores between launches: pages that were written are found. */
static int transparent(bh_device gpu, bh_kernel add_one) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT;
    bh_buffer buffer;
    bh_buffer_info info = BH_INIT(info);
    const uint32_t n = N;
    must(bh_buffer_alloc(gpu, BH_U32, n, &options, &buffer), "allocate");
    must(bh_buffer_get_info(buffer, &info), "ask for the address");
    uint32_t *x = (uint32_t *)info.pointer;
    bh_ticket done;
    for (uint32_t i = 0; i < n; i++) x[i] = i;
    must(bh_launch(add_one, BH_GRID(n, 256), BH_ARGS(BH_INOUT(buffer), n), NULL, &done), "launch");
    must(bh_wait(done, BH_FOREVER), "wait");
    int wrong = check("transparent", x, 1);
    bh_managed_info before = BH_INIT(before), after = BH_INIT(after);
    must(bh_managed_get_info(buffer, &before), "query");
    x[12345] = 12345; /* one word, one page */
    must(bh_launch(add_one, BH_GRID(n, 256), BH_ARGS(BH_INOUT(buffer), n), NULL, &done), "launch");
    must(bh_wait(done, BH_FOREVER), "wait");
    must(bh_managed_get_info(buffer, &after), "query");
    x[12345] += 1;
    wrong += check("and again", x, 2);
    printf("one word was written: %llu bytes went to the device%s\n",
           (unsigned long long)(after.bytes_to_device - before.bytes_to_device),
           after.tracking == BH_TRACKING_PAGES ? "" : " (this system does not tell which pages)");
    return wrong;
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel add_one;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "add_one", &add_one), "get the kernel");
    int wrong = mapped(gpu, add_one) + transparent(gpu, add_one);
    must(bh_device_close(gpu), "close");
    return wrong != 0;
}
