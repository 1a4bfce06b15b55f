/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: assertions. */
#pragma once

/* assert is built in. */
#ifdef NDEBUG
#undef assert
#define assert(condition) ((void)0)
#endif
