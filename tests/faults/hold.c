/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a dead worker could still write is left alone until the worker is gone for good, and
 * nothing else waits for that. */
#include "../support/undead.h"

enum { WORDS = 512, TRIES = 40 };

/* Whether one of `TRIES` buffers of this size gets the address. */
static bool is_handed_out(bh_device device, uint64_t address) {
    bh_buffer tries[TRIES];
    bool found = false;
    for (int i = 0; i < TRIES; i++) {
        tries[i] = words_alloc(device, WORDS);
        found |= address_of(tries[i]) == address;
    }
    for (int i = 0; i < TRIES; i++) CHECK_OK(bh_buffer_release(tries[i]));
    return found;
}

struct scene {
    rig r;
    bh_buffer intact, touched, freed;
    uint64_t freed_address;
    pid_t held;
};

/* A launch that writes `touched` and, as far as the library knows, `freed`, and then faults; the
 * worker it was the end of is not gone when this returns. */
static void lose_worker(struct scene *s) {
    s->r = rig_open(0);
    s->intact = words_counting(s->r.device, WORDS, 10);
    s->touched = words_filled(s->r.device, WORDS, 1);
    s->freed = words_filled(s->r.device, WORDS, 2);
    s->freed_address = address_of(s->freed);
    wait_standby(s->r.device);
    s->held = undead_hold(s->r.device);
    bh_use also = {.buffer = s->freed, .access = BH_ACCESS_OUT};
    bh_launch_options options = BH_INIT(options);
    options.also = &also;
    options.also_count = 1;
    bh_ticket ticket = submit(rig_kernel(&s->r, "write_then_poke"), BH_GRID(WORDS, 64),
                              BH_ARGS(BH_INOUT(s->touched), (uint32_t)WORDS, NOWHERE), &options);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    wait_generation(s->r.device, 2);
}

TEST(work_on_what_a_dead_worker_could_write_waits_until_it_is_gone) {
    struct scene s;
    lose_worker(&s);
    bh_launch_options aside = on_lane(open_lane(s.r.device), 0);
    bh_ticket waits = submit(rig_kernel(&s.r, "iota"), BH_GRID(WORDS, 64),
                             BH_ARGS(BH_OUT(s.touched), 100u, (uint32_t)WORDS), &aside);
    /* Everything else goes on meanwhile. */
    for (int i = 0; i < 20; i++) {
        CHECK_OK(run_now(rig_kernel(&s.r, "add_one"), BH_GRID(WORDS, 64),
                         BH_ARGS(BH_INOUT(s.intact), (uint32_t)WORDS)));
        sleep_ms(10);
    }
    CHECK(words_count(s.intact, WORDS, 30));
    check_device_works(&s.r);
    CHECK_STATUS(bh_wait(waits, 0), BH_E_BUSY);
    CHECK_STATUS(bh_wait(waits, 50 * MS), BH_E_TIMEOUT);

    undead_let_go(s.held);
    CHECK_OK(bh_wait(waits, LONG_NS));
    CHECK(words_count(s.touched, WORDS, 100));
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(what_a_dead_worker_could_write_is_not_handed_out_until_it_is_gone) {
    struct scene s;
    lose_worker(&s);
    CHECK_OK(bh_buffer_release(s.freed));
    CHECK(!is_handed_out(s.r.device, s.freed_address));
    check_device_works(&s.r);

    undead_let_go(s.held);
    bool handed_out = false;
    for (uint64_t limit = now_ns() + LONG_NS; !handed_out && now_ns() < limit; sleep_ms(5))
        handed_out = is_handed_out(s.r.device, s.freed_address);
    CHECK(handed_out);
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(memory_that_is_released_unwritten_is_handed_out_at_once) {
    struct scene s;
    lose_worker(&s);
    uint64_t address = address_of(s.intact);
    CHECK_OK(bh_buffer_release(s.intact));
    CHECK(is_handed_out(s.r.device, address));
    undead_let_go(s.held);
    CHECK_OK(bh_device_close(s.r.device));
}
