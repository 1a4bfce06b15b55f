/* SPDX-License-Identifier: Apache-2.0 */
/* malloc and free in kernels: blocks that later launches use, and a worker's loss. */
#include "../support/support.h"

enum { THREADS = 96 };

/* take(slots): a block for each thread, with its number; use(slots, out): reads it; give(slots) */
#define START                                                                                      \
    "  mov.u32 %t, %tid.x;\n  ld.param.u64 %at, [slots];\n  mul.wide.u32 %a, %t, 8;\n"             \
    "  add.u64 %at, %at, %a;\n"
#define REGISTERS "{\n  .reg .b64 %at, %a, %b;\n  .reg .b32 %t, %v;\n  .param .b64 x;\n"
static const char ptx_heap[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n"
    ".extern .func free(.param .b64 block);\n"
    ".visible .entry take(.param .u64 slots)\n" REGISTERS "  .param .b64 y;\n" START
    "  st.param.b64 [x], 40;\n  call.uni (y), malloc, (x);\n  ld.param.b64 %b, [y];\n"
    "  st.global.u64 [%at], %b;\n  st.u32 [%b+36], %t;\n  ret;\n}\n"
    ".visible .entry use(.param .u64 slots, .param .u64 out)\n" REGISTERS START
    "  ld.global.u64 %b, [%at];\n  ld.u32 %v, [%b+36];\n  ld.param.u64 %at, [out];\n"
    "  mul.wide.u32 %a, %t, 4;\n  add.u64 %at, %at, %a;\n  st.global.u32 [%at], %v;\n  ret;\n}\n"
    ".visible .entry give(.param .u64 slots)\n" REGISTERS START
    "  ld.global.u64 %b, [%at];\n  st.param.b64 [x], %b;\n  call.uni free, (x);\n  ret;\n}\n";

typedef struct scene {
    bh_device device;
    bh_module module;
    bh_buffer slots, out;
} scene;

static scene scene_open(void) {
    scene s = {.device = open_device()};
    s.module = load_module(s.device, ptx_heap);
    s.slots = words_filled(s.device, 2 * THREADS, 0);
    s.out = words_filled(s.device, THREADS, 7);
    return s;
}

static bh_status call(const scene *s, const char *name, bool two) {
    bh_kernel kernel = get_kernel(s->module, name);
    bh_shape shape = BH_GRID(THREADS, THREADS);
    return two ? run_now(kernel, shape, BH_ARGS(BH_INOUT(s->slots), BH_OUT(s->out)))
               : run_now(kernel, shape, BH_ARGS(BH_INOUT(s->slots)));
}

TEST(a_block_lives_until_a_later_launch_frees_it) {
    scene s = scene_open();
    for (int round = 0; round < 3; round++) {
        CHECK_OK(call(&s, "take", false));
        CHECK_OK(call(&s, "use", true));
        CHECK(words_count(s.out, THREADS, 0));
        CHECK_OK(call(&s, "give", false));
    }
    CHECK_OK(bh_device_close(s.device));
}

TEST(an_invalid_free_is_a_fault_and_the_next_worker_has_an_empty_heap) {
    scene s = scene_open();
    if (!is_cpu(s.device)) SKIP("a GPU does not say what an invalid free does");
    CHECK_OK(call(&s, "take", false));
    CHECK_OK(call(&s, "give", false));
    bh_ticket ticket =
        submit(get_kernel(s.module, "give"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(s.slots)), NULL);
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_STR_CONTAINS(error.message, "no block of the kernel heap");
    CHECK_STR_CONTAINS(error.fix, "malloc");
    wait_generation(s.device, 2);
    CHECK_OK(bh_buffer_fill(s.slots, 0, 8 * THREADS, "", 1));
    CHECK_OK(call(&s, "take", false));
    CHECK_OK(call(&s, "use", true));
    CHECK(words_count(s.out, THREADS, 0));
    CHECK_OK(bh_device_close(s.device));
}
