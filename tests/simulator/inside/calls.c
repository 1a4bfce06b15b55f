/* SPDX-License-Identifier: Apache-2.0 */
/* Every kind of call that waits for a worker, against a close. */
#include "scenarios.h"
#include "world.h"

static void expect(bh_status status, const char *what) {
    if (status != BH_OK && status != BH_E_INVALID && status != BH_E_STOPPED &&
        status != BH_E_CANCELLED)
        BUG("%s against a close returned %s", what, bh_status_name(status));
}

static void load(void) {
    bh_module other;
    bh_status status = bh_module_load(device, FAKE_IMAGE, sizeof FAKE_IMAGE, &other);
    expect(status, "bh_module_load");
    if (status == BH_OK) expect(bh_module_release(other), "bh_module_release");
}

static void dispatch(void) {
    uint32_t out[WORDS] = {0}, words = WORDS, value = 7;
    bh_args args = BH_ARGS(BH_HOST_OUT(out, sizeof out), words, value);
    bh_status status = bh_dispatch(kernels[FAKE_STORE], BH_GRID(1, 1), args, NULL);
    expect(status, "bh_dispatch");
    for (int i = 0; status == BH_OK && i < WORDS; i++)
        if (out[i] != value) BUG("bh_dispatch is BH_OK and word %d is %u", i, out[i]);
}

static void variable(void) {
    uint32_t value[4] = {3, 3, 3, 3}, got[4] = {0};
    bh_status status = bh_module_global_write(variable_module, "var", 0, value, sizeof value);
    expect(status, "bh_module_global_write");
    if (status != BH_OK) return;
    status = bh_module_global_read(variable_module, "var", 0, got, sizeof got);
    expect(status, "bh_module_global_read");
    if (status == BH_OK && got[0] != 3) BUG("a variable was set to 3 and is read as %u", got[0]);
}

static void pool(void) {
    bh_host_pool it;
    void *piece;
    bh_status status = bh_host_pool_open(device, NULL, &it);
    expect(status, "bh_host_pool_open");
    if (status != BH_OK) return;
    status = bh_host_pool_take(it, 1000, S, &piece);
    expect(status, "bh_host_pool_take");
    if (status == BH_OK) expect(bh_host_pool_give(it, piece), "bh_host_pool_give");
    expect(bh_host_pool_release(it), "bh_host_pool_release");
}

static void sequence(void) {
    bh_sequence it;
    bh_buffer buffer;
    bh_ticket ticket;
    bh_status status = bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer);
    expect(status, "bh_buffer_alloc");
    if (status != BH_OK || bh_sequence_begin(device, NULL, &it) != BH_OK) return;
    status = bh_sequence_launch(it, kernels[FAKE_STORE], BH_GRID(1, 1),
                                BH_ARGS(BH_OUT(buffer), (uint32_t)WORDS, 1u), NULL, NULL);
    if (status == BH_OK) status = bh_sequence_finish(it);
    if (status == BH_OK) status = bh_sequence_submit(it, NULL, &ticket);
    expect(status, "a sequence");
    if (status == BH_OK) {
        ticket_watch(ticket);
        ticket_said(ticket, bh_wait(ticket, 60 * S));
    }
    expect(bh_sequence_release(it), "bh_sequence_release");
    expect(bh_buffer_release(buffer), "bh_buffer_release");
}

static void transfer(void) {
    static uint8_t bytes[3000];
    uint8_t back[3000];
    bh_buffer buffer;
    bh_status status = bh_buffer_alloc(device, BH_U8, sizeof bytes, NULL, &buffer);
    expect(status, "bh_buffer_alloc");
    if (status != BH_OK) return;
    memset(bytes, 5, sizeof bytes);
    status = bh_buffer_write(buffer, 0, bytes, sizeof bytes);
    expect(status, "bh_buffer_write");
    if (status == BH_OK) {
        status = bh_buffer_read(buffer, 0, back, sizeof back);
        expect(status, "bh_buffer_read");
        if (status == BH_OK && memcmp(bytes, back, sizeof back)) BUG("what is read is not written");
    }
    expect(bh_buffer_release(buffer), "bh_buffer_release");
}

static void look(void) {
    bh_preflight answer = BH_INIT(answer);
    uint64_t freed;
    expect(bh_launch_preflight(kernels[FAKE_STORE], BH_GRID(1, 1), NULL, NULL, &answer),
           "bh_launch_preflight");
    expect(bh_memory_trim(device, 0, &freed), "bh_memory_trim");
}

static void *calls(void *unused) {
    static void (*const all[])(void) = {load, dispatch, variable, pool, sequence, transfer, look};
    (void)unused;
    for (int i = 0; i < 3; i++) all[sim_pick(sizeof all / sizeof *all)]();
    return NULL;
}

void scenario_calls_close(void) {
    enum { CALLERS = 3 };
    pthread_t threads[CALLERS];
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = 50000;
    world_open_with(options);
    world_load_variable();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    for (int i = 0; i < CALLERS; i++) threads[i] = world_thread(calls, NULL);
    tickets_start();
    sim_sleep((uint64_t)1 << (8 + sim_pick(10)));
    OK(bh_device_close(device));
    for (int i = 0; i < CALLERS; i++) world_join(threads[i]);
    tickets_stop();
    sim_nothing_left();
}
