/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: integers of a given width. */
#pragma once

typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef signed short int16_t;
typedef unsigned short uint16_t;
typedef signed int int32_t;
typedef unsigned int uint32_t;
typedef signed long long int64_t;
typedef unsigned long long uint64_t;
typedef int8_t int_least8_t;
typedef uint8_t uint_least8_t;
typedef int16_t int_least16_t;
typedef uint16_t uint_least16_t;
typedef int32_t int_least32_t;
typedef uint32_t uint_least32_t;
typedef int64_t int_least64_t;
typedef uint64_t uint_least64_t;
typedef int8_t int_fast8_t;
typedef uint8_t uint_fast8_t;
typedef int16_t int_fast16_t;
typedef uint16_t uint_fast16_t;
typedef int32_t int_fast32_t;
typedef uint32_t uint_fast32_t;
typedef int64_t int_fast64_t;
typedef uint64_t uint_fast64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;
typedef int64_t intmax_t;
typedef uint64_t uintmax_t;

#ifndef INT32_MAX
#define INT8_MAX        127
#define INT8_MIN        (-INT8_MAX - 1)
#define UINT8_MAX       255
#define INT16_MAX       32767
#define INT16_MIN       (-INT16_MAX - 1)
#define UINT16_MAX      65535
#define INT32_MAX       2147483647
#define INT32_MIN       (-INT32_MAX - 1)
#define UINT32_MAX      4294967295u
#define INT64_MAX       9223372036854775807ll
#define INT64_MIN       (-INT64_MAX - 1)
#define UINT64_MAX      18446744073709551615ull
#define INTPTR_MAX      INT64_MAX
#define INTPTR_MIN      INT64_MIN
#define UINTPTR_MAX     UINT64_MAX
#define INTMAX_MAX      INT64_MAX
#define INTMAX_MIN      INT64_MIN
#define UINTMAX_MAX     UINT64_MAX
#define SIZE_MAX        UINT64_MAX
#define INT64_C(value)  value##ll
#define UINT64_C(value) value##ull
#define INT32_C(value)  value
#define UINT32_C(value) value##u
#endif
