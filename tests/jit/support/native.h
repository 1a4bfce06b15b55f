/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of native code share. */
#ifndef TESTS_JIT_SUPPORT_NATIVE_H
#define TESTS_JIT_SUPPORT_NATIVE_H

#include "../../support/support.h"

bh_device_options options_for(uint32_t executor);
bh_kernel_info info_of(bh_kernel kernel);
/* Waits until native code is there, or it is known that there will be none. */
bh_kernel_info settled(bh_kernel kernel);
/* Skips where there is no LLVM, and says so. */
void need_native(bh_kernel kernel);
void check_iota(const rig *r, uint32_t first);

/* A new folder with the real worker. The text is there until the next call. */
const char *folder_with_worker(void);
/* One with a compiler of the test's beside it. */
const char *folder_with_script(const char *script);
void copy_file(const char *from, const char *to);

#endif
