/* SPDX-License-Identifier: Apache-2.0 */
/* --trace-threads, --threads, --trace-block, --print, --stop; and the state at a fault. */
#include <stdlib.h>
#include <string.h>

#include "run.h"

bh_status bh__debug_begin(bh__run *run) {
    if (!run->options->follow) return BH_OK;
    if (bh_kernel_debug(run->kernel, &run->options->debug) == BH_OK) return BH_OK;
    return bh__report_library(&run->error);
}

void bh__debug_get_state(bh__run *run) {
    size_t length = 0;
    if (run->device.id == 0 || run->error.status != BH_E_FAULT ||
        bh_device_get_fault_state(run->device, 0, NULL, 0, &length) != BH_OK || length == 0)
        return;
    run->state = malloc(length + 1);
    if (run->state != NULL &&
        bh_device_get_fault_state(run->device, 0, run->state, length + 1, &length) != BH_OK) {
        free(run->state);
        run->state = NULL;
    }
}

void bh__debug_note(const bh__run *run) {
    if (run->options->debug.stop != NULL)
        fprintf(stderr, "note: none of the followed threads reached line %.100s\n",
                run->options->debug.stop);
}

void bh__debug_print_state(const bh__run *run) {
    if (run->state != NULL) fprintf(stderr, "State of the thread:\n%s", run->state);
}
