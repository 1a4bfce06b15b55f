/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead bench`: the figures that matter to a user, on this machine. */
#include "cli/bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HELP = 1, DEVICE, JSON, HTML, QUICK };

typedef struct options {
    bool help, json, quick;
    const char *device, *html;
} options;

static const bh__option table[] = {
    {'h', "help", NULL, HELP}, {'d', "device", "auto|cpu|cuda[:N]", DEVICE},
    {0, "json", NULL, JSON},   {0, "html", "FILE", HTML},
    {0, "quick", NULL, QUICK},
};

static int parse(int count, char **list, options *out) {
    bh__options words = {.command = "bench",
                         .table = table,
                         .table_count = sizeof table / sizeof *table,
                         .list = list,
                         .count = count};
    bh_error error;
    *out = (options){0};
    for (;;) {
        const char *value = NULL;
        switch (bh__options_next(&words, &value, &error)) {
        case BH__OPTIONS_END:
            return BH__EXIT_DONE;
        case HELP:
            out->help = true;
            bh__help_print(stdout, "bench");
            return BH__EXIT_DONE;
        case DEVICE:
            out->device = value;
            break;
        case JSON:
            out->json = true;
            break;
        case HTML:
            out->html = value;
            break;
        case QUICK:
            out->quick = true;
            break;
        case BH__OPTIONS_OPERAND:
            bh__report_set(&error, BH_E_INVALID,
                           "bulkhead bench takes no arguments, \"%.100s\" was given", value);
            bh__report_fix(&error, "remove it; \"bulkhead bench --help\" has more");
            return bh__report_usage(&error);
        default:
            return bh__report_usage(&error);
        }
    }
}

static bh_status write_page(const bh__results *results, bh__output *file, bh_error *error) {
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    if (!to) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for the page");
        return bh__report_fix(error, "free some memory");
    }
    bh__bench_html(results, to);
    fclose(to);
    bh_status status = bh__output_begin(file, error);
    if (status == BH_OK) status = bh__output_write(file, text, length, error);
    free(text);
    return status;
}

/* The driver first: a process that has a device open must not fork. */
static bh_status measure(const options *o, bh__results *results, bh_error *error) {
    double scale = o->quick ? 0.02 : 1;
    bh__bar bar = {.terminal = isatty(STDERR_FILENO) == 1, .all = BH__MEASURES + 1};
    bool cpu = o->device && strcmp(o->device, "cpu") == 0;
    bh__nvidia nvidia = {0};
    if (!cpu) bh__nvidia_look(&nvidia);
    if (!cpu && nvidia.library && (nvidia.control || nvidia.gpus)) {
        const char *colon = o->device ? strchr(o->device, ':') : NULL;
        bh__bar_step(&bar, "the driver alone");
        bh__bench_driver(colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0, scale, results);
    }
    bh_status status = bh__bench_measure(o->device, scale, results, &bar, error);
    bh__bar_end(&bar);
    if (strcmp(results->info.kind, "cuda") == 0) return status;
    for (int i = 0; i < BH__MEASURES; i++) results->plain[i].count = 0;
    results->plain_lack[0] = '\0';
    return status;
}

int bh__bench_main(int count, char **list) {
    options o;
    bh_error error = {0};
    int code = parse(count, list, &o);
    if (code != BH__EXIT_DONE || o.help) return code;
    bh__results *results = calloc(1, sizeof *results);
    bh__output page = {.fd = -1};
    bh_status status = BH_OK;
    if (!results) {
        bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for the results");
        status = bh__report_fix(&error, "free some memory");
    }
    if (status == BH_OK && o.html) status = bh__output_open(o.html, &page, &error);
    if (status == BH_OK) status = measure(&o, results, &error);
    if (status == BH_OK && o.html) status = write_page(results, &page, &error);
    if (page.fd >= 0) {
        bh_status closed =
            bh__output_close(&page, status == BH_OK, status == BH_OK ? &error : &(bh_error){0});
        if (status == BH_OK) status = closed;
    }
    if (status != BH_OK)
        bh__report_print(&error);
    else if (o.json)
        bh__bench_json(results, stdout);
    else
        bh__bench_table(results, stdout);
    free(results);
    return bh__report_exit(status);
}
