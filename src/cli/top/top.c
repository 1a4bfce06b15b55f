/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead top`: the open devices of this user. */
#include "cli/top/top.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { HELP = 1, ONCE, JSON, INTERVAL, SORT };

typedef struct options {
    bool help, once, json;
    uint64_t interval_ns;
    bh__order order;
} options;

static const bh__option table[] = {
    {'h', "help", NULL, HELP},     {'1', "once", NULL, ONCE},
    {0, "json", NULL, JSON},       {'i', "interval", "SECONDS", INTERVAL},
    {'s', "sort", "COLUMN", SORT},
};

static bool take_order(const char *text, options *out, bh_error *error) {
    for (int i = 0; i < BH__ORDERS; i++) {
        if (strcmp(text, bh__order_names[i]) != 0) continue;
        out->order = (bh__order)i;
        return true;
    }
    bh__report_set(error, BH_E_INVALID, "there is no column \"%.40s\" to sort by", text);
    bh__report_fix(error, "use launches, busy, memory, queue, losses or pid");
    return false;
}

static bool take_interval(const char *text, options *out, bh_error *error) {
    if (bh__timeout_parse(text, 0.1, &out->interval_ns, error) != BH_OK) return false;
    if (out->interval_ns <= UINT64_C(3600000000000)) return true;
    bh__report_set(error, BH_E_INVALID, "the interval is %.20s s, at most 3600 are possible", text);
    bh__report_fix(error, "use an hour at most");
    return false;
}

static int parse(int count, char **list, options *out) {
    bh__options words = {.command = "top",
                         .table = table,
                         .table_count = sizeof table / sizeof *table,
                         .list = list,
                         .count = count};
    bh_error error;
    bool good = true;
    *out = (options){.interval_ns = 1000000000};
    while (good) {
        const char *value = NULL;
        switch (bh__options_next(&words, &value, &error)) {
        case BH__OPTIONS_END:
            return BH__EXIT_DONE;
        case HELP:
            out->help = true;
            bh__help_print(stdout, "top");
            return BH__EXIT_DONE;
        case ONCE:
            out->once = true;
            break;
        case JSON:
            out->json = true;
            break;
        case INTERVAL:
            good = take_interval(value, out, &error);
            break;
        case SORT:
            good = take_order(value, out, &error);
            break;
        case BH__OPTIONS_OPERAND:
            bh__report_set(&error, BH_E_INVALID,
                           "bulkhead top takes no arguments, \"%.100s\" was given", value);
            bh__report_fix(&error, "remove it; \"bulkhead top --help\" has more");
            good = false;
            break;
        default:
            good = false;
        }
    }
    return bh__report_usage(&error);
}

static int report_memory(void) {
    bh_error error;
    bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for the figures of the devices");
    bh__report_fix(&error, "free some memory");
    bh__report_print(&error);
    return BH__EXIT_REFUSED;
}

/* Rates need two looks. */
static int print_once(bh__view *view, const options *o) {
    const uint64_t patience_ns = 2000000000;
    if (!bh__view_refresh(view, patience_ns)) return report_memory();
    if (view->count > 0) {
        struct timespec pause = {(time_t)(o->interval_ns / 1000000000),
                                 (long)(o->interval_ns % 1000000000)};
        nanosleep(&pause, NULL);
        if (!bh__view_refresh(view, patience_ns)) return report_memory();
    }
    if (o->json) {
        bh__json json;
        bh__json_begin(&json, stdout);
        bh__view_json(view, &json, false);
        bh__json_end(&json);
    } else {
        bh__view_print(view, stdout);
        if (view->sightings.problem[0] != '\0')
            fprintf(stderr, "Not looked into: %s\n", view->sightings.problem);
    }
    return BH__EXIT_DONE;
}

static int run_screen(bh__view *view, const options *o) {
    bh_error error;
    const char *missing = bh__screen_missing();
    if (*missing != '\0') {
        bh__report_set(&error, BH_E_UNSUPPORTED, "%s", missing);
        bh__report_fix(&error, "use \"bulkhead top --once\", \"bulkhead top --json\" or \"bulkhead "
                               "serve\"");
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    return bh__screen_run(view, o->interval_ns);
}

int bh__top_main(int count, char **list) {
    options o;
    int code = parse(count, list, &o);
    if (code != BH__EXIT_DONE || o.help) return code;
    bh__view view = {.order = o.order};
    bool terminal = isatty(STDOUT_FILENO) == 1 && isatty(STDIN_FILENO) == 1;
    code = o.once || o.json || !terminal ? print_once(&view, &o) : run_screen(&view, &o);
    bh__view_free(&view);
    return code;
}
