/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal of `bulkhead top`. ncurses is loaded when the screen is opened: the command runs
 * without it. */
#include "cli/top/top.h"

#ifndef BULKHEAD_CURSES

const char *bh__screen_missing(void) {
    return "this build has no terminal view: it was built without the headers of ncurses";
}

int bh__screen_run(bh__view *view, uint64_t interval_ns) {
    (void)view;
    (void)interval_ns;
    return BH__EXIT_REFUSED;
}

#else

#define NCURSES_NOMACROS
#define NCURSES_WIDECHAR 0
#include <curses.h>
#undef bool
#define bool _Bool

#include <dlfcn.h>
#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- ncurses ---- */

#define FUNCTIONS(X)                                                                               \
    X(newterm)                                                                                     \
    X(endwin)                                                                                      \
    X(cbreak)                                                                                      \
    X(noecho) X(curs_set) X(start_color) X(use_default_colors) X(has_colors) X(init_pair)          \
        X(wattr_on) X(wattr_off) X(waddnstr) X(wmove) X(werase) X(wrefresh) X(wgetch) X(wtimeout)  \
            X(keypad) X(getmaxx) X(getmaxy) X(wclrtoeol) X(delscreen) X(set_escdelay)

static struct {
    void *library;
#define X(name) __typeof__(name) *name;
    FUNCTIONS(X)
#undef X
    WINDOW **screen;
} curses;

static bool load(void) {
    static const char *const names[] = {"libncursesw.so.6", "libncurses.so.6"};
    for (size_t i = 0; i < 2 && !curses.library; i++)
        curses.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!curses.library) return false;
    bool all = true;
    void *found;
#define X(name)                                                                                    \
    found = dlsym(curses.library, #name);                                                          \
    all &= found != NULL;                                                                          \
    memcpy(&curses.name, &found, sizeof found);
    FUNCTIONS(X)
#undef X
    found = dlsym(curses.library, "stdscr");
    memcpy(&curses.screen, &found, sizeof found);
    return all && found != NULL;
}

const char *bh__screen_missing(void) {
    return load() ? "" : "the terminal view needs libncursesw.so.6, which is not installed";
}

/* ---- drawing ---- */

enum { PLAIN, HEAD, GOOD, WARN, BAD, DIM, BAR };

typedef struct screen {
    bh__view *view;
    int rows, columns;
    bool colors, blocks; /* blocks: the terminal shows UTF-8 */
    bool detail, help, paused;
    size_t first;     /* the first row shown */
    bh__offer chosen; /* the row with the cursor */
    size_t at;        /* its index */
    int scroll;       /* lines of the detail view above the screen */
    uint64_t interval_ns;
} screen;

static attr_t style_of(const screen *self, int style) {
    enum { PAIR_SHIFT = 8 }; /* as COLOR_PAIR */
    static const attr_t pairs[] = {0, 0, 1, 2, 3, 0, 4};
    static const attr_t looks[] = {0, A_REVERSE, 0, A_BOLD, A_BOLD, A_DIM, 0};
    return looks[style] | (self->colors ? pairs[style] << PAIR_SHIFT : 0);
}

/* Columns that a text takes: continuation bytes of UTF-8 take none. Everything shown is ASCII or
 * block characters. */
static size_t bytes_of(const char *text, int columns) {
    size_t at = 0;
    for (; text[at] != '\0'; at++) {
        if (((unsigned char)text[at] & 0xc0) == 0x80) continue;
        if (columns-- == 0) break;
    }
    return at;
}

static void put(const screen *self, int row, int column, int style, const char *text) {
    if (row < 0 || row >= self->rows || column >= self->columns) return;
    char clean[1024];
    size_t length = bytes_of(text, self->columns - column);
    if (length >= sizeof clean) length = sizeof clean - 1;
    memcpy(clean, text, length);
    clean[length] = '\0';
    /* Names come from other processes. */
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)clean[i] < ' ' || clean[i] == 0x7f) clean[i] = '?';
    attr_t attribute = style_of(self, style);
    WINDOW *window = *curses.screen;
    curses.wmove(window, row, column);
    if (attribute) curses.wattr_on(window, attribute, NULL);
    curses.waddnstr(window, clean, (int)length);
    if (attribute) curses.wattr_off(window, attribute, NULL);
}

__attribute__((format(printf, 5, 6))) static void putf(const screen *self, int row, int column,
                                                       int style, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(self, row, column, style, text);
}

/* Only ASCII of names: bytes of another encoding would move the columns. */
static const char *plain(const char *name, char out[128]) {
    size_t i = 0;
    for (; name[i] != '\0' && i < 127; i++)
        out[i] = (unsigned char)name[i] < ' ' || (unsigned char)name[i] > '~' ? '?' : name[i];
    out[i] = '\0';
    return out;
}

/* The newest value stands at the right. `most` 0: the largest value shown is the top. */
static void put_spark(const screen *self, int row, int column, int width, const bh__row *of,
                      bh__series which, float most) {
    static const char blocks[] = "▁▂▃▄▅▆▇█"; /* three bytes each */
    static const char ascii[] = ".:-=+*#@";
    char text[BH__HISTORY * 3 + 1] = "";
    size_t used = 0;
    if (width > BH__HISTORY) width = BH__HISTORY;
    if (column + width > self->columns) width = self->columns - column;
    for (int i = 0; i < width && most <= 0; i++) {
        float value = bh__row_past(of, which, (size_t)i);
        if (value > -most) most = -value;
    }
    if (most < 0) most = -most;
    for (int i = width - 1; i >= 0; i--) {
        float value = bh__row_past(of, which, (size_t)i);
        int level = most > 0 && value > 0 ? (int)(value / most * 7.999f) : -1;
        if (level > 7) level = 7;
        if (level < 0)
            text[used++] = ' ';
        else if (self->blocks)
            used += (size_t)snprintf(text + used, sizeof text - used, "%.3s", blocks + 3 * level);
        else
            text[used++] = ascii[level];
    }
    text[used] = '\0';
    put(self, row, column, BAR, text);
}

static int style_of_health(uint32_t state) {
    return state == BH_HEALTH_OK                                         ? GOOD
           : state == BH_HEALTH_STOPPED                                  ? BAD
           : state == BH_HEALTH_DEGRADED || state == BH_HEALTH_REPLACING ? WARN
                                                                         : DIM;
}

/* ---- the list ---- */

static void put_head(const screen *self) {
    char text[300], when[32] = "";
    time_t now = time(NULL);
    struct tm parts;
    if (localtime_r(&now, &parts)) strftime(when, sizeof when, "%H:%M:%S", &parts);
    snprintf(text, sizeof text, "bulkhead top  %s  %zu device%s  by %s%s", when, self->view->count,
             self->view->count == 1 ? "" : "s", bh__order_names[self->view->order],
             self->paused ? "  (paused)" : "");
    putf(self, 0, 0, HEAD, "%-*s", self->columns, text);
}

static void put_row(const screen *self, int at, const bh__row *row, bool chosen) {
    const bh__figures *f = row->now;
    char program[128], device[32], rate[BH__TEXT], memory[BH__TEXT], busy[16] = "-";
    bh__row_device(row, device);
    if (row->rated) snprintf(busy, sizeof busy, "%.0f%%", row->busy * 100);
    putf(self, at, 0, chosen ? HEAD : PLAIN,
         "%7ld %-15.15s %-7.7s %7ld %4llu %6llu %6llu %8s %5s %9s ", (long)f->process.pid,
         plain(f->process.program, program), device, (long)f->health.worker_pid,
         (unsigned long long)f->health.generation, (unsigned long long)f->counters.losses,
         (unsigned long long)row->total.queue_depth,
         row->rated ? bh__text_rate(row->launches, rate) : "-", busy,
         bh__text_size(f->device.bytes_allocated, memory));
    enum { HEALTH_AT = 84, SPARK_AT = 95 };
    put(self, at, HEALTH_AT, style_of_health(f->health.state), bh__health_text(f->health.state));
    if (self->columns > SPARK_AT + 4)
        put_spark(self, at, SPARK_AT, self->columns - SPARK_AT, row, BH__SERIES_LAUNCHES, 0);
}

static void draw_list(screen *self) {
    const bh__view *view = self->view;
    size_t room = self->rows > 4 ? (size_t)self->rows - 3 : 1;
    for (size_t i = 0; i < view->count; i++) {
        const bh__offer *key = &view->rows[i]->key;
        if (key->pid == self->chosen.pid && key->start == self->chosen.start &&
            key->slot == self->chosen.slot)
            self->at = i;
    }
    if (self->at >= view->count) self->at = view->count ? view->count - 1 : 0;
    if (view->count) self->chosen = view->rows[self->at]->key;
    if (self->at < self->first) self->first = self->at;
    if (self->at >= self->first + room) self->first = self->at - room + 1;
    put_head(self);
    putf(self, 1, 0, DIM, "%7s %-15s %-7s %7s %4s %6s %6s %8s %5s %9s  %-9s  %s", "PID", "PROGRAM",
         "DEVICE", "WORKER", "GEN", "LOSSES", "QUEUE", "LAUNCH/S", "BUSY", "MEMORY", "HEALTH",
         "LAUNCHES");
    for (size_t i = 0; i < room && self->first + i < view->count; i++)
        put_row(self, 2 + (int)i, view->rows[self->first + i], self->first + i == self->at);
    if (view->count == 0) put(self, 3, 2, PLAIN, "No device of this user is open on this machine.");
    size_t silent = 0;
    for (size_t i = 0; i < view->sightings.count; i++) silent += !view->sightings.list[i].figures;
    if (view->sightings.problem[0] != '\0')
        putf(self, self->rows - 1, 0, WARN, "Not looked into: %s", view->sightings.problem);
    else if (silent)
        putf(self, self->rows - 1, 0, WARN, "%zu do not answer; bulkhead top --json has them",
             silent);
    else
        put(self, self->rows - 1, 0, DIM,
            "up/down choose   enter open   s sort   space pause   h help   q quit");
}

/* ---- one device ---- */

typedef struct lines {
    const screen *to;
    int next; /* on the screen; negative: scrolled away */
} lines;

__attribute__((format(printf, 3, 4))) static void line(lines *self, int style, const char *format,
                                                       ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (self->next > 0 && self->next < self->to->rows - 1)
        put(self->to, self->next, 0, style, text);
    self->next++;
}

static void spark_line(lines *self, const char *name, const char *now, const bh__row *row,
                       bh__series which, float most) {
    if (self->next > 0 && self->next < self->to->rows - 1) {
        putf(self->to, self->next, 0, PLAIN, "  %-10s %10s  ", name, now);
        put_spark(self->to, self->next, 25, self->to->columns - 26, row, which, most);
    }
    self->next++;
}

static void draw_history(lines *self, const bh__row *row) {
    char now[BH__TEXT];
    spark_line(self, "launches/s", bh__text_rate(row->launches, now), row, BH__SERIES_LAUNCHES, 0);
    snprintf(now, sizeof now, "%.0f%%", row->busy * 100);
    spark_line(self, "busy", now, row, BH__SERIES_BUSY, row->busy > 1 ? 0 : 100);
    snprintf(now, sizeof now, "%llu", (unsigned long long)row->total.queue_depth);
    spark_line(self, "queue", now, row, BH__SERIES_DEPTH, 0);
    spark_line(self, "memory", bh__text_size(row->now->device.bytes_allocated, now), row,
               BH__SERIES_MEMORY, 0);
}

static void draw_gpu(lines *self, const bh__gpu *gpu) {
    if (!gpu->there) return;
    line(self, PLAIN, "  GPU: %u C, %u W, %u MHz, memory %u MHz, in use %u%%, ECC errors %llu/%llu",
         gpu->temperature_c, gpu->power_mw / 1000, gpu->clock_mhz, gpu->memory_clock_mhz,
         gpu->use_percent, (unsigned long long)gpu->ecc_corrected,
         (unsigned long long)gpu->ecc_uncorrected);
}

static void draw_lanes(lines *self, const bh__figures *f) {
    line(self, DIM, " LANE   REQUESTS   LAUNCHES  FAILED  QUEUE    MAX  DEVICE TIME");
    for (uint32_t i = 0; i < f->lane_count; i++) {
        const bh_lane_counters *lane = &f->lanes[i];
        char time[BH__TEXT];
        line(self, PLAIN, " %4u %10llu %10llu %7llu %6llu %6llu  %11s", lane->index,
             (unsigned long long)lane->requests, (unsigned long long)lane->launches,
             (unsigned long long)lane->failed, (unsigned long long)lane->queue_depth,
             (unsigned long long)lane->queue_depth_max, bh__text_time(lane->running.sum_ns, time));
    }
}

static void draw_kernels(lines *self, const bh__figures *f) {
    if (f->kernel_count) line(self, DIM, "   LAUNCHES  FAULTS  DEVICE TIME  KERNEL");
    for (uint32_t i = 0; i < f->kernel_count; i++) {
        const bh__figures_kernel *kernel = &f->kernels[i];
        char name[128], time[BH__TEXT];
        line(self, kernel->quarantined ? BAD : PLAIN, " %10llu %7llu  %11s  %.100s%s",
             (unsigned long long)kernel->launches, (unsigned long long)kernel->faults,
             kernel->timed ? bh__text_time(kernel->device_ns, time) : "-",
             plain(kernel->name, name), kernel->quarantined ? " (quarantined)" : "");
    }
}

static void draw_tags(lines *self, const bh__figures *f) {
    if (f->tag_count) line(self, DIM, "      BYTES  BUFFERS        PEAK  TAG");
    for (uint32_t i = 0; i < f->tag_count; i++) {
        const bh_memory_tag *tag = &f->tags[i];
        char name[128], bytes[BH__TEXT], peak[BH__TEXT];
        line(self, PLAIN, " %10s %8llu  %10s  %s", bh__text_size(tag->bytes, bytes),
             (unsigned long long)tag->buffers, bh__text_size(tag->peak, peak),
             tag->tag[0] ? plain(tag->tag, name) : "(none)");
    }
}

static void draw_losses(lines *self, const bh__figures *f) {
    if (f->loss_count) line(self, DIM, " LOSS      WHEN    TAKEOVER  WHAT");
    for (uint32_t i = 0; i < f->loss_count; i++) {
        const bh_loss *loss = &f->losses[i];
        char what[128], when[32] = "", time[BH__TEXT];
        time_t seconds = (time_t)(loss->time_ns / 1000000000u);
        struct tm parts;
        if (localtime_r(&seconds, &parts)) strftime(when, sizeof when, "%H:%M:%S", &parts);
        line(self, BAD, " %4llu  %8s  %10s  %s", (unsigned long long)loss->number, when,
             loss->takeover_ns ? bh__text_time(loss->takeover_ns, time) : "-",
             plain(loss->message, what));
    }
}

static const bh__row *chosen_row(const screen *self) {
    for (size_t i = 0; i < self->view->count; i++) {
        const bh__offer *key = &self->view->rows[i]->key;
        if (key->pid == self->chosen.pid && key->start == self->chosen.start &&
            key->slot == self->chosen.slot)
            return self->view->rows[i];
    }
    return NULL;
}

static void draw_detail(screen *self) {
    const bh__row *row = chosen_row(self);
    if (!row) {
        put_head(self);
        put(self, 2, 2, WARN, "The device was closed, or its process has ended.");
        put(self, self->rows - 1, 0, DIM, "escape back   q quit");
        return;
    }
    const bh__figures *f = row->now;
    char program[128], name[128], reason[128], device[32], total[BH__TEXT], peak[BH__TEXT],
        age[BH__TEXT];
    lines out = {self, 1 - self->scroll};
    bh__row_device(row, device);
    line(&out, PLAIN, "%s (%s) of %s, process %ld, compartment %u, open for %s", device,
         plain(f->info.name, name), plain(f->process.program, program), (long)f->process.pid,
         f->device.slot, bh__text_time(f->device.age_ns, age));
    line(&out, style_of_health(f->health.state), "  %s%s%s", bh__health_text(f->health.state),
         f->health.reason[0] ? ": " : "", plain(f->health.reason, reason));
    line(&out, PLAIN,
         "  worker %ld, generation %llu, standbys %u of %u, losses %llu (%llu by faults, %llu by "
         "deadlines)",
         (long)f->health.worker_pid, (unsigned long long)f->health.generation,
         f->health.standbys_ready, f->health.standbys, (unsigned long long)f->counters.losses,
         (unsigned long long)f->counters.faults, (unsigned long long)f->counters.deadlines);
    line(&out, PLAIN, "  %llu buffers, peak %s, device memory %s",
         (unsigned long long)f->device.buffers, bh__text_size(f->device.peak_allocated, peak),
         bh__text_size(f->info.memory_total, total));
    draw_gpu(&out, &row->gpu);
    draw_history(&out, row);
    draw_losses(&out, f);
    draw_kernels(&out, f);
    draw_tags(&out, f);
    draw_lanes(&out, f);
    int all = out.next - 1 + self->scroll, shown = self->rows - 2;
    if (self->scroll > all - shown) self->scroll = all > shown ? all - shown : 0;
    put_head(self);
    put(self, self->rows - 1, 0, DIM,
        "up/down scroll   escape back   space pause   h help   q quit");
}

static void draw_help(const screen *self) {
    static const char *const text[] = {
        "up, down, j, k    choose a device; in the view of one, scroll",
        "enter, right      open it: lanes, kernels, memory by tag, the last losses",
        "escape, left      back to the list",
        "s                 sort by the next column",
        "l b m u o p       sort by launches, busy, memory, queue, losses, pid",
        "+  -              look less or more often",
        "space             pause; r: look now",
        "h, ?              this help",
        "q                 quit",
        "",
        "BUSY is the device time of requests by the time that passed; with several lanes it",
        "can exceed 100%. GEN is the number of the worker: one more with each takeover.",
    };
    put_head(self);
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        put(self, 2 + (int)i, 2, PLAIN, text[i]);
    put(self, self->rows - 1, 0, DIM, "any key: back");
}

static void draw(screen *self) {
    WINDOW *window = *curses.screen;
    self->rows = curses.getmaxy(window);
    self->columns = curses.getmaxx(window);
    curses.werase(window);
    if (self->help)
        draw_help(self);
    else if (self->detail)
        draw_detail(self);
    else
        draw_list(self);
    curses.wrefresh(window);
}

/* ---- keys ---- */

static void sort_by(screen *self, bh__order order) {
    self->view->order = order;
    bh__view_sort(self->view);
}

static void move_by(screen *self, int by) {
    if (self->detail) {
        self->scroll += by;
        if (self->scroll < 0) self->scroll = 0;
        return;
    }
    if (by < 0 && self->at < (size_t)-by)
        self->at = 0;
    else
        self->at += (size_t)by;
    if (self->at >= self->view->count) self->at = self->view->count ? self->view->count - 1 : 0;
    if (self->view->count) self->chosen = self->view->rows[self->at]->key;
}

static void change_interval(screen *self, bool longer) {
    const uint64_t least = 100000000, most = UINT64_C(60000000000);
    uint64_t next = longer ? self->interval_ns * 2 : self->interval_ns / 2;
    self->interval_ns = next < least ? least : next > most ? most : next;
}

static bool take_sort_key(screen *self, int key) {
    static const char keys[] = "lbmuop";
    const char *at = key > 0 && key < 128 ? strchr(keys, key) : NULL;
    if (at) sort_by(self, (bh__order)(at - keys));
    return at != NULL;
}

/* Returns false to quit. *look: the figures are to be read now. */
static bool take_key(screen *self, int key, bool *look) {
    enum { ESCAPE = 27, PAGE = 10 };
    if (key == 'q' || key == 'Q' || key == 3) return false;
    if (self->help) {
        self->help = false;
        return true;
    }
    if (take_sort_key(self, key)) return true;
    switch (key) {
    case KEY_UP:
    case 'k':
        move_by(self, -1);
        break;
    case KEY_DOWN:
    case 'j':
        move_by(self, 1);
        break;
    case KEY_PPAGE:
        move_by(self, -PAGE);
        break;
    case KEY_NPAGE:
        move_by(self, PAGE);
        break;
    case KEY_ENTER:
    case KEY_RIGHT:
    case '\n':
    case '\r':
        self->detail = self->view->count > 0;
        self->scroll = 0;
        break;
    case ESCAPE:
    case KEY_LEFT:
    case KEY_BACKSPACE:
        self->detail = false;
        break;
    case 's':
        sort_by(self, (bh__order)((self->view->order + 1) % BH__ORDERS));
        break;
    case '+':
    case '-':
        change_interval(self, key == '+');
        break;
    case ' ':
        self->paused = !self->paused;
        break;
    case 'r':
        *look = true;
        break;
    case 'h':
    case '?':
        self->help = true;
        break;
    default:
        break;
    }
    return true;
}

/* ---- the loop ---- */

static volatile sig_atomic_t ended;

static void end_soon(int number) {
    (void)number;
    ended = 1;
}

static void set_up(screen *self) {
    const char *no_color = getenv("NO_COLOR");
    curses.cbreak();
    curses.noecho();
    curses.curs_set(0);
    curses.keypad(*curses.screen, true);
    curses.set_escdelay(25);
    self->colors = !(no_color && *no_color) && curses.has_colors();
    self->blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    if (!self->colors) return;
    curses.start_color();
    short back = curses.use_default_colors() == 0 ? -1 : COLOR_BLACK;
    curses.init_pair(1, COLOR_GREEN, back);
    curses.init_pair(2, COLOR_YELLOW, back);
    curses.init_pair(3, COLOR_RED, back);
    curses.init_pair(4, COLOR_CYAN, back);
}

static int refuse_terminal(void) {
    bh_error error;
    const char *name = getenv("TERM");
    bh__report_set(&error, BH_E_UNSUPPORTED, "ncurses does not know the terminal \"%.40s\"",
                   name ? name : "");
    bh__report_fix(&error, "set TERM, for example to xterm; or use \"bulkhead top --once\"");
    bh__report_print(&error);
    return BH__EXIT_REFUSED;
}

int bh__screen_run(bh__view *view, uint64_t interval_ns) {
    const uint64_t patience_ns = 300000000;
    screen self = {.view = view, .interval_ns = interval_ns};
    setlocale(LC_CTYPE, "");
    SCREEN *terminal = curses.newterm(NULL, stdout, stdin);
    if (!terminal) return refuse_terminal();
    struct sigaction end = {.sa_handler = end_soon};
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
    set_up(&self);
    bool look = true, fits = true;
    for (uint64_t last = 0; fits && !ended;) {
        uint64_t now = bh__now_ns();
        if (look || (!self.paused && now - last >= self.interval_ns)) {
            last = now;
            fits = bh__view_refresh(view, patience_ns);
        }
        look = false;
        draw(&self);
        now = bh__now_ns();
        uint64_t left = now - last < self.interval_ns ? self.interval_ns - (now - last) : 0;
        curses.wtimeout(*curses.screen, self.paused ? 1000 : (int)(left / 1000000 + 1));
        int key = curses.wgetch(*curses.screen);
        if (key != ERR && key != KEY_RESIZE && !take_key(&self, key, &look)) break;
    }
    curses.endwin();
    curses.delscreen(terminal);
    return BH__EXIT_DONE;
}

#endif
