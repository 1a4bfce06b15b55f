/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: sizes. */
#pragma once

/* size_t, ptrdiff_t and NULL are built in. */
#ifndef offsetof
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
