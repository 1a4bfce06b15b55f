/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers with flags, and what is asked of them most, in one call each. */
#ifndef TESTS_SUPPORT_BUFFERS_H
#define TESTS_SUPPORT_BUFFERS_H

#include <bulkhead.h>

static inline bh_status alloc_flags(bh_device device, bh_type type, uint64_t count, uint32_t flags,
                                    bh_buffer *out) {
    bh_buffer_options options = BH_INIT(options);
    options.flags = flags;
    return bh_buffer_alloc(device, type, count, &options, out);
}

static inline bh_status alloc_shareable(bh_device device, bh_type type, uint64_t count,
                                        bh_buffer *out) {
    return alloc_flags(device, type, count, BH_BUFFER_SHAREABLE, out);
}

/* Managed, with more flags. out_pointer may be NULL. */
static inline bh_status alloc_managed(bh_device device, bh_type type, uint64_t count,
                                      uint32_t flags, bh_buffer *out, void **out_pointer) {
    bh_buffer buffer = {0};
    if (!(flags & BH_BUFFER_DRIVER)) flags |= BH_BUFFER_MANAGED;
    bh_status status = alloc_flags(device, type, count, flags, out ? &buffer : NULL);
    if (status != BH_OK) return status;
    bh_buffer_info info = BH_INIT(info);
    status = bh_buffer_get_info(buffer, &info);
    if (out_pointer) *out_pointer = info.pointer;
    *out = buffer;
    return status;
}

/* The address on the device. */
static inline bh_status buffer_address(bh_buffer buffer, uint64_t *out) {
    bh_buffer_info info = BH_INIT(info);
    bh_status status = bh_buffer_get_info(buffer, &info);
    if (status == BH_OK) *out = info.address;
    return status;
}

#endif
