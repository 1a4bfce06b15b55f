/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling a .cu file of this directory with clang and the device headers, as a test does it. */
#include "support/clang.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "../../support/clangs.h"
#include "test.h"

static char output_path[4096], said_path[4096], *said;
static unsigned chosen; /* which clang, from 1 on; 0: the newest */

bool clang_next(void) {
    chosen = clang_path(chosen) ? chosen + 1 : 0;
    return chosen != 0;
}

static const char *clang(void) {
    return clang_path(chosen ? chosen - 1 : 0);
}

/* The standard headers: this project's, or the host's. */
static const char *library_folder(const char *flags) {
    return strstr(flags, "-D__BULKHEAD_HOSTED__") ? "hosted" : "standard";
}

/* The version that the product asks for too: newer clangs would take one that is too old. */
static unsigned ptx_version(const char *flags) {
    static const char option[] = "--cuda-gpu-arch=sm_";
    const char *at = strstr(flags, option);
    int arch = at ? atoi(at + strlen(option)) : 0;
    return arch < 90 ? 78 : arch == 90 ? 80 : 87;
}

static bool compile(const char *source, const char *flags, bool umbrella) {
    char command[16384];
    static int count;
    test_path(output_path, sizeof output_path, "%s/%d.ptx", test_tmp_dir(), ++count);
    test_path(said_path, sizeof said_path, "%s/%d.said", test_tmp_dir(), count);
    snprintf(
        command, sizeof command,
        "'%s' -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-path=/nonexistent -O3 -S "
        "--cuda-feature=+ptx%u %s -I '%s/src/compiler/headers/device' -I '%s/src/compiler/headers/%s' -Wall -Wextra -o '%s' %s "
        "'%s' > '%s' 2>&1",
        clang(), ptx_version(flags), umbrella ? "-include bulkhead_cuda.h" : "", test_source_dir(),
        test_source_dir(), library_folder(flags), output_path, flags, source, said_path);
    int status = system(command);
    free(said);
    said = test_read_file(said_path, NULL);
    return status != -1 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static const char *compile_named(const char *name, const char *flags, bool umbrella) {
    char source[4096];
    test_path(source, sizeof source, "%s/tests/device_header/%s.cu", test_source_dir(),
              name == NULL ? "" : name);
    return compile(name == NULL ? "/dev/null" : source, flags, umbrella) ? output_path : NULL;
}

const char *clang_compile(const char *name, const char *flags) {
    return compile_named(name, flags, true);
}

const char *clang_said(void) {
    return said == NULL ? "" : said;
}

const char *clang_must_compile(const char *name, const char *flags) {
    return clang_must_compile_with(name, flags, true);
}

const char *clang_must_compile_with(const char *name, const char *flags, bool umbrella) {
    const char *path = compile_named(name, flags, umbrella);
    if (path == NULL || strstr(clang_said(), "warning:") != NULL) {
        fprintf(stderr, "%s %s:\n%s\n", clang(), flags, clang_said());
    }
    REQUIRE(path != NULL);
    CHECK(strstr(clang_said(), "warning:") == NULL);
    return path;
}

bool clang_knows(const char *arch) {
    char flags[64];
    snprintf(flags, sizeof flags, "--cuda-gpu-arch=%s", arch);
    return compile("/dev/null", flags, true);
}
