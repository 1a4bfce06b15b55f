/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead devices`: every device there could be, its limits, or why it cannot be used. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static void row(const char *key, const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("  %-16s ", key);
    vprintf(format, list);
    putchar('\n');
    va_end(list);
}

static void print_device(const bh_device_entry *entry) {
    const bh_device_info *info = &entry->info;
    if (entry->status != BH_OK) {
        printf("%s: cannot be used\n", entry->name);
        row("reason", "%s: %s", bh_status_name(entry->status), entry->error.message);
        if (entry->error.fix[0] != '\0') row("Fix:", "%s", entry->error.fix);
        return;
    }
    char total[BH__TEXT], spare[BH__TEXT], shared[BH__TEXT], shared_max[BH__TEXT];
    printf("%s: ready\n", entry->name);
    row("name", "%s", info->name);
    row("driver", "%s", info->driver);
    row("architecture", "%s", info->arch);
    row("memory", "%s, %s free", bh__text_size(info->memory_total, total),
        bh__text_size(info->memory_free, spare));
    row("multiprocessors", "%u", info->multiprocessors);
    row("warp", "%u threads", info->warp_size);
    row("block", "up to %u threads, %u x %u x %u", info->max_threads_per_block, info->max_block[0],
        info->max_block[1], info->max_block[2]);
    row("grid", "up to %u x %u x %u blocks", info->max_grid[0], info->max_grid[1],
        info->max_grid[2]);
    row("shared memory", "%s a block, %s with opt-in",
        bh__text_size(info->shared_per_block, shared),
        bh__text_size(info->shared_per_block_max, shared_max));
    row("registers", "%u a block", info->registers_per_block);
    row("parameters", "up to %u bytes", info->max_param_bytes);
    row("lanes", "up to %u", info->max_lanes);
    row("cooperative", "%s", info->cooperative ? "yes" : "no");
}

static void json_number(bh__json *json, const char *key, uint64_t number) {
    bh__json_key(json, key);
    bh__json_number(json, number);
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

static void json_device(bh__json *json, const bh_device_entry *entry) {
    const bh_device_info *info = &entry->info;
    bh__json_open(json, '{');
    json_text(json, "device", entry->name);
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
        json_three(json, "max_block", info->max_block);
        json_three(json, "max_grid", info->max_grid);
        json_number(json, "shared_per_block", info->shared_per_block);
        json_number(json, "shared_per_block_max", info->shared_per_block_max);
        json_number(json, "registers_per_block", info->registers_per_block);
        json_number(json, "max_lanes", info->max_lanes);
        json_number(json, "max_param_bytes", info->max_param_bytes);
        bh__json_key(json, "cooperative");
        bh__json_bool(json, info->cooperative != 0);
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
    if (bh_device_enumerate(NULL, 0, &count) != BH_OK) {
        bh__report_library(&error);
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    size_t room = count + 8; /* devices may come up in between */
    bh_device_entry *entries = calloc(room, sizeof *entries);
    if (entries == NULL) {
        bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for %zu devices", room);
        bh__report_fix(&error, "free some memory");
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    for (size_t i = 0; i < room; i++) entries[i].info.size = (uint32_t)sizeof entries[i].info;
    if (bh_device_enumerate(entries, room, &count) != BH_OK) {
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
