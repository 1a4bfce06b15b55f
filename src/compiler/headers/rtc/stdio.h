/* SPDX-License-Identifier: Apache-2.0 */
/* For NVRTC, which has none of its own: printing. */
#pragma once

/* printf is built in. */
