/* SPDX-License-Identifier: Apache-2.0 */
/* Times and sizes as text, and progress messages for long operations. */
#include "cli.h"

#include <time.h>
#include <unistd.h>

/* Three significant digits and a unit. */
static const char *scaled(double number, const char *unit, char out[BH__TEXT]) {
    int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    snprintf(out, BH__TEXT, "%.*f %s", decimals, number, unit);
    return out;
}

const char *bh__text_time(uint64_t ns, char out[BH__TEXT]) {
    if (ns < 1000) {
        snprintf(out, BH__TEXT, "%u ns", (unsigned)ns);
        return out;
    }
    if (ns < 1000000) return scaled((double)ns / 1e3, "us", out);
    if (ns < 1000000000) return scaled((double)ns / 1e6, "ms", out);
    return scaled((double)ns / 1e9, "s", out);
}

const char *bh__text_size(uint64_t bytes, char out[BH__TEXT]) {
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    if (bytes < 1024) {
        snprintf(out, BH__TEXT, "%u bytes", (unsigned)bytes);
        return out;
    }
    size_t unit = 0;
    uint64_t scale = 1024;
    while (unit + 1 < sizeof units / sizeof units[0] && bytes / scale >= 1024) {
        scale *= 1024;
        unit++;
    }
    if (bytes % scale == 0) {
        snprintf(out, BH__TEXT, "%u %s", (unsigned)(bytes / scale), units[unit]);
        return out;
    }
    return scaled((double)bytes / (double)scale, units[unit], out);
}

uint64_t bh__now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bh__progress_begin(bh__progress *progress, const char *what) {
    progress->what = what;
    progress->since_ns = bh__now_ns();
    progress->shown_s = 0;
    progress->terminal = isatty(STDERR_FILENO) == 1;
}

void bh__progress_tick(bh__progress *progress) {
    uint64_t seconds = (bh__now_ns() - progress->since_ns) / 1000000000u;
    if (!progress->terminal || seconds == progress->shown_s) return;
    progress->shown_s = seconds;
    fprintf(stderr, "\r%s: %llu s", progress->what, (unsigned long long)seconds);
    fflush(stderr);
}

void bh__progress_end(bh__progress *progress) {
    if (progress->shown_s != 0) fprintf(stderr, "\r\033[K");
    progress->shown_s = 0;
}

bh_status bh__progress_wait(bh__progress *progress, bh_ticket ticket, uint64_t timeout_ns) {
    if (!progress->terminal) return bh_wait(ticket, timeout_ns);
    const uint64_t slice = 200000000;
    uint64_t start = bh__now_ns();
    for (;;) {
        uint64_t spent = bh__now_ns() - start;
        uint64_t left = spent < timeout_ns ? timeout_ns - spent : 0;
        bh_status status = bh_wait(ticket, left < slice ? left : slice);
        if (status != BH_E_TIMEOUT || left <= slice) return status;
        bh__progress_tick(progress);
    }
}
