/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead demo`: a kernel runs, one crashes, the data is intact, the next runs; all checked. */
#include "cli.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define MAX_ELEMENTS (1u << 20)
#define MIN_ELEMENTS (1u << 14)
#define FEW          1024u /* elements of the launch that is timed after a loss */
#define BLOCK        256u
#define FACTOR       2.0f
#define STEP_NS      UINT64_C(1000000000) /* target time of saxpy over all elements */
#define PATIENCE_NS  UINT64_C(60000000000)
#define DEADLINE_NS  UINT64_C(300000000)
#define WIDTH        76

typedef struct demo {
    bh_device device;
    bh_module module;
    bh_kernel saxpy, scribble, endless;
    bh_buffer x, y, scratch;
    uint32_t count;
    float *host;       /* room for `count` elements */
    uint32_t all_runs; /* completed runs over all of y, and over the first FEW */
    uint32_t few_runs;
    unsigned checks, failed;
    _Atomic uint64_t takeover_ns; /* of the most recent loss */
    _Atomic uint32_t losses;
    bh_error error;
} demo;

/* ---- output ---- */

static void title(const char *text) {
    printf("\n%s\n", text);
    fflush(stdout);
}

/* Prints the text indented and wrapped. */
static void wrapped(const char *text) {
    size_t column = 0;
    while (*text != '\0') {
        size_t word = strcspn(text, " \n");
        if (column > 0 && column + 1 + word > WIDTH) {
            putchar('\n');
            column = 0;
        }
        column += (size_t)printf("%s%.*s", column == 0 ? "         " : " ", (int)word, text);
        text += word;
        text += strspn(text, " \n");
    }
    putchar('\n');
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    wrapped(text);
    fflush(stdout);
}

/* Prints a check with "ok" or "FAILED" in front. */
__attribute__((format(printf, 3, 4))) static bool check(demo *d, bool holds, const char *format,
                                                        ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    d->checks++;
    d->failed += !holds;
    printf("  %s %s\n", holds ? "ok    " : "FAILED", text);
    fflush(stdout);
    return holds;
}

/* ---- pieces ---- */

static bh_status library_failed(demo *d) {
    return bh__report_library(&d->error);
}

static void on_loss(void *context, const bh_event *event) {
    demo *d = context;
    atomic_store(&d->takeover_ns, event->loss->takeover_ns);
    atomic_fetch_add(&d->losses, 1);
}

static uint64_t checksum(const void *data, size_t size) {
    const unsigned char *bytes = data;
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++) sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

static float x_at(uint32_t i) {
    return (float)(i % 1000);
}

static bh_status wait_for(demo *d, const char *what, bh_ticket ticket) {
    bh__progress progress;
    bh__progress_begin(&progress, what);
    bh_status status = bh__progress_wait(&progress, ticket, PATIENCE_NS);
    bh__progress_end(&progress);
    if (status == BH_E_TIMEOUT) {
        char time[BH__TEXT];
        bh__report_set(&d->error, status, "%s: timed out after %s", what,
                       bh__text_time(PATIENCE_NS, time));
        return bh__report_fix(&d->error, "run \"bulkhead doctor\"");
    }
    if (status != BH_OK) bh_ticket_error(ticket, &d->error);
    return status;
}

/* y = FACTOR * x + y over the first `count` elements. */
static bh_status run_saxpy(demo *d, uint32_t count, uint64_t *out_ns) {
    bh_ticket done;
    uint64_t start = bh__now_ns();
    if (bh_launch(d->saxpy, BH_GRID(count, BLOCK),
                  BH_ARGS(FACTOR, BH_IN(d->x), BH_INOUT(d->y), count), NULL, &done) != BH_OK)
        return library_failed(d);
    bh_status status = wait_for(d, "saxpy", done);
    *out_ns = bh__now_ns() - start;
    d->all_runs += status == BH_OK && count == d->count;
    d->few_runs += status == BH_OK && count != d->count;
    return status;
}

/* Counts the wrong elements of y. All values are exact in floating point. */
static bh_status count_wrong(demo *d, uint32_t *out) {
    if (bh_buffer_read(d->y, 0, d->host, d->count * sizeof *d->host) != BH_OK)
        return library_failed(d);
    *out = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        uint32_t runs = d->all_runs + (i < FEW ? d->few_runs : 0);
        *out += d->host[i] != 1.0f + (float)runs * FACTOR * x_at(i);
    }
    return BH_OK;
}

/* 1048576 as "1,048,576". */
static const char *grouped(uint32_t number, char out[BH__TEXT]) {
    char digits[16];
    int length = snprintf(digits, sizeof digits, "%u", number), used = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0) out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = '\0';
    return out;
}

static bh_status check_y(demo *d, const char *what, uint64_t ns) {
    uint32_t wrong;
    char time[BH__TEXT], all[BH__TEXT], bad[BH__TEXT];
    bh_status status = count_wrong(d, &wrong);
    if (status != BH_OK) return status;
    grouped(d->count, all);
    if (wrong == 0)
        check(d, true, "%s: %s elements right, %s", what, all, bh__text_time(ns, time));
    else
        check(d, false, "%s: %s of %s elements wrong", what, grouped(wrong, bad), all);
    return BH_OK;
}

static bh_status make_data(demo *d) {
    free(d->host);
    d->host = malloc(d->count * sizeof *d->host);
    if (d->host == NULL) {
        bh__report_set(&d->error, BH_E_NO_HOST_MEMORY, "no memory for %u elements", d->count);
        return bh__report_fix(&d->error, "free some memory");
    }
    uint64_t bytes = (uint64_t)d->count * sizeof *d->host;
    const float one = 1.0f;
    for (uint32_t i = 0; i < d->count; i++) d->host[i] = x_at(i);
    if (bh_buffer_alloc(d->device, BH_F32, d->count, NULL, &d->x) != BH_OK ||
        bh_buffer_alloc(d->device, BH_F32, d->count, NULL, &d->y) != BH_OK ||
        bh_buffer_alloc(d->device, BH_U32, d->count, NULL, &d->scratch) != BH_OK ||
        bh_buffer_write(d->x, 0, d->host, bytes) != BH_OK ||
        bh_buffer_fill(d->y, 0, bytes, &one, sizeof one) != BH_OK ||
        bh_buffer_fill(d->scratch, 0, bytes, "\0\0\0\0", 4) != BH_OK)
        return library_failed(d);
    return BH_OK;
}

/* Chooses how many elements saxpy processes in about STEP_NS on this device. */
static bh_status choose_count(demo *d) {
    uint64_t ns = 0;
    d->count = MIN_ELEMENTS;
    bh_status status = make_data(d);
    if (status == BH_OK) status = run_saxpy(d, d->count, &ns);
    if (status != BH_OK) return status;
    uint32_t count = MAX_ELEMENTS;
    while (count > MIN_ELEMENTS && ns * (count / MIN_ELEMENTS) > STEP_NS) count /= 2;
    bh_buffer_release(d->x);
    bh_buffer_release(d->y);
    bh_buffer_release(d->scratch);
    d->count = count;
    d->all_runs = 0;
    return make_data(d);
}

/* ---- the steps ---- */

/* Without a standby, the crash of the demo could affect other programs on the device. */
static bh_status refuse_alone(demo *d, const bh_device_info *info) {
    bh__report_set(&d->error, BH_E_UNSUPPORTED,
                   "the demo crashes kernels and needs a standby to take over; %s has none: %s",
                   info->name, info->no_standby);
    return bh__report_fix(&d->error, "run \"bulkhead demo -d cpu\"; see \"bulkhead doctor\"");
}

static bh_status step_open(demo *d, const char *name) {
    title("1. Open a device");
    bh_device_options options = BH_INIT(options);
    bh_device_info info = BH_INIT(info);
    bh_health state = BH_INIT(state);
    options.device = name;
    uint64_t start = bh__now_ns();
    if (bh_device_open(&options, &d->device) != BH_OK) return library_failed(d);
    uint64_t opened = bh__now_ns() - start;
    if (bh_device_get_info(d->device, &info) != BH_OK) return library_failed(d);
    if (info.no_standby[0]) return refuse_alone(d, &info);
    bh_watch_options losses = BH_INIT(losses);
    losses.kinds = BH_EVENT_LOSS;
    bh_watch watch; /* until the device is closed */
    if (bh_watch_open(d->device, &losses, on_loss, d, &watch) != BH_OK ||
        bh_module_load(d->device, bh__demo_ptx, strlen(bh__demo_ptx), &d->module) != BH_OK ||
        bh_kernel_get(d->module, "saxpy", &d->saxpy) != BH_OK ||
        bh_kernel_get(d->module, "scribble", &d->scribble) != BH_OK ||
        bh_kernel_get(d->module, "endless", &d->endless) != BH_OK ||
        bh_device_wait_standby(d->device, PATIENCE_NS) != BH_OK ||
        bh_device_get_health(d->device, &state) != BH_OK)
        return library_failed(d);
    char time[BH__TEXT];
    say("%s: %s", info.kind, info.name);
    check(d, state.worker_pid > 0 && state.standbys_ready == 1,
          "worker %d started in %s, standby %d is ready", (int)state.worker_pid,
          bh__text_time(opened, time), (int)state.standby_pids[0]);
    return BH_OK;
}

static bh_status step_run(demo *d) {
    title("2. Run a kernel: saxpy, y = 2 * x + y");
    bh_status status = choose_count(d);
    uint64_t ns = 0;
    if (status == BH_OK) status = run_saxpy(d, d->count, &ns);
    return status == BH_OK ? check_y(d, "saxpy", ns) : status;
}

typedef struct snapshot {
    uint64_t x_sum, x_address, y_address;
} snapshot;

static bh_status take_snapshot(demo *d, snapshot *out) {
    size_t size = d->count * sizeof *d->host;
    if (bh_buffer_read(d->x, 0, d->host, size) != BH_OK) return library_failed(d);
    out->x_sum = checksum(d->host, size);
    bh_buffer_info x = BH_INIT(x), y = BH_INIT(y);
    if (bh_buffer_get_info(d->x, &x) != BH_OK || bh_buffer_get_info(d->y, &y) != BH_OK)
        return library_failed(d);
    out->x_address = x.address;
    out->y_address = y.address;
    return BH_OK;
}

static bh_status step_crash(demo *d, uint64_t *out_known_ns) {
    title("3. Crash a kernel: scribble fills a buffer, one thread stores to 0x10");
    if (bh_device_wait_standby(d->device, PATIENCE_NS) != BH_OK) return library_failed(d);
    bh_ticket done;
    uint32_t victim = d->count / 2;
    if (bh_launch(d->scribble, BH_GRID(d->count, BLOCK), BH_ARGS(BH_INOUT(d->scratch), victim),
                  NULL, &done) != BH_OK)
        return library_failed(d);
    bh_status status = wait_for(d, "scribble", done);
    *out_known_ns = bh__now_ns();
    if (status == BH_E_TIMEOUT) return status;
    bh_error why = d->error;
    check(d, status == BH_E_FAULT, "the launch ends with %s, this program goes on",
          bh_status_name(status));
    say("%s", why.message);
    if (why.fix[0] != '\0') say("Fix: %s", why.fix);
    check(d, status == BH_E_FAULT && strcmp(why.kernel, "scribble") == 0 && why.certain == 1,
          "the kernel to blame is named: %s", why.kernel);
    return BH_OK;
}

static bh_status step_next(demo *d, uint64_t known_ns) {
    uint64_t ns = 0;
    bh_status status = run_saxpy(d, FEW, &ns);
    if (status != BH_OK) return status;
    uint64_t since = bh__now_ns() - known_ns;
    char time[BH__TEXT], takeover[BH__TEXT];
    check(d, true, "the next kernel was done %s after the loss was known",
          bh__text_time(since, time));
    /* Watchers are called on another thread; bh_device_sync waits for them. */
    if (bh_device_sync(d->device, PATIENCE_NS) != BH_OK) return library_failed(d);
    check(d, atomic_load(&d->losses) == 1, "the standby took over within %s",
          bh__text_time(atomic_load(&d->takeover_ns), takeover));
    return BH_OK;
}

static bh_status step_inspect(demo *d, const snapshot *before) {
    title("4. Look at the data");
    snapshot after;
    uint32_t wrong;
    bh_status status = take_snapshot(d, &after);
    if (status == BH_OK) status = count_wrong(d, &wrong);
    if (status != BH_OK) return status;
    char size[BH__TEXT];
    bh__text_size((uint64_t)d->count * sizeof(float), size);
    check(d, after.x_sum == before->x_sum && after.x_address == before->x_address,
          "x: %s at 0x%llx, byte for byte as before", size, (unsigned long long)after.x_address);
    check(d, wrong == 0 && after.y_address == before->y_address,
          "y: %s at 0x%llx, every element right", size, (unsigned long long)after.y_address);
    uint32_t word;
    status = bh_buffer_read(d->scratch, 0, &word, sizeof word);
    check(d, status == BH_E_STALE, "the half-written buffer is not passed off as good: %s",
          bh_status_name(status));
    status = bh_buffer_fill(d->scratch, 0, (uint64_t)d->count * 4, "\0\0\0\0", 4);
    if (status == BH_OK) status = bh_buffer_read(d->scratch, 0, &word, sizeof word);
    check(d, status == BH_OK && word == 0, "written over, it is good again");
    return BH_OK;
}

static bh_status step_endless(demo *d) {
    char limit[BH__TEXT], time[BH__TEXT];
    title("5. Stop a kernel that never ends");
    if (bh_device_wait_standby(d->device, PATIENCE_NS) != BH_OK) return library_failed(d);
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = DEADLINE_NS;
    bh_ticket done;
    uint64_t start = bh__now_ns();
    if (bh_launch(d->endless, BH_GRID(1, 1), BH_ARGS(BH_INOUT(d->scratch)), &options, &done) !=
        BH_OK)
        return library_failed(d);
    bh_status status = wait_for(d, "endless", done);
    uint64_t known = bh__now_ns();
    check(d, status == BH_E_DEADLINE, "deadline %s: %s after %s", bh__text_time(DEADLINE_NS, limit),
          bh_status_name(status), bh__text_time(known - start, time));
    uint64_t ns = 0;
    status = run_saxpy(d, FEW, &ns);
    if (status != BH_OK) return status;
    check(d, true, "the next kernel was done %s after that",
          bh__text_time(bh__now_ns() - known, time));
    status = run_saxpy(d, d->count, &ns);
    return status == BH_OK ? check_y(d, "saxpy again", ns) : status;
}

static bh_status step_close(demo *d) {
    bh_health state = BH_INIT(state);
    if (bh_device_get_health(d->device, &state) != BH_OK) return library_failed(d);
    check(d, state.losses == 2 && state.generation == 3,
          "two workers lost, the third one is at work");
    return BH_OK;
}

static bh_status all_steps(demo *d, const char *device) {
    snapshot before = {0, 0, 0};
    uint64_t known_ns = 0;
    bh_status status = step_open(d, device);
    if (status == BH_OK) status = step_run(d);
    if (status == BH_OK) status = take_snapshot(d, &before);
    if (status == BH_OK) status = step_crash(d, &known_ns);
    if (status == BH_OK) status = step_next(d, known_ns);
    if (status == BH_OK) status = step_inspect(d, &before);
    if (status == BH_OK) status = step_endless(d);
    if (status == BH_OK) status = step_close(d);
    return status;
}

int bh__demo_main(int count, char **list) {
    bh__simple_options options;
    int code = bh__simple_options_parse("demo", "d", count, list, &options);
    if (code != BH__EXIT_DONE || options.help) return code;
    demo d = {0};
    uint64_t start = bh__now_ns();
    printf("Bulkhead %s: a kernel crashes, the program goes on.\n", bh_version());
    bh_status status = all_steps(&d, options.device);
    if (d.device.id != 0 && bh_device_close(d.device) != BH_OK && status == BH_OK)
        status = library_failed(&d);
    free(d.host);
    if (status != BH_OK) {
        putchar('\n');
        bh__report_print(&d.error);
        return BH__EXIT_REFUSED;
    }
    char time[BH__TEXT];
    bh__text_time(bh__now_ns() - start, time);
    if (d.failed > 0) {
        printf("\n%u of %u checks failed, in %s.\n", d.failed, d.checks, time);
        return BH__EXIT_REFUSED;
    }
    printf("\nAll %u checks passed in %s. Two workers were lost, and nothing else.\n", d.checks,
           time);
    return BH__EXIT_DONE;
}
