/* SPDX-License-Identifier: Apache-2.0 */
/* PTX text, executed with every access checked: bounds, marks, races, barriers. */
#include "ptx_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    return ptx_run_text(data, size, true);
}
