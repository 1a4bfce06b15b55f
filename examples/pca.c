/* SPDX-License-Identifier: Apache-2.0 */
/* Principal components: points in four dimensions that lie near a plane, and the plane found again
 * with bulkhead/blas.h and bulkhead/solver.h. All calls are queued at once; the program waits for
 * the last one.
 * usage: pca [DEVICE] */
#include <bulkhead.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

enum { POINTS = 500, DIMENSIONS = 4, KEPT = 2 };

/* Ends the program when a call failed, saying why and what to do. */
static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    fprintf(stderr, "error: %s: %s\n", what, bh_last_message());
    exit(1);
}

/* Between -1 and 1, the same in every run. */
static double noise(void) {
    static uint64_t state = 1;
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (double)(state >> 33) / (double)(1u << 30) - 1;
}

/* A plane that is spanned by two directions of length 1, away from the origin, and a little noise
 * beside it. Along the first direction the points are spread three times as far. */
static const double plane[KEPT][DIMENSIONS] = {{0.5, 0.5, 0.5, 0.5}, {0.5, -0.5, 0.5, -0.5}};
static const double middle[DIMENSIONS] = {10, -4, 2, 7};

static void make_points(double points[POINTS][DIMENSIONS]) {
    for (int i = 0; i < POINTS; i++) {
        double first = 3 * noise(), second = noise();
        for (int k = 0; k < DIMENSIONS; k++)
            points[i][k] = middle[k] + first * plane[0][k] + second * plane[1][k] + noise() / 50;
    }
}

static bh_buffer doubles(bh_device device, uint64_t count) {
    bh_buffer made;
    must(bh_buffer_alloc(device, BH_F64, count, NULL, &made), "allocate");
    return made;
}

static void submit(const bh_request *request, const char *what) {
    bh_ticket done;
    must(bh_submit(request, NULL, &done), what);
}

/* The cosine between a direction found and one of the plane's, which may point the other way. */
static double cosine(double found[DIMENSIONS][DIMENSIONS], int column, const double *wanted) {
    double product = 0;
    for (int k = 0; k < DIMENSIONS; k++) product += found[k][column] * wanted[k];
    return product < 0 ? -product : product;
}

int main(int argc, char **argv) {
    static double points[POINTS][DIMENSIONS], ones[POINTS], flat[POINTS][KEPT];
    double values[DIMENSIONS], vectors[DIMENSIONS][DIMENSIONS];
    make_points(points);
    for (int i = 0; i < POINTS; i++) ones[i] = 1;

    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    options.libraries = BH_LIBRARY_BLAS | BH_LIBRARY_SOLVER;
    bh_device device;
    must(bh_device_open(&options, &device), "open");
    bh_status loaded = bh_library_load(device, options.libraries);
    if (loaded == BH_E_UNSUPPORTED) {
        printf("pca: skipped: %s\n", bh_last_message());
        return bh_device_close(device) != BH_OK;
    }
    must(loaded, "load the libraries");

    bh_buffer x = doubles(device, (uint64_t)POINTS * DIMENSIONS), one = doubles(device, POINTS);
    bh_buffer mean = doubles(device, DIMENSIONS),
              scatter = doubles(device, DIMENSIONS * DIMENSIONS);
    bh_buffer w = doubles(device, DIMENSIONS), v = doubles(device, DIMENSIONS * DIMENSIONS);
    bh_buffer y = doubles(device, (uint64_t)POINTS * KEPT), no_info = {0};
    must(bh_buffer_write(x, 0, points, sizeof points), "write the points");
    must(bh_buffer_write(one, 0, ones, sizeof ones), "write ones");

    bh_matrix xm = bh_matrix_of(x, POINTS, DIMENSIONS);
    bh_matrix covariance = bh_matrix_of(scatter, DIMENSIONS, DIMENSIONS);
    bh_matrix vm = bh_matrix_of(v, DIMENSIONS, DIMENSIONS);
    bh_vector ov = bh_vector_of(one, POINTS), mv = bh_vector_of(mean, DIMENSIONS);

    /* mean = X^T 1 / n, and X = X - 1 mean^T */
    bh_blas average = bh_blas_gemv(1.0 / POINTS, bh_matrix_transposed(xm), ov, 0, mv);
    bh_blas centre = bh_blas_ger(-1, ov, mv, xm);
    /* The lower triangle of X^T X / (n - 1), its eigenvalues and vectors, ascending. */
    bh_blas scatter_of =
        bh_blas_syrk(0, 1.0 / (POINTS - 1), bh_matrix_transposed(xm), 0, covariance);
    bh_solver eigen =
        bh_solver_syevd(BH_SOLVER_STRICT, covariance, bh_vector_of(w, DIMENSIONS), vm, no_info);
    /* The points within the plane: Y = X V, with the last columns of V. */
    bh_blas project =
        bh_blas_gemm(1, xm, bh_matrix_part(vm, 0, DIMENSIONS - KEPT, DIMENSIONS, KEPT), 0,
                     bh_matrix_of(y, POINTS, KEPT));
    submit(&average.request, "average");
    submit(&centre.request, "centre");
    submit(&scatter_of.request, "covariance");
    submit(&eigen.request, "eigenvalues");
    submit(&project.request, "project");

    must(bh_buffer_read(w, 0, values, sizeof values), "read the eigenvalues");
    must(bh_buffer_read(v, 0, vectors, sizeof vectors), "read the vectors");
    must(bh_buffer_read(y, 0, flat, sizeof flat), "read the projection");
    must(bh_device_close(device), "close");

    double all = 0, kept = 0, squares = 0;
    for (int i = 0; i < DIMENSIONS; i++) all += values[i];
    for (int i = DIMENSIONS - KEPT; i < DIMENSIONS; i++) kept += values[i];
    for (int i = 0; i < POINTS; i++) squares += flat[i][1] * flat[i][1];
    double first = cosine(vectors, DIMENSIONS - 1, plane[0]);
    double second = cosine(vectors, DIMENSIONS - 2, plane[1]);
    printf("pca: %d of %d components have %.2f %% of the variance; cosines %.5f and %.5f\n", KEPT,
           DIMENSIONS, 100 * kept / all, first, second);
    /* The variance along the first component is the largest eigenvalue. */
    double ratio = squares / (POINTS - 1) / values[DIMENSIONS - 1];
    bool right = kept > 0.99 * all && first > 0.99 && second > 0.99;
    return !(right && ratio > 1 - 1e-9 && ratio < 1 + 1e-9);
}
