/* SPDX-License-Identifier: Apache-2.0 */
/* Why a launch was refused: the names of the reasons, and this thread's last refusal as one line of
 * text. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/launch/launch.h"
#include "client/queue/queue.h"

static const char *const reason_names[] = {
    [BH_REASON_NONE] = "none",
    [BH_REASON_ZERO_DIMENSION] = "zero_dimension",
    [BH_REASON_GRID_AXIS] = "grid_axis",
    [BH_REASON_BLOCK_AXIS] = "block_axis",
    [BH_REASON_BLOCK_THREADS] = "block_threads",
    [BH_REASON_KERNEL_THREADS] = "kernel_threads",
    [BH_REASON_REQUIRED_BLOCK] = "required_block",
    [BH_REASON_SHARED_MEMORY] = "shared_memory",
    [BH_REASON_CLUSTER_UNSUPPORTED] = "cluster_unsupported",
    [BH_REASON_CLUSTER_GRID] = "cluster_grid",
    [BH_REASON_CLUSTER_SIZE] = "cluster_size",
    [BH_REASON_REQUIRED_CLUSTER] = "required_cluster",
    [BH_REASON_COOPERATIVE_UNSUPPORTED] = "cooperative_unsupported",
    [BH_REASON_RESIDENCY] = "residency",
    [BH_REASON_ATTRIBUTE] = "attribute",
    [BH_REASON_ARGUMENT_COUNT] = "argument_count",
    [BH_REASON_ARGUMENT_SIZE] = "argument_size",
    [BH_REASON_ARGUMENT_KIND] = "argument_kind",
    [BH_REASON_BUFFER_SMALL] = "buffer_small",
    [BH_REASON_BUFFER_HANDLE] = "buffer_handle",
    [BH_REASON_SUSPECT] = "suspect",
    [BH_REASON_QUARANTINED] = "quarantined",
    [BH_REASON_MODULE_STALE] = "module_stale",
    [BH_REASON_QUEUE_FULL] = "queue_full",
    [BH_REASON_OTHER] = "other",
    [BH_REASON_PARAMETER_BYTES] = "parameter_bytes",
    [BH_REASON_BUFFER_BUSY] = "buffer_busy",
};

const char *bh_reason_name(bh_reason reason) {
    return reason < sizeof reason_names / sizeof *reason_names ? reason_names[reason] : "?";
}

/* ---- the last refusal ---- */

static _Thread_local bh__refusal last_refused;

bh__refusal *bh__last_refusal(void) {
    return &last_refused;
}

void bh__launch_record(const bh__launch *self, uint32_t reason, uint64_t requested,
                       uint64_t limit) {
    bh__refusal *it = &last_refused;
    const bh__kernel *kernel = self->kernel;
    memset(it, 0, sizeof *it);
    it->set = true;
    it->status = bh__last()->status;
    it->reason = reason;
    it->requested = requested;
    it->limit = limit;
    bh__last()->reason = reason;
    bh__last()->requested = requested;
    bh__last()->limit = limit;
    it->resident = reason == BH_REASON_RESIDENCY ? limit : 0;
    it->cooperative = self->options->flags & BH_LAUNCH_COOPERATIVE;
    snprintf(it->fix, sizeof it->fix, "%s", bh__last()->fix);
    if (!kernel) return;
    snprintf(it->kernel, sizeof it->kernel, "%s", kernel->name);
    snprintf(bh__last()->kernel, sizeof bh__last()->kernel, "%s", kernel->name);
    it->static_shared = kernel->shape.static_shared;
    if (!self->shaped) return;
    memcpy(it->grid, self->body.grid, sizeof it->grid);
    memcpy(it->block, self->body.block, sizeof it->block);
    memcpy(it->cluster, self->body.cluster, sizeof it->cluster);
    it->dynamic_shared = self->body.shared_bytes;
}

void bh__launch_record_status(bh__launch *self, bh_status status) {
    if (self->reason != BH_REASON_NONE) return;
    uint32_t busy = self->busy ? self->busy : BH_REASON_QUEUE_FULL;
    uint32_t reason = status == BH_E_STALE  ? BH_REASON_SUSPECT
                      : status == BH_E_BUSY ? busy
                                            : BH_REASON_OTHER;
    bh__launch_record(self, reason, 0, 0);
}

/* ---- one line ---- */

typedef struct line {
    char *out;
    size_t bytes, used;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t room = to->used < to->bytes ? to->bytes - to->used : 0;
    int length = vsnprintf(room ? to->out + to->used : NULL, room, format, list);
    va_end(list);
    to->used += length > 0 ? (size_t)length : 0;
}

static void add_escaped(line *to, const char *name, size_t limit) {
    for (size_t i = 0; i < limit && name[i]; i++) {
        unsigned char c = (unsigned char)name[i];
        bool plain = c > ' ' && c != '|' && c != '%' && c != 0x7f;
        add(to, plain ? "%c" : "%%%02X", c);
    }
}

static bh_status write_line(const bh__refusal *it, char *out, size_t bytes) {
    if (!out || !bytes)
        return bh__refuse(BH_E_INVALID, "pass BH_LINE_BYTES bytes for the line", "%s",
                          out ? "capacity is 0" : "text is NULL");
    line to = {out, bytes, 0};
    bool ok = it->status == BH_OK;
    add(&to, "bulkhead-launch-v1|kernel=");
    add_escaped(&to, it->kernel, sizeof it->kernel);
    add(&to, "|status=%s|reason=%s|requested=%llu|limit=%llu", ok ? "ok" : "blocked",
        bh_reason_name(it->reason), (unsigned long long)it->requested,
        (unsigned long long)it->limit);
    add(&to, "|grid=%ux%ux%u|block=%ux%ux%u|shared=%u+%u", it->grid[0], it->grid[1], it->grid[2],
        it->block[0], it->block[1], it->block[2], it->static_shared, it->dynamic_shared);
    add(&to, "|cooperative=%s|resident=%llu|cluster=", it->cooperative ? "yes" : "no",
        (unsigned long long)it->resident);
    if (it->cluster[0] | it->cluster[1] | it->cluster[2])
        add(&to, "%ux%ux%u", it->cluster[0], it->cluster[1], it->cluster[2]);
    else
        add(&to, "none");
    add(&to, "|fix=");
    add_escaped(&to, it->fix, sizeof it->fix);
    if (to.used < bytes) return BH_OK;
    return bh__refuse(BH_E_INVALID, "pass BH_LINE_BYTES bytes for the line",
                      "the line needs %zu bytes, capacity is %zu", to.used + 1, bytes);
}

static void dims_in(uint32_t out[3], bh_dim dim) {
    out[0] = dim.x;
    out[1] = dim.y;
    out[2] = dim.z;
}

bh_status bh_preflight_line(const bh_preflight *given, char *text, size_t capacity) {
    if (!given && !last_refused.set)
        return bh__refuse(BH_E_NOT_FOUND, "call it after a launch of this thread was refused",
                          "no launch of this thread was refused yet");
    if (!given) return write_line(&last_refused, text, capacity);
    bh_preflight all = BH_INIT(all);
    if (bh__options_take(given, &all, "bh_preflight") != BH_OK) return bh__last()->status;
    bh__refusal it = {.status = all.error.status,
                      .reason = all.error.reason,
                      .requested = all.error.requested,
                      .limit = all.error.limit,
                      .resident = all.resident_blocks,
                      .static_shared = all.static_shared,
                      .dynamic_shared = all.dynamic_shared,
                      .cooperative = all.cooperative};
    dims_in(it.grid, all.grid);
    dims_in(it.block, all.block);
    dims_in(it.cluster, all.cluster);
    memcpy(it.kernel, all.kernel, sizeof it.kernel);
    memcpy(it.fix, all.error.fix, sizeof it.fix);
    return write_line(&it, text, capacity);
}
