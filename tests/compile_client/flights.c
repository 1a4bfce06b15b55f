/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles under way: asked for by many at once, cancelled, hanging, crashing, ended with their
 * device; and the order in which tickets are done. */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/compile.h"

/* ---- one compile for many ---- */

typedef struct crowd {
    const char *source;
    bh_compile_options options;
    _Atomic unsigned misses;
    pthread_barrier_t start;
} crowd;

static void ask(void *context, unsigned index) {
    crowd *c = context;
    (void)index;
    pthread_barrier_wait(&c->start);
    bh_binary binary = compile_ok(c->source, &c->options);
    bh_binary_info info = info_of(binary);
    CHECK_GT(info.count, 0);
    c->misses += info.cache == BH_CACHE_MISS;
    CHECK_OK(bh_binary_release(binary));
}

static void ask_at_once(crowd *c, unsigned threads) {
    pthread_barrier_init(&c->start, NULL, threads);
    run_threads(threads, ask, c);
    bh_cache_info info = cache_info();
    CHECK_EQ(info.misses, 1);
    CHECK_EQ(info.joined + info.memory_hits, threads - 1);
    CHECK_EQ(info.entries, 1);
}

TEST(sixty_four_threads_one_compile) {
    crowd c = {.source = "SLOW=150 all want this", .options = stand_in_options()};
    ask_at_once(&c, 64);
    CHECK_EQ(stand_in_runs(), 1);
}

TEST_TIMEOUT(sixty_four_threads_one_real_compile, 60) {
    need_compiler(BH_COMPILER_CLANG);
    crowd c = {.source = "__global__ void f(int *p) { *p = 4; }\n",
               .options = real_options(BH_COMPILER_CLANG)};
    ask_at_once(&c, 64);
}

static void ask_and_fail(void *context, unsigned index) {
    crowd *c = context;
    bh_binary binary;
    char log[100] = "";
    (void)index;
    pthread_barrier_wait(&c->start);
    CHECK_STATUS(bh_compile(c->source, &c->options, &binary), BH_E_COMPILE);
    CHECK_OK(bh_compile_log(NULL, log, sizeof log, NULL));
    CHECK_STR_CONTAINS(log, "line two of the log");
}

TEST(all_waiters_of_a_failed_compile_get_its_error) {
    crowd c = {.source = "SLOW=150 FAIL", .options = stand_in_options()};
    pthread_barrier_init(&c.start, NULL, 16);
    run_threads(16, ask_and_fail, &c);
    CHECK_EQ(stand_in_runs(), 1);
    CHECK_EQ(cache_info().entries, 0);
}

static void ask_something(void *context, unsigned index) {
    crowd *c = context;
    char text[64];
    test_path(text, sizeof text, "SLOW=20 number %u", index % 8);
    for (unsigned i = 0; i < 6; i++) {
        bh_binary binary = compile_ok(text, &c->options);
        CHECK(memmem(info_of(binary).bytes, info_of(binary).count, text, strlen(text)) != NULL);
        CHECK_OK(bh_binary_release(binary));
        if (index == 0 && i == 3) {
            char path[600];
            CHECK_OK(bh_cache_clear(tmp_path(path, sizeof path, "elsewhere")));
        }
    }
}

TEST(different_compiles_by_many_threads) {
    crowd c = {.options = stand_in_options()};
    run_threads(32, ask_something, &c);
    CHECK_EQ(stand_in_runs(), 8);
}

/* ---- the log ---- */

static void fail_with_log(const bh_compile_options *options) {
    bh_binary binary;
    size_t length = 0;
    CHECK_STATUS(bh_compile("FAIL", options, &binary), BH_E_COMPILE);
    CHECK_OK(bh_compile_log(NULL, NULL, 0, &length));
    CHECK(length > 0);
}

static void check_no_log(void) {
    char log[64] = "?";
    size_t length = 1;
    CHECK_OK(bh_compile_log(NULL, log, sizeof log, &length));
    CHECK_EQ(length, 0);
    CHECK_STR_EQ(log, "");
}

/* A call that fails before a compiler runs has no log, least of all that of an earlier one. */
TEST(the_last_log_is_of_the_last_call_that_failed) {
    bh_compile_options options = stand_in_options(), wrong = stand_in_options();
    bh_device device = open_device();
    bh_binary binary, none = {0};
    bh_module module;
    bh_ticket ticket;
    wrong.output = 77;
    fail_with_log(&options);
    CHECK_REFUSED(bh_compile("x", &options, NULL), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_compile("x", &wrong, &binary), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_link(&none, 1, &options, &binary), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_link(&none, 0, &options, &binary), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_module_compile(device, "x", &wrong, &module), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_module_compile((bh_device){0}, "x", &options, &module), BH_E_INVALID);
    check_no_log();
    fail_with_log(&options);
    CHECK_REFUSED(bh_submit_compile(device, "x", &wrong, &module, &ticket), BH_E_INVALID);
    check_no_log();
    /* One that succeeds is no failure. */
    fail_with_log(&options);
    CHECK_OK(bh_binary_release(compile_ok("and this one works", &options)));
    size_t length = 0;
    CHECK_OK(bh_compile_log(NULL, NULL, 0, &length));
    CHECK(length > 0);
    CHECK_OK(bh_device_close(device));
}

/* ---- programs that misbehave ---- */

static void check_bad(const char *source, const char *message, const char *log_text) {
    bh_compile_options options = stand_in_options();
    bh_binary binary = {42};
    bh_error error;
    char log[1000] = "";
    unsigned before = open_descriptors();
    options.timeout_ns = 20000 * MS;
    CHECK_REFUSED(bh_compile(source, &options, &binary), BH_E_COMPILE);
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, message);
    CHECK_OK(bh_compile_log(NULL, log, sizeof log, NULL));
    CHECK_STR_CONTAINS(log, log_text);
    CHECK_EQ(binary.id, 42);
    CHECK_EQ(compile_from("and this one works", &options),
             cache_info().misses > 1 ? BH_CACHE_MEMORY : BH_CACHE_MISS);
    CHECK_EQ(open_descriptors(), before);
}

TEST(compilers_that_crash_exit_or_answer_nonsense) {
    bh_compile_options options = stand_in_options();
    compile_from("and this one works", &options);
    compile_from("to be counted", &options);
    check_bad("NOISE CRASH", "signal 31", "the frobnicator is out of order");
    check_bad("NOISE EXIT", "status 3", "the frobnicator is out of order");
    check_bad("NOISE EXIT", "the frobnicator is out of order", "");
    check_bad("NOISE SILENT", "invalid answer", "the frobnicator is out of order");
    check_bad("NONSENSE", "invalid answer", "");
    check_bad("SHORT", "invalid answer", "");
    check_bad("FAIL", "the source says so", "line one of the log\nline two of the log\n");
    CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left to be waited for */
}

/* A wait does not take it for its own status, and a terminal not for orders. */
TEST(a_compiler_that_answers_with_a_status_that_is_not_its_own) {
    for (int status = 1; status <= BH_E_INTERNAL; status++) {
        bh_compile_options options = stand_in_options();
        char source[40];
        bh_ticket ticket;
        bh_module module;
        bh_error error;
        snprintf(source, sizeof source, "STATUS=%d", status);
        bh_device device = open_device();
        REQUIRE_OK(bh_submit_compile(device, source, &options, &module, &ticket));
        bh_status got = bh_wait(ticket, 10000 * MS * test_time_scale());
        bool own = status == BH_E_COMPILE || status == BH_E_UNSUPPORTED || status == BH_E_INVALID ||
                   status == BH_E_NOT_FOUND || status == BH_E_NO_HOST_MEMORY || status == BH_E_IO ||
                   status == BH_E_LOAD;
        bh_status wanted = own ? (bh_status)status : BH_E_COMPILE;
        CHECK_EQ(got, wanted);
        bh_last_error(&error);
        CHECK(strpbrk(error.message, "\x1b\x9b\x07") == NULL);
        CHECK(strpbrk(error.fix, "\x1b\x9b\x07") == NULL);
        CHECK_STR_CONTAINS(error.message, "a?[31m??");
        CHECK_NE(error.certain, 7);
        CHECK_OK(bh_device_close(device));
    }
}

TEST(a_compiler_that_hangs_is_ended_in_time) {
    bh_compile_options options = stand_in_options();
    char path[600];
    bh_binary binary;
    bh_error error;
    setenv("BULKHEAD_TEST_CHILD", tmp_path(path, sizeof path, "child"), 1);
    options.timeout_ns = 300 * MS;
    uint64_t begun = now_ns();
    CHECK_REFUSED(bh_compile("NOISE CHILD HANG", &options, &binary), BH_E_COMPILE);
    uint64_t took = now_ns() - begun;
    CHECK_GE(took, 300 * MS);
    CHECK_LT(took, 5000 * MS * test_time_scale());
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "0.300 s");
    CHECK_STR_CONTAINS(error.fix, "timeout_ns");
    size_t size;
    char *text = test_read_file(path, &size); /* what it had started is gone too */
    CHECK(wait_process_gone(atoi(text), 2000));
    free(text);
}

TEST(what_a_compiler_leaves_behind_goes_with_it) {
    bh_compile_options options = stand_in_options();
    char path[600];
    setenv("BULKHEAD_TEST_CHILD", tmp_path(path, sizeof path, "child"), 1);
    compile_from("CHILD", &options);
    size_t size;
    char *text = test_read_file(path, &size);
    CHECK(wait_process_gone(atoi(text), 2000));
    free(text);
}

static _Atomic bool reaping;

static void *reap(void *unused) {
    (void)unused;
    while (reaping) {
        waitpid(-1, NULL, WNOHANG);
        sleep_ms(1);
    }
    return NULL;
}

/* The program waits for all children, ours too. */
TEST(a_program_that_reaps_everything) {
    bh_compile_options options = stand_in_options();
    pthread_t thread;
    reaping = true;
    REQUIRE(pthread_create(&thread, NULL, reap, NULL) == 0);
    bh_binary binary;
    for (unsigned i = 0; i < 20; i++) {
        char text[64];
        compile_from(test_path(text, sizeof text, "SLOW=%u number %u", i % 4, i), &options);
    }
    CHECK_REFUSED(bh_compile("SLOW=5 SILENT", &options, &binary), BH_E_COMPILE);
    reaping = false;
    pthread_join(thread, NULL);
    signal(SIGCHLD, SIG_IGN); /* the kernel reaps them */
    CHECK_EQ(compile_from("SLOW=5 another", &options), BH_CACHE_MISS);
    CHECK_REFUSED(bh_compile("SLOW=5 CRASH", &options, &binary), BH_E_COMPILE);
}

/* ---- tickets ---- */

/* The environment is set before there are threads that read it. */
static bh_device open_ready(void) {
    stand_in_options();
    return open_device();
}

static bh_ticket send_compile(bh_device device, const char *source, bh_module *module) {
    bh_compile_options options = stand_in_options();
    bh_ticket ticket = {0};
    REQUIRE_OK(bh_submit_compile(device, source, &options, module, &ticket));
    return ticket;
}

static void wait_runs(unsigned count) {
    uint64_t limit = now_ns() + 10000 * MS * test_time_scale();
    while (stand_in_runs() < count && now_ns() < limit) sleep_ms(2);
    REQUIRE_EQ(stand_in_runs(), count);
}

TEST(a_slow_compile_holds_up_no_load) {
    bh_device device = open_ready();
    bh_module slow = {0}, fast = {0}, plain = {0};
    bh_ticket slow_ticket = send_compile(device, "SLOW=1500", &slow), fast_ticket, plain_ticket;
    uint64_t begun = now_ns();
    REQUIRE_OK(bh_submit_load(device, ptx_basic, strlen(ptx_basic), &plain, &plain_ticket));
    fast_ticket = send_compile(device, "quick", &fast);
    CHECK_OK(bh_wait(plain_ticket, LONG_NS));
    CHECK_STATUS(bh_wait(slow_ticket, 0), BH_E_BUSY);
    rig r = {device, plain};
    check_device_works(&r); /* nor the lanes */
    if (test_time_scale() == 1) {
        CHECK_LT(now_ns() - begun, 1400 * MS);
        CHECK_STATUS(bh_wait(slow_ticket, 0), BH_E_BUSY);
    }
    CHECK_STATUS(bh_kernel_get(slow, "k0", &(bh_kernel){0}), BH_E_BUSY);
    CHECK_OK(bh_wait(fast_ticket, LONG_NS));
    CHECK_OK(bh_wait(slow_ticket, LONG_NS));
    CHECK_OK(bh_kernel_get(slow, "k0", &(bh_kernel){0}));
    CHECK_OK(bh_kernel_get(fast, "k0", &(bh_kernel){0}));
    CHECK_OK(bh_wait(plain_ticket, 0));
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_wait(slow_ticket, 0));
}

typedef struct calls {
    _Atomic unsigned count;
    bh_ticket order[8];
    bh_status status[8];
} calls;

static void note(void *context, bh_ticket ticket, bh_status status) {
    calls *c = context;
    c->order[c->count] = ticket;
    c->status[c->count] = status;
    c->count++;
}

TEST(callbacks_of_compiles_run_as_they_end) {
    bh_device device = open_ready();
    bh_module modules[3];
    calls c = {0};
    bh_ticket slow = send_compile(device, "SLOW=600", &modules[0]);
    bh_ticket fails = send_compile(device, "SLOW=300 FAIL", &modules[1]);
    bh_ticket load;
    REQUIRE_OK(bh_submit_load(device, ptx_basic, strlen(ptx_basic), &modules[2], &load));
    REQUIRE_OK(bh_on_done(slow, note, &c));
    REQUIRE_OK(bh_on_done(fails, note, &c));
    REQUIRE_OK(bh_on_done(load, note, &c));
    CHECK_OK(bh_device_sync(device, LONG_NS));
    REQUIRE_EQ(c.count, 3);
    CHECK_EQ(c.order[0].sequence, load.sequence);
    CHECK_EQ(c.order[1].sequence, fails.sequence);
    CHECK_EQ(c.status[1], BH_E_COMPILE);
    CHECK_EQ(c.order[2].sequence, slow.sequence);
    CHECK_EQ(c.status[2], BH_OK);
    CHECK_OK(bh_device_close(device));
}

TEST(a_compile_can_be_cancelled) {
    bh_device device = open_ready();
    bh_module module = {0};
    bh_ticket ticket = send_compile(device, "HANG", &module);
    wait_runs(1);
    CHECK_OK(bh_cancel(ticket));
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_CANCELLED);
    CHECK_REFUSED(bh_cancel(ticket), BH_E_INVALID);
    CHECK_REFUSED(bh_kernel_get(module, "k0", &(bh_kernel){0}), BH_E_INVALID);
    /* The program was ended: the next one needs its place. */
    for (unsigned i = 0; i < 12; i++) {
        char text[32];
        ticket = send_compile(device, test_path(text, sizeof text, "HANG %u", i), &module);
        sleep_ms(i * 3);
        CHECK_OK(bh_cancel(ticket));
    }
    ticket = send_compile(device, "not this one", &module);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_REFUSED(bh_cancel(ticket), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(taking_one_back_leaves_the_others_theirs) {
    bh_device first = open_ready(), second = open_ready();
    bh_module modules[3];
    bh_ticket leader = send_compile(first, "SLOW=400 shared", &modules[0]);
    wait_runs(1);
    bh_ticket joined = send_compile(second, "SLOW=400 shared", &modules[1]);
    bh_ticket third = send_compile(second, "SLOW=400 shared", &modules[2]);
    sleep_ms(50);
    CHECK_OK(bh_cancel(leader));
    CHECK_OK(bh_cancel(third));
    CHECK_STATUS(bh_wait(leader, 0), BH_E_CANCELLED);
    CHECK_OK(bh_device_close(first)); /* nor does closing the device that asked first */
    CHECK_OK(bh_wait(joined, LONG_NS));
    CHECK_OK(bh_kernel_get(modules[1], "k0", &(bh_kernel){0}));
    CHECK_EQ(stand_in_runs(), 1);
    CHECK_OK(bh_device_close(second));
}

TEST(closing_a_device_ends_its_compiles) {
    stand_in_options();
    bh_device_options options = device_options(0);
    options.close_timeout_ns = 100 * MS;
    bh_device device = open_device_with(&options);
    bh_module modules[12];
    bh_ticket tickets[12];
    calls c = {0};
    for (unsigned i = 0; i < 12; i++) {
        char text[32];
        test_path(text, sizeof text, "HANG %u", i / 2);
        tickets[i] = send_compile(device, text, &modules[i]);
    }
    for (unsigned i = 0; i < 8; i++) REQUIRE_OK(bh_on_done(tickets[i], note, &c));
    sleep_ms(50);
    uint64_t begun = now_ns();
    CHECK_OK(bh_device_close(device));
    CHECK_LT(now_ns() - begun, 5000 * MS * test_time_scale());
    for (unsigned i = 0; i < 12; i++) CHECK_STATUS(bh_wait(tickets[i], 0), BH_E_CANCELLED);
    CHECK_EQ(c.count, 8);
    for (unsigned i = 0; i < 8; i++) CHECK_EQ(c.status[i], BH_E_CANCELLED);
    bh_compile_options more = stand_in_options();
    CHECK_EQ(compile_from("there is room again", &more), BH_CACHE_MISS);
}

TEST(closing_a_device_lets_a_compile_finish) {
    bh_device device = open_ready();
    bh_module module;
    bh_ticket ticket = send_compile(device, "SLOW=300", &module);
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_wait(ticket, 0));
}

TEST(a_device_that_stops_answers_its_compiles) {
    stand_in_options();
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    bh_device device = open_device_with(&options);
    bh_module module;
    bh_ticket ticket = send_compile(device, "HANG", &module);
    wait_runs(1);
    for (unsigned i = 0; i < 2; i++) {
        wait_generation(device, i + 1);
        REQUIRE(kill(health_of(device).worker_pid, SIGKILL) == 0);
    }
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_STOPPED);
    CHECK_OK(bh_device_close(device));
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_STOPPED);
}

TEST(a_lost_worker_does_not_touch_a_compile) {
    stand_in_options();
    rig r = rig_open(0);
    bh_module module;
    bh_ticket ticket = send_compile(r.device, "SLOW=300", &module);
    wait_runs(1);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_OK(bh_kernel_get(module, "k0", &(bh_kernel){0}));
    CHECK_OK(bh_device_close(r.device));
}

/* Everything at once: compiles, joins, cancels and closes by many threads. */
static void stir(void *context, unsigned index) {
    rng r = rng_seeded(index + 1);
    (void)context;
    for (unsigned round = 0; round < 3; round++) {
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        options.close_timeout_ns = (1 + rng_below(&r, 60)) * MS;
        bh_device device = open_device_with(&options);
        bh_ticket tickets[10];
        bh_module modules[10];
        for (unsigned i = 0; i < 10; i++) {
            char text[64];
            test_path(text, sizeof text, "SLOW=%u number %u%s", rng_below(&r, 4) * 10,
                      rng_below(&r, 6), rng_below(&r, 5) ? "" : " FAIL");
            tickets[i] = send_compile(device, text, &modules[i]);
            if (rng_below(&r, 3) == 0) {
                bh_status status = bh_cancel(tickets[rng_below(&r, i + 1)]);
                CHECK(status == BH_OK || status == BH_E_INVALID || status == BH_E_BUSY);
            }
        }
        if (rng_below(&r, 2)) sleep_ms(rng_below(&r, 50));
        CHECK_OK(bh_device_close(device));
        for (unsigned i = 0; i < 10; i++) {
            bh_status status = bh_wait(tickets[i], 0);
            CHECK(status == BH_OK || status == BH_E_COMPILE || status == BH_E_CANCELLED);
        }
    }
}

TEST_TIMEOUT(compiles_cancels_and_closes_by_many_threads, 60) {
    stand_in_options();
    run_threads(6, stir, NULL);
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from("and it still works", &options), BH_CACHE_MISS);
}

/* ---- fork ---- */

TEST(a_child_forked_between_compiles_compiles_too) {
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from("before", &options), BH_CACHE_MISS);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        bool good = compile_from("before", &options) == BH_CACHE_MEMORY &&
                    compile_from("after", &options) == BH_CACHE_MISS;
        _exit(good ? 0 : 1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) continue;
    CHECK_EQ(status, 0);
}

static void *compile_slowly(void *context) {
    compile_from("SLOW=500", context);
    return NULL;
}

TEST(a_child_forked_during_a_compile_is_refused) {
    bh_compile_options options = stand_in_options();
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, compile_slowly, &options) == 0);
    wait_runs(1);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        bh_binary binary;
        _exit(bh_compile("anything", &options, &binary) == BH_E_STOPPED ? 0 : 1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0) continue;
    CHECK_EQ(status, 0);
    pthread_join(thread, NULL);
}
