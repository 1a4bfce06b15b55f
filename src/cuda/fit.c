/* SPDX-License-Identifier: Apache-2.0 */
/* How many blocks of a kernel can be resident at once (occupancy), from the driver. */
#include "cuda/state.h"

/* Blocks, or clusters: more than can be resident, so that the grid is not what limits them. */
enum { MANY = 1024 };

/* The largest of any device so far; for kernels where the driver gives no answer. */
enum { MAX_CLUSTER = 16 };

static bool is_clustered(const bh__fit_question *question) {
    return question->cluster[0] > 1 || question->cluster[1] > 1 || question->cluster[2] > 1;
}

static int ask_clusters(const bh__device_instance *device, bh__cu_function function,
                        const bh__fit_question *question, const uint32_t block[3], int *out) {
    const uint32_t *cluster = question->cluster;
    const uint32_t many = cluster[0] <= MANY ? MANY : 1;
    bh__cu_launch_attribute attribute = {.id = BH__CU_LAUNCH_CLUSTER};
    attribute.value.cluster.x = cluster[0];
    attribute.value.cluster.y = cluster[1];
    attribute.value.cluster.z = cluster[2];
    bh__cu_launch with = {.grid = {cluster[0] * many, cluster[1], cluster[2]},
                          .block = {block[0], block[1], block[2]},
                          .shared_bytes = question->shared_bytes,
                          .stream = device->stream,
                          .attributes = &attribute,
                          .attribute_count = 1};
    *out = 0;
    int result = device->cu.function_clusters(out, function, &with);
    if (result == BH__CU_OK || bh__driver_is_fatal(result)) return result;
    /* The driver refused: such a cluster cannot run. */
    bh__driver_log_skip(&device->cu);
    *out = 0;
    return BH__CU_OK;
}

/* For a kernel that must be launched in clusters the driver answers only for launches with them. */
static int query_max_cluster(const bh__device_instance *device, bh__cu_function function,
                             const bh__fit_question *question, int *out) {
    const uint32_t *block = question->block;
    bh__cu_launch_attribute single = {.id = BH__CU_LAUNCH_CLUSTER, .value.cluster = {1, 1, 1}};
    bh__cu_launch with = {.grid = {MANY, 1, 1},
                          .block = {block[0], block[1], block[2]},
                          .shared_bytes = question->shared_bytes,
                          .stream = device->stream,
                          .attributes = &single};
    int result = BH__CU_OK;
    *out = 0;
    if (!device->info.cluster_launch) return BH__CU_OK;
    for (with.attribute_count = 0; with.attribute_count <= 1; with.attribute_count++) {
        result = device->cu.function_largest_cluster(out, function, &with);
        if (result == BH__CU_OK || bh__driver_is_fatal(result)) return result;
        bh__driver_log_skip(&device->cu);
        *out = 0;
    }
    return BH__CU_OK;
}

/* Resident blocks of this shape on the whole device. */
static int query_resident(const bh__device_instance *device, bh__cu_function function,
                          const bh__fit_question *question, const uint32_t block[3], bh__fit *out) {
    int each = 0, clusters = 0;
    uint32_t threads = block[0] * block[1] * block[2];
    int result =
        device->cu.function_residency(&each, function, (int)threads, question->shared_bytes);
    /* For a kernel with clusters there may be no answer for single blocks. */
    bool no_answer = result != BH__CU_OK && is_clustered(question) && !bh__driver_is_fatal(result);
    if (no_answer) bh__driver_log_skip(&device->cu);
    if (result != BH__CU_OK && !no_answer) return result;
    out->blocks_per_multiprocessor = each > 0 ? (uint32_t)each : 0;
    out->resident = (uint64_t)out->blocks_per_multiprocessor * device->info.multiprocessors;
    if (!is_clustered(question)) return BH__CU_OK;
    result = ask_clusters(device, function, question, block, &clusters);
    /* The driver also counts clusters that it would refuse to launch as too large. */
    int largest = 0;
    if (result == BH__CU_OK) result = query_max_cluster(device, function, question, &largest);
    uint64_t size = (uint64_t)question->cluster[0] * question->cluster[1] * question->cluster[2];
    if (size > (uint64_t)(largest > 0 ? largest : MAX_CLUSTER)) clusters = 0;
    out->clusters = clusters > 0 ? (uint32_t)clusters : 0;
    out->resident = (uint64_t)out->clusters * question->cluster[0] * question->cluster[1] *
                    question->cluster[2];
    return result;
}

static int advise(const bh__device_instance *device, bh__cu_function function,
                  const bh__fit_question *question, bh__fit *out) {
    int grid = 0, block = 0;
    int result =
        device->cu.function_best_block(&grid, &block, function, NULL, question->shared_bytes, 0);
    if (result != BH__CU_OK && !bh__driver_is_fatal(result)) { /* nothing to recommend */
        bh__driver_log_skip(&device->cu);
        grid = block = 0;
        result = BH__CU_OK;
    }
    out->recommended_block = block > 0 ? (uint32_t)block : 0;
    out->recommended_grid = grid > 0 ? (uint32_t)grid : 0;
    uint32_t threads = question->block[0] * question->block[1] * question->block[2];
    uint32_t warp = device->info.warp_size;
    for (uint32_t t = threads; result == BH__CU_OK && t && !out->fitting_threads;
         t = (t - 1) / warp * warp) {
        const uint32_t smaller[3] = {t, 1, 1};
        bh__fit fit = {0};
        result = query_resident(device, function, question, smaller, &fit);
        if (fit.resident >= question->blocks) out->fitting_threads = t;
    }
    return result;
}

bh_status bh__cuda_fit(bh__device_instance *device, const bh__fit_question *question,
                       bh_error *error, bh__fit *out) {
    const bh__cuda_module *module = bh__cuda_find_module(device, question->module);
    if (!module || question->kernel >= module->kernel_count)
        return bh__fail(error, BH_E_INTERNAL, BH__CUDA_DEFECT, "there is no kernel %u in module %u",
                        question->kernel, question->module);
    const bh__cuda_kernel *kernel = &module->kernels[question->kernel];
    const bh__device_facts *info = &device->info;
    *out = (bh__fit){0};
    int largest = 0;
    int result = query_resident(device, kernel->function, question, question->block, out);
    if (result == BH__CU_OK)
        result = query_max_cluster(device, kernel->function, question, &largest);
    out->largest_cluster = largest > 0 ? (uint32_t)largest : 0;
    uint32_t threads = question->block[0] * question->block[1] * question->block[2];
    uint32_t warps = (threads + info->warp_size - 1) / info->warp_size;
    if (info->max_threads_per_multiprocessor)
        out->occupancy = (double)out->blocks_per_multiprocessor * warps * info->warp_size /
                         info->max_threads_per_multiprocessor;
    if (result == BH__CU_OK && question->advice)
        result = advise(device, kernel->function, question, out);
    if (result == BH__CU_OK) return BH_OK;
    return bh__cuda_fail(
        device, error, result, BH_E_LAUNCH,
        "check the block and the shared memory against the kernel's and the device's limits",
        "kernel \"%.100s\": the driver does not say how many blocks of %u threads with %u bytes "
        "of dynamic shared memory can be resident",
        kernel->name, threads, question->shared_bytes);
}
