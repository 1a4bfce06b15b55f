/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios about losing workers: killed, crashing, stopped, or silent. */
#include "scenarios.h"
#include "world.h"

/* ---- work while workers are killed ---- */

static void *works(void *argument) {
    uint32_t number = (uint32_t)(uintptr_t)argument, got;
    bh_buffer buffer;
    bh_lane lane;
    bh_status status;
    do status = bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer);
    while (status == BH_E_LOST);
    OK(status);
    do status = bh_lane_open(device, NULL, &lane);
    while (status == BH_E_LOST);
    OK(status);
    for (uint32_t i = 0; i < 6; i++) {
        bh_ticket ticket;
        uint32_t value = number * 100 + i, flags = sim_chance(2) ? BH_SUBMIT_IDEMPOTENT : 0;
        if (world_launch(FAKE_STORE, lane, buffer, value, flags, &ticket) != BH_OK) continue;
        ticket_watch(ticket);
        status = bh_wait(ticket, BH_FOREVER);
        ticket_said(ticket, status);
        if (status != BH_OK) continue;
        status = world_read(buffer, &got);
        if (status == BH_OK && got != value) BUG("%u was stored and %u is read", value, got);
    }
    return NULL;
}

static void work_under_kills(bool queues) {
    sim_device.queues = queues;
    world_open(0);
    world_wait_standby();
    sim_device.longest_ns = 30000;
    sim_snapshot();
    pthread_t a = world_thread(works, (void *)1), b = world_thread(works, (void *)2);
    for (int i = 0; i < 2; i++) {
        sim_sleep(sim_pick(200000));
        sim_kill(world_worker());
    }
    world_join(a);
    world_join(b);
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

void scenario_kills(void) {
    work_under_kills(false);
}
void scenario_kills_queued(void) {
    work_under_kills(true);
}

/* ---- a fault on one lane while another one works: its worker is still dying ---- */

static void *faults(void *unused) {
    (void)unused;
    bh_buffer buffer;
    bh_status status;
    do status = bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer);
    while (status == BH_E_LOST);
    for (int i = 0; i < 2; i++) {
        bh_ticket ticket;
        int kernel = sim_chance(3) ? FAKE_CRASH : FAKE_FAULT;
        if (world_launch(kernel, (bh_lane){0}, buffer, 1, 0, &ticket) != BH_OK) continue;
        status = bh_wait(ticket, BH_FOREVER);
        if (status == BH_OK) BUG("a kernel that faulted is BH_OK");
    }
    return NULL;
}

static void take_over(bool queues) {
    bh_lane lane;
    sim_device.queues = queues;
    world_open(0);
    bh_buffer buffer = world_buffer(WORDS, 0);
    OK(bh_lane_open(device, NULL, &lane));
    world_wait_standby();
    sim_device.longest_ns = 60000;
    sim_snapshot();
    pthread_t other = world_thread(faults, NULL);
    for (uint32_t i = 1; i < 6; i++) {
        bh_ticket ticket;
        uint32_t got;
        if (world_launch(FAKE_STORE, lane, buffer, i, BH_SUBMIT_IDEMPOTENT, &ticket) != BH_OK)
            continue;
        bh_status status = bh_wait(ticket, BH_FOREVER);
        /* On a device with queues it can be one of several candidates. */
        if (status != BH_OK && status != BH_E_FAULT)
            BUG("an idempotent launch is %s", bh_status_name(status));
        if (status == BH_OK && world_read(buffer, &got) == BH_OK && got != i)
            BUG("%u was stored and %u is read", i, got);
    }
    world_join(other);
    OK(bh_device_close(device));
    sim_nothing_left();
}

void scenario_takeover(void) {
    take_over(false);
}
void scenario_takeover_queued(void) {
    take_over(true);
}

/* ---- a module's variable against a loss ---- */

static void *writes_variable(void *unused) {
    (void)unused;
    for (uint32_t value = 1; value < 4; value++) {
        uint32_t got = 0;
        bh_status status = bh_module_global_write(variable_module, "var", 0, &value, sizeof value);
        if (status != BH_OK) continue;
        do status = bh_module_global_read(variable_module, "var", 0, &got, sizeof got);
        while (status == BH_E_LOST);
        if (status == BH_OK && got != value)
            BUG("%u was written to a variable with BH_OK and %u is read", value, got);
    }
    return NULL;
}

void scenario_global_write(void) {
    world_open(0);
    world_load_variable();
    world_wait_standby();
    sim_snapshot();
    int worker = world_worker();
    pthread_t writer = world_thread(writes_variable, NULL);
    sim_sleep(sim_pick(100000));
    sim_kill(worker);
    world_join(writer);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* What the program set and a kernel changed is gone with the worker: that must not go unnoticed. */
void scenario_global_changed(void) {
    uint32_t bytes[4] = {1, 0, 0, 0}, got = 0;
    bh_ticket ticket;
    bh_kernel set;
    world_open(0);
    world_load_variable();
    OK(bh_kernel_get(variable_module, "set", &set));
    OK(bh_module_global_write(variable_module, "var", 0, bytes, sizeof bytes));
    OK(bh_launch(set, BH_GRID(1, 1), BH_ARGS(2u), NULL, &ticket));
    OK(bh_wait(ticket, BH_FOREVER));
    world_wait_standby();
    sim_snapshot();
    sim_kill(world_worker());
    bh_status status;
    do status = bh_module_global_read(variable_module, "var", 0, &got, sizeof got);
    while (status == BH_E_LOST);
    if (status == BH_OK && got != 2)
        BUG("a kernel set a variable to 2; after a loss it is %u and nothing says so", got);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- launches, sequences and writes of a variable, in order ---- */

enum { READERS = 4 };

typedef struct reader {
    bh_buffer buffer;
    bh_sequence sequence;
    bh_ticket ticket;
    uint32_t expected;
    bool submitted;
} reader;

static void reader_open(reader *self, bh_kernel get) {
    self->buffer = world_buffer(WORDS, 99);
    OK(bh_sequence_begin(device, NULL, &self->sequence));
    OK(bh_sequence_launch(self->sequence, get, BH_GRID(1, 1),
                          BH_ARGS(BH_OUT(self->buffer), (uint32_t)WORDS), NULL, NULL));
    OK(bh_sequence_finish(self->sequence));
}

static void reader_submit(reader *self, bh_kernel get, bh_lane lane) {
    uint32_t flags = sim_chance(2) ? BH_SUBMIT_IDEMPOTENT : 0;
    bh_launch_options there = BH_INIT(there);
    bh_submit_options replay = BH_INIT(replay);
    there.lane = replay.lane = lane;
    there.flags = replay.flags = flags;
    bh_status status = sim_chance(3) ? bh_sequence_submit(self->sequence, &replay, &self->ticket)
                                     : bh_launch(get, BH_GRID(1, 1),
                                                 BH_ARGS(BH_OUT(self->buffer), (uint32_t)WORDS),
                                                 &there, &self->ticket);
    self->submitted = status == BH_OK;
}

static void *kills_twice(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        sim_sleep(sim_pick(200000));
        sim_kill(world_worker());
    }
    return NULL;
}

/* A write waits for readers on all lanes. One that is sent again, or runs on the next worker, finds
 * what it would have found on the lost one. */
static void order_under_kills(bool queues) {
    reader readers[READERS];
    bh_lane lanes[2] = {{0}};
    bh_kernel get;
    uint32_t now = 0, got;
    sim_device.queues = queues;
    world_open(0);
    world_load_constant();
    OK(bh_kernel_get(variable_module, "get", &get));
    OK(bh_lane_open(device, NULL, &lanes[1]));
    for (int i = 0; i < READERS; i++) reader_open(&readers[i], get);
    world_wait_standby();
    sim_device.longest_ns = 30000;
    sim_snapshot();
    pthread_t killer = world_thread(kills_twice, NULL);
    for (uint32_t i = 0; i < READERS; i++) {
        readers[i].expected = now;
        reader_submit(&readers[i], get, lanes[sim_pick(2)]);
        uint32_t value = i + 1;
        if (sim_chance(4)) continue;
        bh_status status = bh_module_global_write(variable_module, "var", 0, &value, sizeof value);
        if (status == BH_OK) now = value;
    }
    for (int i = 0; i < READERS; i++) {
        const reader *self = &readers[i];
        if (!self->submitted || bh_wait(self->ticket, BH_FOREVER) != BH_OK) continue;
        if (world_read(self->buffer, &got) == BH_OK && got != self->expected)
            BUG("a variable was %u when reader %d was submitted, and it saw %u", self->expected, i,
                got);
    }
    world_join(killer);
    OK(bh_device_close(device));
    sim_nothing_left();
}

void scenario_global_order(void) {
    order_under_kills(false);
}
void scenario_global_order_queued(void) {
    order_under_kills(true);
}

/* ---- host memory that is freed while a worker is lost ---- */

void scenario_host_free_loss(void) {
    void *kept, *freed;
    bh_ticket running, read;
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = world_buffer(WORDS, 3), scratch = world_buffer(WORDS, 0);
    OK(bh_host_alloc(device, 4096, &kept));
    OK(bh_host_alloc(device, 4096, &freed));
    sim_device.longest_ns = 100000;
    sim_snapshot();
    int worker = world_worker();
    OK(world_launch(FAKE_STORE, (bh_lane){0}, scratch, 1, BH_SUBMIT_IDEMPOTENT, &running));
    OK(bh_submit_read((bh_lane){0}, buffer, 0, freed, WORDS * 4, &read));
    sim_sleep(sim_pick(50000));
    sim_kill(worker);
    (void)bh_host_free(device, freed);
    bh_status status = bh_wait(read, BH_FOREVER);
    if (status != BH_OK && status != BH_E_LOST)
        BUG("a queued read into memory that was freed later is %s", bh_status_name(status));
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- chunks given back while a standby starts ---- */

void scenario_trim_standby(void) {
    enum { LARGE = 3 };
    bh_buffer large[LARGE];
    uint64_t freed;
    world_open(0);
    for (int i = 0; i < LARGE; i++) OK(bh_buffer_alloc(device, BH_U8, 5 << 20, NULL, &large[i]));
    world_wait_standby();
    sim_snapshot();
    sim_kill(sim_chance(2) ? world_standby() : world_worker());
    /* The next standby is told of the chunks meanwhile. */
    for (int i = 0; i < LARGE; i++) {
        sim_sleep((uint64_t)1 << (10 + sim_pick(20)));
        OK(bh_buffer_release(large[i]));
        if (sim_chance(4)) (void)bh_memory_trim(device, 0, &freed);
        /* A chunk that is too small for this goes when another one is made. */
        bh_buffer larger;
        if (bh_buffer_alloc(device, BH_U8, (uint64_t)(6 + i) << 20, NULL, &larger) == BH_OK)
            OK(bh_buffer_release(larger));
    }
    bh_status status = bh_device_wait_standby(device, 60 * S);
    if (status != BH_OK) BUG("there is no standby after 60 s: %s", bh_status_name(status));
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- refused memory ---- */

void scenario_no_memory(void) {
    world_open(0);
    world_wait_standby();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    sim_refuse_memory(20 + (unsigned)sim_pick(200), sim_chance(3));
    bh_lane lane = {0};
    bh_buffer buffer = {0};
    const uint32_t five = 5;
    for (int i = 0; i < 6; i++) {
        bh_ticket ticket;
        void *memory;
        if (!lane.id) (void)bh_lane_open(device, NULL, &lane);
        if (!buffer.id) (void)bh_buffer_alloc(device, BH_U32, WORDS, NULL, &buffer);
        if (!buffer.id) continue;
        if (bh_submit_fill(lane, buffer, 0, WORDS * 4, &five, 4, &ticket) == BH_OK) {
            ticket_watch(ticket);
            ticket_said(ticket, bh_wait(ticket, BH_FOREVER));
        }
        if (bh_host_alloc(device, 4096, &memory) == BH_OK) (void)bh_host_free(device, memory);
        if (sim_chance(3)) sim_kill(world_worker());
        uint32_t got;
        bh_status status = world_read(buffer, &got);
        if (status == BH_E_INTERNAL) BUG("a read is BH_E_INTERNAL where memory is refused");
    }
    sim_refuse_memory(0, false);
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}
