/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs: what runs them must agree. */
#include "../support/support.h"
#include "support/generate.h"

enum { WORDS = RANDOM_BLOCKS * RANDOM_THREADS * RANDOM_WORDS };

static uint64_t hash(uint64_t h, const uint32_t *words, size_t count) { /* FNV-1a */
    for (size_t i = 0; i < count; i++) h = (h ^ words[i]) * 0x100000001B3;
    return h;
}

/* Runs one program; `out` gets the words of the threads and then the cells. Drivers have compilers
 * that refuse a few of them. */
static bh_status run_program(bh_device device, uint64_t seed, uint32_t out[WORDS + RANDOM_CELLS]) {
    static char text[RANDOM_TEXT];
    bh_module module;
    size_t length = random_programs(seed, 1, text, sizeof text);
    bh_status status = bh_module_load(device, text, length, &module);
    if (status != BH_OK) return status;
    bh_buffer words = words_filled(device, WORDS, 0), cells = words_filled(device, RANDOM_CELLS, 0);
    REQUIRE_OK(run_now(get_kernel(module, "program0"),
                       BH_SHAPE(RANDOM_BLOCKS, 1, 1, RANDOM_THREADS, 1, 1),
                       BH_ARGS(BH_INOUT(words), BH_INOUT(cells))));
    REQUIRE_OK(bh_buffer_read(words, 0, out, WORDS * 4));
    REQUIRE_OK(bh_buffer_read(cells, 0, out + WORDS, RANDOM_CELLS * 4));
    REQUIRE_OK(bh_buffer_release(words));
    REQUIRE_OK(bh_buffer_release(cells));
    REQUIRE_OK(bh_module_release(module));
    return BH_OK;
}

static bh_status answer(bh_device device, uint64_t seed, uint64_t *got) {
    static uint32_t out[WORDS + RANDOM_CELLS];
    bh_status status = run_program(device, seed, out);
    *got = hash(0xCBF29CE484222325, out, WORDS + RANDOM_CELLS);
    return status;
}

/* With BULKHEAD_RANDOM="FIRST COUNT" in the environment, prints the answers of these seeds. */
static bool print_answers(bh_device device) {
    const char *range = getenv("BULKHEAD_RANDOM");
    unsigned long long first, count;
    if (!range || sscanf(range, "%llu %llu", &first, &count) != 2) return false;
    for (unsigned long long i = first; i < first + count; i++) {
        uint64_t got;
        if (answer(device, i, &got) == BH_OK)
            printf("answer %llu %016llx\n", i, (unsigned long long)got);
        else
            printf("refused %llu: %s\n", i, bh_last_message());
    }
    return true;
}

TEST_TIMEOUT(checks_find_nothing_in_them, 600) {
    bh_device plain = open_device();
    if (print_answers(plain)) return;
    if (!is_cpu(plain) || has_queues(plain)) SKIP("checks are for the CPU device without queues");
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    bh_device device = open_device_with(&options);
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t checked, unchecked;
        REQUIRE_OK(answer(device, seed, &checked));
        REQUIRE_OK(answer(plain, seed, &unchecked));
        CHECK_EQ(checked, unchecked);
    }
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_device_close(plain));
}

/* The interpreter gave these, and tests/random/devices.c compares devices with it. */
TEST_TIMEOUT(answers_are_those_recorded, 300) {
    char path[4096];
    unsigned long long seed, recorded;
    unsigned count = 0;
    test_path(path, sizeof path, "%s/tests/random/answers.txt", test_source_dir());
    FILE *file = fopen(path, "r");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fscanf(file, "%*[^\n]"), 0); /* the license */
    bh_device device = open_device();
    bool cpu = is_cpu(device);
    for (; fscanf(file, " answer %llu %llx", &seed, &recorded) == 2; count++) {
        uint64_t got;
        bh_status status = answer(device, seed, &got);
        if (status != BH_OK && !cpu) continue; /* a driver's compiler refused it */
        REQUIRE_OK(status);
        if (got != recorded)
            FAIL("seed %llu: 0x%llx, not 0x%llx", seed, (unsigned long long)got, recorded);
    }
    CHECK_EQ(feof(file) != 0, true);
    CHECK_EQ(count, 400);
    CHECK_OK(bh_device_close(device));
    fclose(file);
}
