/* SPDX-License-Identifier: Apache-2.0 */
/* Entries that are damaged or forged, and a folder that many processes use and die in. */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/compile.h"

static const char source[] = "WARN the source";

/* The text of the entry, made in another process. */
static void make_entry(void *context) {
    (void)context;
    bh_compile_options options = stand_in_options();
    const char *names[] = {"kernel<1>"};
    options.expressions = names;
    options.expression_count = 1;
    bh_binary binary = compile_ok(source, &options);
    CHECK(memmem(info_of(binary).bytes, info_of(binary).count, source, strlen(source)) != NULL);
    CHECK_STR_EQ(info_of(binary).log, "a warning\n");
    const char *lowered;
    CHECK_OK(bh_binary_lowered(binary, "kernel<1>", &lowered));
    CHECK_STR_EQ(lowered, "k0");
}

/* What is in memory goes, what is on disk stays: the folder named has nothing. */
static void forget_memory(void) {
    char path[600];
    CHECK_OK(bh_cache_clear(tmp_path(path, sizeof path, "elsewhere")));
}

/* Compiles with nothing in memory. */
static void compile_again(bool expect_kept, uint64_t expect_dropped) {
    unsigned runs = stand_in_runs();
    uint64_t dropped = cache_info().dropped;
    forget_memory();
    make_entry(NULL);
    CHECK_EQ(stand_in_runs() - runs, expect_kept ? 0u : 1u);
    CHECK_EQ(cache_info().dropped - dropped, expect_dropped);
}

TEST_TIMEOUT(a_bit_that_turns_anywhere_is_found, 120) {
    char path[700];
    size_t size;
    make_entry(NULL);
    REQUIRE_EQ(entry_files(path, sizeof path), 1);
    char *whole = test_read_file(path, &size);
    uint64_t dropped = cache_info().dropped;
    /* Every byte of the head, and a tenth of the rest, in all parts. */
    unsigned flips = 0;
    for (size_t at = 0; at < size; at += at < 240 ? 1 : 7) {
        unsigned before = stand_in_runs();
        whole[at] = (char)(whole[at] ^ 1 << at % 8);
        write_file(path, whole, size);
        whole[at] = (char)(whole[at] ^ 1 << at % 8);
        forget_memory();
        make_entry(NULL);
        flips++;
        if (stand_in_runs() != before + 1) FAIL("a bit of byte %zu of %zu was turned", at, size);
    }
    CHECK_EQ(cache_info().dropped - dropped, flips);
    compile_again(true, 0); /* what was rebuilt is good */
    free(whole);
}

TEST_TIMEOUT(an_entry_cut_anywhere_is_found, 60) {
    char path[700];
    size_t size;
    make_entry(NULL);
    REQUIRE_EQ(entry_files(path, sizeof path), 1);
    char *whole = test_read_file(path, &size);
    for (size_t keep = 0; keep < size; keep += 1 + size / 60) {
        unsigned before = stand_in_runs();
        write_file(path, whole, keep);
        forget_memory();
        make_entry(NULL);
        if (stand_in_runs() != before + 1) FAIL("%zu of %zu bytes were left", keep, size);
    }
    char *longer = calloc(1, size + 1);
    memcpy(longer, whole, size);
    write_file(path, longer, size + 1);
    compile_again(false, 1);
    free(longer);
    free(whole);
}

TEST(an_entry_that_is_no_private_file_is_not_used) {
    char path[700], other[700];
    size_t size;
    make_entry(NULL);
    REQUIRE_EQ(entry_files(path, sizeof path), 1);
    char *whole = test_read_file(path, &size);
    struct stat info;
    REQUIRE(stat(path, &info) == 0);
    CHECK_EQ(info.st_mode & 07777, 0600);

    REQUIRE(chmod(path, 0644) == 0);
    compile_again(false, 1);

    /* A link to a good copy. */
    write_file(tmp_path(other, sizeof other, "copy"), whole, size);
    REQUIRE(chmod(other, 0600) == 0);
    REQUIRE(unlink(path) == 0);
    REQUIRE(symlink(other, path) == 0);
    compile_again(false, 1);
    REQUIRE(lstat(path, &info) == 0);
    CHECK(S_ISREG(info.st_mode));

    if (geteuid() == 0) {
        REQUIRE(chown(path, 12345, 12345) == 0);
        compile_again(false, 1);
    }
    REQUIRE(unlink(path) == 0);
    REQUIRE(mkdir(path, 0700) == 0);
    compile_again(false, 1);
    REQUIRE(unlink(path) == 0);
    REQUIRE(mkfifo(path, 0600) == 0);
    compile_again(false, 1);
    compile_again(true, 0);
    free(whole);
}

/* An entry under the name of another: as if their keys hashed alike. */
TEST(a_key_is_compared_byte_for_byte) {
    char first[700], second[700];
    size_t size;
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from("one thing", &options), BH_CACHE_MISS);
    REQUIRE_EQ(entry_files(first, sizeof first), 1);
    char *whole = test_read_file(first, &size);
    REQUIRE(unlink(first) == 0);
    CHECK_EQ(compile_from("some other thing", &options), BH_CACHE_MISS);
    REQUIRE_EQ(entry_files(second, sizeof second), 1);
    write_file(second, whole, size);
    REQUIRE(chmod(second, 0600) == 0);
    forget_memory();
    bh_binary binary = compile_ok("some other thing", &options);
    CHECK_EQ(info_of(binary).cache, BH_CACHE_MISS);
    CHECK(memmem(info_of(binary).bytes, info_of(binary).count, "some other", 10) != NULL);
    free(whole);
}

TEST(what_killed_processes_left_behind_is_removed) {
    char path[700];
    bh_compile_options options = stand_in_options();
    compile_from("one", &options);
    write_file(test_path(path, sizeof path, "%s/tmp-1-2-3", cache_dir()), "half", 4);
    REQUIRE(chmod(path, 0600) == 0);
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    REQUIRE(utimensat(AT_FDCWD, path, old, 0) == 0);
    cache_info();
    CHECK(access(path, F_OK) != 0);
    /* One that is being written stays. */
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    REQUIRE(futimens(fd, old) == 0);
    cache_info();
    CHECK(access(path, F_OK) == 0);
    close(fd);
}

/* ---- many processes ---- */

enum { PROCESSES = 8, SOURCES = 40 };

static void use_cache(unsigned seed) {
    bh_compile_options options = stand_in_options();
    rng r = rng_seeded(seed);
    options.cache_limit = 200000; /* so small that entries go all the time */
    for (;;) {
        char text[5000];
        unsigned which = rng_below(&r, SOURCES);
        int length = snprintf(text, sizeof text, "source %u ", which);
        memset(text + length, 'a' + (int)(which % 26), 4000);
        text[length + 4000] = 0;
        bh_binary binary = {0};
        if (bh_compile(text, &options, &binary) != BH_OK) {
            bh_error error;
            bh_last_error(&error);
            printf("%s\n", error.message);
            _exit(1);
        }
        bh_binary_info info = BH_INIT(info);
        bh_binary_get_info(binary, &info);
        if (!memmem(info.bytes, info.count, text, strlen(text))) _exit(2);
        bh_binary_release(binary);
        if (rng_below(&r, 4) == 0) {
            char path[600];
            bh_cache_clear(tmp_path(path, sizeof path, "elsewhere")); /* nothing from memory */
        }
        bh_cache_info counted = BH_INIT(counted);
        if (bh_cache_get_info(NULL, &counted) != BH_OK || counted.dropped) _exit(3);
    }
}

TEST_TIMEOUT(eight_processes_share_a_folder_and_are_killed, 90) {
    pid_t children[PROCESSES] = {0};
    rng r = rng_seeded(7);
    uint64_t until = now_ns() + test_span_ns(6000);
    unsigned kills = 0, seed = 100;
    stand_in_options();
    fflush(NULL);
    while (now_ns() < until) {
        unsigned which = rng_below(&r, PROCESSES);
        if (children[which] > 0) {
            int status = 0;
            kill(children[which], SIGKILL);
            while (waitpid(children[which], &status, 0) < 0) continue;
            CHECK(WIFSIGNALED(status));
            if (WIFEXITED(status)) CHECK_EQ(WEXITSTATUS(status), 0);
            kills++;
        }
        children[which] = fork();
        REQUIRE(children[which] >= 0);
        if (children[which] == 0) use_cache(seed);
        seed++;
        sleep_ms(5 + rng_below(&r, 60));
    }
    for (unsigned i = 0; i < PROCESSES; i++) {
        if (children[i] <= 0) continue;
        int status = 0;
        kill(children[i], SIGKILL);
        while (waitpid(children[i], &status, 0) < 0) continue;
        CHECK(WIFSIGNALED(status));
    }
    CHECK_GT(kills, 30);
    /* Everything that is there is whole. */
    sleep_ms(3100); /* files just left behind may still belong to somebody */
    bh_compile_options options = stand_in_options();
    for (unsigned i = 0; i < SOURCES; i++) {
        char text[5000];
        int length = snprintf(text, sizeof text, "source %u ", i);
        memset(text + length, 'a' + (int)(i % 26), 4000);
        text[length + 4000] = 0;
        bh_binary binary = compile_ok(text, &options);
        CHECK(memmem(info_of(binary).bytes, info_of(binary).count, text, strlen(text)) != NULL);
    }
    bh_cache_info info = cache_info();
    CHECK_EQ(info.dropped, 0);
    CHECK_GT(info.disk_hits, 0);
    DIR *dir = opendir(cache_dir());
    REQUIRE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "tmp-", 4) == 0) FAIL("%s was left behind", entry->d_name);
    closedir(dir);
}
