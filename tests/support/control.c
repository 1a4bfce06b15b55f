/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

bh__front *control_block(void) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600];
    bh__front *front = NULL;
    REQUIRE(maps != NULL);
    while (front == NULL && fgets(line, sizeof line, maps) != NULL) {
        unsigned long long from;
        if (strstr(line, "memfd:bulkhead-control") != NULL && sscanf(line, "%llx-", &from) == 1)
            front = (bh__front *)(uintptr_t)from;
    }
    fclose(maps);
    REQUIRE(front != NULL);
    REQUIRE(front->magic == BH__WIRE_MAGIC);
    return front;
}

bh__area *area_at(bh__front *front, uint32_t index) {
    return (bh__area *)((char *)front + front->areas_offset + index * front->area_bytes);
}
