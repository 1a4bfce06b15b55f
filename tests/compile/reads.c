/* SPDX-License-Identifier: Apache-2.0 */
/* The record of what a compiler read, and of where a header would have been found first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/siphash.h"
#include "compiler.h"

static const char kernel[] = "#include \"a.h\"\n"
                             "#include <deep/b.h>\n"
                             "extern \"C\" __global__ void k(int *p) { *p = A + B; }\n";

static char *folder(const char *name) {
    char path[4096];
    test_path(path, sizeof path, "%s/%s", own_folder(), name);
    mkdir(path, 0700);
    return keep(path);
}

static const char *below(const char *directory, const char *name) {
    char path[4096];
    return keep(test_path(path, sizeof path, "%s/%s", directory, name));
}

static void check_content(const bh__compile_answer *answer, const char *path,
                          const char *contents) {
    const bh__compile_read *read = find_read(answer, path);
    uint64_t hash[2];
    if (read == NULL) {
        FAIL("%s is not in the record", path);
        return;
    }
    bh__checksum(contents, strlen(contents), hash);
    CHECK_EQ(read->missing, 0);
    CHECK_EQ(read->bytes, strlen(contents));
    CHECK_MEM_EQ(read->hash, hash, sizeof hash);
}

static void check_missing(const bh__compile_answer *answer, const char *path) {
    const bh__compile_read *read = find_read(answer, path);
    if (read == NULL)
        FAIL("%s is not in the record", path);
    else
        CHECK_EQ(read->missing, 1);
}

TEST_BOTH(a_header_on_disk_is_recorded_and_where_it_was_missing) {
    char *first = folder("first"), *second = folder("second"), *absent = folder("absent");
    rmdir(absent);
    write_file("second/a.h", "#include \"c.h\"\n#define A 2\n");
    write_file("second/c.h", "");
    write_file("second/deep/b.h", "#define B 40\n");
    bh__compile_job job = source_job(compiler, kernel);
    job.include_paths = LIST(text(absent), text(first), text(second));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 42\n");
    check_content(&o.answer, below(second, "a.h"), "#include \"c.h\"\n#define A 2\n");
    check_content(&o.answer, below(second, "c.h"), "");
    check_content(&o.answer, below(second, "deep/b.h"), "#define B 40\n");
    check_missing(&o.answer, below(first, "a.h"));
    check_missing(&o.answer, below(first, "deep/b.h"));
    /* A folder that is not there may stand for all that could be in it. */
    if (find_read(&o.answer, below(absent, "a.h")) == NULL) check_missing(&o.answer, absent);
    for (size_t i = 0; i < o.answer.read_count; i++) {
        CHECK_EQ(o.answer.reads[i].path.data[0], '/');
        CHECK_NE(o.answer.reads[i].bytes, BH__READ_CHANGED);
    }

    /* The missing one appears: it is what is read now. */
    write_file("first/a.h", "#define A 3\n");
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 43\n");
    check_content(&o.answer, below(first, "a.h"), "#define A 3\n");
    if (find_read(&o.answer, below(absent, "a.h")) == NULL) check_missing(&o.answer, absent);
}

/* #include <x.h> does not look beside the source, whatever is there. */
TEST_BOTH(a_header_beside_the_source_does_not_hide_the_search) {
    char *beside = folder("beside"), *first = folder("first"), *second = folder("second");
    write_file("beside/a.h", "#error\n");
    write_file("second/a.h", "#define A 6\n");
    bh__compile_job job =
        source_job(compiler, "#include <a.h>\n"
                             "extern \"C\" __global__ void k(int *p) { *p = A; }\n");
    job.name = text(below(beside, "kernel.cu"));
    job.include_paths = LIST(text(first), text(second));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 6\n");
    check_missing(&o.answer, below(first, "a.h"));
    check_content(&o.answer, below(second, "a.h"), "#define A 6\n");
}

TEST_BOTH(a_header_included_by_a_flag_is_recorded) {
    char *first = folder("first"), *second = folder("second");
    write_file("second/a.h", "#define A 9\n");
    bh__compile_job job =
        source_job(compiler, "extern \"C\" __global__ void k(int *p) { *p = A; }\n");
    job.include_paths = LIST(text(first), text(second));
    job.extra = compiler == BH_COMPILER_CLANG ? LIST(text("-include"), text("a.h"))
                                              : LIST(text("--pre-include=a.h"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 9\n");
    check_missing(&o.answer, below(first, "a.h"));
    check_content(&o.answer, below(second, "a.h"), "#define A 9\n");
}

/* #include_next goes on behind the folder of the file that has it. */
TEST_TIMEOUT(include_next_is_followed, 60) {
    need_compiler(BH_COMPILER_CLANG);
    char *one = folder("one"), *two = folder("two"), *three = folder("three");
    write_file("one/a.h", "#include_next <a.h>\n");
    write_file("three/a.h", "#define A 6\n");
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG, "#include <a.h>\n"
                                      "extern \"C\" __global__ void k(int *p) { *p = A; }\n");
    job.include_paths = LIST(text(one), text(two), text(three));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    check_missing(&o.answer, below(two, "a.h"));
    check_content(&o.answer, below(one, "a.h"), "#include_next <a.h>\n");
    check_content(&o.answer, below(three, "a.h"), "#define A 6\n");
}

TEST_BOTH(what_has_include_asks_for_is_recorded) {
    char *first = folder("first");
    bh__compile_job job =
        source_job(compiler, "#if __has_include(<option.h>)\n#include <option.h>\n#endif\n"
                             "#if defined(__has_include) && __has_include( \"deep/other.h\" )\n"
                             "#error\n#endif\n"
                             "extern \"C\" __global__ void k(int *p) { *p = 5; }\n");
    job.include_paths = LIST(text(first));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    check_missing(&o.answer, below(first, "option.h"));
    check_missing(&o.answer, below(first, "deep/other.h"));
}

/* A name that only the preprocessor knows: the result is good for once. */
TEST_TIMEOUT(what_has_include_asks_for_through_a_macro_is_not_vouched_for, 60) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG, "#define NAME <option.h>\n"
                                      "#if __has_include(NAME)\n#error\n#endif\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    const bh__compile_read *read = find_read(&o.answer, "/");
    REQUIRE(read != NULL);
    CHECK_EQ(read->bytes, BH__READ_CHANGED);
}

/* What the program's own headers and the everyday ones read can be vouched for. */
TEST_BOTH(everyday_headers_leave_a_record_that_holds) {
    bh__compile_job job =
        source_job(compiler, "#include <cuda_runtime.h>\n"
                             "#if __has_include(<cuda_fp16.h>)\n#include <cuda_fp16.h>\n#endif\n"
                             "#include <cstdint>\n#include <stdio.h>\n#include <cassert>\n"
                             "#include <cmath>\n#include <limits.h>\n#include <cfloat>\n"
                             "extern \"C\" __global__ void k(int *p) { *p = 1; }\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    for (size_t i = 0; i < o.answer.read_count; i++) {
        if (o.answer.reads[i].bytes == BH__READ_CHANGED)
            FAIL("%s is not vouched for", (const char *)o.answer.reads[i].path.data);
    }
    printf("%zu reads\n", o.answer.read_count);
}

/* #include "x.h" looks beside the source, where the source has a place. */
TEST_BOTH(the_sources_own_folder_comes_first) {
    char *beside = folder("beside"), *given = folder("given");
    write_file("beside/a.h", "#define A 1\n");
    write_file("given/a.h", "#define A 2\n");
    write_file("given/deep/b.h", "#define B 10\n");
    bh__compile_job job = source_job(compiler, kernel);
    job.name = text(below(beside, "kernel.cu"));
    job.include_paths = LIST(text(given));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 11\n");
    check_content(&o.answer, below(beside, "a.h"), "#define A 1\n");

    unlink(below(beside, "a.h"));
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 12\n");
    check_missing(&o.answer, below(beside, "a.h"));
    check_content(&o.answer, below(given, "a.h"), "#define A 2\n");
}

/* The folder that the application happens to be in decides nothing. */
TEST_BOTH(the_working_folder_does_not_matter) {
    char *here = folder("here");
    write_file("here/a.h", "#define A 1\n");
    write_file("here/deep/b.h", "#define B 1\n");
    REQUIRE_EQ(chdir(here), 0);
    bh__compile_job job = source_job(compiler, kernel);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    CHECK_STR_CONTAINS(o.answer.error.message, "a.h");
    CHECK_STR_CONTAINS(o.answer.error.fix, "include_paths");
    REQUIRE_EQ(setenv("CPLUS_INCLUDE_PATH", here, 1), 0);
    REQUIRE_EQ(setenv("CPATH", here, 1), 0);
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
}

/* A header in memory wins over one in the folders given, and leaves no record. */
TEST_BOTH(headers_in_memory_come_first) {
    char *given = folder("given");
    write_file("given/a.h", "#define A 2\n");
    write_file("given/deep/b.h", "#define B 10\n");
    bh__compile_job job = source_job(compiler, kernel);
    job.include_paths = LIST(text(given));
    job.header_names = LIST(text("a.h"));
    job.header_bodies = LIST(text("#define A 100\n"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 110\n");
    CHECK(find_read(&o.answer, below(given, "a.h")) == NULL);
}

/* Headers that the program brings along give way to real ones, and to ones that appear later. */
TEST_BOTH(a_real_header_wins_over_the_programs_own) {
    char *given = folder("given");
    static const char source[] =
        "#include <stdint.h>\n"
        "extern \"C\" __global__ void k(int *p) { *p = sizeof(int8_t); }\n";
    bh__compile_job job = source_job(compiler, source);
    job.include_paths = LIST(text(given));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 1\n");
    check_missing(&o.answer, below(given, "stdint.h"));
    write_file("given/stdint.h", "typedef long long int8_t;\n");
    o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 8\n");
}

/* clang reads files by itself: one that changes after it was started cannot be vouched for. */
TEST_TIMEOUT(a_header_that_changes_meanwhile_is_marked, 60) {
    need_compiler(BH_COMPILER_CLANG);
    char *given = folder("given");
    write_file("given/a.h", "#define A 1\n");
    write_file("given/deep/b.h", "#define B 1\n");
    size_t room = 4 << 20, used = 0;
    char *slow = malloc(room); /* long enough to compile for the change to come in time */
    REQUIRE(slow != NULL);
    for (int i = 0; i < 1000; i++)
        used += (size_t)snprintf(slow + used, room - used,
                                 "__device__ float f%d(float x) { return x * %d + x / (x + %d); }\n"
                                 "extern \"C\" __global__ void g%d(float *p) { *p = f%d(*p); }\n",
                                 i, i, i, i, i);
    snprintf(slow + used, room - used, "%s", kernel);
    bh__compile_job job = source_job(BH_COMPILER_CLANG, slow);
    job.include_paths = LIST(text(given));
    started s = start_job(&job);
    usleep(300000);
    char *path = write_file("given/a.h", "#define A 2\n");
    outcome o = finish_job(&s);
    REQUIRE_ANSWER(o, BH_OK);
    const bh__compile_read *read = find_read(&o.answer, path);
    REQUIRE(read != NULL);
    CHECK_EQ(read->bytes, BH__READ_CHANGED);
    free(slow);
}
