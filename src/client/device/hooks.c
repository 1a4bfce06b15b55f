/* SPDX-License-Identifier: Apache-2.0 */
/* The table of hooks: which upper room handles what happens in a lower one. */
#include "client/core/hooks.h"
#include "client/compile/compile.h"
#include "client/device/device.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/observe/trace.h"
#include "client/queue/queue.h"
#include "client/sequence/sequence.h"

static void submitted(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end) {
    if (submission->sequence) {
        bh__sequence_note(submission->sequence, submission->replay, submission->lane->index, end);
        bh__sequence_count(device, submission->sequence, submission->replay->repeat,
                           &submission->lane->tally);
    }
    if (device->observe.trace) bh__trace_submit(device, submission, start, end);
}

static void doubted(bh__memory *memory) {
    bh__grant_doubt(memory->dedicated);
}

static void released(bh__device *device, bh__memory *memory) {
    bh__managed_forget(device, memory->managed);
}

static void freed(bh__device *device, bh__memory *memory) {
    if (memory->managed) bh__managed_delete(device, memory->managed);
    if (memory->dedicated->driver_managed)
        bh__driver_managed_delete(device, memory->dedicated->driver_managed);
}

/* In this order: sequences use modules. */
static void reclaim(bh__device *device) {
    bh__sequences_sweep(device);
    bh__modules_sweep(device);
}

static bool dispatch(bh__device *device, bh__callback **pending) {
    bool told = bh__pressure_run(device);
    return bh__callbacks_run(device, pending) || told;
}

const bh__hook_table bh__hooks = {.submit = bh__managed_submit,
                                  .room = bh__managed_check_room,
                                  .check_maps = bh__managed_check_maps,
                                  .submitted = submitted,
                                  .failed = bh__trace_verdict,
                                  .sequence_failed = bh__sequence_dropped,
                                  .resolved = bh__managed_judge,
                                  .moves_pages = bh__managed_moves,
                                  .completing = bh__managed_write_back,
                                  .completing_wait = bh__managed_write_back_wait,
                                  .cancel_compile = bh__compiles_cancel,
                                  .compile_native = bh__compile_start_native,
                                  .reclaim = reclaim,
                                  .doubted = doubted,
                                  .released = released,
                                  .freed = freed,
                                  .addresses_above = bh__managed_above,
                                  .read_stopped = bh__read_stopped,
                                  .read_memory = bh__read_memory,
                                  .watched = bh__pressure_cross,
                                  .dispatch = dispatch,
                                  .looked_at = bh__publish_answer,
                                  .noted = bh__trace_instant};
