/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bulkhead: GPU kernels in watertight compartments.
 *
 * A program opens a device, loads kernels, allocates buffers, launches, and waits on tickets. The
 * kernels run in a worker process. When a kernel faults or hangs, the worker is lost and a standby
 * takes over, with every intact buffer in place at the same address. The program continues. Without
 * a GPU the same program runs on the CPU device, which executes the same PTX.
 *
 *     int main(void) {
 *         float hx[1000], hy[1000];
 *         uint32_t n = 1000;
 *         for (uint32_t i = 0; i < n; i++) hx[i] = (float)i, hy[i] = 1.0f;
 *
 *         bh_device gpu;
 *         bh_module mod;
 *         bh_kernel saxpy;
 *         bh_buffer x, y;
 *         bh_ticket done;
 *         if (bh_device_open(NULL, &gpu) || bh_module_load_file(gpu, "saxpy.ptx", &mod) ||
 *             bh_kernel_get(mod, "saxpy", &saxpy) || bh_buffer_alloc(gpu, BH_F32, n, NULL, &x) ||
 *             bh_buffer_alloc(gpu, BH_F32, n, NULL, &y) || bh_buffer_write(x, 0, hx, sizeof hx) ||
 *             bh_buffer_write(y, 0, hy, sizeof hy) ||
 *             bh_launch(saxpy, BH_GRID(n, 256), BH_ARGS(2.0f, BH_IN(x), BH_INOUT(y), n), NULL,
 *                       &done) ||
 *             bh_wait(done, BH_FOREVER) || bh_buffer_read(y, 0, hy, sizeof hy))
 *             return fprintf(stderr, "%s\n", bh_last_message()), 1;
 *         printf("y[999] = %g\n", hy[999]);
 *         return bh_device_close(gpu); // and everything that belongs to it
 *     }
 *
 * Rules that hold everywhere:
 *
 * - Calls return a bh_status; BH_OK is zero. After a failed call bh_last_error gives the calling
 *   thread the message, what to do about it, and the device driver's own code; bh_last_message
 *   gives the same as one text.
 * - Handles are 64-bit values in structs of their own types; zero is no handle. A closed, foreign
 *   or forged handle is always recognised: BH_E_INVALID. Closing a device closes everything that
 *   belongs to it.
 * - Any thread may make any call. Work goes to lanes: a lane runs its work in order, lanes run
 *   concurrently. Work on different lanes that uses the same buffer is ordered by the library, on
 *   the device.
 * - If a call that takes a callback or a ticket fails, the callback never runs and the ticket is
 *   not written. A ticket that the program does not need may be NULL.
 * - Structs that may grow begin with their own size: `bh_device_options o = BH_INIT(o);` sets it
 *   and zeroes the rest. In options zero is always the default, and NULL options are all defaults.
 *   Structs that a call fills in (bh_device_info and so on) need their size set too. Options that
 *   only a newer header has are refused with BH_E_UNSUPPORTED unless they are zero; such fields of
 *   a struct that a call fills in become zero.
 * - After a loss, a buffer that work in flight could write is suspect: reading it gives BH_E_STALE
 *   until it is overwritten or bh_buffer_accept accepts it. All other buffers are intact.
 * - After a fork while a device is open, every call in the child returns BH_E_STOPPED, except those
 *   that concern no device: bh_log_set, bh_failure_set_limit, bh_last_error, bh_preflight_line, and
 *   bh_compile_log without a ticket. Memory of bh_host_alloc and of managed buffers is not mapped
 *   in the child: an access is a SIGSEGV.
 * - When a device has stopped, calls that submit work or allocate return BH_E_STOPPED. Properties,
 *   lists, tickets, reports, releasing and closing work as before, and so does bh_buffer_read, as
 *   far as core.h says.
 *
 * This header includes all of those below. Each of them can be included by itself; most programs
 * need core.h only.
 */
#ifndef BULKHEAD_H
#define BULKHEAD_H

/* In the order to read them in. */
/* clang-format off */
#include "bulkhead/core.h"       /* errors, devices, kernels, buffers, launches, tickets, lanes */
#include "bulkhead/args.h"       /* BH_GRID, BH_ARGS, BH_IN: shapes and arguments in C and C++ */
#include "bulkhead/kernel.h"     /* kernels and module variables in detail; checking launches */
#include "bulkhead/memory.h"     /* what is allocated, limits, pools of host memory */
#include "bulkhead/request.h"    /* work described by a struct: transfers, rows */
#include "bulkhead/library.h"    /* vectors, matrices and arrays for library calls; experimental */
#include "bulkhead/blas.h"       /* products of matrices and the rest of BLAS; experimental */
#include "bulkhead/fft.h"        /* Fourier transforms; experimental */
#include "bulkhead/solver.h"     /* systems of equations, eigenvalues; experimental */
#include "bulkhead/texture.h"    /* images, textures, surfaces; experimental */
#include "bulkhead/tensor_map.h" /* boxes of tensors for kernels of sm_90; experimental */
#include "bulkhead/compile.h"    /* CUDA C++ at run time, binaries, the cache */
#include "bulkhead/sequence.h"   /* prepared launches, recorded work */
#include "bulkhead/observe.h"    /* devices, losses, policy, watchers, reports, counters, traces */
#include "bulkhead/managed.h"    /* one address in the program and on the device */
#include "bulkhead/share.h"      /* the same memory in several devices or processes */
#include "bulkhead/dispatch.h"   /* a kernel on arrays of the host, in one call; experimental */
#include "bulkhead/debug.h"      /* threads followed step by step; CPU device; experimental */
/* clang-format on */

#endif
