/* SPDX-License-Identifier: Apache-2.0 */
/* Loading modules, asking kernels, module variables, unloading under work; images that are none. */
#include <fcntl.h>
#include <sys/stat.h>

#include "../support/support.h"

TEST(kernels_are_found_by_name_and_number) {
    rig r = rig_open(0);
    enum { KERNELS = 25 };
    bh_kernel kernels[KERNELS + 1] = {0};
    size_t count = 0;
    REQUIRE_OK(bh_module_list_kernels(r.module, NULL, 0, &count));
    CHECK_EQ(count, KERNELS);
    count = 0;
    REQUIRE_OK(bh_module_list_kernels(r.module, kernels, 3, &count));
    CHECK_EQ(count, KERNELS);
    CHECK_EQ(kernels[3].id, 0);
    REQUIRE_OK(bh_module_list_kernels(r.module, kernels, KERNELS + 1, &count));
    CHECK_EQ(kernels[KERNELS].id, 0);
    bool saxpy = false;
    for (size_t i = 0; i < count; i++) {
        bh_kernel kernel = kernels[i], by_name = {0};
        bh_kernel_info info = BH_INIT(info);
        REQUIRE_OK(bh_kernel_get_info(kernel, &info));
        CHECK(info.name[0] != '\0');
        REQUIRE_OK(bh_kernel_get(r.module, info.name, &by_name));
        CHECK_EQ(kernel.id, by_name.id);
        saxpy = saxpy || strcmp(info.name, "saxpy") == 0;
    }
    CHECK(saxpy);
    bh_kernel none = {0};
    CHECK_REFUSED(bh_kernel_get(r.module, "no_such_kernel", &none), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get(r.module, "", &none), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get(r.module, "saxp", &none), BH_E_NOT_FOUND);
    CHECK_EQ(none.id, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(kernels_know_their_parameters) {
    rig r = rig_open(0);
    bh_kernel_info info = BH_INIT(info);
    bh_kernel scalars = rig_kernel(&r, "scalars");
    static const uint32_t offsets[] = {0, 2, 4, 8, 16, 24, 32}, sizes[] = {1, 2, 4, 8, 4, 8, 8};
    REQUIRE_OK(bh_kernel_get_info(scalars, &info));
    CHECK_STR_EQ(info.name, "scalars");
    CHECK_EQ(info.param_count, 7);
    CHECK_EQ(info.param_bytes, 40);
    CHECK_EQ(info.static_shared, 0);
    CHECK_EQ(info.quarantined, 0);
    CHECK_EQ(info.faults, 0);
    CHECK_GE(info.max_threads, 256);
    for (uint32_t i = 0; i < 7; i++) {
        bh_param_info param = BH_INIT(param);
        REQUIRE_OK(bh_kernel_get_param(scalars, i, &param));
        CHECK_EQ(param.offset, offsets[i]);
        CHECK_EQ(param.bytes, sizes[i]);
    }
    bh_param_info param = BH_INIT(param);
    CHECK_REFUSED(bh_kernel_get_param(scalars, 7, &param), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_kernel_get_param(scalars, UINT32_MAX, &param), BH_E_NOT_FOUND);
    REQUIRE_OK(bh_kernel_get_info(rig_kernel(&r, "trap_now"), &info));
    CHECK_EQ(info.param_count, 0);
    CHECK_EQ(info.param_bytes, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(block_directives_are_kept) {
    static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                              ".visible .entry fixed()\n.reqntid 32, 4, 1\n{\n  ret;\n}\n"
                              ".visible .entry bounded()\n.maxntid 64, 1, 1\n{\n  ret;\n}\n";
    bh_device device = open_device();
    bh_module module = load_module(device, ptx);
    bh_kernel fixed = get_kernel(module, "fixed"), bounded = get_kernel(module, "bounded");
    bh_kernel_info info = BH_INIT(info);
    REQUIRE_OK(bh_kernel_get_info(fixed, &info));
    CHECK_EQ(info.required_block[0], 32);
    CHECK_EQ(info.required_block[1], 4);
    CHECK_EQ(info.required_block[2], 1);
    REQUIRE_OK(bh_kernel_get_info(bounded, &info));
    CHECK_EQ(info.required_block[0], 0);
    CHECK_EQ(info.max_threads, 64);
    CHECK_OK(run_now(fixed, BH_SHAPE(2, 1, 1, 32, 4, 1), BH_NO_ARGS));
    CHECK_REFUSED(bh_launch(fixed, BH_SHAPE(2, 1, 1, 128, 1, 1), BH_NO_ARGS, NULL, NULL),
                  BH_E_LAUNCH);
    CHECK_OK(run_now(bounded, BH_SHAPE(2, 1, 1, 64, 1, 1), BH_NO_ARGS));
    CHECK_REFUSED(bh_launch(bounded, BH_SHAPE(2, 1, 1, 65, 1, 1), BH_NO_ARGS, NULL, NULL),
                  BH_E_LAUNCH);
    CHECK_OK(bh_device_close(device));
}

static void check_show(bh_module module, bh_device device, const uint32_t expected[6]) {
    bh_buffer out = words_filled(device, 6, 0xffffffff);
    uint32_t got[6];
    CHECK_OK(run_now(get_kernel(module, "show"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    REQUIRE_OK(bh_buffer_read(out, 0, got, sizeof got));
    CHECK_MEM_EQ(got, expected, sizeof got);
    CHECK_OK(bh_buffer_release(out));
}

TEST(variables_start_with_their_initialisers) {
    bh_device device = open_device();
    check_show(load_module(device, ptx_globals), device, (uint32_t[]){0, 10, 20, 30, 40, 7});
    CHECK_OK(bh_device_close(device));
}

TEST(variables_are_written_and_read) {
    bh_device device = open_device();
    bh_module module = load_module(device, ptx_globals);
    bh_buffer out = words_alloc(device, 1);
    uint32_t word = 100, table[4] = {0};
    uint64_t size = 0;
    CHECK_OK(bh_module_global_size(module, "counter", &size));
    CHECK_EQ(size, 4);
    CHECK_OK(bh_module_global_size(module, "table", &size));
    CHECK_EQ(size, 16);
    CHECK_OK(bh_module_global_size(module, "scale", &size));
    CHECK_EQ(size, 4);
    CHECK_OK(bh_module_global_write(module, "counter", 0, &word, 4));
    CHECK_OK(run_now(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
    CHECK_EQ(word_read(out, 0), 101);
    CHECK_OK(bh_module_global_read(module, "counter", 0, &word, 4));
    CHECK_EQ(word, 101);
    word = 99;
    CHECK_OK(bh_module_global_write(module, "table", 8, &word, 4));
    CHECK_OK(bh_module_global_read(module, "table", 0, table, sizeof table));
    CHECK_EQ(table[0], 10);
    CHECK_EQ(table[1], 20);
    CHECK_EQ(table[2], 99);
    CHECK_EQ(table[3], 40);
    CHECK_OK(bh_module_global_read(module, "scale", 0, &word, 4));
    CHECK_EQ(word, 7);
    word = 8; /* a constant can be set from outside */
    CHECK_OK(bh_module_global_write(module, "scale", 0, &word, 4));
    check_show(module, device, (uint32_t[]){101, 10, 20, 99, 40, 8});
    CHECK_OK(bh_device_close(device));
}

TEST(variables_cannot_be_reached_past_their_ends) {
    bh_device device = open_device();
    bh_module module = load_module(device, ptx_globals);
    uint32_t words[8] = {0};
    uint64_t size = 0;
    CHECK_REFUSED(bh_module_global_write(module, "counter", 0, words, 8), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_write(module, "counter", 4, words, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(module, "table", 12, words, 8), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(module, "table", UINT64_MAX, words, 8), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(module, "table", 0, words, UINT64_MAX), BH_E_INVALID);
    CHECK_REFUSED(bh_module_global_read(module, "nobody", 0, words, 4), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_module_global_write(module, "", 0, words, 4), BH_E_NOT_FOUND);
    CHECK_REFUSED(bh_module_global_size(module, "nobody", &size), BH_E_NOT_FOUND);
    check_show(module, device, (uint32_t[]){0, 10, 20, 30, 40, 7});
    CHECK_OK(bh_device_close(device));
}

TEST(each_load_has_variables_of_its_own) {
    bh_device device = open_device();
    bh_module a = load_module(device, ptx_globals), b = load_module(device, ptx_globals);
    uint32_t word = 55;
    CHECK_OK(bh_module_global_write(a, "counter", 0, &word, 4));
    check_show(a, device, (uint32_t[]){55, 10, 20, 30, 40, 7});
    check_show(b, device, (uint32_t[]){0, 10, 20, 30, 40, 7});
    CHECK_OK(bh_device_close(device));
}

TEST(variables_follow_the_order_of_work) {
    bh_device device = open_device();
    bh_module module = load_module(device, ptx_globals);
    bh_kernel bump = get_kernel(module, "bump");
    bh_buffer out = words_alloc(device, 1);
    for (uint32_t i = 0; i < 30; i++) {
        uint32_t value = i * 1000, got = 0;
        CHECK_OK(bh_module_global_write(module, "counter", 0, &value, 4));
        for (int k = 0; k < 5; k++) submit(bump, BH_GRID(1, 1), BH_ARGS(BH_OUT(out)), NULL);
        CHECK_OK(bh_module_global_read(module, "counter", 0, &got, 4));
        CHECK_EQ(got, value + 5);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(a_module_can_be_unloaded_under_its_work) {
    rig r = rig_open(0);
    bh_module other = load_module(r.device, ptx_basic);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_kernel add_one = get_kernel(other, "add_one");
    bh_buffer x = words_filled(r.device, 64, 0);
    gate g = gate_close(&r, lane, 0);
    bh_ticket last = {0, 0};
    for (int i = 0; i < 50; i++)
        last = submit(add_one, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &there);
    CHECK_OK(bh_module_release(other));
    CHECK_REFUSED(bh_module_release(other), BH_E_INVALID);
    CHECK_REFUSED(bh_launch(add_one, BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), NULL, NULL),
                  BH_E_INVALID);
    bh_kernel gone;
    CHECK_REFUSED(bh_kernel_get(other, "add_one", &gone), BH_E_INVALID);
    gate_open(&g);
    CHECK_OK(bh_wait(last, LONG_NS));
    CHECK(words_are(x, 64, 50));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

enum { BIG = 64 << 20 };

/* The basic kernels beside a large variable. */
static rig load_big(bh_device device) {
    static char text[1 << 17];
    int length =
        snprintf(text, sizeof text, "%s\n.visible .global .align 8 .b8 big[%d];\n", ptx_basic, BIG);
    REQUIRE((size_t)length < sizeof text);
    return (rig){device, load_module(device, text)};
}

static bh_device open_limited(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.memory_limit = 3 * (uint64_t)BIG / 2;
    return open_device_with(&options);
}

/* What a busy module holds is counted as long as it is there, and can be used when its work is
 * done. */
TEST(a_released_module_gives_its_memory_back_after_its_work) {
    bh_device device = open_limited();
    rig big = load_big(device);
    gate g = gate_close(&big, open_lane(device), 0);
    CHECK_OK(bh_module_release(big.module));
    CHECK_EQ(memory_of(device).bytes_modules, BIG);
    bh_buffer buffer;
    CHECK_REFUSED(bh_buffer_alloc(device, BH_U8, BIG, NULL, &buffer), BH_E_NO_MEMORY);
    gate_open(&g);
    CHECK_OK(bh_wait(g.ticket, LONG_NS));
    CHECK_OK(bh_buffer_alloc(device, BH_U8, BIG, NULL, &buffer));
    CHECK_EQ(memory_of(device).bytes_modules, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(figures_of_memory_count_no_module_that_is_done) {
    bh_device device = open_limited();
    rig big = load_big(device);
    gate g = gate_close(&big, open_lane(device), 0);
    CHECK_OK(bh_module_release(big.module));
    gate_open(&g);
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_EQ(memory_of(device).bytes_modules, 0);
    CHECK_OK(bh_device_close(device));
}

/* A chunk of its own, and another module, need the same room. */
TEST(all_that_needs_memory_gets_that_of_modules_that_are_done) {
    bh_device device = open_limited();
    for (int i = 0; i < 3; i++) {
        rig big = load_big(device);
        gate g = gate_close(&big, open_lane(device), 0);
        CHECK_OK(bh_module_release(big.module));
        gate_open(&g);
        CHECK_OK(bh_wait(g.ticket, LONG_NS));
        bh_buffer_options options = BH_INIT(options);
        options.flags = BH_BUFFER_SHAREABLE;
        bh_buffer shared;
        bh_status status =
            i < 2 ? bh_buffer_alloc(device, BH_U8, BIG - (1 << 20), &options, &shared) : BH_OK;
        if (status == BH_E_UNSUPPORTED) continue;
        CHECK_OK(status);
        if (i < 2) CHECK_OK(bh_buffer_release(shared));
    }
    CHECK_OK(bh_module_release(load_big(device).module));
    CHECK_OK(bh_device_close(device));
}

TEST(a_released_sequence_keeps_no_module_after_its_work) {
    bh_device device = open_limited();
    rig big = load_big(device);
    bh_sequence sequence = sequence_open(device, "big");
    bh_buffer x = words_filled(device, 64, 0), flag = flag_alloc(device);
    REQUIRE_OK(bh_sequence_launch(sequence, rig_kernel(&big, "gate"), BH_GRID(1, 1),
                                  BH_ARGS(address_of(flag), BH_OUT(x), 5u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    bh_launch_options there = on_lane(open_lane(device), 0);
    bh_submit_options options = BH_INIT(options);
    options.lane = there.lane;
    bh_ticket ticket;
    REQUIRE_OK(bh_sequence_submit(sequence, &options, &ticket));
    flag_wait_begun(flag);
    CHECK_OK(bh_sequence_release(sequence));
    CHECK_OK(bh_module_release(big.module));
    CHECK_EQ(memory_of(device).bytes_modules, BIG);
    flag_raise(flag);
    CHECK_OK(bh_wait(ticket, LONG_NS));
    CHECK_EQ(memory_of(device).bytes_modules, 0);
    CHECK_OK(bh_device_close(device));
}

static _Atomic(int) unloads;

static void count_unloads(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    if (strstr(text, "(MODULE_UNLOAD) sent")) atomic_fetch_add(&unloads, 1);
}

/* No call of the program is needed. */
TEST(a_released_module_is_unloaded_when_its_work_is_done) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    rig other = {r.device, load_module(r.device, ptx_basic)};
    gate g = gate_close(&other, open_lane(r.device), 0);
    REQUIRE_OK(bh_log_set(count_unloads, NULL, BH_LOG_DEBUG));
    CHECK_OK(bh_module_release(other.module));
    sleep_ms(50);
    CHECK_EQ(atomic_load(&unloads), 0);
    gate_open(&g);
    for (uint64_t until = now_ns() + 5000 * MS; !atomic_load(&unloads) && now_ns() < until;)
        sleep_ms(1);
    CHECK_EQ(atomic_load(&unloads), 1);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(modules_come_and_go_a_hundred_times) {
    bh_device device = open_device();
    bh_buffer out = words_alloc(device, 1);
    unsigned before = 0;
    for (int i = 0; i < 100; i++) {
        bh_module module = load_module(device, ptx_globals);
        CHECK_OK(run_now(get_kernel(module, "bump"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out))));
        CHECK_EQ(word_read(out, 0), 1);
        CHECK_OK(bh_module_release(module));
        if (i == 10) before = open_descriptors();
    }
    /* What the standby was not told of yet is open until it is. */
    uint64_t limit = now_ns() + 5000 * MS;
    while (open_descriptors() > before + 4 && now_ns() < limit) sleep_ms(5);
    CHECK_LE(open_descriptors(), before + 4);
    CHECK_OK(bh_device_close(device));
}

static const char *write_file(const char *name, const void *bytes, size_t size) {
    static char path[512];
    test_path(path, sizeof path, "%s/%s", test_tmp_dir(), name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    REQUIRE(fwrite(bytes, 1, size, file) == size);
    fclose(file);
    return path;
}

TEST(modules_load_from_files) {
    bh_device device = open_device();
    bh_module module = {0};
    const char *path = write_file("basic.ptx", ptx_basic, strlen(ptx_basic));
    REQUIRE_OK(bh_module_load_file(device, path, &module));
    rig r = {device, module};
    check_device_works(&r);
    CHECK_REFUSED(bh_module_load_file(device, "/no/such/file.ptx", &module), BH_E_NOT_FOUND);
    bh_error error;
    bh_last_error(&error);
    CHECK_STR_CONTAINS(error.message, "/no/such/file.ptx");
    CHECK_REFUSED_ANY(bh_module_load_file(device, test_tmp_dir(), &module));
    CHECK_REFUSED_ANY(bh_module_load_file(device, "", &module));
    CHECK_REFUSED_ANY(bh_module_load_file(device, write_file("empty.ptx", "", 0), &module));
    char pipe_path[512];
    test_path(pipe_path, sizeof pipe_path, "%s/pipe", test_tmp_dir());
    REQUIRE(mkfifo(pipe_path, 0600) == 0); /* reading it would wait for a writer */
    CHECK_REFUSED(bh_module_load_file(device, pipe_path, &module), BH_E_LOAD);
    CHECK_OK(bh_device_close(device));
}

static void check_not_loaded(bh_device device, const void *image, size_t size) {
    bh_module module = {123};
    bh_status status = bh_module_load(device, image, size, &module);
    if (status == BH_OK) {
        FAIL("an image of %zu bytes that is no PTX was loaded", size);
        return;
    }
    CHECK_REFUSED(status, status == BH_E_UNSUPPORTED ? BH_E_UNSUPPORTED
                          : status == BH_E_INVALID   ? BH_E_INVALID
                                                     : BH_E_LOAD);
    CHECK_EQ(module.id, 123);
}

TEST(truncated_ptx_is_refused_with_a_line) {
    rig r = rig_open(0);
    size_t length = strlen(ptx_globals), whole = 0;
    for (size_t size = 1; size < length; size += 7) {
        bh_module module = {0};
        /* Cut right after a complete kernel it is still a module. */
        bh_status status = bh_module_load(r.device, ptx_globals, size, &module);
        if (status == BH_OK) {
            CHECK_OK(bh_module_release(module));
            whole++;
            continue;
        }
        /* a word cut short may look like an instruction that is not there */
        CHECK_REFUSED(status, status == BH_E_UNSUPPORTED ? BH_E_UNSUPPORTED : BH_E_LOAD);
        bh_error error;
        bh_last_error(&error);
        CHECK_STR_CONTAINS(error.message, "line");
    }
    CHECK_LT(whole, 40);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(garbage_is_no_module) {
    rig r = rig_open(0);
    rng random = rng_seeded(31);
    uint8_t noise[4000];
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof noise; i++) noise[i] = (uint8_t)rng_next(&random);
        check_not_loaded(r.device, noise, 1 + rng_below(&random, sizeof noise));
    }
    memset(noise, 0, sizeof noise);
    check_not_loaded(r.device, noise, sizeof noise);
    check_not_loaded(r.device, "", 0);
    check_not_loaded(r.device, "\177ELF\2\1\1", 7);
    check_not_loaded(r.device, "// nothing here\n", 16);
    check_not_loaded(r.device, ".version 7.0\n", 13);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(ptx_with_random_bytes_changed_never_harms_the_device) {
    rig r = rig_open(0);
    rng random = rng_seeded(32);
    size_t length = strlen(ptx_globals);
    char *image = malloc(length);
    pid_t worker = health_of(r.device).worker_pid;
    for (int round = 0; round < 150; round++) {
        bh_module module = {0};
        memcpy(image, ptx_globals, length);
        for (uint32_t i = 0, n = 1 + rng_below(&random, 4); i < n; i++)
            image[rng_below(&random, (uint32_t)length)] = (char)(32 + rng_below(&random, 95));
        bh_status status = bh_module_load(r.device, image, length, &module);
        if (status == BH_OK)
            CHECK_OK(bh_module_release(module));
        else
            CHECK_REFUSED(status, status == BH_E_UNSUPPORTED ? BH_E_UNSUPPORTED : BH_E_LOAD);
    }
    free(image);
    CHECK_EQ(health_of(r.device).worker_pid, worker);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(huge_garbage_is_refused_in_good_time) {
    enum { SIZE = 32 << 20 };
    rig r = rig_open(0);
    char *image = malloc(SIZE);
    REQUIRE(image != NULL);
    memset(image, '/', SIZE);
    check_not_loaded(r.device, image, SIZE);
    memset(image, '(', SIZE);
    check_not_loaded(r.device, image, SIZE);
    memset(image, '{', SIZE);
    memcpy(image, ptx_basic, 60);
    check_not_loaded(r.device, image, SIZE);
    free(image);
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_image_needs_no_nul_at_its_end) {
    bh_device device = open_device();
    size_t length = strlen(ptx_basic);
    char *image = malloc(length);
    bh_module module = {0};
    memcpy(image, ptx_basic, length);
    CHECK_OK(bh_module_load(device, image, length, &module));
    CHECK_OK(bh_module_load(device, ptx_basic, length + 1, &module)); /* nor minds one */
    free(image);
    CHECK_OK(bh_device_close(device));
}
