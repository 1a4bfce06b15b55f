/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead devices`: the devices with their limits, or with the reason why one cannot be used. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 3))) static void row(const char *key, const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("  %-16s ", key);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

static const char *mode_name(const bh_device_limits *limits) {
    static const char *const names[] = {"default", "exclusive-process", "prohibited"};
    return names[limits->compute_mode < 3 ? limits->compute_mode : 0];
}

static void print_speed(const bh_device_limits *limits) {
    char cache[BH__TEXT];
    if (limits->clock_khz != 0) row("clock", "%u MHz", limits->clock_khz / 1000);
    if (limits->memory_bus_bits != 0)
        row("memory bus", "%u bits at %u MHz", limits->memory_bus_bits,
            limits->memory_clock_khz / 1000);
    if (limits->l2_bytes != 0) row("L2 cache", "%s", bh__text_size(limits->l2_bytes, cache));
    if (limits->async_engines != 0) row("copy engines", "%u", limits->async_engines);
}

static void print_multiprocessor(const bh_device_limits *limits) {
    char shared[BH__TEXT];
    row("  of each", "%u threads in %u block%s, %u registers, %s of shared memory",
        limits->max_threads_per_multiprocessor, limits->max_blocks_per_multiprocessor,
        limits->max_blocks_per_multiprocessor == 1 ? "" : "s", limits->registers_per_multiprocessor,
        bh__text_size(limits->shared_per_multiprocessor, shared));
}

static void print_device(const bh_device_entry *entry) {
    const bh_device_info *info = &entry->info;
    const bh_device_limits *limits = &entry->limits;
    if (entry->status != BH_OK) {
        printf("%s: cannot be used\n", entry->device);
        row("reason", "%s: %s", bh_status_name(entry->status), entry->error.message);
        if (entry->error.fix[0] != '\0') row("Fix:", "%s", entry->error.fix);
        return;
    }
    char total[BH__TEXT], spare[BH__TEXT], shared[BH__TEXT], shared_max[BH__TEXT];
    bool gpu = strcmp(info->kind, "cpu") != 0;
    printf("%s: ready\n", entry->device);
    row("name", "%s", info->name);
    row("driver", "%s", info->driver);
    row("architecture", "%s", info->arch);
    if (info->uuid[0] != '\0') row("UUID", "%s", info->uuid);
    if (info->pci[0] != '\0') row("PCI", "%s", info->pci);
    row("memory", "%s, %s free%s", bh__text_size(info->memory_total, total),
        bh__text_size(info->memory_free, spare),
        !gpu          ? ""
        : limits->ecc ? ", ECC on"
                      : ", ECC off");
    if (gpu)
        row("compute mode", "%s%s%s", mode_name(limits), limits->mig ? ", a MIG instance" : "",
            limits->mps ? ", shared by an MPS server" : "");
    row("standby", "%s%s", info->no_standby[0] != '\0' ? "none: " : "yes", info->no_standby);
    row("sandbox", "%s%s", info->sandbox_lack[0] != '\0' ? "in part: " : "yes", info->sandbox_lack);
    print_speed(limits);
    row("multiprocessors", "%u", info->multiprocessors);
    print_multiprocessor(limits);
    row("warp", "%u threads", info->warp_size);
    row("block", "up to %u threads, %u x %u x %u", info->max_threads_per_block,
        limits->max_block[0], limits->max_block[1], limits->max_block[2]);
    row("grid", "up to %u x %u x %u blocks", limits->max_grid[0], limits->max_grid[1],
        limits->max_grid[2]);
    row("shared memory", "%s a block, %s with opt-in",
        bh__text_size(limits->shared_per_block, shared),
        bh__text_size(limits->shared_per_block_max, shared_max));
    row("registers", "%u a block", limits->registers_per_block);
    row("parameters", "up to %u bytes", limits->max_param_bytes);
    row("lanes", "up to %u", limits->max_lanes);
    if (limits->priority_lowest != limits->priority_highest)
        row("priorities", "%d to %d", (int)limits->priority_lowest, (int)limits->priority_highest);
    row("launches", "%s%s%s", limits->concurrent_kernels ? "concurrent" : "one after the other",
        info->cooperative ? ", cooperative" : "", limits->cluster_launch ? ", in clusters" : "");
}

static void json_number(bh__json *json, const char *key, uint64_t number) {
    bh__json_key(json, key);
    bh__json_number(json, number);
}

static void json_integer(bh__json *json, const char *key, int32_t number) {
    char text[16];
    snprintf(text, sizeof text, "%d", (int)number);
    bh__json_key(json, key);
    bh__json_raw(json, text);
}

static void json_text(bh__json *json, const char *key, const char *text) {
    bh__json_key(json, key);
    bh__json_text(json, text);
}

static void json_three(bh__json *json, const char *key, const uint32_t numbers[3]) {
    bh__json_key(json, key);
    bh__json_open_inline(json, '[');
    for (int i = 0; i < 3; i++) bh__json_number(json, numbers[i]);
    bh__json_close(json, ']');
}

static void json_bool(bh__json *json, const char *key, uint32_t value) {
    bh__json_key(json, key);
    bh__json_bool(json, value != 0);
}

static void json_hardware(bh__json *json, const bh_device_info *info,
                          const bh_device_limits *limits) {
    json_text(json, "uuid", info->uuid);
    json_text(json, "pci", info->pci);
    json_bool(json, "ecc", limits->ecc);
    json_text(json, "compute_mode", mode_name(limits));
    json_bool(json, "mig", limits->mig);
    json_bool(json, "mps", limits->mps);
    json_text(json, "no_standby", info->no_standby);
    json_text(json, "sandbox_lack", info->sandbox_lack);
    json_number(json, "driver_version", info->driver_version);
    json_number(json, "clock_khz", limits->clock_khz);
    json_number(json, "memory_clock_khz", limits->memory_clock_khz);
    json_number(json, "memory_bus_bits", limits->memory_bus_bits);
    json_number(json, "l2_bytes", limits->l2_bytes);
    json_number(json, "registers_per_multiprocessor", limits->registers_per_multiprocessor);
    json_number(json, "shared_per_multiprocessor", limits->shared_per_multiprocessor);
    json_number(json, "max_threads_per_multiprocessor", limits->max_threads_per_multiprocessor);
    json_number(json, "max_blocks_per_multiprocessor", limits->max_blocks_per_multiprocessor);
    json_number(json, "async_engines", limits->async_engines);
    json_bool(json, "concurrent_kernels", limits->concurrent_kernels);
    json_bool(json, "cluster_launch", limits->cluster_launch);
    json_integer(json, "priority_lowest", limits->priority_lowest);
    json_integer(json, "priority_highest", limits->priority_highest);
}

static void json_device(bh__json *json, const bh_device_entry *entry) {
    const bh_device_info *info = &entry->info;
    const bh_device_limits *limits = &entry->limits;
    bh__json_open(json, '{');
    json_text(json, "device", entry->device);
    json_text(json, "status", bh_status_name(entry->status));
    if (entry->status != BH_OK) {
        bh__json_key(json, "error");
        bh__json_error(json, &entry->error);
    } else {
        json_text(json, "kind", info->kind);
        json_text(json, "name", info->name);
        json_text(json, "driver", info->driver);
        json_text(json, "arch", info->arch);
        json_number(json, "memory_total", info->memory_total);
        json_number(json, "memory_free", info->memory_free);
        json_number(json, "multiprocessors", info->multiprocessors);
        json_number(json, "warp_size", info->warp_size);
        json_number(json, "max_threads_per_block", info->max_threads_per_block);
        json_three(json, "max_block", limits->max_block);
        json_three(json, "max_grid", limits->max_grid);
        json_number(json, "shared_per_block", limits->shared_per_block);
        json_number(json, "shared_per_block_max", limits->shared_per_block_max);
        json_number(json, "registers_per_block", limits->registers_per_block);
        json_number(json, "max_lanes", limits->max_lanes);
        json_number(json, "max_param_bytes", limits->max_param_bytes);
        json_bool(json, "cooperative", info->cooperative);
        json_hardware(json, info, limits);
    }
    bh__json_close(json, '}');
}

static void print_all(const bh_device_entry *entries, size_t count, bool as_json) {
    if (!as_json) {
        for (size_t i = 0; i < count; i++) {
            if (i > 0) putchar('\n');
            print_device(&entries[i]);
        }
        return;
    }
    bh__json json;
    bh__json_begin(&json, stdout);
    bh__json_open(&json, '{');
    bh__json_key(&json, "devices");
    bh__json_open(&json, '[');
    for (size_t i = 0; i < count; i++) json_device(&json, &entries[i]);
    bh__json_close(&json, ']');
    bh__json_close(&json, '}');
    bh__json_end(&json);
}

static int list_devices(bool as_json) {
    size_t count = 0;
    bh_error error;
    if (bh_device_list(NULL, 0, 0, &count) != BH_OK) {
        bh__report_library(&error);
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    size_t room = count + 8; /* devices may appear in between */
    bh_device_entry *entries = calloc(room, sizeof *entries);
    if (entries == NULL) {
        bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for %zu devices", room);
        bh__report_fix(&error, "free some memory");
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    if (bh_device_list(entries, sizeof *entries, room, &count) != BH_OK) {
        bh__report_library(&error);
        bh__report_print(&error);
        free(entries);
        return BH__EXIT_REFUSED;
    }
    count = count < room ? count : room;
    print_all(entries, count, as_json);
    bool usable = false;
    for (size_t i = 0; i < count; i++) usable |= entries[i].status == BH_OK;
    free(entries);
    return usable ? BH__EXIT_DONE : BH__EXIT_REFUSED;
}

int bh__devices_main(int count, char **list) {
    bh__simple_options options = {0};
    int code = bh__simple_options_parse("devices", "j", count, list, &options);
    if (code != BH__EXIT_DONE || options.help) return code;
    return list_devices(options.json);
}
