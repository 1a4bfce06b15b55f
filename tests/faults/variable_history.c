/* SPDX-License-Identifier: Apache-2.0 */
/* Modules' own variables while workers die at random, against a model: one that no kernel writes
 * always has what the program has set; one that kernels write has that, or its module is stale and
 * starts anew from what was set. Writes of many sizes, many of them more than one piece of staging:
 * each is all there or not at all. Half of the accesses are near the start of the variable, where
 * they overlap. */
#include <signal.h>

#include "../support/support.h"

enum { WORDS = 600 * 1024, BYTES = WORDS * 4, SHOWN = 256, LANES = 3, BATCH = 6 };
/* Words near the start of a variable. */
enum { NEAR_START = 2 * SHOWN };

#define ENTRY(name, rest)                                                                          \
    ".visible .entry " name "(.param .u64 p, .param .u32 first)\n"                                 \
    "{\n  .reg .pred %p<2>;\n  .reg .b32 %r<8>;\n  .reg .b64 %rd<8>;\n"                            \
    "  ld.param.u64 %rd1, [p];\n  ld.param.u32 %r1, [first];\n"                                    \
    "  mov.u32 %r2, %ctaid.x;\n  mov.u32 %r3, %ntid.x;\n  mov.u32 %r4, %tid.x;\n"                  \
    "  mad.lo.u32 %r2, %r2, %r3, %r4;\n  add.u32 %r3, %r2, %r1;\n"                                 \
    "  mov.u64 %rd2, big;\n  cvta.global.u64 %rd2, %rd2;\n"                                        \
    "  mul.wide.u32 %rd3, %r3, 4;\n  add.s64 %rd2, %rd2, %rd3;\n"                                  \
    "  mul.wide.u32 %rd4, %r2, 4;\n  add.s64 %rd1, %rd1, %rd4;\n" rest "  ret;\n}\n"

#define START                                                                                      \
    ".version 7.0\n.target sm_70\n.address_size 64\n"                                              \
    ".visible .global .align 4 .b8 big[2457600];\n"
#define SHOW ENTRY("show", "  ld.u32 %r5, [%rd2];\n  st.u32 [%rd1], %r5;\n")
#define STIR                                                                                       \
    ENTRY("stir", "  ld.u32 %r5, [%rd2];\n  mad.lo.u32 %r5, %r5, 5, 3;\n  st.u32 [%rd2], %r5;\n"   \
                  "  st.u32 [%rd1], %r5;\n")

static const char only_read[] = START SHOW;
static const char written[] = START SHOW STIR;

typedef struct subject {
    bh_module module;
    bh_kernel show, stir;
    uint8_t *now, *base; /* what is there; what the next worker starts with */
    bool writable;
} subject;

typedef struct shown {
    bh_ticket ticket;
    bh_buffer buffer;
    uint32_t expected[SHOWN];
} shown;

static subject subject_load(bh_device device, const char *ptx, bool writable) {
    subject s = {.module = load_module(device, ptx), .writable = writable};
    s.show = get_kernel(s.module, "show");
    if (writable) s.stir = get_kernel(s.module, "stir");
    s.now = calloc(1, BYTES);
    s.base = calloc(1, BYTES);
    REQUIRE(s.now != NULL && s.base != NULL);
    return s;
}

static void start_anew(subject *s) {
    CHECK_OK(bh_module_accept(s->module));
    memcpy(s->now, s->base, BYTES);
}

/* Reads until it is answered; a stale module starts anew. */
static void check_whole(subject *s, uint8_t *got, bool must_be_stale) {
    for (;;) {
        bh_status status = bh_module_global_read(s->module, "big", 0, got, BYTES);
        if (status == BH_E_STALE) {
            CHECK(s->writable);
            start_anew(s);
            must_be_stale = false;
            continue;
        }
        if (status == BH_E_LOST) continue;
        CHECK_OK(status);
        if (must_be_stale) FAIL("a launch did not end well, and the module is not stale");
        if (status == BH_OK && memcmp(got, s->now, BYTES) != 0) {
            uint32_t at = 0;
            while (got[at] == s->now[at]) at++;
            FAIL("byte %u of the %s variable is %u, not %u", at,
                 s->writable ? "written" : "constant", got[at], s->now[at]);
        }
        return;
    }
}

static uint32_t some_offset(rng *random, uint32_t limit, uint32_t near_start) {
    bool near = rng_below(random, 2) && near_start < limit;
    return rng_below(random, near ? near_start : limit);
}

static void write_some(subject *s, rng *random, const uint8_t *arena) {
    uint32_t bytes =
        rng_below(random, 3) ? 1 + rng_below(random, 2000) : 1 + rng_below(random, BYTES);
    uint32_t offset = some_offset(random, BYTES - bytes + 1, NEAR_START * 4);
    const uint8_t *source = arena + rng_below(random, BYTES);
    bh_status status = bh_module_global_write(s->module, "big", offset, source, bytes);
    if (status == BH_OK) {
        memcpy(s->now + offset, source, bytes);
        memcpy(s->base + offset, source, bytes);
    } else {
        bh_error why;
        CHECK_EQ(bh_last_error(&why), status);
        CHECK(why.message[0] && why.fix[0]);
        if (status != BH_E_LOST) CHECK_OK(status);
    }
}

static void run(uint64_t seed, uint32_t flags, bool kills, unsigned ms) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT | flags);
    rig r = rig_open_with(&options);
    rng random = rng_seeded(seed);
    subject subjects[2] = {subject_load(r.device, only_read, false),
                           subject_load(r.device, written, true)};
    bh_lane lanes[LANES] = {{0}};
    for (int i = 1; i < LANES; i++) lanes[i] = open_lane(r.device);
    uint8_t *arena = malloc(2 * BYTES), *got = malloc(BYTES);
    REQUIRE(arena != NULL && got != NULL);
    for (uint32_t i = 0; i < 2 * BYTES; i++) arena[i] = (uint8_t)(rng_next(&random) >> 9);
    shown batch[BATCH];
    bh_ticket before[BATCH];
    for (int i = 0; i < BATCH; i++) batch[i].buffer = words_filled(r.device, SHOWN, 0);
    struct killer killer = {.device = r.device, .seed = random.state};
    pthread_t thread;
    if (kills) REQUIRE(pthread_create(&thread, NULL, kill_now_and_then, &killer) == 0);
    uint64_t end = now_ns() + ms * MS;
    unsigned rounds = 0, answers[BH_E_INTERNAL + 1] = {0};
    while (now_ns() < end && test_failures() == 0) {
        subject *s = &subjects[rng_below(&random, 2)];
        bool failed = false;
        int count = 0;
        for (int i = 0; i < BATCH; i++) {
            if (rng_below(&random, 2)) {
                write_some(s, &random, arena);
                continue;
            }
            shown *one = &batch[count];
            uint32_t first = some_offset(&random, WORDS - SHOWN, NEAR_START);
            bool stirs = s->writable && rng_below(&random, 2);
            bh_launch_options there = on_lane(lanes[rng_below(&random, LANES)],
                                              rng_below(&random, 2) ? BH_SUBMIT_IDEMPOTENT : 0);
            /* Variables do not order lanes: what shows the old words comes first. */
            if (stirs) there.after = before, there.after_count = (size_t)count;
            bh_status status = bh_launch(stirs ? s->stir : s->show, BH_GRID(SHOWN, 64),
                                         BH_ARGS(BH_OUT(one->buffer), first), &there, &one->ticket);
            if (status == BH_OK && stirs) status = bh_wait(one->ticket, LONG_NS);
            answers[status]++;
            if (status == BH_E_STALE && !stirs) {
                CHECK(s->writable);
                failed = true;
                break;
            }
            if (status != BH_OK) {
                failed = true;
                break;
            }
            for (uint32_t k = 0; k < SHOWN; k++) {
                uint32_t word;
                memcpy(&word, s->now + (first + k) * UINT64_C(4), 4);
                if (stirs) word = word * 5 + 3;
                memcpy(s->now + (first + k) * UINT64_C(4), &word, 4);
                one->expected[k] = word;
            }
            before[count] = one->ticket;
            count++;
        }
        for (int i = 0; i < count; i++) {
            bh_status status = bh_wait(batch[i].ticket, LONG_NS);
            uint32_t words[SHOWN];
            answers[status]++;
            if (status != BH_OK) {
                CHECK(status == BH_E_LOST || (status == BH_E_STALE && s->writable));
                failed = true;
                continue;
            }
            bh_status read = bh_buffer_read(batch[i].buffer, 0, words, sizeof words);
            while (read == BH_E_LOST)
                read = bh_buffer_read(batch[i].buffer, 0, words, sizeof words);
            CHECK_OK(read);
            if (read == BH_OK) CHECK_MEM_EQ(words, batch[i].expected, sizeof words);
        }
        check_whole(s, got, failed && s->writable);
        rounds++;
    }
    if (kills) {
        atomic_store(&killer.stop, 1);
        pthread_join(thread, NULL);
    }
    fprintf(stderr, "%u rounds, %llu losses, launches: %u done, %u lost, %u stale\n", rounds,
            (unsigned long long)health_of(r.device).losses, answers[BH_OK], answers[BH_E_LOST],
            answers[BH_E_STALE]);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
    for (int i = 0; i < 2; i++) free(subjects[i].now), free(subjects[i].base);
    free(arena);
    free(got);
}

TEST(variables_without_losses) {
    run(1, 0, false, 300);
}

TEST(variables_and_workers_that_die) {
    run(2, 0, true, 1200);
}

TEST(variables_and_workers_that_die_without_standby) {
    run(3, BH_DEVICE_NO_STANDBY, true, 1200);
}
