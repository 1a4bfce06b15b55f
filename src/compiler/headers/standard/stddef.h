/* SPDX-License-Identifier: Apache-2.0 */
/* The C header of this name, with the compiler's constants; no system header is read. */
#ifndef BULKHEAD_STDDEF_H
#define BULKHEAD_STDDEF_H

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;

#undef NULL
#define NULL                   __null
#define offsetof(type, member) __builtin_offsetof(type, member)

#endif
