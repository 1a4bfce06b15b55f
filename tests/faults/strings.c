/* SPDX-License-Identifier: Apache-2.0 */
/* Text that compilers put beside kernels (printf formats, assertion messages) is no state: losing a
 * worker does not make a module that has it stale. */
#include <signal.h>

#include "../support/support.h"

static const char printing[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 result) vprintf (.param .b64 format, .param .b64 values);\n"
    ".global .align 1 .b8 $str[4] = {104, 105, 10, 0};\n"
    ".global .align 1 .b8 __unnamed_1[3] = {102, 40, 0};\n"
    ".visible .entry hello(.param .u64 out) {\n"
    ".reg .u64 %rd<4>; .reg .u32 %r<3>;\n"
    "ld.param.u64 %rd1, [out]; mov.u32 %r1, 7; st.global.u32 [%rd1], %r1;\n"
    "mov.u64 %rd2, $str; cvta.global.u64 %rd3, %rd2;\n"
    "{ .param .b64 p0; .param .b64 p1; .param .b32 back;\n"
    "st.param.b64 [p0], %rd3; st.param.b64 [p1], 0;\n"
    "call.uni (back), vprintf, (p0, p1); ld.param.b32 %r2, [back]; }\n"
    "ret; }\n";

TEST(a_module_that_prints_is_not_stale_after_a_loss) {
    rig r = rig_open(0);
    bh_kernel hello = get_kernel(load_module(r.device, printing), "hello");
    bh_buffer out = words_filled(r.device, 1, 0);
    CHECK_OK(run_now(hello, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    kill_worker(r.device, SIGKILL);
    CHECK_OK(run_now(hello, BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK(words_are(out, 1, 7));
    CHECK_OK(bh_device_close(r.device));
}
