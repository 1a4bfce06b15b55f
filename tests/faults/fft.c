/* SPDX-License-Identifier: Apache-2.0 */
/* Losses and deadlines in the middle of library calls that take long: Fourier transforms. */
#include <bulkhead/fft.h>
#include <signal.h>

#include "../support/support.h"

enum { LARGE = 1 << 21, SMALL = 64 }; /* LARGE takes longer than a kill or a deadline */

typedef struct transforms {
    bh_device device;
    bh_buffer in, out;             /* of LARGE */
    bh_buffer small_in, small_out; /* of SMALL */
} transforms;

static bh_buffer ones(bh_device device, uint64_t count) {
    static const double one[2] = {1, 0};
    bh_buffer made;
    REQUIRE_OK(bh_buffer_alloc(device, BH_C128, count, NULL, &made));
    REQUIRE_OK(bh_buffer_fill(made, 0, BH_WHOLE, one, sizeof one));
    return made;
}

static transforms open_transforms(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_RESTART_LIMIT);
    transforms t;
    options.libraries = BH_LIBRARY_FFT;
    t.device = open_device_with(&options);
    bh_status status = bh_library_load(t.device, BH_LIBRARY_FFT);
    if (status == BH_E_UNSUPPORTED) SKIP("%s", bh_last_message());
    REQUIRE_OK(status);
    t.in = ones(t.device, LARGE);
    t.out = ones(t.device, LARGE);
    t.small_in = ones(t.device, SMALL);
    t.small_out = ones(t.device, SMALL);
    return t;
}

static bh_fft large(const transforms *t) {
    return bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(t->in, LARGE), bh_array_1d(t->out, LARGE), 1);
}

/* The library is there again, and transforms are right: of ones, a single point. */
static void check_transforms_work(const transforms *t) {
    const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};
    double values[2 * SMALL];
    bh_fft small = bh_fft_c2c(BH_FFT_FORWARD, bh_array_1d(t->small_in, SMALL),
                              bh_array_1d(t->small_out, SMALL), 1);
    CHECK_OK(bh_submit(&small.request, &waits, NULL));
    REQUIRE_OK(bh_buffer_read(t->small_out, 0, values, sizeof values));
    for (int i = 0; i < SMALL; i++) CHECK_NEAR(values[2 * i], i == 0 ? SMALL : 0, 1e-9);
}

TEST(a_worker_killed_in_the_middle_of_a_transform) {
    transforms t = open_transforms();
    int lost = 0;
    for (int round = 0; round < 3; round++) {
        bh_ticket ticket;
        bh_fft call = large(&t);
        wait_standby(t.device);
        REQUIRE_OK(bh_submit(&call.request, NULL, &ticket));
        sleep_ms(15);
        REQUIRE(kill(health_of(t.device).worker_pid, SIGKILL) == 0);
        bh_status status = bh_wait(ticket, LONG_NS);
        if (status != BH_OK) CHECK_EQ(status, BH_E_LOST);
        lost += status == BH_E_LOST;
        CHECK_EQ(is_suspect(t.out), status != BH_OK);
        CHECK_EQ(is_suspect(t.in), 0);
        CHECK_OK(bh_buffer_accept(t.out));
        check_transforms_work(&t);
    }
    CHECK_GE(lost, 1);
    CHECK_OK(bh_device_close(t.device));
}

TEST(a_worker_killed_in_the_middle_of_a_transform_in_place) {
    transforms t = open_transforms();
    bh_ticket ticket;
    bh_fft call = large(&t);
    call.output = call.input;
    wait_standby(t.device);
    REQUIRE_OK(bh_submit(&call.request, NULL, &ticket));
    sleep_ms(15);
    REQUIRE(kill(health_of(t.device).worker_pid, SIGKILL) == 0);
    bh_status status = bh_wait(ticket, LONG_NS);
    if (status != BH_OK) CHECK_EQ(status, BH_E_LOST);
    CHECK_EQ(is_suspect(t.in), status != BH_OK);
    check_transforms_work(&t);
    CHECK_OK(bh_device_close(t.device));
}

TEST(a_deadline_in_the_middle_of_a_transform) {
    transforms t = open_transforms();
    bh_submit_options hurry = {.size = sizeof hurry, .deadline_ns = 10 * MS};
    bh_ticket ticket;
    bh_fft call = large(&t);
    wait_standby(t.device);
    REQUIRE_OK(bh_submit(&call.request, &hurry, &ticket));
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_DEADLINE);
    CHECK(is_suspect(t.out));
    CHECK_EQ(is_suspect(t.in), 0);
    check_transforms_work(&t);
    CHECK_OK(bh_device_close(t.device));
}
