/* SPDX-License-Identifier: Apache-2.0 */
/* The device times of repeated launches, as bars on a terminal. They come from the counters of the
 * device's own lane, so that measuring them costs the launches nothing. */
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <unistd.h>

#include "run.h"

enum { BAR = 40 };

/* The worker counts a request just after it has completed: waits until all are counted. */
static void read_times(bh_device device, bh_histogram *out) {
    bh_lane_counters counters = BH_INIT(counters);
    *out = (bh_histogram){0};
    for (int tries = 0; tries < 50; tries++) {
        if (bh_lane_get_counters(device, (bh_lane){0}, &counters) != BH_OK) return;
        *out = counters.running;
        if (counters.running.count >= counters.requests) return;
        usleep(1000);
    }
}

void bh__times_begin(bh__run *run) {
    read_times(run->device, &run->times);
}

void bh__times_end(bh__run *run) {
    bh_histogram now, before = run->times;
    read_times(run->device, &now);
    for (size_t i = 0; i < BH_HISTOGRAM_BUCKETS; i++)
        run->times.buckets[i] = now.buckets[i] - before.buckets[i];
}

static void put_bar(FILE *to, uint64_t part, uint64_t most, bool blocks) {
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    uint64_t length = most ? part * BAR * 8 / most : 0;
    if (length == 0) length = 1; /* few are not none */
    for (uint64_t i = 0; i < length / 8; i++) fputs(blocks ? "█" : "#", to);
    fputs(blocks ? eighths[length % 8] : length < 8 ? "#" : "", to);
}

void bh__times_print(FILE *to, const bh__run *run) {
    const uint64_t *buckets = run->times.buckets;
    uint64_t most = 0;
    size_t first = BH_HISTOGRAM_BUCKETS, last = 0;
    for (size_t i = 0; i < BH_HISTOGRAM_BUCKETS; i++) {
        if (buckets[i] == 0) continue;
        if (first > i) first = i;
        last = i;
        if (buckets[i] > most) most = buckets[i];
    }
    if (most == 0) return;
    setlocale(LC_CTYPE, "");
    bool blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    fprintf(to, "device time of a launch:\n");
    for (size_t i = first; i <= last; i++) {
        char from[BH__TEXT] = "0 ns", upto[BH__TEXT];
        if (i > 0) bh__text_time(UINT64_C(128) << i, from);
        fprintf(to, "  %8s to %-8s %8llu ", from, bh__text_time(UINT64_C(256) << i, upto),
                (unsigned long long)buckets[i]);
        if (buckets[i]) put_bar(to, buckets[i], most, blocks);
        fputc('\n', to);
    }
}
