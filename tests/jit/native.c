/* SPDX-License-Identifier: Apache-2.0 */
/* Native code beside the interpreter: when it comes, where it is kept, what happens if LLVM
 * fails. */
#include "support/native.h"

TEST(the_interpreter_runs_until_native_code_is_there) {
    bh_device_options options = options_for(BH_EXECUTE_AUTO);
    rig r = rig_open_with(&options);
    bh_kernel iota = rig_kernel(&r, "iota");
    CHECK_EQ(info_of(iota).executor, BH_EXECUTOR_INTERPRETER);
    check_iota(&r, 3);
    CHECK_EQ(counters_of(r.device).launches_interpreted, 1);
    need_native(iota);
    check_iota(&r, 5);
    bh_device_counters counters = counters_of(r.device);
    CHECK_EQ(counters.launches_interpreted, 1);
    CHECK_EQ(counters.kernels_compiled, 1);
    CHECK(info_of(iota).native_instructions > 0);
    CHECK_EQ(info_of(rig_kernel(&r, "mix")).executor, BH_EXECUTOR_INTERPRETER);
}

TEST(a_load_waits_for_native_code_if_the_jit_is_asked_for) {
    bh_device_options options = options_for(BH_EXECUTE_JIT);
    rig r = rig_open_with(&options);
    need_native(rig_kernel(&r, "iota"));
    check_iota(&r, 7);
    CHECK_EQ(counters_of(r.device).launches_interpreted, 0);
}

TEST(the_interpreter_alone_compiles_nothing) {
    bh_device_options options = options_for(BH_EXECUTE_INTERPRETER);
    rig r = rig_open_with(&options);
    check_iota(&r, 1);
    sleep_ms(50);
    CHECK_EQ(info_of(rig_kernel(&r, "iota")).executor, BH_EXECUTOR_INTERPRETER);
    CHECK_EQ(counters_of(r.device).kernels_compiled, 0);
    CHECK_EQ(counters_of(r.device).launches_interpreted, 0);
}

TEST(code_comes_from_the_cache_the_second_time) {
    bh_cache_info cache = BH_INIT(cache);
    for (int round = 0; round < 2; round++) {
        bh_device_options options = options_for(BH_EXECUTE_AUTO);
        rig r = rig_open_with(&options);
        check_iota(&r, 9);
        need_native(rig_kernel(&r, "iota"));
        check_iota(&r, 11);
        REQUIRE_OK(bh_device_close(r.device));
    }
    REQUIRE_OK(bh_cache_get_info(NULL, &cache));
    CHECK_EQ(cache.compiles, 1);
    CHECK_EQ(cache.memory_hits, 1);
    CHECK_EQ(cache.entries, 1);
}

TEST(a_successor_has_the_code_without_compiling) {
    bh_device_options options = options_for(BH_EXECUTE_AUTO);
    rig r = rig_open_with(&options);
    check_iota(&r, 1);
    need_native(rig_kernel(&r, "iota"));
    bh_ticket ticket = submit(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), NULL);
    CHECK_EQ(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    check_iota(&r, 13);
    CHECK_EQ(info_of(rig_kernel(&r, "iota")).executor, BH_EXECUTOR_JIT);
}

/* Each of `count` registers is the sum of the two before, then all are used in turn, the last one
 * first: none can be forgotten in between. */
static char *many_alive(unsigned count) {
    size_t room = 512 + count * 120, at = 0;
    char *text = malloc(room);
    REQUIRE(text != NULL);
#define ADD(...) at += (size_t)snprintf(text + at, room - at, __VA_ARGS__)
    ADD(".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry alive(.param .u64 p) {\n.reg .b64 %%r<%u>; .reg .b64 %%a, %%p;\n"
        ".reg .b32 %%t;\nld.param.u64 %%p, [p]; mov.u32 %%t, %%tid.x;\n"
        "mad.wide.u32 %%p, %%t, 8, %%p; ld.global.u64 %%r0, [%%p]; not.b64 %%r1, %%r0;\n"
        "mov.u64 %%a, 0;\n",
        count);
    for (unsigned i = 2; i < count; i++) ADD("add.u64 %%r%u, %%r%u, %%r%u;\n", i, i - 1, i - 2);
    for (unsigned i = count; i > 0; i--)
        ADD("%s %%a, %%a, %%r%u;\n", i % 2 ? "add.u64" : "xor.b64", i - 1);
    ADD("st.global.u64 [%%p], %%a; ret; }\n");
#undef ADD
    return text;
}

static uint64_t value_of_many(uint64_t x, unsigned count) {
    uint64_t all[1500], a = 0;
    all[0] = x;
    all[1] = ~x;
    for (unsigned i = 2; i < count; i++) all[i] = all[i - 1] + all[i - 2];
    for (unsigned i = count; i > 0; i--) a = i % 2 ? a + all[i - 1] : a ^ all[i - 1];
    return a;
}

static void check_many_alive(bh_device device, bh_kernel kernel, unsigned count) {
    uint64_t words[64];
    bh_buffer x;
    for (uint32_t i = 0; i < 64; i++) words[i] = i * 77 + 1;
    REQUIRE_OK(bh_buffer_alloc(device, BH_U64, 64, NULL, &x));
    REQUIRE_OK(bh_buffer_write(x, 0, words, sizeof words));
    REQUIRE_OK(run_now(kernel, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x))));
    REQUIRE_OK(bh_buffer_read(x, 0, words, sizeof words));
    for (uint32_t i = 0; i < 64; i++) CHECK_EQ(words[i], value_of_many(i * 77 + 1, count));
    CHECK_OK(bh_buffer_release(x));
}

/* The stack of a lane's thread has room for the code's and for the handlers that it calls: 1,100
 * registers of 256 bytes are more than the half that the code may take. */
TEST_TIMEOUT(code_that_needs_too_much_stack_is_not_taken, 120) {
    static const unsigned counts[] = {50, 150, 1100, 1400};
    bh_device_options options = options_for(BH_EXECUTE_JIT);
    bh_device device;
    REQUIRE_OK(bh_device_open(&options, &device));
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        char *text = many_alive(counts[n]);
        bh_kernel kernel = get_kernel(load_module(device, text), "alive");
        free(text);
        bh_kernel_info info = info_of(kernel);
        if (counts[n] < 1100)
            need_native(kernel);
        else
            CHECK_STR_CONTAINS(info.executor_note, "bytes of stack at once; 262144 is the limit");
        CHECK(counts[n] < 1100 || info.executor != BH_EXECUTOR_JIT);
        check_many_alive(device, kernel, counts[n]);
    }
    REQUIRE_OK(bh_device_close(device));
}

static rig open_with_compiler(const char *script, uint32_t executor) {
    if (!getenv("BULKHEAD_BUILD_DIR")) SKIP("BULKHEAD_BUILD_DIR is not set");
    bh_device_options options = options_for(executor);
    options.worker_dir = folder_with_script(script);
    return rig_open_with(&options);
}

TEST(a_compiler_that_crashes_leaves_kernels_to_the_interpreter) {
    rig r = open_with_compiler("#!/bin/sh\nkill -SEGV $$\n", BH_EXECUTE_AUTO);
    check_iota(&r, 17);
    bh_kernel_info info = settled(rig_kernel(&r, "iota"));
    CHECK_EQ(info.executor, BH_EXECUTOR_INTERPRETER);
    CHECK(strstr(info.executor_note, "killed by signal 11"));
    check_iota(&r, 19);
    CHECK_EQ(counters_of(r.device).losses, 0);
    CHECK_EQ(counters_of(r.device).launches_interpreted, 2);
}

TEST(a_compiler_that_answers_nonsense_is_not_believed) {
    rig r = open_with_compiler("#!/bin/sh\necho nonsense >&4\n", BH_EXECUTE_JIT);
    bh_kernel_info info = settled(rig_kernel(&r, "iota"));
    CHECK_EQ(info.executor, BH_EXECUTOR_INTERPRETER);
    CHECK(strstr(info.executor_note, "invalid answer"));
    check_iota(&r, 21);
}

TEST(a_compiler_that_hangs_delays_neither_launches_nor_the_end) {
    char script[800], started[600];
    test_path(started, sizeof started, "%s/started", test_tmp_dir());
    snprintf(script, sizeof script, "#!/bin/sh\n: >'%s'\nexec sleep 100\n", started);
    rig r = open_with_compiler(script, BH_EXECUTE_AUTO);
    uint64_t began = now_ns();
    check_iota(&r, 23);
    check_iota(&r, 25);
    while (access(started, F_OK) != 0 && now_ns() - began < 4000 * MS) sleep_ms(1);
    REQUIRE_OK(bh_device_close(r.device));
    CHECK(now_ns() - began < 5000 * MS);
}

TEST(code_is_freed_with_its_module) {
    bh_device_options options = options_for(BH_EXECUTE_JIT);
    rig r = rig_open_with(&options);
    need_native(rig_kernel(&r, "iota"));
    /* Far more than the 64 MiB of a worker if it stayed. */
    for (int i = 0; i < 200; i++) {
        bh_module module = load_module(r.device, ptx_basic);
        CHECK_EQ(info_of(get_kernel(module, "iota")).executor, BH_EXECUTOR_JIT);
        REQUIRE_OK(bh_module_release(module));
    }
    check_iota(&r, 27);
}

/* What is told of the code must not need the module, which may be gone as soon as it is known. */
TEST(modules_are_released_as_soon_as_their_code_is_there) {
    bh_device_options options = options_for(BH_EXECUTE_AUTO);
    rig r = rig_open_with(&options);
    for (int i = 0; i < 100; i++) {
        rig one = {.device = r.device, .module = load_module(r.device, ptx_basic)};
        bh_kernel iota = rig_kernel(&one, "iota");
        check_iota(&one, 1);
        bh_kernel_info info = info_of(iota);
        while (info.executor != BH_EXECUTOR_JIT && !info.executor_note[0]) info = info_of(iota);
        REQUIRE_OK(bh_module_release(one.module));
    }
    CHECK_OK(bh_device_close(r.device));
}

/* The loading module is seen as loaded, by whoever asks, before its load is over. */
static void dawdle(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    if (strstr(text, " loaded by worker")) sleep_ms(200);
}

/* Writes over what this thread has freed. */
static void spoil_freed(void) {
    void *taken[128];
    for (size_t i = 0; i < 128; i++) {
        taken[i] = malloc(16 * (i + 1));
        if (taken[i]) memset(taken[i], 0x5a, 16 * (i + 1));
    }
    for (size_t i = 0; i < 128; i++) free(taken[i]);
}

TEST(a_module_can_be_released_while_its_load_ends) {
    bh_device_options options = options_for(BH_EXECUTE_JIT);
    rig r = rig_open_with(&options);
    REQUIRE_OK(bh_log_set(dawdle, NULL, BH_LOG_INFO));
    for (int i = 0; i < 3; i++) {
        static char text[1 << 16]; /* whose code is in no cache */
        int length = snprintf(text, sizeof text, "// %d\n%s", i, ptx_factor);
        bh_module module;
        bh_ticket ticket;
        bh_status status;
        REQUIRE_OK(bh_submit_load(r.device, text, (size_t)length, &module, &ticket));
        while ((status = bh_module_release(module)) == BH_E_BUSY) sleep_ms(1);
        CHECK_OK(status);
        spoil_freed();
        CHECK_OK(bh_wait(ticket, LONG_NS));
    }
    check_iota(&r, 29);
    CHECK_OK(bh_device_close(r.device));
}

static bh_device open_ones[2];
static _Atomic(int) closed;

static void close_all(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    if (!strstr(text, "native code for module")) return;
    for (int i = 0; i < 2; i++) {
        bh_device device = open_ones[i];
        open_ones[i].id = 0;
        if (device.id && bh_device_close(device) == BH_OK) atomic_fetch_add(&closed, 1);
    }
}

/* The thread that says what became of a compile owes nothing to any of the devices by then. */
TEST(devices_can_be_closed_when_the_log_tells_of_native_code) {
    rig a = open_with_compiler("#!/bin/sh\nsleep 1\nexit 1\n", BH_EXECUTE_AUTO);
    bh_device_options options = options_for(BH_EXECUTE_AUTO);
    char folder[4200];
    snprintf(folder, sizeof folder, "%s/programs-0", getenv("BULKHEAD_CACHE_DIR"));
    options.worker_dir = folder;
    rig b = rig_open_with(&options);
    open_ones[0] = a.device;
    open_ones[1] = b.device;
    REQUIRE_OK(bh_log_set(close_all, NULL, BH_LOG_INFO));
    check_iota(&a, 31);
    check_iota(&b, 31);
    for (uint64_t until = now_ns() + LONG_NS / 2; atomic_load(&closed) < 2 && now_ns() < until;)
        sleep_ms(1);
    CHECK_EQ(atomic_load(&closed), 2);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
}

TEST(an_executor_that_does_not_exist_is_refused) {
    bh_device device;
    bh_device_options options = options_for(4);
    CHECK_EQ(bh_device_open(&options, &device), BH_E_INVALID);
    options.executor = BH_EXECUTE_DEFAULT;
    setenv("BULKHEAD_EXECUTOR", "fast", 1);
    CHECK_EQ(bh_device_open(&options, &device), BH_E_INVALID);
}
