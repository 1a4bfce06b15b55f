/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/sequence.h: work that is checked once and submitted many times. Stable.
 *
 * A prepared launch is one launch; a sequence is up to 65,536 launches and transfers, at most 16
 * MiB with their parameters, that are submitted as one.
 *
 *     bh_status twice(bh_device gpu, bh_kernel scale, bh_kernel sum, bh_buffer x, bh_buffer other,
 *                     bh_buffer total, uint32_t n) {
 *         bh_sequence seq;
 *         uint32_t step;
 *         bh_status s = bh_sequence_begin(gpu, NULL, &seq);
 *         if (s) return s;
 *         (void)((s = bh_sequence_launch(seq, scale, BH_GRID(n, 256),
 *                                        BH_ARGS(2.0f, BH_INOUT(x), n), NULL, &step)) ||
 *                (s = bh_sequence_launch(seq, sum, BH_GRID(n, 256),
 *                                        BH_ARGS(BH_IN(x), BH_OUT(total), n), NULL, NULL)) ||
 *                (s = bh_sequence_finish(seq)) ||
 *                (s = bh_sequence_submit(seq, NULL, NULL)) ||
 *                (s = bh_sequence_bind(seq, x, other)) ||     // `other` instead of x from now on;
 *                (s = bh_sequence_set(seq, step, 0, BH_ARG(3.0f))) ||   // the first submission,
 *                (s = bh_sequence_submit(seq, NULL, NULL)) ||           // if still queued, keeps x
 *                (s = bh_device_sync(gpu, BH_FOREVER)));
 *         bh_sequence_release(seq);
 *         return s;
 *     }
 */
#ifndef BULKHEAD_SEQUENCE_H
#define BULKHEAD_SEQUENCE_H

#include "request.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- prepared launches ----
 *
 * A prepared launch is checked and packed once. Each launch of it then costs little more than its
 * place in the queue, also with other buffers or numbers.
 *
 * It keeps its buffers alive: a buffer that is released meanwhile is freed when the prepared launch
 * no longer uses it. It does not keep its module alive: after bh_module_release, launching returns
 * BH_E_INVALID. Values given with BH_VALUE are copied. Suspect buffers, a quarantined kernel and a
 * full queue are detected at each launch. A takeover does not affect it.
 *
 * Any thread may use it at any time, several threads at once too. A change is atomic: a launch uses
 * the state before it or the state after it. A thread that shares it with others passes its own
 * values with the call.
 */
typedef struct bh_prepared {
    uint64_t id;
} bh_prepared;

typedef struct bh_change {
    uint32_t index; /* of the argument, counted from 0 */
    uint32_t reserved;
    bh_arg arg;
} bh_change;

/* The options are those of bh_launch without `after` and BH_SUBMIT_WAIT, which belong to one launch
 * (BH_E_INVALID). */
BH_API bh_status bh_prepare(bh_kernel kernel, bh_shape shape, bh_args args,
                            const bh_launch_options *options, bh_prepared *out);
/* Makes the changes and launches, as one step. They stay for later launches, also if this one is
 * refused after them (BH_E_BUSY for example). If a change is refused, none is made and nothing is
 * launched. changes NULL, count 0: as it is. */
BH_API bh_status bh_prepared_launch(bh_prepared prepared, const bh_change *changes, size_t count,
                                    bh_ticket *out);
/* Queued launches are not affected. */
BH_API bh_status bh_prepared_release(bh_prepared prepared);

/* ---- sequences: recording ----
 *
 * A sequence holds launches, copies, fills, and transfers from and to memory of bh_host_alloc. Its
 * steps run in the order they were recorded in. On a GPU it is one graph, which is made when
 * recording is finished, in the worker and in the standby.
 *
 * A submission uses what the sequence is bound and set to at the time of the call. A sequence keeps
 * what it uses alive until it is released or bound to something else: buffers, and modules whose
 * handles are no longer valid.
 */
typedef struct bh_sequence {
    uint64_t id;
} bh_sequence;

typedef struct bh_sequence_options {
    uint32_t size;
    uint32_t flags;   /* none yet */
    const char *name; /* for messages, at most 63 bytes, copied; default "sequence 1" and so on */
} bh_sequence_options;

BH_API bh_status bh_sequence_begin(bh_device device, const bh_sequence_options *options,
                                   bh_sequence *out);

/* Checked like bh_launch, with the same options, except that lane, deadline, after and
 * BH_SUBMIT_... flags belong to the submission (BH_E_INVALID). *out_step gets the number of the
 * step, counted from 0; here and below out_step may be NULL. */
BH_API bh_status bh_sequence_launch(bh_sequence sequence, bh_kernel kernel, bh_shape shape,
                                    bh_args args, const bh_launch_options *options,
                                    uint32_t *out_step);
/* A transfer of one range; with a width of 0 the step does nothing. Its host memory is from
 * bh_host_alloc or bh_host_pool_take; it is read or written when the step runs, and cannot be freed
 * or given back before the sequence is released (BH_E_BUSY). Patterns have 1, 2, 4, 8 or 16 bytes.
 * BH_E_UNSUPPORTED: rows with gaps. */
BH_API bh_status bh_sequence_add(bh_sequence sequence, const bh_request *request,
                                 uint32_t *out_step);
/* Ends recording. On return the sequence is ready to be submitted. BH_E_INVALID: it has no steps,
 * and still records. If the call fails otherwise, the sequence can only be released. */
BH_API bh_status bh_sequence_finish(bh_sequence sequence);

/* ---- sequences: changing and submitting ---- */

/* Uses `buffer` from now on wherever `recorded` was recorded. Both have the same size in bytes;
 * `recorded` may have been released. */
BH_API bh_status bh_sequence_bind(bh_sequence sequence, bh_buffer recorded, bh_buffer buffer);
/* Changes an argument of a launch that is not a buffer. */
BH_API bh_status bh_sequence_set(bh_sequence sequence, uint32_t step, uint32_t argument,
                                 bh_arg value);

/* If a step faults, the ticket's error names the sequence and the step, counted from 0; on a GPU it
 * names the steps that are possible causes, at most sixteen. A step that is refused ends the
 * submission; the steps before it have run. */
BH_API bh_status bh_sequence_submit(bh_sequence sequence, const bh_submit_options *options,
                                    bh_ticket *out);
/* Submitted work still runs. The handle is invalid at once. */
BH_API bh_status bh_sequence_release(bh_sequence sequence);

#ifdef __cplusplus
} /* extern "C" */

/* For the lists of BH_ARGS, as in args.h. */
namespace bulkhead {
namespace detail {

template <size_t N>
inline bh_status bh_prepare(bh_kernel kernel, bh_shape shape, const arg_list<N> &args,
                            const bh_launch_options *options, bh_prepared *out) {
    return ::bh_prepare(kernel, shape, args, options, out);
}
template <size_t N>
inline bh_status bh_sequence_launch(bh_sequence sequence, bh_kernel kernel, bh_shape shape,
                                    const arg_list<N> &args, const bh_launch_options *options,
                                    uint32_t *out_step) {
    return ::bh_sequence_launch(sequence, kernel, shape, args, options, out_step);
}

} // namespace detail
} // namespace bulkhead
#endif

#endif
