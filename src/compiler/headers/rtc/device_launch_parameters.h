/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: CUDA's header, where the toolkit's is not there. */
#pragma once

/* The built-in variables are built in. */
