/* SPDX-License-Identifier: Apache-2.0 */
/* A block: its memory, its warps, and their scheduling. */
#include <stdlib.h>
#include <string.h>

#include "ptx/check/check.h"
#include "ptx/debug/debug.h"

bh__ptx_block *bh__ptx_block_create(void) {
    return calloc(1, sizeof(bh__ptx_block));
}

void bh__ptx_block_destroy(bh__ptx_block *block) {
    if (block == NULL) {
        return;
    }
    for (uint32_t n = 0; n < block->warp_capacity; n++) {
        free(block->warps[n].regs);
        free(block->warps[n].local);
        bh__check_shadow_free(block->warps[n].shadow);
    }
    bh__check_block_free(block->check);
    free(block->warps);
    free(block->shared);
    free(block->tid[0]);
    free(block);
}

static bool room_for_warps(bh__ptx_block *b, uint32_t count) {
    if (count <= b->warp_capacity) {
        return true;
    }
    bh__ptx_warp *warps = realloc(b->warps, count * sizeof *warps);
    if (warps == NULL) {
        return false;
    }
    memset(warps + b->warp_capacity, 0, (count - b->warp_capacity) * sizeof *warps);
    b->warps = warps;
    b->warp_capacity = count;
    return true;
}

static bool room_for_shared(bh__ptx_block *b, uint32_t bytes) {
    if (bytes > b->shared_capacity) {
        size_t capacity = ((size_t)bytes + 4095) & ~(size_t)4095;
        uint8_t *shared = aligned_alloc(4096, capacity);
        if (shared == NULL) {
            return false;
        }
        free(b->shared);
        b->shared = shared;
        b->shared_capacity = capacity;
    }
    if (bytes > 0) {
        memset(b->shared, 0, bytes);
    }
    return true;
}

/* The thread indices of every lane; kept as long as blocks have the same shape. */
static bool set_thread_indices(bh__ptx_block *b, const uint32_t dims[3]) {
    if (memcmp(b->dims, dims, sizeof b->dims) == 0) {
        return true;
    }
    size_t count = ((size_t)b->threads + LANES - 1) & ~(size_t)(LANES - 1);
    if (count > b->tid_capacity) {
        uint32_t *tid = malloc(3 * count * sizeof *tid);
        if (tid == NULL) {
            return false;
        }
        free(b->tid[0]);
        b->tid[0] = tid;
        b->tid_capacity = count;
    }
    b->tid[1] = b->tid[0] + b->tid_capacity;
    b->tid[2] = b->tid[1] + b->tid_capacity;
    uint32_t x = 0, y = 0, z = 0;
    for (size_t n = 0; n < count; n++) {
        b->tid[0][n] = x;
        b->tid[1][n] = y;
        b->tid[2][n] = z;
        if (++x == dims[0]) {
            x = 0;
            if (++y == dims[1]) {
                y = 0;
                z++;
            }
        }
    }
    memcpy(b->dims, dims, sizeof b->dims);
    return true;
}

/* Frees memory of deep recursion, so that kernels that need little do not keep it. */
static void trim_memory(bh__ptx_warp *w, size_t regs, uint32_t local) {
    if (w->regs_capacity > (size_t)1 << 20 && w->regs_capacity / 8 > regs) {
        free(w->regs);
        w->regs = NULL;
        w->regs_capacity = 0;
    }
    if (w->local_stride > 32768 && w->local_stride / 8 > local) {
        free(w->local);
        w->local = NULL;
        w->local_stride = 0;
    }
}

void bh__ptx_warp_zero_local(bh__ptx_warp *w, uint32_t bytes) {
    for (unsigned l = 0; l < LANES; l++) {
        memset(w->local + (size_t)l * w->local_stride, 0, bytes);
    }
}

bool bh__ptx_warp_room(bh__ptx_block *b, uint32_t index, const bh__ptx_function *f) {
    bh__ptx_warp *w = &b->warps[index];
    uint32_t local = b->x.grid->kernel->local_bytes;
    trim_memory(w, f->frame_bytes, local);
    if (!bh__ptx_regs_room(w, f->frame_bytes) || !bh__ptx_local_room(w, local)) {
        return false;
    }
    if (local > 0) {
        bh__ptx_warp_zero_local(w, local);
    }
    uint32_t threads = b->threads - index * LANES;
    w->index = index;
    w->live = threads >= LANES ? FULL_MASK : (1u << threads) - 1;
    w->carry = 0;
    *(bh__ptx_frame *)(void *)w->regs = (bh__ptx_frame){.size = f->frame_bytes, .function = f};
    return true;
}

void bh__ptx_warp_begin(bh__ptx_block *b, uint32_t index, const bh__ptx_function *f) {
    bh__ptx_warp *w = &b->warps[index];
    w->at_barrier = w->at_sync = 0;
    w->at_cluster = w->cluster_arrived = w->cluster_pending = 0;
    w->favour = false;
    w->turn = 0;
    memset(w->last_turn, 0, sizeof w->last_turn);
    memset(w->base, 0, sizeof w->base);
    memset(w->depth, 0, sizeof w->depth);
    w->top = f->frame_bytes;
    w->free_frame = 0;
}

void bh__ptx_warp_zero(bh__ptx_warp *w, const bh__ptx_function *f) {
    memset(w->regs + HEADER_BYTES, 0, f->frame_bytes - HEADER_BYTES);
    for (unsigned l = 0; l < LANES; l++) {
        w->pc[l] = f->code;
    }
}

static bool prepare_warps(bh__ptx_block *b, const bh__ptx_function *f) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        if (!bh__ptx_warp_room(b, n, f)) {
            return false;
        }
        bh__ptx_warp_begin(b, n, f);
        bh__ptx_warp_zero(&b->warps[n], f);
    }
    return true;
}

bh_status bh__ptx_block_begin(bh__ptx_block *b, const bh__ptx_grid *grid, uint32_t x, uint32_t y,
                              uint32_t z, bh_error *error) {
    b->id[0] = x;
    b->id[1] = y;
    b->id[2] = z;
    if (bh__ptx_block_native_again(b, grid)) {
        return BH_OK;
    }
    const bh__ptx_module *m = grid->image->module;
    const bh__ptx_kernel *k = grid->kernel;
    const bh__ptx_function *f = m->kernel_functions[k - m->kernels];
    uint32_t dynamic_base = (k->static_shared + m->dynamic_align - 1) & ~(m->dynamic_align - 1);
    uint32_t shared =
        grid->dynamic_shared > 0 ? dynamic_base + grid->dynamic_shared : k->static_shared;
    uint32_t reserved_base = (shared + 15) & ~15u;
    if (m->uses_reserved) {
        shared = reserved_base + BH__PTX_RESERVED_SHARED;
    }
    b->threads = grid->block[0] * grid->block[1] * grid->block[2];
    b->live_threads = b->threads;
    b->warp_count = (b->threads + LANES - 1) / LANES;
    b->next_warp = 0;
    b->done = b->threads == 0;
    b->image = grid->image;
    bool ok = room_for_warps(b, b->warp_count) && room_for_shared(b, shared) &&
              set_thread_indices(b, grid->block);
    b->x =
        (bh__ptx_exec){.bases = {NULL, m->constants},
                       .block = b,
                       .module = m,
                       .grid = grid,
                       .check = grid->check,
                       .tracing = bh__ptx_tracing_of(grid->tracing, b->id) ? grid->tracing : NULL,
                       .shared = b->shared,
                       .shared_bytes = shared,
                       .dynamic_base = dynamic_base,
                       .reserved_base = reserved_base};
    if (grid->compiled != NULL && (b->ranges_of != grid || b->ranges_of_id != grid->grid_id)) {
        memset(b->site_ranges, 0, sizeof b->site_ranges);
        b->ranges_of = grid;
        b->ranges_of_id = grid->grid_id;
    }
    bh__ptx_cluster_alone(b);
    for (unsigned n = 0; n < BARRIERS; n++) {
        b->barriers[n] = (bh__ptx_barrier){.all = true};
    }
    b->native = ok && bh__ptx_block_takes_native(b, f);
    ok = ok && (b->native ? bh__ptx_block_native_begin(b, f) : prepare_warps(b, f));
    ok = ok && (grid->check == NULL || bh__check_block_begin(b));
    if (!ok) {
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "use smaller blocks, or free memory",
                        "no memory for a block of %u threads of %s", (unsigned)b->threads, k->name);
    }
    return BH_OK;
}

/* Threads that wait for the cluster may go on when another of its blocks has run. */
static bool waits_for_cluster(const bh__ptx_block *b) {
    uint32_t waiting = 0;
    for (uint32_t n = 0; n < b->warp_count; n++) {
        waiting |= b->warps[n].at_cluster;
    }
    return waiting != 0 && b->cluster->count > 1;
}

/* With checks, a fault is the last finding. */
static bh__ptx_outcome faulted(bh__ptx_block *b) {
    if (b->x.check != NULL) {
        bh__check_found(&b->x, b->x.fault, 0);
    }
    return BH__PTX_FAULTED;
}

bh__ptx_outcome bh__ptx_block_deadlock(bh__ptx_block *b) {
    for (uint32_t n = 0; n < b->warp_count; n++) {
        bh__ptx_warp *w = &b->warps[n];
        if (w->live == 0) {
            continue;
        }
        bool barrier = w->at_barrier != 0, cluster = !barrier && w->at_cluster != 0;
        unsigned lane = (unsigned)__builtin_ctz(barrier   ? w->at_barrier
                                                : cluster ? w->at_cluster
                                                          : w->live);
        bh__ptx_bind(&b->x, w, w->base[lane]);
        b->x.code = &b->x.module->code[w->pc[lane] - (barrier || cluster)];
        if (cluster) {
            bh__ptx_fault_other(&b->x, BH__PTX_FAULT_BARRIER, lane,
                                "barrier.cluster can never complete: %u of %u threads of the "
                                "cluster have not arrived there and none of them can run",
                                (unsigned)b->cluster->missing, (unsigned)b->cluster->live);
        } else if (barrier) {
            const bh__ptx_barrier *bar = &b->barriers[w->barrier[lane]];
            bh__ptx_fault_other(&b->x, BH__PTX_FAULT_BARRIER, lane,
                                "barrier %u can never complete: %u of %u threads wait there and "
                                "no other thread is running",
                                (unsigned)w->barrier[lane], (unsigned)bar->arrived,
                                (unsigned)(bar->expected ? bar->expected : b->live_threads));
        } else {
            bh__ptx_fault_other(
                &b->x, BH__PTX_FAULT_BARRIER, lane,
                "lanes of a warp wait for lanes that cannot arrive: member mask 0x%08x",
                (unsigned)w->members[lane]);
        }
        break;
    }
    return faulted(b);
}

bh__ptx_outcome bh__ptx_block_step(bh__ptx_block *b, uint64_t budget, bh__ptx_fault *fault) {
    const _Atomic(bool) *stop = b->x.grid->stop;
    uint32_t idle = 0;
    bool ran = false;
    b->x.fault = fault;
    while (!b->done) {
        if ((stop != NULL && atomic_load_explicit(stop, memory_order_relaxed)) ||
            (b->x.check != NULL && atomic_load_explicit(&b->x.check->over, memory_order_relaxed))) {
            return BH__PTX_STOPPED;
        }
        if (budget == 0) {
            return BH__PTX_YIELD;
        }
        if (b->native) {
            bh__ptx_outcome outcome = bh__ptx_block_native_step(b, &budget);
            if (outcome == BH__PTX_FAULTED) {
                b->done = true;
                return outcome;
            }
            ran = true;
            continue;
        }
        bh__ptx_turn turn = bh__ptx_warp_run(&b->x, &b->warps[b->next_warp], &budget);
        if (turn == TURN_FAULT) {
            b->done = true;
            return faulted(b);
        }
        if (turn == TURN_STOP) {
            return BH__PTX_AT_LINE;
        }
        if (b->live_threads == 0) {
            b->done = true;
            break;
        }
        idle = turn == TURN_RAN ? 0 : idle + 1;
        ran |= turn == TURN_RAN;
        if (idle > b->warp_count && waits_for_cluster(b)) {
            return ran ? BH__PTX_YIELD : BH__PTX_BLOCKED;
        }
        if (idle > b->warp_count) {
            b->done = true;
            return bh__ptx_block_deadlock(b);
        }
        b->next_warp = b->next_warp + 1 == b->warp_count ? 0 : b->next_warp + 1;
    }
    if (b->x.check != NULL) {
        bh__check_block_end(b);
    }
    return BH__PTX_DONE;
}
