/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on the device under test and on the interpreter: every word must be the same.
 * Where the device is the CPU, it runs native code, so this compares the JIT with the interpreter.
 *
 * With BULKHEAD_RANDOM_DEVICES="FIRST COUNT" in the environment these seeds are tried. By itself
 * the test tries few of them with the JIT, which takes up to a second for a program.
 */
#include <pthread.h>
#include <unistd.h>

#include "../support/support.h"
#include "support/generate.h"

enum {
    WORDS = RANDOM_BLOCKS * RANDOM_THREADS * RANDOM_WORDS,
    OUT = WORDS + RANDOM_CELLS, /* words that a program writes */
    BATCH = 16,                 /* programs of a module: loading costs more than running */
    NATIVE_BATCH = 4,           /* a load waits four seconds for native code at most */
    MAX_WORKERS = 16,
    SHOWN = 8
};
#define WAIT_NS (4 * LONG_NS)

static struct {
    pthread_mutex_t lock;
    uint64_t next, end;
    unsigned batch, done, refused, wrong;
} work = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* A device and what the programs of a batch write, and a copy of that. */
typedef struct side {
    bh_device device;
    bh_buffer out, words[BATCH], cells[BATCH];
    bh_module module;
    bh_ticket tickets[BATCH];
    char why[300]; /* the last launch that failed did */
    uint32_t got[BATCH][OUT];
} side;

static side *side_open(const bh_device_options *options) {
    side *s = calloc(1, sizeof *s);
    REQUIRE(s != NULL);
    s->device = open_device_with(options);
    s->out = words_alloc(s->device, (uint64_t)BATCH * OUT);
    for (uint64_t i = 0; i < BATCH; i++) {
        REQUIRE_OK(bh_buffer_view(s->out, 0, i * OUT, WORDS, &s->words[i]));
        REQUIRE_OK(bh_buffer_view(s->out, 0, i * OUT + WORDS, RANDOM_CELLS, &s->cells[i]));
    }
    return s;
}

static void side_close(side *s) {
    for (unsigned i = 0; i < BATCH; i++) {
        CHECK_OK(bh_buffer_release(s->words[i]));
        CHECK_OK(bh_buffer_release(s->cells[i]));
    }
    CHECK_OK(bh_buffer_release(s->out));
    CHECK_OK(bh_device_close(s->device));
    free(s);
}

static void launch(side *s, unsigned count) {
    uint32_t zero = 0;
    char name[32];
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = LONG_NS;
    REQUIRE_OK(bh_buffer_fill(s->out, 0, (uint64_t)count * OUT * 4, &zero, sizeof zero));
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, "program%u", i);
        s->tickets[i] =
            submit(get_kernel(s->module, name), BH_SHAPE(RANDOM_BLOCKS, 1, 1, RANDOM_THREADS, 1, 1),
                   BH_ARGS(BH_INOUT(s->words[i]), BH_INOUT(s->cells[i])), &options);
    }
}

/* False: a launch failed, and there are no results. */
static bool finish(side *s, unsigned count) {
    bool good = true;
    for (unsigned i = 0; i < count; i++) {
        if (bh_wait(s->tickets[i], WAIT_NS) == BH_OK) continue;
        if (good) snprintf(s->why, sizeof s->why, "%s", bh_last_message());
        good = false;
    }
    if (good) REQUIRE_OK(bh_buffer_read(s->out, 0, s->got, (uint64_t)count * OUT * 4));
    REQUIRE_OK(bh_module_release(s->module));
    return good;
}

static void count_results(unsigned done, unsigned refused, unsigned wrong) {
    pthread_mutex_lock(&work.lock);
    work.done += done;
    work.refused += refused;
    work.wrong += wrong;
    pthread_mutex_unlock(&work.lock);
}

/* The first word that differs; OUT: none does. */
static unsigned first_difference(const uint32_t *got, const uint32_t *expected) {
    unsigned i = 0;
    while (i < OUT && got[i] == expected[i]) i++;
    return i;
}

static void name_word(char *out, size_t size, unsigned i, uint32_t got, uint32_t expected) {
    snprintf(out, size, "word %u of %s %u is 0x%x, on the interpreter 0x%x",
             i < WORDS ? i % RANDOM_WORDS : i - WORDS, i < WORDS ? "thread" : "the cells, thread",
             i < WORDS ? i / RANDOM_WORDS : 0, got, expected);
}

/* Whether the sides do the same with the first statements of a program; says what not. */
static bool agree(side *tested, side *reference, char *text, uint64_t seed, unsigned statements,
                  char *what, size_t size) {
    size_t length = random_part(seed, statements, text, (size_t)BATCH * RANDOM_TEXT);
    if (bh_module_load(tested->device, text, length, &tested->module) != BH_OK) return true;
    REQUIRE_OK(bh_module_load(reference->device, text, length, &reference->module));
    launch(tested, 1);
    launch(reference, 1);
    REQUIRE(finish(reference, 1));
    if (!finish(tested, 1)) {
        snprintf(what, size, "%s", tested->why);
        return false;
    }
    unsigned i = first_difference(tested->got[0], reference->got[0]);
    if (i < OUT) name_word(what, size, i, tested->got[0][i], reference->got[0][i]);
    return i == OUT;
}

/* Finds statements with which the sides differ, and without the last of which they do not. */
static void reduce(side *tested, side *reference, char *text, uint64_t seed) {
    unsigned good = 0, bad = RANDOM_STATEMENTS;
    char what[300] = "";
    while (bad - good > 1) {
        unsigned middle = good + (bad - good) / 2;
        if (agree(tested, reference, text, seed, middle, what, sizeof what))
            good = middle;
        else
            bad = middle;
    }
    if (!*what) return; /* only the whole program differs, and not each time */
    char *without = malloc(RANDOM_TEXT);
    REQUIRE(without != NULL);
    random_part(seed, good, without, RANDOM_TEXT);
    random_part(seed, bad, text, RANDOM_TEXT);
    const char *last = text;
    for (size_t i = 0; text[i] && text[i] == without[i]; i++)
        if (text[i] == '\n') last = text + i + 1;
    printf("seed %llu: its first %u statements are enough: %s. The last one begins\n%.400s\n",
           (unsigned long long)seed, bad, what, last);
    free(without);
}

static bool compare(uint64_t seed, const uint32_t *got, const uint32_t *expected) {
    char what[200];
    unsigned i = first_difference(got, expected);
    if (i == OUT) return true;
    name_word(what, sizeof what, i, got[i], expected[i]);
    FAIL("seed %llu: %s", (unsigned long long)seed, what);
    return false;
}

static void try_programs(side *tested, side *reference, char *text, uint64_t seed, unsigned count);

static void try_halves(side *tested, side *reference, char *text, uint64_t seed, unsigned count) {
    try_programs(tested, reference, text, seed, count / 2);
    try_programs(tested, reference, text, seed + count / 2, count - count / 2);
}

/* Compilers of drivers refuse a few programs: a batch with such a program is halved, and one with a
 * program that ends its worker. */
static void try_programs(side *tested, side *reference, char *text, uint64_t seed, unsigned count) {
    size_t length = random_programs(seed, count, text, (size_t)BATCH * RANDOM_TEXT);
    if (bh_module_load(tested->device, text, length, &tested->module) != BH_OK) {
        if (count > 1) {
            try_halves(tested, reference, text, seed, count);
            return;
        }
        printf("seed %llu is refused: %s\n", (unsigned long long)seed, bh_last_message());
        count_results(0, 1, 0);
        return;
    }
    launch(tested, count);
    REQUIRE_OK(bh_module_load(reference->device, text, length, &reference->module));
    launch(reference, count);
    REQUIRE(finish(reference, count));
    bool ended = !finish(tested, count);
    if (ended && count > 1) {
        try_halves(tested, reference, text, seed, count);
        return;
    }
    if (ended) FAIL("seed %llu: %s", (unsigned long long)seed, tested->why);
    bool wrong[BATCH] = {ended};
    unsigned sum = ended;
    for (unsigned i = 0; i < count && !ended && sum < SHOWN; i++)
        sum += wrong[i] = !compare(seed + i, tested->got[i], reference->got[i]);
    for (unsigned i = 0; i < count; i++)
        if (wrong[i]) reduce(tested, reference, text, seed + i);
    count_results(count, 0, sum);
}

static bh_device_options tested_options(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    if (getenv("BULKHEAD_EXECUTOR") == NULL) options.executor = BH_EXECUTE_JIT;
    return options;
}

static void *take_seeds(void *unused) {
    bh_device_options options = tested_options();
    side *tested = side_open(&options);
    options = device_options(BH_DEVICE_NO_STANDBY);
    options.device = "cpu";
    options.executor = BH_EXECUTE_INTERPRETER;
    side *reference = side_open(&options);
    char *text = malloc((size_t)BATCH * RANDOM_TEXT);
    REQUIRE(text != NULL);
    for (;;) {
        pthread_mutex_lock(&work.lock);
        uint64_t first = work.next, left = work.end - first;
        unsigned count = left < work.batch ? (unsigned)left : work.batch;
        work.next += count;
        bool enough = work.wrong >= SHOWN;
        pthread_mutex_unlock(&work.lock);
        if (count == 0 || enough) break;
        try_programs(tested, reference, text, first, count);
    }
    free(text);
    side_close(tested);
    side_close(reference);
    return unused;
}

/* Native code of a program that is not too long. Skips where there is none at all. */
static void need_native(bh_device device) {
    static char text[RANDOM_TEXT];
    bh_module module;
    bh_kernel_info info = BH_INIT(info);
    size_t length = random_programs(1, 1, text, sizeof text);
    REQUIRE_OK(bh_module_load(device, text, length, &module));
    REQUIRE_OK(bh_kernel_get_info(get_kernel(module, "program0"), &info));
    if (strstr(info.executor_note, "no native code")) SKIP("%s", info.executor_note);
    REQUIRE_OK(bh_module_release(module));
}

static void choose_seeds(bool native) {
    const char *range = getenv("BULKHEAD_RANDOM_DEVICES");
    unsigned long long first = 1, count = native ? 16 : 400;
    if (range) REQUIRE_EQ(sscanf(range, "%llu %llu", &first, &count), 2);
    work.next = first;
    work.end = first + count;
    work.batch = native ? NATIVE_BATCH : BATCH;
}

TEST_TIMEOUT(devices_agree, 600) {
    pthread_t workers[MAX_WORKERS];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    bh_device_options options = tested_options();
    bh_device device = open_device_with(&options);
    bool cpu = is_cpu(device);
    bool native = cpu && options.executor == BH_EXECUTE_JIT;
    if (native) need_native(device);
    CHECK_OK(bh_device_close(device));
    choose_seeds(native);
    unsigned total = (unsigned)(work.end - work.next);
    unsigned count = processors < MAX_WORKERS ? (unsigned)processors : MAX_WORKERS;
    for (unsigned i = 0; i < count; i++)
        REQUIRE_EQ(pthread_create(&workers[i], NULL, take_seeds, NULL), 0);
    for (unsigned i = 0; i < count; i++) pthread_join(workers[i], NULL);
    printf("%u of %u programs ran, %u differ, %u refused\n", work.done, total, work.wrong,
           work.refused);
    CHECK_EQ(work.wrong, 0);
    CHECK_EQ(work.done + work.refused, total);
    CHECK(work.refused <= (cpu ? 0 : total / 50));
}
