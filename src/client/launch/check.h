/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a launch is checked, for bh_launch, preflight, prepared launches and steps of sequences
 * alike. In this order, and the first problem is the one that is reported:
 *
 *   1. the kernel's handle, here
 *   2. grid, block, cluster, shared memory, attributes: check_launch.c
 *   3. whether the kernel is in quarantine or its module stale: check_launch.c
 *   4. the lane, then each argument: check_arguments.c
 *   5. whether all blocks of a cooperative or clustered launch fit the device at once:
 *      check_launch.c, with the answer that ask_fit.c got from the worker
 *
 * Inlined: it is on the way of every launch.
 */
#ifndef BH_CLIENT_LAUNCH_CHECK_H
#define BH_CLIENT_LAUNCH_CHECK_H

#include "client/core/handles.h"
#include "client/launch/launch.h"

/* Steps 1 to 3. */
static inline bh_status bh__launch_check(bh__launch *self, bh_kernel handle,
                                         const bh_shape *shape) {
    self->reason = self->busy = BH_REASON_NONE;
    self->asks = self->shaped = false;
    self->kernel =
        bh__handle_find(self->device, &self->device->handles.kernels, handle.id, BH__KIND_KERNEL);
    if (!self->kernel) {
        (void)bh__handle_get(self->device, handle.id, BH__KIND_KERNEL,
                             "kernel"); /* sets the error */
        return bh__last()->status;
    }
    bh_status status = bh__shape_check(self, shape);
    if (status == BH_OK && (self->kernel->quarantined | self->kernel->module->stale))
        status = bh__kernel_check(self);
    return status;
}

#endif
