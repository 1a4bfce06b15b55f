/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: plain, cooperative, in clusters, with attributes. */
#include <stdlib.h>
#include <string.h>

#include "cuda/library/library.h"
#include "cuda/state.h"
#include "wire/texture.h"

typedef unsigned long long ull;

unsigned bh__cuda_launch_attributes(const bh__launch_body *body, bh__cu_launch_attribute *out) {
    unsigned count = 0;
    memset(out, 0, BH__CUDA_ATTRIBUTES * sizeof *out);
    if (body->flags & BH_LAUNCH_COOPERATIVE) {
        out[count].id = BH__CU_LAUNCH_COOPERATIVE;
        out[count++].value.cooperative = 1;
    }
    if (body->cluster[0] | body->cluster[1] | body->cluster[2]) {
        bh__cu_launch_attribute *cluster = &out[count++];
        cluster->id = BH__CU_LAUNCH_CLUSTER;
        cluster->value.cluster.x = body->cluster[0] ? body->cluster[0] : 1;
        cluster->value.cluster.y = body->cluster[1] ? body->cluster[1] : 1;
        cluster->value.cluster.z = body->cluster[2] ? body->cluster[2] : 1;
    }
    if (body->cluster_policy) {
        out[count].id = BH__CU_LAUNCH_CLUSTER_POLICY;
        out[count++].value.cluster_policy = (int)body->cluster_policy;
    }
    if (body->flags & BH_LAUNCH_PROGRAMMATIC) {
        out[count].id = BH__CU_LAUNCH_PROGRAMMATIC;
        out[count++].value.programmatic = 1;
    }
    if (body->flags & BH_LAUNCH_PRIORITY) {
        out[count].id = BH__CU_LAUNCH_PRIORITY;
        out[count++].value.priority = -body->priority;
    }
    return count;
}

/* The driver's interface has no const; it copies the parameters. */
void bh__cuda_launch_node(const bh__cuda_kernel *kernel, const bh__work *work, bh__cuda_node *out) {
    const bh__launch_body *body = &work->u.launch;
    out->param_bytes = body->param_bytes;
    void *extra[] = {BH__CU_PARAM_BYTES, (void *)(uintptr_t)work->params, BH__CU_PARAM_SIZE,
                     &out->param_bytes, BH__CU_PARAM_END};
    memcpy(out->extra, extra, sizeof extra);
    out->kernel = (bh__cu_kernel_node){.function = kernel->function,
                                       .grid = {body->grid[0], body->grid[1], body->grid[2]},
                                       .block = {body->block[0], body->block[1], body->block[2]},
                                       .shared_bytes = body->shared_bytes,
                                       .extra = out->param_bytes ? out->extra : NULL};
}

static int launch(bh__device_lane *lane, const bh__cuda_kernel *kernel, const bh__work *work) {
    const bh__launch_body *body = &work->u.launch;
    size_t bytes = body->param_bytes;
    /* The driver's interface has no const; it copies the parameters. */
    void *extra[] = {BH__CU_PARAM_BYTES, (void *)(uintptr_t)work->params, BH__CU_PARAM_SIZE, &bytes,
                     BH__CU_PARAM_END};
    void **params = bytes ? extra : NULL;
    const uint32_t *grid = body->grid, *block = body->block;
    bool clustered = body->cluster[0] | body->cluster[1] | body->cluster[2];
    const uint32_t attributed = BH_LAUNCH_COOPERATIVE | BH_LAUNCH_PRIORITY | BH_LAUNCH_PROGRAMMATIC;
    if (!clustered && !(body->flags & attributed) && !body->cluster_policy)
        return lane->device->cu.launch(kernel->function, grid[0], grid[1], grid[2], block[0],
                                       block[1], block[2], body->shared_bytes, lane->stream, NULL,
                                       params);
    bh__cu_launch_attribute attributes[BH__CUDA_ATTRIBUTES];
    bh__cu_launch with = {.grid = {grid[0], grid[1], grid[2]},
                          .block = {block[0], block[1], block[2]},
                          .shared_bytes = body->shared_bytes,
                          .stream = lane->stream,
                          .attributes = attributes};
    with.attribute_count = bh__cuda_launch_attributes(body, attributes);
    return lane->device->cu.launch_with(&with, kernel->function, NULL, params);
}

static bh_status refuse_residency(const bh__device_instance *device, const bh__cuda_kernel *kernel,
                                  const bh__launch_body *body, int result, bh_error *error) {
    int fit = 0;
    uint32_t threads = body->block[0] * body->block[1] * body->block[2];
    device->cu.function_residency(&fit, kernel->function, (int)threads, body->shared_bytes);
    ull blocks = (ull)body->grid[0] * body->grid[1] * body->grid[2];
    return bh__cuda_fail(
        device, error, result, BH_E_RESIDENCY,
        "use fewer blocks, each doing more, or less shared memory and fewer registers",
        "kernel \"%.100s\": %llu blocks of %u threads cannot all run at once; %llu can "
        "(%d on each of %u multiprocessors)",
        kernel->name, blocks, threads, (ull)fit * device->info.multiprocessors, fit,
        device->info.multiprocessors);
}

static const bh__cuda_kernel *kernel_of(const bh__device_instance *device, const bh__work *work,
                                        const bh__cuda_module **out_module, bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    const bh__cuda_module *module = bh__cuda_find_module(device, body->module);
    *out_module = module;
    if (!module || body->kernel >= module->kernel_count) {
        bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT,
                 "launch %llu of lane %u: there is no kernel %u in module %u", (ull)work->sequence,
                 work->lane, body->kernel, body->module);
        return NULL;
    }
    return &module->kernels[body->kernel];
}

const bh__cuda_kernel *bh__cuda_find_kernel(const bh__device_instance *device, const bh__work *work,
                                            const bh__cuda_module **out_module, bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    const bh__cuda_kernel *kernel = kernel_of(device, work, out_module, error);
    if (!kernel || body->param_bytes == kernel->param_bytes) return kernel;
    bh__fail(error, BH_E_LAUNCH, "pass the arguments that the kernel declares",
             "kernel \"%.100s\" has %u bytes of parameters, given %u", kernel->name,
             kernel->param_bytes, body->param_bytes);
    return NULL;
}

static bh_status launch_checked(bh__device_lane *lane, const bh__cuda_kernel *kernel,
                                const bh__work *work, bh_error *error) {
    const bh__device_instance *device = lane->device;
    const bh__launch_body *body = &work->u.launch;
    int result = launch(lane, kernel, work);
    if (result == BH__CU_OK) return BH_OK;
    if (result == BH__CU_COOPERATIVE_TOO_LARGE)
        return refuse_residency(device, kernel, body, result, error);
    return bh__cuda_fail(
        device, error, result, BH_E_LAUNCH,
        "check the launch against the kernel's registers and the device's limits (bulkhead "
        "devices)",
        "kernel \"%.100s\" (launch %llu of lane %u, grid %u x %u x %u, block %u x %u x %u, cluster "
        "%u x %u x %u, %u bytes of dynamic shared memory) was refused",
        kernel->name, (ull)work->sequence, work->lane, body->grid[0], body->grid[1], body->grid[2],
        body->block[0], body->block[1], body->block[2], body->cluster[0], body->cluster[1],
        body->cluster[2], body->shared_bytes);
}

/* The kernel gets a copy of its parameters, which has the handles. */
static bh_status launch_textured(bh__device_lane *lane, const bh__cuda_kernel *kernel,
                                 const bh__work *work, bh_error *error) {
    bh__work plain = *work;
    uint8_t *params = calloc(1, kernel->param_bytes + 1);
    if (!params)
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "no memory for %u bytes of parameters", kernel->param_bytes);
    bh_status status = bh__cuda_textures_begin(lane, work, kernel, params, error);
    plain.params = params;
    plain.u.launch.param_bytes = kernel->param_bytes;
    if (status == BH_OK) status = launch_checked(lane, kernel, &plain, error);
    if (status == BH_OK) status = bh__cuda_textures_end(lane, work, kernel, error);
    free(params);
    return status;
}

bh_status bh__cuda_launch(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__cuda_module *module = bh__cuda_find_module(lane->device, work->u.launch.module);
    if (module && module->library) return bh__cuda_library_run(lane, module->library, work, error);
    bool textured = work->u.launch.flags & BH__LAUNCH_OBJECTS;
    const bh__cuda_kernel *kernel = textured
                                        ? kernel_of(lane->device, work, &module, error)
                                        : bh__cuda_find_kernel(lane->device, work, &module, error);
    if (!kernel) return error->status;
    bh_status status = textured ? launch_textured(lane, kernel, work, error)
                                : launch_checked(lane, kernel, work, error);
    return status == BH_OK && module->prints ? BH_E_BUSY : status;
}
