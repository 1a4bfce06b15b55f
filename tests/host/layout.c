/* SPDX-License-Identifier: Apache-2.0 */
/* The binary interface: sizes and offsets of every public struct, numbers of every constant. A change here
 * breaks programs that are already built. */
#include "../support/support.h"

struct layout {
    const char *name;
    size_t offset, bytes, actual_offset, actual_bytes;
};

#define SIZE(type, bytes)                                                                          \
    { #type, 0, bytes, 0, sizeof(type) }
#define FIELD(type, field, at, bytes)                                                              \
    { #type "." #field, at, bytes, offsetof(type, field), sizeof(((type *)0)->field) }

static const struct layout layouts[] = {
    SIZE(bh_ticket, 16),
    FIELD(bh_ticket, lane, 0, 8),
    FIELD(bh_ticket, sequence, 8, 8),
    SIZE(bh_error, 1000),
    FIELD(bh_error, status, 0, 4),
    FIELD(bh_error, device_code, 4, 4),
    FIELD(bh_error, device_name, 8, 64),
    FIELD(bh_error, message, 72, 512),
    FIELD(bh_error, fix, 584, 256),
    FIELD(bh_error, kernel, 840, 128),
    FIELD(bh_error, ticket, 968, 16),
    FIELD(bh_error, generation, 984, 8),
    FIELD(bh_error, certain, 992, 4),
    FIELD(bh_error, reserved, 996, 4),
    SIZE(bh_device, 8),
    FIELD(bh_device, id, 0, 8),
    SIZE(bh_lane, 8),
    FIELD(bh_lane, id, 0, 8),
    SIZE(bh_module, 8),
    FIELD(bh_module, id, 0, 8),
    SIZE(bh_kernel, 8),
    FIELD(bh_kernel, id, 0, 8),
    SIZE(bh_buffer, 8),
    FIELD(bh_buffer, id, 0, 8),
    SIZE(bh_device_options, 88),
    FIELD(bh_device_options, size, 0, 4),
    FIELD(bh_device_options, flags, 4, 4),
    FIELD(bh_device_options, device, 8, 8),
    FIELD(bh_device_options, worker_dir, 16, 8),
    FIELD(bh_device_options, restart_window_ns, 24, 8),
    FIELD(bh_device_options, restart_limit, 32, 4),
    FIELD(bh_device_options, quarantine_after, 36, 4),
    FIELD(bh_device_options, deadline_ns, 40, 8),
    FIELD(bh_device_options, wait_spin_ns, 48, 8),
    FIELD(bh_device_options, worker_spin_ns, 56, 8),
    FIELD(bh_device_options, close_timeout_ns, 64, 8),
    FIELD(bh_device_options, memory_limit, 72, 8),
    FIELD(bh_device_options, queue_length, 80, 4),
    FIELD(bh_device_options, reserved, 84, 4),
    SIZE(bh_device_info, 640),
    FIELD(bh_device_info, size, 0, 4),
    FIELD(bh_device_info, cooperative, 4, 4),
    FIELD(bh_device_info, kind, 8, 16),
    FIELD(bh_device_info, name, 24, 128),
    FIELD(bh_device_info, driver, 152, 64),
    FIELD(bh_device_info, arch, 216, 16),
    FIELD(bh_device_info, memory_total, 232, 8),
    FIELD(bh_device_info, memory_free, 240, 8),
    FIELD(bh_device_info, multiprocessors, 248, 4),
    FIELD(bh_device_info, warp_size, 252, 4),
    FIELD(bh_device_info, max_threads_per_block, 256, 4),
    FIELD(bh_device_info, max_block, 260, 12),
    FIELD(bh_device_info, max_grid, 272, 12),
    FIELD(bh_device_info, shared_per_block, 284, 4),
    FIELD(bh_device_info, shared_per_block_max, 288, 4),
    FIELD(bh_device_info, registers_per_block, 292, 4),
    FIELD(bh_device_info, max_lanes, 296, 4),
    FIELD(bh_device_info, max_param_bytes, 300, 4),
    FIELD(bh_device_info, uuid, 304, 48),
    FIELD(bh_device_info, pci, 352, 24),
    FIELD(bh_device_info, no_standby, 376, 192),
    FIELD(bh_device_info, ecc, 568, 4),
    FIELD(bh_device_info, compute_mode, 572, 4),
    FIELD(bh_device_info, mig, 576, 4),
    FIELD(bh_device_info, mps, 580, 4),
    FIELD(bh_device_info, clock_khz, 584, 4),
    FIELD(bh_device_info, memory_clock_khz, 588, 4),
    FIELD(bh_device_info, memory_bus_bits, 592, 4),
    FIELD(bh_device_info, l2_bytes, 596, 4),
    FIELD(bh_device_info, registers_per_multiprocessor, 600, 4),
    FIELD(bh_device_info, shared_per_multiprocessor, 604, 4),
    FIELD(bh_device_info, max_threads_per_multiprocessor, 608, 4),
    FIELD(bh_device_info, max_blocks_per_multiprocessor, 612, 4),
    FIELD(bh_device_info, async_engines, 616, 4),
    FIELD(bh_device_info, concurrent_kernels, 620, 4),
    FIELD(bh_device_info, cluster_launch, 624, 4),
    FIELD(bh_device_info, priority_lowest, 628, 4),
    FIELD(bh_device_info, priority_highest, 632, 4),
    FIELD(bh_device_info, driver_version, 636, 4),
    SIZE(bh_device_entry, 1680),
    FIELD(bh_device_entry, name, 0, 32),
    FIELD(bh_device_entry, status, 32, 4),
    FIELD(bh_device_entry, error, 40, 1000),
    FIELD(bh_device_entry, info, 1040, 640),
    SIZE(bh_device_status, 320),
    FIELD(bh_device_status, size, 0, 4),
    FIELD(bh_device_status, state, 4, 4),
    FIELD(bh_device_status, generation, 8, 8),
    FIELD(bh_device_status, losses, 16, 8),
    FIELD(bh_device_status, worker_pid, 24, 4),
    FIELD(bh_device_status, standby_pid, 28, 4),
    FIELD(bh_device_status, standby_ready, 32, 4),
    FIELD(bh_device_status, lanes, 36, 4),
    FIELD(bh_device_status, buffers, 40, 8),
    FIELD(bh_device_status, bytes_allocated, 48, 8),
    FIELD(bh_device_status, bytes_reserved, 56, 8),
    FIELD(bh_device_status, reason, 64, 256),
    SIZE(bh_loss, 696),
    FIELD(bh_loss, size, 0, 4),
    FIELD(bh_loss, cause, 4, 4),
    FIELD(bh_loss, generation, 8, 8),
    FIELD(bh_loss, certain, 16, 4),
    FIELD(bh_loss, stopped, 20, 4),
    FIELD(bh_loss, from_standby, 24, 4),
    FIELD(bh_loss, failed, 28, 4),
    FIELD(bh_loss, lost, 32, 4),
    FIELD(bh_loss, stale, 36, 4),
    FIELD(bh_loss, resent, 40, 4),
    FIELD(bh_loss, suspect_buffers, 44, 4),
    FIELD(bh_loss, takeover_ns, 48, 8),
    FIELD(bh_loss, kernel, 56, 128),
    FIELD(bh_loss, message, 184, 512),
    SIZE(bh_lane_options, 8),
    FIELD(bh_lane_options, size, 0, 4),
    FIELD(bh_lane_options, priority, 4, 4),
    SIZE(bh_buffer_info, 72),
    FIELD(bh_buffer_info, size, 0, 4),
    FIELD(bh_buffer_info, type, 4, 4),
    FIELD(bh_buffer_info, count, 8, 8),
    FIELD(bh_buffer_info, bytes, 16, 8),
    FIELD(bh_buffer_info, address, 24, 8),
    FIELD(bh_buffer_info, read_only_address, 32, 8),
    FIELD(bh_buffer_info, device, 40, 8),
    FIELD(bh_buffer_info, suspect, 48, 4),
    FIELD(bh_buffer_info, is_view, 52, 4),
    FIELD(bh_buffer_info, suspect_offset, 56, 8),
    FIELD(bh_buffer_info, suspect_bytes, 64, 8),
    SIZE(bh_kernel_info, 304),
    FIELD(bh_kernel_info, size, 0, 4),
    FIELD(bh_kernel_info, param_count, 4, 4),
    FIELD(bh_kernel_info, param_bytes, 8, 4),
    FIELD(bh_kernel_info, static_shared, 12, 4),
    FIELD(bh_kernel_info, local_bytes, 16, 4),
    FIELD(bh_kernel_info, registers, 20, 4),
    FIELD(bh_kernel_info, max_threads, 24, 4),
    FIELD(bh_kernel_info, quarantined, 28, 4),
    FIELD(bh_kernel_info, required_block, 32, 12),
    FIELD(bh_kernel_info, faults, 44, 4),
    FIELD(bh_kernel_info, name, 48, 256),
    SIZE(bh_param_info, 16),
    FIELD(bh_param_info, size, 0, 4),
    FIELD(bh_param_info, offset, 4, 4),
    FIELD(bh_param_info, bytes, 8, 4),
    FIELD(bh_param_info, pointer, 12, 4),
    SIZE(bh_dim, 12),
    FIELD(bh_dim, x, 0, 4),
    FIELD(bh_dim, y, 4, 4),
    FIELD(bh_dim, z, 8, 4),
    SIZE(bh_shape, 40),
    FIELD(bh_shape, grid, 0, 12),
    FIELD(bh_shape, block, 12, 12),
    FIELD(bh_shape, cluster, 24, 12),
    FIELD(bh_shape, shared_bytes, 36, 4),
    SIZE(bh_arg, 24),
    FIELD(bh_arg, kind, 0, 4),
    FIELD(bh_arg, size, 4, 4),
    FIELD(bh_arg, u, 8, 16),
    SIZE(bh_args, 16),
    FIELD(bh_args, list, 0, 8),
    FIELD(bh_args, count, 8, 8),
    SIZE(bh_use, 16),
    FIELD(bh_use, buffer, 0, 8),
    FIELD(bh_use, access, 8, 4),
    FIELD(bh_use, reserved, 12, 4),
    SIZE(bh_launch_options, 40),
    FIELD(bh_launch_options, size, 0, 4),
    FIELD(bh_launch_options, flags, 4, 4),
    FIELD(bh_launch_options, lane, 8, 8),
    FIELD(bh_launch_options, deadline_ns, 16, 8),
    FIELD(bh_launch_options, also, 24, 8),
    FIELD(bh_launch_options, also_count, 32, 8),
    SIZE(bh_buffer_options, 24),
    FIELD(bh_buffer_options, size, 0, 4),
    FIELD(bh_buffer_options, flags, 4, 4),
    FIELD(bh_buffer_options, tag, 8, 8),
    FIELD(bh_buffer_options, align, 16, 8),
    SIZE(bh_memory_info, 136),
    FIELD(bh_memory_info, size, 0, 4),
    FIELD(bh_memory_info, chunks, 4, 4),
    FIELD(bh_memory_info, buffers, 8, 8),
    FIELD(bh_memory_info, bytes_buffers, 16, 8),
    FIELD(bh_memory_info, bytes_used, 24, 8),
    FIELD(bh_memory_info, bytes_leaving, 32, 8),
    FIELD(bh_memory_info, bytes_reserved, 40, 8),
    FIELD(bh_memory_info, bytes_free, 48, 8),
    FIELD(bh_memory_info, largest_free, 56, 8),
    FIELD(bh_memory_info, bytes_unused, 64, 8),
    FIELD(bh_memory_info, limit, 72, 8),
    FIELD(bh_memory_info, high_buffers, 80, 8),
    FIELD(bh_memory_info, high_reserved, 88, 8),
    FIELD(bh_memory_info, allocations, 96, 8),
    FIELD(bh_memory_info, refusals, 104, 8),
    FIELD(bh_memory_info, trims, 112, 8),
    FIELD(bh_memory_info, bytes_trimmed, 120, 8),
    FIELD(bh_memory_info, fragmentation, 128, 8),
    SIZE(bh_memory_entry, 152),
    FIELD(bh_memory_entry, size, 0, 4),
    FIELD(bh_memory_entry, type, 4, 4),
    FIELD(bh_memory_entry, count, 8, 8),
    FIELD(bh_memory_entry, bytes, 16, 8),
    FIELD(bh_memory_entry, bytes_used, 24, 8),
    FIELD(bh_memory_entry, address, 32, 8),
    FIELD(bh_memory_entry, state, 40, 4),
    FIELD(bh_memory_entry, handles, 44, 4),
    FIELD(bh_memory_entry, call_site, 48, 8),
    FIELD(bh_memory_entry, tag, 56, 96),
    SIZE(bh_memory_tag, 144),
    FIELD(bh_memory_tag, size, 0, 4),
    FIELD(bh_memory_tag, reserved, 4, 4),
    FIELD(bh_memory_tag, bytes, 8, 8),
    FIELD(bh_memory_tag, buffers, 16, 8),
    FIELD(bh_memory_tag, high, 24, 8),
    FIELD(bh_memory_tag, limit, 32, 8),
    FIELD(bh_memory_tag, allocations, 40, 8),
    FIELD(bh_memory_tag, tag, 48, 96),
    SIZE(bh_pressure, 56),
    FIELD(bh_pressure, size, 0, 4),
    FIELD(bh_pressure, reason, 4, 4),
    FIELD(bh_pressure, threshold, 8, 8),
    FIELD(bh_pressure, asked, 16, 8),
    FIELD(bh_pressure, bytes_buffers, 24, 8),
    FIELD(bh_pressure, bytes_reserved, 32, 8),
    FIELD(bh_pressure, limit, 40, 8),
    FIELD(bh_pressure, times, 48, 8),
    SIZE(bh_rows, 56),
    FIELD(bh_rows, size, 0, 4),
    FIELD(bh_rows, reserved, 4, 4),
    FIELD(bh_rows, width, 8, 8),
    FIELD(bh_rows, height, 16, 8),
    FIELD(bh_rows, target_offset, 24, 8),
    FIELD(bh_rows, target_pitch, 32, 8),
    FIELD(bh_rows, source_offset, 40, 8),
    FIELD(bh_rows, source_pitch, 48, 8),
    SIZE(bh_host_pool, 8),
    FIELD(bh_host_pool, id, 0, 8),
    SIZE(bh_host_pool_options, 24),
    FIELD(bh_host_pool_options, size, 0, 4),
    FIELD(bh_host_pool_options, reserved, 4, 4),
    FIELD(bh_host_pool_options, max_bytes, 8, 8),
    FIELD(bh_host_pool_options, max_piece, 16, 8),
    SIZE(bh_host_pool_info, 88),
    FIELD(bh_host_pool_info, size, 0, 4),
    FIELD(bh_host_pool_info, waiting, 4, 4),
    FIELD(bh_host_pool_info, bytes_reserved, 8, 8),
    FIELD(bh_host_pool_info, bytes_taken, 16, 8),
    FIELD(bh_host_pool_info, bytes_cooling, 24, 8),
    FIELD(bh_host_pool_info, max_bytes, 32, 8),
    FIELD(bh_host_pool_info, high_taken, 40, 8),
    FIELD(bh_host_pool_info, pieces_taken, 48, 8),
    FIELD(bh_host_pool_info, takes, 56, 8),
    FIELD(bh_host_pool_info, waits, 64, 8),
    FIELD(bh_host_pool_info, refusals, 72, 8),
    FIELD(bh_host_pool_info, bytes_cleared, 80, 8),
};

TEST(structs_have_the_layout_programs_were_built_with) {
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        const struct layout *l = &layouts[i];
        if (l->actual_offset != l->offset || l->actual_bytes != l->bytes)
            FAIL("%s is at %zu with %zu bytes; it was at %zu with %zu", l->name, l->actual_offset,
                 l->actual_bytes, l->offset, l->bytes);
    }
}

TEST(constants_have_the_numbers_programs_were_built_with) {
    CHECK_EQ(BH_I8, 1);
    CHECK_EQ(BH_F64, 12);
    CHECK_EQ(BH_LOG_ERROR, 1);
    CHECK_EQ(BH_LOG_DEBUG, 4);
    CHECK_EQ(BH_DEVICE_NO_STANDBY, 1);
    CHECK_EQ(BH_DEVICE_NO_RESTART_LIMIT, 2);
    CHECK_EQ(BH_COMPUTE_DEFAULT, 0);
    CHECK_EQ(BH_COMPUTE_EXCLUSIVE, 1);
    CHECK_EQ(BH_COMPUTE_PROHIBITED, 2);
    CHECK_EQ(BH_DEVICE_RUNNING, 1);
    CHECK_EQ(BH_DEVICE_REPLACING, 2);
    CHECK_EQ(BH_DEVICE_STOPPED, 3);
    CHECK_EQ(BH_ACCESS_IN, 1);
    CHECK_EQ(BH_ACCESS_OUT, 2);
    CHECK_EQ(BH_ACCESS_INOUT, 3);
    CHECK_EQ(BH_ARG_VALUE, 1);
    CHECK_EQ(BH_ARG_DATA, 2);
    CHECK_EQ(BH_ARG_BUFFER, 3);
    CHECK_EQ(BH_LAUNCH_IDEMPOTENT, 1);
    CHECK_EQ(BH_LAUNCH_NO_BLOCK, 2);
    CHECK_EQ(BH_LAUNCH_WRITABLE_INPUTS, 4);
    CHECK_EQ(BH_LAUNCH_COOPERATIVE, 8);
    CHECK_EQ(BH_TAG_BYTES, 96);
    CHECK_EQ(BH_PATTERN_MOST, 65536);
    CHECK_EQ(BH_BUFFER_ZERO, 1);
    CHECK_EQ(BH_MEMORY_LIVE, 1);
    CHECK_EQ(BH_MEMORY_LEAVING, 2);
    CHECK_EQ(BH_PRESSURE_ABOVE, 1);
    CHECK_EQ(BH_PRESSURE_BELOW, 2);
    CHECK_EQ(BH_PRESSURE_TRIMMED, 3);
    CHECK_EQ(BH_PRESSURE_FAILED, 4);
    CHECK_EQ(BH_WAY_WITHIN, 1);
    CHECK_EQ(BH_WAY_HOST, 2);
    CHECK_EQ(sizeof(bh_status), 4);
    CHECK_EQ(sizeof(bh_type), 4);
    CHECK_EQ(BH_FOREVER, UINT64_MAX);
}
