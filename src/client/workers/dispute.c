/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that two workers describe differently. One of them is wrong, and nobody knows which: the
 * module is not used any more, because its arguments may be placed where they do not belong. */
#include "base/log.h"
#include "client/module/module.h"
#include "client/queue/resolve.h"
#include "client/queue/walk.h"
#include "client/sequence/sequence.h"
#include "client/workers/internal.h"

typedef struct dispute {
    bh__device *device;
    const bh__module *module;
    bh_error error;
} dispute;

/* Arguments of queued requests were placed by the description that is in doubt. */
static void fail_user(void *context, bh__lane *lane, bh__shadow *shadow) {
    dispute *self = context;
    bool uses = shadow->module == self->module ||
                (shadow->sequence && bh__sequence_lacks_state(shadow->sequence, shadow->stamp));
    if (!uses || shadow->resolved) return;
    bh__request_fail(self->device, lane, shadow,
                     &(bh__failure){.status = BH_E_LOAD, .certain = 1, .detail = &self->error},
                     true);
}

static bh__module *find(bh__device *device, uint32_t number) {
    bh__module *module = device->module.list;
    while (module && module->number != number) module = module->next;
    return module && module->loaded && !module->unloaded ? module : NULL;
}

bool bh__description_check(bh__device *device, uint32_t number, int blob_fd) {
    bh__lock_take(&device->lock);
    bh__module *module = find(device, number);
    bh__description answer =
        module && !module->disputed ? bh__module_compare(module, blob_fd) : BH__DESCRIPTION_SAME;
    if (answer == BH__DESCRIPTION_DIFFERS) {
        dispute self = {.device = device, .module = module};
        bh__refuse_disputed(module, &self.error);
        module->disputed = module->stale = true;
        /* Called before a successor runs. What a running worker already has can harm only that
         * worker. */
        if (device->queue.frozen) {
            bh__requests_walk(device, fail_user, &self);
            bh__dependents_resolve(device);
        }
    }
    bh__lock_give(&device->lock);
    if (answer == BH__DESCRIPTION_DIFFERS)
        bh__log_error("two workers describe module %u differently: it is not used any more",
                      number);
    return answer != BH__DESCRIPTION_UNREADABLE;
}
