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
    SIZE(bh_sequence, 8),
    FIELD(bh_sequence, id, 0, 8),
    SIZE(bh_sequence_options, 16),
    FIELD(bh_sequence_options, size, 0, 4),
    FIELD(bh_sequence_options, flags, 4, 4),
    FIELD(bh_sequence_options, name, 8, 8),
    SIZE(bh_replay_options, 32),
    FIELD(bh_replay_options, size, 0, 4),
    FIELD(bh_replay_options, flags, 4, 4),
    FIELD(bh_replay_options, lane, 8, 8),
    FIELD(bh_replay_options, deadline_ns, 16, 8),
    FIELD(bh_replay_options, repeat, 24, 4),
    FIELD(bh_replay_options, reserved, 28, 4),
    SIZE(bh_dispatch_arg, 32),
    FIELD(bh_dispatch_arg, kind, 0, 4),
    FIELD(bh_dispatch_arg, reserved, 4, 4),
    FIELD(bh_dispatch_arg, bytes, 8, 8),
    FIELD(bh_dispatch_arg, input, 16, 8),
    FIELD(bh_dispatch_arg, output, 24, 8),
    SIZE(bh_dispatch_options, 24),
    FIELD(bh_dispatch_options, size, 0, 4),
    FIELD(bh_dispatch_options, flags, 4, 4),
    FIELD(bh_dispatch_options, deadline_ns, 8, 8),
    FIELD(bh_dispatch_options, lanes, 16, 4),
    FIELD(bh_dispatch_options, retries, 20, 4),
    SIZE(bh_dispatch_item, 88),
    FIELD(bh_dispatch_item, size, 0, 4),
    FIELD(bh_dispatch_item, status, 4, 4),
    FIELD(bh_dispatch_item, kernel, 8, 8),
    FIELD(bh_dispatch_item, shape, 16, 40),
    FIELD(bh_dispatch_item, attempts, 56, 4),
    FIELD(bh_dispatch_item, reserved, 60, 4),
    FIELD(bh_dispatch_item, args, 64, 8),
    FIELD(bh_dispatch_item, arg_count, 72, 8),
    FIELD(bh_dispatch_item, error, 80, 8),
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
    CHECK_EQ(BH_DISPATCH_VALUE, 1);
    CHECK_EQ(BH_DISPATCH_IN, 2);
    CHECK_EQ(BH_DISPATCH_OUT, 3);
    CHECK_EQ(BH_DISPATCH_INOUT, 4);
    CHECK_EQ(sizeof(bh_status), 4);
    CHECK_EQ(sizeof(bh_type), 4);
    CHECK_EQ(BH_FOREVER, UINT64_MAX);
}
