/* SPDX-License-Identifier: Apache-2.0 */
/* The checks and the main function of every test program. */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_SKIPPED = 77 };

static struct test_case *tests;
static _Atomic(int) failures;

void (*test_explain)(long status, char *text, size_t size);
void (*test_before_skip)(void);

void test_register(struct test_case *test) {
    struct test_case **place = &tests;
    while (*place != NULL) {
        place = &(*place)->next;
    }
    *place = test;
}

/* Other threads may be running, and at_exit handlers may wait for them: leave without ceremony. */
static _Noreturn void leave(int code) {
    fflush(stdout);
    fflush(stderr);
    _exit(code);
}

static const char *base_name(const char *file) {
    const char *slash = strrchr(file, '/');
    return slash ? slash + 1 : file;
}

__attribute__((format(printf, 4, 5))) static void report(bool end, const char *file, int line,
                                                         const char *format, ...) {
    char text[4096];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    printf("%s:%d: %s\n", base_name(file), line, text);
    fflush(stdout);
    atomic_fetch_add(&failures, 1);
    if (end) {
        leave(1);
    }
}

int test_failures(void) {
    return atomic_load(&failures);
}

void test_check(bool holds, bool end, const char *text, const char *file, int line) {
    if (!holds) {
        report(end, file, line, "does not hold: %s", text);
    }
}

static int order(test_int a, test_int b) {
    if (a.negative != b.negative) {
        return a.negative ? -1 : 1;
    }
    return a.bits < b.bits ? -1 : a.bits > b.bits; /* two's complement keeps the order */
}

static const char *show(test_int value, char *storage, size_t size) {
    if (value.negative) {
        snprintf(storage, size, "%lld", (long long)value.bits);
    } else {
        snprintf(storage, size, value.bits > 9 ? "%llu (0x%llx)" : "%llu",
                 (unsigned long long)value.bits, (unsigned long long)value.bits);
    }
    return storage;
}

void test_compare(int operation, test_int a, test_int b, bool end, const char *text,
                  const char *file, int line) {
    int difference = order(a, b);
    bool holds = operation == TEST_EQ   ? difference == 0
                 : operation == TEST_NE ? difference != 0
                 : operation == TEST_LT ? difference < 0
                                        : difference <= 0;
    if (!holds) {
        char left[64], right[64];
        report(end, file, line, "does not hold: %s\n    left:  %s\n    right: %s", text,
               show(a, left, sizeof left), show(b, right, sizeof right));
    }
}

void test_check_near(double a, double b, double difference, const char *text_a, const char *text_b,
                     const char *file, int line) {
    if (!(fabs(a - b) <= difference)) {
        report(false, file, line, "%s is %.17g and %s is %.17g: more than %g apart", text_a, a,
               text_b, b, difference);
    }
}

void test_check_string(const char *a, const char *b, bool end, const char *text, const char *file,
                       int line) {
    if (a == NULL || b == NULL ? a != b : strcmp(a, b) != 0) {
        report(end, file, line, "%s is not what was expected\n    got:      %s\n    expected: %s",
               text, a ? a : "(NULL)", b ? b : "(NULL)");
    }
}

void test_check_contains(const char *a, const char *b, bool end, const char *text, const char *file,
                         int line) {
    if (a == NULL || strstr(a, b) == NULL) {
        report(end, file, line, "%s lacks what was expected\n    got:      %s\n    expected: %s",
               text, a ? a : "(NULL)", b);
    }
}

void test_check_memory(const void *a, const void *b, size_t size, const char *text,
                       const char *file, int line) {
    const unsigned char *left = a, *right = b;
    for (size_t i = 0; i < size; i++) {
        if (left[i] != right[i]) {
            report(false, file, line,
                   "does not hold: %s\n    byte %zu of %zu is 0x%02x, the other 0x%02x", text, i,
                   size, left[i], right[i]);
            return;
        }
    }
}

void test_check_status(long status, long expected, bool end, const char *text, const char *file,
                       int line) {
    if (status == expected) {
        return;
    }
    char why[2048] = "";
    if (test_explain != NULL) {
        test_explain(status, why, sizeof why);
    }
    report(end, file, line, "%s returned %ld, not %ld%s%s", text, status, expected,
           why[0] ? "\n    " : "", why);
}

void test_fail(const char *file, int line, const char *format, ...) {
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    report(false, file, line, "%s", text);
}

void test_skip(const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("skip: ");
    vprintf(format, list);
    printf("\n");
    va_end(list);
    if (test_before_skip != NULL) {
        test_before_skip();
    }
    leave(atomic_load(&failures) ? 1 : EXIT_SKIPPED);
}

void test_soil_stack(void) {
    volatile char old[32768];
    for (size_t i = 0; i < sizeof old; i++) old[i] = 'x';
}

const char *test_device(void) {
    const char *device = getenv("BULKHEAD_TEST_DEVICE");
    return device && device[0] ? device : "cpu";
}

const char *test_source_dir(void) {
    return getenv("BULKHEAD_SOURCE_DIR");
}

const char *test_build_dir(void) {
    return getenv("BULKHEAD_BUILD_DIR");
}

const char *test_tmp_dir(void) {
    return getenv("BULKHEAD_TEST_TMP");
}

unsigned test_time_scale(void) {
    return TEST_TIME_SCALE;
}

uint64_t test_span_ns(unsigned ms) {
    const char *whole = getenv("BULKHEAD_TEST_LONG");
    return (TEST_TIME_SCALE > 1 || (whole && *whole) ? 1000000ull : 400000ull) * ms;
}

const char *test_path(char *path, size_t size, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(path, size, format, list);
    va_end(list);
    REQUIRE(length >= 0 && (size_t)length < size);
    return path;
}

char *test_read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        report(true, __FILE__, __LINE__, "cannot open %s: %s", path, strerror(errno));
    }
    char *data = NULL;
    size_t size = 0, room = 0;
    for (;;) {
        if (room - size < 2) {
            room = room ? room * 2 : 65536;
            data = realloc(data, room);
            REQUIRE(data != NULL);
        }
        size_t got = fread(data + size, 1, room - size - 1, file);
        if (got == 0) {
            break;
        }
        size += got;
    }
    fclose(file);
    data[size] = '\0';
    if (out_size != NULL) {
        *out_size = size;
    }
    return data;
}

static void set_default_environment(void) {
    setenv("BULKHEAD_SOURCE_DIR", BULKHEAD_SOURCE_DIR, 0);
    setenv("BULKHEAD_BUILD_DIR", BULKHEAD_BUILD_DIR, 0);
    setenv("BULKHEAD_WORKER_DIR", BULKHEAD_BUILD_DIR "/bin", 0);
    setenv("BULKHEAD_BIN", BULKHEAD_BUILD_DIR "/bin/bulkhead", 0);
    if (getenv("BULKHEAD_TEST_TMP") == NULL) {
        char path[] = "/tmp/bulkhead-test-XXXXXX";
        if (mkdtemp(path) != NULL) {
            setenv("BULKHEAD_TEST_TMP", path, 1);
            char cache[600];
            snprintf(cache, sizeof cache, "%s/cache", path);
            setenv("BULKHEAD_CACHE_DIR", cache, 1);
            setenv("BULKHEAD_RUNTIME_DIR", path, 1);
        }
    }
}

static int list_tests(void) {
    for (struct test_case *test = tests; test != NULL; test = test->next) {
        printf("%s %u%s\n", test->name, test->seconds, test->serial ? " serial" : "");
    }
    return 0;
}

static int run_here(const char *name) {
    for (struct test_case *test = tests; test != NULL; test = test->next) {
        if (strcmp(test->name, name) == 0) {
            test->body();
            fflush(stdout);
            return atomic_load(&failures) ? 1 : 0;
        }
    }
    fprintf(stderr, "error: there is no test named %s\nFix: --list prints the names\n", name);
    return 2;
}

static int run_all(void) {
    int failed = 0;
    for (struct test_case *test = tests; test != NULL; test = test->next) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) {
            execl("/proc/self/exe", test->name, test->name, (char *)NULL);
            _exit(127);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) {
            perror("fork");
            return 1;
        }
        bool passed = WIFEXITED(status) && WEXITSTATUS(status) == 0;
        bool skipped = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SKIPPED;
        printf("%s %s\n", passed ? "ok  " : skipped ? "skip" : "FAIL", test->name);
        failed += !passed && !skipped;
    }
    return failed ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--list") == 0) {
        return list_tests();
    }
    set_default_environment();
    return argc > 1 ? run_here(argv[1]) : run_all();
}
