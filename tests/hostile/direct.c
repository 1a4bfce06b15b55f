/* SPDX-License-Identifier: Apache-2.0 */
/* One hostility each, of the worker in tests/hostile/worker/, where a seed would meet it by chance.
 */
#include <fcntl.h>
#include <signal.h>

#include "../support/support.h"

/* A device whose first `workers` workers know this hostility alone, and the later ones none. */
static bh_device_options surrounded(const char *hostility, uint32_t workers) {
    static char folder[600], log[600];
    char number[20];
    if (strcmp(test_device(), "cpu") != 0) SKIP("the hostile worker has the CPU device");
    test_path(folder, sizeof folder, "%s/tests/hostile", test_build_dir());
    test_path(log, sizeof log, "%s/log-%s", test_tmp_dir(), hostility);
    close(open(log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600));
    snprintf(number, sizeof number, "%u", workers);
    setenv("BULKHEAD_HOSTILE_LOG", log, 1);
    setenv("BULKHEAD_HOSTILE_ONLY", hostility, 1);
    setenv("BULKHEAD_HOSTILE_WORKERS", number, 1);
    setenv("BULKHEAD_HOSTILE_SEED", "1", 1);
    setenv("BULKHEAD_SANDBOX", "off", 1); /* with it, most of this cannot even be tried */
    setenv("TSAN_OPTIONS", "report_bugs=0",
           1); /* of workers: they race with themselves on purpose */
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY | BH_DEVICE_NO_RESTART_LIMIT);
    options.worker_dir = folder;
    options.stuck_timeout_ns = 200 * MS * test_time_scale();
    options.close_timeout_ns = 200 * MS;
    return options;
}

static bh_device open_surrounded(const char *hostility, uint32_t workers) {
    bh_device_options options = surrounded(hostility, workers);
    bh_device device;
    REQUIRE_OK(bh_device_open(&options, &device));
    return device;
}

static void check_serves(bh_device device) {
    bh_buffer buffer = words_counting(device, 1000, 5);
    CHECK(words_count(buffer, 1000, 5));
    CHECK_OK(bh_buffer_release(buffer));
}

TEST(a_worker_that_is_ready_twice_is_replaced) {
    bh_device_options options = surrounded("ready_twice", 1);
    bh_device device;
    uint64_t begun = now_ns();
    bh_status status = bh_device_open(&options, &device);
    CHECK_LT(now_ns() - begun, 5000 * MS * test_time_scale());
    CHECK_STATUS(status, BH_E_INTERNAL);
}

/* With such a trait its memory would not be checked, or its orders not be timed. */
TEST(a_worker_that_states_traits_of_another_kind_is_not_used) {
    bh_device_options options = surrounded("other_traits", 1);
    bh_device device;
    CHECK_STATUS(bh_device_open(&options, &device), BH_E_NO_DEVICE);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "states the traits 0x");
    REQUIRE_OK(bh_device_open(&options, &device));
    check_serves(device);
    CHECK_OK(bh_device_close(device));
}

/* Its reason has a status that is none, and texts without an end. */
TEST(a_worker_that_refuses_to_start_is_quoted_with_care) {
    bh_device_options options = surrounded("refuses_to_boot", 1);
    bh_device device;
    bh_status status = bh_device_open(&options, &device);
    CHECK_GT(status, BH_OK);
    CHECK_LE(status, BH_E_INTERNAL);
}

/* What it had begun is not begun again, as it would be if it had never been up. */
TEST(a_worker_that_refuses_to_start_while_it_works_is_lost) {
    bh_device_options options = surrounded("refused_late", 1);
    bh_device device;
    bh_status status = bh_device_open(&options, &device);
    if (status == BH_E_INTERNAL) return; /* on a busy machine it speaks before the device is open */
    REQUIRE_OK(status);
    wait_generation(device, 2);
    CHECK_GE(health_of(device).losses, 1);
    check_serves(device);
    CHECK_OK(bh_device_close(device));
}

TEST(waits_time_out_though_the_worker_wakes_them_without_end) {
    bh_device device = open_surrounded("wakes_for_ever", 1);
    rig r = {device, load_module(device, ptx_basic)};
    bh_ticket ticket;
    bh_buffer flag = flag_alloc(device), x = words_filled(device, 1, 0);
    REQUIRE_OK(bh_launch(rig_kernel(&r, "endless"), BH_GRID(1, 1),
                         BH_ARGS(address_of(flag), BH_INOUT(x)), NULL, &ticket));
    for (int i = 0; i < 20; i++) {
        uint64_t begun = now_ns();
        CHECK_STATUS(bh_wait(ticket, 20 * MS), BH_E_TIMEOUT);
        CHECK_LT(now_ns() - begun, 1000 * MS * test_time_scale());
    }
    CHECK_OK(bh_device_close(device));
}

TEST(waits_end_though_the_worker_wakes_nobody) {
    bh_device device = open_surrounded("wakes_nobody", 1);
    for (int i = 0; i < 20; i++) check_serves(device);
    CHECK_EQ(health_of(device).generation, 1);
    CHECK_OK(bh_device_close(device));
}

static void note_done(void *context, bh_ticket ticket, bh_status status) {
    (void)ticket;
    (void)status;
    atomic_fetch_add((_Atomic int *)context, 1);
}

/* Callbacks run in time, whatever the worker does to the bell that it is to ring. */
static void check_callbacks(const char *hostility) {
    bh_device device = open_surrounded(hostility, 1);
    rig r = {device, load_module(device, ptx_basic)};
    static _Atomic int ran;
    bh_buffer x = words_filled(device, 64, 0);
    sleep_ms(50);
    for (int i = 1; i <= 30; i++) {
        bh_ticket ticket =
            submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), NULL);
        REQUIRE_OK(bh_on_done(ticket, note_done, &ran));
        uint64_t begun = now_ns();
        while (atomic_load(&ran) < i && now_ns() - begun < 3000 * MS * test_time_scale())
            sleep_ms(1);
        REQUIRE(atomic_load(&ran) == i);
    }
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_OK(bh_device_close(device));
}

TEST(callbacks_run_though_the_worker_rings_no_bell) {
    check_callbacks("bell_silent");
}

TEST(callbacks_run_though_the_worker_blocks_the_bell) {
    check_callbacks("bell_blocks");
}

TEST(callbacks_run_though_the_bell_never_stops) {
    check_callbacks("bell_rings");
}

/* It never takes an order off its socket, and answers all of them. */
TEST(a_worker_that_answers_what_it_does_not_take_stops_nobody) {
    bh_device device = open_surrounded("answers_unheard", 1);
    for (int i = 0; i < 400 && health_of(device).generation == 1; i++) {
        void *memory;
        if (bh_host_alloc(device, 4096, &memory) == BH_OK) CHECK_OK(bh_host_free(device, memory));
    }
    wait_generation(device, 2);
    check_serves(device);
    CHECK_OK(bh_device_close(device));
}

static uint64_t peak_kib(void) {
    char line[200];
    unsigned long long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    REQUIRE(file != NULL);
    while (fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "VmHWM: %llu", &kib) == 1) break;
    fclose(file);
    return kib;
}

/* A gigabyte that says what 20 kilobytes hold. */
TEST(a_module_is_not_described_by_more_than_it_can_hold) {
    bh_device device = open_surrounded("blob_huge", 1);
    bh_module module;
    for (int i = 0; i < 5; i++) (void)bh_module_load(device, ptx_basic, strlen(ptx_basic), &module);
    CHECK_LT(peak_kib(), 300 * 1024 * test_time_scale());
    CHECK_OK(bh_device_close(device));
}

/* Nor by the same bytes for each of a thousand kernels, which would all be looked at. */
TEST(a_module_whose_kernels_share_what_they_have_is_refused) {
    bh_device device = open_surrounded("blob_repeated", 1);
    bh_kernel kernel;
    bh_status status = BH_OK;
    for (int i = 0; i < 200 && status == BH_OK; i++) {
        bh_module module;
        status = bh_module_load(device, ptx_basic, strlen(ptx_basic), &module);
        if (status == BH_OK) REQUIRE_OK(bh_kernel_get(module, "copy_words", &kernel));
        sleep_ms(10);
    }
    CHECK_STATUS(status, BH_E_INTERNAL);
    check_serves(device);
    CHECK_OK(bh_device_close(device));
}

/* Waits until the hostile worker has had time for its work, and ends it. */
static void let_it_rage(bh_device device) {
    sleep_ms(300);
    int pid = health_of(device).worker_pid;
    if (health_of(device).generation == 1 && pid > 0) kill(pid, SIGKILL);
    wait_generation(device, 2);
}

/* What the successor is told is what the program said, not what the lost one made of it. */
static void check_told_right(const char *hostility) {
    bh_device device = open_surrounded(hostility, 1);
    rig r = {device, load_module(device, ptx_basic)};
    bh_buffer x = words_filled(device, 64, 1);
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(device, NULL, &sequence));
    REQUIRE_OK(bh_sequence_launch(sequence, rig_kernel(&r, "churn"), BH_GRID(64, 64),
                                  BH_ARGS(BH_INOUT(x), 3u, 64u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    let_it_rage(device);
    for (uint32_t i = 0; i < 64; i++) word_write(x, i, 10);
    CHECK_OK(run_now(rig_kernel(&r, "churn"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 3u, 64u)));
    CHECK(words_are(x, 64, churn_word(10, 3)));
    bh_ticket ticket;
    CHECK_OK(bh_sequence_submit(sequence, NULL, &ticket));
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK(words_are(x, 64, churn_word(churn_word(10, 3), 3)));
    CHECK_OK(bh_device_close(device));
}

TEST(images_and_sequences_cannot_be_written_over) {
    check_told_right("given_memory");
}

TEST(images_and_sequences_cannot_be_changed_as_files) {
    check_told_right("given_files");
}

/* The successor runs the code that the compiler made. */
static void check_code_is_right(const char *hostility) {
    bh_device_options options = surrounded(hostility, 1);
    bh_device device;
    options.executor = BH_EXECUTE_JIT;
    REQUIRE_OK(bh_device_open(&options, &device));
    bh_kernel kernel = get_kernel(load_module(device, ptx_factor), "scale_by");
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(kernel, &info));
    if (info.executor != BH_EXECUTOR_JIT && strstr(info.executor_note, "no native code"))
        SKIP("%s", info.executor_note);
    CHECK_EQ(info.executor, BH_EXECUTOR_JIT);
    let_it_rage(device);
    bh_buffer x = words_filled(device, 64, 7);
    CHECK_OK(run_now(kernel, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u)));
    CHECK(words_are(x, 64, 0));
    CHECK_EQ(health_of(device).losses, 1);
    CHECK_OK(bh_device_close(device));
}

TEST(native_code_cannot_be_written_over) {
    check_code_is_right("given_memory");
}

TEST(native_code_cannot_be_changed_as_a_file) {
    check_code_is_right("given_files");
}

/* Every worker ends when it gets native code: nobody gets it in the end, and the device goes on. */
static void check_code_is_given_up(const char *hostility, bool standby) {
    bh_device_options options = surrounded(hostility, 1000);
    bh_device device;
    options.executor = BH_EXECUTE_JIT;
    options.flags = standby ? 0 : BH_DEVICE_NO_STANDBY;
    REQUIRE_OK(bh_device_open(&options, &device));
    if (standby) wait_standby(device);
    bh_kernel kernel = get_kernel(load_module(device, ptx_factor), "scale_by");
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(kernel, &info));
    if (strstr(info.executor_note, "no native code")) SKIP("%s", info.executor_note);
    CHECK_EQ(info.executor, BH_EXECUTOR_INTERPRETER);
    CHECK_STR_CONTAINS(info.executor_note, "MODULE_NATIVE");
    bh_buffer x = words_filled(device, 64, 7);
    CHECK_OK(run_now(kernel, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u)));
    kill_worker(device, SIGKILL);
    CHECK_OK(run_now(kernel, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u)));
    CHECK(words_are(x, 64, 0));
    CHECK_EQ(health_of(device).losses, 4);
    CHECK_OK(bh_device_close(device));
}

TEST(native_code_that_crashes_workers_is_given_up) {
    check_code_is_given_up("crashes_at_code", false);
}

TEST(native_code_that_crashes_standbys_is_given_up) {
    check_code_is_given_up("crashes_at_code", true);
}

TEST(native_code_at_which_workers_exit_is_given_up) {
    check_code_is_given_up("exits_at_code", false);
}

static void check_plain(const char *text) {
    CHECK(text[0]);
    for (; *text; text++) CHECK((unsigned char)*text >= ' ');
}

/* What the worker says of a launch that it ends with this status. */
static bh_error words_of_launch(bh_device device, bh_status status) {
    rig r = {device, load_module(device, ptx_basic)};
    bh_buffer x = words_filled(device, 64, 0);
    bh_ticket ticket;
    bh_error error;
    REQUIRE_OK(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u),
                         NULL, &ticket));
    CHECK_STATUS(bh_wait(ticket, LONG_NS), status);
    CHECK_STATUS(bh_ticket_error(ticket, &error), status);
    check_plain(error.message);
    return error;
}

/* Its words may be shown on a terminal, which would obey escape sequences. */
TEST(what_a_worker_says_has_no_control_characters) {
    bh_device device = open_surrounded("speaks_to_terminals", 1);
    bh_error error = words_of_launch(device, BH_E_LAUNCH);
    check_plain(error.fix);
    check_plain(error.device_name);
    CHECK_OK(bh_device_close(device));
}

static void check_printed(void *context, const bh_event *event) {
    (void)context;
    for (size_t i = 0; i + 1 < event->length; i++)
        CHECK(event->text[i] != '\xc2' || event->text[i + 1] != '\x9b');
}

TEST(words_that_a_worker_says_in_parts_have_no_control_characters) {
    bh_device device = open_surrounded("speaks_in_parts", 1);
    bh_watch watch = watch_for(device, BH_EVENT_PRINT, check_printed, NULL);
    bh_error error = words_of_launch(device, BH_E_FAULT);
    CHECK_STR_CONTAINS(error.message, "a fault: ????");
    CHECK_OK(bh_watch_release(watch)); /* it has been told all */
    CHECK_OK(bh_device_close(device));
}

/* Memory that a worker made and that is not what it should be is not handed on. */
static void check_memory_is_good(const char *hostility) {
    bh_device device = open_surrounded(hostility, 1);
    bh_buffer x;
    if (bh_buffer_alloc(device, BH_U32, 1000, NULL, &x) != BH_OK) x.id = 0;
    sleep_ms(20);
    int pid = health_of(device).worker_pid;
    if (health_of(device).generation == 1 && pid > 0) kill(pid, SIGKILL);
    wait_generation(device, 2);
    check_serves(device);
    if (x.id) CHECK_OK(bh_buffer_accept(x));
    if (x.id) word_write(x, 999, 7);
    if (x.id) CHECK_EQ(word_read(x, 999), 7);
    CHECK_LE(health_of(device).losses, 3);
    CHECK_OK(bh_device_close(device));
}

TEST(memory_that_is_too_small_is_not_handed_on) {
    check_memory_is_good("chunk_too_small");
}

TEST(memory_that_cannot_be_written_is_not_handed_on) {
    check_memory_is_good("chunk_sealed");
}

TEST(invalid_memory_is_not_passed_on) {
    check_memory_is_good("chunk_odd");
}

/* What one worker says its device is holds no longer than it does. */
static void check_info(const char *hostility) {
    bh_device device = open_surrounded(hostility, 1);
    let_it_rage(device);
    bh_device_info info = BH_INIT(info);
    CHECK_OK(bh_device_get_info(device, &info));
    CHECK_STR_EQ(info.kind, "cpu");
    CHECK_EQ(info.warp_size, 32);
    bh_memory_info memory = BH_INIT(memory);
    CHECK_OK(bh_memory_get_info(device, &memory));
    CHECK_EQ(memory.limit, info.memory_total);
    check_serves(device);
    CHECK_OK(bh_device_close(device));
}

TEST(a_device_of_nothing_is_forgotten_with_its_worker) {
    check_info("info_of_nothing");
}

TEST(a_device_of_everything_is_forgotten_with_its_worker) {
    check_info("info_of_everything");
}

/* A standby that lies changes nothing for the worker that runs. */
TEST(a_standby_does_not_say_what_the_device_is) {
    bh_device_options options = surrounded("info_of_nothing", 2);
    options.flags &= ~(uint32_t)BH_DEVICE_NO_STANDBY;
    setenv("BULKHEAD_HOSTILE_FROM", "1", 1); /* the first one is honest */
    bh_device device;
    REQUIRE_OK(bh_device_open(&options, &device));
    wait_standby(device);
    bh_device_info info = BH_INIT(info);
    CHECK_OK(bh_device_get_info(device, &info));
    CHECK_EQ(info.warp_size, 32);
    rig r = {device, load_module(device, ptx_basic)};
    check_device_works(&r);
    CHECK_OK(bh_device_close(device));
}

/* Chunks by this measure could be mapped by no honest worker. */
TEST(a_measure_of_memory_that_cannot_be_is_refused) {
    bh_device_options options = surrounded("small_granularity", 1);
    bh_device device;
    CHECK_STATUS(bh_device_open(&options, &device), BH_E_NO_DEVICE);
}

TEST(a_standby_does_not_say_how_memory_is_measured) {
    bh_device_options options = surrounded("large_granularity", 2);
    options.flags &= ~(uint32_t)BH_DEVICE_NO_STANDBY;
    setenv("BULKHEAD_HOSTILE_FROM", "1", 1); /* the first one is honest */
    bh_device device;
    REQUIRE_OK(bh_device_open(&options, &device));
    wait_standby(device);
    bh_buffer x = words_alloc(device, 5 << 18);
    bh_memory_info memory = BH_INIT(memory);
    CHECK_OK(bh_memory_get_info(device, &memory));
    CHECK_LT(memory.bytes_reserved, 64 << 20);
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_device_close(device));
}

TEST(memory_measured_by_a_lost_worker_serves_the_next) {
    bh_device device = open_surrounded("large_granularity", 1);
    bh_buffer x = words_filled(device, 1000, 3);
    let_it_rage(device);
    check_serves(device);
    CHECK_OK(bh_buffer_write(x, 0, &(uint32_t){7}, 4));
    CHECK_EQ(word_read(x, 0), 7);
    CHECK_OK(bh_device_close(device));
}

/* Sound in itself, and not what the image says: the worker lies about most modules so. Whoever
 * loads them next notices, before it runs anything with arguments that were placed by it. */
TEST(a_module_that_a_worker_lied_about_is_not_used_by_the_next_one) {
    enum { MODULES = 16 };
    bh_device device = open_surrounded("blob_swapped", 1);
    bh_module modules[MODULES];
    bh_kernel copies[MODULES];
    for (int i = 0; i < MODULES; i++) {
        modules[i] = load_module(device, ptx_basic);
        copies[i] = get_kernel(modules[i], "copy_words");
    }
    bh_buffer from = words_counting(device, 1000, 5);
    kill_worker(device, SIGKILL);
    wait_generation(device, 2);
    bh_shape shape = BH_GRID(1000, 128);
    int refused = 0;
    for (int i = 0; i < MODULES; i++) {
        bh_buffer to = words_filled(device, 1000, 0);
        bh_status status = run_now(copies[i], shape, BH_ARGS(BH_IN(from), BH_OUT(to), 1000u));
        if (status == BH_OK) {
            CHECK(words_count(to, 1000, 5));
        } else {
            refused++;
            CHECK_STATUS(status, BH_E_LOAD);
            CHECK_STATUS(bh_module_accept(modules[i]), BH_E_LOAD);
        }
        CHECK(words_count(from, 1000, 5));
        CHECK_OK(bh_buffer_release(to));
    }
    CHECK_GT(refused, 0);
    /* Loaded again, by an honest worker, it is good. */
    bh_buffer to = words_filled(device, 1000, 0);
    bh_kernel again = get_kernel(load_module(device, ptx_basic), "copy_words");
    CHECK_OK(run_now(again, shape, BH_ARGS(BH_IN(from), BH_OUT(to), 1000u)));
    CHECK(words_count(to, 1000, 5));
    CHECK_OK(bh_device_close(device));
}
