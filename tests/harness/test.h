/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing tests. A test program is a C file of TEST(name) { ... } bodies and has no main:
 *
 *     TEST(adds_two_numbers) {
 *         CHECK_EQ(1 + 1, 2);
 *     }
 *
 * Each test runs in a process of its own with a time limit, so it may crash, hang or be killed.
 * A CHECK that fails is printed and the test goes on; a REQUIRE that fails ends it, from any
 * thread. SKIP("why") ends it as skipped. `program --list` prints the tests, `program NAME` runs
 * one in this process, `program` runs all, each in a process of its own.
 */
#ifndef BULKHEAD_TEST_H
#define BULKHEAD_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TEST_TIMEOUT: with a limit other than 30 seconds. TEST_SERIAL: also with no other test beside. */
#define TEST(name)                  TEST_DEFINE_(name, 0, false)
#define TEST_TIMEOUT(name, seconds) TEST_DEFINE_(name, seconds, false)
#define TEST_SERIAL(name, seconds)  TEST_DEFINE_(name, seconds, true)

#define CHECK(condition)   test_check((condition), false, #condition, TEST_HERE_)
#define REQUIRE(condition) test_check((condition), true, #condition, TEST_HERE_)

/* Integers of any type, by value: -1 and UINT64_MAX differ. */
#define CHECK_EQ(a, b)   TEST_COMPARE_(TEST_EQ, a, b, false, #a " == " #b)
#define CHECK_NE(a, b)   TEST_COMPARE_(TEST_NE, a, b, false, #a " != " #b)
#define CHECK_LT(a, b)   TEST_COMPARE_(TEST_LT, a, b, false, #a " < " #b)
#define CHECK_LE(a, b)   TEST_COMPARE_(TEST_LE, a, b, false, #a " <= " #b)
#define CHECK_GT(a, b)   TEST_COMPARE_(TEST_LT, b, a, false, #b " < " #a)
#define CHECK_GE(a, b)   TEST_COMPARE_(TEST_LE, b, a, false, #b " <= " #a)
#define REQUIRE_EQ(a, b) TEST_COMPARE_(TEST_EQ, a, b, true, #a " == " #b)
#define REQUIRE_NE(a, b) TEST_COMPARE_(TEST_NE, a, b, true, #a " != " #b)

/* Floating point, with the largest difference allowed. */
#define CHECK_NEAR(a, b, difference) test_check_near((a), (b), (difference), #a, #b, TEST_HERE_)

#define CHECK_STR_EQ(a, b)         test_check_string((a), (b), false, #a, TEST_HERE_)
#define CHECK_STR_CONTAINS(a, b)   test_check_contains((a), (b), false, #a, TEST_HERE_)
#define REQUIRE_STR_EQ(a, b)       test_check_string((a), (b), true, #a, TEST_HERE_)
#define REQUIRE_STR_CONTAINS(a, b) test_check_contains((a), (b), true, #a, TEST_HERE_)

#define CHECK_MEM_EQ(a, b, size) test_check_memory((a), (b), (size), #a " == " #b, TEST_HERE_)

/* Calls that return a bh_status. When it is not the one expected, the message and the advice of
 * bh_last_error are printed too. */
#define CHECK_OK(call)               test_check_status((call), 0, false, #call, TEST_HERE_)
#define REQUIRE_OK(call)             test_check_status((call), 0, true, #call, TEST_HERE_)
#define CHECK_STATUS(call, status)   test_check_status((call), (status), false, #call, TEST_HERE_)
#define REQUIRE_STATUS(call, status) test_check_status((call), (status), true, #call, TEST_HERE_)

#define SKIP(...) test_skip(__VA_ARGS__)
#define FAIL(...) test_fail(TEST_HERE_, __VA_ARGS__) /* prints, counts, goes on */

/* Where things are. The runner sets these; a test started by hand gets the same defaults. */
const char *test_device(void);     /* BULKHEAD_TEST_DEVICE: what to open; "cpu" unless told */
const char *test_source_dir(void); /* BULKHEAD_SOURCE_DIR */
const char *test_build_dir(void);  /* BULKHEAD_BUILD_DIR */
const char *test_tmp_dir(void);    /* BULKHEAD_TEST_TMP: an empty directory of this test's own */

/* How much slower this build is than a plain one: 1, or 4 with a sanitizer. */
unsigned test_time_scale(void);

/* How long, in nanoseconds, a test keeps a device busy at random that would do so for `ms`: two
 * fifths of it, or all with BULKHEAD_TEST_LONG set and with a sanitizer, where less happens in that
 * time. */
uint64_t test_span_ns(unsigned ms);

/* Leaves bytes that are not zero on the stack, where calls made next have theirs: what they do not
 * fill in is seen. */
void test_soil_stack(void);

/* Checks that have failed so far in this process. */
int test_failures(void);

/* Fills `size` bytes at `path` from "%s/..." style arguments and returns `path`. */
const char *test_path(char *path, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The whole of a file, NUL after it, for free(); ends the test if it cannot be read. */
char *test_read_file(const char *path, size_t *out_size);

/* Fills in text about a status that was not expected. harness/explain.c sets it in programs that
 * link libbulkhead. */
extern void (*test_explain)(long status, char *text, size_t size);

/* Called by SKIP before the process ends. support/support.c sets it to close open devices: workers
 * of a process that just ends live on for a moment, and count as left behind. */
extern void (*test_before_skip)(void);

#define TEST_HERE_ __FILE__, __LINE__

#define TEST_DEFINE_(name, seconds, serial)                                                        \
    static void test_body_##name(void);                                                            \
    static struct test_case test_case_##name = {#name, test_body_##name, seconds, serial, NULL};   \
    __attribute__((constructor)) static void test_register_##name(void) {                          \
        test_register(&test_case_##name);                                                          \
    }                                                                                              \
    static void test_body_##name(void)

struct test_case {
    const char *name;
    void (*body)(void);
    unsigned seconds;
    bool serial;
    struct test_case *next;
};

typedef struct test_int {
    bool negative;
    uint64_t bits;
} test_int;

enum { TEST_EQ, TEST_NE, TEST_LT, TEST_LE };

/* clang-format off */
#define TEST_INT_(x)                                                                               \
    _Generic((x), signed char: test_signed, short: test_signed, int: test_signed,                  \
             long: test_signed, long long: test_signed, char: test_signed,                         \
             default: test_unsigned)(x)
/* clang-format on */

#define TEST_COMPARE_(operation, a, b, end, text)                                                  \
    test_compare(operation, TEST_INT_(a), TEST_INT_(b), end, text, TEST_HERE_)

static inline test_int test_signed(long long value) {
    test_int result = {value < 0, (uint64_t)value};
    return result;
}

static inline test_int test_unsigned(unsigned long long value) {
    test_int result = {false, value};
    return result;
}

void test_register(struct test_case *test);
void test_check(bool holds, bool end, const char *text, const char *file, int line);
void test_compare(int operation, test_int a, test_int b, bool end, const char *text,
                  const char *file, int line);
void test_check_near(double a, double b, double difference, const char *text_a, const char *text_b,
                     const char *file, int line);
void test_check_string(const char *a, const char *b, bool end, const char *text, const char *file,
                       int line);
void test_check_contains(const char *a, const char *b, bool end, const char *text, const char *file,
                         int line);
void test_check_memory(const void *a, const void *b, size_t size, const char *text,
                       const char *file, int line);
void test_check_status(long status, long expected, bool end, const char *text, const char *file,
                       int line);
void test_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
