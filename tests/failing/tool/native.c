/* SPDX-License-Identifier: Apache-2.0 */
/* Native code while calls fail: found in the cache, and made. Without it kernels are
 * interpreted. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "page.h"
#include "world.h"

enum { WORDS = 64 };

void open_native(world *w) {
    bh_device_options options = world_options(w);
    char cache[256];
    snprintf(cache, sizeof cache, "%s/cache", w->folder);
    setenv("BULKHEAD_CACHE_DIR", cache, 1);
    options.executor = BH_EXECUTE_AUTO;
    w->open = TRY(w, bh_device_open(&options, &w->device));
}

/* Another module for each number: what is known of one says nothing of the next. */
static bool load(world *w, unsigned number, bh_module *out) {
    static char text[8192];
    int length = snprintf(text, sizeof text, "// %u\n%s", number, ptx_factor);
    return TRY(w, bh_module_load(w->device, text, (size_t)length, out));
}

static bool run(world *w, bh_kernel kernel, bh_buffer buffer) {
    bh_ticket done;
    if (!TRY(w, bh_launch(kernel, BH_GRID(WORDS, 32), BH_ARGS(BH_INOUT(buffer), (uint32_t)WORDS),
                          NULL, &done)) ||
        !TRY(w, bh_wait(done, WAIT_NS)))
        return false;
    uint32_t seen[WORDS];
    if (TRY(w, bh_buffer_read(buffer, 0, seen, sizeof seen)))
        for (uint32_t i = 0; i < WORDS; i++) HOLDS(w, seen[i] == 0);
    return true;
}

/* Until there is code, or it is known that there will be none. */
static void settle(world *w, bh_kernel kernel) {
    bh_kernel_info info = BH_INIT(info);
    for (int i = 0; i < 15000; i++) {
        if (!TRY(w, bh_kernel_get_info(kernel, &info))) return;
        bool there = info.executor == BH_EXECUTOR_JIT;
        if (there || info.executor_note[0]) {
            HOLDS(w, there || !w->clean || strstr(info.executor_note, "no native code"));
            return;
        }
        nanosleep(&(struct timespec){.tv_nsec = 1 * MS}, NULL);
    }
    defect(w, "native code neither came nor was refused");
}

/* A variable of zeros makes zeros of all words, so that no run depends on the one before. */
static void use(world *w, unsigned number) {
    bh_module module;
    bh_kernel kernel;
    if (!load(w, number, &module)) return;
    bh_buffer buffer = words(w, WORDS);
    if (buffer.id && TRY(w, bh_buffer_fill(buffer, 0, 4 * WORDS, "\1", 1)) &&
        TRY(w, bh_kernel_get(module, "scale_by", &kernel))) {
        if (run(w, kernel, buffer)) settle(w, kernel);
        (void)run(w, kernel, buffer);
    }
    let_go(w, buffer);
    TRY(w, bh_module_release(module));
}

/* Code that is on disk and not in this process's memory: made by another process. */
void prepare_native(world *w) {
    pid_t child = fork();
    if (child == 0) {
        static failing_page none; /* what it holds counts for nobody */
        failing_use(&none);
        open_native(w);
        for (unsigned i = 1; i <= 2; i++) use(w, 2 * (w->pass + i));
        world_close(w);
        fflush(NULL);
        _exit(w->defect);
    }
    int status = 1;
    waitpid(child, &status, 0);
    HOLDS(w, status == 0);
    open_native(w);
}

void act_native(world *w) {
    use(w, 2 * w->pass);
    use(w, 2 * w->pass + 1); /* which nobody has made */
}

/* With LLVM, so that the compiler's process has calls to fail. */
void act_native_real(world *w) {
    use(w, 2 * w->pass + 1);
}
