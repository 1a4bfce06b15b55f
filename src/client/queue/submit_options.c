/* SPDX-License-Identifier: Apache-2.0 */
/* The options of submissions: flags, and the tickets that a submission comes after. */
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/queue.h"

bh_status bh__submit_options_take(const bh_submit_options *given, uint32_t known,
                                  bh_submit_options *out) {
    *out = (bh_submit_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_submit_options") != BH_OK ||
        bh__reserved_check(out->reserved, "bh_submit_options") != BH_OK)
        return bh__last()->status;
    if (out->flags & ~known)
        return bh__refuse(BH_E_INVALID, "use only the flags that the call's description names",
                          "bh_submit_options.flags is 0x%x; 0x%x of it are not for this call",
                          out->flags, out->flags & ~known);
    return BH_OK;
}

static bh_status refuse_after(size_t index, bh_ticket ticket, const char *fix, const char *why) {
    return bh__refuse(BH_E_INVALID, fix, "after[%zu] is {0x%llx, %llu}: %s", index,
                      (unsigned long long)ticket.lane, (unsigned long long)ticket.sequence, why);
}

/* A ticket whose lane has another id by now is done. */
bh_status bh__after_take(bh__device *device, const bh_ticket *tickets, size_t count,
                         uint64_t *positions) {
    memset(positions, 0, BH__MAX_LANES * sizeof *positions);
    if (!tickets && count)
        return bh__refuse(BH_E_INVALID, "pass an array of tickets, or after_count 0",
                          "after is NULL and after_count is %zu", count);
    for (size_t i = 0; i < count; i++) {
        bh_ticket ticket = tickets[i];
        uint32_t slot, index;
        if (!bh__lane_id_read(ticket.lane, &slot, &index) || index >= BH__LANES ||
            ticket.sequence == 0)
            return refuse_after(i, ticket, "pass tickets that Bulkhead calls have filled in",
                                "it was never issued");
        if (slot != device->slot)
            return refuse_after(i, ticket, "wait for work of other devices with bh_wait",
                                "it belongs to another device");
        if (index >= BH__MAX_LANES)
            return refuse_after(i, ticket, "wait for compiles and loads with bh_wait",
                                "it belongs to a compile or a load, which is not work of a lane");
        const bh__lane *lane = &device->lanes[index];
        if (atomic_load(&lane->id) != ticket.lane) continue;
        if (ticket.sequence > atomic_load(&lane->tail))
            return refuse_after(i, ticket, "pass tickets that Bulkhead calls have filled in",
                                "it was never issued");
        if (ticket.sequence > positions[index]) positions[index] = ticket.sequence;
    }
    return BH_OK;
}

bh_status bh__submit_options_once(const bh_submit_options *options, const char *what) {
    if (!options->deadline_ns && options->repeat <= 1) return BH_OK;
    return bh__refuse(BH_E_UNSUPPORTED, "set both to 0: only sequences take them",
                      "%s takes no deadline_ns (%llu) and no repeat (%u)", what,
                      (unsigned long long)options->deadline_ns, options->repeat);
}

bh_status bh__barrier_submit(bh__device *device, const bh_submit_options *options) {
    uint64_t after[BH__MAX_LANES];
    bh_status status = bh__after_take(device, options->after, options->after_count, after);
    bool retry = status == BH_OK;
    while (retry && status == BH_OK) {
        bh__submission barrier = {.lane = bh__lane_get(device, options->lane),
                                  .op = BH__OP_SKIP,
                                  .idempotent = true,
                                  .no_block = options->flags & BH_SUBMIT_NO_BLOCK,
                                  .after = after};
        status = barrier.lane ? bh__submit(device, &barrier, &retry, NULL) : bh__last()->status;
    }
    return status;
}
