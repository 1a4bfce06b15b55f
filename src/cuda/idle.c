/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting until the device is idle, and freeing what could not be freed before. */
#include <time.h>

#include "base/clock.h"
#include "cuda/state.h"
#include "wire/share.h"

enum { POLL_EVERY_NS = 50000, TURN_NS = 20000000 };

/* Called with `tables` held for writing, so that nothing is being queued. */
static bool is_idle(const bh__device_instance *device) {
    const bh__area *area = device->services->area;
    for (uint32_t i = 0; i < BH__MAX_LANES; i++) {
        const bh__device_lane *lane = device->lanes[i];
        uint64_t queued = lane ? atomic_load(&lane->queued_done) : BH__CUDA_NOT_BEGUN;
        if (queued != BH__CUDA_NOT_BEGUN && queued != atomic_load(&area->lane[i].done))
            return false;
    }
    return true;
}

static bool try_idle(bh__device_instance *device) {
    if (pthread_rwlock_trywrlock(&device->tables) != 0) return false;
    if (is_idle(device)) return true;
    pthread_rwlock_unlock(&device->tables);
    return false;
}

static void nap(void) {
    nanosleep(&(struct timespec){.tv_nsec = POLL_EVERY_NS}, NULL);
}

/* Takes turns: first waits until the device happens to be idle; then, for as long again, keeps
 * lanes from queueing work so that it becomes idle. Lanes must not be kept from it forever: a
 * kernel that does not end may be waiting for work that they have still to queue. */
bool bh__cuda_idle_wait(bh__device_instance *device) {
    while (!atomic_load(device->services->killed)) {
        uint64_t end = bh__now_ns() + TURN_NS;
        do {
            if (try_idle(device)) return true;
            nap();
        } while (bh__now_ns() < end);
        pthread_rwlock_wrlock(&device->tables);
        end = bh__now_ns() + TURN_NS;
        do {
            if (is_idle(device)) return true;
            nap();
        } while (bh__now_ns() < end);
        pthread_rwlock_unlock(&device->tables);
    }
    return false;
}

void bh__cuda_free_retired(bh__device_instance *device) {
    bool any = device->retired_count || device->retired_host_count || device->retired_sequences ||
               device->retired_managed_count || atomic_load(&device->retired_images);
    if (!any || !try_idle(device)) return;
    bh__cuda_sequences_free(device);
    bh__cuda_managed_free_retired(device);
    bh__cuda_textures_free(device);
    while (device->retired_count)
        bh__cuda_module_free(device, &device->retired[--device->retired_count]);
    while (device->retired_host_count) {
        bh__cuda_host *host = &device->retired_hosts[--device->retired_host_count];
        if (device->cu.host_unregister(host->memory) == BH__CU_OK)
            bh__share_unmap(host->memory, host->bytes);
    }
    pthread_rwlock_unlock(&device->tables);
}
