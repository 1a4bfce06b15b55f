/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory and losses: work that still uses what the program has freed is done again by a worker
 * that is started cold. */
#include <signal.h>
#include <sys/resource.h>

#include "../support/support.h"

enum { WORDS = 1024 };

typedef struct freeing {
    bh_device device;
    void *memory;
    bh_host_pool pool;
    _Atomic(int) begun, ended;
    bh_status status;
} freeing;

static void *free_memory(void *context) {
    freeing *self = context;
    atomic_store(&self->begun, 1);
    self->status =
        self->pool.id ? bh_host_pool_release(self->pool) : bh_host_free(self->device, self->memory);
    atomic_store(&self->ended, 1);
    return NULL;
}

/* A read into host memory waits behind a gate; the program gives the memory up meanwhile, and the
 * worker is lost. Its successor is started cold. */
static void lose_while_freed(bool pooled) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_lane lane = open_lane(r.device);
    bh_buffer source = words_counting(r.device, WORDS, 5), copy = words_filled(r.device, WORDS, 0);
    freeing self = {.device = r.device};
    if (pooled) {
        CHECK_OK(bh_host_pool_open(r.device, NULL, &self.pool));
        CHECK_OK(bh_host_pool_take(self.pool, WORDS * 4, 0, &self.memory));
    } else {
        CHECK_OK(bh_host_alloc(r.device, WORDS * 4, &self.memory));
    }
    gate g = gate_close(&r, lane, 0);
    bh_ticket in, out;
    CHECK_OK(bh_submit_read(lane, source, 0, self.memory, WORDS * 4, &in));
    CHECK_OK(bh_submit_write(lane, copy, 0, self.memory, WORDS * 4, &out));
    if (pooled) CHECK_OK(bh_host_pool_give(self.pool, self.memory));

    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, free_memory, &self) == 0);
    while (!atomic_load(&self.begun)) sleep_ms(1);
    sleep_ms(50);
    CHECK_EQ(atomic_load(&self.ended), 0);
    /* It is the program's no more. */
    CHECK_REFUSED(bh_submit_read(lane, source, 0, self.memory, WORDS * 4, &(bh_ticket){0, 0}),
                  BH_E_INVALID);
    if (!pooled) CHECK_REFUSED(bh_host_free(r.device, self.memory), BH_E_INVALID);
    kill_worker(r.device, SIGKILL);

    CHECK_STATUS(bh_wait(g.ticket, LONG_NS), BH_E_LOST);
    CHECK_OK(bh_wait(in, LONG_NS));
    CHECK_OK(bh_wait(out, LONG_NS));
    pthread_join(thread, NULL);
    CHECK_OK(self.status);
    CHECK(words_count(copy, WORDS, 5));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_on_memory_that_is_being_freed_survives_a_loss) {
    lose_while_freed(false);
}

TEST(work_on_a_piece_of_a_pool_that_is_being_closed_survives_a_loss) {
    lose_while_freed(true);
}

/* Freed once by one of many threads, refused to the others. */
struct race {
    bh_device device;
    void *memory;
    _Atomic(int) freed, refused;
};

static void free_it(void *context, unsigned index) {
    struct race *self = context;
    (void)index;
    bh_status status = bh_host_free(self->device, self->memory);
    if (status == BH_OK) atomic_fetch_add(&self->freed, 1);
    if (status == BH_E_INVALID) atomic_fetch_add(&self->refused, 1);
}

TEST(memory_is_freed_once) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_lane lane = open_lane(r.device);
    bh_buffer source = words_counting(r.device, WORDS, 5);
    for (int i = 0; i < 20; i++) {
        struct race self = {.device = r.device};
        CHECK_OK(bh_host_alloc(r.device, WORDS * 4, &self.memory));
        bh_ticket in;
        CHECK_OK(bh_submit_read(lane, source, 0, self.memory, WORDS * 4, &in));
        run_threads(8, free_it, &self);
        CHECK_EQ(atomic_load(&self.freed), 1);
        CHECK_EQ(atomic_load(&self.refused), 7);
        CHECK_OK(bh_wait(in, LONG_NS));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* ---- staging slots that cannot be made ---- */

static void write_at_once(void *context, unsigned index) {
    const rig *r = context;
    (void)index;
    bh_buffer buffer = words_alloc(r->device, 16);
    uint32_t words[16] = {0};
    for (int i = 0; i < 3; i++) (void)bh_buffer_write(buffer, 0, words, sizeof words);
}

/* The worker has no addresses left for them: every call comes back, and once there are some, they
 * work. */
TEST(writes_come_back_where_the_worker_cannot_map_what_they_go_through) {
#if defined(__SANITIZE_ADDRESS__)
    SKIP("AddressSanitizer in the worker ends it when it finds no addresses itself");
#endif
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    words_alloc(r.device, 16); /* the chunk that later ones are cut from */
    pid_t worker = health_of(r.device).worker_pid;
    struct rlimit all, none = {1 << 20, RLIM_INFINITY};
    if (prlimit(worker, RLIMIT_AS, NULL, &all) != 0) SKIP("the worker's limits cannot be set");
    none.rlim_max = all.rlim_max;
    REQUIRE(prlimit(worker, RLIMIT_AS, &none, NULL) == 0);
    run_threads(8, write_at_once, &r);
    (void)prlimit(worker, RLIMIT_AS, &all, NULL);
    if (health_of(r.device).losses == 0) check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
