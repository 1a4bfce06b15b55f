/* SPDX-License-Identifier: Apache-2.0 */
/* Closing a device while other threads are in the middle of a call that waits for its worker. */
#include <signal.h>

#include "../support/support.h"

enum { ROUNDS = 12 };

/* The close must not wait for anybody but the work, and it is told how long. */
static void close_soon(bh_device device) {
    uint64_t began = now_ns();
    CHECK_OK(bh_device_close(device));
    CHECK_LT(now_ns() - began, 5000 * MS * test_time_scale());
}

/* A module that was given up while one of its kernels was running, and can go now. */
static void leave_module_behind(const rig *r) {
    bh_lane lane = open_lane(r->device);
    rig second = {r->device, load_module(r->device, ptx_basic)};
    gate g = gate_close(&second, lane, 0);
    flag_wait_begun(g.flag);
    REQUIRE_OK(bh_module_release(second.module));
    gate_open(&g);
    REQUIRE_OK(bh_wait(g.ticket, LONG_NS));
}

static rig open_with_module_behind(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.close_timeout_ns = 20 * MS;
    rig r = rig_open_with(&options);
    leave_module_behind(&r);
    return r;
}

typedef struct late_call {
    rig r;
    bool compiles;
    _Atomic bool begun;
    bh_status status;
    bh_ticket ticket;
} late_call;

static void *call_late(void *argument) {
    late_call *self = argument;
    bh_module module;
    atomic_store(&self->begun, true);
    self->status =
        self->compiles
            ? bh_submit_compile(self->r.device, "extern \"C\" __global__ void k() {}", NULL,
                                &module, &self->ticket)
            : bh_submit_load(self->r.device, ptx_basic, strlen(ptx_basic), &module, &self->ticket);
    return NULL;
}

/* The worker is stopped: neither the module behind is unloaded nor the next one loaded before the
 * close begins. Nobody waits for the worker but the close, and what was accepted gets an answer. */
static void close_under(bool compiles) {
    for (int i = 0; i < ROUNDS; i++) {
        late_call call = {.r = open_with_module_behind(), .compiles = compiles};
        REQUIRE_EQ(kill(health_of(call.r.device).worker_pid, SIGSTOP), 0);
        pthread_t thread;
        REQUIRE_EQ(pthread_create(&thread, NULL, call_late, &call), 0);
        while (!atomic_load(&call.begun)) sleep_ms(1);
        sleep_ms(20);
        close_soon(call.r.device);
        pthread_join(thread, NULL);
        /* On a busy machine the thread may get to the device only when that is gone. */
        if (call.status == BH_OK) {
            bh_status answer = bh_wait(call.ticket, 0);
            CHECK(answer != BH_OK && answer != BH_E_BUSY);
        } else if (call.status != BH_E_INVALID) {
            CHECK_STATUS(call.status, BH_E_STOPPED);
        }
    }
}

TEST(a_load_behind_a_module_that_goes) {
    close_under(false);
}

TEST(a_compile_behind_a_module_that_goes) {
    close_under(true);
}
