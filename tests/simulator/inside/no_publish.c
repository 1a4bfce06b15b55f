/* SPDX-License-Identifier: Apache-2.0 */
/* No folder and no socket is simulated: devices offer their figures to nobody. */
#include "client/device/device.h"

void bh__publish_open(bh__device *device) {
    (void)device;
}

void bh__publish_close(bh__device *device) {
    (void)device;
}

void bh__publish_answer(bh__device *device) {
    (void)device;
}
