/* SPDX-License-Identifier: Apache-2.0 */
/* Many threads ask for memory at once: limits hold, no request is refused while there is memory, no
 * thread waits without need. */
#include "../support/support.h"

#define MIB (UINT64_C(1) << 20)

enum { THREADS = 8, WRITERS = 24 };

typedef struct crowd {
    rig r;
    pthread_barrier_t start;
    uint64_t bytes;
    bh_buffer buffers[THREADS];
    bh_host_pool pool;
    void *pieces[THREADS];
    _Atomic(int) refused, ended;
} crowd;

/* ---- device memory ---- */

static void alloc_at_once(void *context, unsigned index) {
    crowd *self = context;
    pthread_barrier_wait(&self->start);
    if (bh_buffer_alloc(self->r.device, BH_U8, self->bytes, NULL, &self->buffers[index]) != BH_OK)
        atomic_fetch_add(&self->refused, 1);
}

static void check_limit(uint64_t limit, uint64_t bytes, int most_refused) {
    for (int round = 0; round < 10; round++) {
        crowd self = {.bytes = bytes};
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.memory_limit = limit;
        self.r = rig_open_with(&options);
        pthread_barrier_init(&self.start, NULL, THREADS);
        run_threads(THREADS, alloc_at_once, &self);
        bh_memory_info info = BH_INIT(info);
        CHECK_OK(bh_memory_get_info(self.r.device, &info));
        CHECK(info.bytes_reserved <= limit);
        CHECK(info.peak_reserved <= limit);
        CHECK_EQ(atomic_load(&self.refused), most_refused);
        CHECK_OK(bh_device_close(self.r.device));
        pthread_barrier_destroy(&self.start);
    }
}

TEST(small_buffers_at_once_stay_within_the_limit) {
    check_limit(40 * MIB, 1 << 16, 0);
}

TEST(large_buffers_at_once_stay_within_the_limit) {
    check_limit(40 * MIB, 8 * MIB, 3);
}

/* ---- pieces of host memory ---- */

static void take_at_once(void *context, unsigned index) {
    crowd *self = context;
    pthread_barrier_wait(&self->start);
    if (bh_host_pool_take(self->pool, self->bytes, 0, &self->pieces[index]) != BH_OK)
        atomic_fetch_add(&self->refused, 1);
}

static void check_pool(uint64_t max_bytes, uint64_t bytes, int refused) {
    crowd self = {.bytes = bytes};
    self.r = rig_open(BH_DEVICE_NO_STANDBY);
    pthread_barrier_init(&self.start, NULL, THREADS);
    for (int round = 0; round < 10; round++) {
        bh_host_pool_options options = BH_INIT(options);
        options.max_bytes = max_bytes;
        CHECK_OK(bh_host_pool_open(self.r.device, &options, &self.pool));
        /* Pieces of another size are in the way. */
        void *small[4];
        for (int i = 0; i < 4; i++) CHECK_OK(bh_host_pool_take(self.pool, 4096, 0, &small[i]));
        for (int i = 0; i < 4; i++) CHECK_OK(bh_host_pool_give(self.pool, small[i]));
        memset(self.pieces, 0, sizeof self.pieces);
        atomic_store(&self.refused, 0);
        run_threads(THREADS, take_at_once, &self);
        CHECK_EQ(atomic_load(&self.refused), refused);
        for (int i = 0; i < THREADS; i++)
            if (self.pieces[i]) CHECK_OK(bh_host_pool_give(self.pool, self.pieces[i]));
        CHECK_OK(bh_host_pool_release(self.pool));
    }
    pthread_barrier_destroy(&self.start);
    CHECK_OK(bh_device_close(self.r.device));
}

TEST(a_pool_that_grows_refuses_nobody) {
    check_pool(64 * MIB, MIB, 0);
}

TEST(a_pool_that_makes_room_refuses_nobody) {
    check_pool(8 * MIB, MIB, 0);
    check_pool(4 * MIB, MIB, 4);
}

/* ---- writes from plain memory ---- */

static void write_many(void *context, unsigned index) {
    crowd *self = context;
    static uint8_t bytes[1 << 18];
    bh_buffer buffer = words_alloc(self->r.device, sizeof bytes / 4);
    pthread_barrier_wait(&self->start);
    for (int i = 0; i < 60; i++) CHECK_OK(bh_buffer_write(buffer, 0, bytes, sizeof bytes));
    (void)index;
    atomic_fetch_add(&self->ended, 1);
}

/* One write waits behind a kernel that waits for the program. Others have nothing to do with it. */
TEST(a_write_that_waits_is_not_waited_for_by_others) {
    crowd self = {.bytes = 0};
    self.r = rig_open(BH_DEVICE_NO_STANDBY);
    pthread_barrier_init(&self.start, NULL, WRITERS);
    bh_lane lane = open_lane(self.r.device);
    bh_buffer buffer = words_alloc(self.r.device, 1024);
    uint32_t words[1024] = {0};
    gate g = gate_close(&self.r, lane, 0);
    bh_ticket waits;
    CHECK_OK(bh_submit_write(lane, buffer, 0, words, sizeof words, &waits));
    run_threads(WRITERS, write_many, &self);
    CHECK_EQ(atomic_load(&self.ended), WRITERS);
    CHECK_STATUS(bh_wait(waits, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_wait(waits, LONG_NS));
    pthread_barrier_destroy(&self.start);
    CHECK_OK(bh_device_close(self.r.device));
}
