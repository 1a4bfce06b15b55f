/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are looked at, and a device to make them on. */
#include "world.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 * MS + (uint64_t)now.tv_nsec;
}

void defect(world *w, const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("  %s: ", w->clean ? "when nothing fails" : "while calls fail");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    w->defect = true;
}

void holds(world *w, bool condition, const char *text, int line) {
    if (!condition) defect(w, "line %d: not so: %s", line, text);
}

void call_begin(world *w) {
    w->begun = now_ns();
}

static void check_error(world *w, bh_status status, const char *text, int line) {
    bh_error error;
    memset(&error, 0, sizeof error);
    bh_last_error(&error);
    if (error.status != status || !error.message[0] || !error.fix[0] || status == BH_E_INTERNAL ||
        (status == BH_E_TIMEOUT && !w->deaf))
        defect(w, "line %d: %s: %s, and bh_last_error: %s, \"%s\", Fix: \"%s\"", line, text,
               bh_status_name(status), bh_status_name(error.status), error.message, error.fix);
    else if (w->clean)
        defect(w, "line %d: %s: %s: %s; Fix: %s", line, text, bh_status_name(status), error.message,
               error.fix);
}

/* A ticket that failed is remembered for good: by its lane's history, that one's list, and its
 * message; a compiler's log is kept until the next one. What of these there is cannot be seen from
 * here. */
enum { KEPT_OF_FAILURE = 5 };

bool call_end(world *w, bh_status status, const char *text, int line, bh_status other) {
    uint64_t took = now_ns() - w->begun;
    bool limited = strstr(text, "WAIT_NS") != NULL;
    if (took > (limited ? WAIT_NS + PATIENCE_NS / 4 : PATIENCE_NS))
        defect(w, "line %d: %s took %llu ms (%s)", line, text, (unsigned long long)(took / MS),
               bh_status_name(status));
    if (status != BH_OK) w->kept += KEPT_OF_FAILURE;
    if (status == BH_OK || (other != BH_OK && status == other)) return true;
    check_error(w, status, text, line);
    return false;
}

bh_device_options world_options(const world *w) {
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.worker_dir = PROGRAMS;
    options.stuck_timeout_ns = 1000 * MS * TIME_SCALE;
    options.close_timeout_ns = 1000 * MS * TIME_SCALE;
    options.report_dir = w->folder;
    return options;
}

void world_open(world *w) {
    bh_device_options options = world_options(w);
    w->open = TRY(w, bh_device_open(&options, &w->device));
    if (!w->open) return;
    TRY(w, bh_device_wait_standby(w->device, WAIT_NS));
    TRY(w, bh_module_load(w->device, ptx_basic, strlen(ptx_basic), &w->module));
}

void world_close(world *w) {
    if (w->open) TRY(w, bh_device_close(w->device));
    w->open = false;
}

bh_kernel world_kernel(world *w, const char *name) {
    bh_kernel kernel = {0};
    TRY(w, bh_kernel_get(w->module, name, &kernel));
    return kernel;
}

bh_buffer words(world *w, uint64_t count) {
    bh_buffer buffer = {0};
    if (!TRY(w, bh_buffer_alloc(w->device, BH_U32, count, NULL, &buffer))) buffer.id = 0;
    return buffer;
}

void let_go(world *w, bh_buffer buffer) {
    if (buffer.id) TRY(w, bh_buffer_release(buffer));
}

static bool launch_works(world *w, bh_kernel kernel, bh_buffer buffer) {
    uint32_t seen[64] = {0};
    bh_ticket done;
    if (!TRY(w,
             bh_launch(kernel, BH_GRID(64, 32), BH_ARGS(BH_OUT(buffer), 7u, 64u), NULL, &done)) ||
        !TRY(w, bh_wait(done, WAIT_NS)) || !TRY(w, bh_buffer_read(buffer, 0, seen, sizeof seen)))
        return false;
    for (uint32_t i = 0; i < 64; i++) HOLDS(w, seen[i] == 7 + i);
    return true;
}

bool world_works(world *w) {
    bh_kernel kernel = world_kernel(w, "iota");
    bh_buffer buffer = words(w, 64);
    bool works = kernel.id && buffer.id && launch_works(w, kernel, buffer);
    let_go(w, buffer);
    return works;
}
