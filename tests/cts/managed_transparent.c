/* SPDX-License-Identifier: Apache-2.0 */
/* Transparent managed buffers: plain loads and stores between launches, with and without
 * tracking. */
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "../support/managed.h"

enum { WORDS = 64 * 1024, BYTES = WORDS * 4 };

static bh_ticket add_one(const rig *r, bh_buffer buffer, bh_lane lane) {
    bh_launch_options there = on_lane(lane, 0);
    return submit(rig_kernel(r, "add_one"), BH_GRID(WORDS, 128),
                  BH_ARGS(BH_INOUT(buffer), (uint32_t)WORDS), &there);
}

static bool all_are(const uint32_t *words, uint64_t count, uint32_t value) {
    for (uint64_t i = 0; i < count; i++) {
        if (words[i] == value) continue;
        fprintf(stderr, "word %llu is %u, not %u\n", (unsigned long long)i, words[i], value);
        return false;
    }
    return true;
}

static void set_all(uint32_t *words, uint64_t count, uint32_t value) {
    for (uint64_t i = 0; i < count; i++) words[i] = value;
}

static void loads_and_stores(uint32_t more) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT | more);
    set_all(m.words, WORDS, 1);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, lane), LONG_NS));
    CHECK(all_are(m.words, WORDS, 2));
    for (uint32_t i = 0; i < 5; i++) {
        m.words[i * 2000] = 100;
        REQUIRE_OK(bh_wait(add_one(&r, m.buffer, lane), LONG_NS));
        CHECK_EQ(m.words[i * 2000], 101);
        m.words[i * 2000] = 3 + i;
        CHECK(all_are(m.words, WORDS, 3 + i));
    }
    CHECK_OK(bh_device_close(r.device));
}

static void need_tracking(void) {
    bh_device device = open_device();
    bh_device_limits limits = limits_of(device);
    CHECK_OK(bh_device_close(device));
    if (limits.no_tracking[0]) SKIP("%s", limits.no_tracking);
}

TEST(plain_loads_and_stores) {
    need_tracking();
    loads_and_stores(0);
}

TEST(the_same_without_tracking) {
    loads_and_stores(BH_BUFFER_UNTRACKED);
}

TEST(only_pages_that_were_written_move) {
    need_tracking();
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_managed_info info = managed_info(m.buffer);
    CHECK_EQ(info.tracking, BH_TRACKING_PAGES);
    uint64_t page = info.page_bytes, words = page / 4;
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, (bh_lane){0}), LONG_NS));
    uint64_t there = managed_info(m.buffer).bytes_to_device;
    CHECK_EQ(managed_info(m.buffer).bytes_to_host, BYTES);
    CHECK_EQ(managed_info(m.buffer).on_both, BYTES);
    m.words[0] = 5;
    m.words[3 * words] = 6;
    m.words[4 * words + 1] = 7;
    volatile uint32_t look = m.words[9 * words];
    (void)look;
    bh_buffer out = words_alloc(r.device, WORDS);
    for (int i = 0; i < 2; i++) {
        REQUIRE_OK(run_now(rig_kernel(&r, "copy_words"), BH_GRID(WORDS, 128),
                           BH_ARGS(BH_IN(m.buffer), BH_OUT(out), (uint32_t)WORDS)));
        info = managed_info(m.buffer);
        CHECK_EQ(info.bytes_to_device, there + 3 * page); /* once */
        CHECK_EQ(info.bytes_to_host, BYTES);
    }
    CHECK_EQ(word_read(out, 0), 5);
    CHECK_EQ(word_read(out, 3 * words), 6);
    CHECK_EQ(word_read(out, 4 * words + 1), 7);
    /* A launch on part of it looks at that part only. */
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, words, &view));
    m.words[1] = 8;
    m.words[20 * words] = 8;
    REQUIRE_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(words, 128),
                       BH_ARGS(BH_INOUT(view), (uint32_t)words)));
    CHECK_EQ(m.words[1], 9);
    info = managed_info(m.buffer);
    CHECK_EQ(info.bytes_to_device, there + 4 * page);
    CHECK_EQ(info.bytes_to_host, BYTES + page);
    CHECK_OK(bh_device_close(r.device));
}

TEST(without_tracking_all_of_what_is_used_moves) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT | BH_BUFFER_UNTRACKED);
    CHECK_EQ(managed_info(m.buffer).tracking, BH_TRACKING_ALL_WRITTEN);
    bh_buffer view, out = words_alloc(r.device, WORDS);
    uint64_t words = managed_info(m.buffer).page_bytes / 4;
    REQUIRE_OK(bh_buffer_view(m.buffer, 0, 0, words, &view));
    for (uint64_t i = 1; i <= 3; i++) {
        REQUIRE_OK(run_now(rig_kernel(&r, "copy_words"), BH_GRID(words, 128),
                           BH_ARGS(BH_IN(view), BH_OUT(out), (uint32_t)words)));
        CHECK_EQ(managed_info(m.buffer).bytes_to_device, i * words * 4);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(system_calls_read_and_write_it) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    uint32_t *plain = malloc(BYTES);
    for (uint32_t i = 0; i < WORDS; i++) plain[i] = i * 3;
    int sockets[2], pipes[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    REQUIRE(pipe(pipes) == 0);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, (bh_lane){0}), LONG_NS)); /* all pages clean */
    char *target = (char *)m.words;
    for (uint64_t at = 0; at < BYTES; at += 16384) {
        bool by_socket = at / 16384 % 2;
        REQUIRE(write(by_socket ? sockets[0] : pipes[1], (char *)plain + at, 16384) == 16384);
        for (uint64_t got = 0; got < 16384;) {
            ssize_t some = by_socket ? recv(sockets[1], target + at + got, 16384 - got, 0)
                                     : read(pipes[0], target + at + got, 16384 - got);
            REQUIRE(some > 0);
            got += (uint64_t)some;
        }
    }
    CHECK_MEM_EQ(m.words, plain, BYTES);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, (bh_lane){0}), LONG_NS));
    /* And out of it, what a kernel wrote. */
    for (uint64_t at = 0; at < BYTES; at += 16384) {
        uint32_t part[4096];
        REQUIRE(write(pipes[1], target + at, 16384) == 16384);
        REQUIRE(read(pipes[0], part, 16384) == 16384);
        for (uint32_t i = 0; i < 4096; i++) REQUIRE_EQ(part[i], plain[at / 4 + i] + 1);
    }
    free(plain);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_query_starts_the_way_home_and_keeps_its_word) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT),
         n = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT | 0);
    for (uint32_t round = 1; round < 20; round++) {
        bh_ticket first = add_one(&r, m.buffer, lane), second = add_one(&r, n.buffer, lane);
        bh_status status;
        while ((status = bh_wait(first, 0)) == BH_E_BUSY) sleep_ms(0);
        CHECK_OK(status);
        CHECK(all_are(m.words, WORDS, m.words[0]));
        CHECK_EQ(m.words[0], round);
        add_one(&r, m.buffer, (bh_lane){0}); /* written again, by somebody else */
        for (int i = 0; i < 50; i++) CHECK_OK(bh_wait(first, 0));
        set_all(n.words, 0, 0);
        REQUIRE_OK(bh_wait(second, LONG_NS));
        CHECK(all_are(n.words, WORDS, round));
        REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
        CHECK_OK(bh_wait(first, 0));
        CHECK(all_are(m.words, WORDS, round + 1));
        set_all(m.words, WORDS, round);
    }
    CHECK_OK(bh_device_close(r.device));
}

struct seen {
    const uint32_t *words;
    _Atomic(int) calls, wrong;
    uint32_t value;
};

static void look(void *context, bh_ticket ticket, bh_status status) {
    struct seen *s = context;
    (void)ticket;
    if (status != BH_OK || !all_are(s->words, WORDS, s->value)) atomic_fetch_add(&s->wrong, 1);
    atomic_fetch_add(&s->calls, 1);
}

TEST(callbacks_and_the_eventfd_come_when_it_is_home) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    int fd;
    REQUIRE_OK(bh_device_eventfd(r.device, &fd));
    for (uint32_t i = 1; i <= 10; i++) {
        struct seen s = {.words = m.words, .value = i};
        REQUIRE_OK(bh_on_done(add_one(&r, m.buffer, (bh_lane){0}), look, &s));
        uint64_t limit = now_ns() + LONG_NS;
        while (atomic_load(&s.calls) == 0 && now_ns() < limit) sleep_ms(1);
        CHECK_EQ(atomic_load(&s.calls), 1);
        CHECK_EQ(atomic_load(&s.wrong), 0);
    }
    REQUIRE_OK(bh_notify(add_one(&r, m.buffer, (bh_lane){0})));
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    CHECK_EQ(poll(&ready, 1, 20000), 1);
    CHECK(all_are(m.words, WORDS, 11));
    CHECK_OK(bh_device_close(r.device));
}

TEST(whatever_tells_of_the_end_brings_it_home) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    bh_buffer other = words_alloc(r.device, 4);
    add_one(&r, m.buffer, a);
    REQUIRE_OK(bh_lane_sync(a, LONG_NS));
    CHECK(all_are(m.words, WORDS, 1));
    add_one(&r, m.buffer, b);
    REQUIRE_OK(bh_device_sync(r.device, LONG_NS));
    CHECK(all_are(m.words, WORDS, 2));
    add_one(&r, m.buffer, (bh_lane){0});
    word_write(other, 0, 1); /* behind it, on the same lane */
    CHECK(all_are(m.words, WORDS, 3));
    add_one(&r, m.buffer, a); /* on two lanes: the second one waits for the first */
    bh_ticket last = add_one(&r, m.buffer, b);
    REQUIRE_OK(bh_wait(last, LONG_NS));
    CHECK(all_are(m.words, WORDS, 5));
    bh_ticket tickets[2] = {add_one(&r, m.buffer, b), add_one(&r, m.buffer, a)};
    REQUIRE_OK(bh_wait_all(tickets, 2, LONG_NS));
    CHECK(all_are(m.words, WORDS, 7));
    bh_error error;
    last = add_one(&r, m.buffer, a);
    while (bh_ticket_error(last, &error) == BH_E_BUSY) sleep_ms(0);
    CHECK(all_are(m.words, WORDS, 8));
    /* A time limit holds for the way home too. */
    gate g = gate_close(&r, a, 0);
    last = add_one(&r, m.buffer, a);
    CHECK_STATUS(bh_wait(last, 5 * MS), BH_E_TIMEOUT);
    gate_open(&g);
    REQUIRE_OK(bh_wait(last, LONG_NS));
    CHECK(all_are(m.words, WORDS, 9));
    CHECK_OK(bh_device_close(r.device));
}

enum { THREADS = 16, SLICE = WORDS / THREADS, ROUNDS = 10 };

struct crowd {
    rig r;
    made own[THREADS];
    bh_lane lanes[3];
};

static void own_buffer(void *context, unsigned index) {
    struct crowd *c = context;
    made m = c->own[index];
    for (uint32_t i = 0; i < ROUNDS; i++) {
        m.words[i * 1000] = 7;
        bh_ticket ticket = add_one(&c->r, m.buffer, c->lanes[index % 3]);
        if (i % 2)
            REQUIRE_OK(bh_wait(ticket, LONG_NS));
        else
            while (bh_wait(ticket, 0) == BH_E_BUSY) sleep_ms(0);
        CHECK_EQ(m.words[i * 1000], 8);
        m.words[i * 1000] = i + 1;
        CHECK(all_are(m.words, WORDS, i + 1));
    }
}

TEST_TIMEOUT(sixteen_threads_each_with_a_buffer, 90) {
    struct crowd c = {.r = rig_open(0)};
    for (int i = 0; i < 3; i++) c.lanes[i] = open_lane(c.r.device);
    for (int i = 0; i < THREADS; i++)
        c.own[i] = managed_made(c.r.device, WORDS,
                                BH_BUFFER_TRANSPARENT | (i % 4 == 3 ? BH_BUFFER_UNTRACKED : 0));
    run_threads(THREADS, own_buffer, &c);
    CHECK_OK(bh_device_close(c.r.device));
}

/* A program that closes descriptors it does not own loses the tracking, not data. */
TEST(a_closed_tracker_is_noticed) {
    need_tracking();
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, (bh_lane){0}), LONG_NS));
    for (int fd = 3; fd < 200; fd++) {
        char path[64], name[64] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        if (readlink(path, name, sizeof name - 1) > 0 && strstr(name, "userfaultfd")) close(fd);
    }
    set_all(m.words, WORDS, 20);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, (bh_lane){0}), LONG_NS));
    CHECK(all_are(m.words, WORDS, 21));
    CHECK_EQ(managed_info(m.buffer).tracking, BH_TRACKING_ALL_WRITTEN);
    CHECK_OK(bh_device_close(r.device));
}

/* Done for whoever asks once what was written has come home, and not before that for bh_cancel. */
TEST(cancelling_and_asking_agree) {
    rig r = rig_open(0);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT);
    unsigned begun = 0, ended = 0;
    for (int i = 0; i < 60; i++) {
        uint32_t n = WORDS;
        bh_ticket ticket =
            submit(rig_kernel(&r, "iota"), BH_GRID(n, 64), BH_ARGS(BH_OUT(m.buffer), 5u, n), NULL);
        bh_status status = BH_E_BUSY;
        while (status == BH_E_BUSY) {
            status = bh_cancel(ticket);
            begun += status == BH_E_BUSY;
        }
        if (status == BH_OK) {
            CHECK_STATUS(bh_wait(ticket, 0), BH_E_CANCELLED);
            continue;
        }
        ended++;
        CHECK_STATUS(status, BH_E_INVALID);
        CHECK_OK(bh_wait(ticket, 0));
    }
    fprintf(stderr, "%u had begun, %u had ended\n", begun, ended);
    CHECK_OK(bh_device_close(r.device));
}

/* A launch that is cancelled before it ran leaves the program's copy as new as the device's: what
 * is stored then is not taken for old, although requests before the launch are still in the
 * queue. */
static void store_after_cancel(uint32_t more) {
    rig r = rig_open(0);
    if (has_queues(r.device)) SKIP("a device with queues may have taken the launches already");
    bh_lane lane = open_lane(r.device);
    made m = managed_made(r.device, WORDS, BH_BUFFER_TRANSPARENT | more);
    set_all(m.words, WORDS, 0);
    REQUIRE_OK(bh_wait(add_one(&r, m.buffer, lane), LONG_NS)); /* both copies are the same now */
    gate g = gate_close(&r, lane, 0);
    bh_ticket first = add_one(&r, m.buffer, lane), second = add_one(&r, m.buffer, lane);
    CHECK_OK(bh_cancel(second));
    CHECK_OK(bh_cancel(first));
    CHECK_STATUS(bh_wait(first, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(second, 0), BH_E_CANCELLED);
    set_all(m.words, WORDS, 7);
    bh_ticket last = add_one(&r, m.buffer, lane);
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK(all_are(m.words, WORDS, 8));
    CHECK_OK(bh_device_close(r.device));
}

TEST(stores_after_a_cancelled_launch_count) {
    need_tracking();
    store_after_cancel(0);
}

TEST(stores_after_a_cancelled_launch_count_without_tracking) {
    store_after_cancel(BH_BUFFER_UNTRACKED);
}
