/* SPDX-License-Identifier: Apache-2.0 */
/* Splits one large copy over a few threads. */
#include <pthread.h>

#include "base/processors.h"
#include "base/thread.h"
#include "client/core/error.h"
#include "client/transfer/parallel.h"

/* Starting a thread takes about as long as copying a quarter of a MiB. */
enum { MAX_THREADS = 4 };
static const uint64_t part_bytes = 4 << 20;

typedef struct part {
    bh__parallel_fn *work;
    void *context;
    uint64_t offset, bytes;
    bh_status status;
    bh_ticket ticket;
    bh_error error;
    pthread_t thread;
    bool started;
} part;

static void *part_main(void *argument) {
    part *self = argument;
    self->status = self->work(self->context, self->offset, self->bytes, &self->ticket);
    if (self->status != BH_OK) self->error = *bh__last();
    return NULL;
}

/* At most half the processors: the program needs the others. */
static uint64_t thread_count(uint64_t bytes) {
    uint64_t count = bytes / part_bytes, limit = ((uint64_t)bh__processors() + 2) / 2;
    if (limit > MAX_THREADS) limit = MAX_THREADS;
    if (count > limit) count = limit;
    return count ? count : 1;
}

static void start(part *parts, uint64_t count) {
    for (uint64_t i = 1; i < count; i++)
        parts[i].started = bh__thread_start(&parts[i].thread, NULL, part_main, &parts[i]) == 0;
}

bh_status bh__parallel_run(uint64_t bytes, bh__parallel_fn *work, void *context, bh_ticket *out) {
    uint64_t count = thread_count(bytes);
    if (count == 1) return work(context, 0, bytes, out);
    part parts[MAX_THREADS] = {0};
    uint64_t each = (bytes / count + 4095) & ~4095ull;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t from = i * each;
        parts[i] = (part){.work = work,
                          .context = context,
                          .offset = from,
                          .bytes = i + 1 < count ? each : bytes - from};
    }
    start(parts, count);
    part_main(&parts[0]);
    bh_status status = BH_OK;
    for (uint64_t i = 0; i < count; i++) {
        if (parts[i].started)
            pthread_join(parts[i].thread, NULL);
        else if (i > 0)
            part_main(&parts[i]);
        if (parts[i].status != BH_OK && status == BH_OK) status = bh__refuse_with(&parts[i].error);
        if (out && parts[i].status == BH_OK && (i == 0 || parts[i].ticket.sequence > out->sequence))
            *out = parts[i].ticket;
    }
    return status;
}
