/* SPDX-License-Identifier: Apache-2.0 */
/* Modules on the CPU device: PTX text, loaded and described. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/tensor.h"
#include "cpu/cpu.h"
#include "cpu/library/library.h"
#include "cpu/native.h"
#include "worker/module_blob.h"
#include "writes/writes.h"

static const char *binary_kind(const uint8_t *image, size_t bytes) {
    static const uint8_t elf[] = {0x7f, 'E', 'L', 'F'};
    static const uint8_t fatbin[] = {0x50, 0xed, 0x55, 0xba};
    static const uint8_t wrapper[] = {0xb1, 0x43, 0x62, 0x46};
    if (bytes < 4) return NULL;
    if (memcmp(image, elf, 4) == 0) return "a cubin";
    if (memcmp(image, fatbin, 4) == 0 || memcmp(image, wrapper, 4) == 0) return "a fatbin";
    return NULL;
}

static bh_status describe(const bh__cpu_module *module, const bh__writes *writes, bh_error *error,
                          int *out_blob) {
    const bh__ptx_module *code = module->code;
    bh__blob blob = {0};
    for (uint32_t i = 0; i < bh__ptx_kernel_count(code); i++) {
        const bh__ptx_kernel *kernel = bh__ptx_kernel_at(code, i);
        bh__blob_param *params = calloc(kernel->param_count + 1, sizeof *params);
        if (!params) {
            blob.failed = true;
            break;
        }
        for (uint32_t j = 0; j < kernel->param_count; j++) {
            params[j].offset = kernel->params[j].offset;
            params[j].bytes = kernel->params[j].size;
            params[j].pointer = kernel->params[j].pointer;
            params[j].scalar = kernel->params[j].scalar;
            params[j].tensor_map = kernel->params[j].size == BH__TENSOR_MAP_BYTES &&
                                   kernel->params[j].offset % BH__TENSOR_MAP_ALIGN == 0;
        }
        bh__blob_kernel entry = {.param_count = kernel->param_count,
                                 .param_bytes = kernel->param_bytes,
                                 .static_shared = kernel->static_shared,
                                 .local_bytes = kernel->local_bytes,
                                 .registers = kernel->registers,
                                 .max_threads = kernel->max_threads};
        memcpy(entry.required_block, kernel->required, sizeof entry.required_block);
        memcpy(entry.required_cluster, kernel->cluster, sizeof entry.required_cluster);
        entry.needs_cluster = kernel->needs_cluster;
        entry.executor = BH_EXECUTOR_INTERPRETER;
        bh__blob_add_kernel(&blob, kernel->name, entry, params);
        free(params);
    }
    for (uint32_t i = 0; i < bh__ptx_variable_count(code); i++) {
        const bh__ptx_variable *variable = bh__ptx_variable_at(code, i);
        bh__blob_variable entry = {.bytes = variable->size,
                                   .writable = !variable->constant &&
                                               bh__writes_has(writes, variable->name)};
        bh__blob_add_variable(&blob, variable->name, entry);
    }
    return bh__blob_finish(&blob, error, out_blob);
}

static void module_free(bh__device_instance *device, bh__cpu_module *module) {
    if (module->image) bh__ptx_image_destroy(module->image);
    bh__ptx_free(module->code);
    bh__cpu_native_destroy(module->native, &device->code);
}

static bh_status make_heap(bh__device_instance *device, const bh__ptx_module *code,
                           bh_error *error) {
    if (device->heap || !bh__ptx_uses_heap(code)) return BH_OK;
    device->heap = bh__ptx_heap_create(BH__PTX_HEAP_BYTES);
    if (device->heap) return BH_OK;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                    "no memory for a kernel heap of %llu bytes",
                    (unsigned long long)BH__PTX_HEAP_BYTES);
}

static bh_status module_create(bh__device_instance *device, bh__cpu_module *module,
                               const void *image, size_t bytes, bh_error *error, int *out_blob) {
    module->library = bh__library_of_image(image, bytes);
    if (module->library)
        return bh__cpu_library_load(module->library, device->services->libraries, error, out_blob);
    bh_status status = bh__ptx_load(image, bytes, error, &module->code);
    if (status != BH_OK) return status;
    status = bh__ptx_image_create(module->code, error, &module->image);
    if (status == BH_OK) status = make_heap(device, module->code, error);
    if (status == BH_OK) {
        bool any = bh__ptx_variable_count(module->code) > 0;
        bh__writes *writes = any ? bh__writes_of_ptx(image, bytes) : NULL;
        if (device->code.base)
            module->native = bh__cpu_native_create(bh__ptx_kernel_count(module->code));
        status = describe(module, writes, error, out_blob);
        bh__writes_free(writes);
    }
    if (status != BH_OK) module_free(device, module);
    return status;
}

static bh_status module_add(bh__device_instance *device, const bh__cpu_module *module,
                            bh_error *error) {
    bh__cpu_module *modules =
        realloc(device->modules, (device->module_count + 1) * sizeof *modules);
    if (!modules)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "unload modules that are not used",
                        "no memory for the list of %zu modules", device->module_count + 1);
    device->modules = modules;
    modules[device->module_count++] = *module;
    bh_status status = bh__cpu_view_renew(device, error);
    if (status != BH_OK) device->module_count--;
    return status;
}

bh__cpu_module *bh__cpu_find_module(bh__device_instance *device, uint32_t id) {
    for (size_t i = 0; i < device->module_count; i++) {
        if (device->modules[i].id == id) return &device->modules[i];
    }
    return NULL;
}

bh_status bh__cpu_module_load(bh__device_instance *device, uint32_t id, const void *image,
                              size_t bytes, bh_error *error, int *out_blob) {
    const char *binary = binary_kind(image, bytes);
    if (binary)
        return bh__fail(error, BH_E_UNSUPPORTED, "give the CPU device PTX text",
                        "the image is %s: the CPU device runs PTX text only", binary);
    if (bh__cpu_find_module(device, id))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "module %u is loaded already", id);
    bh__cpu_module module = {.id = id};
    int blob = -1;
    bh_status status = module_create(device, &module, image, bytes, error, &blob);
    if (status != BH_OK) return status;
    status = module_add(device, &module, error);
    if (status != BH_OK) {
        module_free(device, &module);
        close(blob);
        return status;
    }
    *out_blob = blob;
    return BH_OK;
}

bh_status bh__cpu_module_unload(bh__device_instance *device, uint32_t id, bh_error *error) {
    bh__cpu_module *module = bh__cpu_find_module(device, id);
    if (!module)
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no module %u to unload",
                        id);
    bh__cpu_module gone = *module;
    *module = device->modules[device->module_count - 1];
    device->module_count--;
    (void)bh__cpu_view_renew(device, NULL);
    bh__cpu_debug_forget(device, id);
    module_free(device, &gone);
    return BH_OK;
}

bh_status bh__cpu_global_set(bh__device_instance *device, const bh__module_message *where,
                             const void *bytes, size_t count, bh_error *error) {
    bh__cpu_module *module = bh__cpu_find_module(device, where->id);
    if (!module || module->library || where->variable >= bh__ptx_variable_count(module->code))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "there is no variable %u in module %u", where->variable, where->id);
    const bh__ptx_variable *variable = bh__ptx_variable_at(module->code, where->variable);
    if (!bh__range_fits(where->offset, count, variable->size))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "%zu bytes at offset %llu do not fit variable \"%.100s\" of %llu bytes",
                        count, (unsigned long long)where->offset, variable->name,
                        (unsigned long long)variable->size);
    if (count)
        memcpy((uint8_t *)bh__ptx_image_variable(module->image, where->variable) + where->offset,
               bytes, count);
    return BH_OK;
}

void bh__cpu_unload_all(bh__device_instance *device) {
    for (size_t i = 0; i < device->module_count; i++) {
        bh__cpu_debug_forget(device, device->modules[i].id);
        module_free(device, &device->modules[i]);
    }
    free(device->modules);
    device->modules = NULL;
    device->module_count = 0;
}
