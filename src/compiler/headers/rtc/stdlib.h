/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: allocation. */
#pragma once

/* malloc and free are built in. */
