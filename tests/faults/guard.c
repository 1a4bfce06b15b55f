/* SPDX-License-Identifier: Apache-2.0 */
/* BH_DEVICE_GUARD: what runs past a buffer or uses one that is gone faults at once, is named where
 * the device tells the address, and harms nothing else. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/support.h"

/* store_bytes(u64 p, u32 n): n bytes from p on, one after the other. */
static const char ptx_bytes[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                                ".visible .entry store_bytes(.param .u64 p, .param .u32 n) {\n"
                                "    .reg .b64 %a;\n"
                                "    .reg .b32 %i, %n;\n"
                                "    .reg .pred %p;\n"
                                "    ld.param.u64 %a, [p];\n"
                                "    ld.param.u32 %n, [n];\n"
                                "    mov.u32 %i, 0;\n"
                                "loop:\n"
                                "    st.global.u8 [%a], 1;\n"
                                "    add.u64 %a, %a, 1;\n"
                                "    add.u32 %i, %i, 1;\n"
                                "    setp.lt.u32 %p, %i, %n;\n"
                                "    @%p bra loop;\n"
                                "    ret;\n"
                                "}\n";

static rig open_guarded(uint32_t flags) {
    bh_device_options options =
        device_options(BH_DEVICE_GUARD | BH_DEVICE_NO_RESTART_LIMIT | flags);
    options.quarantine_after = 1000;
    return rig_open_with(&options);
}

/* The launch faults. The message says `text`, or `given` where the device does not tell addresses:
 * one with queues of its own. */
static void check_fault(const rig *r, bh_kernel kernel, bh_shape shape, bh_args args,
                        const char *text, const char *given) {
    bh_ticket ticket = submit(kernel, shape, args, NULL);
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_STR_CONTAINS(error.message, has_queues(r->device) ? given : text);
    CHECK_EQ(error.certain, 1);
}

TEST(an_overrun_faults_and_is_named) {
    rig r = open_guarded(0);
    bh_kernel iota = rig_kernel(&r, "iota");
    bh_buffer p = words_alloc(r.device, 12), next = words_filled(r.device, 64, 7);
    CHECK_OK(run_now(iota, BH_GRID(12, 32), BH_ARGS(BH_OUT(p), 5u, 12u)));
    CHECK(words_count(p, 12, 5));
    check_fault(&r, iota, BH_GRID(13, 32), BH_ARGS(BH_OUT(p), 5u, 13u),
                "starts 0 bytes past the end of argument 0, a buffer of u32[12]",
                "argument 0, u32[12]");
    CHECK(words_are(next, 64, 7));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_guards_the_same_overrun_is_not_noticed) {
    rig r = rig_open(0);
    bh_buffer p = words_alloc(r.device, 12);
    CHECK_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(13, 32), BH_ARGS(BH_OUT(p), 5u, 13u)));
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_input_past_its_end) {
    rig r = open_guarded(0);
    bh_buffer a = words_counting(r.device, 8, 0), b = words_alloc(r.device, 100);
    check_fault(&r, rig_kernel(&r, "copy_words"), BH_GRID(11, 32),
                BH_ARGS(BH_IN(a), BH_OUT(b), 11u), "past the end of argument 0, a buffer of u32[8]",
                "argument 0, u32[8]");
    CHECK(words_count(a, 8, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(to_the_padding_and_no_further) {
    rig r = open_guarded(0);
    bh_kernel store = get_kernel(load_module(r.device, ptx_bytes), "store_bytes");
    for (uint32_t bytes = 1; bytes <= 33; bytes += 8) {
        bh_buffer p;
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, bytes, NULL, &p));
        uint64_t address = address_of(p);
        uint32_t padded = (bytes + 15) / 16 * 16;
        CHECK_EQ(address % 16, 0);
        CHECK_OK(run_now(store, BH_GRID(1, 1), BH_ARGS(address, padded)));
        char text[100];
        snprintf(text, sizeof text, "starts %u byte%s past the end of a buffer of u8[%u]",
                 padded - bytes, padded - bytes == 1 ? "" : "s", bytes);
        check_fault(&r, store, BH_GRID(1, 1), BH_ARGS(address, padded + 1), text, "");
    }
    CHECK_OK(bh_device_close(r.device));
}

/* The default keeps the end at the guard; accesses of 16 bytes are aligned all the same. */
TEST(buffers_are_aligned_to_16_bytes_or_as_asked) {
    rig r = open_guarded(0);
    static const uint32_t flags[] = {0, BH_BUFFER_ZERO, BH_BUFFER_SHAREABLE};
    for (uint64_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        for (int i = 0; i < 3; i++) {
            bh_buffer_options options = BH_INIT(options);
            options.flags = flags[i];
            bh_buffer buffer;
            REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, bytes, &options, &buffer));
            uint64_t address = address_of(buffer);
            CHECK_EQ(address % 16, 0);
            CHECK_EQ((address + (bytes + 15) / 16 * 16) % 4096, 0);
            CHECK_OK(bh_buffer_release(buffer));
            options.align = 256;
            REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, bytes, &options, &buffer));
            CHECK_EQ(address_of(buffer) % 256, 0);
            CHECK_OK(bh_buffer_release(buffer));
        }
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(use_after_release) {
    rig r = open_guarded(0);
    bh_kernel poke = rig_kernel(&r, "poke");
    bh_buffer p = words_filled(r.device, 10, 1), stays = words_filled(r.device, 10, 3);
    uint64_t address = address_of(p) + 8;
    CHECK_OK(run_now(poke, BH_GRID(1, 1), BH_ARGS(address, 7u)));
    CHECK_EQ(word_read(p, 2), 7);
    REQUIRE_OK(bh_buffer_release(p));
    bh_buffer next = words_filled(r.device, 10, 1);
    CHECK(address_of(next) != address - 8);
    check_fault(&r, poke, BH_GRID(1, 1), BH_ARGS(address, 7u),
                "at byte 8 of a released buffer of u32[10]", "last released: u32[10]");
    CHECK(words_are(next, 10, 1));
    CHECK(words_are(stays, 10, 3));
    CHECK_OK(bh_device_close(r.device));
}

static struct {
    _Atomic(bool) armed;
    bh_device device;
    bh_buffer buffer;
    bh_status released;
} in_log;

/* Messages of a loss come from the thread that sees to the workers: it opens no lane. */
static void release_in_log(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    (void)text;
    bh_lane lane;
    if (!atomic_load(&in_log.armed)) return;
    if (bh_lane_open(in_log.device, NULL, &lane) == BH_E_BUSY) {
        atomic_store(&in_log.armed, false);
        in_log.released = bh_buffer_release(in_log.buffer);
    }
}

TEST(released_in_the_log_function) {
    rig r = open_guarded(0);
    in_log.device = r.device;
    in_log.buffer = words_filled(r.device, 10, 1);
    uint64_t address = address_of(in_log.buffer);
    REQUIRE_OK(bh_log_set(release_in_log, NULL, BH_LOG_DEBUG));
    wait_standby(r.device);
    atomic_store(&in_log.armed, true);
    kill_worker(r.device, SIGKILL);
    check_device_works(&r);
    REQUIRE(!atomic_load(&in_log.armed));
    CHECK_OK(in_log.released);
    (void)open_lane(r.device); /* behind what that thread had to do */
    check_fault(&r, rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(address, 7u),
                "at byte 0 of a released buffer of u32[10]", "last released: u32[");
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_log_set(NULL, NULL, 0));
}

TEST(released_while_work_uses_it) {
    rig r = open_guarded(0);
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    bh_buffer p = words_filled(r.device, 10, 1);
    uint64_t address = address_of(p);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket last =
        submit(rig_kernel(&r, "add_one"), BH_GRID(10, 32), BH_ARGS(BH_INOUT(p), 10u), &there);
    REQUIRE_OK(bh_buffer_release(p));
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    bh_buffer other = words_filled(r.device, 10, 1); /* by now it is given back */
    check_fault(&r, rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(address, 7u),
                "at byte 0 of a released buffer of u32[10]", "last released");
    CHECK(words_are(other, 10, 1));
    CHECK_OK(bh_device_close(r.device));
}

TEST(views_keep_their_buffer) {
    rig r = open_guarded(0);
    bh_buffer p = words_counting(r.device, 16, 0), view;
    REQUIRE_OK(bh_buffer_view(p, 0, 4, 8, &view));
    REQUIRE_OK(bh_buffer_release(p));
    CHECK(words_count(view, 8, 4));
    REQUIRE_OK(bh_buffer_release(view));
    CHECK_EQ(memory_of(r.device).buffers, 0);
    CHECK_EQ(memory_of(r.device).bytes_reserved, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(buffers_come_and_go, 60) {
    rig r = open_guarded(0);
    rng random = rng_seeded(4);
    enum { LIVE = 24 };
    bh_buffer live[LIVE] = {{0}};
    uint32_t counts[LIVE], values[LIVE];
    for (int i = 0; i < 400; i++) {
        uint32_t at = rng_below(&random, LIVE);
        if (live[at].id) {
            CHECK(words_are(live[at], counts[at], values[at]));
            REQUIRE_OK(bh_buffer_release(live[at]));
        }
        counts[at] = 1 + rng_below(&random, 40000);
        values[at] = rng_next(&random);
        live[at] = words_filled(r.device, counts[at], values[at]);
        if (i % 100 == 50) kill_worker(r.device, SIGKILL);
    }
    for (int i = 0; i < LIVE; i++)
        if (live[i].id) CHECK(words_are(live[i], counts[i], values[i]));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_shared_buffer_is_guarded_too) {
    rig r = open_guarded(0), other = open_guarded(0);
    bh_buffer p, there;
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    REQUIRE_OK(alloc_shareable(r.device, BH_U32, 12, &p));
    REQUIRE_OK(bh_buffer_export(p, fds, &token));
    REQUIRE_OK(bh_buffer_import(other.device, fds, &token, NULL, &there));
    CHECK_OK(run_now(rig_kernel(&other, "iota"), BH_GRID(12, 32), BH_ARGS(BH_OUT(there), 5u, 12u)));
    CHECK(words_count(p, 12, 5));
    check_fault(
        &other, rig_kernel(&other, "iota"), BH_GRID(13, 32), BH_ARGS(BH_OUT(there), 5u, 13u),
        "starts 0 bytes past the end of argument 0, a buffer of u32[12]", "argument 0, u32[12]");
    close(fds[0]);
    close(fds[1]);
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_device_close(other.device));
}

TEST(not_with_checks) {
    bh_device device;
    bh_device_options options = device_options(BH_DEVICE_GUARD | BH_DEVICE_CHECK);
    CHECK_REFUSED(bh_device_open(&options, &device), BH_E_INVALID);
}

/* What many threads release is unmapped before each of them goes on. */
static void come_and_go(void *context, unsigned index) {
    const rig *r = context;
    for (uint32_t i = 0; i < 20; i++) {
        bh_buffer p = words_filled(r->device, 100 + i, index);
        CHECK(words_are(p, 100 + i, index));
        REQUIRE_OK(bh_buffer_release(p));
    }
}

TEST_TIMEOUT(many_threads, 60) {
    rig r = open_guarded(0);
    run_threads(8, come_and_go, &r);
    CHECK_EQ(memory_of(r.device).buffers, 0);
    CHECK_EQ(memory_of(r.device).bytes_reserved, 0);
    CHECK_OK(bh_device_close(r.device));
}
