/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hooks: calls from a lower room to an upper one. A room includes the headers of lower rooms only.
 * Where an event in a lower room matters in an upper one, the lower room calls a hook. This table
 * declares all of them; device/hooks.c fills it in.
 *
 * Hooks are called with the device locked, unless a hook says otherwise.
 */
#ifndef BH_CLIENT_CORE_HOOKS_H
#define BH_CLIENT_CORE_HOOKS_H

#include "client/core/device.h"

typedef struct bh__hook_table {
    /* ---- requests ---- */

    /* Called in place of bh__submit_plain on devices with managed buffers, whose pages may have to
     * be moved first. */
    bh_status (*submit)(bh__device *device, const bh__submission *submission, bool *out_retry,
                        bh_ticket *out);
    /* bh__submit_room on such devices. */
    bh_status (*room)(bh__device *device, const bh__submission *all, uint32_t count);
    /* A transfer in several requests is about to begin, and this is what they use together. Refuses
     * it if a map of a managed buffer is in its way. */
    bh_status (*check_maps)(const bh__use *use);
    /* A request is written and about to be published. Called for sequences, and for everything
     * while a trace is recorded. */
    void (*submitted)(bh__device *device, const bh__submission *submission, uint64_t start,
                      uint64_t end);
    /* A ticket has failed: its verdict is written. */
    void (*failed)(bh__lane *lane, uint64_t sequence, bh_status status);
    /* A submission of a sequence did not complete. */
    void (*sequence_failed)(bh__sequence *sequence);
    /* Requests did not complete. They and all requests that depend on them have their verdicts. */
    void (*resolved)(bh__device *device);
    /* Returns true if the request moves pages of a managed buffer. */
    bool (*moves_pages)(bh__device *device, bh__lane *lane, const bh__shadow *shadow);
    /* Called before the program is told that the lane has passed `sequence`: results in transparent
     * buffers are written back to the host first. BH_E_STOPPED: the device stopped before that; it
     * is the ticket's verdict. BH_E_BUSY: the write-back is in flight until *out_lane has passed
     * *out_position (*out_lane NULL: retry soon). Without the lock, between bh__ticket_enter and
     * bh__ticket_leave. */
    bh_status (*completing)(bh__device *device, bh__lane *lane, uint64_t sequence,
                            bh__lane **out_lane, uint64_t *out_position);
    /* The same, but waits for the write-back. BH_E_TIMEOUT: it is not complete yet. */
    bh_status (*completing_wait)(bh__device *device, bh__lane *lane, uint64_t sequence,
                                 uint64_t deadline);
    /* Cancels the compile in flight that has this ticket on the load lane, with the error *why.
     * Returns the number of compiles cancelled. Without any lock. */
    unsigned (*cancel_compile)(bh__device *device, uint64_t sequence, const bh_error *why);

    /* Starts a compile of native code for a kernel of a module, or all (wire/native.h). The module
     * is pinned; bh__native_arrived is called once, and ends that. False: it could not be
     * started. */
    bool (*compile_native)(bh__device *device, bh__module *module, uint32_t kernel,
                           uint32_t shapes);

    /* ---- memory ---- */

    /* Memory runs short or is counted: what the program has released and no work uses any more is
     * given up. Work has ended: the same. Does not release the lock. */
    void (*reclaim)(bh__device *device);
    /* Bytes of memory with a dedicated chunk were put in doubt. */
    void (*doubted)(bh__memory *memory);
    /* The last handle of a managed buffer was released; work may still use its memory. */
    void (*released)(bh__device *device, bh__memory *memory);
    /* The memory of a managed buffer is freed. The managed room frees its record of it. */
    void (*freed)(bh__device *device, bh__memory *memory);
    /* Returns the end of the highest managed buffer of this process; 0: none lies above
     * `address`. */
    uint64_t (*addresses_above)(uint64_t address);
    /* A read failed with BH_E_STOPPED. Retries it where the bytes are intact. Without the lock. */
    bh_status (*read_stopped)(bh_buffer buffer, uint64_t offset, void *target, uint64_t bytes);

    /* Reads intact bytes of memory of a device whose workers have ended. Releases the lock
     * meanwhile; the caller has retained the memory. */
    bh_status (*read_memory)(bh__device *device, const bh__memory *memory, uint64_t offset,
                             uint64_t bytes, void *target);

    /* ---- threads and traces ---- */

    /* The program has opened or released a watch. */
    void (*watched)(bh__device *device);

    /* Runs callbacks that are due. *pending holds those whose tickets are not resolved. Returns
     * true if there may be more. Dispatcher only, without the lock. */
    bool (*dispatch)(bh__device *device, bh__callback **pending);
    /* Someone has connected to the device's socket. Supervisor only, without the lock. */
    void (*looked_at)(bh__device *device);
    /* Records an instant event in the trace. `name` and `label` are string constants. */
    void (*noted)(bh__device *device, const char *name, const char *label, uint64_t value,
                  const char *text);
} bh__hook_table;

extern const bh__hook_table bh__hooks;

/* Records an instant event, if a trace is being recorded. */
static inline void bh__note(bh__device *device, const char *name, const char *label,
                            uint64_t value) {
    if (device->observe.trace) bh__hooks.noted(device, name, label, value, NULL);
}

#endif
