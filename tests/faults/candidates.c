/* SPDX-License-Identifier: Apache-2.0 */
/* Who is a candidate where the device does not say which request it was: kernels for what it has a
 * code for; transfers too if nothing else was running, or if the worker crashed. */
#include <signal.h>

#include "../support/control.h"

enum { BYTES = 512 << 20, VALUE = 7, ILLEGAL_ADDRESS = 700 };

typedef struct scene {
    rig r;
    bh__area *area;
    gate gate;
    bh_buffer filled;
    bh_ticket fill;
} scene;

/* A fill that takes long runs on one lane and, if asked for, a kernel that waits on another. */
static scene scene_begin(bool with_kernel) {
    scene s = {.r = rig_open(BH_DEVICE_NO_STANDBY)};
    if (!is_cpu(s.r.device)) SKIP("a GPU is done with the fill too soon");
    bh_lane first = open_lane(s.r.device), second = open_lane(s.r.device);
    if (with_kernel) s.gate = gate_close(&s.r, first, 0);
    const uint8_t value = VALUE;
    s.area = area_at(control_block(), 0);
    REQUIRE_OK(bh_buffer_alloc(s.r.device, BH_U8, BYTES, NULL, &s.filled));
    REQUIRE_OK(bh_submit_fill(second, s.filled, 0, BYTES, &value, 1, &s.fill));
    _Atomic uint64_t *claim = &s.area->lane[2].claim;
    uint64_t limit = now_ns() + LONG_NS;
    while (bh__claim_position(atomic_load(claim)) < s.fill.sequence) REQUIRE(now_ns() < limit);
    CHECK_STATUS(bh_wait(s.fill, 0), BH_E_BUSY);
    return s;
}

/* The worker says that its device faulted, and no more; then it is gone. */
static void device_faults(const scene *s) {
    bh__report *fault = &s->area->fault;
    memset(fault, 0, sizeof *fault);
    fault->device_code = ILLEGAL_ADDRESS;
    snprintf(fault->device_name, sizeof fault->device_name, "ILLEGAL_ADDRESS");
    snprintf(fault->message, sizeof fault->message, "the device reports a fault");
    snprintf(fault->fix, sizeof fault->fix, "mend it");
    atomic_store(&s->area->fault_state, BH__FAULT_SET);
    kill_worker(s->r.device, SIGKILL);
}

static bh_error blamed(bh_ticket ticket, uint32_t certain) {
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_EQ(error.certain, certain);
    return error;
}

TEST(a_kernel_is_blamed_for_a_fault_and_a_transfer_beside_it_goes_through) {
    scene s = scene_begin(true);
    device_faults(&s);
    CHECK_STR_EQ(blamed(s.gate.ticket, 1).kernel, "gate");
    uint8_t last = 0;
    CHECK_OK(bh_wait(s.fill, LONG_NS));
    CHECK_OK(bh_buffer_read(s.filled, BYTES - 1, &last, 1));
    CHECK_EQ(last, VALUE);
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(a_transfer_is_blamed_for_a_fault_if_nothing_else_was_running) {
    scene s = scene_begin(false);
    device_faults(&s);
    CHECK_STR_CONTAINS(blamed(s.fill, 1).message, "a fill (request ");
    CHECK(is_suspect(s.filled));
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(a_transfer_is_a_candidate_where_the_worker_crashed) {
    scene s = scene_begin(true);
    kill_worker(s.r.device, crash_signal());
    CHECK_STR_CONTAINS(blamed(s.gate.ticket, 0).message, "a fill");
    CHECK_STR_CONTAINS(blamed(s.fill, 0).message, "gate");
    CHECK_OK(bh_device_close(s.r.device));
}
