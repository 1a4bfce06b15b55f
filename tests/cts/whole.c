/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers between plain memory and a buffer are several requests, and count as one: other work
 * on the same bytes comes before all of it or after all of it. */
#include <pthread.h>
#include <stdatomic.h>

#include "../support/buffers.h"
#include "../support/managed.h"
#include "../support/support.h"
#include "../support/transfers.h"

enum { BYTES = 6 << 20, PART = 512 << 10, ROWS = 12, ROUNDS = 12, PAGE = 4096 };

static bh_buffer bytes_alloc(bh_device device, uint32_t flags) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = flags;
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U8, BYTES, &options, &buffer));
    return buffer;
}

static bh_lane lane_open(bh_device device) {
    bh_lane lane;
    REQUIRE_OK(bh_lane_open(device, NULL, &lane));
    return lane;
}

/* ---- against fills from another thread, each with one value ---- */

typedef struct filler {
    bh_buffer buffer;
    bh_lane lane;
    atomic_bool stop;
    uint64_t fills;
} filler;

static void *fill_again(void *context) {
    filler *self = context;
    for (uint8_t value = 1; !atomic_load(&self->stop); value = value % 100 + 1) {
        bh_ticket ticket;
        CHECK_OK(bh_submit_fill(self->lane, self->buffer, 0, BYTES, &value, 1, &ticket));
        CHECK_OK(bh_wait(ticket, LONG_NS));
        self->fills++;
    }
    return NULL;
}

static bool is_even(const uint8_t *bytes, size_t count) {
    return memcmp(bytes, bytes + 1, count - 1) == 0;
}

static bh_transfer as_rows(bh_transfer whole) {
    whole.height = ROWS;
    whole.width /= ROWS;
    return whole;
}

TEST_TIMEOUT(reads_and_writes_are_whole, 120) {
    bh_device device = open_device();
    filler other = {.buffer = bytes_alloc(device, BH_BUFFER_ZERO), .lane = lane_open(device)};
    bh_lane lane = lane_open(device);
    uint8_t *memory = malloc(BYTES);
    REQUIRE(memory);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, fill_again, &other), 0);
    for (int round = 0; round < ROUNDS; round++) {
        bh_transfer read = bh_transfer_read(other.buffer, 0, memory, BYTES), rows = as_rows(read);
        CHECK_OK(bh_buffer_read(other.buffer, 0, memory, BYTES));
        CHECK(is_even(memory, BYTES));
        CHECK_OK(transfer_on(lane, BH_SUBMIT_WAIT, &read, NULL));
        CHECK(is_even(memory, BYTES));
        CHECK_OK(transfer_on(lane, BH_SUBMIT_WAIT, &rows, NULL));
        CHECK(is_even(memory, BYTES));
        for (int form = 0; form < 2; form++) {
            bh_transfer write = bh_transfer_write(other.buffer, 0, memory, BYTES);
            memset(memory, 200, BYTES);
            if (form) write = as_rows(write);
            CHECK_OK(transfer_on(lane, 0, &write, NULL));
            CHECK_OK(bh_buffer_read(other.buffer, 0, memory, BYTES));
            CHECK(is_even(memory, BYTES));
        }
    }
    atomic_store(&other.stop, true);
    pthread_join(thread, NULL);
    CHECK_GT(other.fills, ROUNDS);
    free(memory);
    CHECK_OK(bh_device_close(device));
}

/* ---- what others get while a read cannot go on. It runs on its lane, which stands still. ---- */

typedef struct reader {
    bh_buffer buffer;
    bh_lane lane;
    uint64_t offset, bytes;
    uint8_t *memory;
    bh_status status;
    atomic_bool done;
} reader;

static void *read_all(void *context) {
    reader *self = context;
    bh_transfer read = bh_transfer_read(self->buffer, self->offset, self->memory, self->bytes);
    self->status = transfer_on(self->lane, BH_SUBMIT_WAIT, &read, NULL);
    atomic_store(&self->done, true);
    return NULL;
}

/* Until more requests than these were submitted to the lane. */
static void wait_for_requests(bh_device device, bh_lane lane, uint64_t before) {
    bh_lane_counters counters = BH_INIT(counters);
    do {
        REQUIRE_OK(bh_lane_get_counters(device, lane, &counters));
    } while (counters.requests <= before);
}

TEST(work_that_must_not_wait_is_refused_while_a_read_is_under_way) {
    rig r = rig_open(0);
    bh_lane behind = lane_open(r.device), free_lane = lane_open(r.device);
    reader other = {.buffer = bytes_alloc(r.device, BH_BUFFER_MANAGED),
                    .lane = behind,
                    .offset = BYTES / 2,
                    .bytes = BYTES / 2};
    CHECK_OK(bh_buffer_fill(other.buffer, 0, BYTES, "a", 1));
    uint8_t *plain = calloc(BYTES, 1);
    other.memory = malloc(BYTES);
    REQUIRE(other.memory && plain);
    gate g = gate_close(&r, behind, 0);
    bh_lane_counters counters = BH_INIT(counters);
    REQUIRE_OK(bh_lane_get_counters(r.device, behind, &counters));
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, read_all, &other), 0);
    wait_for_requests(r.device, behind, counters.requests);
    bh_transfer fill = bh_transfer_fill(other.buffer, 0, BYTES, "b", 1);
    bh_transfer part = bh_transfer_read(other.buffer, 0, other.memory, 0);
    void *pointer;
    CHECK_REFUSED(transfer_on(free_lane, BH_SUBMIT_NO_BLOCK, &fill, NULL), BH_E_BUSY);
    CHECK_REFUSED(
        bh_managed_map(other.buffer, BYTES - PAGE, PAGE, BH_MAP_WRITE | BH_MAP_NO_WAIT, &pointer),
        BH_E_BUSY);
    CHECK_OK(transfer_on(free_lane, BH_SUBMIT_NO_BLOCK, &part, NULL)); /* uses no byte */
    /* Of its two parts only the second meets the read: all or nothing. */
    bh_transfer write = bh_transfer_write(other.buffer, BYTES / 2 - PART, plain, 2 * PART);
    for (int i = 0; i < 500; i++)
        CHECK_REFUSED(transfer_on(free_lane, BH_SUBMIT_NO_BLOCK, &write, NULL), BH_E_BUSY);
    CHECK(!atomic_load(&other.done));
    gate_open(&g);
    pthread_join(thread, NULL);
    CHECK_OK(other.status);
    CHECK(other.memory[0] == 'a' && is_even(other.memory, BYTES / 2));
    CHECK_OK(bh_buffer_read(other.buffer, 0, plain, BYTES));
    CHECK(plain[0] == 'a' && is_even(plain, BYTES));
    CHECK_OK(transfer_on(free_lane, BH_SUBMIT_NO_BLOCK | BH_SUBMIT_WAIT, &fill, NULL));
    free(other.memory);
    free(plain);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_submitted_read_does_not_wait) {
    rig r = rig_open(0);
    bh_lane behind = lane_open(r.device), free_lane = lane_open(r.device);
    reader other = {
        .buffer = bytes_alloc(r.device, 0), .lane = behind, .offset = 0, .bytes = 2 * PART};
    CHECK_OK(bh_buffer_fill(other.buffer, 0, BYTES, "a", 1));
    other.memory = malloc(BYTES);
    REQUIRE(other.memory);
    gate g = gate_close(&r, behind, 0);
    bh_lane_counters counters = BH_INIT(counters);
    REQUIRE_OK(bh_lane_get_counters(r.device, behind, &counters));
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, read_all, &other), 0);
    wait_for_requests(r.device, behind, counters.requests + 1);
    bh_transfer fill = bh_transfer_fill(other.buffer, 0, BYTES, "b", 1);
    bh_ticket filled;
    CHECK_OK(transfer_on(free_lane, BH_SUBMIT_NO_BLOCK, &fill, &filled));
    CHECK(!atomic_load(&other.done));
    gate_open(&g);
    pthread_join(thread, NULL);
    CHECK_OK(other.status);
    CHECK(other.memory[0] == 'a' && is_even(other.memory, 2 * PART));
    CHECK_OK(bh_wait(filled, LONG_NS));
    free(other.memory);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- against maps: a write is refused before its first byte, or not at all ---- */

typedef struct mapper {
    bh_buffer buffer;
    atomic_bool stop;
    uint64_t maps;
} mapper;

static void *map_again(void *context) {
    mapper *self = context;
    while (!atomic_load(&self->stop)) {
        void *pointer;
        if (bh_managed_map(self->buffer, BYTES - PAGE, PAGE, BH_MAP_WRITE | BH_MAP_DISCARD,
                           &pointer) == BH_OK) {
            memset(pointer, 'm', PAGE);
            sleep_ms(1);
            CHECK_OK(bh_managed_unmap(pointer, PAGE));
            self->maps++;
        }
        sleep_ms(1);
    }
    return NULL;
}

TEST_TIMEOUT(a_write_that_a_map_refuses_has_written_nothing, 120) {
    bh_device device = open_device();
    mapper other = {.buffer = bytes_alloc(device, BH_BUFFER_MANAGED)};
    uint8_t *memory = malloc(BYTES), *seen = malloc(BYTES);
    REQUIRE(memory && seen);
    pthread_t thread;
    REQUIRE_EQ(pthread_create(&thread, NULL, map_again, &other), 0);
    int written = 0;
    for (int round = 0; round < 10 * ROUNDS || !written; round++) {
        bh_status status;
        while ((status = bh_buffer_fill(other.buffer, 0, BYTES, "o", 1)) == BH_E_BUSY) sleep_ms(1);
        CHECK_OK(status);
        memset(memory, 'n', BYTES);
        status = bh_buffer_write(other.buffer, 0, memory, BYTES);
        written += status == BH_OK;
        if (status != BH_OK) CHECK_EQ(status, BH_E_BUSY);
        CHECK_OK(bh_buffer_read(other.buffer, 0, seen, BYTES - PAGE));
        CHECK(seen[0] == (status == BH_OK ? 'n' : 'o') && is_even(seen, BYTES - PAGE));
    }
    atomic_store(&other.stop, true);
    pthread_join(thread, NULL);
    CHECK_GT(other.maps, 0);
    free(memory);
    free(seen);
    CHECK_OK(bh_device_close(device));
}
