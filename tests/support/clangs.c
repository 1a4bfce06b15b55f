/* SPDX-License-Identifier: Apache-2.0 */
#include "clangs.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../harness/test.h"

enum { OLDEST = 16, NEWEST = 39, MAX = NEWEST - OLDEST + 1 };

/* The first line that the command prints, without its end; empty: none. */
static void first_line(const char *command, char *out, size_t size) {
    FILE *pipe = popen(command, "r");
    out[0] = 0;
    if (pipe == NULL) return;
    if (fgets(out, (int)size, pipe) == NULL) out[0] = 0;
    out[strcspn(out, "\n")] = 0;
    pclose(pipe);
}

static int version_of(const char *path) {
    char command[4200], line[256];
    snprintf(command, sizeof command, "'%s' --version 2>/dev/null", path);
    first_line(command, line, sizeof line);
    const char *at = strstr(line, "clang version ");
    return at ? atoi(at + strlen("clang version ")) : 0;
}

/* Called clang-VERSION, or clang alone. */
static bool find_version(int version, char *out, size_t size) {
    char command[64];
    for (int plain = 0; plain <= 1; plain++) {
        snprintf(command, sizeof command, "command -v clang-%d", version);
        first_line(plain ? "command -v clang" : command, out, size);
        if (out[0] == '/' && version_of(out) == version) return true;
    }
    return false;
}

const char *clang_path(unsigned index) {
    static char paths[MAX][4096];
    static unsigned count;
    if (count == 0) {
        for (int version = NEWEST; version >= OLDEST; version--)
            count += find_version(version, paths[count], sizeof paths[count]);
    }
    if (count == 0) SKIP("no clang 16 or later in PATH. Fix: sudo apt-get install clang-19");
    return index < count ? paths[index] : NULL;
}
