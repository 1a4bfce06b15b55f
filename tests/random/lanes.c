/* SPDX-License-Identifier: Apache-2.0 */
/* Random programs whose lanes diverge and meet: the device must compute what the reference does. */
#include "support/lanes.h"
#include "../support/support.h"

enum { WORDS = LANES_THREADS * LANES_WORDS };

/* False: the driver's compiler does not get through this program. */
static bool try_seed(bh_device device, uint64_t seed) {
    static char text[LANES_TEXT];
    static uint32_t expected[WORDS], got[WORDS];
    size_t length = lanes_program(seed, text, expected);
    bh_module module;
    bh_status status = bh_module_load(device, text, length, &module);
    if (status == BH_E_LOAD && !is_cpu(device)) return false;
    REQUIRE_OK(status);
    bh_buffer out = words_filled(device, WORDS, 0);
    REQUIRE_OK(run_now(get_kernel(module, "program"), BH_SHAPE(1, 1, 1, LANES_THREADS, 1, 1),
                       BH_ARGS(BH_INOUT(out))));
    REQUIRE_OK(bh_buffer_read(out, 0, got, sizeof got));
    for (unsigned i = 0; i < WORDS; i++)
        if (got[i] != expected[i])
            FAIL("seed %llu: word %u of thread %u is %u, expected %u", (unsigned long long)seed,
                 i % LANES_WORDS, i / LANES_WORDS, got[i], expected[i]);
    REQUIRE_OK(bh_buffer_release(out));
    REQUIRE_OK(bh_module_release(module));
    return true;
}

/* With BULKHEAD_RANDOM_LANES="FIRST COUNT" in the environment, tries these seeds. With
 * BULKHEAD_RANDOM_LANES="print SEED", prints the text. */
TEST_TIMEOUT(lanes_meet_as_the_reference_says, 600) {
    unsigned long long first = 1, count = 150, seed;
    const char *range = getenv("BULKHEAD_RANDOM_LANES");
    if (range && sscanf(range, "print %llu", &seed) == 1) {
        static char text[LANES_TEXT];
        static uint32_t expected[WORDS];
        lanes_program(seed, text, expected);
        fputs(text, stdout);
        return;
    }
    if (range) REQUIRE(sscanf(range, "%llu %llu", &first, &count) == 2);
    bh_device device = open_device();
    unsigned long long tried = 0;
    for (seed = first; seed < first + count; seed++) tried += try_seed(device, seed);
    CHECK_LE(count, 2 * tried);
    CHECK_OK(bh_device_close(device));
}

/* The checks find nothing, and change nothing. */
TEST_TIMEOUT(checked_lanes_meet_as_the_reference_says, 600) {
    bh_device plain = open_device();
    bool skip = !is_cpu(plain) || has_queues(plain);
    CHECK_OK(bh_device_close(plain));
    if (skip) SKIP("checks are for the CPU device without queues");
    bh_device_options options = device_options(BH_DEVICE_CHECK);
    bh_device device = open_device_with(&options);
    for (uint64_t seed = 1; seed <= 40; seed++) CHECK(try_seed(device, seed));
    CHECK_OK(bh_device_close(device));
}
