/* SPDX-License-Identifier: Apache-2.0 */
/* For docs/simulator.md: scenarios see the simulator's headers and functions of their own. */
#include "../../simulator/inside/scenarios.h"
#include "../../simulator/inside/world.h"

static void *opens(void *out) {
    OK(bh_lane_open(device, NULL, out));
    return NULL;
}
