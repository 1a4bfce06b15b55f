/* SPDX-License-Identifier: Apache-2.0 */
/* Solves A x = b by conjugate gradients with library calls, and loses its worker on the way.
 * usage: conjugate_gradients [DEVICE] */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <bulkhead.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 200 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    fprintf(stderr, "error: %s: %s\n", what, bh_last_message());
    exit(1);
}

static bh_buffer numbers(bh_device device, uint64_t count, const double *values) {
    bh_buffer made;
    must(bh_buffer_alloc(device, BH_F64, count, NULL, &made), "alloc");
    if (values) must(bh_buffer_write(made, 0, values, count * sizeof *values), "write");
    return made;
}

static void submit(bh_blas call) {
    must(bh_submit(&call.request, NULL, NULL), "submit");
}

static double dot(bh_vector x, bh_vector y, bh_buffer result) {
    double value = 0;
    submit(bh_blas_dot(x, y, result));
    must(bh_buffer_read(result, 0, &value, sizeof value), "read");
    return value;
}

/* The worker dies with everything in it; the next one has the buffers and the library. */
static void lose_worker(bh_device device) {
    bh_health before = BH_INIT(before), now = BH_INIT(now);
    must(bh_device_get_health(device, &before), "health");
    kill(before.worker_pid, SIGKILL);
    do must(bh_device_get_health(device, &now), "health");
    while (now.generation == before.generation);
}

/* The solution that is to be found again. */
static double wanted(int i) {
    return i % 7 - 3;
}

int main(int argc, char **argv) {
    bh_device_options options = BH_INIT(options);
    bh_device device;
    options.device = argc > 1 ? argv[1] : NULL;
    options.libraries = BH_LIBRARY_BLAS;
    must(bh_device_open(&options, &device), "open");
    if (bh_library_load(device, BH_LIBRARY_BLAS) == BH_E_UNSUPPORTED) {
        printf("skipped: %s\n", bh_last_message());
        return bh_device_close(device);
    }

    /* A symmetric matrix with a heavy diagonal, and the b of a known x. */
    static double a[N][N], b[N], x[N];
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) a[i][j] = i == j ? 4.0 : 1.0 / (1 + (i - j) * (i - j));
    }
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < N; j++) b[i] += a[i][j] * wanted(j);
    }

    bh_matrix A = bh_matrix_of(numbers(device, N * N, &a[0][0]), N, N);
    bh_vector solution = bh_vector_of(numbers(device, N, x), N);
    bh_vector residual = bh_vector_of(numbers(device, N, b), N);
    bh_vector direction = bh_vector_of(numbers(device, N, b), N);
    bh_vector image = bh_vector_of(numbers(device, N, NULL), N);
    bh_buffer result = numbers(device, 1, NULL);

    double size = dot(residual, residual, result);
    int step = 0;
    for (; step < N && size > 1e-20; step++) {
        submit(bh_blas_gemv(1, A, direction, 0, image));
        double along = size / dot(direction, image, result);
        if (step == 5) lose_worker(device);
        submit(bh_blas_axpy(along, direction, solution));
        submit(bh_blas_axpy(-along, image, residual));
        double next = dot(residual, residual, result);
        submit(bh_blas_scal(next / size, direction));
        submit(bh_blas_axpy(1, residual, direction));
        size = next;
    }

    double largest = 0;
    must(bh_buffer_read(solution.buffer, 0, x, sizeof x), "read");
    for (int i = 0; i < N; i++) {
        double error = x[i] > wanted(i) ? x[i] - wanted(i) : wanted(i) - x[i];
        if (error > largest) largest = error;
    }
    bh_health health = BH_INIT(health);
    must(bh_device_get_health(device, &health), "health");
    printf("%d unknowns, %d steps, %llu worker lost, largest error %.1e\n", N, step,
           (unsigned long long)health.losses, largest);
    must(bh_device_close(device), "close");
    return largest < 1e-8 ? 0 : 1;
}
