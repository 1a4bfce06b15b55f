/* SPDX-License-Identifier: Apache-2.0 */
/* Times of requests on a lane: histograms in the worker's area, and single times while traced. */
#include "worker/lane/meter.h"

#include "base/hash.h"
#include "base/ticks.h"
#include "wire/histogram.h"

static uint64_t now(const bh__meter *meter) {
    return bh__ticks(meter->front->ticks_usable);
}

static bh__times *times_of(const bh__meter *meter, uint64_t start) {
    if (!atomic_load_explicit(&meter->front->trace, memory_order_relaxed)) return NULL;
    return bh__area_times(meter->area, meter->front->queue_length, meter->lane, start);
}

static bh__lane_counts *counts_of(const bh__meter *meter) {
    return &meter->area->lane[meter->lane].counts;
}

/* There is one writer, so that no locked instruction is needed. */
static void add(_Atomic uint64_t *word, uint64_t amount) {
    atomic_store_explicit(word, atomic_load_explicit(word, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

static void add_time(bh__times_counted *to, uint64_t ns) {
    if (ns) add(&to->sum_ns, ns);
    add(&to->buckets[bh__histogram_bucket(ns)], 1);
}

void bh__meter_init(bh__meter *meter, bh__front *front, bh__area *area, uint32_t lane) {
    meter->front = front;
    meter->area = area;
    meter->lane = lane;
    meter->first = meter->next = meter->ended = 0;
}

void bh__meter_take(bh__meter *meter, bh__work *work) {
    work->taken = work->begun = now(meter);
    bh__times *times = times_of(meter, work->start);
    if (!times) return;
    atomic_store_explicit(&times->taken, work->taken, memory_order_relaxed);
    atomic_store_explicit(&times->begun, 0, memory_order_relaxed);
    atomic_store_explicit(&times->done, 0, memory_order_relaxed);
    atomic_store_explicit(&times->sequence, work->sequence, memory_order_release);
}

void bh__meter_depth(bh__meter *meter, uint64_t slots) {
    _Atomic uint64_t *max = &counts_of(meter)->depth_max;
    if (slots > atomic_load_explicit(max, memory_order_relaxed))
        atomic_store_explicit(max, slots, memory_order_relaxed);
}

void bh__meter_begin(bh__meter *meter, bh__work *work, bool waited) {
    if (waited) work->begun = now(meter);
    bh__times *times = times_of(meter, work->start);
    if (times) atomic_store_explicit(&times->begun, work->begun, memory_order_release);
}

void bh__meter_train(bh__meter *meter, uint32_t launches) {
    add(&counts_of(meter)->trains, 1);
    add(&counts_of(meter)->train_launches, launches);
}

static void count_kernel(bh__meter *meter, uint64_t key, uint64_t ns) {
    bh__kernel_counts *all = meter->area->lane[meter->lane].kernels;
    uint64_t first = bh__hash_u64(key);
    for (uint32_t i = 0; i < BH__KERNEL_PROBES; i++) {
        bh__kernel_counts *at = &all[(first + i) % BH__KERNEL_PLACES];
        uint64_t owner = atomic_load_explicit(&at->key, memory_order_relaxed);
        if (owner != key && owner != 0) continue;
        if (owner == 0) atomic_store_explicit(&at->key, key, memory_order_relaxed);
        add(&at->launches, 1);
        add(&at->ns, ns);
        return;
    }
}

static void count(bh__meter *meter, const bh__meter_flight *flight, uint64_t begun, uint64_t ran) {
    bh__lane_counts *counts = counts_of(meter);
    uint64_t scale = atomic_load_explicit(&meter->front->tick_scale, memory_order_relaxed);
    uint64_t waited = bh__ticks_between(flight->taken, begun);
    if (flight->submitted) {
        uint64_t queued = bh__ticks_between(flight->submitted, flight->taken);
        add_time(&counts->queued, bh__ticks_ns(queued, scale));
    }
    add_time(&counts->waiting, bh__ticks_ns(waited, scale));
    add_time(&counts->running, bh__ticks_ns(ran, scale));
    if (flight->kernel) count_kernel(meter, flight->kernel, bh__ticks_ns(ran, scale));
}

static void write_times(const bh__meter *meter, const bh__meter_flight *flight, uint64_t begun,
                        uint64_t done) {
    bh__times *times = times_of(meter, flight->start);
    if (!times || atomic_load_explicit(&times->sequence, memory_order_relaxed) != flight->sequence)
        return; /* it was taken before the trace began */
    atomic_store_explicit(&times->begun, begun, memory_order_relaxed);
    atomic_store_explicit(&times->done, done ? done : 1, memory_order_release);
}

/* For BH_SUBMIT_TIMED. The time that the device needed is subtracted from the end, so that the
 * three times together are the time until then. */
static void write_timed(const bh__meter *meter, const bh__meter_flight *flight, uint64_t ended,
                        uint64_t device_ns) {
    uint64_t scale = atomic_load_explicit(&meter->front->tick_scale, memory_order_relaxed);
    uint64_t ran = bh__ticks_of(device_ns, scale), since = bh__ticks_between(flight->taken, ended);
    bh__timed *timed =
        bh__area_timed(meter->area, meter->front->queue_length, meter->lane, flight->timed - 1u);
    atomic_store_explicit(&timed->taken, flight->taken, memory_order_relaxed);
    atomic_store_explicit(&timed->begun, ran < since ? ended - ran : flight->taken,
                          memory_order_relaxed);
    atomic_store_explicit(&timed->device_ns, device_ns, memory_order_relaxed);
    atomic_store_explicit(&timed->sequence, flight->sequence, memory_order_release);
}

static uint64_t ns_of(const bh__meter *meter, uint64_t ticks) {
    return bh__ticks_ns(ticks,
                        atomic_load_explicit(&meter->front->tick_scale, memory_order_relaxed));
}

static bh__meter_flight flight_of(const bh__work *work) {
    return (bh__meter_flight){.start = work->start,
                              .sequence = work->sequence,
                              .submitted = work->submitted,
                              .taken = work->taken,
                              .begun = work->begun,
                              .timed = work->timed,
                              .clock = work->clock,
                              .kernel =
                                  work->op == BH__OP_LAUNCH
                                      ? bh__kernel_key(work->u.launch.module, work->u.launch.kernel)
                                      : 0,
                              .skipped = work->op == BH__OP_SKIP};
}

void bh__meter_end(bh__meter *meter, const bh__work *work) {
    bh__meter_flight flight = flight_of(work);
    meter->ended = now(meter);
    write_times(meter, &flight, flight.begun, meter->ended);
    if (flight.timed)
        write_timed(meter, &flight, meter->ended,
                    flight.skipped ? 0
                                   : ns_of(meter, bh__ticks_between(flight.begun, meter->ended)));
}

void bh__meter_count(bh__meter *meter, const bh__work *work) {
    bh__meter_flight flight = flight_of(work);
    if (!flight.skipped)
        count(meter, &flight, flight.begun, bh__ticks_between(flight.begun, meter->ended));
}

void bh__meter_note(bh__meter *meter, const bh__work *work) {
    if (meter->next - meter->first == BH__METER_FLIGHT) meter->first++;
    meter->flights[meter->next++ % BH__METER_FLIGHT] = flight_of(work);
}

void bh__meter_see(bh__meter *meter, uint64_t done, bh__clock_read_fn *read,
                   bh__device_lane *device_lane) {
    uint64_t end = meter->first;
    while (end < meter->next && meter->flights[end % BH__METER_FLIGHT].sequence <= done) end++;
    if (end == meter->first) return;
    uint64_t seen = now(meter), begun = meter->flights[meter->first % BH__METER_FLIGHT].begun;
    if (begun < meter->ended) begun = meter->ended;
    if (seen < begun) seen = begun;
    /* Requests that are seen to complete together share the time evenly. */
    uint64_t each = (seen - begun) / (end - meter->first);
    for (; meter->first < end; meter->first++, begun += each) {
        const bh__meter_flight *flight = &meter->flights[meter->first % BH__METER_FLIGHT];
        uint64_t ended = meter->first + 1 == end ? seen : begun + each, ns = 0;
        write_times(meter, flight, begun, ended);
        if (flight->timed) {
            if (!flight->skipped && !(flight->clock && read(device_lane, flight->clock - 1u, &ns)))
                ns = ns_of(meter, each);
            write_timed(meter, flight, ended, ns);
        }
        if (!flight->skipped) count(meter, flight, begun, each);
    }
    meter->ended = seen;
}
