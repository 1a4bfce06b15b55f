/* SPDX-License-Identifier: Apache-2.0 */
/* Native code of kernels in a worker. The code comes from a process that never ran a kernel
 * (bulkhead-compiler) by way of the application; this file puts it where it can run. */
#include "cpu/native.h"

#include <stdlib.h>
#include <string.h>

#include "base/processor_kind.h"
#include "wire/native.h"

typedef struct piece { /* of code memory */
    struct piece *next;
    uint8_t *at;
    size_t bytes;
} piece;

struct bh__cpu_native {
    piece *pieces;
    uint32_t kernels;
    _Atomic(bh__ptx_compiled *) code[]; /* of each kernel, one for each shape of blocks */
};

bh__cpu_native *bh__cpu_native_create(uint32_t kernels) {
    size_t codes = BH__NATIVE_SHAPES * (size_t)kernels;
    bh__cpu_native *native = calloc(1, sizeof *native + codes * sizeof native->code[0]);
    if (native) native->kernels = kernels;
    return native;
}

void bh__cpu_native_destroy(bh__cpu_native *native, bh__cpu_code_memory *memory) {
    while (native && native->pieces) {
        piece *gone = native->pieces;
        native->pieces = gone->next;
        bh__cpu_code_give(memory, gone->at, gone->bytes);
        free(gone);
    }
    free(native);
}

static size_t slot_of(uint32_t kernel, uint32_t shape) {
    return BH__NATIVE_SHAPES * (size_t)kernel + (size_t)__builtin_ctz(shape);
}

bh__ptx_compiled *bh__cpu_native_code(const bh__cpu_native *native, uint32_t kernel,
                                      const uint32_t block[3]) {
    if (!native) return NULL;
    return atomic_load_explicit(&native->code[slot_of(kernel, bh__native_shape(block))],
                                memory_order_acquire);
}

/* The entry that begins the code, and where it ends: all of it goes to one piece. */
static bool code_range(const bh__native_entry *list, uint32_t count, uint64_t *first,
                       uint64_t *end) {
    *first = UINT64_MAX;
    *end = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].bytes == 0) continue;
        if (list[i].offset < *first) *first = list[i].offset;
        if (list[i].offset + list[i].bytes > *end) *end = list[i].offset + list[i].bytes;
    }
    return *end > 0;
}

static bh_status take_piece(bh__device_instance *device, bh__cpu_native *native, size_t bytes,
                            bh_error *error, piece **out) {
    piece *made = malloc(sizeof *made);
    uint8_t *at = made ? bh__cpu_code_take(&device->code, bytes) : NULL;
    if (!at) {
        free(made);
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "unload modules that are not used",
                        "no room for %zu bytes of native code: a worker has %d in all", bytes,
                        device->code.base ? (int)BH__CPU_CODE_BYTES : 0);
    }
    *made = (piece){native->pieces, at, bytes};
    native->pieces = *out = made;
    return BH_OK;
}

static void install(bh__cpu_native *native, const bh__native_entry *entry, uint8_t *code) {
    size_t slot = slot_of(entry->kernel, entry->shape);
    bh__ptx_compiled *function = (bh__ptx_compiled *)(uintptr_t)(code + entry->start);
    atomic_store_explicit(&native->code[slot], function, memory_order_release);
}

/* Why a block cannot be used; NULL: it can, and *out has its entries. */
static const char *refusal(const bh__cpu_module *module, const void *data, size_t bytes,
                           const bh__native_entry **out, uint32_t *out_count) {
    const bh__native_head *head = data;
    if (!module) return "came, and there is no such module";
    if (!module->native) return "came, and there was no memory for its table";
    *out = bh__native_check(data, bytes, out_count);
    if (!*out) return "is not valid";
    for (uint32_t i = 0; i < *out_count; i++) {
        if ((*out)[i].kernel >= module->native->kernels) return "is for kernels that do not exist";
    }
    if (head->fingerprint != bh__ptx_fingerprint(module->code))
        return "is of another build of Bulkhead";
    return head->processor == bh__processor_kind() ? NULL : "is for another processor";
}

bh_status bh__cpu_module_native(bh__device_instance *device, uint32_t id, const void *data,
                                size_t bytes, bh_error *error) {
    bh__cpu_module *module = bh__cpu_find_module(device, id);
    const bh__native_entry *list;
    uint32_t count = 0;
    const char *why = refusal(module, data, bytes, &list, &count);
    if (why)
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "native code of %zu bytes for module %u %s", bytes, id, why);
    uint64_t first, end;
    piece *place = NULL;
    if (!code_range(list, count, &first, &end)) return BH_OK;
    bh_status status = take_piece(device, module->native, (size_t)(end - first), error, &place);
    if (status == BH_OK)
        status = bh__cpu_code_write(&device->code, place->at, (const uint8_t *)data + first,
                                    place->bytes, error);
    if (status != BH_OK) return status;
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].bytes) install(module->native, &list[i], place->at + (list[i].offset - first));
    }
    return BH_OK;
}
