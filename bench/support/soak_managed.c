/* SPDX-License-Identifier: Apache-2.0 */
/* Work of the soak that has its data in host memory: managed buffers, each used once through from
 * beginning to end; a transparent one, of which pages go to and fro; and dispatches. */
#include <string.h>

#include "bench.h"
#include "soak.h"

enum { WORDS = 4096 };
#define PATIENCE_NS     (120 * BENCH_S)
#define TRY(expression) soak_taken(self, SOAK_CALL(self, expression), #expression)

/* Launches `work` on it and returns its first answer. */
static bh_status work(soak_thread *self, bh_buffer buffer, uint32_t k) {
    bh_ticket ticket;
    bh_launch_options options = BH_INIT(options);
    options.lane = self->lanes[1];
    bh_status status = SOAK_CALL(self, bh_launch(self->era.kernels.work, BH_GRID(WORDS, 128),
                                                 BH_ARGS(BH_INOUT(buffer), k, (uint32_t)WORDS, 1u),
                                                 &options, &ticket));
    if (status == BH_E_QUARANTINED) (void)bh_kernel_pardon(self->era.kernels.work);
    if (!soak_taken(self, status, "a launch on a managed buffer")) return BH_E_BUSY;
    status = SOAK_CALL(self, bh_wait(ticket, PATIENCE_NS));
    self->tickets++;
    soak_answers_add(&self->answers, &self->random, ticket, status);
    if (status == BH_E_STOPPED) self->ended = true;
    return status;
}

static void compare(soak_thread *self, const uint32_t *words, uint32_t seed, uint32_t k,
                    uint32_t rounds, const char *what) {
    if (!soak_memory_enter(self)) return;
    for (uint32_t i = 0; i < WORDS; i++) {
        uint32_t expected = soak_work_word(soak_word(seed, i), k, rounds);
        if (words[i] == expected) continue;
        soak_report(SOAK_WRONG_BYTES, "%s: word %u is 0x%08x, not 0x%08x", what, i, words[i],
                    expected);
        break;
    }
    soak_memory_leave(self);
}

void soak_managed_round(soak_thread *self) {
    bh_buffer buffer;
    void *pointer;
    uint32_t seed = (uint32_t)soak_next(&self->random), k = seed * 3 + 1;
    self->managed++;
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_MANAGED;
    if (!TRY(bh_buffer_alloc(self->era.device, BH_U32, WORDS, &options, &buffer))) return;
    if (TRY(bh_managed_map(buffer, 0, WORDS * 4, BH_MAP_WRITE | BH_MAP_DISCARD, &pointer))) {
        uint32_t *words = pointer;
        for (uint32_t i = 0; i < WORDS; i++) words[i] = soak_word(seed, i); /* the map keeps it */
        (void)TRY(bh_managed_unmap(words, WORDS * 4));
        bh_status done = self->ended ? BH_E_STOPPED : work(self, buffer, k);
        if (!self->ended && done == BH_OK) {
            bh_status status =
                SOAK_CALL(self, bh_managed_map(buffer, 0, WORDS * 4, BH_MAP_READ, NULL));
            if (status == BH_E_STALE)
                soak_report(SOAK_UNEXPLAINED,
                            "a managed buffer whose launch ended well is suspect");
            if (soak_taken(self, status, "bh_managed_map")) {
                compare(self, words, seed, k, 1, "a managed buffer");
                (void)TRY(bh_managed_unmap(words, WORDS * 4));
            }
        } else if (!self->ended && (done == BH_E_LOST || done == BH_E_FAULT)) {
            bh_buffer_info info = BH_INIT(info);
            if (TRY(bh_buffer_get_info(buffer, &info)) && !info.suspect)
                soak_report(SOAK_DOUBT_LOST, "a managed buffer is intact after %s",
                            bh_status_name(done));
        }
    }
    if (!self->ended) (void)TRY(bh_buffer_release(buffer));
}

/* Plain stores, a launch, plain loads. After a lost launch the program sees what was there
 * before. */
void soak_transparent_round(soak_thread *self) {
    if (!self->transparent.id) {
        bh_buffer_options options = BH_INIT(options);
        options.flags = BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT;
        bh_buffer_info info = BH_INIT(info);
        bh_status status = SOAK_CALL(
            self, bh_buffer_alloc(self->era.device, BH_U32, WORDS, &options, &self->transparent));
        if (status == BH_E_UNSUPPORTED) return;
        if (!soak_taken(self, status, "bh_buffer_alloc") ||
            !TRY(bh_buffer_get_info(self->transparent, &info))) {
            self->transparent = (bh_buffer){0};
            return;
        }
        self->pages = info.pointer;
    }
    uint32_t seed = (uint32_t)soak_next(&self->random), k = seed * 5 + 1;
    self->managed++;
    if (!soak_memory_enter(self)) return;
    for (uint32_t i = 0; i < WORDS; i++) self->pages[i] = soak_word(seed, i);
    soak_memory_leave(self);
    bh_status done = work(self, self->transparent, k);
    if (self->ended) return;
    if (done == BH_OK) {
        compare(self, self->pages, seed, k, 1, "a transparent buffer");
    } else if (done == BH_E_LOST || done == BH_E_FAULT || done == BH_E_STALE) {
        compare(self, self->pages, seed, k, 0, "a transparent buffer whose launch was lost");
        (void)TRY(bh_buffer_release(self->transparent));
        self->transparent = (bh_buffer){0};
    }
}

void soak_dispatch_round(soak_thread *self) {
    uint32_t count = 512, rounds = 1, k = (uint32_t)soak_next(&self->random), seed = k * 7;
    uint32_t words[512];
    for (uint32_t i = 0; i < count; i++) words[i] = soak_word(seed, i);
    bh_args args = BH_ARGS(BH_HOST_INOUT(words, sizeof words), k, count, rounds);
    bh_dispatch_options options = BH_INIT(options);
    options.retries = soak_below(&self->random, 3);
    self->dispatched++;
    bh_status status =
        SOAK_CALL(self, bh_dispatch(self->era.kernels.work, BH_GRID(count, 128), args, &options));
    /* One that was lost, or called off, has left the array as it was. */
    for (uint32_t i = 0; i < count; i++) {
        uint32_t expected = soak_work_word(soak_word(seed, i), k, status == BH_OK);
        if (words[i] == expected) continue;
        soak_report(SOAK_WRONG_BYTES, "a dispatch that answered %s: word %u is 0x%08x, not 0x%08x",
                    bh_status_name(status), i, words[i], expected);
        break;
    }
    if (status == BH_E_QUARANTINED) (void)bh_kernel_pardon(self->era.kernels.work);
    if (status != BH_E_LOST) (void)soak_taken(self, status, "bh_dispatch");
}
