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

static bh_status refuse_out(void) {
    return bh__refuse(BH_E_INVALID, "pass storage for the buffer", "out is NULL");
}

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

/* Locks the device and allocates. */
static bh_status allocate_on(bh_device handle, bh__allocation *what, bh_buffer *out) {
    if (bh__buffer_bytes(what->type, what->count, &what->bytes) != BH_OK) return bh__last()->status;
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bool allocated = bh__allocate(device, what, out);
    bh__device_unlock(device);
    return allocated ? BH_OK : bh__last()->status;
}

/* ---- plain buffers ---- */

static bh_status take_options(const bh_buffer_options *given, bh_buffer_options *out) {
    *out = (bh_buffer_options)BH_INIT(*out);
    if (bh__options_take(given, out, "bh_buffer_options") != BH_OK) return BH_E_INVALID;
    if (out->flags & ~(uint32_t)BH_BUFFER_ZERO)
        return bh__refuse(BH_E_INVALID, "use only flags from bulkhead.h",
                          "bh_buffer_options.flags has unknown flags 0x%x",
                          out->flags & ~(uint32_t)BH_BUFFER_ZERO);
    if (out->align && (!bh__is_power_of_two(out->align) || out->align > MAX_ALIGN))
        return bh__refuse(BH_E_INVALID, "align to a power of two of at most 65536",
                          "bh_buffer_options.align is %llu", (unsigned long long)out->align);
    return BH_OK;
}

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

static bh_status alloc_plain(bh_device device, bh_type type, uint64_t count,
                             bh_buffer_options *options, const void *call_site, bh_buffer *out) {
    bh__allocation what = {.type = type,
                           .count = count,
                           .tag = options->tag,
                           .call_site = call_site,
                           .create = create_plain,
                           .context = options};
    return allocate_on(device, &what, out);
}

bh_status bh_buffer_alloc(bh_device device, bh_type type, uint64_t count,
                          const bh_buffer_options *given, bh_buffer *out) {
    if (!out) return refuse_out();
    bh_buffer_options options;
    if (take_options(given, &options) != BH_OK) return bh__last()->status;
    bh_buffer made;
    bh_status status =
        alloc_plain(device, type, count, &options, __builtin_return_address(0), &made);
    if (status != BH_OK) return status;
    if (options.flags & BH_BUFFER_ZERO) {
        status = bh__submit_zeros(made, count * bh_type_size(type));
        if (status != BH_OK) {
            bh_error why = *bh__last();
            (void)bh_buffer_release(made);
            return bh__refuse_with(&why);
        }
    }
    *out = made;
    return BH_OK;
}

/* ---- shareable buffers ---- */

bh_status bh_buffer_alloc_shareable(bh_device device, bh_type type, uint64_t count,
                                    bh_buffer *out) {
    if (!out) return refuse_out();
    bh__allocation what = {.type = type,
                           .count = count,
                           .call_site = __builtin_return_address(0),
                           .create = bh__shareable_create};
    return allocate_on(device, &what, out);
}

/* ---- managed and driver-managed buffers ---- */

static bh_status create_managed(bh__device *device, uint64_t bytes, void *context,
                                bh__memory **out) {
    return bh__managed_create(device, bytes, context, out);
}

bh_status bh_managed_alloc(bh_device handle, bh_type type, uint64_t count,
                           const bh_managed_options *given, bh_buffer *out, void **out_pointer) {
    if (!out) return refuse_out();
    bh_managed_options options;
    if (bh__managed_options_take(given, &options) != BH_OK) return bh__last()->status;
    bh__allocation what = {.type = type,
                           .count = count,
                           .tag = options.tag,
                           .call_site = __builtin_return_address(0),
                           .create = create_managed,
                           .context = &options};
    if (bh__buffer_bytes(type, count, &what.bytes) != BH_OK) return bh__last()->status;
    if (what.bytes > (uint64_t)INT64_MAX / 2)
        return bh__refuse(BH_E_INVALID, "allocate at most 2^62 bytes", "%llu bytes requested",
                          (unsigned long long)what.bytes);
#ifdef BH__ONE_PROCESS
    (void)handle;
    (void)out_pointer;
    return bh__refuse(
        BH_E_UNSUPPORTED, "use a build with worker processes",
        "managed buffers: the worker is a thread of this process and uses the address");
#else
    bh__device *device = bh__device_lock(handle.id, BH__KIND_DEVICE, "device", true);
    if (!device) return bh__last()->status;
    bh__memory *memory = NULL;
    if (bh__managed_check_options(device, &options) == BH_OK)
        memory = bh__allocate(device, &what, out);
    if (memory && out_pointer) *out_pointer = bh__managed_pointer(memory);
    bh__device_unlock(device);
    return memory ? BH_OK : bh__last()->status;
#endif
}
