/* SPDX-License-Identifier: Apache-2.0 */
/* The device's math functions against libm's long double, in units of the last place. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "math_list.h"
#include "support/clang.h"
#include "support/support.h"

enum { COUNT = 40000, SPECIALS = 40 };

static long double x_at(const void *values, bool wide, int i) {
    return wide ? (long double)((const double *)values)[i]
                : (long double)((const float *)values)[i];
}

static void x_put(void *values, bool wide, int i, long double x) {
    if (wide) {
        ((double *)values)[i] = (double)x;
    } else {
        ((float *)values)[i] = (float)x;
    }
}

/* Exact up to the multiplication by pi: the argument is folded before. */
static long double sin_of_pi(long double x) {
    long double r = x - 2 * rintl(x / 2);
    if (r == 0 || fabsl(r) == 1) {
        return copysignl(0, x);
    }
    r = fabsl(r) > 0.5L ? copysignl(1, r) - r : r;
    return sinl(3.14159265358979323846264338327950288L * r);
}

static long double cos_of_pi(long double x) {
    long double r = 0.5L - fabsl(x - 2 * rintl(x / 2));
    return r == 0 ? 0 : sinl(3.14159265358979323846264338327950288L * r);
}

/* How far off `got` is, in units of the last place of the true value; huge where it is wrong in
 * kind: a NaN, an infinity, the sign of a zero. */
static double ulps(long double got, long double want, bool wide) {
    long double rounded = wide ? (long double)(double)want : (long double)(float)want;
    if (isnan(rounded) || isnan(got)) {
        return isnan(rounded) && isnan(got) ? 0 : 1e9;
    }
    int digits = wide ? DBL_MANT_DIG : FLT_MANT_DIG, least = wide ? DBL_MIN_EXP : FLT_MIN_EXP, e;
    if (isinf(rounded) || isinf(got)) {
        long double largest = wide ? (long double)DBL_MAX : (long double)FLT_MAX;
        bool near = fabsl(want) > largest * (1 - 1e-6L) && fabsl(got) > largest * (1 - 1e-6L);
        return rounded == got ? 0 : near && signbit(got) == signbit(rounded) ? 1 : 1e9;
    }
    if (rounded == 0 && got == 0 && want == 0) {
        return signbit(rounded) == signbit(got) ? 0 : 1e9;
    }
    frexpl(want, &e);
    long double unit = ldexpl(1, (e < least ? least : e) - digits);
    return (double)(fabsl(got - want) / unit);
}

static int special_values(void *values, bool wide) {
    static const double common[] = {0,    1,    0.5,  2,    3,     10,   1e-5, 1e-10,  0.25,
                                    1.5,  2.5,  1e5,  1e7,  12345, 1e15, 100,  710,    88.7,
                                    -1,   -0.5, -2,   -2.5, -3,    -10,  -1e5, -12345, -745,
                                    -1e7, -103, 3.25, 8,    1e30,  1e-30};
    int n = 0;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        x_put(values, wide, n++, common[i]);
    }
    x_put(values, wide, n++, -0.0L);
    x_put(values, wide, n++, INFINITY);
    x_put(values, wide, n++, -INFINITY);
    x_put(values, wide, n++, NAN);
    x_put(values, wide, n++, wide ? (long double)DBL_MIN : (long double)FLT_MIN);
    x_put(values, wide, n++, wide ? 4.9e-324L : 1e-45L);
    x_put(values, wide, n++, wide ? (long double)DBL_MAX : (long double)FLT_MAX);
    REQUIRE(n <= SPECIALS);
    return n;
}

static void fill(void *values, bool wide, int from, double low, double high, bool beyond, rng *r) {
    for (int i = from; i < COUNT; i++) {
        if (beyond && i % 2 == 0) {
            uint64_t bits = (uint64_t)rng_next(r) << 32 | rng_next(r);
            memcpy((char *)values + (size_t)i * (wide ? 8 : 4), &bits, wide ? 8 : 4);
        } else {
            long double u = ((long double)rng_next(r) + rng_next(r) * 0x1p-32L) * 0x1p-32L;
            x_put(values, wide, i, low + (high - low) * u);
        }
    }
}

typedef struct bench {
    bh_device device;
    bh_module module;
    bh_buffer a, b, y;
} bench;

static bench bench_open(const char *flags) {
    bench t;
    const char *path = clang_must_compile("math", flags);
    t.device = open_device();
    REQUIRE_OK(bh_module_load_file(t.device, path, &t.module));
    REQUIRE_OK(bh_buffer_alloc(t.device, BH_F64, COUNT, NULL, &t.a));
    REQUIRE_OK(bh_buffer_alloc(t.device, BH_F64, COUNT, NULL, &t.b));
    REQUIRE_OK(bh_buffer_alloc(t.device, BH_F64, COUNT, NULL, &t.y));
    return t;
}

typedef struct suite {
    const char *name;
    double low, high, allowed[2];
    bool beyond;
    bool zeros_meet; /* C leaves open which zero it is */
    bool ordinary;   /* look at ordinary numbers alone */
    long double (*one)(long double x);
    long double (*two)(long double x, long double y);
    double low_2, high_2; /* of the second argument, where it has a range of its own */
} suite;

static bool verbose(void) {
    return getenv("BULKHEAD_TEST_VERBOSE") != NULL;
}

static bool is_ordinary(long double p, long double q, long double result) {
    return isfinite(p) && isfinite(q) && isfinite(result) && fabsl(result) < 1e300L &&
           fabsl(result) > 1e-300L && fabsl(p) < 1e300L && fabsl(q) < 1e300L &&
           (p == 0 || fabsl(p) > 1e-300L) && (q == 0 || fabsl(q) > 1e-300L);
}

/* An error of no more than `absolute` is small enough whatever the result. */
static void compare(const bench *t, const suite *s, bool wide, double absolute, rng *r) {
    static double a[COUNT], b[COUNT], y[COUNT];
    char name[64];
    snprintf(name, sizeof name, "%s_%s", wide ? "double" : "float", s->name);
    size_t bytes = COUNT * (size_t)(wide ? 8 : 4);
    int specials = special_values(a, wide), from = specials;
    if (s->two != NULL) { /* each special with each */
        special_values(b, wide);
        from = specials * specials;
        for (int i = from - 1; i >= 0; i--) {
            x_put(b, wide, i, x_at(b, wide, i % specials));
        }
        for (int i = from - 1; i >= 0; i--) {
            x_put(a, wide, i, x_at(a, wide, i / specials));
        }
        bool own = s->low_2 < s->high_2;
        fill(b, wide, from, own ? s->low_2 : s->low, own ? s->high_2 : s->high, s->beyond, r);
    }
    fill(a, wide, from, s->low, s->high, s->beyond, r);
    bh_kernel kernel = get_kernel(t->module, name);
    REQUIRE_OK(bh_buffer_write(t->a, 0, a, bytes));
    uint32_t n = COUNT;
    if (s->two != NULL) {
        REQUIRE_OK(bh_buffer_write(t->b, 0, b, bytes));
        REQUIRE_OK(run_now(kernel, BH_GRID(COUNT, 256),
                           BH_ARGS(BH_IN(t->a), BH_IN(t->b), BH_OUT(t->y), n)));
    } else {
        REQUIRE_OK(run_now(kernel, BH_GRID(COUNT, 256), BH_ARGS(BH_IN(t->a), BH_OUT(t->y), n)));
    }
    REQUIRE_OK(bh_buffer_read(t->y, 0, y, bytes));
    double worst = 0;
    int at = 0;
    for (int i = s->ordinary ? from : 0; i < COUNT; i++) {
        long double p = x_at(a, wide, i), q = x_at(b, wide, i);
        long double want = s->two != NULL ? s->two(p, q) : s->one(p);
        double off = ulps(x_at(y, wide, i), want, wide);
        bool zeros = want == 0 && x_at(y, wide, i) == 0;
        if (zeros ? s->zeros_meet || s->ordinary : s->ordinary && !is_ordinary(p, q, want)) {
            off = 0;
        }
        if (fabsl(x_at(y, wide, i) - want) <= absolute) off = 0;
        if (off > worst) {
            worst = off;
            at = i;
        }
    }
    long double p = x_at(a, wide, at), q = x_at(b, wide, at);
    if (verbose()) {
        printf("%-18s %10.3f  at %.17Lg", name, worst, p);
        printf(s->two != NULL ? " %.17Lg\n" : "\n", q);
    }
    if (worst > s->allowed[wide]) {
        FAIL("%s(%.17Lg, %.17Lg) = %.17Lg is %.3f ulp off, %.1f are allowed", name, p,
             s->two != NULL ? q : 0, x_at(y, wide, at), worst, s->allowed[wide]);
    }
}

static long double float_nextafter(long double x, long double y) {
    return (long double)nextafterf((float)x, (float)y);
}
static long double double_nextafter(long double x, long double y) {
    return (long double)nextafter((double)x, (double)y);
}

#define REFERENCE(name, low, high, f, d, expression)                                               \
    static long double reference_##name(long double x) {                                           \
        return expression;                                                                         \
    }
MATH_OTHER(REFERENCE)

#define ROW_UNARY(name, low, high, f, d, beyond)                                                   \
    {#name, low, high, {f, d}, beyond, 0, 0, name##l, NULL, 0, 0},
#define ROW_OTHER(name, low, high, f, d, ref)                                                      \
    {#name, low, high, {f, d}, 0, 0, 0, reference_##name, NULL, 0, 0},
#define ROW_BINARY(name, low, high, f, d, beyond)                                                  \
    {#name, low, high, {f, d}, beyond, 0, 0, NULL, name##l, 0, 0},
static const suite suites[] = {MATH_UNARY(ROW_UNARY) MATH_OTHER(ROW_OTHER) MATH_BINARY(ROW_BINARY)};

static suite suite_at(size_t i, bool wide) {
    suite s = suites[i];
    if (s.two == nextafterl) {
        s.two = wide ? double_nextafter : float_nextafter;
    }
    s.zeros_meet = s.two == fminl || s.two == fmaxl;
    return s;
}

static void compare_all(const char *flags, bool wide) {
    bench t = bench_open(flags);
    rng r = rng_seeded(1 + wide);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suite s = suite_at(i, wide);
        compare(&t, &s, wide, 0, &r);
    }
    CHECK_OK(bh_device_close(t.device));
}

TEST_TIMEOUT(float_functions_are_accurate, 120) {
    compare_all("-std=c++17 --cuda-gpu-arch=sm_80", false);
}

TEST_TIMEOUT(double_functions_are_accurate, 120) {
    compare_all("-std=c++17 --cuda-gpu-arch=sm_80", true);
}

/* Where argument reduction and long products are hardest. */
TEST_TIMEOUT(hard_arguments_are_accurate, 120) {
    static const suite hard[] = {{"pow", 0.98, 1.02, {1, 1}, 0, 0, 0, NULL, powl, -4000, 4000},
                                 {"pow", 1e-38, 1e-36, {1, 1}, 0, 0, 0, NULL, powl, -1, 1},
                                 {"pow", 1e30, 1e38, {1, 1}, 0, 0, 0, NULL, powl, -1.1, 1.1},
                                 {"sin", 71000, 72000, {1, 1}, 0, 0, 0, sinl, NULL, 0, 0},
                                 {"cos", 1e6, 1.1e6, {1, 1}, 0, 0, 0, cosl, NULL, 0, 0},
                                 {"sin", 3.1415, 3.1417, {1, 1}, 0, 0, 0, sinl, NULL, 0, 0},
                                 {"cos", 1.5707, 1.5709, {1, 1}, 0, 0, 0, cosl, NULL, 0, 0},
                                 {"tan", 1.5, 1.64, {2, 2}, 0, 0, 0, tanl, NULL, 0, 0},
                                 {"log", 0.999, 1.001, {1, 1}, 0, 0, 0, logl, NULL, 0, 0},
                                 {"log2", 0.99, 1.01, {1.5, 1.5}, 0, 0, 0, log2l, NULL, 0, 0},
                                 {"log1p", -0.001, 0.001, {1.5, 1.5}, 0, 0, 0, log1pl, NULL, 0, 0},
                                 {"expm1", -0.001, 0.001, {1.5, 1.5}, 0, 0, 0, expm1l, NULL, 0, 0},
                                 {"exp", -104, -87, {1, 1}, 0, 0, 0, expl, NULL, 0, 0},
                                 {"tanh", -0.01, 0.01, {2, 1.5}, 0, 0, 0, tanhl, NULL, 0, 0},
                                 {"tanh", 0.1, 0.7, {2, 1.5}, 0, 0, 0, tanhl, NULL, 0, 0},
                                 {"expm1", 0.3, 0.7, {1.5, 1.5}, 0, 0, 0, expm1l, NULL, 0, 0},
                                 {"expm1", -0.7, -0.3, {1.5, 1.5}, 0, 0, 0, expm1l, NULL, 0, 0},
                                 {"log1p", 0.2, 1.5, {1.5, 1.5}, 0, 0, 0, log1pl, NULL, 0, 0},
                                 {"log1p", -0.6, -0.2, {1.5, 1.5}, 0, 0, 0, log1pl, NULL, 0, 0},
                                 {"cosh", 0, 1.5, {2, 1.5}, 0, 0, 0, coshl, NULL, 0, 0},
                                 {"sinh", 0.2, 1.5, {3, 2.5}, 0, 0, 0, sinhl, NULL, 0, 0},
                                 {"atanh", 0.1, 0.7, {3, 2.5}, 0, 0, 0, atanhl, NULL, 0, 0},
                                 {"asinh", 0.1, 1.5, {3, 3}, 0, 0, 0, asinhl, NULL, 0, 0},
                                 {"acosh", 1, 1.5, {3, 3}, 0, 0, 0, acoshl, NULL, 0, 0},
                                 {"erf", 0.8, 1.2, {2, 2}, 0, 0, 0, erfl, NULL, 0, 0},
                                 {"erfc", 0.2, 1.2, {4, 4}, 0, 0, 0, erfcl, NULL, 0, 0},
                                 {"lgamma", -2.26, 0, {1, 4.5}, 0, 0, 0, lgammal, NULL, 0, 0},
                                 {"lgamma", -500, -23.01, {1, 4.5}, 0, 0, 0, lgammal, NULL, 0, 0},
                                 {"lgamma", 2, 20, {1, 4.5}, 0, 0, 0, lgammal, NULL, 0, 0},
                                 {"tgamma", -170, 0, {1, 10}, 0, 0, 0, tgammal, NULL, 0, 0},
                                 {"tgamma", 30, 172, {1, 10}, 0, 0, 0, tgammal, NULL, 0, 0},
                                 {"lgamma", 0.9, 2.1, {1, 4}, 0, 0, 0, lgammal, NULL, 0, 0},
                                 {"tgamma", -10, 10, {1, 6}, 0, 0, 0, tgammal, NULL, 0, 0},
                                 {"acos", 0.99, 1, {2, 2}, 0, 0, 0, acosl, NULL, 0, 0}};
    bench t = bench_open("-std=c++17 --cuda-gpu-arch=sm_80");
    rng r = rng_seeded(5);
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) {
        suite s = hard[i];
        s.ordinary = true;
        compare(&t, &s, false, 0, &r);
        compare(&t, &s, true, 0, &r);
    }
    CHECK_OK(bh_device_close(t.device));
}

/* What BH_COMPILE_FAST_MATH stands for. */
#define FAST_MATH                                                                                  \
    "-D__BULKHEAD_FAST_MATH__ -fgpu-flush-denormals-to-zero -mllvm -nvptx-prec-divf32=1 "          \
    "-mllvm -nvptx-prec-sqrtf32=0"

/* The approximate instructions are good for four digits at least; sines near zero are so in
 * absolute terms (2^-20.5 is what the instruction set promises). */
#define SINE_ERROR 0x1p-20

TEST_TIMEOUT(float_functions_are_near_with_fast_math, 120) {
    static const suite near[] = {{"sin", -3, 3, {200, 0}, 0, 0, 1, sinl, NULL, 0, 0},
                                 {"cos", -1.5, 1.5, {200, 0}, 0, 0, 1, cosl, NULL, 0, 0},
                                 {"tan", -1, 1, {400, 0}, 0, 0, 1, tanl, NULL, 0, 0},
                                 {"exp", -10, 10, {200, 0}, 0, 0, 1, expl, NULL, 0, 0},
                                 {"exp2", -10, 10, {200, 0}, 0, 0, 1, exp2l, NULL, 0, 0},
                                 {"log", 2, 100, {200, 0}, 0, 0, 1, logl, NULL, 0, 0},
                                 {"log2", 2, 100, {200, 0}, 0, 0, 1, log2l, NULL, 0, 0},
                                 {"log10", 2, 100, {200, 0}, 0, 0, 1, log10l, NULL, 0, 0},
                                 {"sqrt", 0.1, 100, {8, 0}, 0, 0, 1, sqrtl, NULL, 0, 0},
                                 {"tanh", -1, 1, {20000, 0}, 0, 0, 1, tanhl, NULL, 0, 0},
                                 {"atan", -10, 10, {2, 0}, 0, 0, 1, atanl, NULL, 0, 0},
                                 {"pow", 0.5, 4, {400, 0}, 0, 0, 1, NULL, powl, 0, 0}};
    bench t = bench_open("-std=c++17 --cuda-gpu-arch=sm_80 " FAST_MATH);
    rng r = rng_seeded(4);
    for (size_t i = 0; i < sizeof near / sizeof *near; i++) {
        const suite *s = &near[i];
        bool sine = s->one == sinl || s->one == cosl || s->one == tanl;
        compare(&t, s, false, sine ? SINE_ERROR : 0, &r);
    }
    CHECK_OK(bh_device_close(t.device));
}

/* Reordering must not take the accuracy of double away altogether. */
TEST_TIMEOUT(double_functions_survive_fast_math, 120) {
    bench t = bench_open("-std=c++17 --cuda-gpu-arch=sm_80 -ffast-math " FAST_MATH);
    rng r = rng_seeded(3);
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        suite s = suite_at(i, true);
        s.allowed[1] += 2;
        s.ordinary = true;
        compare(&t, &s, true, 0, &r);
    }
    CHECK_OK(bh_device_close(t.device));
}
