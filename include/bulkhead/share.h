/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bulkhead/share.h: the same memory in several devices or processes. Stable.
 *
 * A shareable buffer can be opened on another bh_device: of the same process, or of another process
 * that was sent its two descriptors (SCM_RIGHTS) and its token (in any way). Both see the same
 * bytes. Without a device, bh_share_map maps a buffer of the CPU device into the process;
 * bulkhead/cuda.h does that for buffers of a GPU.
 *
 *     bh_status same_memory(bh_device first, bh_device second, bh_buffer *here, bh_buffer *there) {
 *         int fds[BH_SHARE_FDS];
 *         bh_share_token token = BH_INIT(token);
 *         bh_buffer_options options = BH_INIT(options);
 *         options.flags = BH_BUFFER_SHAREABLE;
 *         bh_status status = bh_buffer_alloc(first, BH_F32, 1000, &options, here);
 *         if (status == BH_OK) status = bh_buffer_export(*here, fds, &token);
 *         if (status == BH_OK) status = bh_buffer_import(second, fds, &token, NULL, there);
 *         return status; // the caller closes fds; the buffers do not need them any more
 *     }
 *
 * - The memory lives as long as any side holds it. A crash, a release or a lost worker on one side
 *   takes nothing from the others.
 * - Whoever has the descriptors can read and write all of the buffer that the token was made from,
 *   even if the token is for a view of it, and nothing else: such a buffer shares no memory with
 *   others.
 * - The program keeps the order between the sides: bh_wait, then tell the other side. A lane knows
 *   nothing of work elsewhere. The same holds for the two addresses of a buffer that is opened on
 *   the device it comes from.
 * - Each device has its own record of suspect bytes. If a worker of the exporting side is lost
 *   while it may have been writing, `doubts` of bh_share_info increases; other sides report such
 *   losses by their own means.
 */
#ifndef BULKHEAD_SHARE_H
#define BULKHEAD_SHARE_H

#include "core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* For bh_buffer_options.flags. Shareable buffers have memory of their own: allocating and releasing
 * one is a message to the worker, and uses whole units of memory (64 KiB on the CPU device, 2 MiB
 * on a GPU). */
enum { BH_BUFFER_SHAREABLE = 1u << 12 };

enum { BH_SHARE_FDS = 2 }; /* the memory, and the page that says which tokens are valid */

/* Which bytes of which memory. Plain data, sent as it is; of no use without the descriptors. */
typedef struct bh_share_token {
    uint32_t size;
    uint32_t version;
    uint64_t magic;
    bh_type type;
    uint32_t reserved;
    uint64_t count;
    uint64_t offset;      /* of the first element, in the memory */
    uint64_t chunk_bytes; /* of all of the memory */
    uint64_t generation;  /* one more with each bh_buffer_revoke */
    char kind[16];        /* of device: "cpu", "cuda" */
    char uuid[48];        /* of the GPU; "": none */
    uint8_t nonce[16];
    uint64_t check; /* over all of the above, with a key of the buffer */
} bh_share_token;

/* Returns descriptors that belong to the caller (close-on-exec), and a token. Any number of times;
 * also for a buffer that was itself opened from a token. BH_E_UNSUPPORTED: the buffer was allocated
 * without BH_BUFFER_SHAREABLE. */
BH_API bh_status bh_buffer_export(bh_buffer buffer, int out_fds[BH_SHARE_FDS], bh_share_token *out);
/* Makes all tokens of the buffer stale that exist so far, as releasing it and closing its device
 * do. What was opened with them stays open. */
BH_API bh_status bh_buffer_revoke(bh_buffer buffer);

/* Opens a shared buffer on a device of the same kind, for a GPU on the same GPU, at an address of
 * its own. The descriptors stay the caller's and may be closed. BH_E_STALE: the token was revoked.
 * BH_E_INVALID: it is not a token, was changed, or belongs to other descriptors. Of the options
 * only the tag may be set (BH_E_INVALID); NULL: none. */
BH_API bh_status bh_buffer_import(bh_device device, const int fds[BH_SHARE_FDS],
                                  const bh_share_token *token, const bh_buffer_options *options,
                                  bh_buffer *out);

/* Maps a buffer of the CPU device into the memory of this process. No device needs to be open. */
BH_API bh_status bh_share_map(const int fds[BH_SHARE_FDS], const bh_share_token *token, void **out);
BH_API bh_status bh_share_unmap(void *memory);

typedef struct bh_share_info {
    uint32_t size;
    uint32_t stale;      /* 1: the token was revoked; the other fields are valid all the same */
    uint64_t generation; /* of tokens that are valid now */
    uint64_t doubts;     /* how often a lost worker of the exporting side may have left bytes of it
                            half written */
    uint64_t bytes;      /* that the token is for */
    uint8_t mark[16];    /* stands at the beginning of the memory, before the buffer */
} bh_share_info;

/* What the descriptors say of a token. Fails as bh_buffer_import does, except that a stale token is
 * an answer here. */
BH_API bh_status bh_share_get_info(const int fds[BH_SHARE_FDS], const bh_share_token *token,
                                   bh_share_info *out);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
