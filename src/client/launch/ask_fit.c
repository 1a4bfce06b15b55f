/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks can be resident. The worker is asked once for each kernel, block, cluster and
 * shared memory; the answer is cached. */
#include <stdlib.h>
#include <string.h>

#include "client/jobs/jobs.h"
#include "client/launch/launch.h"
#include "client/module/module.h"

enum { MAX_KNOWN = 16 }; /* answers cached for a kernel; the oldest is replaced */

struct bh__known_fit {
    uint32_t block[3], cluster[3], shared_bytes;
    bh__fit fit;
};

static bool same(const struct bh__known_fit *known, const uint32_t block[3],
                 const uint32_t cluster[3], uint32_t shared_bytes) {
    return known->shared_bytes == shared_bytes &&
           memcmp(known->block, block, sizeof known->block) == 0 &&
           memcmp(known->cluster, cluster, sizeof known->cluster) == 0;
}

const bh__fit *bh__fit_known(const bh__kernel *kernel, const bh__launch_body *body) {
    uint32_t count = kernel->fit_count < MAX_KNOWN ? kernel->fit_count : MAX_KNOWN;
    for (uint32_t i = 0; i < count; i++) {
        if (same(&kernel->fits[i], body->block, body->cluster, body->shared_bytes))
            return &kernel->fits[i].fit;
    }
    return NULL;
}

static void remember(bh__kernel *kernel, const bh__fit_question *question, const bh__fit *fit) {
    struct bh__known_fit *known = &kernel->fits[kernel->fit_count % MAX_KNOWN];
    memcpy(known->block, question->block, sizeof known->block);
    memcpy(known->cluster, question->cluster, sizeof known->cluster);
    known->shared_bytes = question->shared_bytes;
    known->fit = *fit;
    /* Counts on to tell which is the oldest, and never falls below MAX_KNOWN again. */
    kernel->fit_count++;
    if (kernel->fit_count == 2 * MAX_KNOWN) kernel->fit_count = MAX_KNOWN;
}

bh_status bh__fit_ask(bh__device *device, bh__kernel *kernel, const bh__fit_question *question,
                      bh__fit *out) {
    if (!kernel->fits) kernel->fits = calloc(MAX_KNOWN, sizeof *kernel->fits);
    if (!kernel->fits)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory to cache the residency of kernel %s", kernel->name);
    bh__module *module = kernel->module;
    module->pins++;
    bh__job job = {.kind = BH__JOB_ORDER,
                   .order = {.type = BH__MSG_FIT, .fit = *question, .fd = -1}};
    bh_status status = bh__order_run(device, &job);
    bh__module_unpin(device, module);
    if (status != BH_OK) return status;
    remember(kernel, question, &job.fit);
    if (out) *out = job.fit;
    if (device->state == BH__DEVICE_STOPPED) return bh__refuse_with(&device->stop_reason);
    return BH_OK;
}
