/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of random operations over several lanes, compared byte for byte with a model. */
#include "../support/support.h"

enum { LANES = 4, BUFFERS = 12, MAX_WORDS = 600 };

struct slot {
    bh_buffer buffer;
    uint32_t count;
    uint32_t *model;
};

struct world {
    rig r;
    bh_lane lanes[LANES + 1]; /* the last is the device's own */
    bh_kernel mix, churn, iota;
    struct slot slots[BUFFERS];
    rng random;
    uint32_t step;
};

static bh_lane any_lane(struct world *w) {
    return w->lanes[rng_below(&w->random, LANES + 1)];
}

static void slot_renew(struct world *w, struct slot *slot) {
    if (slot->model != NULL) {
        REQUIRE_OK(bh_buffer_release(slot->buffer));
        free(slot->model);
    }
    slot->count = 1 + rng_below(&w->random, MAX_WORDS);
    slot->model = malloc(slot->count * 4);
    REQUIRE(slot->model != NULL);
    slot->buffer = words_alloc(w->r.device, slot->count);
    for (uint32_t i = 0; i < slot->count; i++) slot->model[i] = w->step + i;
    REQUIRE_OK(bh_submit_write(any_lane(w), slot->buffer, 0, slot->model, slot->count * 4, NULL));
}

static void slot_check(struct slot *slot) {
    uint32_t got[MAX_WORDS];
    REQUIRE_OK(bh_buffer_read(slot->buffer, 0, got, slot->count * 4));
    CHECK_MEM_EQ(got, slot->model, slot->count * 4);
}

static void write_range(struct world *w, struct slot *slot) {
    uint8_t bytes[MAX_WORDS * 4];
    uint32_t size = slot->count * 4, from = rng_below(&w->random, size);
    uint32_t length = 1 + rng_below(&w->random, size - from);
    for (uint32_t i = 0; i < length; i++) bytes[i] = (uint8_t)rng_next(&w->random);
    if (rng_below(&w->random, 2))
        REQUIRE_OK(bh_submit_write(any_lane(w), slot->buffer, from, bytes, length, NULL));
    else
        REQUIRE_OK(bh_buffer_write(slot->buffer, from, bytes, length));
    memcpy((uint8_t *)slot->model + from, bytes, length);
}

static void fill_range(struct world *w, struct slot *slot) {
    uint8_t pattern[16];
    uint32_t width = 1u << rng_below(&w->random, 5), size = slot->count * 4;
    uint32_t from = rng_below(&w->random, size);
    uint32_t length = rng_below(&w->random, (size - from) / width + 1) * width;
    for (int i = 0; i < 16; i++) pattern[i] = (uint8_t)rng_next(&w->random);
    REQUIRE_OK(bh_submit_fill(any_lane(w), slot->buffer, from, length, pattern, width, NULL));
    for (uint32_t i = 0; i < length; i++) ((uint8_t *)slot->model)[from + i] = pattern[i % width];
}

static void copy_range(struct world *w, struct slot *to, struct slot *from) {
    uint32_t room = (to->count < from->count ? to->count : from->count) * 4;
    uint32_t length = 1 + rng_below(&w->random, room);
    uint32_t a = rng_below(&w->random, to->count * 4 - length + 1);
    uint32_t b = rng_below(&w->random, from->count * 4 - length + 1);
    if (to == from) return;
    REQUIRE_OK(bh_submit_copy(any_lane(w), to->buffer, a, from->buffer, b, length, NULL));
    memcpy((uint8_t *)to->model + a, (uint8_t *)from->model + b, length);
}

static void launch_mix(struct world *w, struct slot *to, struct slot *a, struct slot *b) {
    uint32_t n = to->count < a->count ? to->count : a->count;
    bh_launch_options there = on_lane(any_lane(w), 0);
    n = n < b->count ? n : b->count;
    if (to == a || to == b) return;
    /* the rest of `to` stays as it is, so it is not an output alone */
    submit(w->mix, BH_GRID(n, 128),
           BH_ARGS(n == to->count ? BH_OUT(to->buffer) : BH_INOUT(to->buffer), BH_IN(a->buffer),
                   BH_IN(b->buffer), w->step, n),
           &there);
    for (uint32_t i = 0; i < n; i++) to->model[i] = mix_word(a->model[i], b->model[i], w->step);
}

static void launch_on_view(struct world *w, struct slot *slot) {
    bh_launch_options there = on_lane(any_lane(w), 0);
    uint32_t first = rng_below(&w->random, slot->count);
    uint32_t n = 1 + rng_below(&w->random, slot->count - first);
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(slot->buffer, 0, first, n, &view));
    if (rng_below(&w->random, 2)) {
        submit(w->iota, BH_GRID(n, 64), BH_ARGS(BH_OUT(view), w->step, n), &there);
        for (uint32_t i = 0; i < n; i++) slot->model[first + i] = w->step + i;
    } else {
        submit(w->churn, BH_GRID(n, 64), BH_ARGS(BH_INOUT(view), w->step, n), &there);
        for (uint32_t i = 0; i < n; i++)
            slot->model[first + i] = churn_word(slot->model[first + i], w->step);
    }
    REQUIRE_OK(bh_buffer_release(view));
}

static void run_history(uint64_t seed, uint32_t steps) {
    struct world w = {.r = rig_open(0), .random = rng_seeded(seed)};
    w.mix = rig_kernel(&w.r, "mix");
    w.churn = rig_kernel(&w.r, "churn");
    w.iota = rig_kernel(&w.r, "iota");
    for (int i = 0; i < LANES; i++) w.lanes[i] = open_lane(w.r.device);
    for (int i = 0; i < BUFFERS; i++) slot_renew(&w, &w.slots[i]);
    for (w.step = 1; w.step <= steps; w.step++) {
        struct slot *a = &w.slots[rng_below(&w.random, BUFFERS)];
        struct slot *b = &w.slots[rng_below(&w.random, BUFFERS)];
        struct slot *c = &w.slots[rng_below(&w.random, BUFFERS)];
        switch (rng_below(&w.random, 16)) {
        case 0:
            slot_renew(&w, a);
            break;
        case 1:
            slot_check(a);
            break;
        case 2:
        case 3:
            write_range(&w, a);
            break;
        case 4:
        case 5:
            fill_range(&w, a);
            break;
        case 6:
        case 7:
        case 8:
            copy_range(&w, a, b);
            break;
        case 9:
        case 10:
        case 11:
            launch_on_view(&w, a);
            break;
        default:
            launch_mix(&w, a, b, c);
            break;
        }
    }
    for (int i = 0; i < BUFFERS; i++) {
        slot_check(&w.slots[i]);
        REQUIRE_OK(bh_buffer_release(w.slots[i].buffer));
        free(w.slots[i].model);
    }
    CHECK_EQ(memory_of(w.r.device).bytes_buffers, 0);
    CHECK_OK(bh_device_close(w.r.device));
}

TEST(random_history_a) {
    run_history(101, 3000);
}

TEST(random_history_b) {
    run_history(202, 3000);
}

TEST(random_history_c) {
    run_history(303, 3000);
}
