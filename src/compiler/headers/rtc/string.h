/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: memory. */
#pragma once

/* memcpy and memset are built in. */
