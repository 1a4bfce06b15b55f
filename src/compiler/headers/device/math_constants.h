/* SPDX-License-Identifier: Apache-2.0 */
/* Constants of CUDA: infinities, NaNs, and the usual numbers in both types. */
#ifndef BULKHEAD_COMPAT_MATH_CONSTANTS_H
#define BULKHEAD_COMPAT_MATH_CONSTANTS_H

#include "bulkhead_cuda.h"

#define CUDART_INF_F        __int_as_float(0x7f800000)
#define CUDART_NAN_F        __int_as_float(0x7fffffff)
#define CUDART_MIN_DENORM_F __int_as_float(0x00000001)
#define CUDART_MAX_NORMAL_F __int_as_float(0x7f7fffff)
#define CUDART_NEG_ZERO_F   __int_as_float((int)0x80000000u)
#define CUDART_ZERO_F       0.0f
#define CUDART_ONE_F        1.0f
#define CUDART_SQRT_HALF_F  0.707106781f
#define CUDART_SQRT_TWO_F   1.414213562f
#define CUDART_THIRD_F      0.333333333f
#define CUDART_PIO4_F       0.785398163f
#define CUDART_PIO2_F       1.570796327f
#define CUDART_PI_F         3.141592654f
#define CUDART_2PI_F        6.283185307f
#define CUDART_1_OVER_PI_F  0.318309886f
#define CUDART_2_OVER_PI_F  0.636619772f
#define CUDART_L2E_F        1.442695041f
#define CUDART_L2T_F        3.321928094f
#define CUDART_LG2_F        0.301029996f
#define CUDART_LGE_F        0.434294482f
#define CUDART_LN2_F        0.693147181f
#define CUDART_LNT_F        2.302585093f
#define CUDART_INF          __longlong_as_double(0x7ff0000000000000ll)
#define CUDART_NAN          __longlong_as_double(0x7fffffffffffffffll)
#define CUDART_MIN_DENORM   __longlong_as_double(1ll)
#define CUDART_MAX_NORMAL   __longlong_as_double(0x7fefffffffffffffll)
#define CUDART_NEG_ZERO     __longlong_as_double((long long)0x8000000000000000ull)
#define CUDART_ZERO         0.0
#define CUDART_ONE          1.0
#define CUDART_SQRT_TWO     1.4142135623730950488
#define CUDART_SQRT_HALF    0.70710678118654752440
#define CUDART_THIRD        0.33333333333333333333
#define CUDART_PIO4         0.78539816339744830962
#define CUDART_PIO2         1.57079632679489661923
#define CUDART_PI           3.14159265358979323846
#define CUDART_2_OVER_PI    0.63661977236758134308
#define CUDART_SQRT_2PI     2.50662827463100050242
#define CUDART_LG2          0.30102999566398119521
#define CUDART_LGE          0.43429448190325182765
#define CUDART_LN2          0.69314718055994530942
#define CUDART_LNT          2.30258509299404568402
#define CUDART_L2E          1.44269504088896340736
#define CUDART_L2T          3.32192809488736234787

#endif
