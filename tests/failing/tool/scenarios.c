/* SPDX-License-Identifier: Apache-2.0 */
/* What is done while calls fail. Each step is tried whatever became of those before it, as long as
 * it has what it needs; what was made is let go again. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../support/buffers.h"
#include "../../support/transfers.h"
#include "balance.h"
#include "world.h"

static const bh_lane own = {0};

static bool wait_for(world *w, bh_ticket ticket) {
    return TRY(w, bh_wait(ticket, WAIT_NS));
}

static bool launch(world *w, const char *name, bh_args args) {
    bh_ticket done;
    bh_kernel kernel = world_kernel(w, name);
    return kernel.id && TRY(w, bh_launch(kernel, BH_GRID(64, 32), args, NULL, &done)) &&
           wait_for(w, done);
}

/* ---- devices and modules ---- */

static void act_open(world *w) {
    bh_device_options options = world_options(w);
    w->open = TRY(w, bh_device_open(&options, &w->device));
    if (!w->open) return;
    if (TRY(w, bh_module_load(w->device, ptx_basic, strlen(ptx_basic), &w->module))) world_works(w);
    world_close(w);
}

static void act_close(world *w) {
    bh_buffer buffer = words(w, 1024);
    if (buffer.id) TRY(w, bh_buffer_fill(buffer, 0, 4096, "\1", 1));
    world_close(w);
}

static void act_load(world *w) {
    bh_module module, later;
    bh_kernel kernel;
    bh_ticket done;
    uint32_t value = 0;
    if (TRY(w, bh_module_load(w->device, ptx_globals, strlen(ptx_globals), &module))) {
        TRY(w, bh_kernel_get(module, "bump", &kernel));
        TRY(w, bh_module_global_write(module, "counter", 0, &value, sizeof value));
        TRY(w, bh_module_global_read(module, "counter", 0, &value, sizeof value));
        TRY(w, bh_module_release(module));
    }
    if (TRY(w, bh_submit_load(w->device, ptx_factor, strlen(ptx_factor), &later, &done))) {
        wait_for(w, done);
        TRY(w, bh_module_release(later));
    }
}

/* ---- launches ---- */

static void count_done(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    (void)status;
    _Atomic(int) *count = context;
    ++*count;
}

/* Counted for each pass: a callback that was due in one may come in the next. */
static void act_callbacks(world *w, bh_ticket ticket) {
    static _Atomic(int) told[16];
    _Atomic(int) *count = &told[w->pass % 16];
    int fd;
    if (TRY(w, bh_on_done(ticket, count_done, count))) {
        wait_for(w, ticket);
        if (TRY(w, bh_device_sync(w->device, WAIT_NS))) HOLDS(w, *count == 1);
    }
    if (TRY(w, bh_device_eventfd(w->device, &fd))) TRY(w, bh_notify(ticket));
}

static void act_prepared(world *w, bh_kernel kernel, bh_buffer buffer) {
    bh_prepared prepared;
    bh_ticket done;
    if (!TRY(w, bh_prepare(kernel, BH_GRID(64, 32), BH_ARGS(BH_OUT(buffer), 1u, 64u), NULL,
                           &prepared)))
        return;
    if (TRY(w, bh_prepared_launch(prepared, NULL, 0, &done))) wait_for(w, done);
    TRY(w, bh_prepared_release(prepared));
}

static void act_dispatch(world *w, bh_kernel kernel) {
    uint32_t out[64] = {0};
    bh_args args = BH_ARGS(BH_HOST_OUT(out, sizeof out), 5u, 64u);
    if (TRY(w, bh_dispatch(kernel, BH_GRID(64, 32), args, NULL))) HOLDS(w, out[63] == 68);
}

static void act_launch(world *w) {
    bh_kernel kernel = world_kernel(w, "iota");
    bh_buffer buffer = words(w, 64);
    bh_lane lane;
    bh_ticket done;
    bh_args args = BH_ARGS(BH_OUT(buffer), 1u, 64u);
    if (kernel.id && buffer.id && TRY(w, bh_lane_open(w->device, NULL, &lane))) {
        bh_launch_options options = BH_INIT(options);
        options.lane = lane;
        if (TRY(w, bh_launch(kernel, BH_GRID(64, 32), args, &options, &done)))
            act_callbacks(w, done);
        TRY(w, bh_lane_release(lane));
    }
    if (kernel.id && buffer.id) act_prepared(w, kernel, buffer);
    if (kernel.id) act_dispatch(w, kernel);
    let_go(w, buffer);
    TRY(w, bh_device_sync(w->device, WAIT_NS));
}

static void act_cancel(world *w) {
    bh_kernel spin = world_kernel(w, "spin");
    bh_buffer buffer = words(w, 64);
    bh_ticket first, second;
    bh_args args = BH_ARGS(BH_OUT(buffer), 1u, 20000u);
    if (spin.id && buffer.id && TRY(w, bh_launch(spin, BH_GRID(32, 32), args, NULL, &first))) {
        if (TRY(w, bh_launch(spin, BH_GRID(32, 32), args, NULL, &second))) {
            bh_status taken = bh_cancel(second);
            HOLDS(w, taken != BH_E_INTERNAL);
            TRY_OR(w, BH_E_CANCELLED, bh_wait(second, WAIT_NS));
        }
        wait_for(w, first);
    }
    let_go(w, buffer);
}

/* ---- memory ---- */

enum { BIG = 9 << 20, SMALL = 4096 };

static void act_big(world *w) {
    uint8_t *from = malloc(BIG), *to = calloc(1, BIG);
    bh_buffer big = words(w, BIG / 4);
    memset(from, 0x5a, BIG);
    if (big.id && TRY(w, bh_buffer_write(big, 0, from, BIG)) &&
        TRY(w, bh_buffer_read(big, 0, to, BIG)))
        HOLDS(w, memcmp(from, to, BIG) == 0);
    let_go(w, big);
    free(from);
    free(to);
}

static void act_rows(world *w, bh_buffer a, bh_buffer b) {
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = 16, rows.height = 8, rows.target_pitch = 32, rows.source_pitch = 32;
    char text[256] = "rows";
    TRY(w, write_rows(a, text, &rows));
    TRY(w, copy_rows(b, a, &rows));
    TRY(w, read_rows(text, b, &rows));
    TRY(w, fill_rows(b, &rows, "ab", 2));
}

static void act_host(world *w, bh_buffer a) {
    void *memory;
    bh_ticket done;
    if (!TRY(w, bh_host_alloc(w->device, SMALL, &memory))) return;
    memset(memory, 1, SMALL);
    if (TRY(w, bh_submit_write(own, a, 0, memory, SMALL, &done))) wait_for(w, done);
    TRY(w, bh_host_free(w->device, memory));
}

/* Nothing is left of memory that could not be made whole. */
static void check_trimmed(world *w) {
    bh_health health = BH_INIT(health);
    uint64_t freed;
    if (!TRY(w, bh_memory_trim(w->device, 0, &freed)) || !w->clean) return;
    if (!TRY(w, bh_device_get_health(w->device, &health))) return;
    /* An order to map one may still be on its way to the standby. */
    for (int i = 0; i < 1000 && chunks_held() != 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    HOLDS(w, chunks_held() == 0);
    HOLDS(w, chunks_mapped(health.worker_pid) == 0);
}

static void act_copies(world *w) {
    bh_buffer a = words(w, SMALL / 4), b = words(w, SMALL / 4);
    bh_buffer view;
    if (a.id && b.id) {
        TRY(w, bh_buffer_fill(a, 0, SMALL, "\7", 1));
        TRY(w, bh_buffer_copy(b, 0, a, 0, SMALL));
        TRY(w, bh_buffer_copy(b, 0, a, 0, SMALL));
        if (TRY(w, bh_buffer_view(a, 0, 0, 16, &view))) let_go(w, view);
        act_rows(w, a, b);
        act_host(w, a);
    }
    let_go(w, a);
    let_go(w, b);
    act_big(w);
    check_trimmed(w);
}

static void act_managed_kind(world *w, uint32_t flags) {
    bh_buffer buffer = {0};
    uint32_t *pointer = NULL;
    if (!TRY(w, alloc_managed(w->device, BH_U32, 4096, flags, &buffer, (void **)&pointer))) return;
    if (TRY(w, bh_managed_map(buffer, 0, 16384, BH_MAP_WRITE | BH_MAP_DISCARD, NULL))) {
        for (uint32_t i = 0; i < 4096; i++) pointer[i] = i;
        TRY(w, bh_managed_unmap(pointer, 16384));
        bool added = launch(w, "add_one", BH_ARGS(BH_INOUT(buffer), 64u));
        if (added && TRY(w, bh_managed_map(buffer, 0, 16384, BH_MAP_READ, NULL))) {
            HOLDS(w, pointer[0] == 1 && pointer[63] == 64 && pointer[64] == 64);
            TRY(w, bh_managed_unmap(pointer, 16384));
        }
    }
    let_go(w, buffer);
}

static void act_managed(world *w) {
    act_managed_kind(w, 0);
    act_managed_kind(w, BH_BUFFER_TRANSPARENT);
}

static void act_pool(world *w) {
    bh_host_pool_options options = BH_INIT(options);
    options.max_bytes = 4 << 20;
    bh_host_pool pool;
    void *piece[3] = {0};
    if (!TRY(w, bh_host_pool_open(w->device, &options, &pool))) return;
    for (int i = 0; i < 3; i++)
        if (!TRY(w, bh_host_pool_take(pool, 300000, MS, &piece[i]))) piece[i] = NULL;
    for (int i = 0; i < 3; i++)
        if (piece[i]) TRY(w, bh_host_pool_give(pool, piece[i]));
    TRY(w, bh_host_pool_release(pool));
}

static void act_import(world *w, const int fds[BH_SHARE_FDS], const bh_share_token *token) {
    bh_buffer other;
    void *memory;
    if (TRY(w, bh_buffer_import(w->device, fds, token, NULL, &other))) let_go(w, other);
    if (TRY(w, bh_share_map(fds, token, &memory))) TRY(w, bh_share_unmap(memory));
}

static void act_share(world *w) {
    bh_buffer buffer;
    bh_share_token token = BH_INIT(token);
    int fds[BH_SHARE_FDS];
    if (!TRY(w, alloc_shareable(w->device, BH_U32, 1024, &buffer))) return;
    if (TRY(w, bh_buffer_export(buffer, fds, &token))) {
        act_import(w, fds, &token);
        for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
        TRY(w, bh_buffer_revoke(buffer));
    }
    let_go(w, buffer);
}

/* ---- sequences ---- */

static bool record(world *w, bh_sequence sequence, bh_buffer a, bh_buffer b) {
    bh_kernel kernel = world_kernel(w, "iota");
    return kernel.id &&
           TRY(w, bh_sequence_launch(sequence, kernel, BH_GRID(64, 32), BH_ARGS(BH_OUT(a), 3u, 64u),
                                     NULL, NULL)) &&
           TRY(w, record_copy(sequence, b, 0, a, 0, 256, NULL)) &&
           TRY(w, bh_sequence_finish(sequence));
}

static void act_replay(world *w, bh_sequence sequence, bh_buffer b, uint32_t first) {
    bh_ticket done;
    uint32_t seen = 0;
    if (TRY(w, bh_sequence_submit(sequence, NULL, &done)) && wait_for(w, done) &&
        TRY(w, bh_buffer_read(b, 4, &seen, sizeof seen)))
        HOLDS(w, seen == first + 1);
}

static void act_sequence(world *w) {
    bh_buffer a = words(w, 64), b = words(w, 64);
    bh_sequence sequence;
    if (a.id && b.id && TRY(w, bh_sequence_begin(w->device, NULL, &sequence))) {
        if (record(w, sequence, a, b)) {
            act_replay(w, sequence, b, 3);
            if (TRY(w, bh_sequence_set(sequence, 0, 1, BH_ARG(9u)))) act_replay(w, sequence, b, 9);
        }
        TRY(w, bh_sequence_release(sequence));
    }
    let_go(w, a);
    let_go(w, b);
}

/* ---- losses ---- */

static void watch(void *context, const bh_event *event) {
    if (event->kind == BH_EVENT_LOSS)
        atomic_store((_Atomic uint64_t *)context, event->loss->number);
}

/* Several losses may be told as one, the newest. */
static void check_told(world *w, const _Atomic uint64_t *told) {
    bh_health health = BH_INIT(health);
    if (TRY(w, bh_device_get_health(w->device, &health)) &&
        TRY(w, bh_device_sync(w->device, WAIT_NS)))
        HOLDS(w, atomic_load(told) >= health.losses);
}

static void act_loss(world *w) {
    bh_kernel poke = world_kernel(w, "poke");
    bh_buffer kept = words(w, 64);
    bh_ticket done;
    char report[16384];
    size_t length;
    bool filled = kept.id && TRY(w, bh_buffer_fill(kept, 0, 256, "\4", 1));
    static _Atomic uint64_t told;
    bh_watch mine;
    bool watched = TRY(w, bh_watch_open(w->device, NULL, watch, &told, &mine));
    bool lost = false;
    if (poke.id && TRY(w, bh_launch(poke, BH_GRID(1, 1), BH_ARGS((uint64_t)16, 1u), NULL, &done)) &&
        TRY_OR(w, BH_E_FAULT, bh_wait(done, WAIT_NS)))
        lost = TRY(w, bh_device_get_report(w->device, 0, report, sizeof report, &length));
    world_works(w);
    uint32_t word = 0;
    if (filled && TRY(w, bh_buffer_read(kept, 128, &word, sizeof word)))
        HOLDS(w, word == 0x04040404);
    if (watched && lost) check_told(w, &told);
    if (watched) TRY(w, bh_watch_release(mine));
    let_go(w, kept);
    TRY(w, bh_device_sync(w->device, WAIT_NS));
}

/* ---- figures ---- */

static void act_figures(world *w) {
    static char text[1 << 18];
    bh_device_counters counters = BH_INIT(counters);
    size_t length;
    TRY(w, bh_device_get_counters(w->device, &counters));
    if (TRY(w, bh_prometheus(NULL, 0, text, sizeof text, &length)))
        HOLDS(w, length > 1000 && strlen(text) == length);
    bh_memory_info memory = BH_INIT(memory);
    TRY(w, bh_memory_get_info(w->device, &memory));
}

static void act_trace(world *w) {
    char path[256];
    snprintf(path, sizeof path, "%s/trace-%u.json", w->folder, w->pass);
    bool traced = TRY(w, bh_trace_start(w->device, path));
    world_works(w);
    if (traced) TRY(w, bh_trace_stop(w->device));
    act_figures(w);
}

const scenario scenarios[] = {
    {"open", NULL, act_open, NULL, false},
    {"close", world_open, act_close, NULL, false},
    {"load", world_open, act_load, NULL, false},
    {"compile", prepare_compile, act_compile, tidy_compile, false},
    {"compile-real", world_open, act_compile_real, tidy_compile, true},
    {"native", prepare_native, act_native, tidy_compile, false},
    {"native-real", open_native, act_native_real, tidy_compile, true},
    {"launch", world_open, act_launch, NULL, false},
    {"cancel", world_open, act_cancel, NULL, false},
    {"copies", world_open, act_copies, NULL, false},
    {"managed", world_open, act_managed, NULL, false},
    {"pool", world_open, act_pool, NULL, false},
    {"share", world_open, act_share, NULL, false},
    {"sequence", world_open, act_sequence, NULL, false},
    {"images", world_open, act_images, NULL, false},
    {"tensors", world_open, act_tensors, NULL, false},
    {"findings", prepare_checks, act_findings, NULL, false},
    {"follow", world_open, act_follow, NULL, false},
    {"loss", world_open, act_loss, NULL, false},
    {"trace", world_open, act_trace, NULL, false},
};
const unsigned scenario_count = sizeof scenarios / sizeof *scenarios;
