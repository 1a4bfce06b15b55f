/* SPDX-License-Identifier: Apache-2.0 */
/* Allocating buffers: plain, shareable, managed and driver-managed ones take one path. */
#include "base/checked.h"
#include "client/buffer/internal.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/transfer/transfer.h"

enum { MAX_ALIGN = 64 * 1024 };

/* ---- the path ---- */

bh__memory *bh__allocate(bh__device *device, const bh__allocation *what, bh_buffer *out) {
    bh__tag *tag = bh__tag_begin(device, what->tag, what->bytes);
    if (!tag) return NULL;
    bh__memory *memory = NULL;
    if (what->create(device, what->bytes, what->context, &memory) != BH_OK) memory = NULL;
    bh__tag_end(tag, what->bytes, memory);
    if (!memory) return NULL;
    memory->call_site = what->call_site;
    if (bh__buffer_add(device, memory, what->type, 0, what->count, false, out) == BH_OK) {
        bh__usage_add(device, memory);
        return memory;
    }
    bh_error why = *bh__last();
    bh__tag_discharge(memory->tag, what->bytes);
    bh__memory_drop(device, memory);
    bh__refuse_with(&why);
    return NULL;
}

/* ---- options ---- */

static bh_status check_flags(uint32_t flags) {
    const uint32_t known =
        BH_BUFFER_ZERO | BH_BUFFER_SHAREABLE | BH_BUFFER_DRIVER | BH__BUFFER_MIRRORED;
    if (flags & ~known)
        return bh__refuse(BH_E_INVALID, "use only BH_BUFFER_... flags",
                          "bh_buffer_options.flags has unknown flags 0x%x", flags & ~known);
    uint32_t kinds = flags & (BH_BUFFER_SHAREABLE | BH_BUFFER_DRIVER | BH_BUFFER_MANAGED);
    if (kinds & (kinds - 1))
        return bh__refuse(BH_E_UNSUPPORTED, "choose one of them",
                          "bh_buffer_options.flags is 0x%x: BH_BUFFER_MANAGED, BH_BUFFER_DRIVER "
                          "and BH_BUFFER_SHAREABLE exclude each other",
                          flags);
    return BH_OK;
}

static bh_status take_options(const bh_buffer_options *given, bh_buffer_options *out) {
    *out = (bh_buffer_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_buffer_options") != BH_OK) return bh__last()->status;
    if (check_flags(out->flags) != BH_OK) return bh__last()->status;
    if (out->align && (!bh__is_power_of_two(out->align) || out->align > MAX_ALIGN))
        return bh__refuse(BH_E_INVALID, "align to a power of two of at most 65536",
                          "bh_buffer_options.align is %llu", (unsigned long long)out->align);
    return BH_OK;
}

/* ---- the kinds of memory ---- */

/* Cuts a block from a chunk. Releases the lock while a new chunk is created. */
static bh_status cut_block(bh__device *device, uint64_t bytes, uint64_t align, bh__memory **out) {
    bh__memory *memory = bh__memory_new(device);
    if (!memory)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for a buffer's record");
    if (align < BH__HEAP_ALIGN) align = BH__HEAP_ALIGN;
    bh__block *block = bh__block_alloc(device, bytes, align);
    if (!block) {
        bh__memory_delete(device, memory);
        return bh__last()->status;
    }
    memory->block = block;
    memory->bytes = bytes;
    memory->address = block->address;
    memory->read_only_address =
        block->address - device->memory.addresses.base + device->memory.addresses.read_only_base;
    if (bh__checked(device)) bh__check_hand_out(device, memory);
    *out = memory;
    return BH_OK;
}

static bh_status create_plain(bh__device *device, uint64_t bytes, void *context, bh__memory **out) {
    const bh_buffer_options *options = context;
    return bh__guarded(device)
               ? bh__dedicated_create(device, bytes, options->align, BH__DEDICATED_GUARDED, out)
               : cut_block(device, bytes, options->align, out);
}

static bh_status create_managed(bh__device *device, uint64_t bytes, void *context,
                                bh__memory **out) {
    return bh__managed_create(device, bytes, context, out);
}

static bh__create_fn *create_for(uint32_t flags) {
    if (flags & (BH_BUFFER_MANAGED | BH_BUFFER_DRIVER)) return create_managed;
    return flags & BH_BUFFER_SHAREABLE ? bh__shareable_create : create_plain;
}

static bh_status fill_zeros(bh_buffer made, uint64_t bytes) {
    if (bh__submit_zeros(made, bytes) == BH_OK) return BH_OK;
    bh_error why = *bh__last();
    (void)bh_buffer_release(made);
    return bh__refuse_with(&why);
}

bh_status bh_buffer_alloc(bh_device handle, bh_type type, uint64_t count,
                          const bh_buffer_options *given, bh_buffer *out) {
    if (!out) return bh__refuse(BH_E_INVALID, "pass storage for the buffer", "out is NULL");
    bh_buffer_options options;
    bh__allocation what = {.type = type,
                           .count = count,
                           .call_site = __builtin_return_address(0),
                           .context = &options};
    if (take_options(given, &options) != BH_OK ||
        bh__buffer_bytes(type, count, &what.bytes) != BH_OK ||
        bh__managed_check(options.flags, what.bytes) != BH_OK)
        return bh__last()->status;
    what.tag = options.tag;
    /* The mirror of a managed buffer without elements has a page all the same. */
    if (what.bytes == 0 && options.flags & (BH_BUFFER_MANAGED | BH_BUFFER_DRIVER)) what.bytes = 1;
    what.create = create_for(options.flags);
    bh_buffer made;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bool allocated = bh__allocate(device, &what, &made);
    bh__device_unlock(device);
    if (!allocated) return bh__last()->status;
    if (options.flags & BH_BUFFER_ZERO && count && fill_zeros(made, what.bytes) != BH_OK)
        return bh__last()->status;
    *out = made;
    return BH_OK;
}
