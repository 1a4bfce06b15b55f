/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text: parsed, verified, laid out, lowered and executed. */
#include "ptx_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return ptx_run_text(data, size, false);
}
