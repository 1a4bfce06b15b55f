/* SPDX-License-Identifier: Apache-2.0 */
/* Products and quotients of _Complex, which clang calls for std::complex: those of C's Annex G. */
#ifndef BULKHEAD_COMPLEX_H
#define BULKHEAD_COMPLEX_H

#include "bulkhead_math.h"

/* An infinity becomes 1, everything else 0, with its sign. */
template <class T> __BH_DEVICE T __bh_box(T x) {
    return __bh_with_sign((T)(__bh_is_infinite(x) ? 1 : 0), x);
}
template <class T> __BH_DEVICE T __bh_no_nan(T x) {
    return __bh_is_nan(x) ? __bh_with_sign((T)0, x) : x;
}

template <class T> __BH_FUNCTION void __bh_complex_product(T a, T b, T c, T d, T *x, T *y) {
    T ac = a * c, bd = b * d, ad = a * d, bc = b * c;
    *x = ac - bd;
    *y = ad + bc;
    if (!__bh_is_nan(*x) || !__bh_is_nan(*y)) return;
    bool again = false;
    if (__bh_is_infinite(a) || __bh_is_infinite(b)) {
        a = __bh_box(a), b = __bh_box(b), c = __bh_no_nan(c), d = __bh_no_nan(d);
        again = true;
    }
    if (__bh_is_infinite(c) || __bh_is_infinite(d)) {
        c = __bh_box(c), d = __bh_box(d), a = __bh_no_nan(a), b = __bh_no_nan(b);
        again = true;
    }
    if (!again && (__bh_is_infinite(ac) || __bh_is_infinite(bd) || __bh_is_infinite(ad) ||
                   __bh_is_infinite(bc))) {
        a = __bh_no_nan(a), b = __bh_no_nan(b), c = __bh_no_nan(c), d = __bh_no_nan(d);
        again = true;
    }
    if (again) {
        *x = __bh_infinity<T>() * (a * c - b * d);
        *y = __bh_infinity<T>() * (a * d + b * c);
    }
}

/* The divisor is scaled, so that its square does not overflow. */
template <class T> __BH_FUNCTION void __bh_complex_quotient(T a, T b, T c, T d, T *x, T *y) {
    T largest = fmax(fabs(c), fabs(d));
    int scale = 0;
    if (largest > 0 && __bh_is_finite(largest)) {
        scale = ilogb(largest);
        c = scalbn(c, -scale), d = scalbn(d, -scale);
    }
    T square = c * c + d * d;
    *x = scalbn((a * c + b * d) / square, -scale);
    *y = scalbn((b * c - a * d) / square, -scale);
    if (!__bh_is_nan(*x) || !__bh_is_nan(*y)) return;
    if (square == 0 && (!__bh_is_nan(a) || !__bh_is_nan(b))) {
        *x = __bh_with_sign(__bh_infinity<T>(), c) * a;
        *y = __bh_with_sign(__bh_infinity<T>(), c) * b;
    } else if ((__bh_is_infinite(a) || __bh_is_infinite(b)) && __bh_is_finite(largest)) {
        a = __bh_box(a), b = __bh_box(b);
        *x = __bh_infinity<T>() * (a * c + b * d);
        *y = __bh_infinity<T>() * (b * c - a * d);
    } else if (__bh_is_infinite(largest) && __bh_is_finite(a) && __bh_is_finite(b)) {
        c = __bh_box(c), d = __bh_box(d);
        *x = (T)0 * (a * c + b * d);
        *y = (T)0 * (b * c - a * d);
    }
}

#define __BH_COMPLEX(name, function, type)                                                         \
    extern "C" inline __device__ type _Complex name(type a, type b, type c, type d) {              \
        type _Complex result;                                                                      \
        type x, y;                                                                                 \
        function(a, b, c, d, &x, &y);                                                              \
        __real__ result = x;                                                                       \
        __imag__ result = y;                                                                       \
        return result;                                                                             \
    }
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wc99-extensions"
__BH_COMPLEX(__mulsc3, __bh_complex_product, float)
__BH_COMPLEX(__muldc3, __bh_complex_product, double)
__BH_COMPLEX(__divsc3, __bh_complex_quotient, float)
__BH_COMPLEX(__divdc3, __bh_complex_quotient, double)
#pragma clang diagnostic pop
#undef __BH_COMPLEX

#endif
