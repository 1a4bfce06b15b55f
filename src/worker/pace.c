/* SPDX-License-Identifier: Apache-2.0 */
/* How long each kernel takes on a lane. */
#include "worker/pace.h"

#include "base/hash.h"

/* A longer time counts at once, a shorter one by and by: a kernel that is long now and then is
 * never taken for a short one. */
enum { FORGET_SHIFT = 2 };

static size_t slot_of(uint32_t module, uint32_t kernel) {
    return bh__hash_u64((uint64_t)module << 32 | kernel) % BH__PACE_KERNELS;
}

void bh__pace_begin(bh__pace_book *book) {
    book->first = book->next = 0;
    book->seen_ns = 0;
}

void bh__pace_note(bh__pace_book *book, const bh__work *work, uint64_t now_ns) {
    if (book->next - book->first == BH__PACE_FLIGHT) book->first++;
    bh__pace_flight *flight = &book->flights[book->next++ % BH__PACE_FLIGHT];
    *flight = (bh__pace_flight){
        .sequence = work->sequence, .queued_ns = now_ns, .launch = work->op == BH__OP_LAUNCH};
    if (!flight->launch) return;
    flight->module = work->u.launch.module;
    flight->kernel = work->u.launch.kernel;
}

static void learn(bh__pace_book *book, const bh__pace_flight *flight, uint64_t ns) {
    bh__pace_kernel *entry = &book->kernels[slot_of(flight->module, flight->kernel)];
    if (ns == 0) ns = 1;
    if (entry->ns == 0 || entry->module != flight->module || entry->kernel != flight->kernel) {
        *entry = (bh__pace_kernel){flight->module, flight->kernel, ns};
    } else if (ns >= entry->ns) {
        entry->ns = ns;
    } else {
        entry->ns -= (entry->ns - ns) >> FORGET_SHIFT;
    }
}

void bh__pace_see(bh__pace_book *book, uint64_t done, uint64_t now_ns) {
    uint64_t end = book->first;
    while (end < book->next && book->flights[end % BH__PACE_FLIGHT].sequence <= done) end++;
    if (end == book->first) return;
    /* The first of them began when the one before it ended, or when it was queued. */
    uint64_t began = book->flights[book->first % BH__PACE_FLIGHT].queued_ns;
    if (began < book->seen_ns) began = book->seen_ns;
    uint64_t each = (now_ns - began) / (end - book->first);
    for (; book->first < end; book->first++) {
        const bh__pace_flight *flight = &book->flights[book->first % BH__PACE_FLIGHT];
        if (flight->launch) learn(book, flight, each);
    }
    book->seen_ns = now_ns;
}

uint64_t bh__pace_of(const bh__pace_book *book, uint32_t module, uint32_t kernel) {
    const bh__pace_kernel *entry = &book->kernels[slot_of(module, kernel)];
    bool known = entry->ns != 0 && entry->module == module && entry->kernel == kernel;
    return known ? entry->ns : UINT64_MAX;
}
