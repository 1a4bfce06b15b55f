/* SPDX-License-Identifier: Apache-2.0 */
/* Plain C as a side: the loops of the cases, on one thread or with OpenMP on all processors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _OPENMP
#include <omp.h>
#endif

#include "peers.h"
#include "support/figures.h"

bool peers_fail(peers_side *side, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(side->why, sizeof side->why, format, arguments);
    va_end(arguments);
    return false;
}

void peers_launch_list(peers_side *side, const char *kernel, peers_shape shape,
                       const peers_argument *arguments, size_t count) {
    side->launch(side, kernel, shape, arguments, count);
}

static bool attach(peers_side *side, const peers_case *c, peers_text text, peers_data *data) {
    (void)text;
    side->of = c;
    side->data = data;
    return true;
}

/* Its threads are there before the clock starts. */
static bool reset(peers_side *side) {
    peers_reset(side->data);
#ifdef _OPENMP
    omp_set_num_threads((int)(intptr_t)side->inside);
#pragma omp parallel
    __asm__ volatile("");
#endif
    return true;
}

static bool run(peers_side *side) {
    void *work[PEERS_BUFFERS];
    for (size_t i = 0; i < side->data->count; i++) work[i] = side->data->buffers[i].work;
    side->of->plain(work, side->data);
    return true;
}

/* One thread's results are what all others are compared with, and its own. */
static bool check(peers_side *side) {
    for (size_t i = 0; i < side->data->count; i++) {
        peers_buffer *b = &side->data->buffers[i];
        if (b->role == PEERS_IN) continue;
        void *copy = malloc(b->bytes);
        if (!copy) bench_wrong("no memory for %zu bytes", b->bytes);
        memcpy(copy, b->work, b->bytes);
        char why[128];
        bool right = peers_is_right(b, copy, why, sizeof why);
        free(copy);
        if (!right) return peers_fail(side, "buffer %zu: %s", i, why);
    }
    return true;
}

static void detach(peers_side *side) {
    side->data = NULL;
}

bool peers_open_plain(peers_side *side, unsigned processors) {
    *side = (peers_side){
        .attach = attach, .reset = reset, .run = run, .check = check, .detach = detach};
#ifdef _OPENMP
    side->inside = (void *)(intptr_t)(processors ? (int)processors : omp_get_num_procs());
#else
    if (processors != 1) return peers_fail(side, "this program was built without OpenMP");
#endif
    snprintf(side->name, sizeof side->name, "c.%s", processors ? "1" : "all");
    return true;
}
