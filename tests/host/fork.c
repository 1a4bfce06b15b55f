/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that fork and hosts that reap: the child is refused politely, the parent notices
 * nothing. */
#include "../support/transfers.h"
#include "host.h"

static void done_never(void *context, bh_ticket ticket, bh_status status) {
    (void)context;
    (void)ticket;
    (void)status;
}

static void see_event(void *context, const bh_event *event) {
    (void)context;
    (void)event;
}

/* In the child: how many calls did not answer BH_E_STOPPED. */
static int wrong_answers(const rig *r, bh_lane lane, bh_kernel kernel, bh_buffer x,
                         bh_ticket ticket) {
    int wrong = 0;
    uint32_t word = 0;
    bh_device other;
    bh_buffer y;
    bh_lane new_lane;
    bh_module module;
    void *memory;
    bh_error error;
    bh_device_options options = device_options(0);
#define STOPPED(call)                                                                              \
    do {                                                                                           \
        bh_status got = (call);                                                                    \
        if (got != BH_E_STOPPED) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, bh_status_name(got));                               \
            wrong++;                                                                               \
        }                                                                                          \
    } while (0)
    STOPPED(bh_buffer_read(x, 0, &word, 4));
    STOPPED(bh_buffer_write(x, 0, &word, 4));
    STOPPED(bh_buffer_alloc(r->device, BH_U32, 4, NULL, &y));
    STOPPED(bh_buffer_release(x));
    STOPPED(bh_launch(kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x), 1u), NULL, NULL));
    STOPPED(bh_wait(ticket, 0));
    STOPPED(bh_wait(ticket, BH_FOREVER));
    STOPPED(bh_wait(ticket, 0));
    STOPPED(bh_cancel(ticket));
    STOPPED(bh_on_done(ticket, done_never, NULL));
    STOPPED(bh_notify(ticket));
    STOPPED(bh_lane_open(r->device, NULL, &new_lane));
    STOPPED(bh_lane_sync(lane, BH_FOREVER));
    STOPPED(bh_lane_release(lane));
    STOPPED(bh_module_load(r->device, ptx_basic, strlen(ptx_basic), &module));
    STOPPED(bh_module_release(r->module));
    STOPPED(bh_host_alloc(r->device, 64, &memory));
    bh_memory_info figures = BH_INIT(figures);
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = rows.height = 2;
    bh_host_pool pool;
    size_t length;
    STOPPED(bh_buffer_alloc(r->device, BH_U32, 4, NULL, &y));
    STOPPED(bh_buffer_view(x, BH_F32, 0, BH_WHOLE, &y));
    STOPPED(bh_memory_get_info(r->device, &figures));
    STOPPED(bh_memory_reset_peak(r->device));
    STOPPED(bh_memory_set_limit(r->device, NULL, 0));
    STOPPED(bh_memory_set_limit(r->device, "tag", 1));
    STOPPED(bh_memory_list(r->device, NULL, 0, 0, &length));
    STOPPED(bh_memory_list_tags(r->device, NULL, 0, 0, &length));
    bh_watch watch = {1};
    STOPPED(bh_watch_open(r->device, NULL, see_event, NULL, &watch));
    STOPPED(bh_watch_release(watch));
    bh_health health = BH_INIT(health);
    STOPPED(bh_device_get_health(r->device, &health));
    bh_device_limits limits = BH_INIT(limits);
    STOPPED(bh_device_get_limits(r->device, &limits));
    STOPPED(bh_device_list_losses(r->device, NULL, 0, 0, &length));
    STOPPED(bh_device_list_findings(r->device, 0, NULL, 0, 0, &length));
    STOPPED(bh_device_get_report(r->device, 0, NULL, 0, &length));
    STOPPED(bh_memory_trim(r->device, 0, NULL));
    STOPPED(write_rows(x, &rows, &rows));
    STOPPED(read_rows(&rows, x, &rows));
    STOPPED(copy_rows(x, x, &rows));
    STOPPED(fill_rows(x, &rows, &word, 4));
    STOPPED(bh_buffer_copy(x, 0, x, 8, 8));
    STOPPED(bh_host_pool_open(r->device, NULL, &pool));
    STOPPED(bh_device_sync(r->device, BH_FOREVER));
    STOPPED(bh_device_wait_standby(r->device, BH_FOREVER));
    STOPPED(bh_device_close(r->device));
    STOPPED(bh_device_open(&options, &other));
#undef STOPPED
    if (bh_last_error(&error) != BH_E_STOPPED || strstr(error.message, "fork") == NULL) {
        fprintf(stderr, "the message is: %s\n", error.message);
        wrong++;
    }
    return wrong;
}

static int child_result(pid_t pid) {
    host h = {.pid = pid};
    return host_end(&h);
}

TEST(every_call_in_a_forked_child_is_refused) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_buffer x = words_counting(r.device, 100, 1);
    gate g = gate_close(&r, lane, 0);
    pid_t pid = fork();
    if (pid == 0) _exit(wrong_answers(&r, lane, kernel, x, g.ticket));
    CHECK_EQ(child_result(pid), 0);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK(words_count(x, 100, 1));
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).generation, 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(children_that_exit_do_not_disturb_their_parent) {
    rig r = rig_open(0);
    bh_buffer x = words_counting(r.device, 100, 1);
    for (int i = 0; i < 10; i++) {
        gate g = gate_close(&r, open_lane(r.device), 0);
        pid_t pid = fork();
        if (pid == 0) {
            if (i % 2 &&
                test_time_scale() == 1) /* sanitizers have handlers that want their threads */
                exit(0); /* with the handlers and destructors of everything linked in */
            _exit(0);
        }
        CHECK_EQ(child_result(pid), 0);
        gate_open(&g);
        CHECK_OK(bh_wait(g.ticket, LONG_NS));
    }
    CHECK(words_count(x, 100, 1));
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_parent_can_close_while_a_child_lives) {
    rig r = rig_open(0);
    wait_standby(r.device);
    bh_health health = health_of(r.device);
    pid_t pid = fork();
    if (pid == 0) {
        for (;;) pause();
    }
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_process_gone(health.worker_pid, 5000));
    CHECK(wait_process_gone(health.standby_pids[0], 5000));
    kill(pid, SIGKILL);
    CHECK_EQ(child_result(pid), 128 + SIGKILL);
}

TEST(a_fork_from_a_busy_program_with_many_threads) {
    rig r = rig_open(0);
    bh_buffer x = words_filled(r.device, 64, 0);
    bh_kernel add_one = rig_kernel(&r, "add_one");
    for (int i = 0; i < 20; i++) {
        for (int k = 0; k < 20; k++)
            submit(add_one, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), NULL);
        pid_t pid = fork();
        if (pid == 0) {
            uint32_t word;
            _exit(bh_buffer_read(x, 0, &word, 4) == BH_E_STOPPED ? 0 : 1);
        }
        CHECK_EQ(child_result(pid), 0);
    }
    CHECK(words_are(x, 64, 400));
    CHECK_OK(bh_device_close(r.device));
}

TEST(fork_before_the_first_use_is_a_fresh_start) {
    CHECK_STR_EQ(bh_version(), "0.1.0");
    pid_t pid = fork();
    if (pid == 0) {
        rig r = rig_open(0);
        check_device_works(&r);
        CHECK_OK(bh_device_close(r.device));
        _exit(0);
    }
    CHECK_EQ(child_result(pid), 0);
}

/* Plain stores to a transparent buffer arrive at kernels, and what kernels write comes back. */
static void check_transparent(void) {
    enum { WORDS = 5000 };
    rig r = rig_open(0);
    bh_buffer_options options = BH_INIT(options);
    bh_buffer_info info = BH_INIT(info);
    bh_buffer x;
    options.flags = BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, WORDS, &options, &x));
    REQUIRE_OK(bh_buffer_get_info(x, &info));
    uint32_t *words = info.pointer;
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < WORDS; i++) words[i] = i + round * 1000;
        CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 64),
                         BH_ARGS(BH_INOUT(x), (uint32_t)WORDS)));
        uint32_t wrong = 0;
        for (uint32_t i = 0; i < WORDS; i++) wrong += words[i] != i + round * 1000 + 1;
        CHECK_EQ(wrong, 0);
    }
    CHECK_OK(bh_device_close(r.device));
}

TEST(fork_after_the_last_close_is_a_fresh_start_too) {
    check_transparent();
    pid_t pid = fork();
    if (pid == 0) {
        check_transparent();
        _exit(test_failures() != 0);
    }
    CHECK_EQ(child_result(pid), 0);
    check_transparent();
}

static _Atomic(int) stop_asking;

static void *ask_for_ever(void *context) {
    const bh_ticket *ticket = context;
    bh_error error;
    while (!atomic_load(&stop_asking)) (void)bh_ticket_error(*ticket, &error);
    return NULL;
}

/* Other threads ask for old results meanwhile. A child that hangs is killed by the alarm. */
static void check_children(const bh_ticket *old, int count, bool opens) {
    enum { ASKING = 3 };
    pthread_t threads[ASKING];
    atomic_store(&stop_asking, 0);
    for (int i = 0; i < ASKING; i++)
        REQUIRE(pthread_create(&threads[i], NULL, ask_for_ever, (void *)(uintptr_t)old) == 0);
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            alarm((unsigned)(10 * test_time_scale()));
            bh_status status = bh_failure_set_limit(1000);
            if (opens) {
                rig r = rig_open(0);
                check_device_works(&r);
                status = bh_device_close(r.device);
            }
            _exit(status != BH_OK || test_failures() != 0);
        }
        CHECK_EQ(child_result(pid), 0);
    }
    atomic_store(&stop_asking, 1);
    for (int i = 0; i < ASKING; i++) pthread_join(threads[i], NULL);
}

TEST_TIMEOUT(fork_while_other_threads_ask_for_old_results, 120) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_ticket failed = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    CHECK_STATUS(bh_wait(failed, LONG_NS), BH_E_FAULT);
    check_children(&failed, 50, false);
    CHECK_OK(bh_device_close(r.device));
    check_children(&failed, 50, false);
#if !defined(__SANITIZE_THREAD__) /* it takes the child's threads for those of the parent */
    check_children(&failed, 3, true);
#endif
}

static _Atomic(int) stop_reaping, reaped;

static void *reap_everything(void *unused) {
    (void)unused;
    while (!atomic_load(&stop_reaping)) {
        if (waitpid(-1, NULL, WNOHANG) > 0)
            atomic_fetch_add(&reaped, 1);
        else
            sched_yield();
    }
    return NULL;
}

TEST(a_host_that_reaps_every_child) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_counting(r.device, 1000, 1);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, reap_everything, NULL) == 0);
    for (int i = 0; i < 6; i++) {
        kill_worker(r.device, SIGKILL);
        CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
        CHECK_OK(bh_kernel_pardon(rig_kernel(&r, "trap_now")));
        check_device_works(&r);
    }
    CHECK(words_count(x, 1000, 1));
    CHECK_OK(bh_device_close(r.device));
    atomic_store(&stop_reaping, 1);
    pthread_join(thread, NULL);
}

static void check_losses_work(void) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer x = words_counting(r.device, 1000, 1);
    for (int i = 0; i < 4; i++) {
        kill_worker(r.device, SIGKILL);
        gate g = gate_close(&r, open_lane(r.device), 0);
        kill_worker(r.device, crash_signal());
        CHECK_NE(bh_wait(g.ticket, LONG_NS), BH_OK);
        CHECK_OK(bh_kernel_pardon(rig_kernel(&r, "gate")));
        check_device_works(&r);
    }
    CHECK(words_count(x, 1000, 1));
    bh_health health = health_of(r.device);
    CHECK_OK(bh_device_close(r.device));
    CHECK(wait_process_gone(health.worker_pid, 5000));
}

TEST(a_host_that_ignores_its_children) {
    signal(SIGCHLD, SIG_IGN);
    check_losses_work();
}

static void reap_in_handler(int number) {
    int saved = errno;
    (void)number;
    while (waitpid(-1, NULL, WNOHANG) > 0)
        ;
    errno = saved;
}

TEST(a_host_that_reaps_in_its_signal_handler) {
    struct sigaction action = {.sa_handler = reap_in_handler};
    REQUIRE(sigaction(SIGCHLD, &action, NULL) == 0);
    check_losses_work();
}
