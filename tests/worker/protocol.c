/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's side of the protocol: boot, lanes, claims, notices, ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "kernels.h"
#include "support/driver.h"
#include "test.h"
#include "wire/share.h"

enum { BASIC = 1 };

static uint64_t fill_word(driver *d, uint32_t lane, uint64_t offset, uint32_t value,
                          const request_parts *parts) {
    bh__copy_body body = {.target = DRIVER_BASE + offset, .bytes = 4, .pattern_bytes = 4};
    memcpy(body.pattern, &value, sizeof value);
    return driver_submit(d, lane, BH__OP_FILL, &body, sizeof body, NULL, 0, parts);
}

static uint64_t read_word(driver *d, uint32_t lane, uint64_t offset, uint64_t host_offset) {
    bh__copy_body body = {
        .target = host_offset, .source = DRIVER_BASE + offset, .bytes = 4, .host = 1};
    return driver_submit(d, lane, BH__OP_READ, &body, sizeof body, NULL, 0, NULL);
}

/* Through the worker, so that it is as the worker sees it. */
static uint32_t word_at(driver *d, uint32_t lane, uint64_t offset) {
    uint64_t sequence = read_word(d, lane, offset, DRIVER_HOST - 4);
    REQUIRE(driver_wait(d, lane, sequence, 5000));
    uint32_t word;
    memcpy(&word, d->host + DRIVER_HOST - 4, sizeof word);
    return word;
}

static void sleep_ms(unsigned ms) {
    usleep(ms * 1000);
}

TEST(boots_and_describes_itself) {
    driver *d = driver_boot(64);
    CHECK(d->ready.magic == BH__WIRE_MAGIC);
    CHECK_EQ(d->ready.version, BH__WIRE_VERSION);
    CHECK_STR_EQ(d->ready.info.kind, "cpu");
    CHECK_STR_EQ(d->ready.info.arch, "ptx");
    CHECK(d->ready.info.name[0] != 0);
    CHECK_GT(d->ready.info.memory_total, 1 << 20);
    CHECK_GE(d->ready.info.multiprocessors, 1);
    CHECK_EQ(d->ready.info.max_lanes, BH__MAX_LANES);
    CHECK_GT(d->ready.chunk_granularity, 0);
    driver_close(d);
}

TEST(refuses_another_version) {
    driver *d = driver_start(64);
    bh__boot boot = {
        .magic = BH__WIRE_MAGIC, .version = 99, .area = 1, .front_bytes = d->front->front_bytes};
    driver_send_boot(d, &boot);
    REQUIRE(driver_receive(d, 5000));
    CHECK_EQ(d->message.type, BH__MSG_REFUSED);
    char own[32];
    snprintf(own, sizeof own, "version %u", BH__WIRE_VERSION);
    CHECK_STR_CONTAINS(d->message.u.error.message, "version 99");
    CHECK_STR_CONTAINS(d->message.u.error.message, own);
    CHECK(d->message.u.error.fix[0] != 0);
    CHECK_EQ(driver_join(d), 1);
    driver_close(d);
}

TEST(refuses_an_area_that_does_not_exist) {
    driver *d = driver_start(64);
    bh__boot boot = {.magic = BH__WIRE_MAGIC,
                     .version = BH__WIRE_VERSION,
                     .area = BH__AREAS,
                     .front_bytes = d->front->front_bytes};
    driver_send_boot(d, &boot);
    REQUIRE(driver_receive(d, 5000));
    CHECK_EQ(d->message.type, BH__MSG_REFUSED);
    CHECK_EQ(driver_join(d), 1);
    driver_close(d);
}

TEST(refuses_a_second_device) {
    driver *d = driver_start(64);
    bh__boot boot = {.magic = BH__WIRE_MAGIC,
                     .version = BH__WIRE_VERSION,
                     .area = 1,
                     .device_index = 3,
                     .front_bytes = d->front->front_bytes};
    driver_send_boot(d, &boot);
    REQUIRE(driver_receive(d, 5000));
    CHECK_EQ(d->message.type, BH__MSG_REFUSED);
    CHECK_EQ(d->message.u.error.status, BH_E_NO_DEVICE);
    CHECK_EQ(driver_join(d), 1);
    driver_close(d);
}

TEST(ends_when_the_application_hangs_up) {
    driver *d = driver_ready(64);
    driver_hang_up(d);
    CHECK_EQ(driver_join(d), 0);
    driver_close(d);
}

TEST(hangs_up_before_boot) {
    driver *d = driver_start(64);
    driver_hang_up(d);
    CHECK_EQ(driver_join(d), 0);
    driver_close(d);
}

TEST(fills_reads_copies_and_writes) {
    driver *d = driver_ready(64);
    for (uint32_t i = 0; i < 1000; i++) ((uint32_t *)(void *)d->host)[i] = i * 3;
    bh__copy_body write = {.target = DRIVER_BASE + 4096, .source = 0, .bytes = 4000, .host = 1};
    driver_submit(d, 0, BH__OP_WRITE, &write, sizeof write, NULL, 0, NULL);
    bh__copy_body copy = {
        .target = DRIVER_BASE + 65536, .source = DRIVER_READ_ONLY + 4096, .bytes = 4000};
    driver_submit(d, 0, BH__OP_COPY, &copy, sizeof copy, NULL, 0, NULL);
    bh__copy_body overlap = {
        .target = DRIVER_BASE + 65536 + 4, .source = DRIVER_BASE + 65536, .bytes = 3996};
    driver_submit(d, 0, BH__OP_COPY, &overlap, sizeof overlap, NULL, 0, NULL);
    bh__copy_body read = {.target = 8192, .source = DRIVER_BASE + 65536, .bytes = 4000, .host = 1};
    uint64_t last = driver_submit(d, 0, BH__OP_READ, &read, sizeof read, NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, last, 5000));
    const uint32_t *got = (const void *)(d->host + 8192);
    CHECK_EQ(got[0], 0);
    for (uint32_t i = 1; i < 1000; i++) REQUIRE_EQ(got[i], (i - 1) * 3);

    bh__copy_body fill = {.target = DRIVER_BASE + 3, .bytes = 3 * 1000, .pattern_bytes = 8};
    memcpy(fill.pattern, "abcdefgh", 8);
    driver_submit(d, 0, BH__OP_FILL, &fill, sizeof fill, NULL, 0, NULL);
    read = (bh__copy_body){.target = 0, .source = DRIVER_BASE + 3, .bytes = 3000, .host = 1};
    last = driver_submit(d, 0, BH__OP_READ, &read, sizeof read, NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, last, 5000));
    for (int i = 0; i < 3000; i++) REQUIRE_EQ(d->host[i], "abcdefgh"[i % 8]);
    CHECK_EQ(atomic_load(&d->area->reports_made), 0);
    driver_close(d);
}

TEST(reports_copies_that_miss_memory) {
    driver *d = driver_ready(64);
    bh__copy_body bad[] = {
        {.target = DRIVER_BASE + DRIVER_CHUNK - 2, .bytes = 4, .host = 1},
        {.target = DRIVER_READ_ONLY, .bytes = 4, .host = 1},
        {.target = DRIVER_BASE, .source = DRIVER_HOST - 2, .bytes = 4, .host = 1},
        {.target = DRIVER_BASE, .bytes = 4, .host = 7},
        {.target = DRIVER_BASE, .bytes = UINT64_MAX, .host = 1},
        {.target = 0, .bytes = 4, .host = 1},
    };
    uint64_t last = 0;
    uint32_t count = sizeof bad / sizeof *bad;
    for (uint32_t i = 0; i < count; i++)
        last = driver_submit(d, 0, BH__OP_WRITE, &bad[i], sizeof bad[i], NULL, 0, NULL);
    driver_submit(d, 0, 77, &bad[0], sizeof bad[0], NULL, 0, NULL);
    last = driver_submit(d, 0, BH__OP_GLOBAL_READ, &bad[0], sizeof bad[0], NULL, 0, NULL);
    REQUIRE(driver_wait(d, 0, last, 5000));
    REQUIRE_EQ(atomic_load(&d->area->reports_made), count + 2);
    for (uint32_t i = 0; i < count + 2; i++) {
        CHECK_EQ(d->area->reports[i].status, BH_E_INTERNAL);
        CHECK_EQ(d->area->reports[i].sequence, i + 1);
        CHECK(d->area->reports[i].message[0] && d->area->reports[i].fix[0]);
    }
    driver_pump(d);
    CHECK_GE(d->report_messages, 1);
    driver_close(d);
}

/* The verdict must stand before anything says that the request is over. */
TEST(waits_until_its_report_is_taken) {
    driver *d = driver_ready(256);
    d->leave_reports = true;
    bh__copy_body bad = {.target = 0, .bytes = 4, .host = 1};
    uint64_t last = 0;
    for (int i = 0; i < 200; i++)
        last = driver_submit(d, 0, BH__OP_WRITE, &bad, sizeof bad, NULL, 0, NULL);
    for (uint32_t taken = 0; taken < 200; taken++) {
        uint64_t limit = bh__deadline_after(5 * BH__NS_PER_S);
        while (atomic_load(&d->area->reports_made) == taken && bh__now_ns() < limit) driver_pump(d);
        if (taken < 3) usleep(20000);
        REQUIRE_EQ(atomic_load(&d->area->reports_made), taken + 1);
        CHECK_EQ(driver_done(d, 0), taken);
        CHECK_EQ(d->area->reports[taken % BH__REPORTS].sequence, taken + 1);
        driver_take_reports(d);
    }
    CHECK(driver_wait(d, 0, last, 5000));
    driver_close(d);
}

TEST(lanes_wait_for_go) {
    driver *d = driver_boot(64);
    driver_prepare(d);
    REQUIRE_EQ(driver_lane(d, 0), BH_OK);
    uint64_t sequence = fill_word(d, 0, 0, 5, NULL);
    sleep_ms(30);
    CHECK_EQ(driver_done(d, 0), 0);
    CHECK_EQ(atomic_load(&d->area->lane[0].claim), 0);
    driver_go(d);
    CHECK(driver_wait(d, 0, sequence, 5000));
    REQUIRE_EQ(driver_lane(d, 5), BH_OK);
    sequence = fill_word(d, 5, 4, 6, NULL);
    CHECK(driver_wait(d, 5, sequence, 5000));
    CHECK_EQ(driver_lane(d, 5), BH_OK);
    CHECK_EQ(driver_lane(d, BH__MAX_LANES), BH_E_INTERNAL);
    driver_close(d);
}

TEST(starts_where_the_area_says) {
    driver *d = driver_boot(64);
    driver_prepare(d);
    uint64_t start = 1000;
    atomic_store(&d->area->lane[0].claim, bh__claim_word(start));
    atomic_store(&d->area->lane[0].done, start);
    atomic_store(&d->front->lane[0].tail, start);
    REQUIRE_EQ(driver_lane(d, 0), BH_OK);
    driver_go(d);
    CHECK_EQ(fill_word(d, 0, 0, 5, NULL), start + 1);
    CHECK(driver_wait(d, 0, start + 1, 5000));
    driver_close(d);
}

TEST(respects_holds) {
    driver *d = driver_ready(64);
    fill_word(d, 0, 0, 1, NULL);
    uint64_t held = fill_word(d, 0, 0, 2, &(request_parts){.hold = 3});
    CHECK(!driver_wait(d, 0, held, 30));
    CHECK_EQ(driver_done(d, 0), held - 1);
    CHECK_EQ(bh__claim_position(atomic_load(&d->area->lane[0].claim)), held);
    _Atomic uint32_t *low = (_Atomic uint32_t *)(void *)&d->front->reaped;
    atomic_store(&d->front->reaped, 2);
    bh__futex_wake(low, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    CHECK(!driver_wait(d, 0, held, 30));
    atomic_store(&d->front->reaped, 3);
    bh__futex_wake(low, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    CHECK(driver_wait(d, 0, held, 5000));
    CHECK_EQ(word_at(d, 0, 0), 2);
    driver_close(d);
}

TEST(respects_dependencies) {
    driver *d = driver_ready(64);
    REQUIRE_EQ(driver_lane(d, 1), BH_OK);
    REQUIRE_EQ(driver_lane(d, 2), BH_OK);
    bh__dependency on[] = {{0, 1}, {1, 1}};
    uint64_t second = fill_word(d, 2, 0, 2, &(request_parts){0, on, 2});
    CHECK(!driver_wait(d, 2, second, 20));
    fill_word(d, 0, 0, 1, NULL);
    CHECK(!driver_wait(d, 2, second, 20));
    fill_word(d, 1, 4, 1, NULL);
    CHECK(driver_wait(d, 2, second, 5000));
    CHECK_EQ(word_at(d, 2, 0), 2);

    /* Ping-pong between two lanes, each request waiting for the one before. */
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t lane = i % 2, other = 1 - lane;
        bh__dependency before = {other, atomic_load(&d->front->lane[other].tail)};
        bh__copy_body copy = {
            .target = DRIVER_BASE + 4 * (i + 1), .source = DRIVER_BASE + 4 * i, .bytes = 4};
        request_parts parts = {0, &before, 1};
        driver_submit(d, lane, BH__OP_COPY, &copy, sizeof copy, NULL, 0, &parts);
    }
    for (uint32_t lane = 0; lane < 2; lane++)
        REQUIRE(driver_wait(d, lane, atomic_load(&d->front->lane[lane].tail), 10000));
    CHECK_EQ(word_at(d, 0, 4000), 2);
    driver_close(d);
}

TEST(skips_what_was_cancelled_while_paused) {
    driver *d = driver_ready(64);
    atomic_fetch_or(&d->area->lane[0].claim, BH__PAUSED);
    fill_word(d, 0, 0, 1, NULL);
    fill_word(d, 0, 0, 2, NULL);
    uint64_t last = fill_word(d, 0, 4, 3, NULL);
    sleep_ms(10);
    CHECK_EQ(driver_done(d, 0), 0);
    bh__request *second = bh__ring_request(bh__lane_ring(d->front, 64, 0), 64, 1);
    atomic_store(&second->op, BH__OP_SKIP);
    atomic_fetch_and(&d->area->lane[0].claim, ~BH__PAUSED);
    CHECK(driver_wait(d, 0, last, 5000));
    CHECK_EQ(word_at(d, 0, 0), 1);
    CHECK_EQ(word_at(d, 0, 4), 3);
    driver_close(d);
}

TEST(takes_nothing_more_once_frozen) {
    driver *d = driver_ready(64);
    CHECK(driver_wait(d, 0, fill_word(d, 0, 0, 1, NULL), 5000));
    uint64_t before = atomic_fetch_or(&d->area->lane[0].claim, BH__FROZEN);
    CHECK_EQ(bh__claim_position(before), 1);
    fill_word(d, 0, 0, 2, NULL);
    sleep_ms(30);
    CHECK_EQ(driver_done(d, 0), 1);
    CHECK_EQ(atomic_load(&d->area->lane[0].claim), before | BH__FROZEN);
    driver_close(d);
}

TEST(tells_those_who_wait) {
    driver *d = driver_ready(64);
    bh__lane_area *area = &d->area->lane[0];
    bh__lane_front *front = &d->front->lane[0];
    uint64_t hold = fill_word(d, 0, 0, 1, &(request_parts){.hold = 1});
    fill_word(d, 0, 0, 1, NULL);
    uint64_t last = fill_word(d, 0, 0, 1, NULL);
    atomic_store(&front->notify_sleep, hold + 1);
    atomic_store(&front->notify_dispatch, hold);
    uint32_t wake = atomic_load(&area->wake);
    atomic_store(&d->front->reaped, 1);
    bh__futex_wake((_Atomic uint32_t *)(void *)&d->front->reaped, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    uint64_t deadline = bh__deadline_after(5 * BH__NS_PER_S);
    while (atomic_load(&area->wake) == wake)
        REQUIRE(bh__futex_wait(&area->wake, wake, deadline, BH__FUTEX_SHARED));
    CHECK_GE(atomic_load(&area->done), hold + 1);
    struct pollfd event = {.fd = d->dispatch_fd, .events = POLLIN};
    CHECK_EQ(poll(&event, 1, 5000), 1);
    uint64_t times;
    CHECK_EQ(read(d->dispatch_fd, &times, sizeof times), (ssize_t)sizeof times);
    CHECK_EQ(times, 1);
    /* The post still stands: a sleeper that has not gone yet is woken again, the dispatcher is
     * not. */
    REQUIRE(driver_wait(d, 0, last, 5000));
    uint32_t after = atomic_load(&area->wake);
    REQUIRE(driver_wait(d, 0, fill_word(d, 0, 0, 1, NULL), 5000));
    sleep_ms(5);
    CHECK_NE(atomic_load(&area->wake), after);
    CHECK_EQ(poll(&event, 1, 0), 0);
    /* Nobody is posted any more: no more notices. */
    atomic_store(&front->notify_sleep, BH__NEVER);
    after = atomic_load(&area->wake);
    REQUIRE(driver_wait(d, 0, fill_word(d, 0, 0, 1, NULL), 5000));
    sleep_ms(5);
    CHECK_EQ(atomic_load(&area->wake), after);
    driver_close(d);
}

TEST(sleeps_and_wakes_many_times) {
    driver *d = driver_ready(64);
    for (int i = 0; i < 300; i++) {
        if (i % 3 == 0) usleep(100);
        REQUIRE(driver_wait(d, 0, fill_word(d, 0, 0, (uint32_t)i, NULL), 5000));
    }
    CHECK_EQ(word_at(d, 0, 0), 299);
    driver_close(d);
}

TEST(maps_chunks_where_told) {
    driver *d = driver_ready(64);
    bh__chunk same = {.id = 1, .bytes = 1 << 16, .address = DRIVER_BASE + (64 << 20)};
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_CREATE, &same, sizeof same, -1), BH_E_INTERNAL);
    bh__chunk odd = {.id = 2, .bytes = 1000, .address = DRIVER_BASE + (64 << 20)};
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_CREATE, &odd, sizeof odd, -1), BH_E_INTERNAL);
    bh__chunk taken = {.id = 2, .bytes = 1 << 16, .address = DRIVER_BASE + (1 << 16)};
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_CREATE, &taken, sizeof taken, -1), BH_E_NO_MEMORY);
    CHECK_STR_CONTAINS(d->error.message, "the address is taken");
    bh__chunk huge = {.id = 2, .bytes = 1ull << 50, .address = DRIVER_BASE + (64 << 20)};
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_CREATE, &huge, sizeof huge, -1), BH_E_NO_MEMORY);
    bh__chunk good = {.id = 2,
                      .bytes = 1 << 16,
                      .address = DRIVER_BASE + (64 << 20),
                      .read_only_address = DRIVER_READ_ONLY + (64 << 20)};
    for (int i = 0; i < 3; i++) {
        CHECK_OK(driver_call(d, BH__MSG_CHUNK_CREATE, &good, sizeof good, -1));
        CHECK(driver_wait(d, 0, fill_word(d, 0, 64 << 20, 7, NULL), 5000));
        CHECK_OK(driver_call(d, BH__MSG_CHUNK_UNMAP, &good, sizeof good, -1));
    }
    CHECK_EQ(atomic_load(&d->area->reports_made), 0);
    CHECK(driver_wait(d, 0, fill_word(d, 0, 64 << 20, 7, NULL), 5000));
    CHECK_EQ(atomic_load(&d->area->reports_made), 1);
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_UNMAP, &good, sizeof good, -1), BH_E_INTERNAL);
    CHECK_STATUS(driver_call(d, BH__MSG_CHUNK_MAP, &good, sizeof good, -1), BH_E_INTERNAL);
    bh__host_region region = {.id = 1, .bytes = DRIVER_HOST};
    CHECK_OK(driver_call(d, BH__MSG_HOST_UNMAP, &region, sizeof region, -1));
    CHECK_STATUS(driver_call(d, BH__MSG_HOST_UNMAP, &region, sizeof region, -1), BH_E_INTERNAL);
    CHECK_STATUS(driver_call(d, 55, &region, sizeof region, -1), BH_E_INTERNAL);
    driver_close(d);
}

TEST(a_standby_finds_the_same_memory) {
    driver *d = driver_ready(64);
    CHECK(driver_wait(d, 0, fill_word(d, 0, 40, 1234, NULL), 5000));
    driver *standby = driver_standby(d);
    bh__chunk chunk = {.id = 1,
                       .bytes = DRIVER_CHUNK,
                       .address = DRIVER_BASE,
                       .read_only_address = DRIVER_READ_ONLY};
    REQUIRE_STATUS(driver_call(standby, BH__MSG_CHUNK_MAP, &chunk, sizeof chunk, d->chunk_fd),
                   BH_OK);
    int fd = bh__share_create("test-host", DRIVER_HOST);
    standby->host = bh__share_map(fd, 0, DRIVER_HOST, true);
    bh__host_region region = {.id = 1, .bytes = DRIVER_HOST};
    REQUIRE_STATUS(driver_call(standby, BH__MSG_HOST_MAP, &region, sizeof region, fd), BH_OK);
    close(fd);
    REQUIRE_EQ(driver_lane(standby, 0), BH_OK);
    /* The takeover: freeze, read how far it came, kill, go on from there. */
    uint64_t claim = atomic_fetch_or(&d->area->lane[0].claim, BH__FROZEN);
    uint64_t done = driver_done(d, 0);
    CHECK_EQ(bh__claim_position(claim), done);
    driver_kill(d);
    atomic_store(&standby->area->lane[0].claim, bh__claim_word(done));
    atomic_store(&standby->area->lane[0].done, done);
    driver_go(standby);
    CHECK_EQ(word_at(standby, 0, 40), 1234);
    driver_join(d);
    CHECK_EQ(word_at(standby, 0, 40), 1234);
    driver_close(standby);
    driver_close(d);
}

TEST(gives_up_on_nonsense) {
    driver *d = driver_ready(64);
    bh__request *request = bh__ring_request(bh__lane_ring(d->front, 64, 0), 64, 0);
    request->slots = 0;
    request->sequence = 12345;
    atomic_store(&d->front->lane[0].tail, 1);
    bh__futex_wake(&d->area->lane[0].asleep, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    CHECK_EQ(driver_join(d), 1);
    driver_close(d);
}

/* Parameters that are more than any kernel has, and more than the request's slots hold. */
static void give_up_on(uint32_t said, uint32_t there) {
    driver *d = driver_ready(1024);
    uint8_t *params = calloc(1, there);
    REQUIRE(params != NULL);
    bh__launch_body body = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .param_bytes = said};
    driver_submit(d, 0, BH__OP_LAUNCH, &body, sizeof body, params, there, NULL);
    free(params);
    CHECK_EQ(driver_join(d), 1);
    driver_close(d);
}

TEST(gives_up_on_impossible_parameters) {
    give_up_on(BH__MAX_PARAM_BYTES + 1, BH__MAX_PARAM_BYTES + 1);
    give_up_on(UINT32_MAX, BH__MAX_PARAM_BYTES);
    give_up_on(BH__MAX_PARAM_BYTES, BH__SMALL_PARAM_BYTES);
    give_up_on(BH__SMALL_PARAM_BYTES + 1, 100);
}

#ifndef BH__ONE_PROCESS
static long ticks_of(pid_t pid) {
    char path[64];
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    char *text = test_read_file(path, &size);
    char *at = strrchr(text, ')');
    long user = 0, kernel = 0;
    REQUIRE(at && sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld", &user,
                         &kernel) == 2);
    free(text);
    return user + kernel;
}

static long resident_kib(pid_t pid) {
    char path[64];
    size_t size;
    snprintf(path, sizeof path, "/proc/%d/status", pid);
    char *text = test_read_file(path, &size);
    char *at = strstr(text, "VmRSS:");
    long kib = at ? atol(at + 6) : -1;
    free(text);
    return kib;
}

TEST(costs_nothing_while_idle) {
    driver *d = driver_ready(1024);
    for (uint32_t lane = 1; lane < BH__MAX_LANES; lane++) REQUIRE_EQ(driver_lane(d, lane), BH_OK);
    CHECK(driver_wait(d, 0, fill_word(d, 0, 0, 1, NULL), 5000));
    sleep_ms(100);
    long before = ticks_of(d->pid);
    sleep_ms(500);
    CHECK_LE(ticks_of(d->pid) - before, 1);
    if (test_time_scale() == 1) CHECK_LT(resident_kib(d->pid), 16 * 1024);
    driver_close(d);
}

static int run_by_hand(const char *argument, char *output, size_t size) {
    char command[4096];
    test_path(command, sizeof command, "%s/bin/bulkhead-worker-cpu %s 2>&1 </dev/null 3<&-",
              test_build_dir(), argument);
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    size_t got = fread(output, 1, size - 1, pipe);
    output[got] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

TEST(says_what_it_is_by_hand) {
    char output[4096];
    CHECK_EQ(run_by_hand("", output, sizeof output), 2);
    CHECK_STR_CONTAINS(output, "started by libbulkhead");
    CHECK_EQ(run_by_hand("--version", output, sizeof output), 0);
    CHECK_STR_CONTAINS(output, "bulkhead-worker-cpu 0.");
    CHECK_EQ(run_by_hand("--help", output, sizeof output), 0);
    CHECK_STR_CONTAINS(output, "--version");
    CHECK_EQ(run_by_hand("--nonsense", output, sizeof output), 2);
}
#endif
