/* SPDX-License-Identifier: Apache-2.0 */
/* Findings of checks, states of threads, and threads that are followed, while calls fail. */
#include <string.h>

#include "world.h"

enum { MAX = 16, TEXT_BYTES = 32768 };

static void heard(void *context, const bh_event *event) {
    (void)context;
    (void)event;
}

void prepare_checks(world *w) {
    bh_device_options options = world_options(w);
    options.flags |= BH_DEVICE_CHECK;
    w->open = TRY(w, bh_device_open(&options, &w->device));
    if (w->open) TRY(w, bh_module_load(w->device, ptx_basic, strlen(ptx_basic), &w->module));
}

/* One element too many is written. */
void act_findings(world *w) {
    static bh_finding findings[MAX];
    static char text[TEXT_BYTES];
    bh_kernel kernel = world_kernel(w, "iota");
    bh_buffer buffer = words(w, 31);
    bh_ticket done;
    size_t count = 0;
    bool launched =
        kernel.id && buffer.id &&
        TRY(w, bh_launch(kernel, BH_GRID(32, 32), BH_ARGS(BH_OUT(buffer), 1u, 32u), NULL, &done));
    if (launched && TRY_OR(w, BH_E_FAULT, bh_wait(done, WAIT_NS))) {
        TRY_OR(w, BH_E_NOT_FOUND,
               bh_device_list_findings(w->device, 0, findings, sizeof *findings, MAX, &count));
        if (w->clean) HOLDS(w, count == 1 && strcmp(findings[0].kernel, "iota") == 0);
        TRY_OR(w, BH_E_NOT_FOUND,
               bh_device_get_fault_state(w->device, 0, text, sizeof text, &count));
    }
    let_go(w, buffer);
    TRY(w, bh_device_sync(w->device, WAIT_NS));
}

void act_follow(world *w) {
    static const char *const prints[] = {"%r1@8"};
    bh_debug_options options = BH_INIT(options);
    options.flags = BH_DEBUG_TRACE;
    options.threads = "0,5";
    options.text_limit = 8192;
    bh_watch mine;
    bool watched = TRY(w, bh_watch_open(w->device, NULL, heard, NULL, &mine));
    bh_kernel kernel = world_kernel(w, "iota");
    if (kernel.id && TRY(w, bh_kernel_debug(kernel, &options))) {
        world_works(w);
        options.prints = prints;
        options.print_count = 1;
        TRY_OR(w, BH_E_INVALID, bh_kernel_debug(kernel, &options)); /* if the line has no such */
    }
    if (kernel.id) TRY(w, bh_kernel_debug(kernel, NULL));
    world_works(w);
    if (watched) TRY(w, bh_watch_release(mine));
    TRY(w, bh_device_sync(w->device, WAIT_NS));
}
