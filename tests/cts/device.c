/* SPDX-License-Identifier: Apache-2.0 */
/* Opening, closing, asking and syncing devices. */
#include <signal.h>

#include "../support/support.h"

TEST(opens_and_closes_many_times_without_a_trace) {
    bh_device device = open_device(); /* whatever is made once is made now */
    CHECK_OK(bh_device_close(device));
    unsigned before = open_descriptors();
    for (int i = 0; i < 10; i++) {
        device = open_device();
        bh_health health = health_of(device);
        CHECK_OK(bh_device_close(device));
        CHECK(wait_process_gone(health.worker_pid, 5000));
        if (health.standby_pids[0] != 0) CHECK(wait_process_gone(health.standby_pids[0], 5000));
    }
    CHECK_EQ(open_descriptors(), before);
}

TEST(closing_ends_a_standby_that_is_still_booting) {
    for (int i = 0; i < 5; i++) {
        bh_device device = open_device();
        bh_health health = health_of(device);
        CHECK_OK(bh_device_close(device));
        if (health.standby_pids[0] != 0) CHECK(wait_process_gone(health.standby_pids[0], 5000));
    }
}

TEST(null_options_open_the_default_device) {
    bh_device device = {0};
    bh_error error;
    bh_status status = bh_device_open(NULL, &device);
    if (status != BH_OK) {
        CHECK_EQ(status, BH_E_NO_DEVICE);
        bh_last_error(&error);
        SKIP("no default device here: %s", error.message);
    }
    CHECK_OK(bh_device_close(device));
}

TEST(auto_is_a_device_that_says_what_it_is) {
    bh_device_options options = BH_INIT(options);
    bh_device device = {0};
    options.device = "auto";
    bh_status status = bh_device_open(&options, &device);
    if (status == BH_E_NO_DEVICE) SKIP("no automatic device here");
    REQUIRE_OK(status);
    bh_device_info info = BH_INIT(info);
    CHECK_OK(bh_device_get_info(device, &info));
    CHECK(strcmp(info.kind, "cpu") == 0 || strcmp(info.kind, "cuda") == 0);
    CHECK_OK(bh_device_close(device));
}

TEST(two_devices_do_not_meet) {
    rig a = rig_open(0), b = rig_open(0);
    bh_buffer x = words_counting(a.device, 1000, 1);
    bh_buffer y = words_counting(b.device, 1000, 2);
    CHECK_OK(run_now(rig_kernel(&a, "add_one"), BH_GRID(1000, 64), BH_ARGS(BH_INOUT(x), 1000u)));
    CHECK_OK(run_now(rig_kernel(&b, "add_one"), BH_GRID(1000, 64), BH_ARGS(BH_INOUT(y), 1000u)));
    CHECK(words_count(x, 1000, 2));
    CHECK(words_count(y, 1000, 3));
    CHECK_NE(health_of(a.device).worker_pid, health_of(b.device).worker_pid);
    CHECK_OK(bh_device_close(a.device));
    CHECK_REFUSED(bh_buffer_release(x), BH_E_INVALID);
    CHECK(words_count(y, 1000, 3));
    check_device_works(&b);
    CHECK_OK(bh_device_close(b.device));
}

static void open_use_close(void *context, unsigned index) {
    (void)context;
    for (int i = 0; i < 3; i++) {
        rig r = rig_open(index % 2 ? BH_DEVICE_NO_STANDBY : 0);
        check_device_works(&r);
        CHECK_OK(bh_device_close(r.device));
    }
}

TEST(threads_open_and_close_at_once) {
    run_threads(4, open_use_close, NULL);
}

TEST(the_list_has_the_device_under_test) {
    size_t count = 0, written = 0;
    REQUIRE_OK(bh_device_list(NULL, 0, 0, &count));
    REQUIRE(count >= 1 && count < 1000);
    bh_device_entry *entries = calloc(count, sizeof *entries);
    REQUIRE(entries != NULL);
    REQUIRE_OK(bh_device_list(entries, sizeof *entries, count, &written));
    CHECK_EQ(written, count);
    bool cpu = false, under_test = false;
    for (size_t i = 0; i < count; i++) {
        CHECK(entries[i].device[0] != '\0');
        if (entries[i].status == BH_OK) {
            CHECK(entries[i].info.kind[0] != '\0');
            CHECK(entries[i].info.max_threads_per_block > 0);
        } else {
            CHECK_EQ(entries[i].error.status, entries[i].status);
            CHECK(entries[i].error.message[0] != '\0');
            CHECK(entries[i].error.fix[0] != '\0');
        }
        if (strcmp(entries[i].device, "cpu") == 0) {
            cpu = true;
            CHECK_EQ(entries[i].status, BH_OK);
        }
        if (strncmp(entries[i].device, test_device(), strlen(test_device())) == 0)
            under_test = true;
    }
    CHECK(cpu);
    CHECK(under_test || strcmp(test_device(), "auto") == 0);
    free(entries);
}

TEST(the_list_writes_no_more_than_it_may) {
    bh_device_entry entries[2];
    size_t count = 0;
    memset(entries, 0x5a, sizeof entries);
    bh_device_entry untouched = entries[1];
    REQUIRE_OK(bh_device_list(entries, sizeof *entries, 1, &count));
    CHECK(count >= 1);
    CHECK_MEM_EQ(&entries[1], &untouched, sizeof untouched);
}

/* A program built with an older or newer header: its entries are shorter or longer. */
static void check_entries_of(size_t entry_size) {
    enum { MAX = 65 };
    uint8_t *entries = malloc((MAX + 1) * entry_size);
    size_t count = 0;
    REQUIRE(entries != NULL);
    memset(entries, 0x5a, (MAX + 1) * entry_size);
    REQUIRE_OK(bh_device_list((bh_device_entry *)(void *)entries, entry_size, MAX, &count));
    REQUIRE(count >= 1 && count <= MAX);
    bh_device_entry last = {0};
    const uint8_t *from = entries + (count - 1) * entry_size;
    size_t part = entry_size < sizeof last ? entry_size : sizeof last;
    memcpy(&last, from, part);
    CHECK_EQ(last.size, entry_size);
    CHECK_EQ(last.status, BH_OK);
    CHECK_STR_EQ(last.device, "cpu");
    if (part > offsetof(bh_device_entry, info.kind)) CHECK_STR_EQ(last.info.kind, "cpu");
    for (size_t i = part; i < entry_size; i++) CHECK_EQ(from[i], 0);
    for (size_t i = 0; i < entry_size; i++) CHECK_EQ(entries[count * entry_size + i], 0x5a);
    free(entries);
}

TEST(the_list_fills_entries_of_any_length) {
    check_entries_of(offsetof(bh_device_entry, error));
    check_entries_of(offsetof(bh_device_entry, info.name));
    check_entries_of(sizeof(bh_device_entry));
    check_entries_of(sizeof(bh_device_entry) + 96);
}

TEST(query_gives_limits_one_can_use) {
    bh_device device = open_device();
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    CHECK_EQ(info.size, sizeof info);
    CHECK(info.kind[0] != '\0');
    CHECK(info.name[0] != '\0');
    CHECK(info.driver[0] != '\0');
    CHECK(info.arch[0] != '\0');
    CHECK_GT(info.memory_total, 1u << 20);
    CHECK_LE(info.memory_free, info.memory_total);
    CHECK_GE(info.multiprocessors, 1);
    CHECK_EQ(info.warp_size, 32);
    CHECK_GE(info.max_threads_per_block, 1024);
    bh_device_limits limits = limits_of(device);
    CHECK_EQ(limits.size, sizeof limits);
    for (int i = 0; i < 3; i++) {
        CHECK_GE(limits.max_block[i], 64);
        CHECK_GE(limits.max_grid[i], 65535);
    }
    CHECK_GE(limits.shared_per_block, 48 * 1024);
    CHECK_GE(limits.shared_per_block_max, limits.shared_per_block);
    CHECK_GE(limits.max_lanes, 8);
    CHECK_GE(limits.max_param_bytes, 4096);
    CHECK_OK(bh_device_close(device));
}

TEST(query_tells_of_the_hardware) {
    bh_device device = open_device();
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    bh_device_limits limits = limits_of(device);
    CHECK_GE(limits.max_threads_per_multiprocessor, info.max_threads_per_block);
    CHECK_GE(limits.max_blocks_per_multiprocessor, 1);
    CHECK_GE(limits.shared_per_multiprocessor, limits.shared_per_block_max);
    CHECK_GE(limits.registers_per_multiprocessor, limits.registers_per_block);
    CHECK_LE(limits.priority_lowest, 0);
    CHECK_GE(limits.priority_highest, 0);
    CHECK_LE(limits.compute_mode, BH_COMPUTE_EXCLUSIVE);
    if (strcmp(info.kind, "cuda") == 0) {
        CHECK(strncmp(info.uuid, limits.mig ? "MIG-" : "GPU-", 4) == 0);
        CHECK_EQ(strlen(info.uuid), 40);
        CHECK(strlen(info.pci) >= 12 && strchr(info.pci, ':') != NULL);
        CHECK_GE(info.driver_version, 12000);
        CHECK_GT(limits.clock_khz, 100000);
        CHECK_GT(limits.memory_bus_bits, 0);
        CHECK_GT(limits.l2_bytes, 0);
        CHECK_GE(limits.async_engines, 1);
        CHECK_LT(limits.priority_lowest, limits.priority_highest);
    } else {
        CHECK_STR_EQ(info.uuid, "");
        CHECK_EQ(limits.priority_lowest, limits.priority_highest);
    }
    CHECK_EQ(info.no_standby[0] != '\0', limits.mps || limits.compute_mode != BH_COMPUTE_DEFAULT);
    CHECK_OK(bh_device_close(device));
}

TEST(query_fills_no_more_than_an_older_struct_has) {
    bh_device device = open_device();
    bh_device_info info;
    memset(&info, 0x5a, sizeof info);
    info.size = (uint32_t)offsetof(bh_device_info, memory_total);
    REQUIRE_OK(bh_device_get_info(device, &info));
    CHECK(info.kind[0] != 0x5a);
    CHECK_EQ(info.memory_total, UINT64_C(0x5a5a5a5a5a5a5a5a));
    CHECK_EQ(info.driver_version, 0x5a5a5a5a);
    bh_device_limits limits;
    memset(&limits, 0x5a, sizeof limits);
    limits.size = (uint32_t)offsetof(bh_device_limits, max_lanes);
    REQUIRE_OK(bh_device_get_limits(device, &limits));
    CHECK_GE(limits.max_grid[2], 65535);
    CHECK_EQ(limits.max_lanes, 0x5a5a5a5a);
    CHECK_OK(bh_device_close(device));
}

TEST(health_reports_workers_and_lanes) {
    bh_device device = open_device();
    bh_health health = health_of(device);
    CHECK(is_running(device));
    CHECK_EQ(health.generation, 1);
    CHECK_EQ(health.losses, 0);
    CHECK_EQ(health.losses_in_window, 0);
    CHECK(health.worker_pid > 0 && process_exists(health.worker_pid));
    CHECK_NE(health.worker_pid, (int)getpid());
    CHECK_EQ(health.lanes, 1);
    bh_lane lane = open_lane(device), other = open_lane(device);
    CHECK_EQ(health_of(device).lanes, 3);
    CHECK_OK(bh_lane_release(lane));
    CHECK_EQ(health_of(device).lanes, 2);
    CHECK_REFUSED(bh_lane_release(lane), BH_E_INVALID);
    CHECK_EQ(health_of(device).lanes, 2);
    CHECK_OK(bh_lane_release(other));
    CHECK_EQ(health_of(device).lanes, 1);
    CHECK_OK(bh_device_close(device));
}

TEST(memory_tells_of_buffers) {
    bh_device device = open_device();
    CHECK_EQ(memory_of(device).buffers, 0);
    CHECK_EQ(memory_of(device).bytes_buffers, 0);
    bh_buffer buffer = words_alloc(device, 1024);
    CHECK_EQ(memory_of(device).buffers, 1);
    CHECK_EQ(memory_of(device).bytes_buffers, 4096);
    CHECK_GE(memory_of(device).bytes_reserved, 4096);
    CHECK_OK(bh_buffer_release(buffer));
    CHECK_EQ(memory_of(device).buffers, 0);
    CHECK_EQ(memory_of(device).bytes_buffers, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(standby_comes_by_itself) {
    bh_device device = open_device();
    wait_standby(device);
    bh_health health = health_of(device);
    CHECK_EQ(health.standbys_ready, 1);
    CHECK(health.standby_pids[0] > 0 && process_exists(health.standby_pids[0]));
    CHECK_NE(health.standby_pids[0], health.worker_pid);
    CHECK_OK(bh_device_wait_standby(device, 0));
    CHECK_OK(bh_device_close(device));
}

TEST(a_device_without_standby_says_so) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    bh_device device = open_device_with(&options);
    CHECK_REFUSED(bh_device_wait_standby(device, LONG_NS), BH_E_UNSUPPORTED);
    bh_health health = health_of(device);
    CHECK_EQ(health.standby_pids[0], 0);
    CHECK_EQ(health.standbys_ready, 0);
    CHECK_OK(bh_device_close(device));
}

TEST(sync_waits_for_all_lanes) {
    rig r = rig_open(0);
    CHECK_OK(bh_device_sync(r.device, 0));
    bh_lane lane = open_lane(r.device);
    gate g = gate_close(&r, lane, 0);
    CHECK_REFUSED(bh_device_sync(r.device, 20 * MS), BH_E_TIMEOUT);
    CHECK_REFUSED(bh_device_sync(r.device, 0), BH_E_BUSY);
    gate_open(&g);
    CHECK_OK(bh_device_sync(r.device, BH_FOREVER));
    CHECK_OK(bh_wait(g.ticket, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(sync_is_ok_whatever_became_of_the_work) {
    rig r = rig_open(0);
    bh_ticket ticket = submit(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS, NULL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_STATUS(bh_wait(ticket, 0), BH_E_FAULT);
    CHECK_OK(bh_device_close(r.device));
}

TEST(close_lets_work_finish) {
    rig r = rig_open(0);
    bh_buffer out = words_alloc(r.device, 64);
    bh_ticket tickets[20];
    for (int i = 0; i < 20; i++)
        tickets[i] = submit(rig_kernel(&r, "spin"), BH_GRID(64, 64),
                            BH_ARGS(BH_OUT(out), (uint32_t)i, 500u), NULL);
    CHECK_OK(bh_device_close(r.device));
    for (int i = 0; i < 20; i++) CHECK_OK(bh_wait(tickets[i], 0));
}

TEST(close_cancels_what_does_not_finish_in_time) {
    bh_device_options options = device_options(0);
    options.close_timeout_ns = 50 * MS;
    rig r = rig_open_with(&options);
    bh_lane lane = open_lane(r.device);
    bh_buffer out = words_alloc(r.device, 1);
    bh_launch_options there = on_lane(lane, 0);
    gate g = gate_close(&r, lane, 0);
    bh_ticket behind =
        submit(rig_kernel(&r, "store_word"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out), 1u), &there);
    pid_t worker = health_of(r.device).worker_pid;
    uint64_t begun = now_ns();
    CHECK_OK(bh_device_close(r.device));
    CHECK_LT(now_ns() - begun, 5000 * MS * test_time_scale());
    CHECK_STATUS(bh_wait(g.ticket, 0), BH_E_CANCELLED);
    CHECK_STATUS(bh_wait(behind, 0), BH_E_CANCELLED);
    CHECK(wait_process_gone(worker, 5000));
}

TEST(all_that_belongs_to_a_device_goes_with_it) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_kernel kernel = rig_kernel(&r, "add_one");
    bh_buffer buffer = words_filled(r.device, 16, 1);
    bh_buffer view;
    uint32_t word;
    REQUIRE_OK(bh_buffer_view(buffer, 0, 4, 4, &view));
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_device_close(r.device), BH_E_INVALID);
    CHECK_REFUSED(bh_device_sync(r.device, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_lane_sync(lane, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_lane_release(lane), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_read(buffer, 0, &word, 4), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_release(view), BH_E_INVALID);
    CHECK_REFUSED(bh_module_release(r.module), BH_E_INVALID);
    CHECK_REFUSED(bh_launch(kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(buffer), 1u), NULL, NULL),
                  BH_E_INVALID);
}

static void closer(void *context, unsigned index) {
    rig *r = context;
    if (index == 0) {
        sleep_ms(20);
        CHECK_OK(bh_device_close(r->device));
        return;
    }
    bh_kernel kernel;
    bh_buffer buffer;
    for (;;) {
        bh_ticket ticket;
        bh_status status = bh_kernel_get(r->module, "add_one", &kernel);
        if (status == BH_OK) status = bh_buffer_alloc(r->device, BH_U32, 256, NULL, &buffer);
        if (status == BH_OK)
            status =
                bh_launch(kernel, BH_GRID(256, 64), BH_ARGS(BH_INOUT(buffer), 256u), NULL, &ticket);
        if (status == BH_OK) status = bh_wait(ticket, LONG_NS);
        if (status == BH_OK) status = bh_buffer_release(buffer);
        if (status != BH_OK) {
            if (status != BH_E_INVALID && status != BH_E_CANCELLED && status != BH_E_STOPPED)
                FAIL("a call returned %s", bh_status_name(status));
            return;
        }
    }
}

TEST(close_while_other_threads_use_the_device) {
    for (int i = 0; i < 3; i++) {
        rig r = rig_open(0);
        run_threads(4, closer, &r);
    }
}

static bh_status open_named(const char *name, bh_device *out) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.device = name;
    return bh_device_open(&options, out);
}

/* No machine has a GPU of this number. */
TEST(a_list_takes_the_first_device_that_can_be_used) {
    bh_device device;
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(open_named("cuda:63,cpu", &device));
    CHECK_OK(bh_device_get_info(device, &info));
    CHECK_STR_EQ(info.kind, "cpu");
    CHECK_EQ(strncmp(info.passed_over, "cuda:63: ", 9), 0);
    CHECK_OK(bh_device_close(device));

    REQUIRE_OK(open_named("cpu,cuda:63", &device));
    CHECK_OK(bh_device_get_info(device, &info));
    CHECK_STR_EQ(info.kind, "cpu");
    CHECK_STR_EQ(info.passed_over, "");
    CHECK_OK(bh_device_close(device));
}

TEST(a_list_without_a_usable_device_says_why_of_each) {
    bh_device device;
    bh_error error;
    CHECK_REFUSED(open_named("cuda:62,cuda:63", &device), BH_E_NO_DEVICE);
    CHECK_STATUS(bh_last_error(&error), BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "cuda:62: ");
    CHECK_REFUSED(open_named("cuda:63,,cpu", &device), BH_E_INVALID);
    CHECK_REFUSED(open_named(",cpu", &device), BH_E_INVALID);
    CHECK_REFUSED(open_named("cuda:63,", &device), BH_E_INVALID);
    CHECK_REFUSED(open_named("gpu,cpu", &device), BH_E_INVALID);
    CHECK_REFUSED(open_named("cpu,", &device), BH_E_INVALID); /* all names, before any is opened */
    CHECK_REFUSED(open_named("cpu,toaster", &device), BH_E_INVALID);
}
