/* SPDX-License-Identifier: Apache-2.0 */
/* Executable memory of workers: where code is, nothing can be written. */
#include "support/native.h"

/* What the worker has mapped, and can execute; lines of its /proc/PID/maps. */
typedef struct maps {
    unsigned both; /* executable and writable */
    unsigned code; /* executable, of bulkhead-code */
    unsigned open; /* writable, of bulkhead-code */
} maps;

static maps maps_of(bh_device device) {
    char path[64], line[1000], rights[8];
    maps found = {0};
    snprintf(path, sizeof path, "/proc/%u/maps", (unsigned)health_of(device).worker_pid);
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "%*s %7s", rights) != 1) continue;
        bool writable = strchr(rights, 'w'), executable = strchr(rights, 'x');
        bool code = strstr(line, "bulkhead-code") != NULL;
        found.both += writable && executable;
        found.code += executable && code;
        found.open += writable && code;
    }
    fclose(file);
    return found;
}

static void check_maps(uint32_t executor, unsigned code) {
    bh_device_options options = options_for(executor);
    rig r = rig_open_with(&options);
    for (int round = 0; round < 2; round++) {
        maps found = maps_of(r.device);
        CHECK_EQ(found.both, 0);
        CHECK_EQ(found.code, code);
        CHECK_EQ(found.open, 0);
        if (executor == BH_EXECUTE_INTERPRETER) break;
        check_iota(&r, 3);
        need_native(rig_kernel(&r, "iota"));
        check_iota(&r, 4);
    }
}

TEST(memory_with_code_is_executable_and_not_writable) {
    check_maps(BH_EXECUTE_AUTO, 1);
}

TEST(without_native_code_there_is_no_memory_for_it) {
    check_maps(BH_EXECUTE_INTERPRETER, 0);
}
