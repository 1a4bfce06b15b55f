/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads ask for memory of every kind and give it back while workers are lost, standbys are
 * behind, and the device is closed at any moment. Calls answer with what may be; what is written is
 * read; nothing is left over. */
#include <signal.h>

#include "../support/buffers.h"
#include "../support/support.h"

enum { THREADS = 8, SLOTS = 6, WORDS = 2048 };
#define MIB (UINT64_C(1) << 20)

typedef struct crowd {
    rig r;
    bh_host_pool pool;
    bh_lane lanes[THREADS];
    _Atomic(int) stop;
    _Atomic(uint64_t) calls;

    uint64_t seed;
} crowd;

typedef struct own {
    crowd *all;
    rng random;
    bh_buffer buffers[SLOTS];
    uint32_t values[SLOTS];
    void *host, *piece;
    bh_lane lane;
} own;

/* What a call may answer when the device is closed or a worker is lost in the middle of it. */
static bool may_be(bh_status status) {
    return status == BH_OK || status == BH_E_STOPPED || status == BH_E_STALE ||
           status == BH_E_LOST || status == BH_E_NO_MEMORY || status == BH_E_BUSY ||
           status == BH_E_CANCELLED || status == BH_E_INVALID;
}

static bh_status expect(own *self, bh_status status, const char *call) {
    atomic_fetch_add(&self->all->calls, 1);
    if (!may_be(status)) {
        bh_error error;
        bh_last_error(&error);
        printf("%s: %s: %s\n", call, bh_status_name(status), error.message);
    }
    CHECK(may_be(status));
    return status;
}
#define TRY(call) expect(self, (call), #call)

static void drop(own *self, unsigned slot) {
    if (self->buffers[slot].id) TRY(bh_buffer_release(self->buffers[slot]));
    self->buffers[slot].id = 0;
}

static void fill(own *self, unsigned slot) {
    uint32_t words[WORDS], value = rng_next(&self->random);
    for (int i = 0; i < WORDS; i++) words[i] = value + (uint32_t)i;
    self->values[slot] = value;
    if (TRY(bh_buffer_write(self->buffers[slot], 0, words, sizeof words)) != BH_OK)
        drop(self, slot);
}

static void verify(own *self, unsigned slot) {
    uint32_t words[WORDS];
    if (!self->buffers[slot].id ||
        TRY(bh_buffer_read(self->buffers[slot], 0, words, sizeof words)) != BH_OK)
        return;
    for (int i = 0; i < WORDS; i++) {
        CHECK_EQ(words[i], self->values[slot] + (uint32_t)i);
        if (words[i] != self->values[slot] + (uint32_t)i) return;
    }
}

static void make(own *self, unsigned slot) {
    bh_device device = self->all->r.device;
    bh_buffer made = {0};
    bh_status status = BH_OK;
    drop(self, slot);
    switch (rng_below(&self->random, 4)) {
    case 0:
        status = TRY(bh_buffer_alloc(device, BH_U32, WORDS, NULL, &made));
        break;
    case 1: /* a chunk of its own */
        status = TRY(bh_buffer_alloc(device, BH_U32, 5 * MIB / 4, NULL, &made));
        break;
    case 2:
        status = TRY(alloc_shareable(device, BH_U32, WORDS, &made));
        break;
    default: {
        bh_buffer_options options = BH_INIT(options);
        options.flags = BH_BUFFER_MANAGED;
        options.tag = "managed";
        status = TRY(bh_buffer_alloc(device, BH_U32, WORDS, &options, &made));
    }
    }
    if (status != BH_OK) return;
    self->buffers[slot] = made;
    fill(self, slot);
}

/* Sent round: exported and opened again, the first handle goes. */
static void share(own *self, unsigned slot) {
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    bh_buffer other;
    if (!self->buffers[slot].id || bh_buffer_export(self->buffers[slot], fds, &token) != BH_OK)
        return;
    if (rng_below(&self->random, 4) == 0) TRY(bh_buffer_revoke(self->buffers[slot]));
    if (TRY(bh_buffer_import(self->all->r.device, fds, &token, NULL, &other)) == BH_OK) {
        uint32_t word = 0;
        if (TRY(bh_buffer_read(other, 0, &word, 4)) == BH_OK) CHECK_EQ(word, self->values[slot]);
        TRY(bh_buffer_release(other));
    }
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
}

static void map(own *self, unsigned slot) {
    void *pointer;
    if (!self->buffers[slot].id ||
        bh_managed_map(self->buffers[slot], 0, 4, BH_MAP_READ, &pointer) != BH_OK)
        return;
    CHECK_EQ(*(const uint32_t *)pointer, self->values[slot]);
    TRY(bh_managed_unmap(pointer, 4));
}

static void move(own *self, unsigned slot) {
    bh_ticket ticket;
    void *memory = self->host ? self->host : self->piece;
    if (!memory || !self->buffers[slot].id) return;
    if (TRY(bh_submit_read(self->lane, self->buffers[slot], 0, memory, WORDS * 4, &ticket)) !=
        BH_OK)
        return;
    if (rng_below(&self->random, 3) == 0) return;
    if (TRY(bh_wait(ticket, LONG_NS)) == BH_OK)
        CHECK_EQ(*(const uint32_t *)memory, self->values[slot]);
}

static void handle_host(own *self) {
    bh_device device = self->all->r.device;
    if (rng_below(&self->random, 2)) {
        if (self->host)
            TRY(bh_host_free(device, self->host));
        else if (TRY(bh_host_alloc(device, WORDS * 4, &self->host)) == BH_OK)
            return;
        self->host = NULL;
    } else {
        if (self->piece)
            TRY(bh_host_pool_give(self->all->pool, self->piece));
        else if (TRY(bh_host_pool_take(self->all->pool, WORDS * 4, 0, &self->piece)) == BH_OK)
            return;
        self->piece = NULL;
    }
}

static void look(own *self) {
    bh_device device = self->all->r.device;
    bh_memory_entry entries[16];
    size_t count;
    bh_memory_info info = BH_INIT(info);
    switch (rng_below(&self->random, 6)) {
    case 0:
        TRY(bh_memory_trim(device, 0, NULL));
        break;
    case 1:
        TRY(bh_memory_set_limit(device, NULL, (rng_below(&self->random, 3) + 1) * 128 * MIB));
        break;
    case 2:
        TRY(bh_memory_set_limit(device, "managed", rng_below(&self->random, 2) * 64 * MIB));
        break;
    case 3:
        TRY(bh_memory_list(device, entries, sizeof *entries, 16, &count));
        break;
    case 4:
        TRY(bh_memory_get_info(device, &info));
        break;
    default:
        TRY(bh_memory_reset_peak(device));
    }
}

static void do_something(own *self) {
    unsigned slot = rng_below(&self->random, SLOTS);
    switch (rng_below(&self->random, 8)) {
    case 0:
    case 1:
        make(self, slot);
        break;
    case 2:
        verify(self, slot);
        break;
    case 3:
        share(self, slot);
        break;
    case 4:
        map(self, slot);
        break;
    case 5:
        move(self, slot);
        break;
    case 6:
        handle_host(self);
        break;
    default:
        look(self);
    }
}

static void jostle(void *context, unsigned index) {
    crowd *all = context;
    own self = {.all = all, .random = rng_seeded(all->seed + index), .lane = all->lanes[index]};
    while (!atomic_load(&all->stop)) {
        do_something(&self);
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        verify(&self, slot);
        if (self.buffers[slot].id) (void)bh_buffer_release(self.buffers[slot]);
    }
    if (self.piece) (void)bh_host_pool_give(all->pool, self.piece);
    if (self.host) (void)bh_host_free(all->r.device, self.host);
}

static void *run_crowd(void *context) {
    run_threads(THREADS, jostle, context);
    return NULL;
}

/* Standbys fall behind now and then. */
static void disturb(crowd *all, rng *random) {
    bh_health now = health_of(all->r.device);
    pid_t standby = now.standby_pids[0];
    if (standby > 0 && rng_below(random, 2)) {
        kill(standby, SIGSTOP);
        sleep_ms(rng_below(random, 20));
        kill(standby, SIGCONT);
    }
    if (now.worker_pid > 0 && rng_below(random, 3) == 0) kill(now.worker_pid, SIGKILL);
    sleep_ms(rng_below(random, 30));
}

static void crowd_open(crowd *all, uint32_t flags, uint64_t seed) {
    memset(all, 0, sizeof *all);
    bh_device_options options = device_options(flags | BH_DEVICE_NO_RESTART_LIMIT);
    options.memory_limit = 256 * MIB;
    all->r = rig_open_with(&options);
    all->seed = seed;
    for (int i = 0; i < THREADS; i++) all->lanes[i] = open_lane(all->r.device);
    CHECK_OK(bh_host_pool_open(all->r.device, NULL, &all->pool));
}

static void crowd_run(uint32_t flags, uint64_t seed) {
    crowd all;
    crowd_open(&all, flags, seed);
    pthread_t thread;
    rng random = rng_seeded(seed + 100);
    REQUIRE(pthread_create(&thread, NULL, run_crowd, &all) == 0);
    for (uint64_t end = now_ns() + test_span_ns(2500); now_ns() < end;) disturb(&all, &random);
    atomic_store(&all.stop, 1);
    pthread_join(thread, NULL);
    check_device_works(&all.r);
    CHECK_OK(bh_device_sync(all.r.device, LONG_NS));
    CHECK_OK(bh_host_pool_release(all.pool));
    bh_memory_info info = BH_INIT(info);
    CHECK_OK(bh_memory_set_limit(all.r.device, NULL, 0));
    CHECK_OK(bh_memory_get_info(all.r.device, &info));
    printf("%llu calls, %llu losses\n", (unsigned long long)atomic_load(&all.calls),
           (unsigned long long)health_of(all.r.device).losses);
    CHECK_EQ(info.bytes_buffers, 0);
    CHECK_OK(bh_device_close(all.r.device));
}

TEST_TIMEOUT(memory_of_all_kinds_while_workers_are_lost, 90) {
    crowd_run(0, 71);
}

TEST_TIMEOUT(memory_of_all_kinds_in_guard_mode_while_workers_are_lost, 90) {
    crowd_run(BH_DEVICE_GUARD, 72);
}

TEST_TIMEOUT(memory_of_all_kinds_while_the_device_is_closed, 90) {
    rig_open(0); /* so that what descriptors the library keeps for itself are there */
    unsigned open_before = 0;
    for (unsigned round = 0; round < 12; round++) {
        crowd all;
        crowd_open(&all, round % 3 == 2 ? BH_DEVICE_NO_STANDBY : 0, 200 + round);
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, run_crowd, &all) == 0);
        sleep_ms(20 + round * 7);
        if (round % 2) kill(health_of(all.r.device).worker_pid, SIGKILL);
        CHECK_OK(bh_device_close(all.r.device));
        atomic_store(&all.stop, 1);
        pthread_join(thread, NULL);
        if (round == 2) open_before = open_descriptors();
    }
    CHECK_EQ(open_descriptors(), open_before);
}
