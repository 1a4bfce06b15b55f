/* SPDX-License-Identifier: Apache-2.0 */
/* Managed buffers when workers are lost: maps that are held, moves on their way, doubt, and what is
 * newest in the host copy. */
#include <fcntl.h>
#include <signal.h>

#include "../support/managed.h"
#include "../support/worker_program.h"

enum { WORDS = 6000, BYTES = WORDS * 4, MANY = 4 << 20 };

static void map(bh_buffer buffer, uint64_t bytes, uint32_t flags) {
    REQUIRE_OK(bh_managed_map(buffer, 0, bytes, flags, NULL));
}

/* Written by the program, from `first` up. */
static void write_up(made m, uint64_t words, uint32_t first) {
    map(m.buffer, words * 4, BH_MAP_WRITE | BH_MAP_DISCARD);
    for (uint64_t i = 0; i < words; i++) m.words[i] = first + (uint32_t)i;
    REQUIRE_OK(bh_managed_unmap(m.words, words * 4));
}

static bh_status add_one(const rig *r, bh_buffer buffer, uint64_t words) {
    return run_now(rig_kernel(r, "add_one"), BH_GRID(words, 128),
                   BH_ARGS(BH_INOUT(buffer), (uint32_t)words));
}

static bh_ticket iota(const rig *r, bh_buffer buffer, uint32_t first, bh_lane lane) {
    bh_launch_options there = on_lane(lane, 0);
    return submit(rig_kernel(r, "iota"), BH_GRID(WORDS, 256),
                  BH_ARGS(BH_OUT(buffer), first, (uint32_t)WORDS), &there);
}

/* Waits until the device has nothing left to do, without asking about it. */
static void let_finish(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    do {
        sleep_ms(5);
    } while (lanes_of(device).queue_depth && now_ns() < limit);
}

/* A launch that writes some of the buffer and faults. */
static bh_status break_it(const rig *r, bh_buffer buffer) {
    return run_now(rig_kernel(r, "write_then_poke"), BH_GRID(64, 64),
                   BH_ARGS(BH_INOUT(buffer), 64u, NOWHERE));
}

TEST(a_fault_elsewhere_leaves_maps_alone) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, WORDS, 0), n = managed_made(r.device, WORDS, 0);
    write_up(m, WORDS, 5);
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    map(m.buffer, BYTES, BH_MAP_READ | BH_MAP_WRITE);
    m.words[7] = 1000;
    write_up(n, WORDS, 0);
    CHECK_STATUS(break_it(&r, n.buffer), BH_E_FAULT);
    CHECK(counts_up(m.words, 7, 6));
    CHECK(counts_up(m.words + 8, WORDS - 8, 14));
    m.words[7] = 13;
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    CHECK(!is_suspect(m.buffer));
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    map(m.buffer, BYTES, BH_MAP_READ);
    CHECK(counts_up(m.words, WORDS, 7));
    CHECK_EQ((uintptr_t)m.words, address_of(m.buffer));
    CHECK_OK(bh_device_close(r.device));
}

TEST(what_is_suspect_is_stale_until_accepted_or_discarded) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, WORDS, 0);
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, 64, &view));
    write_up(m, WORDS, 0);
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
    CHECK(is_suspect(m.buffer));
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ, NULL), BH_E_STALE);
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_WRITE, NULL), BH_E_STALE);
    /* A page is moved whole: one in doubt cannot be discarded in part, if the rest is needed. */
    CHECK_REFUSED(bh_managed_map(m.buffer, 4, 4, BH_MAP_WRITE | BH_MAP_DISCARD, NULL), BH_E_STALE);
    CHECK_REFUSED(prefetch_on((bh_lane){0}, m.buffer, 0, BYTES, BH_TO_HOST, NULL), BH_E_STALE);
    CHECK_EQ(managed_info(m.buffer).maps, 0);
    /* The rest of the buffer is as good as ever. */
    REQUIRE_OK(bh_managed_map(m.buffer, 8192, BYTES - 8192, BH_MAP_READ, NULL));
    CHECK(counts_up(m.words + 2048, WORDS - 2048, 2049));
    REQUIRE_OK(bh_managed_unmap(m.words + 2048, BYTES - 8192));
    /* A discard that comes to nothing clears no doubt. */
    bh_lane lane = open_lane(r.device);
    bh_buffer rest, out = words_alloc(r.device, 64);
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 64, 64, &rest));
    gate g = gate_close(&r, lane, 0);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket reads = submit(rig_kernel(&r, "copy_words"), BH_GRID(64, 64),
                             BH_ARGS(BH_IN(rest), BH_OUT(out), 64u), &there);
    CHECK_REFUSED(
        bh_managed_map(m.buffer, 0, 8192, BH_MAP_WRITE | BH_MAP_DISCARD | BH_MAP_NO_WAIT, NULL),
        BH_E_BUSY);
    CHECK(is_suspect(m.buffer));
    CHECK_REFUSED(bh_managed_map(m.buffer, 0, 4, BH_MAP_READ, NULL), BH_E_STALE);
    gate_open(&g);
    REQUIRE_OK(bh_wait(reads, LONG_NS));
    /* Overwritten. */
    REQUIRE_OK(bh_managed_map(m.buffer, 0, 8192, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
    for (uint32_t i = 0; i < 2048; i++) m.words[i] = i + 1;
    REQUIRE_OK(bh_managed_unmap(m.words, 8192));
    CHECK(!is_suspect(m.buffer));
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    map(m.buffer, BYTES, BH_MAP_READ);
    CHECK(counts_up(m.words, WORDS, 2));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    /* Accepted. */
    CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
    REQUIRE_OK(bh_buffer_accept(m.buffer));
    map(m.buffer, BYTES, BH_MAP_READ);
    CHECK(counts_up(m.words + 64, WORDS - 64, 66));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_loss_on_the_way_to_the_device_loses_nothing, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, MANY, 0);
    rng random = rng_seeded(7);
    for (uint32_t round = 0; round < 8; round++) {
        write_up(m, MANY, round);
        bh_ticket ticket;
        REQUIRE_OK(prefetch_on(lane, m.buffer, 0, (uint64_t)MANY * 4, BH_TO_DEVICE, &ticket));
        for (uint32_t i = rng_below(&random, 20000); i > 0; i--) (void)health_of(r.device);
        kill(health_of(r.device).worker_pid, SIGKILL);
        CHECK_OK(bh_wait(ticket, LONG_NS));
        CHECK(!is_suspect(m.buffer));
        CHECK(counts_up(m.words, MANY, round));
        bh_buffer view;
        REQUIRE_OK(bh_buffer_view(m.buffer, 0, MANY - 1000, 1000, &view));
        CHECK(words_count(view, 1000, round + MANY - 1000));
        REQUIRE_OK(bh_buffer_release(view));
        CHECK(words_count(m.buffer, 1000, round));
        wait_standby(r.device);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST_TIMEOUT(a_loss_on_the_way_home_loses_nothing, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, MANY, 0);
    rng random = rng_seeded(8);
    for (uint32_t round = 0; round < 8; round++) {
        REQUIRE_OK(run_now(rig_kernel(&r, "iota"), BH_GRID(MANY, 256),
                           BH_ARGS(BH_OUT(m.buffer), round, (uint32_t)MANY)));
        bh_ticket ticket;
        REQUIRE_OK(prefetch_on(lane, m.buffer, 0, (uint64_t)MANY * 4, BH_TO_HOST, &ticket));
        for (uint32_t i = rng_below(&random, 20000); i > 0; i--) (void)health_of(r.device);
        kill(health_of(r.device).worker_pid, SIGKILL);
        map(m.buffer, (uint64_t)MANY * 4, BH_MAP_READ);
        CHECK(counts_up(m.words, MANY, round));
        REQUIRE_OK(bh_managed_unmap(m.words, (uint64_t)MANY * 4));
        CHECK_OK(bh_wait(ticket, LONG_NS));
        wait_standby(r.device);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_newest_host_copy_outlives_the_device) {
    bh_device_options options = device_options(0);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    made m = managed_made(r.device, WORDS, 0), n = managed_made(r.device, WORDS, 0);
    write_up(m, WORDS, 3);
    write_up(n, WORDS, 4);
    REQUIRE_OK(add_one(&r, n.buffer, WORDS));
    kill_worker(r.device, SIGKILL);
    kill(health_of(r.device).worker_pid, SIGKILL);
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(r.device).state != BH_HEALTH_STOPPED && now_ns() < limit) sleep_ms(1);
    REQUIRE_EQ(health_of(r.device).state, BH_HEALTH_STOPPED);
    CHECK_REFUSED(add_one(&r, m.buffer, WORDS), BH_E_STOPPED);
    map(m.buffer, BYTES, BH_MAP_READ);
    CHECK(counts_up(m.words, WORDS, 3));
    REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
    /* What a kernel wrote and nobody fetched is still there, read or mapped. */
    uint32_t part[2];
    REQUIRE_OK(bh_buffer_read(n.buffer, BYTES - 8, part, sizeof part));
    CHECK(counts_up(part, 2, 5 + WORDS - 2));
    REQUIRE_OK(bh_buffer_read(m.buffer, 4, part, sizeof part));
    CHECK(counts_up(part, 2, 4));
    map(n.buffer, BYTES, BH_MAP_READ);
    CHECK(counts_up(n.words, WORDS, 5));
    REQUIRE_OK(bh_managed_unmap(n.words, BYTES));
    REQUIRE_OK(bh_buffer_read(n.buffer, 0, part, sizeof part));
    CHECK(counts_up(part, 2, 5));
    CHECK_OK(bh_device_close(r.device));
}

TEST(transparent_buffers_in_doubt) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    for (uint32_t i = 0; i < WORDS; i++) m.words[i] = i;
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, 64, &view));
    CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
    CHECK(is_suspect(m.buffer));
    CHECK(counts_up(m.words, WORDS, 1)); /* as it was before */
    CHECK_REFUSED(add_one(&r, m.buffer, WORDS), BH_E_STALE);
    /* What is there is taken, and seen. */
    REQUIRE_OK(bh_buffer_accept(m.buffer));
    uint32_t device_has[64];
    REQUIRE_OK(bh_buffer_read(m.buffer, 0, device_has, sizeof device_has));
    CHECK_MEM_EQ(device_has, m.words, sizeof device_has);
    CHECK(counts_up(m.words + 64, WORDS - 64, 65));
    /* Or it is written again: then the rest of its page is as before the launch. */
    CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
    for (uint32_t i = 0; i < 64; i++) m.words[i] = i + 1;
    if (!limits_of(r.device).no_tracking[0]) {
        REQUIRE_OK(add_one(&r, m.buffer, WORDS));
        CHECK(counts_up(m.words, WORDS, 2));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* A page has suspect bytes of one launch and results of an earlier one that nobody asked about. */
TEST(intact_bytes_beside_suspect_ones_are_written_back) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_buffer view, last;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, 64, &view));
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, WORDS - 64, 64, &last));
    for (uint32_t round = 0; round < 3; round++) {
        bh_ticket early = iota(&r, m.buffer, 8 + round, (bh_lane){0});
        let_finish(r.device);
        CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
        if (round == 1) CHECK_STATUS(break_it(&r, last), BH_E_FAULT);
        CHECK_OK(bh_wait(early, LONG_NS));
        CHECK(counts_up(m.words + 64, WORDS - 128, 72 + round));
        if (round == 0) CHECK(counts_up(m.words + WORDS - 64, 64, 8 + WORDS - 64));
        /* What the program stores to such a page is added to that. */
        for (uint32_t i = 0; i < WORDS; i++)
            if (i < 64 || i >= WORDS - 64) m.words[i] = 8 + round + i;
        if (limits_of(r.device).no_tracking[0]) break;
        REQUIRE_OK(add_one(&r, m.buffer, WORDS));
        CHECK(counts_up(m.words, WORDS, 9 + round));
        CHECK(!is_suspect(m.buffer));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* Neither accepting nor a launch on other pages takes back what the program stored beside suspect
 * bytes. */
TEST(stores_beside_suspect_bytes_stay) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    if (limits_of(r.device).no_tracking[0]) SKIP("no tracking of pages here");
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_buffer view, last;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, 64, &view));
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, WORDS - 64, 64, &last));
    for (uint32_t i = 0; i < WORDS; i++) m.words[i] = i;
    REQUIRE_OK(add_one(&r, m.buffer, WORDS));
    CHECK_STATUS(break_it(&r, view), BH_E_FAULT);
    m.words[70] = 1000;
    REQUIRE_OK(add_one(&r, last, 64));
    CHECK_EQ(m.words[70], 1000);
    CHECK_EQ(m.words[WORDS - 1], WORDS + 1);
    REQUIRE_OK(bh_buffer_accept(m.buffer));
    CHECK_EQ(m.words[70], 1000);
    CHECK(counts_up(m.words + 71, WORDS - 64 - 71, 72));
    uint32_t device_has;
    REQUIRE_OK(bh_buffer_read(m.buffer, 280, &device_has, 4));
    CHECK_EQ(device_has, 1000);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_query_waits_for_the_way_home_through_a_loss) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, MANY, BH_BUFFER_TRANSPARENT);
    for (uint32_t round = 0; round < 6; round++) {
        bh_ticket ticket = submit(rig_kernel(&r, "iota"), BH_GRID(MANY, 256),
                                  BH_ARGS(BH_OUT(m.buffer), round, (uint32_t)MANY), NULL);
        bh_status status;
        uint64_t limit = now_ns() + LONG_NS;
        bool killed = false;
        while ((status = bh_wait(ticket, 0)) == BH_E_BUSY && now_ns() < limit) {
            if (killed || managed_info(m.buffer).device_newest) continue; /* on its way now */
            kill(health_of(r.device).worker_pid, SIGKILL);
            killed = true;
        }
        CHECK_OK(status);
        CHECK(counts_up(m.words, MANY, round));
        wait_standby(r.device);
    }
    CHECK_OK(bh_device_close(r.device));
}

static void note_status(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    atomic_store((_Atomic bh_status *)context, status);
}

static void await_stop(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(device).state != BH_HEALTH_STOPPED && now_ns() < limit) sleep_ms(1);
    REQUIRE_EQ(health_of(device).state, BH_HEALTH_STOPPED);
}

/* The second loss is one too many. */
static rig open_to_stop(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    return rig_open_with(&options);
}

static void stop_by_losses(bh_device device) {
    kill_worker(device, SIGKILL);
    kill(health_of(device).worker_pid, SIGKILL);
    await_stop(device);
}

/* What a ticket says and what the host has go together: BH_OK with old bytes would be a wrong
 * answer. */
TEST(results_that_nobody_asked_about_outlive_a_stop) {
    rig r = open_to_stop();
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_lane lane = open_lane(r.device);
    REQUIRE_OK(bh_wait(iota(&r, m.buffer, 7, lane), LONG_NS));
    CHECK(counts_up(m.words, WORDS, 7));
    bh_ticket early = iota(&r, m.buffer, 8, lane), late = iota(&r, m.buffer, 9, lane);
    let_finish(r.device);
    stop_by_losses(r.device);
    _Atomic bh_status called = BH_E_BUSY;
    REQUIRE_OK(bh_on_done(late, note_status, &called));
    CHECK_OK(bh_wait(early, 0));
    CHECK_OK(bh_wait(late, LONG_NS));
    CHECK(counts_up(m.words, WORDS, 9));
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&called) == BH_E_BUSY && now_ns() < limit) sleep_ms(1);
    CHECK_OK(atomic_load(&called));
    CHECK_OK(bh_device_close(r.device));
    CHECK_OK(bh_wait(late, LONG_NS));
}

/* A launch is known to be complete while a later one on half of the buffer is queued: its results
 * are left to that one, which never runs. But it may run between the two losses, or be lost: then
 * its half is suspect, and the page in the middle has bytes of both. */
TEST(results_that_were_left_to_a_later_launch_outlive_a_stop) {
    rig r = open_to_stop();
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_buffer half, flag = flag_alloc(r.device), other = words_filled(r.device, 1, 0);
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, WORDS / 2, &half));
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_ticket known = iota(&r, m.buffer, 8, lane);
    bh_ticket busy = submit(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                            BH_ARGS(address_of(flag), BH_INOUT(other)), &there);
    bh_ticket later = submit(rig_kernel(&r, "iota"), BH_GRID(WORDS / 2, 256),
                             BH_ARGS(BH_OUT(half), 100u, (uint32_t)WORDS / 2), &there);
    REQUIRE_OK(bh_wait(known, LONG_NS));
    CHECK_STATUS(bh_wait(later, 0), BH_E_BUSY);
    stop_by_losses(r.device);
    CHECK_STATUS(bh_wait(busy, LONG_NS), BH_E_LOST);
    bh_status status = bh_wait(later, LONG_NS);
    bool lost = status == BH_E_LOST;
    if (status != BH_OK && !lost) CHECK_STATUS(status, BH_E_STOPPED);
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(m.buffer, &info));
    CHECK_EQ(info.suspect, lost);
    CHECK_EQ(info.suspect_offset, 0);
    CHECK_EQ(info.suspect_bytes, lost ? BYTES / 2 : 0);
    if (!lost) CHECK(counts_up(m.words, WORDS / 2, status == BH_OK ? 100 : 8));
    CHECK(counts_up(m.words + WORDS / 2, WORDS / 2, 8 + WORDS / 2));
    CHECK_OK(bh_wait(known, 0));
    CHECK_OK(bh_device_close(r.device));
}

/* Nobody takes over any more, and the results are not there yet. */
TEST(a_device_says_that_it_stops_while_results_are_fetched) {
    char folder[700], path[800];
    bh_device_options options = replaceable_worker(folder, sizeof folder);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    kill_worker(r.device, SIGKILL);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_ticket late = iota(&r, m.buffer, 9, open_lane(r.device));
    let_finish(r.device);
    static const char script[] = "#!/bin/sh\nsleep 2\nexit 1\n";
    int fd = open(test_path(path, sizeof path, "%s/slow", folder), O_CREAT | O_WRONLY, 0700);
    REQUIRE(fd >= 0 && write(fd, script, strlen(script)) == (ssize_t)strlen(script));
    close(fd);
    place_worker(folder, path);
    kill(health_of(r.device).worker_pid, SIGKILL);
    bh_health health = health_of(r.device);
    for (uint64_t until = now_ns() + 1000 * MS; now_ns() < until; sleep_ms(1)) {
        health = health_of(r.device);
        if (strstr(health.reason, "stopping: ")) break;
    }
    CHECK_EQ(health.state, BH_HEALTH_REPLACING);
    CHECK_STR_CONTAINS(health.reason, "stopping: ");
    CHECK_STATUS(bh_wait(late, 0), BH_E_BUSY);
    await_stop(r.device);
    CHECK(!strstr(health_of(r.device).reason, "stopping: "));
    CHECK_STATUS(bh_wait(late, 0), BH_E_STOPPED);
    CHECK_OK(bh_device_close(r.device));
}

/* The worker's program is gone when the device stops: nothing can read the device's memory. */
TEST(results_that_a_stop_keeps_from_the_host_are_not_ok) {
    char folder[700];
    bh_device_options options = replaceable_worker(folder, sizeof folder);
    rig r = rig_open_with(&options);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_lane lane = open_lane(r.device);
    bh_ticket told = iota(&r, m.buffer, 7, lane);
    REQUIRE_OK(bh_wait(told, LONG_NS));
    bh_ticket early = iota(&r, m.buffer, 8, lane), late = iota(&r, m.buffer, 9, lane);
    let_finish(r.device);
    place_worker(folder, "/bin/false");
    kill(health_of(r.device).worker_pid, SIGKILL);
    await_stop(r.device);
    _Atomic bh_status called = BH_E_BUSY;
    REQUIRE_OK(bh_on_done(late, note_status, &called));
    for (int again = 0; again < 2; again++) {
        CHECK_STATUS(bh_wait(late, again ? 0 : LONG_NS), BH_E_STOPPED);
        CHECK_STATUS(bh_wait(early, again ? LONG_NS : 0), BH_E_STOPPED);
        CHECK_OK(bh_wait(told, LONG_NS));
    }
    bh_error error;
    CHECK_STATUS(bh_ticket_error(late, &error), BH_E_STOPPED);
    CHECK_STR_CONTAINS(error.message, "transparent");
    CHECK(counts_up(m.words, WORDS, 7)); /* the last results that the program was told of */
    CHECK(is_suspect(m.buffer));
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&called) == BH_E_BUSY && now_ns() < limit) sleep_ms(1);
    CHECK_STATUS(atomic_load(&called), BH_E_STOPPED);
    CHECK_OK(bh_device_close(r.device));
    CHECK_STATUS(bh_wait(late, LONG_NS), BH_E_STOPPED);
    CHECK_OK(bh_wait(told, LONG_NS));
}

/* ---- two threads and a device that has stopped ---- */

enum { LARGE = 16 << 20, END = 4096 }; /* words: one copy of it takes a while */

typedef struct taker {
    made m;
    bool accepts; /* else it maps */
    _Atomic bool begun;
    bh_status status;
} taker;

/* All but the last words, whose page is another thread's too. */
static void *take(void *context) {
    taker *self = context;
    atomic_store(&self->begun, true);
    self->status = self->accepts
                       ? bh_buffer_accept(self->m.buffer)
                       : bh_managed_map(self->m.buffer, 0, (LARGE - 2) * 4ull, BH_MAP_READ, NULL);
    return NULL;
}

/* What the program stores in a map counts, whatever others copy to the host meanwhile. */
static void store_beside(taker *a, uint64_t from, uint32_t flags) {
    pthread_t thread;
    uint64_t bytes = (LARGE - from) * 4;
    REQUIRE_EQ(pthread_create(&thread, NULL, take, a), 0);
    while (!atomic_load(&a->begun)) sleep_ms(1);
    sleep_ms(5);
    REQUIRE_OK(bh_managed_map(a->m.buffer, from * 4, bytes, flags, NULL));
    for (uint64_t i = from; i < LARGE; i++) a->m.words[i] = 3;
    pthread_join(thread, NULL);
    CHECK_OK(a->status);
    uint64_t lost = 0;
    for (uint64_t i = from; i < LARGE; i++) lost += a->m.words[i] != 3;
    CHECK_EQ(lost, 0);
    REQUIRE_OK(bh_managed_unmap(a->m.words + from, bytes));
}

static void write_large(const rig *r, bh_buffer buffer) {
    REQUIRE_OK(run_now(rig_kernel(r, "iota"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(buffer), 5u, 64u)));
}

TEST(maps_of_one_page_of_a_stopped_device) {
    rig r = open_to_stop();
    taker a = {.m = managed_made(r.device, LARGE, 0)};
    write_large(&r, a.m.buffer);
    stop_by_losses(r.device);
    store_beside(&a, LARGE - 2, BH_MAP_WRITE);
    CHECK(counts_up(a.m.words, 64, 5));
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_map_beside_an_accept_on_a_stopped_device) {
    rig r = open_to_stop();
    taker a = {.m = managed_made(r.device, LARGE, BH_BUFFER_TRANSPARENT), .accepts = true};
    CHECK_STATUS(break_it(&r, a.m.buffer), BH_E_FAULT);
    wait_worker(r.device);
    kill(health_of(r.device).worker_pid, SIGKILL);
    await_stop(r.device);
    store_beside(&a, LARGE - END, BH_MAP_WRITE | BH_MAP_DISCARD);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_lane_that_is_closed_and_opened_again_brings_its_results_home) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    for (uint32_t round = 0; round < 100; round++) {
        bh_lane lane = open_lane(r.device);
        bh_ticket ticket = iota(&r, m.buffer, round, lane);
        REQUIRE_OK(bh_lane_release(lane));
        if (round % 8 == 0) let_finish(r.device);
        lane = open_lane(r.device);
        if (round % 3) REQUIRE_OK(bh_wait(ticket, LONG_NS));
        if (round % 3) CHECK(counts_up(m.words, WORDS, round));
        REQUIRE_OK(bh_lane_release(lane));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* ---- threads ---- */

enum { THREADS = 16, ROUNDS = 80 };

/* Where a worker takes seconds to start, work may be lost again and again as long as workers are
 * killed. */
#define KILLED_FOR_NS UINT64_C(20000000000)

struct crowd {
    rig r;
    made own[THREADS];
    bh_lane lanes[3];
    uint64_t limit_ns;       /* of one wait */
    _Atomic(int) left, done; /* threads; rounds of all */
};

/* Writes, launches, looks; whatever was lost is written again. */
static void own_buffer(void *context, unsigned index) {
    struct crowd *c = context;
    made m = c->own[index];
    bool plain = index % 2; /* loads and stores */
    bh_launch_options there =
        on_lane(c->lanes[index % 3], index % 4 == 0 ? BH_SUBMIT_IDEMPOTENT : 0);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        bool again = true;
        if (plain && !is_suspect(m.buffer)) {
            for (uint32_t i = 0; i < WORDS; i++) m.words[i] = i + round;
        } else {
            write_up(m, WORDS, round);
        }
        bh_ticket ticket;
        bh_status status = bh_launch(rig_kernel(&c->r, "add_one"), BH_GRID(WORDS, 128),
                                     BH_ARGS(BH_INOUT(m.buffer), (uint32_t)WORDS), &there, &ticket);
        if (status == BH_OK) status = bh_wait(ticket, c->limit_ns);
        if (status == BH_OK && !plain)
            status = bh_managed_map(m.buffer, 0, BYTES, BH_MAP_READ, NULL);
        if (status == BH_OK) {
            again = false;
            atomic_fetch_add(&c->done, 1);
            CHECK(counts_up(m.words, WORDS, round + 1));
            if (!plain) REQUIRE_OK(bh_managed_unmap(m.words, BYTES));
        } else if (status != BH_E_LOST && status != BH_E_STALE && status != BH_E_FAULT) {
            CHECK_STATUS(status, BH_E_LOST);
        }
        if (again) round--;
    }
    atomic_fetch_sub(&c->left, 1);
}

/* Not sooner than the others have got on: a slow machine must get through too. */
static void *kill_while_some_are_left(void *context) {
    struct crowd *c = context;
    rng random = rng_seeded(5);
    uint64_t end = now_ns() + KILLED_FOR_NS;
    for (int seen = 0; atomic_load(&c->left) > 0 && now_ns() < end;) {
        sleep_ms(5 + rng_below(&random, 40));
        int done = atomic_load(&c->done);
        if (done - seen < THREADS / 2) continue;
        seen = done;
        bh_health health = health_of(c->r.device);
        if (health.worker_pid > 0) kill(health.worker_pid, SIGKILL);
    }
    return NULL;
}

TEST_TIMEOUT(sixteen_threads_while_workers_are_killed, 90) {
    uint64_t begun = now_ns();
    struct crowd c = {.r = rig_open(BH_DEVICE_NO_RESTART_LIMIT), .left = THREADS};
    wait_standby(c.r.device);
    c.limit_ns = KILLED_FOR_NS + LONG_NS + (now_ns() - begun);
    for (int i = 0; i < 3; i++) c.lanes[i] = open_lane(c.r.device);
    for (int i = 0; i < THREADS; i++)
        c.own[i] = managed_made(
            c.r.device, WORDS,
            i % 2 ? BH_BUFFER_TRANSPARENT | (i % 4 == 3 ? BH_BUFFER_UNTRACKED : 0) : 0);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, kill_while_some_are_left, &c) == 0);
    run_threads(THREADS, own_buffer, &c);
    pthread_join(thread, NULL);
    CHECK_OK(bh_device_close(c.r.device));
}

/* Each request may be refused, moves of pages among them. What is answered BH_OK has seen what the
 * program wrote, and the program's own copy stays as it is. */
TEST(moves_that_the_worker_refuses_lose_nothing) {
    setenv("BULKHEAD_TEST_REFUSE", "4", 1);
    rig r = rig_open(0);
    if (!has_queues(r.device) || !is_cpu(r.device))
        SKIP("only the CPU device behind queues refuses on demand");
    made m = managed_made(r.device, WORDS, 0), n = managed_made(r.device, WORDS, 0);
    static uint32_t got[WORDS];
    unsigned refused = 0, stale = 0;
    for (uint32_t round = 0; round < 300; round++) {
        CHECK_OK(bh_managed_map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
        for (uint32_t i = 0; i < WORDS; i++) m.words[i] = round + i;
        CHECK_OK(bh_managed_unmap(m.words, BYTES));
        bh_status status = round % 2 ? bh_buffer_read(m.buffer, 0, got, BYTES)
                                     : bh_buffer_copy(n.buffer, 0, m.buffer, 0, BYTES);
        refused += status == BH_E_LAUNCH;
        stale += status == BH_E_STALE;
        if (status != BH_OK) {
            CHECK(status == BH_E_LAUNCH || status == BH_E_STALE);
        } else if (round % 2) {
            CHECK(counts_up(got, WORDS, round));
        } else if (bh_managed_map(n.buffer, 0, BYTES, BH_MAP_READ, NULL) == BH_OK) {
            CHECK(counts_up(n.words, WORDS, round));
            CHECK_OK(bh_managed_unmap(n.words, BYTES));
        }
        CHECK(!is_suspect(m.buffer));
        bh_status mapped = bh_managed_map(m.buffer, 0, BYTES, BH_MAP_READ, NULL);
        CHECK_OK(mapped);
        CHECK(counts_up(m.words, WORDS, round));
        if (mapped == BH_OK) CHECK_OK(bh_managed_unmap(m.words, BYTES));
        if (test_failures()) break;
    }
    CHECK_GT(refused, 0);
    CHECK_GT(stale, 0);
    CHECK_OK(bh_device_close(r.device));
}

/* A ticket of a prefetch stands for its moves. */
TEST(a_prefetch_fails_with_its_moves) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    made m = managed_made(r.device, WORDS, 0);
    bh_buffer flag = flag_alloc(r.device);
    write_up(m, WORDS, 3);
    bh_launch_options there = on_lane(open_lane(r.device), 0);
    there.deadline_ns = 200 * MS;
    bh_ticket running = submit(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                               BH_ARGS(address_of(flag), BH_INOUT(m.buffer)), &there);
    bh_ticket home, cancelled, back;
    bh_lane lane = open_lane(r.device);
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, &home));
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, &cancelled));
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_DEVICE, &back));
    CHECK_STATUS(bh_wait(home, 0), BH_E_BUSY);
    CHECK_OK(bh_cancel(cancelled));
    CHECK_STATUS(bh_wait(running, LONG_NS), BH_E_DEADLINE);
    bh_status status = bh_wait(home, LONG_NS);
    CHECK(status == BH_E_STALE || status == BH_E_LOST); /* LOST: the worker had taken the move */
    CHECK_STATUS(bh_wait(cancelled, LONG_NS), BH_E_CANCELLED);
    CHECK_OK(bh_wait(back, LONG_NS)); /* nothing moved that way */
    bh_error error;
    CHECK_STATUS(bh_ticket_error(home, &error), status);
    CHECK_STR_CONTAINS(error.message, "24000");
    REQUIRE_OK(bh_buffer_accept(m.buffer));
    REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, &home));
    CHECK_OK(bh_wait(home, LONG_NS));
    CHECK_EQ(managed_info(m.buffer).device_newest, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_prefetch_whose_moves_are_refused_fails) {
    setenv("BULKHEAD_TEST_REFUSE", "4", 1);
    rig r = rig_open(0);
    if (!has_queues(r.device) || !is_cpu(r.device))
        SKIP("only the CPU device behind queues refuses on demand");
    made m = managed_made(r.device, WORDS, 0);
    bh_lane lane = open_lane(r.device);
    unsigned failed = 0;
    for (uint32_t round = 0; round < 200 && !test_failures(); round++) {
        bh_ticket ticket;
        CHECK_OK(bh_managed_map(m.buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD, NULL));
        CHECK_OK(bh_managed_unmap(m.words, BYTES));
        REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_DEVICE, &ticket));
        bool done = bh_wait(ticket, LONG_NS) == BH_OK;
        failed += !done;
        CHECK_EQ(managed_info(m.buffer).host_newest, done ? 0 : BYTES);
        if (run_now(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(m.buffer), 64u)) !=
            BH_OK)
            continue;
        REQUIRE_OK(prefetch_on(lane, m.buffer, 0, BYTES, BH_TO_HOST, &ticket));
        done = bh_wait(ticket, LONG_NS) == BH_OK;
        failed += !done;
        CHECK_EQ(managed_info(m.buffer).device_newest, done ? 0 : BYTES);
    }
    CHECK_GT(failed, 10);
    CHECK_OK(bh_device_close(r.device));
}

typedef struct unmapper {
    made m;
    bh_status status;
} unmapper;

static void unmap_in_policy(void *context, const bh_loss *loss, bh_verdict *verdict) {
    unmapper *self = context;
    (void)loss;
    (void)verdict;
    self->status = bh_managed_unmap(self->m.words, BYTES);
}

TEST(an_unmap_in_the_policy_callback_is_refused) {
    unmapper self = {.status = BH_E_BUSY};
    bh_device_options options = device_options(0);
    options.policy = unmap_in_policy;
    options.policy_context = &self;
    rig r = rig_open_with(&options);
    self.m = managed_made(r.device, WORDS, 0);
    map(self.m.buffer, BYTES, BH_MAP_READ);
    kill_worker(r.device, SIGKILL);
    CHECK_STATUS(self.status, BH_E_INVALID);
    CHECK_EQ(managed_info(self.m.buffer).maps, 1);
    REQUIRE_OK(bh_managed_unmap(self.m.words, BYTES));
    REQUIRE_OK(bh_buffer_release(self.m.buffer));
    CHECK_EQ(memory_of(r.device).managed_buffers, 0);
    CHECK_OK(bh_device_close(r.device));
}
