/* SPDX-License-Identifier: Apache-2.0 */
/* What scenarios have in common. */
#include "world.h"

#include <stdio.h>

bh_device device;
bh_module module, variable_module;
bh_kernel kernels[FAKE_KERNELS];
sim_device_faults sim_device;

void world_ok(bh_status status, const char *call, int line) {
    bh_error error;
    if (status == BH_OK) return;
    bh_last_error(&error);
    sim_fail(SIM_UNSUPPORTED, "line %d: %s returned %s: %s", line, call, bh_status_name(status),
             error.message);
}

bh_device_options world_options(uint32_t flags) {
    bh_device_options options = BH_INIT(options);
    options.device = sim_device.queues ? "cuda" : "cpu";
    options.flags = flags | BH_DEVICE_NO_RESTART_LIMIT;
    options.quarantine_after = 1000000;
    options.queue_length = 64;
    return options;
}

void world_open_with(bh_device_options options) {
    static const char *const names[] = {"store",   "add",   "copy", "fault", "endless",
                                        "refused", "crash", "get",  "set"};
    static const char image[] = FAKE_IMAGE;
    OK(bh_device_open(&options, &device));
    OK(bh_module_load(device, image, sizeof image, &module));
    for (int i = 0; i < FAKE_KERNELS; i++) OK(bh_kernel_get(module, names[i], &kernels[i]));
}

void world_open(uint32_t flags) {
    world_open_with(world_options(flags));
}

void world_load_variable(void) {
    static const char image[] = FAKE_VARIABLE;
    OK(bh_module_load(device, image, sizeof image, &variable_module));
}

void world_load_constant(void) {
    static const char image[] = FAKE_CONSTANT;
    OK(bh_module_load(device, image, sizeof image, &variable_module));
}

void world_wait_standby(void) {
    OK(bh_device_wait_standby(device, BH_FOREVER));
}

int world_worker(void) {
    bh_health health = BH_INIT(health);
    return bh_device_get_health(device, &health) == BH_OK ? health.worker_pid : 0;
}
int world_standby(void) {
    bh_health health = BH_INIT(health);
    return bh_device_get_health(device, &health) == BH_OK ? health.standby_pids[0] : 0;
}

bh_buffer world_buffer(uint32_t words, uint32_t value) {
    bh_buffer buffer;
    OK(bh_buffer_alloc(device, BH_U32, words, NULL, &buffer));
    OK(bh_buffer_fill(buffer, 0, (uint64_t)words * 4, &value, 4));
    return buffer;
}

bh_status world_launch(int kernel, bh_lane lane, bh_buffer target, uint32_t value, uint32_t flags,
                       bh_ticket *out) {
    bh_launch_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = flags;
    if (kernel == FAKE_ADD)
        return bh_launch(kernels[kernel], BH_GRID(1, 1),
                         BH_ARGS(BH_INOUT(target), (uint32_t)WORDS, value), &options, out);
    return bh_launch(kernels[kernel], BH_GRID(1, 1),
                     BH_ARGS(BH_OUT(target), (uint32_t)WORDS, value), &options, out);
}

void world_was_smooth(uint64_t start) {
    bh_health health = BH_INIT(health);
    OK(bh_device_get_health(device, &health));
    if (health.losses)
        BUG("%llu workers were lost where nothing goes wrong", (unsigned long long)health.losses);
    if (sim_now() - start > 2 * S)
        BUG("it took %.1f s where nothing goes wrong", (double)(sim_now() - start) / 1e9);
}

bool world_suspect(bh_buffer buffer) {
    bh_buffer_info info = BH_INIT(info);
    OK(bh_buffer_get_info(buffer, &info));
    return info.suspect;
}

bh_status world_read(bh_buffer buffer, uint32_t *out) {
    uint32_t words[WORDS];
    bh_status status = bh_buffer_read(buffer, 0, words, sizeof words);
    for (int i = 1; status == BH_OK && i < WORDS; i++)
        if (words[i] != words[0])
            BUG("a read that succeeded has words %u and %u of two writers", words[0], words[i]);
    *out = words[0];
    return status;
}

pthread_t world_thread(void *(*body)(void *), void *argument) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument)) sim_fail(SIM_UNSUPPORTED, "no thread");
    return thread;
}
void world_join(pthread_t thread) {
    pthread_join(thread, NULL);
}

/* ---- tickets ---- */

enum { MAX_TICKETS = 256 };
static struct {
    bh_ticket ticket;
    _Atomic bh_status status; /* the first that was final */
    _Atomic bool whole;
} watched[MAX_TICKETS];
static _Atomic unsigned watched_count;
static _Atomic bool asking;
static pthread_t asker;

bool is_final(bh_status status) {
    return status != BH_E_BUSY && status != BH_E_TIMEOUT;
}

void ticket_watch(bh_ticket ticket) {
    unsigned index = atomic_fetch_add(&watched_count, 1);
    if (index >= MAX_TICKETS) sim_fail(SIM_UNSUPPORTED, "too many tickets are watched");
    watched[index].ticket = ticket;
    atomic_store(&watched[index].status, BH_E_BUSY);
    atomic_store(&watched[index].whole, true);
}

static void check(unsigned index, bh_status before, bh_status said) {
    if (is_final(before)) {
        if (said != before)
            BUG("a ticket said %s, then %s", bh_status_name(before), bh_status_name(said));
    } else if (is_final(said)) {
        bh_status expected = BH_E_BUSY;
        if (!atomic_compare_exchange_strong(&watched[index].status, &expected, said) &&
            expected != said)
            BUG("a ticket said %s to one thread and %s to another", bh_status_name(expected),
                bh_status_name(said));
    }
}

void ticket_said(bh_ticket ticket, bh_status status) {
    unsigned count = atomic_load(&watched_count);
    for (unsigned i = 0; i < count && i < MAX_TICKETS; i++) {
        if (!atomic_load(&watched[i].whole) || watched[i].ticket.lane != ticket.lane ||
            watched[i].ticket.sequence != ticket.sequence)
            continue;
        check(i, atomic_load(&watched[i].status), status);
        return;
    }
}

void tickets_ask(void) {
    unsigned count = atomic_load(&watched_count);
    for (unsigned i = 0; i < count && i < MAX_TICKETS; i++) {
        if (!atomic_load(&watched[i].whole)) continue;
        bh_status before = atomic_load(&watched[i].status);
        check(i, before, bh_wait(watched[i].ticket, 0));
    }
}

static void *ask_all(void *unused) {
    (void)unused;
    /* Less and less often: a wait may be long, and every question costs steps. */
    for (uint64_t pause = 20000; atomic_load(&asking); pause += pause / 8) {
        tickets_ask();
        sim_sleep(sim_pick(pause) + 1);
    }
    return NULL;
}

void tickets_start(void) {
    atomic_store(&asking, true);
    asker = world_thread(ask_all, NULL);
}
void tickets_stop(void) {
    atomic_store(&asking, false);
    world_join(asker);
    tickets_ask();
}

/* ---- callbacks ---- */

enum { MAX_CALLBACKS = 128 };
static struct {
    bh_ticket ticket;
    _Atomic bool taken;
    _Atomic int runs;
    _Atomic bh_status told;
} callbacks[MAX_CALLBACKS];
static _Atomic unsigned callback_count;

static void on_done(void *context, bh_ticket ticket, bh_status status) {
    unsigned index = (unsigned)(uintptr_t)context;
    if (ticket.lane != callbacks[index].ticket.lane ||
        ticket.sequence != callbacks[index].ticket.sequence)
        BUG("a callback was told of another ticket");
    atomic_store(&callbacks[index].told, status);
    atomic_fetch_add(&callbacks[index].runs, 1);
}

void callback_register(bh_ticket ticket) {
    unsigned index = atomic_fetch_add(&callback_count, 1);
    if (index >= MAX_CALLBACKS) return;
    callbacks[index].ticket = ticket;
    bh_status status = bh_on_done(ticket, on_done, (void *)(uintptr_t)index);
    atomic_store(&callbacks[index].taken, status == BH_OK);
}

void callbacks_check(void) {
    unsigned count = atomic_load(&callback_count);
    for (unsigned i = 0; i < count && i < MAX_CALLBACKS; i++) {
        int runs = atomic_load(&callbacks[i].runs), taken = atomic_load(&callbacks[i].taken);
        if (runs != taken)
            BUG("a callback that was %s ran %d times", taken ? "taken" : "refused", runs);
        bh_status says = bh_wait(callbacks[i].ticket, 0), told = atomic_load(&callbacks[i].told);
        if (runs && says != told)
            BUG("a callback was told %s and the ticket says %s", bh_status_name(told),
                bh_status_name(says));
    }
}
