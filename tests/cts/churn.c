/* SPDX-License-Identifier: Apache-2.0 */
/* Modules that come and go: each is loaded, launched from and unloaded, and what every launch wrote
 * is what its own code computes, not that of a module before it. BULKHEAD_TEST_ROUNDS: so many of
 * each. */
#include "../support/support.h"

enum {
    KERNELS = 3,
    MAX_STEPS = 160,
    THREADS = 32,
    BACKLOG = 100, /* three trains and some */
    TEXT_BYTES = KERNELS * (1024 + MAX_STEPS * 64)
};

typedef struct code {
    uint32_t steps[KERNELS];
    uint32_t factor[KERNELS][MAX_STEPS], addend[KERNELS][MAX_STEPS];
} code;

/* What kernel k computes from its number and a thread's. */
static uint32_t compute(const code *c, uint32_t k, uint32_t value) {
    for (uint32_t i = 0; i < c->steps[k]; i++) value = value * c->factor[k][i] + c->addend[k][i];
    return value;
}

/* Kernels k0 ... of lengths and constants of their own: k(inout u32 p, u32 at, u32 value) has p[at
 * + i] = compute(value + i) in each thread i. */
static void make_code(code *c, rng *random, char *text) {
    size_t used =
        (size_t)snprintf(text, TEXT_BYTES, ".version 7.0\n.target sm_70\n.address_size 64\n");
#define ADD(...) used += (size_t)snprintf(text + used, TEXT_BYTES - used, __VA_ARGS__)
    for (uint32_t k = 0; k < KERNELS; k++) {
        c->steps[k] = 1 + rng_below(random, MAX_STEPS);
        ADD(".visible .entry k%u(.param .u64 p, .param .u32 at, .param .u32 value)\n{\n", k);
        ADD("    .reg .b32 %%r<5>;\n    .reg .b64 %%rd<4>;\n");
        ADD("    ld.param.u64 %%rd1, [p];\n    cvta.to.global.u64 %%rd1, %%rd1;\n");
        ADD("    ld.param.u32 %%r1, [at];\n    ld.param.u32 %%r2, [value];\n");
        ADD("    mov.u32 %%r3, %%tid.x;\n    add.u32 %%r1, %%r1, %%r3;\n");
        ADD("    add.u32 %%r2, %%r2, %%r3;\n    mul.wide.u32 %%rd2, %%r1, 4;\n");
        ADD("    add.s64 %%rd3, %%rd1, %%rd2;\n");
        for (uint32_t i = 0; i < c->steps[k]; i++) {
            c->factor[k][i] = rng_next(random) & 0x7fffffff;
            c->addend[k][i] = rng_next(random) & 0x7fffffff;
            ADD("    mad.lo.u32 %%r2, %%r2, %u, %u;\n", c->factor[k][i], c->addend[k][i]);
        }
        ADD("    st.global.u32 [%%rd3], %%r2;\n    ret;\n}\n");
    }
#undef ADD
    REQUIRE(used < TEXT_BYTES);
}

static uint32_t rounds_of(uint32_t usual) {
    const char *text = getenv("BULKHEAD_TEST_ROUNDS");
    return text ? (uint32_t)strtoul(text, NULL, 10) : usual;
}

typedef struct passing {
    code code;
    char text[TEXT_BYTES];
    bh_module module;
    bh_kernel kernels[KERNELS];
} passing;

static void passing_load(passing *p, bh_device device, rng *random) {
    make_code(&p->code, random, p->text);
    p->module = load_module(device, p->text);
    for (uint32_t k = 0; k < KERNELS; k++) {
        char name[8];
        snprintf(name, sizeof name, "k%u", k);
        p->kernels[k] = get_kernel(p->module, name);
    }
}

/* Launch `at` uses kernel at % KERNELS with 32 words of its own; the value makes it known. */
static bh_ticket launch(const passing *p, uint32_t at, uint32_t value, bh_buffer words,
                        const bh_launch_options *options) {
    return submit(p->kernels[at % KERNELS], BH_GRID(THREADS, THREADS),
                  BH_ARGS(BH_INOUT(words), at * THREADS, value), options);
}

static bool wrote(const passing *p, uint32_t at, uint32_t value, const uint32_t *words) {
    for (uint32_t i = 0; i < THREADS; i++) {
        uint32_t expected = compute(&p->code, at % KERNELS, value + i);
        if (words[at * THREADS + i] == expected) continue;
        printf("launch %u, thread %u: %u, expected %u\n", at, i, words[at * THREADS + i], expected);
        return false;
    }
    return true;
}

TEST_TIMEOUT(modules_that_live_for_a_launch_or_two, 60) {
    bh_device device = open_device();
    rng random = rng_seeded(1);
    passing *p = malloc(sizeof *p);
    bh_buffer words = words_filled(device, KERNELS * THREADS, 0);
    uint32_t got[KERNELS * THREADS];
    for (uint32_t round = 0; round < rounds_of(300); round++) {
        passing_load(p, device, &random);
        uint32_t count = 1 + rng_below(&random, KERNELS);
        for (uint32_t i = 0; i < count; i++)
            REQUIRE_OK(bh_wait(launch(p, i, round + i, words, NULL), LONG_NS));
        REQUIRE_OK(bh_buffer_read(words, 0, got, sizeof got));
        for (uint32_t i = 0; i < count; i++) REQUIRE(wrote(p, i, round + i, got));
        REQUIRE_OK(bh_module_release(p->module));
    }
    free(p);
    CHECK_EQ(health_of(device).losses, 0);
    CHECK_OK(bh_device_close(device));
}

/* Rounds of backlogs that wait behind a gate, so that they go in trains, on a lane of its own; a
 * module that stays is used between those that go. */
static void churn(const rig *r, const passing *stays, uint64_t seed, uint32_t rounds, bool gates) {
    rng random = rng_seeded(seed);
    bh_lane lane = open_lane(r->device);
    bh_launch_options there = on_lane(lane, 0);
    passing *p = malloc(sizeof *p);
    bh_buffer words = words_filled(r->device, BACKLOG * THREADS, 0);
    uint32_t *got = malloc(BACKLOG * THREADS * sizeof *got);
    REQUIRE(p && got);
    for (uint32_t round = 0; round < rounds; round++) {
        passing_load(p, r->device, &random);
        bool gated = rng_below(&random, 2) && gates;
        gate g;
        if (gated) g = gate_close(r, lane, 0);
        for (uint32_t i = 0; i < BACKLOG; i++)
            launch(i % 7 ? p : stays, i, round + i, words, &there);
        /* The module goes while its work waits or runs: that runs to its end first. */
        if (round % 2) REQUIRE_OK(bh_module_release(p->module));
        if (gated) gate_open(&g);
        REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
        REQUIRE_OK(bh_buffer_read(words, 0, got, BACKLOG * THREADS * sizeof *got));
        for (uint32_t i = 0; i < BACKLOG; i++) REQUIRE(wrote(i % 7 ? p : stays, i, round + i, got));
        if (round % 2 == 0) REQUIRE_OK(bh_module_release(p->module));
        if (gated) {
            REQUIRE_OK(bh_buffer_release(g.flag));
            REQUIRE_OK(bh_buffer_release(g.mark));
        }
    }
    free(got);
    free(p);
    REQUIRE_OK(bh_buffer_release(words));
    REQUIRE_OK(bh_lane_release(lane));
}

TEST_TIMEOUT(modules_that_live_for_a_backlog, 60) {
    rig r = rig_open(0);
    rng random = rng_seeded(2);
    passing *stays = malloc(sizeof *stays);
    passing_load(stays, r.device, &random);
    churn(&r, stays, 3, rounds_of(60), true);
    free(stays);
    if (!is_cpu(r.device)) CHECK_GT(lanes_of(r.device).trains, 0);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct several {
    rig r;
    passing stays;
} several;

static void churn_thread(void *context, unsigned index) {
    several *s = context;
    /* A GPU's driver waits for all kernels before it unloads a module, and other threads with it:
     * none of them may wait for the program. */
    churn(&s->r, &s->stays, 10 + index, rounds_of(60) / 4 + 1, is_cpu(s->r.device));
}

TEST_TIMEOUT(modules_of_several_lanes_come_and_go_at_once, 60) {
    several *s = malloc(sizeof *s);
    rng random = rng_seeded(4);
    s->r = rig_open(0);
    passing_load(&s->stays, s->r.device, &random);
    run_threads(4, churn_thread, s);
    CHECK_EQ(health_of(s->r.device).losses, 0);
    CHECK_OK(bh_device_close(s->r.device));
    free(s);
}
