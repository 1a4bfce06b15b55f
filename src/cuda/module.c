/* SPDX-License-Identifier: Apache-2.0 */
/* Modules on the CUDA device: loaded by the driver, described, unloaded when the device is idle. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/tensor.h"
#include "cuda/image/image.h"
#include "cuda/library/library.h"
#include "cuda/state.h"
#include "worker/module_blob.h"

enum { LOG_BYTES = 8192 };

/* ---- loading ---- */

static const char *const kind_names[] = {[BH__MODULE_IMAGE_PTX] = "PTX",
                                         [BH__MODULE_IMAGE_CUBIN] = "cubin",
                                         [BH__MODULE_IMAGE_FATBIN] = "fatbin"};

/* PTX runs on its target and what came later; machine code within one generation. */
static bool can_run(const bh__module_image *image, int device_number) {
    int target = bh__module_image_target_number(image->target);
    if (target == 0) return true;
    if (image->kind == BH__MODULE_IMAGE_PTX) return target <= device_number;
    return target / 10 == device_number / 10 && target <= device_number;
}

/* Writes the log to `out` as one line. */
static void tidy_log(const char *log, char *out, size_t size) {
    size_t used = 0;
    bool blank = true;
    for (; *log && used + 1 < size; log++) {
        bool space = *log == '\n' || *log == ' ' || *log == '\t' || *log == '\r';
        if (!space) out[used++] = *log;
        if (space && !blank) out[used++] = ' ';
        blank = space;
    }
    while (used && out[used - 1] == ' ') used--;
    out[used] = '\0';
}

static bh_status refuse_image(const bh__device_instance *device, const bh__module_image *image,
                              int result, const char *log, bh_error *error) {
    const char *kind = kind_names[image->kind], *arch = device->info.arch;
    char text[320], where[48] = "";
    tidy_log(log, text, sizeof text);
    if (image->kind == BH__MODULE_IMAGE_PTX && !strstr(text, "line"))
        snprintf(where, sizeof where, " (in a text of %zu lines)", image->lines);
    bool no_target =
        result == BH__CU_NO_BINARY_FOR_GPU || !can_run(image, bh__module_image_target_number(arch));
    if (no_target)
        return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED,
                             "compile it for this device, or to PTX for an older one",
                             "the %s is for %s and this device is %s%s%s%s", kind,
                             image->target[0] ? image->target : "other architectures", arch, where,
                             *text ? ": " : "", text);
    if (result == BH__CU_UNSUPPORTED_PTX_VERSION)
        return bh__cuda_fail(device, error, result, BH_E_UNSUPPORTED,
                             "install a newer driver, or compile with an older toolkit",
                             "the driver (%s) does not know PTX %s%s%s%s", device->info.driver,
                             image->version, where, *text ? ": " : "", text);
    if (result == BH__CU_JIT_COMPILER_NOT_FOUND || result == BH__CU_JIT_DISABLED)
        return bh__cuda_fail(
            device, error, result, BH_E_UNSUPPORTED,
            "install libnvidia-ptxjitcompiler.so.1 with the driver, or load a cubin for this "
            "device",
            "the driver has no compiler for PTX here%s", where);
    if (result == BH__CU_OUT_OF_MEMORY)
        return bh__cuda_fail(device, error, result, BH_E_NO_MEMORY,
                             "release buffers or unload modules",
                             "there is no device memory for a module");
    return bh__cuda_fail(device, error, result, BH_E_LOAD,
                         "see the line named, or load the file as a compiler wrote it",
                         "the driver refused the %s%s%s%s", kind, where, *text ? ": " : "", text);
}

static bh_status load(bh__device_instance *device, const bh__module_image *image,
                      bh__cu_module *out, bh_error *error) {
    char log[LOG_BYTES] = "";
    int options[] = {BH__CU_JIT_ERROR_LOG, BH__CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    bh__driver_log_skip(&device->cu);
    int result = device->cu.module_load(out, image->bytes, 2, options, values);
    log[sizeof log - 1] = '\0';
    return result == BH__CU_OK ? BH_OK : refuse_image(device, image, result, log, error);
}

/* ---- describing ---- */

static uint32_t function_number(const bh__device_instance *device, bh__cu_function function,
                                int which) {
    int value = 0;
    if (device->cu.function_attribute(&value, which, function) != BH__CU_OK || value < 0) return 0;
    return (uint32_t)value;
}

/* The parameters as the driver knows them. They take precedence over those of the image. */
static void query_params(const bh__device_instance *device, bh__cu_function function,
                         bh__module_image *image, bh__module_image_kernel *kernel) {
    if (!device->cu.function_param) return;
    size_t offset, bytes;
    for (size_t i = 0;
         device->cu.function_param(function, i, &offset, &bytes) == BH__CU_OK && i < 4096; i++) {
        if (i == 0) kernel->param_bytes = 0;
        if (i >= kernel->param_count) {
            bh__module_image_add_param(
                image, kernel,
                (bh__blob_param){.offset = (uint32_t)offset, .bytes = (uint32_t)bytes});
            if (image->failed) return;
        }
        kernel->params[i].offset = (uint32_t)offset;
        kernel->params[i].bytes = (uint32_t)bytes;
        if (offset + bytes > kernel->param_bytes) kernel->param_bytes = (uint32_t)(offset + bytes);
    }
    bh__driver_log_skip(&device->cu); /* the last query is for one that does not exist */
}

/* The driver aligns parameters itself. Its offsets count from an address that is no multiple of a
 * tensor map's alignment, so they do not show it. */
static void find_tensor_maps(bh__module_image_kernel *kernel) {
    for (uint32_t i = 0; i < kernel->param_count; i++)
        kernel->params[i].tensor_map = kernel->params[i].bytes == BH__TENSOR_MAP_BYTES;
}

static bh_status check_params(const bh__device_instance *device,
                              const bh__module_image_kernel *kernel, bh_error *error) {
    uint32_t most = device->info.max_param_bytes;
    if (kernel->param_bytes <= most) return BH_OK;
    return bh__fail(error, BH_E_UNSUPPORTED,
                    most < BH__MAX_PARAM_BYTES
                        ? "pass large data in a buffer, or install a driver for CUDA 12.1 or later"
                        : "pass large data in a buffer",
                    "kernel \"%.200s\" has %u bytes of parameters; this device takes at most %u",
                    kernel->name, kernel->param_bytes, most);
}

/* Dynamic shared memory beyond 48 KiB and clusters of more than 8 blocks must be allowed once; a
 * launch still gets what it asks for. */
static void allow_all(bh__device_instance *device, bh__cu_function function, uint32_t own) {
    uint32_t most = device->info.shared_per_block_max;
    if (device->info.cluster_launch)
        device->cu.function_set_attribute(function, BH__CU_FUNCTION_LARGE_CLUSTERS, 1);
    if (most > device->info.shared_per_block && own < most)
        device->cu.function_set_attribute(function, BH__CU_FUNCTION_MAX_DYNAMIC_SHARED,
                                          (int)(most - own));
}

static bh_status add_kernel(bh__device_instance *device, bh__cuda_module *module,
                            bh__module_image *image, bh__module_image_kernel *kernel,
                            bh__blob *blob, bh_error *error) {
    bh__cu_function function;
    int result = device->cu.module_function(&function, module->handle, kernel->name);
    if (result != BH__CU_OK)
        return bh__cuda_fail(device, error, result, BH_E_LOAD,
                             "load a module all of whose kernels this driver can run",
                             "the driver does not find kernel \"%.200s\"", kernel->name);
    query_params(device, function, image, kernel);
    find_tensor_maps(kernel);
    bh__blob_kernel entry = {
        .param_count = kernel->param_count,
        .param_bytes = kernel->param_bytes,
        .static_shared = function_number(device, function, BH__CU_FUNCTION_SHARED),
        .local_bytes = function_number(device, function, BH__CU_FUNCTION_LOCAL),
        .registers = function_number(device, function, BH__CU_FUNCTION_REGISTERS),
        .max_threads = function_number(device, function, BH__CU_FUNCTION_MAX_THREADS)};
    bh_status status = check_params(device, kernel, error);
    if (status != BH_OK) return status;
    memcpy(entry.required_block, kernel->required, sizeof entry.required_block);
    if (device->info.cluster_launch) {
        entry.needs_cluster =
            function_number(device, function, BH__CU_FUNCTION_CLUSTER_MUST_BE_SET);
        for (int i = 0; i < 3; i++)
            entry.required_cluster[i] =
                function_number(device, function, BH__CU_FUNCTION_REQUIRED_CLUSTER + i);
    }
    allow_all(device, function, entry.static_shared);
    bh__blob_add_kernel(blob, kernel->name, entry, kernel->params);
    module->kernels[module->kernel_count++] =
        (bh__cuda_kernel){function, kernel->name, kernel->param_bytes};
    kernel->name = NULL; /* the module owns it now */
    return BH_OK;
}

static void add_variable(bh__device_instance *device, bh__cuda_module *module,
                         bh__module_image_variable *variable, bh__blob *blob) {
    bh__cu_address address = 0;
    size_t bytes = 0;
    if (device->cu.module_variable(&address, &bytes, module->handle, variable->name) == BH__CU_OK)
        variable->bytes = bytes;
    else
        address = 0;
    bh__blob_add_variable(
        blob, variable->name,
        (bh__blob_variable){.bytes = variable->bytes, .writable = variable->written});
    module->variables[module->variable_count++] =
        (bh__cuda_variable){address, variable->bytes, variable->name};
    variable->name = NULL;
}

static int compare_kernels(const void *a, const void *b) {
    return strcmp(((const bh__module_image_kernel *)a)->name,
                  ((const bh__module_image_kernel *)b)->name);
}

/* For images that cannot be read here. Sorted, so that every worker numbers the kernels the same.
 */
static bh_status list_kernels(bh__device_instance *device, bh__cu_module handle,
                              bh__module_image *image, bh_error *error) {
    const bh__driver *cu = &device->cu;
    unsigned count = 0;
    if (!cu->module_function_count || !cu->module_functions || !cu->function_name)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "load a cubin or PTX, or install a driver that supports CUDA 12.4",
                        "the kernels of a fatbin cannot be listed with this driver (%s)",
                        device->info.driver);
    int result = cu->module_function_count(&count, handle);
    bh__cu_function *functions = calloc(count + 1, sizeof *functions);
    if (result == BH__CU_OK && functions && count)
        result = cu->module_functions(functions, count, handle);
    for (unsigned i = 0; functions && result == BH__CU_OK && i < count; i++) {
        const char *name = NULL;
        result = cu->function_name(&name, functions[i]);
        if (result == BH__CU_OK && name) bh__module_image_add_kernel(image, name, strlen(name));
    }
    if (!functions) image->failed = true;
    free(functions);
    if (result != BH__CU_OK)
        return bh__cuda_fail(device, error, result, BH_E_LOAD, "load a cubin or PTX",
                             "the driver does not list the module's kernels");
    if (image->kernel_count)
        qsort(image->kernels, image->kernel_count, sizeof *image->kernels, compare_kernels);
    /* It is not known either whether it has variables: it is assumed to have one. */
    static const char unknown[] = "(what a fatbin holds)";
    bh__module_image_add_variable(image, unknown, sizeof unknown - 1, 1, false);
    return BH_OK;
}

static bh_status describe(bh__device_instance *device, bh__cuda_module *module,
                          bh__module_image *image, bh_error *error, int *out_blob) {
    bh_status status =
        image->names_known ? BH_OK : list_kernels(device, module->handle, image, error);
    if (status != BH_OK) return status;
    module->kernels = calloc(image->kernel_count + 1, sizeof *module->kernels);
    module->variables = calloc(image->variable_count + 1, sizeof *module->variables);
    bh__blob blob = {.failed = image->failed || !module->kernels || !module->variables};
    for (size_t i = 0; !blob.failed && status == BH_OK && i < image->kernel_count; i++)
        status = add_kernel(device, module, image, &image->kernels[i], &blob, error);
    for (size_t i = 0; !blob.failed && status == BH_OK && i < image->variable_count; i++)
        add_variable(device, module, &image->variables[i], &blob);
    blob.failed |= image->failed;
    bh_error finish;
    bh_status finished = bh__blob_finish(&blob, &finish, out_blob);
    if (status == BH_OK && finished != BH_OK) *error = finish;
    if (status != BH_OK && finished == BH_OK) close(*out_blob);
    return status != BH_OK ? status : finished;
}

/* ---- the list ---- */

void bh__cuda_module_free(bh__device_instance *device, bh__cuda_module *module) {
    bh__cuda_trains_drop_module(device, module->id);
    if (module->handle) device->cu.module_unload(module->handle);
    for (uint32_t i = 0; i < module->kernel_count; i++) free(module->kernels[i].name);
    for (uint32_t i = 0; i < module->variable_count; i++) free(module->variables[i].name);
    free(module->kernels);
    free(module->variables);
}

static int compare_modules(const void *a, const void *b) {
    uint32_t x = ((const bh__cuda_module *)a)->id, y = ((const bh__cuda_module *)b)->id;
    return (x > y) - (x < y);
}

const bh__cuda_module *bh__cuda_find_module(const bh__device_instance *device, uint32_t id) {
    /* A few modules are used again and again, mostly the only one or the latest. */
    size_t count = device->module_count;
    if (count && device->modules[count - 1].id == id) return &device->modules[count - 1];
    bh__cuda_module key = {.id = id};
    return count ? bsearch(&key, device->modules, count, sizeof key, compare_modules) : NULL;
}

static bh_status module_add(bh__device_instance *device, const bh__cuda_module *module,
                            bh_error *error) {
    size_t room = device->module_count + device->retired_count + 1;
    pthread_rwlock_wrlock(&device->tables);
    bh__cuda_module *modules = realloc(device->modules, room * sizeof *modules);
    if (modules) device->modules = modules;
    /* Allocated now, so that retiring one never needs memory. */
    bh__cuda_module *retired = modules ? realloc(device->retired, room * sizeof *retired) : NULL;
    if (retired) {
        device->retired = retired;
        modules[device->module_count++] = *module;
        qsort(modules, device->module_count, sizeof *modules, compare_modules);
    }
    pthread_rwlock_unlock(&device->tables);
    if (retired) return BH_OK;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "unload modules that are not used",
                    "no memory for the list of %zu modules", room);
}

/* Loading code waits for running kernels inside the driver, so the device is idle. */
static bh_status load_library(bh__device_instance *device, uint32_t id, const bh__library *library,
                              bh_error *error, int *out_blob) {
    bh__cuda_module module = {.id = id, .library = library};
    int blob = -1;
    if (!bh__cuda_idle_wait(device))
        return bh__fail(error, BH_E_STOPPED, "none needed", "the worker is being ended");
    bh_status status = bh__cuda_library_load(device, library, error, &blob);
    pthread_rwlock_unlock(&device->tables);
    if (status == BH_OK) status = module_add(device, &module, error);
    if (status == BH_OK)
        *out_blob = blob;
    else if (blob >= 0)
        close(blob);
    return status;
}

/* Where the driver loads lazily, for libraries, it loads a kernel when it is asked for: then too
 * the device is idle. */
static bh_status load_image(bh__device_instance *device, bh__cuda_module *module,
                            bh__module_image *image, bh_error *error, int *out_blob) {
    int blob = -1;
    if (!bh__cuda_idle_wait(device))
        return bh__fail(error, BH_E_STOPPED, "none needed", "the worker is being ended");
    bh_status status = load(device, image, &module->handle, error);
    if (status == BH_OK) status = describe(device, module, image, error, &blob);
    pthread_rwlock_unlock(&device->tables);
    if (status != BH_OK) return status;
    status = module_add(device, module, error);
    if (status == BH_OK)
        *out_blob = blob;
    else
        close(blob);
    return status;
}

bh_status bh__cuda_module_load(bh__device_instance *device, uint32_t id, const void *image_bytes,
                               size_t bytes, bh_error *error, int *out_blob) {
    if (bh__cuda_find_module(device, id))
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "module %u is loaded already", id);
    const bh__library *library = bh__library_of_image(image_bytes, bytes);
    if (library) return load_library(device, id, library, error, out_blob);
    bh__module_image image;
    bh_status status = bh__module_image_read(&image, image_bytes, bytes, error);
    if (status != BH_OK) return status;
    for (size_t i = 0; status == BH_OK && i < image.kernel_count; i++)
        status = check_params(device, &image.kernels[i], error);
    if (status != BH_OK) {
        bh__module_image_free(&image);
        return status;
    }
    bh__cuda_module module = {.id = id, .prints = image.prints};
    if (image.prints) atomic_store(&device->may_print, true);
    status = load_image(device, &module, &image, error, out_blob);
    if (status != BH_OK && module.handle && bh__cuda_idle_wait(device)) {
        bh__cuda_module_free(device, &module);
        pthread_rwlock_unlock(&device->tables);
    }
    bh__module_image_free(&image);
    return status;
}

bh_status bh__cuda_module_unload(bh__device_instance *device, uint32_t id, bh_error *error) {
    const bh__cuda_module *module = bh__cuda_find_module(device, id);
    if (!module)
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "there is no module %u to unload",
                        id);
    size_t at = (size_t)(module - device->modules);
    pthread_rwlock_wrlock(&device->tables);
    device->retired[device->retired_count++] = *module;
    memmove(&device->modules[at], &device->modules[at + 1],
            (device->module_count - at - 1) * sizeof *device->modules);
    device->module_count--;
    pthread_rwlock_unlock(&device->tables);
    bh__cuda_free_retired(device);
    return BH_OK;
}

bh_status bh__cuda_global_set(bh__device_instance *device, const bh__module_message *where,
                              const void *bytes, size_t count, bh_error *error) {
    const bh__cuda_module *module = bh__cuda_find_module(device, where->id);
    if (!module || where->variable >= module->variable_count)
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                        "there is no variable %u in module %u", where->variable, where->id);
    const bh__cuda_variable *variable = &module->variables[where->variable];
    if (!variable->address || !bh__range_fits(where->offset, count, variable->bytes))
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                        "%zu bytes at offset %llu do not fit variable \"%.100s\" of %llu bytes",
                        count, (unsigned long long)where->offset, variable->name,
                        (unsigned long long)variable->bytes);
    if (count == 0) return BH_OK;
    int result =
        device->cu.copy_in(variable->address + where->offset, bytes, count, device->stream);
    if (result == BH__CU_OK) result = device->cu.stream_synchronize(device->stream);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(device, error, result, BH_E_INTERNAL, BH__CUDA_DEFECT,
                         "variable \"%.100s\" cannot be set", variable->name);
}

void bh__cuda_unload_all(bh__device_instance *device) {
    for (size_t i = 0; i < device->module_count; i++)
        bh__cuda_module_free(device, &device->modules[i]);
    for (size_t i = 0; i < device->retired_count; i++)
        bh__cuda_module_free(device, &device->retired[i]);
    free(device->modules);
    free(device->retired);
    device->modules = device->retired = NULL;
    device->module_count = device->retired_count = 0;
}
