/* SPDX-License-Identifier: Apache-2.0 */
#include "../stand_in.h"

#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

bh_compile_options stand_in_options(const char *cache) {
    static char programs[600];
    char link[700], program[700];
    test_path(programs, sizeof programs, "%s/programs", test_tmp_dir());
    test_path(link, sizeof link, "%s/bulkhead-compiler", programs);
    test_path(program, sizeof program, "%s/tests/programs/stand_in", test_build_dir());
    REQUIRE(mkdir(programs, 0700) == 0);
    REQUIRE(symlink(program, link) == 0);
    bh_compile_options options = BH_INIT(options);
    options.compiler_dir = programs;
    options.cache_dir = cache;
    return options;
}
