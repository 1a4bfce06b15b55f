/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of compiling share. */
#include "compile.h"

#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>

const char *tmp_path(char *path, size_t size, const char *name) {
    return test_path(path, size, "%s/%s", test_tmp_dir(), name);
}

const char *cache_dir(void) {
    static char path[600];
    if (!path[0]) {
        tmp_path(path, sizeof path, "kernels");
        setenv("BULKHEAD_CACHE_DIR", path, 1);
    }
    return path;
}

/* Found in a process of its own: nothing of it stays in this one. */
static void find_compilers(bh_compiler_entry entries[16], size_t *count) {
    int pipes[2];
    REQUIRE(pipe(pipes) == 0);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        memset(entries, 0, 16 * sizeof *entries);
        *count = 0;
        if (bh_compiler_list(entries, sizeof *entries, 16, count) != BH_OK) _exit(1);
        bool sent =
            write(pipes[1], count, sizeof *count) == sizeof *count &&
            write(pipes[1], entries, 16 * sizeof *entries) == (ssize_t)(16 * sizeof *entries);
        _exit(!sent);
    }
    close(pipes[1]);
    int status = 0;
    bool got = read(pipes[0], count, sizeof *count) == sizeof *count;
    size_t have = 0;
    ssize_t some;
    while (got && have < 16 * sizeof *entries &&
           (some = read(pipes[0], (char *)entries + have, 16 * sizeof *entries - have)) > 0)
        have += (size_t)some;
    close(pipes[0]);
    while (waitpid(child, &status, 0) < 0) continue;
    REQUIRE(got && have == 16 * sizeof *entries && status == 0);
}

static void need(uint32_t compiler, const char *name) {
    bh_compiler_entry entries[16];
    size_t count;
    cache_dir();
    find_compilers(entries, &count);
    for (size_t i = 0; i < count; i++) {
        if (entries[i].compiler != compiler) continue;
        if (!entries[i].usable) SKIP("%s is not here: %s", name, entries[i].why);
        return;
    }
    FAIL("%s was not looked for", name);
}

void need_compiler(uint32_t compiler) {
    need(compiler, compiler == BH_COMPILER_NVRTC ? "NVRTC" : "clang");
}

void need_linker(void) {
    need(0, "nvJitLink");
}

bh_compile_options real_options(uint32_t compiler) {
    bh_compile_options options = BH_INIT(options);
    cache_dir();
    options.compiler = compiler;
    return options;
}

bh_compile_options stand_in_options(void) {
    static char folder[600], runs[600];
    bh_compile_options options = BH_INIT(options);
    cache_dir();
    if (!folder[0]) {
        char link[700], program[700];
        tmp_path(folder, sizeof folder, "programs");
        REQUIRE(mkdir(folder, 0700) == 0);
        test_path(link, sizeof link, "%s/bulkhead-compiler", folder);
        test_path(program, sizeof program, "%s/tests/programs/stand_in", test_build_dir());
        REQUIRE(symlink(program, link) == 0);
        setenv("BULKHEAD_TEST_RUNS", tmp_path(runs, sizeof runs, "runs"), 1);
    }
    options.compiler_dir = folder;
    return options;
}

unsigned stand_in_runs(void) {
    char path[600];
    struct stat info;
    return stat(tmp_path(path, sizeof path, "runs"), &info) == 0 ? (unsigned)info.st_size : 0;
}

bh_binary compile_ok(const char *source, const bh_compile_options *options) {
    bh_binary binary = {0};
    REQUIRE_OK(bh_compile(source, options, &binary));
    REQUIRE(binary.id != 0);
    return binary;
}

bh_binary_info info_of(bh_binary binary) {
    bh_binary_info info = BH_INIT(info);
    REQUIRE_OK(bh_binary_get_info(binary, &info));
    return info;
}

uint32_t compile_from(const char *source, const bh_compile_options *options) {
    bh_binary binary = compile_ok(source, options);
    uint32_t cache = info_of(binary).cache;
    CHECK_OK(bh_binary_release(binary));
    return cache;
}

bh_cache_info cache_info(void) {
    bh_cache_info info = BH_INIT(info);
    REQUIRE_OK(bh_cache_get_info(NULL, &info));
    return info;
}

/* A check that fails makes the test process end with a status other than 0. */
void in_process(void (*body)(void *context), void *context) {
    fflush(NULL);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        body(context);
        exit(test_failures() ? 1 : 0);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) continue;
    CHECK_EQ(status, 0);
}

unsigned entry_files(char *path, size_t size) {
    unsigned count = 0;
    DIR *dir = opendir(cache_dir());
    if (!dir) return 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (!strstr(entry->d_name, ".bhk")) continue;
        if (path && count == 0) test_path(path, size, "%s/%s", cache_dir(), entry->d_name);
        count++;
    }
    closedir(dir);
    return count;
}

void write_file(const char *path, const void *data, size_t size) {
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    REQUIRE(size == 0 || fwrite(data, 1, size, file) == size);
    REQUIRE(fclose(file) == 0);
}
