/* SPDX-License-Identifier: Apache-2.0 */
/* Moments when no lane is at work, which the driver needs for some of what it does. */
#include <time.h>

#include "base/clock.h"
#include "cuda/state.h"
#include "wire/share.h"

enum { LOOK_EVERY_NS = 50000, PATIENCE_NS = 20000000 };

/* With `tables` held for writing: nothing is being queued. */
static bool is_quiet(const bh__device *device) {
    const bh__area *area = device->services->area;
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        const bh__device_lane *lane = device->lanes[i];
        uint64_t marked = lane ? atomic_load(&lane->marked) : BH__CUDA_NOT_BEGUN;
        if (marked != BH__CUDA_NOT_BEGUN && marked != atomic_load(&area->lane[i].done))
            return false;
    }
    return true;
}

static bool try_quiet(bh__device *device) {
    if (pthread_rwlock_trywrlock(&device->tables) != 0) return false;
    if (is_quiet(device)) return true;
    pthread_rwlock_unlock(&device->tables);
    return false;
}

static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_NS}, NULL);
}

/* First for a moment that comes by itself; then, for as long again, nothing more is queued so
 * that one comes. A kernel that runs on must not keep lanes from their work, which may be what
 * it waits for: so in turns. */
bool bh__cuda_quiet_wait(bh__device *device) {
    while (!atomic_load(device->services->killed)) {
        uint64_t end = bh__now_ns() + PATIENCE_NS;
        do {
            if (try_quiet(device)) return true;
            rest();
        } while (bh__now_ns() < end);
        pthread_rwlock_wrlock(&device->tables);
        end = bh__now_ns() + PATIENCE_NS;
        do {
            if (is_quiet(device)) return true;
            rest();
        } while (bh__now_ns() < end);
        pthread_rwlock_unlock(&device->tables);
    }
    return false;
}

void bh__cuda_quiet_tidy(bh__device *device) {
    bool any = device->left_count || device->left_host_count || device->left_sequences ||
               device->left_managed_count;
    if (!any || !try_quiet(device)) return;
    bh__cuda_sequences_free(device);
    bh__cuda_managed_free_left(device);
    while (device->left_count) bh__cuda_module_free(device, &device->left[--device->left_count]);
    while (device->left_host_count) {
        bh__cuda_host *host = &device->left_hosts[--device->left_host_count];
        if (device->cu.host_unregister(host->memory) == BH__CU_OK)
            bh__share_unmap(host->memory, host->bytes);
    }
    pthread_rwlock_unlock(&device->tables);
}
