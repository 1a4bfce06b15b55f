/* SPDX-License-Identifier: Apache-2.0 */
/* One-call dispatch: the host's arrays in, the kernel, the host's arrays out, one or many at a
 * time. */
#include <signal.h>

#include "../support/support.h"

enum { N = 1000 };

TEST(a_dispatch_brings_its_results_back) {
    rig r = rig_open(0);
    float x[N], y[N], a = 2;
    for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = 1;
    uint32_t n = N;
    bh_arg args[] = {BH_VALUE(&a, sizeof a), BH_HOST_IN(x, sizeof x), BH_HOST_INOUT(y, sizeof y),
                     BH_VALUE(&n, sizeof n)};
    for (int round = 1; round <= 3; round++) {
        REQUIRE_OK(bh_dispatch(rig_kernel(&r, "saxpy"), BH_GRID(N, 64), (bh_args){args, 4}, NULL));
        for (int i = 0; i < N; i++) CHECK_EQ((int)y[i], 1 + 2 * i * round);
    }
    uint32_t words[N];
    uint32_t base = 5;
    bh_arg iota[] = {BH_HOST_OUT(words, sizeof words), BH_VALUE(&base, 4), BH_VALUE(&n, 4)};
    CHECK_OK(bh_dispatch(rig_kernel(&r, "iota"), BH_GRID(N, 64), (bh_args){iota, 3}, NULL));
    for (uint32_t i = 0; i < N; i++) CHECK_EQ(words[i], 5 + i);
    CHECK_EQ(memory_of(r.device).buffers, 0); /* given back */
    CHECK_OK(bh_device_close(r.device));
}

/* Arrays too large to travel with others. */
TEST(large_arrays_travel_by_themselves) {
    enum { LARGE = 1 << 19 };
    rig r = rig_open(0);
    uint32_t *a = malloc(LARGE * 4), *b = calloc(LARGE, 4), n = LARGE;
    for (uint32_t i = 0; i < LARGE; i++) a[i] = i * 3;
    bh_arg args[] = {BH_HOST_IN(a, LARGE * 4), BH_HOST_OUT(b, LARGE * 4), BH_VALUE(&n, 4)};
    CHECK_OK(
        bh_dispatch(rig_kernel(&r, "copy_words"), BH_GRID(LARGE, 256), (bh_args){args, 3}, NULL));
    CHECK_MEM_EQ(a, b, LARGE * 4);
    free(a);
    free(b);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct work {
    uint32_t *a, *b, *out, words, k;
    bh_arg args[5];
} work;

/* Item i: out = mix(a, b, k), of its own size. */
static void make_item(bh_kernel mix, work *w, bh_dispatch_item *item, uint32_t index,
                      uint32_t words) {
    w->a = malloc(words * 4);
    w->b = malloc(words * 4);
    w->out = calloc(words, 4);
    w->words = words;
    w->k = index * 7;
    for (uint32_t i = 0; i < words; i++) w->a[i] = index * 1000 + i, w->b[i] = i * 5;
    w->args[0] = BH_HOST_OUT(w->out, words * 4);
    w->args[1] = BH_HOST_IN(w->a, words * 4);
    w->args[2] = BH_HOST_IN(w->b, words * 4);
    w->args[3] = BH_VALUE(&w->k, 4);
    w->args[4] = BH_VALUE(&w->words, 4);
    *item = (bh_dispatch_item)BH_INIT(*item);
    item->kernel = mix;
    item->shape = BH_GRID(words, 64);
    item->args = (bh_args){w->args, 5};
}

static bool item_is_right(const work *w) {
    for (uint32_t i = 0; i < w->words; i++) {
        if (w->out[i] != mix_word(w->a[i], w->b[i], w->k)) return false;
    }
    return true;
}

static void free_work(work *w) {
    free(w->a);
    free(w->b);
    free(w->out);
}

static void run_batch(bh_kernel mix, uint32_t count, uint32_t lanes, uint32_t words) {
    work *works = calloc(count, sizeof *works);
    bh_dispatch_item *items = calloc(count, sizeof *items);
    for (uint32_t i = 0; i < count; i++)
        make_item(mix, &works[i], &items[i], i, 1 + (words + i * 37) % (2 * words));
    bh_dispatch_options options = BH_INIT(options);
    options.lanes = lanes;
    CHECK_OK(bh_dispatch_batch(items, sizeof *items, count, &options));
    for (uint32_t i = 0; i < count; i++) {
        CHECK_OK(items[i].status);
        CHECK_EQ(items[i].attempts, 1);
        CHECK(item_is_right(&works[i]));
        free_work(&works[i]);
    }
    free(works);
    free(items);
}

TEST_TIMEOUT(batches_of_all_sizes_come_back_right, 60) {
    rig r = rig_open(0);
    bh_kernel mix = rig_kernel(&r, "mix");
    for (uint32_t lanes = 0; lanes <= 4; lanes++) {
        run_batch(mix, 1, lanes, 10);
        run_batch(mix, 200, lanes, 100);
        run_batch(mix, 30, lanes, 20000);
    }
    run_batch(mix, 3, 2, 300000);
    CHECK_EQ(memory_of(r.device).buffers, 0);
    CHECK_OK(bh_device_close(r.device));
}

/* Arrays of items that follow each other go up as one transfer and come back as one. */
TEST(small_arrays_travel_together) {
    enum { ITEMS = 60, WORDS = 64 };
    rig r = rig_open(0);
    work works[ITEMS];
    bh_dispatch_item items[ITEMS];
    for (uint32_t i = 0; i < ITEMS; i++)
        make_item(rig_kernel(&r, "mix"), &works[i], &items[i], i, WORDS);
    uint64_t dispatches = counters_of(r.device).dispatches;
    bh_lane_counters before = lanes_of(r.device);
    CHECK_OK(bh_dispatch_batch(items, sizeof *items, ITEMS, NULL));
    bh_lane_counters after = lanes_of(r.device);
    CHECK_EQ(after.launches - before.launches, ITEMS);
    CHECK_EQ(after.requests - before.requests, ITEMS + 2);
    CHECK_EQ(after.bytes_to_device - before.bytes_to_device, ITEMS * 2 * WORDS * 4);
    CHECK_EQ(after.bytes_to_host - before.bytes_to_host, ITEMS * WORDS * 4);
    CHECK_EQ(counters_of(r.device).dispatches - dispatches, ITEMS);
    for (uint32_t i = 0; i < ITEMS; i++) {
        CHECK(item_is_right(&works[i]));
        free_work(&works[i]);
    }
    CHECK_OK(bh_device_close(r.device));
}

/* The lanes asked for are used, each for a part. */
TEST(a_batch_spreads_over_its_lanes) {
    enum { ITEMS = 400 };
    rig r = rig_open(0);
    CHECK_EQ(counters_of(r.device).lanes, 1);
    run_batch(rig_kernel(&r, "mix"), ITEMS, 1, 100);
    CHECK_EQ(counters_of(r.device).lanes, 1);
    run_batch(rig_kernel(&r, "mix"), ITEMS, 4, 100);
    CHECK_EQ(counters_of(r.device).lanes, 5);
    uint64_t least = UINT64_MAX;
    char text[262144], name[64];
    size_t length;
    REQUIRE_OK(bh_prometheus(&r.device, 1, text, sizeof text, &length));
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "lane=\"%d\"} ", i + 1);
        const char *family = strstr(text, "bulkhead_lane_launches_total{");
        const char *line = family ? strstr(family, name) : NULL;
        REQUIRE(line != NULL);
        uint64_t launches = strtoull(line + strlen(name), NULL, 10);
        if (launches < least) least = launches;
    }
    CHECK_GE(least, 64); /* a pack each, at the least */
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_item_that_fails_leaves_the_others_alone) {
    enum { ITEMS = 20 };
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 100;
    rig r = rig_open_with(&options);
    bh_kernel mix = rig_kernel(&r, "mix"), poke = rig_kernel(&r, "poke");
    for (uint32_t retries = 0; retries <= 3; retries += 3) {
        work works[ITEMS];
        bh_dispatch_item items[ITEMS];
        bh_error error;
        uint64_t address = NOWHERE;
        uint32_t value = 1;
        bh_arg bad[] = {BH_VALUE(&address, 8), BH_VALUE(&value, 4)};
        for (uint32_t i = 0; i < ITEMS; i++) make_item(mix, &works[i], &items[i], i, 100);
        items[5].args.list = NULL; /* refused before anything is sent */
        items[9].args.count = 2;   /* refused by the launch */
        items[12].kernel = poke;   /* faults */
        items[12].args = (bh_args){bad, 2};
        items[12].error = &error;
        bh_dispatch_options how = BH_INIT(how);
        how.retries = retries;
        CHECK_REFUSED(bh_dispatch_batch(items, sizeof *items, ITEMS, &how),
                      BH_E_INVALID); /* the first error */
        for (int i = 0; i < ITEMS; i++) {
            if (i == 5) {
                CHECK_EQ(items[i].status, BH_E_INVALID);
            } else if (i == 9) {
                CHECK_EQ(items[i].status, BH_E_LAUNCH);
            } else if (i == 12) {
                CHECK_EQ(items[i].status, BH_E_FAULT);
                CHECK_EQ(error.status, BH_E_FAULT);
                CHECK_STR_CONTAINS(error.message, "poke");
                if (error.certain == 0) CHECK_EQ(retries, 0); /* alone it would be certain */
            } else if (items[i].status == BH_OK) {
                CHECK(item_is_right(&works[i]));
            } else { /* was in flight beside it */
                CHECK_EQ(retries, 0);
                CHECK(items[i].status == BH_E_LOST || items[i].status == BH_E_STALE ||
                      items[i].status == BH_E_FAULT); /* perhaps to blame */
            }
            if (retries && i != 5 && i != 9 && i != 12) CHECK_OK(items[i].status);
        }
        for (uint32_t i = 0; i < ITEMS; i++) free_work(&works[i]);
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct storm {
    rig r;
    _Atomic int over;
} storm;

static void dispatch_or_kill(void *context, unsigned index) {
    storm *s = context;
    if (index == 0) {
        for (int i = 0; i < 4; i++) {
            sleep_ms(40);
            pid_t pid = health_of(s->r.device).worker_pid;
            if (pid > 0) kill(pid, SIGKILL);
        }
        atomic_store(&s->over, 1);
        return;
    }
    bh_kernel mix = rig_kernel(&s->r, "mix");
    enum { ITEMS = 40 };
    for (int round = 0; round < 3 || !atomic_load(&s->over); round++) {
        work works[ITEMS];
        bh_dispatch_item items[ITEMS];
        for (uint32_t i = 0; i < ITEMS; i++)
            make_item(mix, &works[i], &items[i], i + index, 2000 + 5000 * (i % 3));
        bh_dispatch_options options = BH_INIT(options);
        options.retries = 20;
        options.flags = BH_SUBMIT_IDEMPOTENT;
        options.lanes = 2;
        CHECK_OK(bh_dispatch_batch(items, sizeof *items, ITEMS, &options));
        for (uint32_t i = 0; i < ITEMS; i++) {
            CHECK(item_is_right(&works[i]));
            free_work(&works[i]);
        }
    }
}

TEST_TIMEOUT(batches_of_several_threads_survive_kills, 90) {
    storm s = {.r = rig_open(BH_DEVICE_NO_RESTART_LIMIT)};
    run_threads(4, dispatch_or_kill, &s);
    check_device_works(&s.r);
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(wrong_dispatches_are_refused) {
    rig r = rig_open(0);
    bh_kernel add = rig_kernel(&r, "add_one");
    uint32_t words[4] = {0}, n = 4;
    bh_arg good[] = {BH_HOST_INOUT(words, 16), BH_VALUE(&n, 4)};
    bh_arg bad[2] = {good[0], good[1]};
    CHECK_REFUSED(bh_dispatch((bh_kernel){0}, BH_GRID(4, 4), (bh_args){good, 2}, NULL),
                  BH_E_INVALID);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(0, 4), (bh_args){good, 2}, NULL), BH_E_LAUNCH);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 1}, NULL), BH_E_LAUNCH);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){NULL, 2}, NULL), BH_E_INVALID);
    bad[0].access = 4;
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){bad, 2}, NULL), BH_E_INVALID);
    bad[0].kind = 9;
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){bad, 2}, NULL), BH_E_INVALID);
    bad[0] = BH_HOST_IN(NULL, 16);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){bad, 2}, NULL), BH_E_INVALID);
    bad[0] = BH_VALUE(words, 5000);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){bad, 2}, NULL), BH_E_LAUNCH);
    bad[0] = good[0];
    bad[1] = BH_VALUE(&n, 2);
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){bad, 2}, NULL), BH_E_LAUNCH);
    bh_dispatch_options options = BH_INIT(options);
    options.flags = BH_LAUNCH_COOPERATIVE;
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 2}, &options), BH_E_INVALID);
    options.flags = 0;
    options.lanes = 9;
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 2}, &options), BH_E_INVALID);
    options.size = 2;
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 2}, &options), BH_E_INVALID);
    bh_dispatch_item none = {0};
    CHECK_REFUSED(bh_dispatch_batch(&none, sizeof none, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_dispatch_batch(&none, sizeof none - 8, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_dispatch_batch(&none, sizeof none, SIZE_MAX, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_dispatch_batch(NULL, sizeof none, 1, NULL), BH_E_INVALID);
    CHECK_OK(bh_dispatch_batch(NULL, 0, 0, NULL));
    /* Only dispatches take arrays of the program. */
    bh_ticket ticket;
    bh_prepared prepared;
    CHECK_REFUSED(bh_launch(add, BH_GRID(4, 4), (bh_args){good, 2}, NULL, &ticket), BH_E_INVALID);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.fix, "bh_dispatch");
    CHECK_REFUSED(bh_prepare(add, BH_GRID(4, 4), (bh_args){good, 2}, NULL, &prepared),
                  BH_E_INVALID);
    CHECK_EQ(words[0], 0); /* nothing was written */
    CHECK_OK(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 2}, NULL));
    CHECK_EQ(words[3], 1);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(4, 4), (bh_args){good, 2}, NULL), BH_E_INVALID);
}

/* What stays on the device is passed as a buffer, between arrays that travel. */
TEST(dispatches_take_buffers_too) {
    enum { ITEMS = 10 };
    rig r = rig_open(0);
    bh_buffer b = words_counting(r.device, N, 3);
    uint32_t a[N], out[ITEMS][N];
    bh_dispatch_item items[ITEMS];
    bh_arg args[ITEMS][5];
    for (uint32_t i = 0; i < N; i++) a[i] = i * 7;
    for (uint32_t k = 0; k < ITEMS; k++) {
        const bh_arg list[] = {BH_HOST_OUT(out[k], sizeof out[k]), BH_HOST_IN(a, sizeof a),
                               BH_IN(b), BH_ARG(k), BH_ARG((uint32_t)N)};
        memcpy(args[k], list, sizeof list);
        items[k] = (bh_dispatch_item)BH_INIT(items[k]);
        items[k].kernel = rig_kernel(&r, "mix");
        items[k].shape = BH_GRID(N, 64);
        items[k].args = (bh_args){args[k], 5};
    }
    CHECK_OK(bh_dispatch_batch(items, sizeof *items, ITEMS, NULL));
    for (uint32_t k = 0; k < ITEMS; k++)
        for (uint32_t i = 0; i < N; i++) CHECK_EQ(out[k][i], mix_word(a[i], 3 + i, k));
    CHECK_EQ(memory_of(r.device).buffers, 1);
    CHECK_OK(bh_device_close(r.device));
}
