/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with many bytes of parameters: every byte arrives, by every way of launching. */
#include <signal.h>

#include "../support/support.h"
#include "../support/transfers.h"

enum {
    HEAD = 8, /* the buffer that a kernel writes its other parameter to */
    MAX = 32764,
    QUEUE_OF_64 = 64 / 2 * 256 - 96 - 64 * 16 /* what always fits half of it */
};

/* spell(out u8 p, struct data): p[i] = data[i]. All parameters together have so many bytes. */
static char *spell_ptx(uint32_t bytes, const char *version) {
    static const char format[] =
        ".version %s\n.target sm_70\n.address_size 64\n"
        ".visible .entry spell(.param .u64 out, .param .align 4 .b8 data[%u])\n{\n"
        "    .reg .pred %%p<2>;\n    .reg .b16 %%h<2>;\n"
        "    .reg .b32 %%r<5>;\n    .reg .b64 %%rd<6>;\n"
        "    mov.u32 %%r1, %%ctaid.x;\n    mov.u32 %%r2, %%ntid.x;\n    mov.u32 %%r3, %%tid.x;\n"
        "    mad.lo.s32 %%r4, %%r1, %%r2, %%r3;\n    setp.ge.u32 %%p1, %%r4, %u;\n"
        "    @%%p1 bra DONE;\n    ld.param.u64 %%rd1, [out];\n"
        "    cvta.to.global.u64 %%rd1, %%rd1;\n    cvt.u64.u32 %%rd2, %%r4;\n"
        "    mov.b64 %%rd3, data;\n    add.s64 %%rd4, %%rd3, %%rd2;\n"
        "    ld.param.u8 %%h1, [%%rd4];\n    add.s64 %%rd5, %%rd1, %%rd2;\n"
        "    st.global.u8 [%%rd5], %%h1;\nDONE:\n    ret;\n}\n";
    char *text = malloc(sizeof format + 64);
    REQUIRE(text != NULL);
    snprintf(text, sizeof format + 64, format, version, bytes - HEAD, bytes - HEAD);
    return text;
}

static const char *version_for(uint32_t bytes) {
    return bytes > 4352 ? "8.1" : "7.0";
}

typedef struct speller {
    bh_module module;
    bh_kernel kernel;
    uint32_t count; /* bytes of `data` */
    bh_buffer out;
} speller;

static speller speller_open(bh_device device, uint32_t bytes) {
    char *ptx = spell_ptx(bytes, version_for(bytes));
    speller s = {.module = load_module(device, ptx), .count = bytes - HEAD};
    free(ptx);
    s.kernel = get_kernel(s.module, "spell");
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(s.kernel, &info));
    CHECK_EQ(info.param_bytes, bytes);
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, s.count, NULL, &s.out));
    return s;
}

static bh_shape shape_of(const speller *s) {
    return (bh_shape)BH_GRID(s->count, 128);
}

static uint8_t byte_of(uint32_t seed, uint32_t index) {
    return (uint8_t)((index * 2654435761u + seed * 40503u) >> 13);
}

/* The data by which a launch is known. */
static uint8_t *data_of(uint32_t count, uint32_t seed) {
    uint8_t *data = malloc(count);
    REQUIRE(data != NULL);
    for (uint32_t i = 0; i < count; i++) data[i] = byte_of(seed, i);
    return data;
}

static bool bytes_have(const uint8_t *bytes, uint32_t count, uint32_t seed) {
    for (uint32_t i = 0; i < count; i++) {
        if (bytes[i] == byte_of(seed, i)) continue;
        printf("byte %u of %u: %u, expected %u\n", i, count, bytes[i], byte_of(seed, i));
        return false;
    }
    return true;
}

static bool spelled(bh_buffer buffer, uint32_t count, uint32_t seed) {
    uint8_t *got = malloc(count);
    REQUIRE(got != NULL);
    REQUIRE_OK(bh_buffer_read(buffer, 0, got, count));
    bool same = bytes_have(got, count, seed);
    free(got);
    return same;
}

static void spell_with(const speller *s, uint32_t seed, const bh_launch_options *options) {
    uint8_t *data = data_of(s->count, seed);
    submit(s->kernel, shape_of(s), BH_ARGS(BH_OUT(s->out), BH_VALUE(data, s->count)), options);
    memset(data, 0, s->count); /* was copied */
    free(data);
}

static void speller_close(const speller *s) {
    CHECK_OK(bh_buffer_release(s->out));
    CHECK_OK(bh_module_release(s->module));
}

static const uint32_t sizes[] = {4095,  4096,  4097,  4098,  4099,  4100,  4352,  4353, 8000,
                                 16383, 16384, 20001, 32760, 32761, 32762, 32763, MAX};
enum { SIZES = sizeof sizes / sizeof *sizes };

TEST(every_size_is_launched) {
    bh_device device = open_device();
    CHECK_EQ(limits_of(device).max_param_bytes, MAX);
    for (uint32_t i = 0; i < SIZES; i++) {
        speller s = speller_open(device, sizes[i]);
        for (uint32_t round = 0; round < 3; round++) spell_with(&s, sizes[i] + round, NULL);
        CHECK(spelled(s.out, s.count, sizes[i] + 2));
        speller_close(&s);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(more_than_there_may_be_is_refused_at_load) {
    bh_device device = open_device();
    static const struct {
        uint32_t bytes;
        const char *version;
    } bad[] = {{MAX + 1, "8.1"}, {MAX + 8, "8.1"}, {65536, "8.1"}, {1 << 20, "8.1"}};
    for (uint32_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *ptx = spell_ptx(bad[i].bytes, bad[i].version), most[16];
        bh_module module;
        bh_error error;
        CHECK_REFUSED_ANY(bh_module_load(device, ptx, strlen(ptx), &module));
        bh_last_error(&error);
        CHECK(error.status == BH_E_LOAD || error.status == BH_E_UNSUPPORTED);
        snprintf(most, sizeof most, "%d", MAX);
        CHECK_STR_CONTAINS(error.message, most);
        free(ptx);
    }
    /* What came with PTX 8.1 is refused in earlier versions. */
    char *ptx = spell_ptx(4353, "8.0");
    bh_module module;
    CHECK_REFUSED(bh_module_load(device, ptx, strlen(ptx), &module), BH_E_LOAD);
    free(ptx);
    ptx = spell_ptx(4352, "8.0");
    CHECK_OK(bh_module_load(device, ptx, strlen(ptx), &module));
    free(ptx);
    CHECK_OK(bh_device_close(device));
}

/* The queue goes round: the largest takes an eighth of one of the usual length. */
TEST(many_in_a_row_go_through_the_queue) {
    rig r = rig_open(0);
    speller s = speller_open(r.device, MAX), t = speller_open(r.device, 4097);
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_kernel add = rig_kernel(&r, "add_one");
    for (uint32_t i = 0; i < 60; i++) {
        spell_with(&s, i, NULL);
        for (uint32_t k = 0; k < i % 40; k++)
            submit(add, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL);
        spell_with(&t, i + 7, NULL);
    }
    CHECK(spelled(s.out, s.count, 59));
    CHECK(spelled(t.out, t.count, 66));
    uint32_t added = 0;
    for (uint32_t i = 0; i < 60; i++) added += i % 40;
    CHECK_EQ(word_read(x, 0), added);
    CHECK_OK(bh_device_close(r.device));
}

/* Short launches that wait together may be sent as one; these in between are not. */
TEST(large_ones_among_a_backlog_of_small_ones_keep_their_place) {
    enum { ROUNDS = 5, SMALL = 70 };
    bh_device_options options = device_options(0);
    options.queue_length = 2048;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_kernel iota = rig_kernel(&r, "iota"), copy = rig_kernel(&r, "copy_words");
    speller s = speller_open(r.device, 20008);
    enum { WORDS = 5000 };
    CHECK_EQ(s.count, WORDS * 4);
    bh_buffer kept[ROUNDS], x = words_filled(r.device, 1, 0);
    for (uint32_t i = 0; i < ROUNDS; i++) kept[i] = words_filled(r.device, WORDS, 0);
    gate g = gate_close(&r, lane, 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        for (uint32_t k = 0; k < SMALL; k++)
            submit(iota, BH_GRID(1, 1), BH_ARGS(BH_OUT(x), i * SMALL + k, 1u), &there);
        spell_with(&s, i, &there);
        submit(copy, BH_GRID(WORDS, 128), BH_ARGS(BH_IN(s.out), BH_OUT(kept[i]), (uint32_t)WORDS),
               &there);
    }
    gate_open(&g);
    CHECK_OK(bh_lane_sync(lane, LONG_NS));
    for (uint32_t i = 0; i < ROUNDS; i++) CHECK(spelled(kept[i], WORDS * 4, i));
    CHECK_EQ(word_read(x, 0), ROUNDS * SMALL - 1);
    CHECK_OK(bh_device_close(r.device));
}

/* A row of them that waits together: each has its own data, though a lane keeps that of one
 * alone. */
TEST(a_backlog_of_large_ones_has_the_data_of_each) {
    enum { COUNT = 200, BYTES = 4200, LOOKED_AT = 8 }; /* short ones, as those of trains are */
    bh_device_options options = device_options(0);
    options.queue_length = 8192;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    speller s = speller_open(r.device, BYTES);
    bh_buffer outs[COUNT];
    for (uint32_t i = 0; i < COUNT; i++)
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, s.count, NULL, &outs[i]));
    for (uint32_t round = 0; round < 3; round++) {
        gate g = gate_close(&r, lane, 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint8_t *data = data_of(s.count, i + round);
            submit(s.kernel, BH_GRID(LOOKED_AT, LOOKED_AT),
                   BH_ARGS(BH_OUT(outs[i]), BH_VALUE(data, s.count)), &there);
            free(data);
        }
        gate_open(&g);
        CHECK_OK(bh_lane_sync(lane, LONG_NS));
        for (uint32_t i = 0; i < COUNT; i++) CHECK(spelled(outs[i], LOOKED_AT, i + round));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* What a lost worker had not begun, or may be done twice, goes to the next one with all its
 * bytes. */
TEST(they_go_on_after_a_loss) {
    enum { COUNT = 12 };
    bh_device_options options = device_options(0);
    options.queue_length = 4096;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, BH_SUBMIT_IDEMPOTENT);
    speller s = speller_open(r.device, MAX);
    bh_buffer outs[COUNT];
    bh_ticket last;
    gate g = gate_close(&r, lane, 0);
    for (uint32_t i = 0; i < COUNT; i++) {
        REQUIRE_OK(bh_buffer_alloc(r.device, BH_U8, s.count, NULL, &outs[i]));
        uint8_t *data = data_of(s.count, i);
        last = submit(s.kernel, shape_of(&s), BH_ARGS(BH_OUT(outs[i]), BH_VALUE(data, s.count)),
                      &there);
        free(data);
    }
    flag_wait_begun(g.flag);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_wait(last, LONG_NS));
    for (uint32_t i = 0; i < COUNT; i++) CHECK(spelled(outs[i], s.count, i));
    CHECK_OK(bh_device_close(r.device));
}

TEST(lanes_wait_for_each_other_with_them) {
    enum { LANES = 6 };
    bh_device device = open_device();
    speller s = speller_open(device, MAX);
    bh_lane lanes[LANES];
    for (uint32_t i = 0; i < LANES; i++) lanes[i] = open_lane(device);
    for (uint32_t i = 0; i < 48; i++) {
        bh_launch_options there = on_lane(lanes[i % LANES], 0);
        spell_with(&s, i, &there);
    }
    CHECK(spelled(s.out, s.count, 47));
    CHECK_OK(bh_device_close(device));
}

TEST(prepared_launches_carry_them) {
    bh_device device = open_device();
    for (uint32_t i = 0; i < SIZES; i++) {
        speller s = speller_open(device, sizes[i]);
        uint8_t *first = data_of(s.count, 1), *second = data_of(s.count, 2);
        bh_prepared p;
        REQUIRE_OK(bh_prepare(s.kernel, shape_of(&s),
                              BH_ARGS(BH_OUT(s.out), BH_VALUE(first, s.count)), NULL, &p));
        CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL));
        CHECK(spelled(s.out, s.count, 1));
        bh_change change = {.index = 1, .arg = bh_arg_data(second, s.count)};
        CHECK_OK(bh_prepared_launch(p, &change, 1, NULL));
        CHECK(spelled(s.out, s.count, 2));
        CHECK_OK(launch_changed(p, 1, bh_arg_data(first, s.count)));
        CHECK_REFUSED(launch_changed(p, 1, bh_arg_data(second, s.count - 1)), BH_E_LAUNCH);
        CHECK_OK(bh_prepared_launch(p, NULL, 0, NULL));
        CHECK(spelled(s.out, s.count, 1));
        CHECK_OK(bh_prepared_release(p));
        free(first);
        free(second);
        speller_close(&s);
    }
    CHECK_OK(bh_device_close(device));
}

static void check_sequence(bh_device device, uint32_t bytes) {
    speller s = speller_open(device, bytes);
    bh_buffer kept;
    bh_sequence sequence;
    uint32_t step[2];
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, s.count, NULL, &kept));
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    for (uint32_t i = 0; i < 2; i++) {
        uint8_t *data = data_of(s.count, i);
        REQUIRE_OK(bh_sequence_launch(sequence, s.kernel, shape_of(&s),
                                      BH_ARGS(BH_OUT(s.out), BH_VALUE(data, s.count)), NULL,
                                      &step[i]));
        free(data);
        if (i == 0) REQUIRE_OK(record_copy(sequence, kept, 0, s.out, 0, s.count, NULL));
    }
    REQUIRE_OK(bh_sequence_finish(sequence));
    for (uint32_t round = 0; round < 4; round++) {
        bh_ticket ticket;
        REQUIRE_OK(bh_sequence_submit(sequence, NULL, &ticket));
        CHECK_OK(bh_wait(ticket, LONG_NS));
        CHECK(spelled(kept, s.count, 2 * round));
        CHECK(spelled(s.out, s.count, 2 * round + 1));
        for (uint32_t i = 0; i < 2; i++) {
            uint8_t *data = data_of(s.count, 2 * (round + 1) + i);
            CHECK_OK(bh_sequence_set(sequence, step[i], 1, bh_arg_data(data, s.count)));
            free(data);
        }
    }
    CHECK_OK(bh_sequence_release(sequence));
    CHECK_OK(bh_buffer_release(kept));
    speller_close(&s);
}

TEST(sequences_carry_them) {
    bh_device device = open_device();
    for (uint32_t i = 0; i < SIZES; i++) check_sequence(device, sizes[i]);
    CHECK_OK(bh_device_close(device));
}

TEST(a_sequence_of_too_many_of_them_is_refused_while_it_is_recorded) {
    bh_device device = open_device();
    speller s = speller_open(device, MAX);
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    uint8_t *data = data_of(s.count, 1);
    bh_status status = BH_OK;
    uint32_t steps = 0;
    for (; status == BH_OK && steps < 2000; steps++)
        status = bh_sequence_launch(sequence, s.kernel, shape_of(&s),
                                    BH_ARGS(BH_OUT(s.out), BH_VALUE(data, s.count)), NULL, NULL);
    CHECK_REFUSED(status, BH_E_INVALID);
    CHECK_EQ(steps, (16 << 20) / 32768 + 1);
    free(data);
    CHECK_OK(bh_sequence_release(sequence));
    CHECK_OK(bh_device_close(device));
}

TEST(dispatches_carry_them) {
    enum { ITEMS = 40 };
    bh_device device = open_device();
    speller s = speller_open(device, MAX), t = speller_open(device, 4100);
    bh_dispatch_item items[ITEMS];
    bh_arg args[ITEMS][2];
    uint8_t *in[ITEMS], *out[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++) {
        const speller *which = i % 2 ? &s : &t;
        in[i] = data_of(which->count, i);
        out[i] = calloc(which->count, 1);
        args[i][0] = BH_HOST_OUT(out[i], which->count);
        args[i][1] = BH_VALUE(in[i], which->count);
        items[i] = (bh_dispatch_item){.size = sizeof items[i],
                                      .kernel = which->kernel,
                                      .shape = shape_of(which),
                                      .args = {args[i], 2}};
    }
    CHECK_OK(bh_dispatch(s.kernel, shape_of(&s), (bh_args){args[1], 2}, NULL));
    CHECK(bytes_have(out[1], s.count, 1));
    memset(out[1], 0, s.count);
    CHECK_OK(bh_dispatch_batch(items, sizeof *items, ITEMS, NULL));
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK_OK(items[i].status);
        CHECK(bytes_have(out[i], i % 2 ? s.count : t.count, i));
        free(in[i]);
        free(out[i]);
    }
    CHECK_OK(bh_device_close(device));
}

/* What half of a short queue has no room for is refused, by all ways alike, with the length that
 * would do; what has room is launched, also behind other lanes. */
TEST(a_short_queue_says_how_long_it_would_have_to_be) {
    bh_device_options options = device_options(0);
    options.queue_length = 64;
    bh_device device = open_device_with(&options);
    speller fits = speller_open(device, QUEUE_OF_64), large = speller_open(device, QUEUE_OF_64 + 1);
    speller largest = speller_open(device, MAX);
    bh_lane lane = open_lane(device);
    bh_launch_options there = on_lane(lane, 0);
    for (uint32_t i = 0; i < 20; i++) spell_with(&fits, i, i % 2 ? &there : NULL);
    CHECK(spelled(fits.out, fits.count, 19));

    uint8_t *data = data_of(MAX, 1);
    bh_error error;
    bh_args args = BH_ARGS(BH_OUT(large.out), BH_VALUE(data, large.count));
    CHECK_REFUSED(bh_launch(large.kernel, shape_of(&large), args, NULL, NULL), BH_E_LAUNCH);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "has 7073 bytes of parameters");
    CHECK_STR_CONTAINS(error.message, "a queue of 64 slots takes at most 7072");
    CHECK_STR_CONTAINS(error.fix, "queue_length of 128 or more");
    char line[BH_LINE_BYTES];
    CHECK_OK(bh_preflight_line(NULL, line, sizeof line));
    CHECK_STR_CONTAINS(line, "|reason=parameter_bytes|requested=7073|limit=7072|");
    CHECK_REFUSED(bh_launch(largest.kernel, shape_of(&largest),
                            BH_ARGS(BH_OUT(largest.out), BH_VALUE(data, largest.count)), NULL,
                            NULL),
                  BH_E_LAUNCH);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.fix, "queue_length of 512 or more");
    bh_prepared prepared;
    CHECK_REFUSED(bh_prepare(large.kernel, shape_of(&large), args, NULL, &prepared), BH_E_LAUNCH);
    bh_preflight preflight = BH_INIT(preflight);
    CHECK_OK(bh_launch_preflight(large.kernel, shape_of(&large), NULL, NULL, &preflight));
    CHECK_EQ(preflight.error.status, BH_E_LAUNCH);
    CHECK_EQ(preflight.error.reason, BH_REASON_PARAMETER_BYTES);
    CHECK_EQ(preflight.error.requested, QUEUE_OF_64 + 1);
    CHECK_EQ(preflight.error.limit, QUEUE_OF_64);
    CHECK_OK(bh_launch_preflight(fits.kernel, shape_of(&fits), NULL, NULL, &preflight));
    CHECK_EQ(preflight.error.status, BH_OK);
    /* Steps of sequences do not go through the queue. */
    check_sequence(device, MAX);
    free(data);
    CHECK_OK(bh_device_close(device));
}

/* Each length takes what it says it takes. */
TEST(queues_of_every_length_take_as_much_as_they_say) {
    for (uint32_t length = 64; length <= 512; length *= 2) {
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.queue_length = length;
        bh_device device = open_device_with(&options);
        uint32_t most = length / 2 * 256 - 96 - 64 * 16;
        speller s = speller_open(device, most < MAX ? most : MAX);
        for (uint32_t i = 0; i < 5; i++) spell_with(&s, i, NULL);
        CHECK(spelled(s.out, s.count, 4));
        CHECK_OK(bh_device_close(device));
    }
}
