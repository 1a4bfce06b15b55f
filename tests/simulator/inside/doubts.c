/* SPDX-License-Identifier: Apache-2.0 */
/* Scenarios about doubt: which bytes may be half written, and who may read them. */
#include "scenarios.h"
#include "world.h"

static const uint32_t poison = 0xdead;

/* A buffer with poison in its first half, and suspect. */
static bh_buffer make_suspect(void) {
    bh_buffer buffer = world_buffer(WORDS, 0);
    bh_ticket ticket;
    OK(world_launch(FAKE_FAULT, (bh_lane){0}, buffer, poison, 0, &ticket));
    if (bh_wait(ticket, BH_FOREVER) != BH_E_FAULT) sim_fail(SIM_UNSUPPORTED, "it did not fault");
    if (!world_suspect(buffer)) BUG("a kernel faulted and what it wrote is not suspect");
    return buffer;
}

/* The bytes of a buffer that counts as intact must not come from the kernel that faulted. */
static void check_intact(bh_buffer buffer, const char *what) {
    uint32_t words[WORDS];
    if (bh_buffer_read(buffer, 0, words, sizeof words) != BH_OK) return;
    for (int i = 0; i < WORDS; i++)
        if (words[i] == poison)
            BUG("%s: suspect bytes are read from a buffer that is intact", what);
}

/* ---- an overwriting request is cancelled ---- */

void scenario_cancel_doubt(void) {
    const uint32_t zero = 0;
    bh_lane lane;
    bh_ticket running, fill, copy;
    world_open(0);
    bh_buffer suspect = make_suspect(), intact = world_buffer(WORDS, 0);
    bh_buffer scratch = world_buffer(WORDS, 0);
    world_wait_standby();
    OK(bh_lane_open(device, NULL, &lane));
    sim_device.longest_ns = 50000;
    sim_snapshot();
    OK(world_launch(FAKE_STORE, lane, scratch, 1, 0, &running));
    OK(bh_submit_fill(lane, suspect, 0, WORDS * 4, &zero, 4, &fill));
    OK(bh_submit_copy(lane, intact, 0, suspect, 0, WORDS * 4, &copy));
    bh_status cancel = bh_cancel(fill), after = bh_wait(copy, BH_FOREVER);
    if (cancel == BH_OK) {
        if (after == BH_OK) BUG("the fill was cancelled and the copy of suspect bytes is BH_OK");
        if (after != BH_E_STALE) BUG("the copy of suspect bytes is %s", bh_status_name(after));
        if (!world_suspect(suspect)) BUG("a cancelled fill cleared the doubt");
    } else if (after != BH_OK || world_suspect(suspect)) {
        BUG("the fill ran, and the copy behind it is %s", bh_status_name(after));
    }
    check_intact(intact, "cancel");
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- a cancel while memory is refused ---- */

void scenario_cancel_memory(void) {
    bh_lane lane;
    bh_ticket running, waiting;
    world_open(0);
    bh_buffer scratch = world_buffer(WORDS, 0);
    OK(bh_lane_open(device, NULL, &lane));
    sim_device.longest_ns = 50000;
    sim_snapshot();
    OK(world_launch(FAKE_STORE, lane, scratch, 1, 0, &running));
    OK(world_launch(FAKE_STORE, lane, scratch, 2, 0, &waiting));
    sim_refuse_memory(1 + (unsigned)sim_pick(2), false);
    bh_status cancel = bh_cancel(waiting);
    sim_refuse_memory(0, false);
    bh_status after = bh_wait(waiting, BH_FOREVER);
    if (cancel == BH_OK && after != BH_E_CANCELLED)
        BUG("bh_cancel returned BH_OK and the ticket is %s", bh_status_name(after));
    if (cancel != BH_OK && after != BH_OK)
        BUG("bh_cancel returned %s and the ticket is %s", bh_status_name(cancel),
            bh_status_name(after));
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- a cancelled writer of bytes that are not in doubt ---- */

void scenario_cancel_intact(void) {
    const uint32_t one = 1;
    bh_lane lane;
    bh_ticket running, fill, copy;
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer source = world_buffer(WORDS, 7), target = world_buffer(WORDS, 0);
    bh_buffer scratch = world_buffer(WORDS, 0);
    OK(bh_lane_open(device, NULL, &lane));
    sim_device.longest_ns = 50000;
    sim_snapshot();
    uint32_t got;
    OK(world_launch(FAKE_STORE, lane, scratch, 1, 0, &running));
    OK(bh_submit_fill(lane, source, 0, WORDS * 4, &one, 4, &fill));
    OK(bh_submit_copy(lane, target, 0, source, 0, WORDS * 4, &copy));
    bh_status cancel = bh_cancel(fill), after = bh_wait(copy, BH_FOREVER);
    if (after != BH_OK)
        BUG("a fill was cancelled and the copy of old bytes is %s", bh_status_name(after));
    OK(world_read(target, &got));
    if (got != (cancel == BH_OK ? 7u : 1u)) BUG("the copy has %u", got);
    if (world_suspect(source)) BUG("a cancelled fill made intact bytes suspect");
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- an overwriting request is refused by the worker ---- */

void scenario_refused_doubt(void) {
    bh_ticket refused, copy;
    world_open(0);
    bh_buffer suspect = make_suspect(), intact = world_buffer(WORDS, 0);
    world_wait_standby();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    OK(world_launch(FAKE_REFUSED, (bh_lane){0}, suspect, 1, 0, &refused));
    bh_status after = bh_submit_copy((bh_lane){0}, intact, 0, suspect, 0, WORDS * 4, &copy);
    bh_status status = bh_wait(refused, BH_FOREVER);
    if (after == BH_OK) after = bh_wait(copy, BH_FOREVER);
    if (status != BH_E_LAUNCH) BUG("a refused launch is %s", bh_status_name(status));
    if (!world_suspect(suspect)) BUG("a refused launch cleared the doubt about its target");
    if (after != BH_E_STALE) BUG("the copy of suspect bytes is %s", bh_status_name(after));
    check_intact(intact, "refusal");
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- a refused launch and a loss at the same time ---- */

void scenario_refused_loss(void) {
    enum { LANES = 3 };
    bh_ticket refused[LANES];
    bh_lane lanes[LANES];
    bh_buffer buffers[LANES];
    world_open(0);
    for (int i = 0; i < LANES; i++) {
        buffers[i] = world_buffer(WORDS, 0);
        OK(bh_lane_open(device, NULL, &lanes[i]));
    }
    world_wait_standby();
    sim_device.longest_ns = 20000;
    sim_snapshot();
    for (int i = 0; i < LANES; i++) {
        OK(world_launch(FAKE_REFUSED, lanes[i], buffers[i], 1, 0, &refused[i]));
        ticket_watch(refused[i]);
    }
    int worker = world_worker();
    sim_sleep(sim_pick(10000));
    sim_kill(worker);
    if (sim_chance(2)) sim_pause_process(0, sim_pick(2 * MS));
    for (int i = 0; i < LANES; i++) {
        bh_status status = bh_wait(refused[i], BH_FOREVER);
        ticket_said(refused[i], status);
        if (status == BH_OK) BUG("a launch that the device refused is BH_OK");
        if (status != BH_E_LAUNCH && status != BH_E_LOST)
            BUG("a launch that the device refused is %s", bh_status_name(status));
    }
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

/* ---- writes of several staging pieces ---- */

enum { LARGE = 5000 }; /* five pieces here */
static uint8_t large[LARGE];

static void check_pieces(bh_buffer buffer, uint8_t expected, const char *what) {
    static uint8_t got[LARGE];
    bh_status status;
    do status = bh_buffer_read(buffer, 0, got, LARGE); /* the crash may befall the read itself */
    while (status == BH_E_FAULT || status == BH_E_LOST);
    if (status != BH_OK) BUG("%s: the read is %s", what, bh_status_name(status));
    for (int i = 0; i < LARGE; i++)
        if (got[i] != expected) BUG("%s: byte %d is %u and not %u", what, i, got[i], expected);
}

static bh_buffer large_buffer(uint8_t value) {
    bh_buffer buffer;
    OK(bh_buffer_alloc(device, BH_U8, LARGE, NULL, &buffer));
    OK(bh_buffer_fill(buffer, 0, LARGE, &value, 1));
    return buffer;
}

void scenario_pieces_cancel(void) {
    bh_ticket running, write;
    world_open(BH_DEVICE_NO_STANDBY);
    bh_buffer buffer = large_buffer(1), scratch = world_buffer(WORDS, 0);
    memset(large, 2, sizeof large);
    sim_device.longest_ns = 100000;
    sim_snapshot();
    OK(world_launch(FAKE_STORE, (bh_lane){0}, scratch, 1, 0, &running));
    OK(bh_submit_write((bh_lane){0}, buffer, 0, large, LARGE, &write));
    sim_sleep(sim_pick(200000));
    bh_status cancel = bh_cancel(write), status = bh_wait(write, BH_FOREVER);
    if (cancel == BH_OK) {
        if (status != BH_E_CANCELLED) BUG("cancelled, and then %s", bh_status_name(status));
        check_pieces(buffer, 1, "a write that was cancelled");
    } else {
        if (cancel != BH_E_BUSY && cancel != BH_E_INVALID)
            BUG("cancel returned %s", bh_status_name(cancel));
        if (status != BH_OK) BUG("not cancelled, and then %s", bh_status_name(status));
        check_pieces(buffer, 2, "a write that was not cancelled");
    }
    OK(bh_device_close(device));
    sim_nothing_left();
}

void scenario_pieces_crash(void) {
    world_open(0);
    bh_buffer buffer = large_buffer(1);
    world_wait_standby();
    memset(large, 2, sizeof large);
    sim_device.longest_ns = 50000;
    sim_snapshot();
    int worker = world_worker();
    bh_ticket write;
    OK(bh_submit_write((bh_lane){0}, buffer, 0, large, LARGE, &write));
    ticket_watch(write);
    sim_sleep(sim_pick(300000));
    sim_crash(worker);
    bh_status status = bh_wait(write, BH_FOREVER);
    ticket_said(write, status);
    if (status == BH_OK)
        check_pieces(buffer, 2, "a write that is BH_OK");
    else if (status != BH_E_LOST && status != BH_E_FAULT)
        BUG("a write whose worker crashed is %s", bh_status_name(status));
    else if (!world_suspect(buffer))
        BUG("a write of several pieces was lost and its target is not suspect");
    OK(bh_device_close(device));
    tickets_ask();
    sim_nothing_left();
}

static void *writes_large(void *argument) {
    bh_buffer buffer = *(bh_buffer *)argument;
    bh_status status = bh_buffer_write(buffer, 0, large, LARGE);
    if (status == BH_OK) check_pieces(buffer, 2, "bh_buffer_write that returned BH_OK");
    return NULL;
}

/* bh_buffer_write waits a loss through, or says that it failed. */
void scenario_pieces_wait(void) {
    world_open(0);
    bh_buffer buffer = large_buffer(1);
    world_wait_standby();
    memset(large, 2, sizeof large);
    sim_device.longest_ns = 50000;
    sim_snapshot();
    int worker = world_worker();
    pthread_t writer = world_thread(writes_large, &buffer);
    sim_sleep(sim_pick(300000));
    sim_crash(worker);
    world_join(writer);
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* A submission of several pieces that fails in the middle has written no ticket. */
void scenario_pieces_ticket(void) {
    bh_device_options options = world_options(BH_DEVICE_NO_STANDBY);
    options.flags &= ~(uint32_t)BH_DEVICE_NO_RESTART_LIMIT;
    options.restart_limit = 1;
    world_open_with(options);
    bh_buffer buffer = large_buffer(1);
    sim_device.longest_ns = 20000;
    sim_snapshot();
    int worker = world_worker();
    bh_ticket write = {77, 88};
    sim_kill(worker);
    sim_sleep(sim_pick(5 * MS));
    worker = world_worker();
    if (worker) sim_kill(worker);
    bh_status status = bh_submit_write((bh_lane){0}, buffer, 0, large, LARGE, &write);
    if (status != BH_OK && (write.lane != 77 || write.sequence != 88))
        BUG("a submission returned %s and has written a ticket", bh_status_name(status));
    OK(bh_device_close(device));
    sim_nothing_left();
}

/* ---- a lost read: it cannot be sent again, as a later request may have changed its source ---- */

void scenario_read_lost(void) {
    void *memory;
    sim_device.queues = true;
    world_open(0);
    bh_buffer buffer = large_buffer(1);
    OK(bh_host_alloc(device, LARGE, &memory));
    world_wait_standby();
    sim_device.longest_ns = 4 * MS;
    sim_snapshot();
    bh_ticket read, fill;
    const uint8_t two = 2;
    OK(bh_submit_read((bh_lane){0}, buffer, 0, memory, LARGE, &read));
    OK(bh_submit_fill((bh_lane){0}, buffer, 0, LARGE, &two, 1, &fill));
    sim_sleep(sim_pick(2 * MS));
    sim_kill(world_worker());
    bh_status status = bh_wait(read, BH_FOREVER);
    sim_note("the read is %s", bh_status_name(status));
    if (status != BH_OK) {
        memset(memory, 9, LARGE);
        sim_sleep(10 * MS);
        for (int i = 0; i < LARGE; i++)
            if (((uint8_t *)memory)[i] != 9)
                BUG("byte %d of a read's target was written after its ticket said %s", i,
                    bh_status_name(status));
    }
    OK(bh_device_close(device));
    sim_nothing_left();
}
