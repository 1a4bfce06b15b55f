/* SPDX-License-Identifier: Apache-2.0 */
/* The open devices as JSON and as a list of lines. */
#include "cli/top/top.h"

#include <string.h>

const char *bh__text_rate(double a_second, char out[BH__TEXT]) {
    static const char units[] = {' ', 'k', 'M', 'G', 'T'};
    size_t unit = 0;
    while (a_second >= 9999.5 && unit + 1 < sizeof units) {
        a_second /= 1000;
        unit++;
    }
    int decimals = a_second < 9.95 && (unit > 0 || a_second > 0) ? 1 : 0;
    snprintf(out, BH__TEXT, "%.*f%.*s", decimals, a_second, unit > 0, &units[unit]);
    return out;
}

/* ---- JSON ---- */

static void number(bh__json *json, const char *key, uint64_t value) {
    bh__json_key(json, key);
    bh__json_number(json, value);
}

static void text(bh__json *json, const char *key, const char *value) {
    bh__json_key(json, key);
    bh__json_text(json, value);
}

/* With a point, whatever the locale: in thousandths. */
static void put_decimal(bh__json *json, double value) {
    char out[64];
    double most = 9e15;
    uint64_t thousandths = (uint64_t)((value > most ? most : value < 0 ? 0 : value) * 1000 + 0.5);
    snprintf(out, sizeof out, "%llu.%03llu", (unsigned long long)(thousandths / 1000),
             (unsigned long long)(thousandths % 1000));
    bh__json_raw(json, out);
}

static void decimal(bh__json *json, const char *key, double value) {
    bh__json_key(json, key);
    put_decimal(json, value);
}

static void put_process(bh__json *json, const bh__figures *f) {
    number(json, "pid", (uint64_t)f->process.pid);
    text(json, "program", f->process.program);
    text(json, "version", f->process.version);
    number(json, "compartment", f->device.slot);
}

static void put_device(bh__json *json, const bh__row *row) {
    const bh__figures *f = row->now;
    char name[32];
    bh__row_device(row, name);
    text(json, "device", name);
    text(json, "name", f->info.name);
    text(json, "driver", f->info.driver);
    text(json, "arch", f->info.arch);
    number(json, "age_ns", f->device.age_ns);
    text(json, "health", bh__health_text(f->health.state));
    text(json, "reason", f->health.reason);
    number(json, "worker_pid", (uint64_t)f->health.worker_pid);
    number(json, "generation", f->health.generation);
    number(json, "standbys_ready", f->health.standbys_ready);
    number(json, "standbys", f->health.standbys);
    number(json, "oldest_running_ns", f->health.oldest_running_ns);
}

static void put_rates(bh__json *json, const bh__row *row) {
    const bh_lane_counters *total = &row->total;
    number(json, "launches", total->launches);
    number(json, "requests", total->requests);
    number(json, "failed", total->failed);
    number(json, "queue_depth", total->queue_depth);
    number(json, "device_time_ns", total->running.sum_ns);
    number(json, "bytes_to_device", total->bytes_to_device);
    number(json, "bytes_to_host", total->bytes_to_host);
    if (!row->rated) return;
    bh__json_key(json, "per_second");
    bh__json_open_inline(json, '{');
    decimal(json, "launches", row->launches);
    decimal(json, "requests", row->requests);
    decimal(json, "failed", row->failures);
    decimal(json, "device_time", row->busy);
    decimal(json, "bytes_to_device", row->to_device);
    decimal(json, "bytes_to_host", row->to_host);
    bh__json_close(json, '}');
}

static void put_memory(bh__json *json, const bh__figures *f) {
    bh__json_key(json, "memory");
    bh__json_open(json, '{');
    number(json, "total", f->info.memory_total);
    number(json, "buffers", f->device.buffers);
    number(json, "bytes_buffers", f->device.bytes_allocated);
    number(json, "bytes_reserved", f->device.bytes_reserved);
    number(json, "peak_buffers", f->device.peak_allocated);
    number(json, "limit", f->device.memory_limit);
    bh__json_key(json, "tags");
    bh__json_open(json, '[');
    for (uint32_t i = 0; i < f->tag_count; i++) {
        bh__json_open_inline(json, '{');
        text(json, "tag", f->tags[i].tag);
        number(json, "bytes", f->tags[i].bytes);
        number(json, "buffers", f->tags[i].buffers);
        number(json, "peak", f->tags[i].peak);
        number(json, "limit", f->tags[i].limit);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
    bh__json_close(json, '}');
}

static void put_losses(bh__json *json, const bh__figures *f) {
    const bh_device_counters *c = &f->counters;
    number(json, "losses", c->losses);
    number(json, "faults", c->faults);
    number(json, "deadlines", c->deadlines);
    number(json, "restarts", c->restarts);
    number(json, "standby_takeovers", c->standby_takeovers);
    bh__json_key(json, "last_losses");
    bh__json_open(json, '[');
    for (uint32_t i = 0; i < f->loss_count; i++) {
        const bh_loss *loss = &f->losses[i];
        bh__json_open(json, '{');
        number(json, "number", loss->number);
        number(json, "time_ns", loss->time_ns);
        number(json, "generation", loss->generation);
        text(json, "cause", bh_status_name(loss->cause));
        text(json, "kernel", loss->kernel);
        text(json, "message", loss->message);
        number(json, "takeover_ns", loss->takeover_ns);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
}

static void put_lanes(bh__json *json, const bh__figures *f) {
    bh__json_key(json, "lanes");
    bh__json_open(json, '[');
    for (uint32_t i = 0; i < f->lane_count; i++) {
        const bh_lane_counters *lane = &f->lanes[i];
        bh__json_open_inline(json, '{');
        number(json, "index", lane->index);
        number(json, "requests", lane->requests);
        number(json, "launches", lane->launches);
        number(json, "failed", lane->failed);
        number(json, "queue_depth", lane->queue_depth);
        number(json, "queue_depth_max", lane->queue_depth_max);
        number(json, "device_time_ns", lane->running.sum_ns);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
}

static void put_kernels(bh__json *json, const bh__figures *f) {
    bh__json_key(json, "kernels");
    bh__json_open(json, '[');
    for (uint32_t i = 0; i < f->kernel_count; i++) {
        const bh__figures_kernel *kernel = &f->kernels[i];
        bh__json_open_inline(json, '{');
        text(json, "name", kernel->name);
        number(json, "launches", kernel->launches);
        number(json, "device_time_ns", kernel->device_ns);
        number(json, "faults", kernel->faults);
        bh__json_key(json, "quarantined");
        bh__json_bool(json, kernel->quarantined != 0);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
}

static void put_gpu(bh__json *json, const bh__gpu *gpu) {
    if (!gpu->there) return;
    bh__json_key(json, "gpu");
    bh__json_open_inline(json, '{');
    if (gpu->known & BH__GPU_TEMPERATURE) number(json, "temperature_c", gpu->temperature_c);
    if (gpu->known & BH__GPU_POWER) number(json, "power_mw", gpu->power_mw);
    if (gpu->known & BH__GPU_CLOCK) number(json, "clock_mhz", gpu->clock_mhz);
    if (gpu->known & BH__GPU_MEMORY_CLOCK) number(json, "memory_clock_mhz", gpu->memory_clock_mhz);
    if (gpu->known & BH__GPU_USE) number(json, "use_percent", gpu->use_percent);
    if (gpu->known & BH__GPU_MEMORY) {
        number(json, "memory_used", gpu->memory_used);
        number(json, "memory_total", gpu->memory_total);
    }
    if (gpu->known & BH__GPU_ECC) {
        number(json, "ecc_corrected", gpu->ecc_corrected);
        number(json, "ecc_uncorrected", gpu->ecc_uncorrected);
    }
    bh__json_close(json, '}');
}

static void put_history(bh__json *json, const bh__row *row) {
    static const char *const names[BH__SERIES_COUNT] = {"launches", "busy_percent", "queue_depth",
                                                        "bytes_buffers"};
    bh__json_key(json, "history");
    bh__json_open(json, '{');
    for (int which = 0; which < BH__SERIES_COUNT; which++) {
        size_t count = row->samples < BH__HISTORY ? row->samples : BH__HISTORY;
        bh__json_key(json, names[which]);
        bh__json_open_inline(json, '[');
        while (count-- > 0) put_decimal(json, (double)bh__row_past(row, (bh__series)which, count));
        bh__json_close(json, ']');
    }
    bh__json_close(json, '}');
}

void bh__view_json(const bh__view *view, bh__json *json, bool history) {
    bh__json_open(json, '{');
    bh__json_key(json, "devices");
    bh__json_open(json, '[');
    for (size_t i = 0; i < view->count; i++) {
        const bh__row *row = view->rows[i];
        bh__json_open(json, '{');
        put_process(json, row->now);
        put_device(json, row);
        put_rates(json, row);
        put_losses(json, row->now);
        put_memory(json, row->now);
        put_lanes(json, row->now);
        put_kernels(json, row->now);
        put_gpu(json, &row->gpu);
        if (history) put_history(json, row);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
    bh__json_key(json, "silent");
    bh__json_open(json, '[');
    for (size_t i = 0; i < view->sightings.count; i++) {
        const bh__sighting *it = &view->sightings.list[i];
        if (it->figures) continue;
        bh__json_open_inline(json, '{');
        number(json, "pid", (uint64_t)it->entry.pid);
        number(json, "compartment", it->entry.slot);
        text(json, "why", it->why);
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
    text(json, "problem", view->sightings.problem);
    bh__json_close(json, '}');
}

/* ---- lines ---- */

/* Names come from other processes: what is not printable could be commands for the terminal. */
static void put_plain(FILE *to, const char *name, int width) {
    int used = 0;
    for (; name[used] != '\0' && used < width; used++) {
        unsigned char byte = (unsigned char)name[used];
        fputc(byte < ' ' || byte > '~' ? '?' : byte, to);
    }
    fprintf(to, "%*s", width - used, "");
}

static void print_row(const bh__row *row, FILE *to) {
    const bh__figures *f = row->now;
    char device[32], rate[BH__TEXT], busy[BH__TEXT] = "-", memory[BH__TEXT];
    bh__row_device(row, device);
    if (row->rated) snprintf(busy, sizeof busy, "%.0f%%", row->busy * 100);
    fprintf(to, "%7ld  ", (long)f->process.pid);
    put_plain(to, f->process.program, 16);
    fputs("  ", to);
    put_plain(to, device, 8);
    fprintf(to, "  %7ld  %4llu  %6llu  %5llu  %9s  %5s  %10s  %s\n", (long)f->health.worker_pid,
            (unsigned long long)f->health.generation, (unsigned long long)f->counters.losses,
            (unsigned long long)row->total.queue_depth,
            row->rated ? bh__text_rate(row->launches, rate) : "-", busy,
            bh__text_size(f->device.bytes_allocated, memory), bh__health_text(f->health.state));
}

void bh__view_print(const bh__view *view, FILE *to) {
    if (view->count > 0)
        fprintf(to, "%7s  %-16s  %-8s  %7s  %4s  %6s  %5s  %9s  %5s  %10s  %s\n", "PID", "PROGRAM",
                "DEVICE", "WORKER", "GEN", "LOSSES", "QUEUE", "LAUNCH/S", "BUSY", "MEMORY",
                "HEALTH");
    for (size_t i = 0; i < view->count; i++) print_row(view->rows[i], to);
    for (size_t i = 0; i < view->sightings.count; i++) {
        const bh__sighting *it = &view->sightings.list[i];
        if (!it->figures)
            fprintf(to, "%7ld  compartment %u: %s\n", (long)it->entry.pid, it->entry.slot, it->why);
    }
    if (view->count == 0) fprintf(to, "No device of this user is open on this machine.\n");
}
