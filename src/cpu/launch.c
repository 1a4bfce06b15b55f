/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: checked, run block by block on the lane's thread and its helpers, and their results. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cpu/cpu.h"
#include "cpu/library/library.h"
#include "cpu/native.h"

typedef unsigned long long ull;

enum {
    STEP_BUDGET = 20000,         /* warp instructions between two polls for an end */
    COOPERATIVE_BUDGET = 1000,   /* fewer: a block that waits for others should not wait long */
    SHARES = 16,                 /* of the clusters that are left, for each thread */
    MAX_SHARE = 32,              /* clusters */
    CHECKED_BUDGET = 200000,     /* before other blocks are begun beside a checked one */
    HELP_WORTH_NS = 20000,       /* waking helpers pays off when this much work is left */
    CHECKED_ALONE_NS = 50000000, /* a checked launch has no helpers for so long */
    KEEP_BYTES = 8 * 1024 * 1024 /* states of clusters above this are not kept between launches */
};

/* ---- failures: the first one is reported ---- */

static bool is_first_failure(bh__cpu_job *job) {
    return !atomic_exchange(&job->failed, true);
}

static void set_state(bh__cpu_job *job, char *state) {
    free(job->state);
    job->state = state;
}

static void job_fault(bh__cpu_job *job, const bh__ptx_cluster *cluster,
                      const bh__ptx_fault *fault) {
    if (is_first_failure(job)) {
        job->faulted = true;
        job->fault = *fault;
        set_state(job, bh__ptx_cluster_state(cluster, fault));
    }
    atomic_store(&job->stop, true);
}

static void job_fail(bh__cpu_job *job, const bh_error *error) {
    if (is_first_failure(job)) job->error = *error;
    atomic_store(&job->stop, true);
}

/* The debugger's stop. What the launch has written by then stays, so this is not without harm: the
 * application knows by the status. */
static void job_stop_at_line(bh__cpu_job *job) {
    bh_error error;
    bh__fail(&error, BH_E_CANCELLED, "launch it again without a line to stop at",
             "kernel \"%.100s\" was stopped at %.280s", job->grid.kernel->name, job->tracing.where);
    job_fail(job, &error);
}

static bool is_over(const bh__cpu_job *job) {
    return atomic_load_explicit(&job->stop, memory_order_acquire) || bh__cpu_killed(job->device);
}

/* ---- printing ---- */

static void flush_locked(bh__cpu_job *job) {
    if (job->print_bytes)
        job->device->services->print(job->device->services->context, job->print, job->print_bytes);
    job->print_bytes = 0;
}

static void flush_print(bh__cpu_job *job) {
    pthread_mutex_lock(&job->print_lock);
    flush_locked(job);
    pthread_mutex_unlock(&job->print_lock);
}

static void print(void *context, const char *text, size_t length) {
    bh__cpu_job *job = context;
    pthread_mutex_lock(&job->print_lock);
    if (length > sizeof job->print - job->print_bytes) flush_locked(job);
    if (length <= sizeof job->print) {
        memcpy(job->print + job->print_bytes, text, length);
        job->print_bytes += length;
    } else {
        job->device->services->print(job->device->services->context, text, length);
    }
    pthread_mutex_unlock(&job->print_lock);
}

/* ---- running clusters: without clusters every block is one ---- */

typedef struct range {
    uint64_t next, end;
} range;

/* Takes the next clusters, as many as `count`. */
static bool take_clusters(bh__cpu_job *job, uint64_t count, range *out) {
    /* Read first, so that the counter stays near the total. */
    if (atomic_load_explicit(&job->next, memory_order_relaxed) >= job->total) return false;
    out->next = atomic_fetch_add_explicit(&job->next, count, memory_order_relaxed);
    out->end = out->next + count < job->total ? out->next + count : job->total;
    return out->next < out->end;
}

static bool take_cluster(bh__cpu_job *job, uint64_t *out_index) {
    range one;
    bool took = take_clusters(job, 1, &one);
    *out_index = one.next;
    return took;
}

/* Of many clusters several go at a time, because the threads share the counter. Towards the end,
 * and of few clusters, it is one, so that no thread has much more to do than the others. A thread
 * runs the clusters that it took in order: one that waits for an earlier one finds it running or
 * done. */
static bool take_share(bh__cpu_job *job, range *out) {
    uint64_t taken = atomic_load_explicit(&job->next, memory_order_relaxed);
    uint64_t left = taken < job->total ? job->total - taken : 0;
    uint64_t share = left / SHARES / (job->device->pool.size + 1);
    return take_clusters(job, share < 1 ? 1 : share > MAX_SHARE ? MAX_SHARE : share, out);
}

static bool begin_cluster(bh__cpu_job *job, bh__ptx_cluster **cluster, uint64_t index) {
    bh_error error;
    if (!*cluster && !(*cluster = bh__ptx_cluster_create())) {
        bh__fail(&error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                 "no memory to run a block of \"%.100s\"", job->grid.kernel->name);
        job_fail(job, &error);
        return false;
    }
    bh_status status = bh__ptx_cluster_begin(*cluster, &job->grid, index, &error);
    if (status != BH_OK) job_fail(job, &error);
    return status == BH_OK;
}

/* Continues a cluster. False: nothing more of this job is to be run. */
static bool step_cluster(bh__cpu_job *job, bh__ptx_cluster *cluster, uint64_t budget,
                         bool *out_done) {
    bh__ptx_fault fault;
    bh__ptx_outcome outcome = bh__ptx_cluster_step(cluster, budget, &fault);
    *out_done = outcome == BH__PTX_DONE;
    if (outcome == BH__PTX_FAULTED) job_fault(job, cluster, &fault);
    if (outcome == BH__PTX_AT_LINE) job_stop_at_line(job);
    if (outcome == BH__PTX_DONE) return true;
    return outcome == BH__PTX_YIELD && !is_over(job);
}

/* The lane's thread uses it to decide when to call helpers. */
struct progress {
    bh__cpu_job *job;
    uint64_t began;
    uint64_t done; /* clusters */
    bool called;
};

static void consider_help(struct progress *progress, bool stuck) {
    bh__cpu_job *job = progress->job;
    if (progress->called) return;
    uint64_t taken = atomic_load_explicit(&job->next, memory_order_relaxed);
    if (taken >= job->total) return;
    uint64_t left = job->total - taken;
    uint64_t spent = bh__now_ns() - progress->began;
    if (stuck || spent / (progress->done ? progress->done : 1) >= HELP_WORTH_NS / left) {
        progress->called = true;
        bh__cpu_pool_call(&job->device->pool, job, left);
    }
}

/* `progress` is NULL for helpers, and for a launch of a single cluster. */
static void run_clusters(bh__cpu_job *job, bh__ptx_cluster **cluster, struct progress *progress) {
    range share = {0};
    while (!is_over(job) && (share.next < share.end || take_share(job, &share))) {
        if (!begin_cluster(job, cluster, share.next++)) return;
        bool done;
        while (step_cluster(job, *cluster, STEP_BUDGET, &done) && !done) {
            flush_print(job);
            if (progress) consider_help(progress, true);
        }
        if (!done) return;
        if (progress) {
            progress->done++;
            consider_help(progress, false);
        }
    }
}

/* Cooperative: every cluster is begun, and all of them run in turn. */
static void run_together(bh__cpu_job *job) {
    bh__ptx_cluster **clusters = calloc(job->total, sizeof *clusters);
    size_t count = 0;
    bool going = clusters != NULL;
    if (!clusters) {
        bh_error error;
        bh__fail(&error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                 "no memory for a list of %llu clusters", (ull)job->total);
        job_fail(job, &error);
    }
    for (bool first = true; going; first = false) {
        /* Its share at first; then one in each round, in case no helpers join. */
        uint64_t index;
        for (uint32_t i = 0; going && i < (first ? job->share : 1) && take_cluster(job, &index);
             i++) {
            clusters[count] = NULL;
            going = begin_cluster(job, &clusters[count], index);
            count += clusters[count] != NULL;
        }
        if (count == 0) break;
        for (size_t i = 0; going && i < count;) {
            bool done;
            going = step_cluster(job, clusters[i], COOPERATIVE_BUDGET, &done);
            if (!done) {
                i++;
                continue;
            }
            bh__ptx_cluster_destroy(clusters[i]);
            clusters[i] = clusters[--count];
        }
        flush_print(job);
    }
    for (size_t i = 0; i < count; i++) bh__ptx_cluster_destroy(clusters[i]);
    free(clusters);
}

/* A short launch has no helpers, so that what is found is the same every time. */
static void consider_checked_help(struct progress *progress) {
    if (progress && bh__now_ns() - progress->began >= CHECKED_ALONE_NS)
        consider_help(progress, true);
}

/* Checked clusters run one after the other. But one that takes long takes turns with those behind
 * it, in case it waits for them. `progress` is NULL for helpers. */
static void run_in_turn(bh__cpu_job *job, bh__ptx_cluster **spare, struct progress *progress) {
    bh__ptx_cluster *clusters[BH__CPU_BLOCKS_PER_PROCESSOR];
    size_t count = 0;
    bool going = !is_over(job);
    while (going) {
        uint64_t index;
        if (count < BH__CPU_BLOCKS_PER_PROCESSOR && take_cluster(job, &index)) {
            clusters[count] = *spare;
            *spare = NULL;
            going = begin_cluster(job, &clusters[count], index);
            count += clusters[count] != NULL;
        }
        if (count == 0) break;
        for (size_t i = 0; going && i < count;) {
            bool done;
            going =
                step_cluster(job, clusters[i], count == 1 ? CHECKED_BUDGET : STEP_BUDGET, &done);
            if (!done) {
                i++;
                continue;
            }
            if (*spare)
                bh__ptx_cluster_destroy(clusters[i]);
            else
                *spare = clusters[i];
            clusters[i] = clusters[--count];
        }
        flush_print(job);
        consider_checked_help(progress);
    }
    for (size_t i = 0; i < count; i++) bh__ptx_cluster_destroy(clusters[i]);
}

/* The approximate size of the state of one running block. */
static uint64_t bytes_of(const bh__ptx_kernel *kernel, const uint32_t block[3], uint64_t shared) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint64_t warps = (threads + 31) / 32;
    return warps * 32 * (kernel->registers * 8ull + kernel->local_bytes) + kernel->static_shared +
           shared;
}

static uint64_t block_bytes(const bh__ptx_grid *grid) {
    return bytes_of(grid->kernel, grid->block, grid->dynamic_shared);
}

static void trim_cluster(const bh__cpu_job *job, bh__ptx_cluster **cluster) {
    uint64_t bytes = block_bytes(&job->grid) * bh__ptx_cluster_size(&job->grid);
    if (*cluster && bytes > KEEP_BYTES) {
        bh__ptx_cluster_destroy(*cluster);
        *cluster = NULL;
    }
}

void bh__cpu_job_help(bh__cpu_job *job, bh__ptx_cluster **cluster) {
    if (job->cooperative) {
        run_together(job);
        return;
    }
    if (job->grid.check)
        run_in_turn(job, cluster, NULL);
    else
        run_clusters(job, cluster, NULL);
    trim_cluster(job, cluster);
}

/* ---- checks ---- */

static bh_status refuse_shape(bh_error *error, const char *fix, const bh__ptx_kernel *kernel,
                              const char *what, const uint32_t shape[3]) {
    return bh__fail(error, BH_E_LAUNCH, fix, "kernel \"%.100s\": %s, given %u x %u x %u",
                    kernel->name, what, shape[0], shape[1], shape[2]);
}

static bool is_clustered(const uint32_t cluster[3]) {
    return cluster[0] | cluster[1] | cluster[2];
}

/* The library has checked all this, and says more about what is wrong. */
static bh_status check_cluster(const bh__ptx_kernel *kernel, const bh__launch_body *body,
                               bh_error *error) {
    const uint32_t *cluster = body->cluster, *grid = body->grid;
    if (!is_clustered(cluster) && !kernel->cluster[0] && !kernel->needs_cluster) return BH_OK;
    uint64_t size = 1;
    for (int i = 0; i < 3; i++) {
        if (cluster[i] == 0 || grid[i] % cluster[i] != 0)
            return refuse_shape(error, "make the grid a multiple of the cluster", kernel,
                                "a cluster must divide the grid", cluster);
        if (kernel->cluster[0] && cluster[i] != kernel->cluster[i])
            return refuse_shape(error, "launch it with the cluster it was compiled for", kernel,
                                "a cluster must be the one that the kernel requires", cluster);
        size *= cluster[i] < UINT16_MAX ? cluster[i] : UINT16_MAX;
    }
    if (size > kernel->max_cluster)
        return bh__fail(error, BH_E_LAUNCH, "use smaller clusters",
                        "kernel \"%.100s\" runs clusters of up to %u blocks, given %u x %u x %u",
                        kernel->name, kernel->max_cluster, cluster[0], cluster[1], cluster[2]);
    return BH_OK;
}

static bh_status check_shape(const bh__device_facts *info, const bh__ptx_kernel *kernel,
                             const bh__launch_body *body, bh_error *error) {
    const uint32_t *block = body->block;
    for (int i = 0; i < 3; i++) {
        if (body->grid[i] == 0 || body->grid[i] > info->max_grid[i])
            return refuse_shape(error, "use a grid of 1 to 2147483647 x 65535 x 65535 blocks",
                                kernel, "a grid must not be empty or too large", body->grid);
        if (block[i] == 0 || block[i] > info->max_block[i])
            return refuse_shape(error, "use a block of 1 to 1024 x 1024 x 64 threads", kernel,
                                "a block must not be empty or too large", block);
        if (kernel->required[0] && block[i] != kernel->required[i])
            return bh__fail(error, BH_E_LAUNCH, "launch it with the block it was compiled for",
                            "kernel \"%.100s\" needs blocks of %u x %u x %u threads, given "
                            "%u x %u x %u",
                            kernel->name, kernel->required[0], kernel->required[1],
                            kernel->required[2], block[0], block[1], block[2]);
    }
    bh_status status = check_cluster(kernel, body, error);
    if (status != BH_OK) return status;
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    uint32_t limit = kernel->max_threads < info->max_threads_per_block
                         ? kernel->max_threads
                         : info->max_threads_per_block;
    if (threads > limit)
        return bh__fail(error, BH_E_LAUNCH, "use smaller blocks and more of them",
                        "kernel \"%.100s\" runs blocks of up to %u threads, given %llu",
                        kernel->name, limit, (ull)threads);
    uint64_t shared = (uint64_t)kernel->static_shared + body->shared_bytes;
    if (shared > info->shared_per_block_max)
        return bh__fail(error, BH_E_LAUNCH, "ask for less dynamic shared memory",
                        "kernel \"%.100s\": %u bytes of its own and %u dynamic bytes of shared "
                        "memory are more than the %u there are",
                        kernel->name, kernel->static_shared, body->shared_bytes,
                        info->shared_per_block_max);
    return BH_OK;
}

/* How many blocks with this much state can run at once; at least one. */
static uint64_t resident_blocks(const bh__device_facts *info, uint64_t bytes) {
    uint64_t max = (uint64_t)info->multiprocessors * BH__CPU_BLOCKS_PER_PROCESSOR;
    uint64_t in_memory = bytes ? info->memory_total / 4 / bytes : max;
    if (in_memory < max) max = in_memory;
    return max ? max : 1;
}

static bh_status check_residency(bh__cpu_job *job, bh_error *error) {
    uint64_t bytes = block_bytes(&job->grid);
    uint64_t max = resident_blocks(&job->device->info, bytes);
    uint64_t blocks = job->total * bh__ptx_cluster_size(&job->grid);
    if (blocks <= max) return BH_OK;
    return bh__fail(error, BH_E_RESIDENCY, "use fewer blocks, each doing more, or smaller ones",
                    "kernel \"%.100s\": %llu blocks of about %llu bytes each cannot all run at "
                    "once; %llu can",
                    job->grid.kernel->name, (ull)blocks, (ull)bytes, (ull)max);
}

/* Only whole clusters can be resident. */
static void fit_clusters(const uint32_t cluster[3], bh__fit *out) {
    uint64_t size = 1;
    for (int i = 0; i < 3; i++) size *= cluster[i] < UINT16_MAX ? cluster[i] : UINT16_MAX;
    bool fits = size > 0 && size <= out->largest_cluster;
    out->clusters = fits ? (uint32_t)(out->resident / size) : 0;
    out->resident = out->clusters * size;
}

bh_status bh__cpu_fit(bh__device_instance *device, const bh__fit_question *question,
                      bh_error *error, bh__fit *out) {
    enum { USUAL_BLOCK = 256 };
    const bh__cpu_module *module = bh__cpu_find_module(device, question->module);
    if (!module || module->library || question->kernel >= bh__ptx_kernel_count(module->code))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT, "there is no kernel %u in module %u",
                        question->kernel, question->module);
    const bh__ptx_kernel *kernel = bh__ptx_kernel_at(module->code, question->kernel);
    const bh__device_facts *info = &device->info;
    const uint32_t *block = question->block;
    uint64_t bytes = bytes_of(kernel, block, question->shared_bytes);
    uint32_t threads = block[0] * block[1] * block[2];
    *out = (bh__fit){.resident = resident_blocks(info, bytes)};
    out->blocks_per_multiprocessor = (uint32_t)(out->resident / info->multiprocessors);
    out->largest_cluster = kernel->max_cluster;
    if (is_clustered(question->cluster)) fit_clusters(question->cluster, out);
    /* Every processor has a block to run, of any size. Only threads of a partial warp are lost. */
    out->occupancy = (double)threads / ((threads + 31) / 32 * 32);
    if (!question->advice) return BH_OK;
    out->recommended_block = kernel->max_threads < USUAL_BLOCK ? kernel->max_threads : USUAL_BLOCK;
    out->recommended_grid = info->multiprocessors;
    for (uint32_t t = threads; t && !out->fitting_threads; t = (t - 1) / 32 * 32) {
        const uint32_t smaller[3] = {t, 1, 1};
        bytes = bytes_of(kernel, smaller, question->shared_bytes);
        if (resident_blocks(info, bytes) >= question->blocks) out->fitting_threads = t;
    }
    return BH_OK;
}

/* ---- results ---- */

static bh_status describe_fault(const bh__cpu_job *job, const bh__work *work, bh_error *error) {
    const bh__ptx_fault *fault = &job->fault;
    const bh__cpu_fault_kind *kind = bh__cpu_fault_kind_of(fault->kind, job->grid.check != NULL);
    const bh__launch_body *body = &work->u.launch;
    char first[48] = "";
    if (job->findings > 1)
        snprintf(first, sizeof first, "finding 1 of %u: ", (unsigned)job->findings);
    bh__fail(
        error, BH_E_FAULT, kind->fix,
        "kernel \"%.100s\" (launch %llu of lane %u, grid %u x %u x %u, block %u x %u x %u): %s%s",
        job->grid.kernel->name, (ull)work->sequence, work->lane, body->grid[0], body->grid[1],
        body->grid[2], body->block[0], body->block[1], body->block[2], first, fault->text);
    if (fault->kind == BH__PTX_FAULT_ASSERT) { /* also printed, as a GPU's driver does */
        const bh__device_services *services = job->device->services;
        char line[sizeof fault->text + 1];
        int length = snprintf(line, sizeof line, "%s\n", fault->text);
        services->print(services->context, line, (size_t)length);
    }
    bh__fail_device_code(error, kind->code, kind->name);
    return BH_E_FAULT;
}

void bh__cpu_fault_place(const bh__device_lane *lane, uint64_t *address, uint32_t *bytes) {
    const bh__ptx_fault *fault = &lane->job.fault;
    bool known = lane->job.faulted && fault->global;
    *address = known ? fault->address : 0;
    *bytes = known ? fault->size : 0;
}

const char *bh__cpu_fault_state(const bh__device_lane *lane) {
    return lane->job.faulted ? lane->job.state : NULL;
}

static bh_status find_kernel(const bh__cpu_view *view, const bh__work *work, bh__cpu_job *job,
                             bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    const bh__cpu_module *module = bh__cpu_view_module(view, body->module);
    if (!module || body->kernel >= bh__ptx_kernel_count(module->code))
        return bh__fail(error, BH_E_INTERNAL, BH__CPU_DEFECT,
                        "launch %llu of lane %u: there is no kernel %u in module %u",
                        (ull)work->sequence, work->lane, body->kernel, body->module);
    const bh__ptx_kernel *kernel = bh__ptx_kernel_at(module->code, body->kernel);
    if (body->param_bytes != kernel->param_bytes && !(body->flags & BH__LAUNCH_OBJECTS))
        return bh__fail(error, BH_E_LAUNCH, "pass the arguments that the kernel declares",
                        "kernel \"%.100s\" has %u bytes of parameters, given %u", kernel->name,
                        kernel->param_bytes, body->param_bytes);
    job->grid.image = module->image;
    job->grid.kernel = kernel;
    job->module = module;
    return BH_OK;
}

static void set_workspace(bh__cpu_job *job, bool cooperative) {
    job->workspace = (bh__ptx_workspace){.size = sizeof job->workspace};
    job->grid.workspace = (bh__ptx_range){0};
    if (!cooperative) return;
    job->grid.workspace = (bh__ptx_range){.base = (uint64_t)(uintptr_t)&job->workspace,
                                          .size = sizeof job->workspace,
                                          .writable = true};
}

static bh_status prepare(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    bh__cpu_job *job = &lane->job;
    bh_status status = find_kernel(lane->view, work, job, error);
    if (status == BH_OK) status = check_shape(&lane->device->info, job->grid.kernel, body, error);
    if (status != BH_OK) return status;
    memcpy(job->grid.grid, body->grid, sizeof body->grid);
    memcpy(job->grid.block, body->block, sizeof body->block);
    memcpy(job->grid.cluster, body->cluster, sizeof body->cluster);
    job->grid.dynamic_shared = body->shared_bytes;
    job->grid.params = work->params;
    job->grid.memory = &lane->view->memory;
    job->grid.textures = NULL;
    if (body->flags & BH__LAUNCH_OBJECTS) status = bh__cpu_textures_make(lane, work, error);
    if (status != BH_OK) return status;
    job->grid.compiled = lane->device->services->check
                             ? NULL /* only the interpreter checks */
                             : bh__cpu_native_code(job->module->native, body->kernel, body->block);
    job->grid.grid_id = atomic_fetch_add_explicit(&lane->device->launches, 1, memory_order_relaxed);
    job->grid.heap = lane->view->heap;
    job->grid.print = print;
    job->grid.print_context = job;
    job->grid.stop = &job->stop;
    job->total = bh__ptx_cluster_count(&job->grid);
    job->cooperative = body->flags & BH_LAUNCH_COOPERATIVE && job->total > 1;
    set_workspace(job, body->flags & BH_LAUNCH_COOPERATIVE);
    job->faulted = false;
    set_state(job, NULL);
    job->findings = 0;
    atomic_store_explicit(&job->next, 0, memory_order_relaxed);
    atomic_store_explicit(&job->stop, false, memory_order_relaxed);
    atomic_store_explicit(&job->failed, false, memory_order_relaxed);
    return job->cooperative ? check_residency(job, error) : BH_OK;
}

static bh_status finish(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh__cpu_job *job = &lane->job;
    trim_cluster(job, &lane->cluster);
    if (job->print_bytes) flush_print(job);
    if (atomic_load(&job->failed)) {
        if (job->faulted) return describe_fault(job, work, error);
        *error = job->error;
        return error->status;
    }
    return bh__cpu_killed(lane->device) ? BH_E_STOPPED : BH_OK;
}

/* The first finding is the launch's error. A fault that ended the launch is the last of them. */
static void use_findings(bh__device_lane *lane) {
    bh__cpu_job *job = &lane->job;
    uint32_t count;
    const bh__ptx_finding *findings = bh__ptx_check_findings(lane->check, &count);
    job->findings = count;
    bool failed = atomic_load(&job->failed) && !job->faulted;
    if (count == 0 || (failed && job->error.status != BH_E_CANCELLED)) return;
    atomic_store(&job->failed, true);
    job->faulted = true;
    job->fault = findings[0].fault;
    set_state(job, bh__ptx_check_take_state(lane->check));
}

static bh_status launch_checked(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh__cpu_job *job = &lane->job;
    const char *name = job->grid.kernel->name;
    if (!lane->check && !(lane->check = bh__ptx_check_create()))
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "kernel \"%.100s\": no memory for its checks", name);
    job->grid.check = lane->check;
    bh__ptx_check_begin(lane->check);
    if (job->cooperative) {
        job->share = (uint32_t)job->total;
        run_together(job);
    } else {
        struct progress progress = {.job = job, .began = bh__now_ns()};
        run_in_turn(job, &lane->cluster, &progress);
        bh__cpu_pool_dismiss(&lane->device->pool, job);
    }
    bool whole = bh__ptx_check_end(lane->check);
    use_findings(lane);
    bh_status status = finish(lane, work, error);
    if (status != BH_OK || whole) return status;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory, or check a smaller launch",
                    "kernel \"%.100s\" ran, but there was no memory to check all of it", name);
}

static bh_status run(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    bh__cpu_job *job = &lane->job;
    if (lane->device->services->check) return launch_checked(lane, work, error);
    bh__cpu_pool *pool = &lane->device->pool;
    if (job->cooperative) {
        uint32_t threads = pool->size + 1;
        job->share = (uint32_t)((job->total + threads - 1) / threads);
        bh__cpu_pool_call(pool, job, job->total - 1);
        run_together(job);
    } else if (job->total == 1) {
        run_clusters(job, &lane->cluster, NULL);
    } else {
        struct progress progress = {.job = job, .began = bh__now_ns()};
        run_clusters(job, &lane->cluster, &progress);
    }
    bh__cpu_pool_dismiss(pool, job);
    return finish(lane, work, error);
}

/* A launch of which some threads are followed. */
static bh_status run_followed(bh__device_lane *lane, const bh__work *work,
                              const bh__ptx_debug *debug, bh_error *error) {
    bh__cpu_job *job = &lane->job;
    bh_status status = bh__ptx_debug_fits(debug, &job->grid, error);
    if (status != BH_OK) return status;
    if (!bh__ptx_tracing_begin(&job->tracing, debug))
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory in this machine",
                        "kernel \"%.100s\": no memory to follow its threads",
                        job->grid.kernel->name);
    job->grid.tracing = &job->tracing;
    status = run(lane, work, error);
    job->grid.tracing = NULL;
    bh__ptx_tracing_end(&job->tracing);
    return status;
}

bh_status bh__cpu_launch(bh__device_lane *lane, const bh__work *work, bh_error *error) {
    const bh__launch_body *body = &work->u.launch;
    const bh__cpu_module *module = bh__cpu_view_module(lane->view, body->module);
    if (module && module->library)
        return bh__cpu_library_run(lane, module->library, work, error);
    bh_status status = prepare(lane, work, error);
    if (status != BH_OK) return status;
    bh__cpu_debug *debug = bh__cpu_debug_enter(lane->device, body->module, body->kernel);
    if (!debug) return run(lane, work, error);
    status = run_followed(lane, work, bh__cpu_debug_made(debug), error);
    bh__cpu_debug_leave(lane->device, debug);
    return status;
}
