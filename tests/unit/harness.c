/* SPDX-License-Identifier: Apache-2.0 */
/* The test harness itself: a check that fails must fail its test and say why. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

struct result {
    int status;
    char text[4096];
};

/* What `body` prints and how it ends, as a process of its own. After its checks it skips, which
 * turns into a failure if one of them failed. */
static struct result run(void (*body)(void)) {
    struct result result = {0};
    int ends[2];
    REQUIRE_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDOUT_FILENO);
        body();
        SKIP("done");
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t got;
    while (length < sizeof result.text - 1 &&
           (got = read(ends[0], result.text + length, sizeof result.text - 1 - length)) > 0) {
        length += (size_t)got;
    }
    close(ends[0]);
    REQUIRE_EQ(waitpid(child, &result.status, 0), child);
    REQUIRE(WIFEXITED(result.status));
    result.status = WEXITSTATUS(result.status);
    return result;
}

static void passing(void) {
    CHECK(true);
    CHECK_EQ(3, 3u);
    CHECK_NE(-1, UINT64_MAX);
    CHECK_LT(INT64_MIN, 0u);
    CHECK_LT(-2, -1);
    CHECK_LE((int8_t)5, (uint64_t)5);
    CHECK_GT(UINT64_MAX, INT64_MAX);
    CHECK_GE(0, -1);
    CHECK_NEAR(1.0, 1.25, 0.25);
    CHECK_STR_EQ("a", "a");
    CHECK_STR_CONTAINS("abc", "bc");
    CHECK_MEM_EQ("abc", "abd", 2);
    CHECK_OK(0);
    CHECK_STATUS(7, 7);
    REQUIRE(true);
    REQUIRE_EQ(1, 1);
}

TEST(checks_that_hold_are_silent) {
    struct result result = run(passing);
    CHECK_STR_EQ(result.text, "skip: done\n");
    CHECK_EQ(result.status, 77);
}

static void comparing(void) {
    CHECK_EQ(41 + 1, 43);
}

static void comparing_signs(void) {
    CHECK_EQ(-1, UINT64_MAX);
}

TEST(integers_are_shown_when_they_differ) {
    struct result result = run(comparing);
    CHECK_EQ(result.status, 1);
    CHECK_STR_CONTAINS(result.text, "harness.c:");
    CHECK_STR_CONTAINS(result.text, "does not hold: 41 + 1 == 43\n");
    CHECK_STR_CONTAINS(result.text, "left:  42 (0x2a)\n");
    CHECK_STR_CONTAINS(result.text, "right: 43 (0x2b)\n");
    result = run(comparing_signs);
    CHECK_EQ(result.status, 1);
    CHECK_STR_CONTAINS(result.text, "left:  -1\n");
}

static void plain_failure(void) {
    CHECK(1 > 2);
    CHECK_OK(5);
    CHECK_STATUS(5, 6);
    CHECK_STR_EQ("one", "two");
    CHECK_STR_EQ(NULL, "two");
    CHECK_STR_CONTAINS("haystack", "needle");
    CHECK_MEM_EQ("abc", "abd", 3);
    CHECK_NEAR(1.0, 2.0, 0.5);
    CHECK_NEAR(1.0, strtod("nan", NULL), 0.5);
    FAIL("number %d", 9);
}

TEST(every_failed_check_is_reported) {
    struct result result = run(plain_failure);
    CHECK_EQ(result.status, 1);
    CHECK_STR_CONTAINS(result.text, "does not hold: 1 > 2\n");
    CHECK_STR_CONTAINS(result.text, "5 returned 5, not 0\n");
    CHECK_STR_CONTAINS(result.text, "5 returned 5, not 6\n");
    CHECK_STR_CONTAINS(result.text, "got:      one\n    expected: two\n");
    CHECK_STR_CONTAINS(result.text, "got:      (NULL)\n");
    CHECK_STR_CONTAINS(result.text, "expected: needle\n");
    CHECK_STR_CONTAINS(result.text, "byte 2 of 3 is 0x63, the other 0x64\n");
    CHECK_STR_CONTAINS(result.text, "2.0 is 2: more than 0.5 apart\n");
    CHECK_STR_CONTAINS(result.text, "nan: more than 0.5 apart\n");
    CHECK_STR_CONTAINS(result.text, "number 9\n");
}

static void requiring(void) {
    REQUIRE_EQ(1, 2);
    printf("not reached\n");
}

TEST(a_failed_require_ends_the_test) {
    struct result result = run(requiring);
    CHECK_EQ(result.status, 1);
    CHECK_STR_CONTAINS(result.text, "does not hold: 1 == 2\n");
    CHECK(strstr(result.text, "not reached") == NULL);
}

TEST(a_test_has_an_empty_directory_of_its_own) {
    char path[4096];
    REQUIRE(test_tmp_dir() != NULL);
    test_path(path, sizeof path, "%s/file", test_tmp_dir());
    CHECK(access(path, F_OK) != 0);
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    fputs("text", file);
    fclose(file);
    size_t size;
    char *text = test_read_file(path, &size);
    CHECK_EQ(size, 4);
    CHECK_STR_EQ(text, "text");
    free(text);
    unlink(path);
}
