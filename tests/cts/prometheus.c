/* SPDX-License-Identifier: Apache-2.0 */
/* The counters as text for Prometheus: a strict reader of the format, and what is in the text. */
#include <ctype.h>
#include <stdarg.h>

#include "../support/support.h"

/* ---- a reader that takes nothing but what the format allows ---- */

enum { NAME = 100, LABELS = 600, FAMILIES = 200, SERIES = 20000 };

typedef struct sample_line {
    char name[NAME];
    char labels[LABELS]; /* without le, as they are written */
    char le[40];
    double value;
} sample_line;

typedef struct reader {
    char why[300]; /* what is wrong; empty: nothing so far */
    const char *line;
    char family[NAME], type[16];
    bool typed;
    char families[FAMILIES][NAME];
    int family_count;
    char *series[SERIES]; /* Owned. */
    int series_count;
    /* The histogram under way: its labels, its last bucket, and how much of it has been seen. */
    char labels[LABELS];
    double last_le, last_value;
    enum { NO_HISTOGRAM, BUCKETS, ENDED_BUCKETS, SUMMED } part;
} reader;

/* Always false. */
__attribute__((format(printf, 2, 3))) static bool wrong(reader *self, const char *format, ...) {
    va_list list;
    va_start(list, format);
    size_t length = strcspn(self->line, "\n");
    int some = vsnprintf(self->why, sizeof self->why, format, list);
    va_end(list);
    snprintf(self->why + some, sizeof self->why - (size_t)some, ": %.*s",
             (int)(length < 150 ? length : 150), self->line);
    return false;
}

static bool has_suffix(const char *text, const char *suffix) {
    size_t a = strlen(text), b = strlen(suffix);
    return a >= b && strcmp(text + a - b, suffix) == 0;
}

static const char *read_name(const char *at, char *out, size_t size, bool colons) {
    size_t length = 0;
    while (isalpha((unsigned char)*at) || *at == '_' || (colons && *at == ':') ||
           (length && isdigit((unsigned char)*at))) {
        if (length + 1 == size) return NULL;
        out[length++] = *at++;
    }
    out[length] = 0;
    return length ? at : NULL;
}

/* Between the quotes, which it leaves out. */
static const char *read_value(const char *at, char *out, size_t size) {
    size_t length = 0;
    for (; *at != '"'; at++) {
        if (*at == '\\' && (at[1] == '\\' || at[1] == '"' || at[1] == 'n'))
            out[length++] = *at++;
        else if (*at == '\\' || *at == '\n' || *at == '\0' || (unsigned char)*at > '~')
            return NULL;
        if (length + 2 >= size) return NULL;
        out[length++] = *at;
    }
    out[length] = 0;
    return at + 1;
}

static const char *read_labels(const char *at, sample_line *out) {
    char name[NAME], value[400], seen[LABELS] = ",";
    do {
        at = read_name(at + 1, name, sizeof name, false);
        if (!at || at[0] != '=' || at[1] != '"') return NULL;
        at = read_value(at + 2, value, sizeof value);
        char known[NAME + 2];
        snprintf(known, sizeof known, ",%s,", name);
        if (!at || strstr(seen, known)) return NULL;
        snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s,", name);
        if (strcmp(name, "le") == 0)
            snprintf(out->le, sizeof out->le, "%.39s", value);
        else
            snprintf(out->labels + strlen(out->labels), sizeof out->labels - strlen(out->labels),
                     "%s=\"%s\",", name, value);
    } while (*at == ',');
    return *at == '}' ? at + 1 : NULL;
}

/* Returns where the next line begins. NULL: it is no sample. */
static const char *read_sample(const char *at, sample_line *out) {
    memset(out, 0, sizeof *out);
    at = read_name(at, out->name, sizeof out->name, true);
    if (at && *at == '{') at = read_labels(at, out);
    if (!at || at[0] != ' ' || !(isdigit((unsigned char)at[1]) || at[1] == '-')) return NULL;
    char *end;
    out->value = strtod(at + 1, &end);
    return *end == '\n' ? end + 1 : NULL;
}

/* A family's samples stand together, so a histogram ends before another series begins. */
static bool histogram_ended(reader *self) {
    return self->part == NO_HISTOGRAM || wrong(self, "the histogram before has no count");
}

static bool take_help(reader *self, const char *name) {
    if (!histogram_ended(self)) return false;
    for (int i = 0; i < self->family_count; i++)
        if (strcmp(self->families[i], name) == 0) return wrong(self, "a second HELP");
    if (self->family_count == FAMILIES) return wrong(self, "too many families");
    snprintf(self->families[self->family_count++], NAME, "%s", name);
    snprintf(self->family, sizeof self->family, "%s", name);
    self->typed = false;
    return true;
}

static bool take_type(reader *self, const char *name, const char *type) {
    if (strcmp(name, self->family) != 0 || self->typed)
        return wrong(self, "a TYPE without its HELP before it");
    bool known = !strcmp(type, "counter") || !strcmp(type, "gauge") || !strcmp(type, "histogram");
    if (!known) return wrong(self, "no type");
    if ((strcmp(type, "counter") == 0) != has_suffix(name, "_total"))
        return wrong(self, "counters, and nothing else, end in _total");
    snprintf(self->type, sizeof self->type, "%.15s", type);
    self->typed = true;
    return true;
}

static bool take_comment(reader *self) {
    char word[8], name[NAME], rest[300];
    if (sscanf(self->line, "# %7s %99s %299[^\n]", word, name, rest) != 3)
        return wrong(self, "neither HELP nor TYPE");
    if (strcmp(word, "HELP") == 0) return take_help(self, name);
    if (strcmp(word, "TYPE") == 0) return take_type(self, name, rest);
    return wrong(self, "neither HELP nor TYPE");
}

static bool take_bucket(reader *self, const sample_line *line) {
    if (self->part == NO_HISTOGRAM) {
        snprintf(self->labels, sizeof self->labels, "%s", line->labels);
        self->last_le = self->last_value = -1;
        self->part = BUCKETS;
    }
    bool infinite = strcmp(line->le, "+Inf") == 0;
    char *end;
    double le = infinite ? 1e300 : strtod(line->le, &end);
    if (self->part != BUCKETS || (!infinite && (!*line->le || *end)) || le <= self->last_le ||
        line->value < self->last_value)
        return wrong(self, "a bucket out of order");
    self->last_le = le;
    self->last_value = line->value;
    if (infinite) self->part = ENDED_BUCKETS;
    return true;
}

static bool take_histogram(reader *self, const sample_line *line) {
    const char *part = line->name + strlen(self->family);
    if (self->part != NO_HISTOGRAM && strcmp(self->labels, line->labels) != 0)
        return histogram_ended(self);
    if (strcmp(part, "_bucket") == 0) return take_bucket(self, line);
    if (*line->le) return wrong(self, "le where no bucket is");
    if (strcmp(part, "_sum") == 0 && self->part == ENDED_BUCKETS) {
        self->part = SUMMED;
        return true;
    }
    if (strcmp(part, "_count") != 0 || self->part != SUMMED || line->value != self->last_value)
        return wrong(self, "sum and count follow the bucket of +Inf, which is the count");
    self->part = NO_HISTOGRAM;
    return true;
}

static bool take_sample(reader *self, const sample_line *line) {
    bool histogram = strcmp(self->type, "histogram") == 0;
    size_t length = strlen(self->family);
    if (!self->typed || strncmp(line->name, self->family, length) != 0 ||
        (!histogram && line->name[length]))
        return wrong(self, "not of the family %s", self->family);
    if (!histogram && *line->le) return wrong(self, "le where no bucket is");
    char series[NAME + LABELS + 60];
    snprintf(series, sizeof series, "%s{%s%s}", line->name, line->labels, line->le);
    if (self->series_count == SERIES) return wrong(self, "too many series");
    self->series[self->series_count++] = strdup(series);
    return !histogram || take_histogram(self, line);
}

static int by_text(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool all_differ(reader *self) {
    bool differ = true;
    qsort(self->series, (size_t)self->series_count, sizeof *self->series, by_text);
    for (int i = 1; i < self->series_count && differ; i++)
        if (strcmp(self->series[i], self->series[i - 1]) == 0)
            differ = wrong(self, "%s twice, up to", self->series[i]);
    return differ;
}

static bool take_lines(reader *self, const char *text, void (*each)(const sample_line *)) {
    for (self->line = text; *self->line;) {
        const char *next = strchr(self->line, '\n');
        if (!next) return wrong(self, "a line without its end");
        sample_line line;
        if (*self->line == '#') {
            if (!take_comment(self)) return false;
        } else {
            if (read_sample(self->line, &line) != next + 1) return wrong(self, "no sample");
            if (!take_sample(self, &line)) return false;
            if (each) each(&line);
        }
        self->line = next + 1;
    }
    return histogram_ended(self) && all_differ(self);
}

/* Whether the text keeps all rules; `why` gets the first it breaks. `each` sees its samples. */
static bool read_text(const char *text, void (*each)(const sample_line *), char why[300]) {
    reader *self = calloc(1, sizeof *self);
    REQUIRE(self != NULL);
    bool sound = take_lines(self, text, each);
    memcpy(why, self->why, sizeof self->why);
    for (int i = 0; i < self->series_count; i++) free(self->series[i]);
    free(self);
    return sound;
}

/* ---- the reader is strict ---- */

#define HEAD(name, type)  "# HELP " name " Help.\n# TYPE " name " " type "\n"
#define BUCKET(le, value) "h_bucket{le=\"" le "\"} " value "\n"

TEST(the_reader_takes_sound_text) {
    char why[300];
    static const char *const sound[] = {
        "", HEAD("a_total", "counter") "a_total 1\n",
        HEAD("a", "gauge") "a{x=\"1\"} 1\na{x=\"\\\\ \\\" \\n\"} 2.5\n",
        HEAD("h", "histogram") BUCKET("0.5", "1") BUCKET("+Inf", "3") "h_sum 4\nh_count 3\n"};
    for (size_t i = 0; i < sizeof sound / sizeof *sound; i++)
        if (!read_text(sound[i], NULL, why)) FAIL("%s", why);
}

TEST(the_reader_refuses_what_scrapers_refuse) {
    static const char *const wrong_texts[] = {
        HEAD("a", "gauge") "a 1",                                            /* no end of line */
        HEAD("a", "gauge") "a 1\n" HEAD("a", "gauge") "a{x=\"1\"} 1\n",      /* a second HELP */
        HEAD("a", "gauge") "a 1\n" HEAD("b", "gauge") "b 1\na{x=\"1\"} 1\n", /* torn apart */
        HEAD("a", "gauge") "a 1\na 1\n",                                     /* the same series */
        HEAD("a", "gauge") "a{x=\"1\",x=\"2\"} 1\n",                         /* a label twice */
        HEAD("a", "gauge") "a{x=\"\\t\"} 1\n",                               /* no such escape */
        HEAD("a", "gauge") "a{x=\"\xff\"} 1\n",
        HEAD("a", "gauge") "a{1x=\"1\"} 1\n",
        HEAD("a", "gauge") "a  1\n",
        HEAD("a", "gauge") "a x\n",
        HEAD("a", "counter") "a 1\n", /* no _total */
        HEAD("a_total", "gauge") "a_total 1\n",
        "a 1\n",
        "# TYPE a gauge\na 1\n",
        HEAD("h", "histogram") BUCKET("0.5", "1") "h_sum 4\nh_count 1\n", /* no +Inf */
        HEAD("h", "histogram") BUCKET("+Inf", "3") "h_sum 4\nh_count 2\n",
        HEAD("h", "histogram") BUCKET("+Inf", "3") "h_count 3\n",
        HEAD("h", "histogram") BUCKET("+Inf", "3") "h_sum 4\n",
        HEAD("h", "histogram") BUCKET("2", "1") BUCKET("1", "1")
            BUCKET("+Inf", "3") "h_sum 4\nh_count 3\n",
        HEAD("h", "histogram") BUCKET("1", "2") BUCKET("+Inf", "1") "h_sum 4\nh_count 1\n"};
    char why[300];
    for (size_t i = 0; i < sizeof wrong_texts / sizeof *wrong_texts; i++)
        if (read_text(wrong_texts[i], NULL, why)) FAIL("taken: %s", wrong_texts[i]);
}

/* ---- what the library writes ---- */

static char *text_of(const bh_device *devices, size_t count) {
    size_t length = 0, got = 0;
    REQUIRE_OK(bh_prometheus(devices, count, NULL, 0, &length));
    char *text = malloc(length + 65536);
    REQUIRE(text != NULL);
    REQUIRE_OK(bh_prometheus(devices, count, text, length + 65536, &got));
    REQUIRE_EQ(strlen(text), got);
    return text;
}

static char *text_of_process(void) {
    return text_of(NULL, 0);
}

static void check_text(const char *text, void (*each)(const sample_line *)) {
    char why[300];
    if (!read_text(text, each, why)) FAIL("%s", why);
}

/* Of the sample with this name and these labels among its own; -1: there is none. */
static double value_of(const char *text, const char *name, const char *labels) {
    for (const char *line = text; line && *line; line = strchr(line, '\n') + 1) {
        sample_line sample;
        if (*line == '#' || !read_sample(line, &sample) || strcmp(sample.name, name) != 0) continue;
        if (strstr(sample.labels, labels)) return sample.value;
    }
    return -1;
}

static unsigned times_in(const char *text, const char *what) {
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, what)); at++) count++;
    return count;
}

static void check_labels(const sample_line *line) {
    bool process = strstr(line->name, "bulkhead_compiles") ||
                   strstr(line->name, "bulkhead_cache") || strstr(line->name, "build_info");
    bool device = strstr(line->labels, "device=") && strstr(line->labels, ",compartment=");
    if (process == device) FAIL("%s{%s}: labels of a device?", line->name, line->labels);
    CHECK_EQ(strstr(line->name, "_lane_") != NULL, strstr(line->labels, ",lane=") != NULL);
}

static void launch(const rig *r, bh_lane lane, int times) {
    bh_launch_options there = on_lane(lane, 0);
    bh_buffer x = words_alloc(r->device, 100);
    for (int i = 0; i < times; i++)
        submit(rig_kernel(r, "iota"), BH_GRID(100, 32), BH_ARGS(BH_OUT(x), 1u, 100u), &there);
    REQUIRE_OK(bh_lane_sync(lane, LONG_NS));
}

TEST(one_page_has_all_devices_and_each_family_once) {
    rig a = rig_open(BH_DEVICE_NO_STANDBY), b = rig_open(BH_DEVICE_NO_STANDBY);
    launch(&a, open_lane(a.device), 7);
    launch(&b, open_lane(b.device), 5);
    char *text = text_of_process();
    check_text(text, check_labels);
    CHECK_EQ(times_in(text, "# HELP bulkhead_losses_total "), 1);
    CHECK_EQ(times_in(text, "\nbulkhead_losses_total{"), 2);
    CHECK_EQ(times_in(text, "\nbulkhead_device_info{"), 2);
    CHECK_EQ(times_in(text, "\nbulkhead_compiles_total "), 1);
    const char *launches = "bulkhead_lane_launches_total";
    CHECK(value_of(text, launches, "compartment=\"0\",lane=\"1\"") == 7);
    CHECK(value_of(text, launches, "compartment=\"1\",lane=\"1\"") == 5);
    free(text);
    CHECK_OK(bh_device_close(a.device));
    text = text_of_process();
    check_text(text, check_labels);
    CHECK(value_of(text, launches, "compartment=\"0\"") == -1);
    CHECK(value_of(text, launches, "compartment=\"1\",lane=\"1\"") == 5);
    free(text);
    CHECK_OK(bh_device_close(b.device));
}

TEST(a_page_of_some_devices_has_these_only) {
    rig a = rig_open(BH_DEVICE_NO_STANDBY), b = rig_open(BH_DEVICE_NO_STANDBY),
        c = rig_open(BH_DEVICE_NO_STANDBY);
    launch(&a, open_lane(a.device), 7);
    launch(&b, open_lane(b.device), 5);
    launch(&c, open_lane(c.device), 3);
    bh_device some[] = {c.device, a.device};
    char *text = text_of(some, 2);
    check_text(text, check_labels);
    const char *launches = "bulkhead_lane_launches_total";
    CHECK_EQ(times_in(text, "\nbulkhead_losses_total{"), 2);
    CHECK_EQ(times_in(text, "\nbulkhead_compiles_total "), 1);
    CHECK(value_of(text, launches, "compartment=\"0\",lane=\"1\"") == 7);
    CHECK(value_of(text, launches, "compartment=\"1\"") == -1);
    CHECK(value_of(text, launches, "compartment=\"2\",lane=\"1\"") == 3);
    free(text);
    text = text_of(some, 0); /* an empty array is of no device */
    check_text(text, check_labels);
    CHECK_EQ(times_in(text, "\nbulkhead_losses_total{"), 0);
    CHECK_EQ(times_in(text, "\nbulkhead_compiles_total "), 1);
    free(text);
    CHECK_OK(bh_device_close(b.device));
    size_t length = 77;
    bh_device twice[] = {a.device, c.device, a.device}, closed[] = {a.device, b.device};
    CHECK_REFUSED(bh_prometheus(twice, 3, NULL, 0, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_prometheus(closed, 2, NULL, 0, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_prometheus(NULL, 1, NULL, 0, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_prometheus(some, SIZE_MAX, NULL, 0, &length), BH_E_INVALID);
    CHECK_EQ(length, 77);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(c.device));
}

TEST(without_a_device_there_is_the_process) {
    char *text = text_of_process();
    check_text(text, check_labels);
    CHECK(value_of(text, "bulkhead_compiles_total", "") == 0);
    CHECK(value_of(text, "bulkhead_build_info", bh_version()) == 1);
    free(text);
}

TEST(text_that_does_not_fit_is_not_written) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    char small[100] = "x";
    size_t length = 0;
    CHECK_REFUSED(bh_prometheus(NULL, 0, NULL, 10, &length), BH_E_INVALID);
    CHECK_REFUSED(bh_prometheus(NULL, 0, small, sizeof small, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_prometheus(NULL, 0, small, sizeof small, &length), BH_E_INVALID);
    CHECK_GT(length, sizeof small);
    CHECK_STR_EQ(small, "x");
    CHECK_OK(bh_device_close(r.device));
}

/* Devices open and close while others ask. */
static void open_or_ask(void *context, unsigned index) {
    const unsigned *rounds = context;
    for (unsigned i = 0; i < *rounds; i++) {
        if (index) {
            free(text_of_process());
            sleep_ms(2);
        } else {
            CHECK_OK(bh_device_close(rig_open(BH_DEVICE_NO_STANDBY).device));
        }
    }
}

TEST(devices_may_come_and_go_meanwhile) {
    bh_device device = open_device();
    unsigned rounds = is_cpu(device) ? 20 : 4; /* GPUs take their time */
    CHECK_OK(bh_device_close(device));
    run_threads(3, open_or_ask, &rounds);
}
