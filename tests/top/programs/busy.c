/* SPDX-License-Identifier: Apache-2.0 */
/* A program to look at: launches kernels, has memory with tags, loses a worker now and then, until
 * its standard input ends. `busy FOLDER`: with reports and a trace there. */
#include <poll.h>
#include <unistd.h>

#include "../../support/support.h"

static bool goes_on(void) {
    struct pollfd look = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&look, 1, 2) == 0;
}

int main(int count, char **list) {
    bh_device device;
    bh_device_options options = BH_INIT(options);
    bh_module module;
    bh_kernel iota, trap;
    bh_buffer x, y;
    bh_buffer_options tagged = BH_INIT(tagged);
    bh_ticket ticket;
    options.device = "cpu";
    options.report_dir = count > 1 ? list[1] : NULL;
    tagged.tag = "weights";
    if (bh_device_open(&options, &device) != BH_OK ||
        bh_module_load(device, ptx_basic, strlen(ptx_basic), &module) != BH_OK ||
        bh_kernel_get(module, "iota", &iota) != BH_OK ||
        bh_kernel_get(module, "trap_now", &trap) != BH_OK ||
        bh_buffer_alloc(device, BH_U32, 1 << 16, &tagged, &x) != BH_OK ||
        bh_buffer_alloc(device, BH_U32, 1 << 10, NULL, &y) != BH_OK) {
        fprintf(stderr, "%s\n", bh_last_message());
        return 1;
    }
    char path[400];
    snprintf(path, sizeof path, "%s/busy.json", count > 1 ? list[1] : "");
    if (count > 1 && bh_trace_start(device, path) != BH_OK) return 1;
    for (unsigned i = 0; i == 0 || goes_on(); i++) {
        for (int k = 0; k < 20; k++)
            bh_launch(iota, BH_GRID(1000, 100), BH_ARGS(BH_OUT(x), 1u, 1000u), NULL, &ticket);
        bh_wait(ticket, BH_FOREVER);
        if (i == 2 && bh_launch(trap, BH_GRID(1, 1), BH_NO_ARGS, NULL, &ticket) == BH_OK)
            bh_wait(ticket, BH_FOREVER);
        if (i == 5 && count > 1) bh_trace_stop(device);
        if (i == 5) {
            puts("ready");
            fflush(stdout);
        }
    }
    return bh_device_close(device) == BH_OK ? 0 : 1;
}
