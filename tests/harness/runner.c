/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-test-runner: finds the tests, runs several at a time, says what came of them. */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { DEFAULT_SECONDS = 30, SHOWN_BYTES = 32768, MAX_FILTERS = 16, LONGEST_AGAIN_S = 60 };

static struct {
    const char *filters[MAX_FILTERS];
    size_t filter_count;
    char **files;
    size_t file_count;
    unsigned jobs;
    unsigned timeout;
    unsigned again;   /* times that a failed test must pass when it is run again */
    unsigned longest; /* how many of those that used most processor time are listed at the end */
    bool list;
    bool keep;
    char scratch[4096]; /* where the tests' directories are */
    char self[4096];
} options;

static struct job *jobs;
static size_t job_count;

unsigned test_scale(void) {
    const char *device = getenv("BULKHEAD_TEST_DEVICE");
    bool slow = device && *device && strcmp(device, "cpu") != 0;
    return slow ? 4 * TEST_TIME_SCALE : TEST_TIME_SCALE;
}

char *format_text(const char *format, ...) {
    char *text = NULL;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    if (length < 0) {
        abort();
    }
    return text;
}

void die(const char *format, ...) {
    va_list list;
    va_start(list, format);
    fflush(stdout);
    fprintf(stderr, "error: ");
    vfprintf(stderr, format, list);
    fprintf(stderr, "\n");
    va_end(list);
    exit(TEST_FAILED);
}

char *read_file(const char *path) {
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return NULL;
    }
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    char block[8192];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0) {
        fwrite(block, 1, got, stream);
    }
    fclose(file);
    fclose(stream);
    return text;
}

static bool is_wanted(const char *name) {
    for (size_t i = 0; i < options.filter_count; i++) {
        if (strstr(name, options.filters[i]) != NULL) {
            return true;
        }
    }
    return options.filter_count == 0;
}

static void add_job(char *name, const char *program, const char *argument, const char *second,
                    unsigned seconds, bool serial) {
    if (!is_wanted(name)) {
        return;
    }
    jobs = realloc(jobs, (job_count + 1) * sizeof *jobs);
    if (jobs == NULL) {
        abort();
    }
    if (seconds == 0) {
        seconds = options.timeout;
    }
    struct job job = {.name = name,
                      .argv = {strdup(program), argument ? strdup(argument) : NULL,
                               second ? strdup(second) : NULL, NULL},
                      .seconds = seconds * test_scale(),
                      .number = job_count,
                      .serial = serial,
                      .directory = format_text("%s/%zu", options.scratch, job_count)};
    jobs[job_count++] = job;
}

/* The tests of one program, as it lists them: a line of name, seconds and perhaps "serial" each. */
static void add_program(char *program) {
    char *argv[] = {program, "--list", NULL};
    char *text = process_read(argv);
    const char *base = strrchr(program, '/') + 1;
    if (text == NULL) {
        /* Reported as a failed test rather than ending the run: running it shows what is wrong. */
        add_job(format_text("%s/--list", base), program, "--list", NULL, 0, false);
        return;
    }
    char *rest = text;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char name[256], serial[16] = "";
        unsigned seconds = 0;
        if (sscanf(line, "%255s %u %15s", name, &seconds, serial) < 2) {
            die("%s --list printed: %s", program, line);
        }
        add_job(format_text("%s/%s", base, name), program, name, NULL, seconds, serial[0] != '\0');
    }
    free(text);
}

static void add_programs(void) {
    char *text = read_file(BULKHEAD_BUILD_DIR "/tests/programs.txt");
    if (text == NULL) {
        die("there is no " BULKHEAD_BUILD_DIR "/tests/programs.txt");
    }
    char *rest = text;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        add_program(line);
    }
    free(text);
}

/* Looks for TIMEOUT: and SERIAL: in the comment at the top of a file. */
static void read_settings(const char *path, unsigned *seconds, bool *serial) {
    FILE *file = fopen(path, "re");
    char line[512];
    while (file != NULL && fgets(line, sizeof line, file) != NULL && strchr("#/\n", line[0])) {
        const char *text = line + strspn(line, " /#");
        sscanf(text, "TIMEOUT: %u", seconds);
        *serial = *serial || strncmp(text, "SERIAL:", 7) == 0;
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool ends_with(const char *text, const char *end) {
    size_t length = strlen(text), end_length = strlen(end);
    return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* A script, a golden file or a test program, by its absolute path. */
static void add_file(char *path) {
    const char *tests = BULKHEAD_SOURCE_DIR "/tests/";
    size_t skip = strncmp(path, tests, strlen(tests)) == 0 ? strlen(tests) : 0;
    unsigned seconds = 0;
    bool serial = false;
    read_settings(path, &seconds, &serial);
    if (ends_with(path, ".ptx") || ends_with(path, ".test")) {
        add_job(strdup(path + skip), options.self, "--golden", path, seconds, serial);
    } else if (!ends_with(path, ".sh")) {
        add_program(path);
    } else if (access(path, X_OK) == 0) {
        add_job(strdup(path + skip), path, NULL, NULL, seconds, serial);
    } else {
        add_job(strdup(path + skip), "/bin/sh", path, NULL, seconds, serial);
    }
}

static void add_files(const char *pattern) {
    glob_t found;
    char *full = format_text("%s/tests/%s", BULKHEAD_SOURCE_DIR, pattern);
    if (glob(full, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            add_file(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    free(full);
}

/* What the command line names, or else all there is. */
static void add_everything(void) {
    for (size_t i = 0; i < options.file_count; i++) {
        char *path = realpath(options.files[i], NULL);
        if (path == NULL) {
            die("%s: %s", options.files[i], strerror(errno));
        }
        add_file(path);
    }
    if (options.file_count == 0) {
        add_programs();
        add_files("ptx/*.ptx");
        add_files("cli/*.test");
        add_files("*/*.sh");
    }
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *place) {
    (void)info;
    (void)place;
    if (type == FTW_DNR) {
        chmod(path, 0700);
    }
    remove(path);
    return 0;
}

static void remove_tree(const char *path) {
    nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The last bytes of a file, indented. */
static void show_file(const char *path) {
    char *text = read_file(path);
    if (text == NULL) {
        return;
    }
    size_t length = strlen(text);
    char *start = text;
    if (length > SHOWN_BYTES) {
        start = text + length - SHOWN_BYTES;
        printf("    (%zu bytes before this)\n", length - SHOWN_BYTES);
    }
    char *rest = start;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        printf("    %s\n", line);
    }
    free(text);
}

static void show_failure(const struct job *job) {
    glob_t found;
    char *output = format_text("%s/output", job->directory);
    char *reports = format_text("%s/san.*", job->directory);
    show_file(output);
    if (glob(reports, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc; i++) {
            show_file(found.gl_pathv[i]);
        }
        globfree(&found);
    }
    free(output);
    free(reports);
}

static void report(const struct job *job) {
    unsigned long long ms = (job->ended - job->started) / 1000000;
    switch (job->result) {
    case TEST_PASSED:
        printf("ok    %s (%llu ms)\n", job->name, ms);
        break;
    case TEST_SKIPPED:
        printf("skip  %s: %s (%llu ms)\n", job->name, job->why, ms);
        break;
    default:
        printf("FAIL  %s: %s (%llu ms)\n", job->name, job->why, ms);
        show_failure(job);
    }
    fflush(stdout);
    if (!options.keep) {
        remove_tree(job->directory);
    }
}

static uint64_t milliseconds(const struct timeval *time) {
    return (uint64_t)time->tv_sec * 1000 + (uint64_t)time->tv_usec / 1000;
}

static void wait_for_one(void) {
    int status;
    struct rusage used;
    pid_t pid = wait4(-1, &status, 0, &used);
    if (pid < 0 && errno != EINTR) {
        die("waitpid: %s", strerror(errno));
    }
    for (size_t i = 0; i < job_count; i++) {
        if (pid > 0 && jobs[i].watcher == pid) {
            process_finish(&jobs[i], status);
            jobs[i].used_ms = milliseconds(&used.ru_utime) + milliseconds(&used.ru_stime);
            report(&jobs[i]);
        }
    }
}

/* The longer a test may take, the earlier it starts: one that started last would end alone. */
static int compare_limits(const void *left, const void *right) {
    const struct job *a = left, *b = right;
    if (a->seconds != b->seconds) {
        return a->seconds < b->seconds ? 1 : -1;
    }
    return a->number < b->number ? -1 : 1;
}

static void run_jobs(bool serial) {
    unsigned limit = serial ? 1 : options.jobs, running = 0;
    for (size_t i = 0; i < job_count; i++) {
        if (jobs[i].serial == serial) {
            for (; running >= limit; running--) {
                wait_for_one();
            }
            process_start(&jobs[i]);
            running++;
        }
    }
    for (; running > 0; running--) {
        wait_for_one();
    }
}

/* Runs a failed test again, with no other beside it. It must pass each time. */
static void run_again(struct job *job) {
    char first[sizeof job->why];
    memcpy(first, job->why, sizeof first);
    for (unsigned i = 0; i < options.again; i++) {
        free(job->directory);
        job->directory = format_text("%s/%zu-again-%u", options.scratch, (size_t)(job - jobs), i);
        process_start(job);
        wait_for_one();
        if (job->result != TEST_PASSED) {
            return;
        }
    }
    job->unreliable = true;
    memcpy(job->why, first, sizeof first);
}

/* A busy machine can make a check fail that depends on time, and must not decide whether a change
 * is good. It cannot cause a crash or a sanitizer's report: what is broken stays failed. So does
 * what takes long, to save time. */
static void run_failed_again(void) {
    for (size_t i = 0; i < job_count && options.again > 0; i++) {
        uint64_t seconds = (jobs[i].ended - jobs[i].started) / 1000000000;
        if (jobs[i].result == TEST_FAILED && seconds <= LONGEST_AGAIN_S) {
            run_again(&jobs[i]);
        }
    }
}

static void list_unreliable(void) {
    unsigned count = 0;
    for (size_t i = 0; i < job_count; i++) {
        if (jobs[i].unreliable && count++ == 0) {
            printf("\nunreliable (failed, then passed %u times when run again):\n", options.again);
        }
        if (jobs[i].unreliable) {
            printf("  %s: %s\n", jobs[i].name, jobs[i].why);
        }
    }
}

static int compare_used(const void *left, const void *right) {
    const struct job *a = *(struct job *const *)left, *b = *(struct job *const *)right;
    return a->used_ms == b->used_ms ? 0 : a->used_ms < b->used_ms ? 1 : -1;
}

static void list_longest(void) {
    struct job **sorted = calloc(job_count + 1, sizeof *sorted);
    unsigned long long sum = 0;
    for (size_t i = 0; i < job_count; i++) {
        sorted[i] = &jobs[i];
        sum += jobs[i].used_ms;
    }
    qsort(sorted, job_count, sizeof(struct job *), compare_used);
    printf("\nprocessor time, %llu ms in all:\n", sum);
    for (size_t i = 0; i < job_count && i < options.longest; i++) {
        printf("  %7llu ms in %7llu ms  %s\n", (unsigned long long)sorted[i]->used_ms,
               (unsigned long long)(sorted[i]->ended - sorted[i]->started) / 1000000,
               sorted[i]->name);
    }
    free(sorted);
}

static unsigned list_results(const char *title, int result) {
    unsigned count = 0;
    for (size_t i = 0; i < job_count; i++) {
        if (jobs[i].result == result && count++ == 0) {
            printf("\n%s:\n", title);
        }
        if (jobs[i].result == result) {
            printf("  %s: %s\n", jobs[i].name, jobs[i].why);
        }
    }
    return count;
}

/* Workers that were chosen stay chosen, also for tests that run in folders of their own. */
static void set_worker_dir(void) {
    const char *given = getenv("BULKHEAD_WORKER_DIR");
    char *path = realpath(given ? given : BULKHEAD_BUILD_DIR "/bin", NULL);
    if (path == NULL) {
        die("BULKHEAD_WORKER_DIR: %s: %s", given ? given : BULKHEAD_BUILD_DIR "/bin",
            strerror(errno));
    }
    setenv("BULKHEAD_WORKER_DIR", path, 1);
    free(path);
}

static void set_environment(void) {
    const char *path = getenv("PATH");
    setenv("BULKHEAD_SOURCE_DIR", BULKHEAD_SOURCE_DIR, 1);
    setenv("BULKHEAD_BUILD_DIR", BULKHEAD_BUILD_DIR, 1);
    set_worker_dir();
    setenv("BULKHEAD_BIN", BULKHEAD_BUILD_DIR "/bin/bulkhead", 1);
    setenv("BULKHEAD_SANITIZE", BULKHEAD_SANITIZE, 1);
    setenv("LC_ALL", "C", 1);
    setenv("PATH", format_text("%s/bin:%s", BULKHEAD_BUILD_DIR, path ? path : "/usr/bin:/bin"), 1);
    /* Builds inside tests must not take part in the make that started the runner. */
    unsetenv("MAKEFLAGS");
    unsetenv("MFLAGS");
    unsetenv("MAKELEVEL");
    unsetenv("DESTDIR");
}

static unsigned processors(void) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static void usage(FILE *stream) {
    fprintf(
        stream,
        "usage: bulkhead-test-runner [options] [FILE...]\n"
        "Runs test programs, scripts (.sh) and golden files (.ptx, .test); else all there are.\n"
        "  --filter TEXT   only tests whose name contains TEXT; may be given several times\n"
        "  --jobs N        tests at a time (default: one for each processor)\n"
        "  --timeout S     for tests that name no limit of their own (default %d)\n"
        "  --list          print the names and run nothing\n"
        "  --longest N     list the N tests that used the most processor time\n"
        "  --keep          leave the tests' directories in place\n"
        "BULKHEAD_TEST_AGAIN=N runs tests that failed again, alone, unless they crashed: one that\n"
        "then passes N times is listed as unreliable and counts as passed.\n"
        "BULKHEAD_TEST_CACHE names a folder that all tests take as their cache of kernels, in place\n"
        "of an empty one for each.\n"
        "BULKHEAD_WORKER_DIR names a folder with other workers than those of the build.\n",
        DEFAULT_SECONDS);
}

static unsigned parse_number(const char *option, const char *text) {
    char *end;
    unsigned long value = text ? strtoul(text, &end, 10) : 0;
    if (text == NULL || *end != '\0' || value == 0 || value > 100000) {
        die("%s needs a number from 1 to 100000", option);
    }
    return (unsigned)value;
}

static void parse_options(int argc, char **argv) {
    options.jobs = processors();
    options.timeout = DEFAULT_SECONDS;
    const char *again = getenv("BULKHEAD_TEST_AGAIN");
    options.again = again && *again ? parse_number("BULKHEAD_TEST_AGAIN", again) : 0;
    options.files = calloc((size_t)argc, sizeof *options.files);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--filter") == 0 && value && options.filter_count < MAX_FILTERS) {
            options.filters[options.filter_count++] = argv[++i];
        } else if (strcmp(argv[i], "--jobs") == 0) {
            options.jobs = parse_number(argv[i++], value);
        } else if (strcmp(argv[i], "--timeout") == 0) {
            options.timeout = parse_number(argv[i++], value);
        } else if (strcmp(argv[i], "--longest") == 0) {
            options.longest = parse_number(argv[i++], value);
        } else if (strcmp(argv[i], "--list") == 0) {
            options.list = true;
        } else if (strcmp(argv[i], "--keep") == 0) {
            options.keep = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            usage(stdout);
            exit(0);
        } else if (argv[i][0] != '-') {
            options.files[options.file_count++] = argv[i];
        } else {
            usage(stderr);
            exit(2);
        }
    }
}

static void make_scratch(void) {
    snprintf(options.scratch, sizeof options.scratch, BULKHEAD_BUILD_DIR "/tests/run-XXXXXX");
    if (mkdtemp(options.scratch) == NULL) {
        die("cannot make %s: %s", options.scratch, strerror(errno));
    }
}

int main(int argc, char **argv) {
    ssize_t length = readlink("/proc/self/exe", options.self, sizeof options.self - 1);
    if (length <= 0) {
        die("readlink /proc/self/exe: %s", strerror(errno));
    }
    if (argc == 3 && strcmp(argv[1], "--golden") == 0) {
        return golden_run(argv[2]);
    }
    parse_options(argc, argv);
    set_environment();
    make_scratch();
    add_everything();
    if (options.list) {
        for (size_t i = 0; i < job_count; i++) {
            printf("%s\n", jobs[i].name);
        }
        remove_tree(options.scratch);
        return 0;
    }
    uint64_t started = now_ns();
    qsort(jobs, job_count, sizeof *jobs, compare_limits);
    run_jobs(false);
    run_jobs(true);
    run_failed_again();
    if (!options.keep) {
        remove_tree(options.scratch);
    }
    if (options.longest > 0) {
        list_longest();
    }
    unsigned skipped = list_results("skipped", TEST_SKIPPED);
    unsigned passed = 0;
    for (size_t i = 0; i < job_count; i++) {
        passed += jobs[i].result == TEST_PASSED;
        if (jobs[i].result != TEST_PASSED && jobs[i].result != TEST_SKIPPED) {
            jobs[i].result = TEST_FAILED;
        }
    }
    list_unreliable();
    unsigned failed = list_results("failed", TEST_FAILED);
    printf("\n%.1f s%s\n", (double)(now_ns() - started) / 1e9,
           BULKHEAD_SANITIZE[0] ? ", with the " BULKHEAD_SANITIZE " sanitizer" : "");
    if (job_count == 0) {
        printf("no test has such a name\n");
    }
    printf("%u passed, %u failed", passed, failed);
    if (skipped > 0) {
        printf(", %u skipped", skipped);
    }
    printf("\n");
    return failed > 0 || job_count == 0 ? 1 : 0;
}
