/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `bulkhead bench` as a table, as JSON and as a page of charts; the progress bar. */
#include "cli/bench/bench.h"

#include <string.h>
#include <unistd.h>

/* ---- the bar ---- */

void bh__bar_step(bh__bar *bar, const char *what) {
    enum { WIDTH = 24 };
    if (!bar->terminal) return;
    unsigned filled = bar->all ? bar->done * WIDTH / bar->all : 0;
    fprintf(stderr, "\r[%.*s%.*s] %s\033[K", (int)filled, "########################",
            (int)(WIDTH - filled), "........................", what);
    fflush(stderr);
    bar->done++;
}

void bh__bar_end(bh__bar *bar) {
    if (bar->terminal) fprintf(stderr, "\r\033[K");
}

/* ---- the table ---- */

static const char *rate_of(uint64_t bytes, uint64_t ns, char out[BH__TEXT]) {
    double a_second = ns ? (double)bytes * 1e9 / (double)ns : 0;
    snprintf(out, BH__TEXT, "%.*f GB/s", a_second < 1e10 ? 2 : 1, a_second / 1e9);
    return out;
}

/* A copy of a large buffer is shown as its speed. */
static const char *show(bh__measure which, const bh__times *times, double part,
                        char out[BH__TEXT]) {
    uint64_t ns = bh__times_at(times, part), bytes = bh__measure_bytes(which);
    if (times->count == 0) {
        snprintf(out, BH__TEXT, "-");
        return out;
    }
    return bytes ? rate_of(bytes, ns, out) : bh__text_time(ns, out);
}

void bh__bench_table(const bh__results *r, FILE *to) {
    bool plain = r->plain[BH__MEASURE_SUBMIT].count > 0;
    fprintf(to, "%s, %s\n\n", r->info.name, r->info.driver);
    fprintf(to, "%-28s %12s %12s %12s%s\n", "", "median", "99% within", "best",
            plain ? "   driver alone" : "");
    for (int i = 0; i < BH__MEASURES; i++) {
        bh__measure which = (bh__measure)i;
        char median[BH__TEXT], most[BH__TEXT], best[BH__TEXT], alone[BH__TEXT];
        const bh__times *times = &r->times[i];
        fprintf(to, "%-28s %12s %12s %12s", bh__measure_names[i], show(which, times, 0.5, median),
                show(which, times, 0.99, most), show(which, times, 0, best));
        if (plain) fprintf(to, "   %12s", show(which, &r->plain[i], 0.5, alone));
        fputc('\n', to);
    }
    if (r->plain_lack[0] != '\0') fprintf(to, "\n%s\n", r->plain_lack);
}

/* ---- JSON ---- */

static void put_times(bh__json *json, const bh__times *times, uint64_t bytes) {
    static const struct {
        const char *key;
        double part;
    } parts[] = {{"best_ns", 0}, {"median_ns", 0.5}, {"p99_ns", 0.99}, {"worst_ns", 1}};
    bh__json_open_inline(json, '{');
    bh__json_key(json, "samples");
    bh__json_number(json, times->count);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bh__json_key(json, parts[i].key);
        bh__json_number(json, bh__times_at(times, parts[i].part));
    }
    if (bytes) {
        bh__json_key(json, "bytes");
        bh__json_number(json, bytes);
    }
    bh__json_close(json, '}');
}

void bh__bench_json(const bh__results *r, FILE *to) {
    bh__json json;
    bh__json_begin(&json, to);
    bh__json_open(&json, '{');
    bh__json_key(&json, "version");
    bh__json_text(&json, bh_version());
    bh__json_key(&json, "device");
    bh__json_text(&json, r->info.kind);
    bh__json_key(&json, "name");
    bh__json_text(&json, r->info.name);
    bh__json_key(&json, "driver");
    bh__json_text(&json, r->info.driver);
    for (int with = 1; with >= 0; with--) {
        const bh__times *all = with ? r->times : r->plain;
        if (!with && r->plain[BH__MEASURE_SUBMIT].count == 0) continue;
        bh__json_key(&json, with ? "measures" : "driver_alone");
        bh__json_open(&json, '{');
        for (int i = 0; i < BH__MEASURES; i++) {
            if (all[i].count == 0) continue;
            bh__json_key(&json, bh__measure_keys[i]);
            put_times(&json, &all[i], bh__measure_bytes((bh__measure)i));
        }
        bh__json_close(&json, '}');
    }
    bh__json_close(&json, '}');
    bh__json_end(&json);
}

/* ---- the page ---- */

static void put_html(FILE *to, const char *text) {
    for (; *text; text++) {
        if (strchr("<>&\"", *text))
            fprintf(to, "&#%d;", *text);
        else
            fputc(*text, to);
    }
}

static const char style[] =
    "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\"><title>bulkhead bench</title>\n<style>\n"
    ":root{--back:#f6f7f9;--card:#fff;--text:#1b2430;--dim:#5d6a7a;--line:#dde2e9;--a:#1f6feb;"
    "--b:#9aa7b5}\n"
    "@media (prefers-color-scheme:dark){:root{--back:#0f141a;--card:#171e27;--text:#e4e9f0;"
    "--dim:#93a1b3;--line:#2a3441;--a:#5a9dff;--b:#5f6b78}}\n"
    "body{margin:24px;background:var(--back);color:var(--text);"
    "font:14px/1.45 system-ui,sans-serif}\n"
    "h1{font-size:18px;margin:0}h2{font-size:14px;margin:0 0 8px}"
    "p{color:var(--dim);margin:4px 0 16px}\n"
    "main{display:grid;grid-template-columns:repeat(auto-fit,minmax(360px,1fr));gap:16px}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:8px;"
    "padding:14px 16px}\n"
    "svg{width:100%;height:auto;display:block}text{fill:var(--dim);font-size:11px}"
    ".a{fill:var(--a)}.b{fill:var(--b)}\n"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums;margin-top:8px;width:100%}"
    "th{text-align:right;color:var(--dim);font-weight:600;font-size:12px}"
    "td{text-align:right}th:first-child,td:first-child{text-align:left}\n"
    "</style></head><body>\n";

enum { COLUMNS = 48, WIDTH = 480, HEIGHT = 120 };

/* How the times are distributed, from the shortest to where 99.5% of both are. */
static void put_chart(FILE *to, bh__measure which, const bh__times *times, const bh__times *plain) {
    const bh__times *both[] = {plain, times};
    uint64_t from = UINT64_MAX, upto = 0;
    unsigned counts[2][COLUMNS] = {{0}}, most = 1;
    char text[BH__TEXT];
    for (int k = 0; k < 2; k++) {
        if (both[k]->count == 0) continue;
        uint64_t first = bh__times_at(both[k], 0), last = bh__times_at(both[k], 0.995);
        if (first < from) from = first;
        if (last > upto) upto = last;
    }
    if (upto <= from) upto = from + 1;
    for (int k = 0; k < 2; k++) {
        for (size_t i = 0; i < both[k]->count; i++) {
            uint64_t ns = both[k]->list[i];
            if (ns > upto) continue;
            size_t at = (size_t)((double)(ns - from) / (double)(upto - from) * (COLUMNS - 1));
            if (++counts[k][at] > most) most = counts[k][at];
        }
    }
    fprintf(to,
            "<svg viewBox=\"0 0 %d %d\" role=\"img\" aria-label=\"how the times of '%s' are "
            "distributed\">",
            WIDTH, HEIGHT + 18, bh__measure_names[which]);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < COLUMNS; i++) {
            unsigned height = counts[k][i] * HEIGHT / most;
            if (counts[k][i] && height < 2) height = 2;
            if (height)
                fprintf(to,
                        "<rect class=\"%c\" x=\"%d\" y=\"%u\" width=\"%d\" height=\"%u\" "
                        "opacity=\"0.8\"/>",
                        k ? 'a' : 'b', i * WIDTH / COLUMNS, (unsigned)HEIGHT - height,
                        WIDTH / COLUMNS - 1, height);
        }
    fprintf(to, "<text x=\"0\" y=\"%d\">%s</text>", HEIGHT + 14, bh__text_time(from, text));
    fprintf(to, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text></svg>\n", WIDTH, HEIGHT + 14,
            bh__text_time(upto, text));
}

static void put_row(FILE *to, bh__measure which, const char *name, const bh__times *times) {
    char median[BH__TEXT], most[BH__TEXT], best[BH__TEXT];
    if (times->count == 0) return;
    fprintf(to, "<tr><td>%s</td><td>%s</td><td>%s</td><td>%s</td><td>%zu</td></tr>", name,
            show(which, times, 0.5, median), show(which, times, 0.99, most),
            show(which, times, 0, best), times->count);
}

void bh__bench_html(const bh__results *r, FILE *to) {
    fputs(style, to);
    fputs("<h1>", to);
    put_html(to, r->info.name);
    fputs("</h1><p>", to);
    put_html(to, r->info.driver);
    fprintf(to, ", Bulkhead %s. ", bh_version());
    fputs(r->plain[BH__MEASURE_SUBMIT].count ? "Blue: Bulkhead. Grey: the driver alone."
                                             : "How often each time was measured.",
          to);
    fputs("</p><main>\n", to);
    for (int i = 0; i < BH__MEASURES; i++) {
        if (r->times[i].count == 0) continue;
        fprintf(to, "<section><h2>%s</h2>", bh__measure_names[i]);
        put_chart(to, (bh__measure)i, &r->times[i], &r->plain[i]);
        fputs("<table><tr><th></th><th>median</th><th>99% within</th><th>best</th><th>samples</th>"
              "</tr>",
              to);
        put_row(to, (bh__measure)i, "Bulkhead", &r->times[i]);
        put_row(to, (bh__measure)i, "driver alone", &r->plain[i]);
        fputs("</table></section>\n", to);
    }
    fputs("</main></body></html>\n", to);
}
