/* SPDX-License-Identifier: Apache-2.0 */
#include "control.h"

/* Where the first mapping of a memfd of this name begins. */
static void *first_mapping(const char *name) {
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[600];
    unsigned long long from = 0;
    REQUIRE(maps != NULL);
    while (from == 0 && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, name) == NULL || sscanf(line, "%llx-", &from) != 1) from = 0;
    }
    fclose(maps);
    REQUIRE(from != 0);
    return (void *)(uintptr_t)from;
}

bh__front *control_block(void) {
    bh__front *front = first_mapping("memfd:bulkhead-control");
    REQUIRE(front->magic == BH__WIRE_MAGIC);
    return front;
}

/* The first place is the first worker's, and the others lie behind it. */
bh__area *area_at(bh__front *front, uint32_t index) {
    char *first = first_mapping("memfd:bulkhead-area");
    return (bh__area *)(void *)(first + index * front->area_bytes);
}
