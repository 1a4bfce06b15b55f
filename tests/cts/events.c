/* SPDX-License-Identifier: Apache-2.0 */
/* Callbacks, the eventfd in poll and epoll, text printed by kernels. */
#include <poll.h>
#include <sys/epoll.h>

#include "../support/support.h"

enum { MANY = 200 };

struct seen {
    _Atomic(int) calls;
    _Atomic(int) not_ok;
    bh_ticket order[MANY];
    pthread_t threads[MANY];
};

static void note_done(void *context, bh_ticket ticket, bh_status status) {
    struct seen *seen = context;
    int index = atomic_load(&seen->calls);
    if (index < MANY) {
        seen->order[index] = ticket;
        seen->threads[index] = pthread_self();
    }
    if (status != BH_OK) atomic_fetch_add(&seen->not_ok, 1);
    atomic_store(&seen->calls, index + 1);
}

static bool wait_calls(_Atomic(int) *calls, int count) {
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(calls) < count) {
        if (now_ns() > limit) return false;
        sleep_ms(1);
    }
    return true;
}

TEST(callbacks_run_once_each_in_the_order_of_a_lane) {
    rig r = rig_open(0);
    struct seen seen = {0};
    bh_ticket tickets[MANY];
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_kernel add_one = rig_kernel(&r, "add_one");
    for (int i = 0; i < MANY; i++) {
        tickets[i] = submit(add_one, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL);
        REQUIRE_OK(bh_on_done(tickets[i], note_done, &seen));
    }
    CHECK(wait_calls(&seen.calls, MANY));
    sleep_ms(20);
    CHECK_EQ(atomic_load(&seen.calls), MANY);
    CHECK_EQ(atomic_load(&seen.not_ok), 0);
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(seen.order[i].lane, tickets[i].lane);
        CHECK_EQ(seen.order[i].sequence, tickets[i].sequence);
        CHECK(!pthread_equal(seen.threads[i], pthread_self()));
        CHECK(pthread_equal(seen.threads[i], seen.threads[0]));
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_callback_never_runs_inside_the_call_that_registers_it) {
    rig r = rig_open(0);
    struct seen seen = {0};
    bh_buffer x = words_filled(r.device, 1, 0);
    bh_ticket t = submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL);
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_on_done(t, note_done, &seen)); /* done already */
    CHECK(wait_calls(&seen.calls, 1));
    CHECK(!pthread_equal(seen.threads[0], pthread_self()));
    CHECK_OK(bh_device_close(r.device));
}

TEST(one_ticket_may_have_many_callbacks) {
    rig r = rig_open(0);
    struct seen seen = {0};
    gate g = gate_close(&r, open_lane(r.device), 0);
    for (int i = 0; i < 10; i++) CHECK_OK(bh_on_done(g.ticket, note_done, &seen));
    sleep_ms(20);
    CHECK_EQ(atomic_load(&seen.calls), 0);
    gate_open(&g);
    CHECK(wait_calls(&seen.calls, 10));
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&seen.calls), 10);
}

TEST(callbacks_have_all_run_when_close_returns) {
    rig r = rig_open(0);
    struct seen seen = {0};
    bh_buffer x = words_filled(r.device, 64, 0);
    for (int i = 0; i < MANY; i++) {
        bh_ticket t =
            submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), NULL);
        REQUIRE_OK(bh_on_done(t, note_done, &seen));
    }
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&seen.calls), MANY);
    CHECK_EQ(atomic_load(&seen.not_ok), 0);
}

TEST(callbacks_of_cancelled_work_run_too) {
    bh_device_options options = device_options(0);
    options.close_timeout_ns = 20 * MS;
    rig r = rig_open_with(&options);
    struct seen seen = {0};
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_buffer x = words_filled(r.device, 1, 0);
    CHECK_OK(bh_on_done(g.ticket, note_done, &seen));
    for (int i = 0; i < 20; i++) {
        bh_ticket t =
            submit(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), &there);
        REQUIRE_OK(bh_on_done(t, note_done, &seen));
    }
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&seen.calls), 21);
    CHECK_EQ(atomic_load(&seen.not_ok), 21);
}

struct chain {
    rig r;
    bh_kernel kernel;
    bh_buffer x;
    _Atomic(int) left;
    _Atomic(int) failed;
};

static void launch_next(void *context, bh_ticket ticket, bh_status status) {
    struct chain *chain = context;
    bh_launch_options options = BH_INIT(options);
    bh_ticket next;
    (void)ticket;
    options.flags = BH_SUBMIT_NO_BLOCK;
    if (status != BH_OK) atomic_fetch_add(&chain->failed, 1);
    int left = atomic_load(&chain->left);
    if (left > 1 && (bh_launch(chain->kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(chain->x), 1u),
                               &options, &next) != BH_OK ||
                     bh_on_done(next, launch_next, chain) != BH_OK)) {
        atomic_fetch_add(&chain->failed, 1);
        left = 1;
    }
    atomic_store(&chain->left, left - 1);
}

TEST(a_callback_may_submit_and_register_the_next) {
    struct chain chain = {.r = rig_open(0)};
    chain.kernel = rig_kernel(&chain.r, "add_one");
    chain.x = words_filled(chain.r.device, 1, 0);
    atomic_store(&chain.left, 100);
    bh_ticket t = submit(chain.kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(chain.x), 1u), NULL);
    REQUIRE_OK(bh_on_done(t, launch_next, &chain));
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&chain.left) > 0 && now_ns() < limit) sleep_ms(1);
    CHECK_EQ(atomic_load(&chain.left), 0);
    CHECK_EQ(atomic_load(&chain.failed), 0);
    CHECK_EQ(word_read(chain.x, 0), 100);
    CHECK_OK(bh_device_close(chain.r.device));
}

static void register_many(void *context, unsigned index) {
    struct chain *chain = context;
    (void)index;
    for (int i = 0; i < 100; i++) {
        bh_ticket t = submit(chain->kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(chain->x), 1u), NULL);
        REQUIRE_OK(bh_on_done(t, launch_next, chain));
    }
}

TEST(threads_register_callbacks_at_once) {
    struct chain chain = {.r = rig_open(0)};
    chain.kernel = rig_kernel(&chain.r, "add_one");
    chain.x = words_filled(chain.r.device, 1, 0);
    atomic_store(&chain.left, 0); /* the callbacks count below zero */
    run_threads(4, register_many, &chain);
    CHECK_OK(bh_device_sync(chain.r.device, LONG_NS));
    CHECK_EQ(word_read(chain.x, 0), 400);
    CHECK_OK(bh_device_close(chain.r.device));
    CHECK_EQ(atomic_load(&chain.left), -400);
    CHECK_EQ(atomic_load(&chain.failed), 0);
}

TEST(the_eventfd_wakes_a_poll) {
    rig r = rig_open(0);
    int fd = -1;
    uint64_t count;
    REQUIRE_OK(bh_device_eventfd(r.device, &fd));
    REQUIRE(fd >= 0);
    struct pollfd poll_fd = {fd, POLLIN, 0};
    gate g = gate_close(&r, open_lane(r.device), 0);
    CHECK_OK(bh_notify(g.ticket));
    CHECK_EQ(poll(&poll_fd, 1, 30), 0);
    gate_open(&g);
    CHECK_EQ(poll(&poll_fd, 1, 20000), 1);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_EQ(poll(&poll_fd, 1, 20), 0); /* rearmed */
    CHECK_OK(bh_notify(g.ticket));      /* done already */
    CHECK_EQ(poll(&poll_fd, 1, 20000), 1);
    CHECK_EQ(read(fd, &count, 8), 8);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_that_nobody_armed_leaves_the_eventfd_alone) {
    rig r = rig_open(0);
    int fd = -1;
    bh_buffer x = words_filled(r.device, 1, 0);
    REQUIRE_OK(bh_device_eventfd(r.device, &fd));
    struct pollfd poll_fd = {fd, POLLIN, 0};
    for (int i = 0; i < 10; i++)
        CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u)));
    CHECK_EQ(poll(&poll_fd, 1, 20), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_epoll_loop_over_two_devices_gets_all_its_news) {
    enum { EACH = 50 };
    rig rigs[2] = {rig_open(0), rig_open(0)};
    bh_buffer x[2];
    bh_ticket pending[2];
    int done[2] = {0, 0}, fds[2], loop = epoll_create1(EPOLL_CLOEXEC);
    REQUIRE(loop >= 0);
    for (int i = 0; i < 2; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)i};
        x[i] = words_filled(rigs[i].device, 1, 0);
        REQUIRE_OK(bh_device_eventfd(rigs[i].device, &fds[i]));
        REQUIRE(epoll_ctl(loop, EPOLL_CTL_ADD, fds[i], &event) == 0);
        pending[i] = submit(rig_kernel(&rigs[i], "add_one"), BH_GRID(1, 1),
                            BH_ARGS(BH_INOUT(x[i]), 1u), NULL);
        REQUIRE_OK(bh_notify(pending[i]));
    }
    while (done[0] < EACH || done[1] < EACH) {
        struct epoll_event events[4];
        int count = epoll_wait(loop, events, 4, 20000);
        REQUIRE(count > 0);
        for (int k = 0; k < count; k++) {
            uint32_t i = events[k].data.u32;
            uint64_t number;
            REQUIRE_EQ(read(fds[i], &number, 8), 8);
            if (bh_wait(pending[i], 0) == BH_E_BUSY) continue;
            CHECK_OK(bh_wait(pending[i], 0));
            if (++done[i] < EACH) {
                pending[i] = submit(rig_kernel(&rigs[i], "add_one"), BH_GRID(1, 1),
                                    BH_ARGS(BH_INOUT(x[i]), 1u), NULL);
                REQUIRE_OK(bh_notify(pending[i]));
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(word_read(x[i], 0), EACH);
        CHECK_OK(bh_device_close(rigs[i].device));
    }
    close(loop);
}

struct printed {
    char text[20000];
    size_t length;
    _Atomic(int) calls;
};

static void note_text(void *context, const bh_event *event) {
    struct printed *printed = context;
    if (printed->length + event->length < sizeof printed->text) {
        memcpy(printed->text + printed->length, event->text, event->length);
        printed->length += event->length;
    }
    atomic_fetch_add(&printed->calls, 1);
}

TEST(text_printed_by_kernels_arrives) {
    bh_device device = open_device();
    struct printed printed = {.length = 0};
    bh_kernel say = get_kernel(load_module(device, ptx_printf), "say");
    watch_for(device, BH_EVENT_PRINT, note_text, &printed);
    for (uint32_t i = 0; i < 5; i++) CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(i, 100 - i)));
    CHECK_OK(bh_device_close(device));
    CHECK_STR_EQ(printed.text, "a=0 b=100\na=1 b=99\na=2 b=98\na=3 b=97\na=4 b=96\n");
}

TEST(each_thread_prints_its_own_line) {
    enum { N = 500 };
    bh_device device = open_device();
    struct printed printed = {.length = 0};
    watch_for(device, BH_EVENT_PRINT, note_text, &printed);
    CHECK_OK(run_now(get_kernel(load_module(device, ptx_printf), "say_many"), BH_GRID(N, 64),
                     BH_ARGS((uint32_t)N)));
    CHECK_OK(bh_device_close(device));
    static unsigned char seen[N];
    unsigned lines = 0;
    for (char *line = printed.text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        unsigned number = N;
        CHECK_EQ(sscanf(line, "line %u\n", &number), 1);
        if (number < N) seen[number]++;
        lines++;
    }
    CHECK_EQ(lines, N);
    for (int i = 0; i < N; i++) CHECK_EQ(seen[i], 1);
}

TEST(printing_without_a_watcher_is_dropped) {
    bh_device device = open_device();
    bh_kernel say = get_kernel(load_module(device, ptx_printf), "say");
    for (uint32_t i = 0; i < 20; i++) CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(i, i)));
    load_module(device, ptx_printf); /* the worker's answer comes behind what was printed */
    struct printed printed = {.length = 0};
    bh_watch watch = watch_for(device, BH_EVENT_PRINT, note_text, &printed);
    REQUIRE_OK(bh_watch_release(watch));
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 1u)));
    CHECK_OK(bh_device_close(device));
    CHECK_EQ(atomic_load(&printed.calls), 0);
}
