/* SPDX-License-Identifier: Apache-2.0 */
/* Each kind of fault with a real kernel: who is blamed, what is intact, and that work goes on. */
#include "../support/support.h"

enum { INTACT = 5000 };

struct scene {
    rig r;
    bh_buffer intact, touched, input;
    uint64_t address;
    loss_log log;
    bh_health before;
};

static void scene_open(struct scene *s) {
    s->r = rig_open(0);
    s->intact = words_counting(s->r.device, INTACT, 77);
    s->touched = words_filled(s->r.device, 256, 3);
    s->input = words_counting(s->r.device, 256, 9);
    s->address = address_of(s->intact);
    loss_log_start(s->r.device, &s->log);
    wait_standby(s->r.device);
    s->before = health_of(s->r.device);
}

/* Everything that must hold after `ticket`, a launch of `kernel`, was the end of a worker. */
static void scene_check(struct scene *s, bh_ticket ticket, const char *kernel, bh_status expected,
                        bool touches) {
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), expected);
    CHECK_STATUS(bh_ticket_error(ticket, &error), expected);
    CHECK_EQ(error.status, expected);
    CHECK_STR_EQ(error.kernel, kernel);
    CHECK_EQ(error.certain, 1);
    CHECK_EQ(error.generation, 1);
    CHECK_EQ(error.ticket.lane, ticket.lane);
    CHECK_EQ(error.ticket.sequence, ticket.sequence);
    char named[200];
    snprintf(named, sizeof named, "kernel \"%s\" (launch %llu of lane 0, grid ", kernel,
             (unsigned long long)ticket.sequence);
    CHECK_STR_CONTAINS(error.message, named);
    CHECK_STR_CONTAINS(error.message, ", block ");
    if (expected == BH_E_FAULT) {
        CHECK_NE(error.device_code, 0);
        CHECK(error.device_name[0] != '\0');
    }
    CHECK(error.fix[0] != '\0');

    wait_generation(s->r.device, 2);
    bh_health after = health_of(s->r.device);
    CHECK_EQ(after.generation, 2);
    CHECK_EQ(after.losses, 1);
    CHECK(is_running(s->r.device));
    CHECK_EQ(after.worker_pid, s->before.standby_pids[0]);

    REQUIRE(loss_log_wait(&s->log, 1));
    const bh_loss *loss = &s->log.losses[0];
    CHECK_EQ(loss->cause, expected);
    CHECK_EQ(loss->generation, 1);
    CHECK_EQ(loss->certain, 1);
    CHECK_EQ(loss->stopped, 0);
    CHECK_EQ(loss->from_standby, 1);
    CHECK_EQ(loss->failed, 1);
    CHECK_EQ(loss->lost, 0);
    CHECK_EQ(loss->stale, 0);
    CHECK_EQ(loss->suspect_buffers, touches ? 1 : 0);
    CHECK_STR_EQ(loss->kernel, kernel);
    CHECK(loss->message[0] != '\0');

    CHECK(!is_suspect(s->intact));
    CHECK(!is_suspect(s->input));
    CHECK_EQ(is_suspect(s->touched), touches);
    CHECK_EQ(address_of(s->intact), s->address);
    CHECK(words_count(s->intact, INTACT, 77));
    CHECK(words_count(s->input, 256, 9));
    uint32_t word;
    if (touches)
        CHECK_REFUSED(bh_buffer_read(s->touched, 0, &word, 4), BH_E_STALE);
    else
        CHECK(words_are(s->touched, 256, 3));
    check_device_works(&s->r);

    bh_kernel_info info = BH_INIT(info);
    bh_kernel handle;
    if (bh_kernel_get(s->r.module, kernel, &handle) == BH_OK) {
        CHECK_OK(bh_kernel_get_info(handle, &info));
        CHECK_EQ(info.faults, expected == BH_E_FAULT ? 1 : info.faults);
        CHECK_EQ(info.quarantined, 0);
    }
    wait_standby(s->r.device);
    CHECK(wait_process_gone(s->before.worker_pid, 5000));
    CHECK_EQ(atomic_load(&s->log.count), 1);
    CHECK_OK(bh_device_close(s->r.device));
}

TEST(a_store_to_a_null_pointer) {
    struct scene s;
    scene_open(&s);
    bh_ticket t = submit(rig_kernel(&s.r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u), NULL);
    scene_check(&s, t, "poke", BH_E_FAULT, false);
}

TEST(a_store_far_outside) {
    struct scene s;
    scene_open(&s);
    bh_ticket t = submit(rig_kernel(&s.r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE_FAR, 1u), NULL);
    scene_check(&s, t, "poke", BH_E_FAULT, false);
}

TEST(a_load_from_nowhere) {
    struct scene s;
    scene_open(&s);
    bh_buffer table;
    uint64_t address = NOWHERE_FAR;
    REQUIRE_OK(bh_buffer_alloc(s.r.device, BH_U64, 1, NULL, &table));
    REQUIRE_OK(bh_buffer_write(table, 0, &address, 8));
    bh_ticket t = submit(rig_kernel(&s.r, "gather"), BH_GRID(1, 1),
                         BH_ARGS(BH_IN(table), BH_OUT(s.touched), 1u), NULL);
    scene_check(&s, t, "gather", BH_E_FAULT, true);
}

TEST(a_store_to_an_input) {
    struct scene s;
    scene_open(&s);
    bh_ticket t = submit(rig_kernel(&s.r, "write_input"), BH_GRID(1, 1),
                         BH_ARGS(BH_IN(s.input), BH_OUT(s.touched)), NULL);
    scene_check(&s, t, "write_input", BH_E_FAULT, true);
}

TEST(half_the_work_done_and_then_a_bad_address) {
    struct scene s;
    scene_open(&s);
    bh_ticket t = submit(rig_kernel(&s.r, "write_then_poke"), BH_GRID(256, 32),
                         BH_ARGS(BH_INOUT(s.touched), 256u, NOWHERE), NULL);
    scene_check(&s, t, "write_then_poke", BH_E_FAULT, true);
}

TEST(a_trap) {
    struct scene s;
    scene_open(&s);
    bh_ticket t = submit(rig_kernel(&s.r, "trap_now"), BH_GRID(1000, 64), BH_NO_ARGS, NULL);
    scene_check(&s, t, "trap_now", BH_E_FAULT, false);
}

TEST(a_misaligned_store) {
    struct scene s;
    scene_open(&s);
    bh_ticket t =
        submit(rig_kernel(&s.r, "misaligned"), BH_GRID(1, 1), BH_ARGS(BH_INOUT(s.touched)), NULL);
    scene_check(&s, t, "misaligned", BH_E_FAULT, true);
}

TEST(a_failed_assertion) {
    struct scene s;
    scene_open(&s);
    bh_kernel must_be = get_kernel(load_module(s.r.device, ptx_assert), "must_be");
    CHECK_OK(run_now(must_be, BH_GRID(1, 1), BH_ARGS(4u, 4u)));
    wait_standby(s.r.device);
    s.before = health_of(s.r.device);
    bh_ticket t = submit(must_be, BH_GRID(1, 1), BH_ARGS(4u, 5u), NULL);
    scene_check(&s, t, "must_be", BH_E_FAULT, false);
}

static char heard[4096];
static _Atomic size_t heard_length;

static void hear(void *context, const bh_event *event) {
    (void)context;
    size_t length = event->length;
    size_t at = atomic_load(&heard_length), room = sizeof heard - 1 - at;
    memcpy(heard + at, event->text, length < room ? length : room);
    atomic_store(&heard_length, at + (length < room ? length : room));
}

TEST(what_a_failed_assertion_says_is_printed_and_in_the_error) {
    rig r = rig_open(0);
    bh_error error;
    watch_for(r.device, BH_EVENT_PRINT, hear, NULL);
    bh_kernel must_be = get_kernel(load_module(r.device, ptx_assert), "must_be");
    bh_ticket t = submit(must_be, BH_GRID(1, 1), BH_ARGS(4u, 5u), NULL);
    CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_FAULT);
    bh_ticket_error(t, &error);
    CHECK_EQ(error.device_code, 710);
    CHECK_STR_CONTAINS(error.message, "kernel \"must_be\" (launch ");
    CHECK_STR_CONTAINS(error.message, "Assertion `");
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_STR_CONTAINS(heard, "thread: [0,0,0] Assertion `");
    CHECK_STR_CONTAINS(heard, "failed.\n");
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_endless_loop_with_a_deadline) {
    struct scene s;
    scene_open(&s);
    bh_buffer flag = flag_alloc(s.r.device);
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 50 * MS;
    bh_ticket t = submit(rig_kernel(&s.r, "endless"), BH_GRID(1, 1),
                         BH_ARGS(address_of(flag), BH_OUT(s.touched)), &options);
    scene_check(&s, t, "endless", BH_E_DEADLINE, true);
}

TEST(an_endless_loop_in_every_thread_with_the_devices_own_deadline) {
    struct scene s;
    bh_device_options options = device_options(0);
    options.deadline_ns = 80 * MS;
    s.r = rig_open_with(&options);
    s.intact = words_counting(s.r.device, INTACT, 77);
    s.touched = words_filled(s.r.device, 256, 3);
    s.input = words_counting(s.r.device, 256, 9);
    s.address = address_of(s.intact);
    loss_log_start(s.r.device, &s.log);
    wait_standby(s.r.device);
    s.before = health_of(s.r.device);
    bh_buffer flag = flag_alloc(s.r.device);
    bh_ticket t = submit(rig_kernel(&s.r, "endless"), BH_GRID(256, 64),
                         BH_ARGS(address_of(flag), BH_OUT(s.touched)), NULL);
    scene_check(&s, t, "endless", BH_E_DEADLINE, true);
}

TEST(a_deadline_counts_running_time_not_waiting_time) {
    rig r = rig_open(0);
    bh_lane lane = open_lane(r.device);
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer out = words_alloc(r.device, 1);
    gate g = gate_close(&r, lane, 0);
    there.deadline_ns = 1000 * MS;
    bh_ticket t =
        submit(rig_kernel(&r, "spin"), BH_GRID(1, 1), BH_ARGS(BH_OUT(out), 1u, 100u), &there);
    sleep_ms(1300);
    gate_open(&g);
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_EQ(word_read(out, 0), spin_word(1, 100));
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(work_within_its_deadline_is_left_alone) {
    rig r = rig_open(0);
    bh_launch_options options = BH_INIT(options);
    bh_buffer x = words_filled(r.device, 64, 0);
    options.deadline_ns = LONG_NS;
    for (int i = 0; i < 100; i++)
        CHECK_OK(run_with(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u),
                          &options));
    CHECK(words_are(x, 64, 100));
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(faults_one_after_the_other_each_find_a_working_device) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer intact = words_counting(r.device, INTACT, 1), x = words_filled(r.device, 4, 0);
    static const char *const names[] = {"poke", "trap_now", "misaligned"};
    for (uint64_t i = 0; i < 12; i++) {
        bh_kernel kernel = rig_kernel(&r, names[i % 3]);
        bh_status status = i % 3 == 0   ? run_now(kernel, BH_GRID(1, 1), BH_ARGS(NOWHERE, 1u))
                           : i % 3 == 1 ? run_now(kernel, BH_GRID(1, 1), BH_NO_ARGS)
                                        : run_now(kernel, BH_GRID(1, 1), BH_ARGS(BH_INOUT(x)));
        CHECK_STATUS(status, BH_E_FAULT);
        CHECK_OK(bh_kernel_pardon(kernel));
        wait_generation(r.device, i + 2);
        uint32_t zero = 0;
        CHECK_OK(bh_buffer_fill(x, 0, 16, &zero, 4));
        CHECK(words_count(intact, INTACT, 1));
        check_device_works(&r);
    }
    CHECK_EQ(health_of(r.device).losses, 12);
    CHECK_OK(bh_device_close(r.device));
}
