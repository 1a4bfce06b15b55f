/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: constants of mathematics. */
#pragma once

/* The functions are built in. */
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#endif
#ifndef HUGE_VAL
#define HUGE_VAL __longlong_as_double(0x7ff0000000000000ll)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef M_PI
#define M_E        2.718281828459045
#define M_LOG2E    1.4426950408889634
#define M_LOG10E   0.4342944819032518
#define M_LN2      0.6931471805599453
#define M_LN10     2.302585092994046
#define M_PI       3.141592653589793
#define M_PI_2     1.5707963267948966
#define M_PI_4     0.7853981633974483
#define M_1_PI     0.3183098861837907
#define M_2_PI     0.6366197723675814
#define M_2_SQRTPI 1.1283791670955126
#define M_SQRT2    1.4142135623730951
#define M_SQRT1_2  0.7071067811865476
#endif
