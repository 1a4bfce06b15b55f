/* SPDX-License-Identifier: Apache-2.0 */
/* Library calls and losses: a worker that is lost before, during and after them. */
#include "../support/blas.h"
#include "../support/kernels.h"

#include <signal.h>
#include <string.h>

enum { N = 64, LARGE = 3000 };

static const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};

static bh_buffer filled(bh_device device, float value, uint64_t count) {
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_F32, count, NULL, &buffer));
    REQUIRE_OK(bh_buffer_fill(buffer, 0, BH_WHOLE, &value, sizeof value));
    return buffer;
}

static float first(bh_buffer buffer) {
    float value;
    REQUIRE_OK(bh_buffer_read(buffer, 0, &value, sizeof value));
    return value;
}

static bh_blas square(bh_buffer a, bh_buffer b, bh_buffer c, uint64_t n) {
    return bh_blas_gemm(1, bh_matrix_of(a, n, n), bh_matrix_of(b, n, n), 0, bh_matrix_of(c, n, n));
}

TEST_TIMEOUT(the_next_worker_has_the_library, 60) {
    bh_device device = open_blas_device();
    bh_buffer a = filled(device, 1, N * N), c = filled(device, 0, N * N);
    bh_blas call = square(a, a, c, N);
    for (int i = 0; i < 5; i++) {
        REQUIRE_OK(bh_submit(&call.request, &waits, NULL));
        CHECK_EQ(first(c), N);
        kill_worker(device, SIGKILL);
        /* What is in flight meanwhile is lost or done, never wrong. */
        bh_ticket ticket;
        bh_status status = bh_submit(&call.request, NULL, &ticket);
        REQUIRE_OK(status);
        status = bh_wait(ticket, BH_FOREVER);
        CHECK(status == BH_OK || status == BH_E_LOST);
        if (status == BH_E_LOST) CHECK_OK(bh_buffer_accept(c));
    }
    REQUIRE_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_EQ(first(c), N);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(a_stream_of_calls_survives_kills_if_it_may_be_repeated, 60) {
    bh_device device = open_blas_device();
    bh_buffer a = filled(device, 1, N * N), b = filled(device, 0, N * N);
    bh_blas call = square(a, a, b, N);
    bh_submit_options again = {.size = sizeof again, .flags = BH_SUBMIT_IDEMPOTENT};
    bh_ticket tickets[200];
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 200; i++) {
            REQUIRE_OK(bh_submit(&call.request, &again, &tickets[i]));
            if (i == 100) kill_worker(device, SIGKILL);
        }
        CHECK_OK(bh_wait_all(tickets, 200, BH_FOREVER));
        CHECK_EQ(first(b), N);
    }
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(a_call_beyond_its_deadline_is_ended_and_its_output_is_suspect, 60) {
    bh_device device = open_blas_device();
    if (!is_cpu(device)) SKIP("a GPU computes this too fast");
    bh_buffer a = filled(device, 1, LARGE * LARGE), c = filled(device, 0, LARGE * LARGE);
    bh_buffer other = filled(device, 7, 16);
    bh_blas call = square(a, a, c, LARGE);
    bh_submit_options brief = {.size = sizeof brief, .deadline_ns = 20000000};
    bh_ticket ticket;
    bh_error error;
    REQUIRE_OK(bh_submit(&call.request, &brief, &ticket));
    CHECK_STATUS(bh_wait(ticket, BH_FOREVER), BH_E_DEADLINE);
    CHECK_EQ(bh_ticket_error(ticket, &error), BH_E_DEADLINE);
    CHECK_STR_CONTAINS(error.kernel, "blas.gemm");
    float value;
    CHECK_STATUS(bh_buffer_read(c, 0, &value, sizeof value), BH_E_STALE);
    CHECK_EQ(first(other), 7);
    bh_blas small = square(a, a, other, 4);
    CHECK_OK(bh_submit(&small.request, &waits, NULL));
    CHECK_EQ(first(other), 4);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(a_fault_of_a_kernel_leaves_calls_behind_it_lost_not_wrong, 60) {
    bh_device device = open_blas_device();
    bh_buffer a = filled(device, 1, N * N), c = filled(device, 0, N * N);
    bh_kernel bad = get_kernel(load_module(device, ptx_basic), "trap_now");
    bh_blas call = square(a, a, c, N);
    bh_ticket fault, behind;
    for (int i = 0; i < 3; i++) {
        fault = submit(bad, BH_GRID(1, 1), BH_NO_ARGS, NULL);
        REQUIRE_OK(bh_submit(&call.request, NULL, &behind));
        CHECK_STATUS(bh_wait(fault, BH_FOREVER), BH_E_FAULT);
        bh_status status = bh_wait(behind, BH_FOREVER);
        CHECK(status == BH_OK || status == BH_E_LOST);
        if (status != BH_OK) REQUIRE_OK(bh_submit(&call.request, &waits, NULL));
        CHECK_EQ(first(c), N);
    }
    CHECK_OK(bh_device_close(device));
}
