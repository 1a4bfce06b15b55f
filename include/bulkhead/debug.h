/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/debug.h: a debugger's view of kernels on the CPU device. Experimental.
 *
 * Two threads are followed instruction by instruction, and the launch ends where line 31 begins:
 *
 *     bh_status watch_two(bh_kernel kernel) {
 *         static const char *const prints[] = {"%f3@28", "%rd1@28"};
 *         bh_debug_options options = BH_INIT(options);
 *         options.flags = BH_DEBUG_TRACE;
 *         options.threads = "0,5";
 *         options.prints = prints;
 *         options.print_count = 2;
 *         options.stop = "31";
 *         return bh_kernel_debug(kernel, &options);
 *     }
 *
 * The text goes where the text of printf in kernels goes: BH_EVENT_PRINT of watchers (observe.h).
 * docs/debugging.md shows it.
 */
#ifndef BULKHEAD_DEBUG_H
#define BULKHEAD_DEBUG_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BH_DEBUG_TRACE = 1 /* every instruction of the threads, with the values it reads and writes */
};

/* A line is a number, of the PTX, or FILE:NUMBER, of the source that it was compiled from. */
typedef struct bh_debug_options {
    uint32_t size;
    uint32_t flags;      /* BH_DEBUG_... */
    uint32_t block[3];   /* the block whose threads are followed: x, y, z */
    uint32_t reserved;   /* 0 */
    const char *threads; /* their numbers in the block, x + y * width + ...: "0,5", "0..32" (without
                            32); NULL: thread 0 */
    const char *stop;    /* a line, at most 499 bytes. A thread that is about to execute it ends the
                            launch (BH_E_CANCELLED), with the state of all threads followed. NULL:
                            none */
    const char *const
        *prints;         /* "REGISTER@LINE", at most 499 bytes: its value, whenever a thread has
                            passed the line */
    size_t print_count;  /* up to 63 */
    uint64_t text_limit; /* bytes of text in one launch; 0: 1 MiB. The rest is left out, and
                                  the last line says so */
} bh_debug_options;

/* Follows threads in the launches of a kernel from now on, until the next call. NULL: no more. A
 * worker that is replaced forgets it. Launches run otherwise as before, other blocks at full speed.
 * BH_E_INVALID: a line or a register that is not there. BH_E_UNSUPPORTED: not the CPU device. A
 * launch without the block or without one of the threads is refused (BH_E_LAUNCH). */
BH_API bh_status bh_kernel_debug(bh_kernel kernel, const bh_debug_options *options);

/* The state of the thread that faulted, when it did, as text for people: the functions that it was
 * in, with the PTX and source lines, and what their registers held. `loss` and the text as for
 * bh_device_get_report (observe.h), which has the same. It is empty if the state is not known: on
 * GPUs, and where the loss was no fault of a kernel. */
BH_API bh_status bh_device_get_fault_state(bh_device device, uint64_t loss, char *text,
                                           size_t capacity, size_t *length);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
