/* SPDX-License-Identifier: Apache-2.0 */
/* What pieces of programs in the documents use without saying where they have it from. A piece that
 * declares one of these itself hides this one. */
#include <bulkhead.h>
#include <bulkhead/cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bh_device device, gpu;
static bh_lane lane;
static bh_module module;
static bh_kernel kernel, saxpy;
static bh_buffer x, y, buffer;
static bh_ticket ticket;
static bh_share_token token;
static int fds[BH_SHARE_FDS];
static float a, *data;
static uint32_t n;
static int64_t rows, columns;
static char text[1 << 16];
static size_t length;
