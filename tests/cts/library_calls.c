/* SPDX-License-Identifier: Apache-2.0 */
/* Library calls as requests: what is refused, order, sequences, options. */
#include "../support/blas.h"

#include <string.h>

enum { N = 8 };

static const bh_submit_options waits = {.size = sizeof waits, .flags = BH_SUBMIT_WAIT};

static bh_buffer floats(bh_device device, float value, uint64_t count) {
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_alloc(device, BH_F32, count, NULL, &buffer));
    REQUIRE_OK(bh_buffer_fill(buffer, 0, BH_WHOLE, &value, sizeof value));
    return buffer;
}

static float at(bh_buffer buffer, uint64_t index) {
    float value;
    REQUIRE_OK(bh_buffer_read(buffer, index * sizeof value, &value, sizeof value));
    return value;
}

static bh_blas square(bh_buffer a, bh_buffer b, bh_buffer c) {
    return bh_blas_gemm(1, bh_matrix_of(a, N, N), bh_matrix_of(b, N, N), 0, bh_matrix_of(c, N, N));
}

static void check_call_refused(const bh_blas *call, bh_status status, const char *text) {
    bh_ticket ticket = {7, 7};
    CHECK_STATUS(bh_submit(&call->request, NULL, &ticket), status);
    CHECK_STR_CONTAINS(bh_last_message(), text);
    CHECK_STR_CONTAINS(bh_last_message(), "Fix:");
    CHECK_EQ(ticket.lane, 7);
}

TEST(a_device_opened_without_the_library_says_how_to_open_it) {
    bh_device device = open_device();
    bh_buffer a = floats(device, 1, N * N), c = floats(device, 0, N * N);
    bh_blas call = square(a, a, c);
    check_call_refused(&call, BH_E_UNSUPPORTED, "BH_LIBRARY_BLAS");
    CHECK_STATUS(bh_library_load(device, BH_LIBRARY_BLAS), BH_E_UNSUPPORTED);
    CHECK_STATUS(bh_library_load(device, 1u << 31), BH_E_INVALID);
    CHECK_OK(bh_library_load(device, 0));
    CHECK_OK(bh_device_close(device));
}

TEST(sizes_that_do_not_fit_are_refused_with_their_numbers) {
    bh_device device = open_blas_device();
    bh_buffer a = floats(device, 1, N * N), b = floats(device, 1, N * N),
              c = floats(device, 0, N * N);
    bh_blas call = square(a, b, c);
    call.b.rows = 5;
    check_call_refused(&call, BH_E_INVALID, "a has 8 columns, b has 5 rows");
    call = square(a, b, c);
    call.c.columns = 9;
    check_call_refused(&call, BH_E_INVALID, "b has 8 columns, c has 9 columns");
    call = square(a, b, c);
    call.a.offset = 1;
    check_call_refused(&call, BH_E_INVALID, "a takes elements 1 to 65; its buffer has 64");
    call = square(a, b, c);
    call.a.stride = 7;
    check_call_refused(&call, BH_E_INVALID, "parts of a overlap");
    call = square(a, b, c);
    call.batch = 2;
    check_call_refused(&call, BH_E_INVALID, "a takes elements 0 to 128");
    call = square(a, b, c);
    call.a.rows = call.c.rows = 1ull << 40;
    check_call_refused(&call, BH_E_UNSUPPORTED, "32 bits");
    call = square(a, b, c);
    call.b.offset = UINT64_MAX;
    check_call_refused(&call, BH_E_UNSUPPORTED, "b is too large");
    call = square(a, b, c);
    call.c.stride = UINT64_MAX;
    check_call_refused(&call, BH_E_UNSUPPORTED, "c is too large");
    bh_vector x = bh_vector_of(a, N);
    x.stride = -2;
    call = bh_blas_scal(2, x);
    check_call_refused(&call, BH_E_INVALID, "before its buffer");
    x.stride = INT64_MIN;
    call = bh_blas_scal(2, x);
    check_call_refused(&call, BH_E_UNSUPPORTED, "x is too large");
    CHECK_OK(bh_device_close(device));
}

TEST(types_flags_and_fields_that_do_not_belong_are_refused) {
    bh_device device = open_blas_device();
    bh_buffer a = floats(device, 1, N * N), c = floats(device, 0, N * N), d, none = {0};
    REQUIRE_OK(bh_buffer_alloc(device, BH_F64, N * N, NULL, &d));
    bh_blas call = square(a, d, c);
    check_call_refused(&call, BH_E_INVALID, "the elements of b are f64; they must be f32");
    call = square(d, d, c);
    check_call_refused(&call, BH_E_INVALID, "the elements of c are f32; they must be f64");
    call = bh_blas_iamax(bh_vector_of(a, N), c);
    check_call_refused(&call, BH_E_INVALID, "must be i64");
    call = square(a, a, c);
    call.flags = BH_BLAS_UPPER;
    check_call_refused(&call, BH_E_INVALID, "flags is 0x1");
    call = square(a, a, c);
    call.x = bh_vector_of(a, 1);
    check_call_refused(&call, BH_E_INVALID, "blas.gemm has no x");
    call = square(a, a, c);
    call.a.flags = 64;
    check_call_refused(&call, BH_E_INVALID, "the flags of a are 0x40");
    call = square(a, a, c);
    call.alpha.im = 1;
    check_call_refused(&call, BH_E_INVALID, "must be real");
    call = bh_blas_copy(bh_vector_of(a, N), bh_vector_of(c, N));
    call.alpha.re = 1;
    check_call_refused(&call, BH_E_INVALID, "no alpha");
    call = square(a, a, c);
    call.reserved = 1;
    check_call_refused(&call, BH_E_UNSUPPORTED, "reserved");
    call = square(a, a, c);
    call.request.kind = 300;
    check_call_refused(&call, BH_E_UNSUPPORTED, "kind 300");
    call = square(a, none, c);
    check_call_refused(&call, BH_E_INVALID, "b");
    call = square(none, a, c);
    check_call_refused(&call, BH_E_INVALID, "a");
    call = square(a, a, c);
    call.request.size = 12;
    bh_ticket ticket;
    CHECK_STATUS(bh_submit(&call.request, NULL, &ticket), BH_E_INVALID);
    CHECK_OK(bh_device_close(device));
}

TEST(outputs_that_share_elements_are_refused_and_neighbours_are_not) {
    bh_device device = open_blas_device();
    bh_buffer a = floats(device, 1, N * N), c = floats(device, 2, N * N);
    bh_blas call = square(a, c, c);
    check_call_refused(&call, BH_E_INVALID, "b and c may share elements");
    bh_matrix whole = bh_matrix_of(a, N, N);
    /* Column 0 onto column 1 of one matrix: interleaved, but no element in common. */
    bh_vector one = {a, 0, N, N, 0}, other = {a, 1, N, N, 0};
    call = bh_blas_axpy(1, one, other);
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_EQ(at(a, 1), 2);
    CHECK_EQ(at(a, 2), 1);
    other.offset = N; /* the same column, one row on */
    one.count = other.count = N - 1;
    call = bh_blas_axpy(1, one, other);
    check_call_refused(&call, BH_E_INVALID, "may share");
    /* Blocks of one matrix. */
    call = bh_blas_gemm(1, bh_matrix_part(whole, 0, 0, 4, 4), bh_matrix_part(whole, 0, 4, 4, 4), 0,
                        bh_matrix_part(whole, 4, 0, 4, 4));
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_EQ(at(a, 4 * N), 5); /* 1 2 1 1 times ones */
    CHECK_EQ(at(a, 4 * N + 4), 1);
    CHECK_OK(bh_device_close(device));
}

TEST(calls_are_ordered_with_other_work_and_run_in_sequences) {
    bh_device device = open_blas_device();
    bh_buffer a = floats(device, 1, N * N), b = floats(device, 1, N * N),
              c = floats(device, 0, N * N);
    bh_lane lane = open_lane(device);
    bh_submit_options on_lane = {.size = sizeof on_lane, .lane = lane};
    bh_ticket done;
    for (int i = 0; i < 4; i++) {
        bh_blas call = i % 2 ? square(c, a, b) : square(b, a, c);
        CHECK_OK(bh_submit(&call.request, i % 2 ? &on_lane : NULL, &done));
    }
    CHECK_OK(bh_wait(done, BH_FOREVER));
    CHECK_EQ(at(b, 5), 8 * 8 * 8 * 8);

    bh_sequence sequence;
    uint32_t step;
    bh_blas call = bh_blas_axpy(1, bh_vector_of(a, N), bh_vector_of(c, N));
    float zero = 0;
    bh_transfer fill = bh_transfer_fill(c, 0, BH_WHOLE, &zero, sizeof zero);
    sequence = sequence_open(device, "library");
    REQUIRE_OK(bh_sequence_add(sequence, &fill.request, &step));
    REQUIRE_OK(bh_sequence_add(sequence, &call.request, &step));
    CHECK_EQ(step, 1);
    REQUIRE_OK(bh_sequence_add(sequence, &call.request, NULL));
    REQUIRE_OK(bh_sequence_finish(sequence));
    CHECK_STATUS(bh_sequence_set(sequence, 1, 2, (bh_arg){.kind = BH_ARG_VALUE, .size = 8}),
                 BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "library call");
    bh_submit_options twice = {.size = sizeof twice, .flags = BH_SUBMIT_WAIT, .repeat = 2};
    CHECK_OK(bh_sequence_submit(sequence, &twice, NULL));
    CHECK_EQ(at(c, 0), 2);
    CHECK_EQ(at(c, N), 0);
    CHECK_OK(bh_device_close(device));
}

TEST(calls_of_nothing_do_nothing) {
    bh_device device = open_blas_device();
    bh_buffer a = floats(device, 1, N), c = floats(device, 3, N * N), none;
    REQUIRE_OK(bh_buffer_alloc(device, BH_F32, 0, NULL, &none));
    bh_blas call = bh_blas_gemm(1, bh_matrix_of(none, 0, 4), bh_matrix_of(a, 4, 2), 0,
                                bh_matrix_of(none, 0, 2));
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    /* An empty sum is zero, and beta still counts. */
    call = bh_blas_gemm(1, bh_matrix_of(none, N, 0), bh_matrix_of(none, 0, N), 2,
                        bh_matrix_of(c, N, N));
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_EQ(at(c, 9), 6);
    call = bh_blas_nrm2(bh_vector_of(none, 0), a);
    CHECK_OK(bh_submit(&call.request, &waits, NULL));
    CHECK_EQ(at(a, 0), 0);
    CHECK_OK(bh_device_close(device));
}

TEST(calls_that_must_not_wait_say_so_until_the_library_is_loaded) {
    bh_device_options options = BH_INIT(options);
    bh_device device;
    options.device = test_device();
    options.libraries = BH_LIBRARY_BLAS;
    REQUIRE_OK(bh_device_open(&options, &device));
    bh_buffer a = floats(device, 1, N);
    bh_blas call = bh_blas_scal(2, bh_vector_of(a, N));
    bh_submit_options now = {.size = sizeof now, .flags = BH_SUBMIT_NO_BLOCK};
    bh_status status = bh_submit(&call.request, &now, NULL);
    if (status == BH_E_UNSUPPORTED) SKIP("%s", bh_last_message());
    CHECK(status == BH_E_BUSY || status == BH_OK);
    REQUIRE_OK(bh_library_load(device, BH_LIBRARY_BLAS));
    CHECK_OK(bh_submit(&call.request, &now, NULL));
    CHECK_OK(bh_device_sync(device, BH_FOREVER));
    CHECK_EQ(at(a, 1), status == BH_OK ? 4 : 2);
    CHECK_OK(bh_device_close(device));
}

/* A request with some of its bytes changed: numbers at the edges, bits, other handles. */
static void spoil(bh_blas *call, rng *r, const bh_buffer *buffers) {
    static const uint64_t edges[] = {0,         1,          2,         7,          8,
                                     9,         64,         INT32_MAX, UINT32_MAX, 1ull << 40,
                                     INT64_MAX, UINT64_MAX, 63,        1ull << 32, 1ull << 63};
    uint8_t *bytes = (uint8_t *)call;
    for (uint32_t count = rng_below(r, 4); count; count--) {
        size_t at = 8 + rng_below(r, (sizeof *call - 8) / 8) * 8;
        uint64_t value = edges[rng_below(r, sizeof edges / sizeof edges[0])];
        switch (rng_below(r, 4)) {
        case 0:
            bytes[8 + rng_below(r, sizeof *call - 8)] ^= (uint8_t)(1u << rng_below(r, 8));
            break;
        case 1:
            memcpy(bytes + at, &buffers[rng_below(r, 4)], 8);
            break;
        case 2:
            memcpy(bytes + at, &(uint64_t){rng_below(r, 12)}, 8);
            break;
        default:
            memcpy(bytes + at, &value, 8);
        }
    }
}

TEST_TIMEOUT(requests_of_garbage_are_refused_or_do_no_harm, 60) {
    bh_device device = open_blas_device();
    rng r = rng_seeded(9);
    bh_buffer buffers[4] = {floats(device, 1, N * N), floats(device, 1, N * N),
                            floats(device, 1, N * N), floats(device, 1, 2)};
    bh_buffer guard = floats(device, 7, N * N);
    uint32_t taken = 0;
    for (int i = 0; i < 10000; i++) {
        bh_blas call = bh_blas_init(256 + rng_below(&r, 42), 1, 0);
        call.a = bh_matrix_of(buffers[0], N, N);
        call.b = bh_matrix_of(buffers[1], N, N);
        call.c = bh_matrix_of(buffers[2], N, N);
        if (rng_below(&r, 2)) {
            call.c = (bh_matrix){{0}, 0, 0, 0, 0, 0, 0, 0};
            call.b = call.c;
            call.x = bh_vector_of(buffers[1], N);
            call.y = bh_vector_of(buffers[2], N);
        }
        spoil(&call, &r, buffers);
        taken += bh_submit(&call.request, NULL, NULL) == BH_OK;
    }
    CHECK_GT(taken, 200);
    CHECK_OK(bh_device_sync(device, BH_FOREVER));
    CHECK_EQ(health_of(device).losses, 0);
    for (int i = 0; i < N * N; i++) CHECK_EQ(at(guard, (uint64_t)i), 7);
    CHECK_OK(bh_device_close(device));
}
