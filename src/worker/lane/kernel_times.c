/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates of how long each kernel takes on a lane. */
#include "worker/lane/kernel_times.h"

#include "base/hash.h"

/* A longer time counts at once. A shorter one moves the estimate by a quarter of the difference, so
 * that a kernel which is sometimes long is never taken for a short one. */
enum { DECAY_SHIFT = 2 };

static size_t slot_of(uint32_t module, uint32_t kernel) {
    return bh__hash_u64((uint64_t)module << 32 | kernel) % BH__TIMED_KERNELS;
}

void bh__kernel_times_begin(bh__kernel_times *times) {
    times->first = times->next = 0;
    times->seen_ns = 0;
}

void bh__kernel_times_queued(bh__kernel_times *times, const bh__work *work, uint64_t now_ns) {
    if (times->next - times->first == BH__TIMED_REQUESTS) times->first++;
    bh__timed_request *request = &times->requests[times->next++ % BH__TIMED_REQUESTS];
    *request = (bh__timed_request){
        .sequence = work->sequence, .queued_ns = now_ns, .launch = work->op == BH__OP_LAUNCH};
    if (!request->launch) return;
    request->module = work->u.launch.module;
    request->kernel = work->u.launch.kernel;
}

static void learn(bh__kernel_times *times, const bh__timed_request *request, uint64_t ns) {
    bh__kernel_time *entry = &times->kernels[slot_of(request->module, request->kernel)];
    if (ns == 0) ns = 1;
    if (entry->ns == 0 || entry->module != request->module || entry->kernel != request->kernel) {
        *entry = (bh__kernel_time){request->module, request->kernel, ns};
    } else if (ns >= entry->ns) {
        entry->ns = ns;
    } else {
        entry->ns -= (entry->ns - ns) >> DECAY_SHIFT;
    }
}

void bh__kernel_times_done(bh__kernel_times *times, uint64_t done, uint64_t now_ns) {
    uint64_t end = times->first;
    while (end < times->next && times->requests[end % BH__TIMED_REQUESTS].sequence <= done) end++;
    if (end == times->first) return;
    /* The first of them began when the one before it ended, or when it was queued. */
    uint64_t began = times->requests[times->first % BH__TIMED_REQUESTS].queued_ns;
    if (began < times->seen_ns) began = times->seen_ns;
    uint64_t each = (now_ns - began) / (end - times->first);
    for (; times->first < end; times->first++) {
        const bh__timed_request *request = &times->requests[times->first % BH__TIMED_REQUESTS];
        if (request->launch) learn(times, request, each);
    }
    times->seen_ns = now_ns;
}

uint64_t bh__kernel_times_get(const bh__kernel_times *times, uint32_t module, uint32_t kernel) {
    const bh__kernel_time *entry = &times->kernels[slot_of(module, kernel)];
    bool known = entry->ns != 0 && entry->module == module && entry->kernel == kernel;
    return known ? entry->ns : UINT64_MAX;
}
