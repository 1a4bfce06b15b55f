/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels on a worker: modules, launches on one core and on all, faults, printing, variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "kernels.h"
#include "support/driver.h"
#include "test.h"

enum { BASIC = 1, GLOBALS = 2, PRINTF = 3, ASSERT = 4, OTHER = 5 };

static const char *const no_params = "";

/* Reads device memory through the worker to the start of the host region. */
static const void *fetch(driver *d, uint32_t lane, uint64_t offset, uint64_t bytes) {
    bh__copy_body body = {.source = DRIVER_BASE + offset, .bytes = bytes, .host = 1};
    uint64_t last = driver_submit(d, lane, BH__OP_READ, &body, sizeof body, NULL, 0, NULL);
    REQUIRE(driver_wait(d, lane, last, 10000));
    return d->host;
}

struct iota {
    uint64_t p;
    uint32_t base, n;
};

TEST(runs_a_kernel) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    struct iota iota = {DRIVER_BASE + 256, 100, 1000};
    uint64_t last = driver_launch(d, 0, BASIC, "iota", 8, 128, &iota);
    REQUIRE(driver_wait(d, 0, last, 10000));
    const uint32_t *got = fetch(d, 0, 256, 4000);
    for (uint32_t i = 0; i < 1000; i++) REQUIRE_EQ(got[i], 100 + i);
    CHECK_EQ(atomic_load(&d->area->reports_made), 0);
    driver_close(d);
}

TEST(runs_large_grids) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    struct iota iota = {DRIVER_BASE, 7, 200000};
    for (int round = 0; round < 5; round++) {
        iota.base = (uint32_t)round * 1000;
        uint64_t last = driver_launch(d, 0, BASIC, "iota", 200000 / 64, 64, &iota);
        REQUIRE(driver_wait(d, 0, last, 20000));
        const uint32_t *got = fetch(d, 0, 0, 800000);
        for (uint32_t i = 0; i < 200000; i++) REQUIRE_EQ(got[i], iota.base + i);
    }
    struct {
        uint64_t p;
        uint32_t seed, rounds;
    } spin = {DRIVER_BASE, 3, 1000};
    uint64_t last = driver_launch(d, 0, BASIC, "spin", 64, 32, &spin);
    REQUIRE(driver_wait(d, 0, last, 20000));
    const uint32_t *got = fetch(d, 0, 0, 64 * 32 * 4);
    for (uint32_t i = 0; i < 64 * 32; i++) REQUIRE_EQ(got[i], spin_word(3 + i, 1000));
    driver_close(d);
}

TEST(runs_three_dimensions) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    uint64_t p = DRIVER_BASE;
    bh__launch_body body = driver_body(d, BASIC, "geometry", 3, 2);
    memcpy(body.grid, (uint32_t[]){3, 2, 4}, sizeof body.grid);
    memcpy(body.block, (uint32_t[]){2, 3, 2}, sizeof body.block);
    REQUIRE(driver_wait(d, 0, driver_launch_with(d, 0, &body, &p, NULL), 10000));
    const uint32_t *got = fetch(d, 0, 0, 24 * 12 * 48);
    for (uint32_t i = 0; i < 24; i++) {
        const uint32_t *block = got + i * 12 * 12;
        CHECK_EQ(block[0], i % 3);
        CHECK_EQ(block[1], i / 3 % 2);
        CHECK_EQ(block[2], i / 6);
        CHECK_EQ(block[6] * 100 + block[7] * 10 + block[8], 324);
    }
    driver_close(d);
}

TEST(parameters_wrap_round_the_ring) {
    driver *d = driver_ready(32);
    enum { COUNT = 500 };
    char *text = ptx_many_params(COUNT);
    driver_module(d, OTHER, text);
    free(text);
    uint64_t params[COUNT + 1], sum = 0;
    for (uint64_t i = 0; i < COUNT; i++) sum += params[i] = i * i + 1;
    params[COUNT] = DRIVER_BASE;
    for (int i = 0; i < 20; i++) {
        params[0]++;
        sum++;
        uint64_t last = driver_launch(d, 0, OTHER, "big", 1, 1, params);
        REQUIRE(driver_wait(d, 0, last, 10000));
        uint64_t got;
        memcpy(&got, fetch(d, 0, 0, 8), sizeof got);
        REQUIRE_EQ(got, sum);
    }
    driver_close(d);
}

TEST(refuses_impossible_launches) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    uint64_t params[4] = {DRIVER_BASE};
    bh__launch_body good = driver_body(d, BASIC, "store_word", 1, 1), bad[8];
    for (int i = 0; i < 8; i++) bad[i] = good;
    bad[0].block[0] = 2048;
    bad[1].block[1] = 0;
    bad[2].grid[1] = 70000;
    bad[3].shared_bytes = 228 * 1024;
    bad[4].param_bytes += 8;
    bad[5].cluster[0] = 2;
    bad[6].module = 9;
    bad[7].kernel = 1000;
    bh_status expected[8] = {BH_E_LAUNCH, BH_E_LAUNCH, BH_E_LAUNCH,   BH_E_LAUNCH,
                             BH_E_LAUNCH, BH_E_LAUNCH, BH_E_INTERNAL, BH_E_INTERNAL};
    for (int i = 0; i < 8; i++) {
        uint64_t last = driver_launch_with(d, 0, &bad[i], params, NULL);
        REQUIRE(driver_wait(d, 0, last, 5000));
        REQUIRE_EQ(atomic_load(&d->area->reports_made), i + 1);
        CHECK_EQ(d->area->reports[i].status, expected[i]);
        CHECK(d->area->reports[i].fix[0] != 0);
    }
    REQUIRE(driver_wait(d, 0, driver_launch_with(d, 0, &good, params, NULL), 5000));
    CHECK_EQ(atomic_load(&d->area->reports_made), 8);
    driver_close(d);
}

TEST(refuses_images_that_are_not_ptx) {
    driver *d = driver_ready(64);
    CHECK_STATUS(driver_module_try(d, 1,
                                   "\x7f"
                                   "ELF\2\1\1",
                                   8),
                 BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(d->error.message, "cubin");
    CHECK_STATUS(driver_module_try(d, 1, "\x50\xed\x55\xba....", 8), BH_E_UNSUPPORTED);
    CHECK_STR_CONTAINS(d->error.message, "fatbin");
    CHECK_STATUS(driver_module_try(d, 1, "hello", 5), BH_E_LOAD);
    driver_module(d, 1, ptx_basic);
    CHECK_STATUS(driver_module_try(d, 1, ptx_basic, strlen(ptx_basic)), BH_E_INTERNAL);
    bh__module_message module = {.id = 1};
    CHECK_OK(driver_call(d, BH__MSG_MODULE_UNLOAD, &module, sizeof module, -1));
    CHECK_STATUS(driver_call(d, BH__MSG_MODULE_UNLOAD, &module, sizeof module, -1), BH_E_INTERNAL);
    driver_close(d);
}

/* Each fault is reported with the request to blame, and that lane publishes nothing more. */
static void check_fault(uint32_t module, const char *ptx, const char *kernel, const void *params,
                        int code, const char *name) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    if (module != BASIC) driver_module(d, module, ptx);
    REQUIRE_EQ(driver_lane(d, 1), BH_OK);
    struct iota iota = {DRIVER_BASE + 4096, 0, 10};
    driver_launch(d, 0, BASIC, "iota", 1, 10, &iota);
    uint64_t bad = driver_launch(d, 0, module, kernel, 1, 1, params);
    driver_launch(d, 0, BASIC, "iota", 1, 10, &iota);
    const bh__report *fault = driver_fault(d);
    CHECK_EQ(fault->status, BH_E_FAULT);
    CHECK_EQ(fault->lane, 0);
    CHECK_EQ(fault->sequence, bad);
    CHECK_EQ(fault->device_code, code);
    CHECK_STR_EQ(fault->device_name, name);
    CHECK_STR_CONTAINS(fault->message, kernel);
    CHECK(fault->fix[0] != 0);
    usleep(5000);
    CHECK_EQ(driver_done(d, 0), bad - 1);
    /* Other lanes go on until they are frozen. */
    CHECK(driver_wait(d, 1, driver_launch(d, 1, BASIC, "iota", 1, 10, &iota), 5000));
    driver_close(d);
}

TEST(reports_a_bad_address) {
    struct {
        uint64_t address;
        uint32_t value;
    } poke = {DRIVER_BASE + DRIVER_CHUNK, 1};
    check_fault(BASIC, NULL, "poke", &poke, 700, "ILLEGAL_ADDRESS");
    poke.address = 0;
    check_fault(BASIC, NULL, "poke", &poke, 700, "ILLEGAL_ADDRESS");
}

TEST(reports_a_write_to_an_input) {
    uint64_t params[2] = {DRIVER_READ_ONLY, DRIVER_BASE};
    check_fault(BASIC, NULL, "write_input", params, 700, "ILLEGAL_ADDRESS");
}

TEST(reports_traps_and_asserts) {
    check_fault(BASIC, NULL, "trap_now", no_params, 719, "LAUNCH_FAILED");
    uint64_t p = DRIVER_BASE;
    check_fault(BASIC, NULL, "misaligned", &p, 716, "MISALIGNED_ADDRESS");
    uint32_t values[2] = {1, 2};
    check_fault(ASSERT, ptx_assert, "must_be", values, 710, "ASSERT");
}

TEST(one_fault_in_a_large_grid) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    struct {
        uint64_t p;
        uint32_t n;
        uint64_t address;
    } params = {DRIVER_BASE, 100000, DRIVER_BASE + DRIVER_CHUNK};
    uint64_t bad = driver_launch(d, 0, BASIC, "write_then_poke", 1000, 100, &params);
    const bh__report *fault = driver_fault(d);
    CHECK_EQ(fault->sequence, bad);
    CHECK_EQ(driver_done(d, 0), 0);
    driver_close(d);
}

TEST(an_endless_kernel_holds_up_no_other_lane) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    REQUIRE_EQ(driver_lane(d, 1), BH_OK);
    uint64_t params[2] = {DRIVER_BASE + 64, DRIVER_BASE};
    uint64_t endless = driver_launch(d, 0, BASIC, "endless", 16, 32, params);
    struct iota iota = {DRIVER_BASE + 4096, 5, 6400};
    for (int i = 0; i < 20; i++) {
        uint64_t last = driver_launch(d, 1, BASIC, "iota", 100, 64, &iota);
        REQUIRE(driver_wait(d, 1, last, 10000));
    }
    CHECK_LT(driver_done(d, 0), endless);
    uint64_t start = bh__now_ns();
    driver_kill(d);
    driver_join(d);
    CHECK_LT(bh__now_ns() - start, BH__NS_PER_S * test_time_scale());
    driver_close(d);
}

TEST(prints_before_it_is_done) {
    driver *d = driver_ready(64);
    driver_module(d, PRINTF, ptx_printf);
    uint32_t params[2] = {3, 4};
    REQUIRE(driver_wait(d, 0, driver_launch(d, 0, PRINTF, "say", 1, 1, params), 5000));
    driver_pump(d);
    d->printed[d->printed_bytes] = 0;
    CHECK_STR_EQ(d->printed, "a=3 b=4\n");
    d->printed_bytes = 0;
    uint32_t n = 20000;
    uint64_t last = driver_launch(d, 0, PRINTF, "say_many", 20000 / 100, 100, &n);
    REQUIRE(driver_wait(d, 0, last, 20000));
    driver_pump(d);
    d->printed[d->printed_bytes] = 0;
    unsigned lines = 0;
    static bool seen[20000];
    for (char *line = strtok(d->printed, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned number;
        REQUIRE_EQ(sscanf(line, "line %u", &number), 1);
        REQUIRE(number < n && !seen[number]);
        seen[number] = true;
        lines++;
    }
    CHECK_EQ(lines, n);
    CHECK_LT(d->print_messages, 1000);
    driver_close(d);
}

TEST(keeps_variables) {
    driver *d = driver_ready(64);
    driver_module(d, GLOBALS, ptx_globals);
    uint32_t table = driver_variable(d, GLOBALS, "table");
    uint64_t p = DRIVER_BASE;
    driver_launch(d, 0, GLOBALS, "bump", 1, 1, &p);
    driver_launch(d, 0, GLOBALS, "bump", 1, 1, &p);

    uint32_t value = 99;
    memset(&d->message, 0, offsetof(bh__message, fds));
    bh__module_message where = {.id = GLOBALS, .variable = table, .offset = 4};
    d->message.type = BH__MSG_GLOBAL_SET;
    d->message.serial = ++d->serial;
    d->message.u.module = where;
    d->message.data_bytes = 4;
    memcpy(d->message.data, &value, 4);
    REQUIRE_EQ(bh__message_send(d->socket, &d->message, NULL, 0), 0);
    do REQUIRE(driver_receive(d, 5000));
    while (d->message.type != BH__MSG_ACK);
    CHECK_EQ(d->message.u.error.status, BH_OK);

    value = 77;
    memcpy(d->host + 4096, &value, 4);
    bh__copy_body write = {
        .target = 8, .source = 4096, .bytes = 4, .host = 1, .module = GLOBALS, .variable = table};
    driver_submit(d, 0, BH__OP_GLOBAL_WRITE, &write, sizeof write, NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, driver_launch(d, 0, GLOBALS, "show", 1, 1, &p), 5000));
    const uint32_t *got = fetch(d, 0, 0, 24);
    const uint32_t expected[6] = {2, 10, 99, 77, 40, 7};
    CHECK_MEM_EQ(got, expected, sizeof expected);

    bh__copy_body read = {
        .target = 0, .source = 0, .bytes = 16, .host = 1, .module = GLOBALS, .variable = table};
    uint64_t last = driver_submit(d, 0, BH__OP_GLOBAL_READ, &read, sizeof read, NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, last, 5000));
    CHECK_MEM_EQ(d->host, expected + 1, 16);
    read.bytes = 20;
    last = driver_submit(d, 0, BH__OP_GLOBAL_READ, &read, sizeof read, NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, last, 5000));
    CHECK_EQ(atomic_load(&d->area->reports_made), 1);
    driver_close(d);
}

/* Every block adds one to p[0] and waits until all have, then stores its number. */
static const char ptx_together[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry together(.param .u64 p)\n"
    "{\n  .reg .pred %p<2>;\n  .reg .b32 %r<8>;\n  .reg .b64 %rd<4>;\n"
    "  ld.param.u64 %rd1, [p];\n"
    "  mov.u32 %r1, %ctaid.x;\n"
    "  mov.u32 %r2, %nctaid.x;\n"
    "  atom.global.add.u32 %r3, [%rd1], 1;\n"
    "WAIT:\n"
    "  ld.volatile.global.u32 %r4, [%rd1];\n"
    "  setp.lt.u32 %p1, %r4, %r2;\n"
    "  @%p1 bra WAIT;\n"
    "  mul.wide.u32 %rd2, %r1, 4;\n"
    "  add.s64 %rd2, %rd1, %rd2;\n"
    "  st.global.u32 [%rd2+4], %r1;\n"
    "  ret;\n}\n";

TEST(cooperative_blocks_all_make_progress) {
    driver *d = driver_ready(64);
    driver_module(d, OTHER, ptx_together);
    uint64_t p = DRIVER_BASE;
    bh__launch_body body = driver_body(d, OTHER, "together", 1, 1);
    body.flags = BH_LAUNCH_COOPERATIVE;
    for (uint32_t blocks = 1; blocks <= 32; blocks += 31) {
        bh__copy_body zero = {.target = p, .bytes = 256, .pattern_bytes = 1};
        driver_submit(d, 0, BH__OP_FILL, &zero, sizeof zero, NULL, 0, NULL);
        body.grid[0] = blocks;
        REQUIRE(driver_wait(d, 0, driver_launch_with(d, 0, &body, &p, NULL), 20000));
        const uint32_t *got = fetch(d, 0, 0, 256);
        CHECK_EQ(got[0], blocks);
        for (uint32_t i = 0; i < blocks; i++) CHECK_EQ(got[i + 1], i);
    }
    CHECK_EQ(atomic_load(&d->area->reports_made), 0);
    body.grid[0] = d->ready.info.multiprocessors * 32 + 1;
    REQUIRE(driver_wait(d, 0, driver_launch_with(d, 0, &body, &p, NULL), 5000));
    CHECK_EQ(atomic_load(&d->area->reports_made), 1);
    CHECK_EQ(d->area->reports[0].status, BH_E_RESIDENCY);
    driver_close(d);
}

TEST_TIMEOUT(lanes_together_under_load, 60) {
    driver *d = driver_ready(64);
    driver_module(d, BASIC, ptx_basic);
    enum { LANES = 4, ROUNDS = 300 };
    for (uint32_t lane = 1; lane < LANES; lane++) REQUIRE_EQ(driver_lane(d, lane), BH_OK);
    struct {
        uint64_t p;
        uint32_t n;
    } add[LANES];
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t lane = 0; lane < LANES; lane++) {
            add[lane].p = DRIVER_BASE + lane * 65536;
            add[lane].n = round % 10 == 0 ? 8192 : 64;
            driver_launch(d, lane, BASIC, "add_one", add[lane].n / 64, 64, &add[lane]);
        }
        if (round % 50 == 0) {
            driver_module(d, 6, ptx_globals);
            bh__module_message module = {.id = 6};
            CHECK_OK(driver_call(d, BH__MSG_MODULE_UNLOAD, &module, sizeof module, -1));
        }
    }
    for (uint32_t lane = 0; lane < LANES; lane++) {
        const uint32_t *got = fetch(d, lane, lane * 65536, 8192 * 4);
        for (uint32_t i = 0; i < 8192; i++) REQUIRE_EQ(got[i], i < 64 ? ROUNDS : ROUNDS / 10);
    }
    CHECK_EQ(atomic_load(&d->area->reports_made), 0);
    driver_close(d);
}

TEST_TIMEOUT(killed_at_any_moment, 60) {
    for (unsigned i = 0; i < 20; i++) {
        driver *d = driver_ready(64);
        driver_module(d, BASIC, ptx_basic);
        REQUIRE_EQ(driver_lane(d, 1), BH_OK);
        struct iota iota = {DRIVER_BASE, 0, 64000}, other = {DRIVER_BASE + (1 << 20), 0, 640};
        for (int j = 0; j < 20; j++) {
            driver_launch(d, 0, BASIC, "iota", 1000, 64, &iota);
            bh__dependency before = {0, atomic_load(&d->front->lane[0].tail)};
            bh__launch_body body = driver_body(d, BASIC, "iota", 10, 64);
            driver_launch_with(d, 1, &body, &other, &(request_parts){0, &before, 1});
        }
        usleep(i * 300);
        driver_kill(d);
        driver_join(d);
        uint64_t done = driver_done(d, 0);
        CHECK_LE(done, bh__claim_position(atomic_load(&d->area->lane[0].claim)));
        CHECK_LE(driver_done(d, 1), done);
        driver_close(d);
    }
}
