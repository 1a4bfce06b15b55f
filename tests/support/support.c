/* SPDX-License-Identifier: Apache-2.0 */
/* What most tests need: an open device with kernels, buffers of words, gates that hold a lane. */
#include "support.h"
#include "./buffers.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <time.h>

bh_device_options device_options(uint32_t flags) {
    bh_device_options options = BH_INIT(options);
    options.flags = flags;
    options.device = test_device();
    return options;
}

static bh_device opened[64];
static _Atomic(unsigned) opened_count;

static void close_all(void) {
    for (unsigned i = 0; i < atomic_load(&opened_count) && i < 64; i++)
        (void)bh_device_close(opened[i]);
}

__attribute__((constructor)) static void close_before_skip(void) {
    test_before_skip = close_all;
}

bh_device open_device_with(const bh_device_options *options) {
    bh_device device = {0};
    REQUIRE_OK(bh_device_open(options, &device));
    unsigned place = atomic_fetch_add(&opened_count, 1);
    if (place < 64) opened[place] = device;
    REQUIRE(device.id != 0);
    if (getenv("BULKHEAD_TEST_QUEUES")) REQUIRE(has_queues(device));
    return device;
}

bh_device open_device(void) {
    bh_device_options options = device_options(0);
    return open_device_with(&options);
}

bool is_cpu(bh_device device) {
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    return strcmp(info.kind, "cpu") == 0;
}

bool has_queues(bh_device device) {
    bh_device_info info = BH_INIT(info);
    REQUIRE_OK(bh_device_get_info(device, &info));
    return strcmp(info.kind, "cpu") != 0 || strncmp(info.name, "queued ", 7) == 0;
}

bh_module load_module(bh_device device, const char *ptx) {
    bh_module module = {0};
    REQUIRE_OK(bh_module_load(device, ptx, strlen(ptx), &module));
    return module;
}

bh_kernel get_kernel(bh_module module, const char *name) {
    bh_kernel kernel = {0};
    REQUIRE_OK(bh_kernel_get(module, name, &kernel));
    return kernel;
}

bh_sequence sequence_open(bh_device device, const char *name) {
    bh_sequence_options options = BH_INIT(options);
    options.name = name;
    bh_sequence sequence;
    REQUIRE_OK(bh_sequence_begin(device, &options, &sequence));
    return sequence;
}

bh_lane open_lane(bh_device device) {
    bh_lane lane = {0};
    REQUIRE_OK(bh_lane_open(device, NULL, &lane));
    return lane;
}

rig rig_open_with(const bh_device_options *options) {
    rig r;
    r.device = open_device_with(options);
    r.module = load_module(r.device, ptx_basic);
    return r;
}

rig rig_open(uint32_t flags) {
    bh_device_options options = device_options(flags);
    return rig_open_with(&options);
}

bh_kernel rig_kernel(const rig *r, const char *name) {
    return get_kernel(r->module, name);
}

bh_buffer words_alloc(bh_device device, uint64_t count) {
    bh_buffer buffer = {0};
    REQUIRE_OK(bh_buffer_alloc(device, BH_U32, count, NULL, &buffer));
    return buffer;
}

bh_buffer words_filled(bh_device device, uint64_t count, uint32_t value) {
    bh_buffer buffer = words_alloc(device, count);
    REQUIRE_OK(bh_buffer_fill(buffer, 0, count * 4, &value, 4));
    return buffer;
}

static uint32_t *host_words(uint64_t count) {
    uint32_t *words = malloc(count ? count * 4 : 4);
    REQUIRE(words != NULL);
    return words;
}

bh_buffer words_counting(bh_device device, uint64_t count, uint32_t first) {
    bh_buffer buffer = words_alloc(device, count);
    uint32_t *words = host_words(count);
    for (uint64_t i = 0; i < count; i++) words[i] = first + (uint32_t)i;
    REQUIRE_OK(bh_buffer_write(buffer, 0, words, count * 4));
    free(words);
    return buffer;
}

uint32_t word_read(bh_buffer buffer, uint64_t index) {
    uint32_t value = 0;
    REQUIRE_OK(bh_buffer_read(buffer, index * 4, &value, 4));
    return value;
}

void word_write(bh_buffer buffer, uint64_t index, uint32_t value) {
    REQUIRE_OK(bh_buffer_write(buffer, index * 4, &value, 4));
}

static bool words_match(bh_buffer buffer, uint64_t count, uint32_t first, uint32_t step) {
    uint32_t *words = host_words(count);
    bool match = true;
    REQUIRE_OK(bh_buffer_read(buffer, 0, words, count * 4));
    for (uint64_t i = 0; i < count && match; i++) {
        uint32_t expected = first + step * (uint32_t)i;
        if (words[i] != expected) {
            fprintf(stderr, "word %llu of %llu is %#x, expected %#x\n", (unsigned long long)i,
                    (unsigned long long)count, words[i], expected);
            match = false;
        }
    }
    free(words);
    return match;
}

bool words_are(bh_buffer buffer, uint64_t count, uint32_t value) {
    return words_match(buffer, count, value, 0);
}

bool words_count(bh_buffer buffer, uint64_t count, uint32_t first) {
    return words_match(buffer, count, first, 1);
}

uint64_t address_of(bh_buffer buffer) {
    uint64_t address = 0;
    REQUIRE_OK(buffer_address(buffer, &address));
    return address;
}

bh_status launch_changed(bh_prepared prepared, uint32_t index, bh_arg arg) {
    bh_change change = {.index = index, .arg = arg};
    return bh_prepared_launch(prepared, &change, 1, NULL);
}

bh_status run_with(bh_kernel kernel, bh_shape shape, bh_args args,
                   const bh_launch_options *options) {
    bh_ticket ticket = {0, 0};
    bh_status status = bh_launch(kernel, shape, args, options, &ticket);
    return status != BH_OK ? status : bh_wait(ticket, LONG_NS);
}

bh_status run_now(bh_kernel kernel, bh_shape shape, bh_args args) {
    return run_with(kernel, shape, args, NULL);
}

bh_ticket submit(bh_kernel kernel, bh_shape shape, bh_args args, const bh_launch_options *options) {
    bh_ticket ticket = {0, 0};
    REQUIRE_OK(bh_launch(kernel, shape, args, options, &ticket));
    return ticket;
}

bh_launch_options on_lane(bh_lane lane, uint32_t flags) {
    bh_launch_options options = BH_INIT(options);
    options.lane = lane;
    options.flags = flags;
    return options;
}

void check_device_works(const rig *r) {
    enum { COUNT = 1000 };
    bh_buffer a = words_counting(r->device, COUNT, 5);
    bh_buffer b = words_alloc(r->device, COUNT);
    CHECK_OK(run_now(rig_kernel(r, "add_one"), BH_GRID(COUNT, 128),
                     BH_ARGS(BH_INOUT(a), (uint32_t)COUNT)));
    CHECK_OK(run_now(rig_kernel(r, "copy_words"), BH_GRID(COUNT, 128),
                     BH_ARGS(BH_IN(a), BH_OUT(b), (uint32_t)COUNT)));
    CHECK(words_count(b, COUNT, 6));
    CHECK_OK(bh_buffer_release(a));
    CHECK_OK(bh_buffer_release(b));
}

bh_buffer flag_alloc(bh_device device) {
    return words_filled(device, 2, 0);
}

void flag_wait_begun(bh_buffer flag) {
    uint64_t limit = now_ns() + LONG_NS;
    while (word_read(flag, 1) == 0) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

void flag_raise(bh_buffer flag) {
    word_write(flag, 0, 1);
}

gate gate_close(const rig *r, bh_lane lane, uint32_t flags) {
    gate g;
    bh_launch_options options = on_lane(lane, flags);
    g.flag = flag_alloc(r->device);
    g.mark = words_filled(r->device, 1, 0);
    g.value = 0x600d;
    g.ticket = submit(rig_kernel(r, "gate"), BH_SHAPE(1, 1, 1, 1, 1, 1),
                      BH_ARGS(address_of(g.flag), BH_OUT(g.mark), g.value), &options);
    flag_wait_begun(g.flag);
    return g;
}

void gate_open(const gate *g) {
    flag_raise(g->flag);
}

bh_health health_of(bh_device device) {
    bh_health health = BH_INIT(health);
    REQUIRE_OK(bh_device_get_health(device, &health));
    return health;
}

bh_device_limits limits_of(bh_device device) {
    bh_device_limits limits = BH_INIT(limits);
    REQUIRE_OK(bh_device_get_limits(device, &limits));
    return limits;
}

bool is_running(bh_device device) {
    uint32_t state = health_of(device).state;
    return state == BH_HEALTH_OK || state == BH_HEALTH_DEGRADED;
}

bh_memory_info memory_of(bh_device device) {
    bh_memory_info info = BH_INIT(info);
    REQUIRE_OK(bh_memory_get_info(device, &info));
    CHECK_EQ(info.bytes_free, info.bytes_reserved - info.bytes_used);
    CHECK_LE(info.largest_free, info.bytes_free);
    CHECK_LE(info.bytes_buffers, info.peak_buffers);
    CHECK_LE(info.bytes_reserved, info.peak_reserved);
    return info;
}

void wait_generation(bh_device device, uint64_t generation) {
    uint64_t limit = now_ns() + LONG_NS;
    while (health_of(device).generation < generation || !is_running(device)) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

void wait_standby(bh_device device) {
    REQUIRE_OK(bh_device_wait_standby(device, LONG_NS));
}

bool is_suspect(bh_buffer buffer) {
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(buffer, &info));
    return info.suspect != 0;
}

bh_device_counters counters_of(bh_device device) {
    bh_device_counters counters = BH_INIT(counters);
    REQUIRE_OK(bh_device_get_counters(device, &counters));
    return counters;
}

bh_lane_counters lanes_of(bh_device device) {
    bh_lane_counters counters = BH_INIT(counters);
    REQUIRE_OK(bh_lane_get_counters(device, BH_ALL_LANES, &counters));
    return counters;
}

bh_watch watch_for(bh_device device, uint32_t kinds, bh_event_fn *told, void *context) {
    bh_watch_options options = BH_INIT(options);
    options.kinds = kinds;
    bh_watch watch;
    REQUIRE_OK(bh_watch_open(device, &options, told, context, &watch));
    return watch;
}

static void loss_note(void *context, const bh_event *event) {
    loss_log *log = context;
    int index = atomic_load(&log->count);
    if (index < LOSS_LOG) log->losses[index] = *event->loss;
    atomic_store(&log->count, index + 1);
}

void loss_log_start(bh_device device, loss_log *log) {
    memset(log, 0, sizeof *log);
    watch_for(device, BH_EVENT_LOSS, loss_note, log);
}

bool loss_log_wait(loss_log *log, int count) {
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&log->count) < count) {
        if (now_ns() > limit) return false;
        sleep_ms(1);
    }
    return true;
}

int crash_signal(void) {
    return test_time_scale() == 1 ? SIGSEGV : SIGABRT;
}

void wait_worker(bh_device device) {
    uint64_t limit = now_ns() + LONG_NS;
    while (!is_running(device)) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

void kill_worker(bh_device device, int signal) {
    wait_worker(device);
    bh_health health = health_of(device);
    REQUIRE(health.worker_pid > 0);
    REQUIRE(kill(health.worker_pid, signal) == 0);
    wait_generation(device, health.generation + 1);
}

#define RNG_STEP UINT64_C(0x9e3779b97f4a7c15)

static uint64_t rng_mix(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* The seed is mixed: a multiple of the step would give every seed the same numbers, shifted. */
rng rng_seeded(uint64_t seed) {
    const char *given = getenv("BULKHEAD_TEST_SEED");
    if (given != NULL) seed = strtoull(given, NULL, 0);
    fprintf(stderr, "seed %llu (BULKHEAD_TEST_SEED=%llu repeats this)\n", (unsigned long long)seed,
            (unsigned long long)seed);
    return (rng){.state = rng_mix(seed + RNG_STEP)};
}

uint32_t rng_next(rng *r) {
    r->state += RNG_STEP;
    return (uint32_t)(rng_mix(r->state) >> 32);
}

uint32_t rng_below(rng *r, uint32_t limit) {
    return (uint32_t)(((uint64_t)rng_next(r) * limit) >> 32);
}

uint8_t *noise_bytes(size_t size, uint32_t seed) {
    uint8_t *bytes = malloc(size);
    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(seed >> 24);
    }
    return bytes;
}

uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void sleep_ms(unsigned ms) {
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

bool process_exists(pid_t pid) {
    char path[64];
    char text[512];
    FILE *file = fopen(test_path(path, sizeof path, "/proc/%d/stat", (int)pid), "r");
    if (file == NULL) return false;
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
    const char *after_name = strrchr(text, ')');
    if (after_name == NULL || after_name[1] == '\0') return false;
    return after_name[2] != 'Z' && after_name[2] != 'X';
}

bool wait_process_gone(pid_t pid, unsigned ms) {
    uint64_t limit = now_ns() + (uint64_t)ms * MS * test_time_scale();
    while (process_exists(pid)) {
        if (now_ns() > limit) return false;
        sleep_ms(2);
    }
    return true;
}

unsigned open_descriptors(void) {
    unsigned count = 0;
    DIR *dir = opendir("/proc/self/fd");
    REQUIRE(dir != NULL);
    while (readdir(dir) != NULL) count++;
    closedir(dir);
    return count;
}

struct thread_start {
    void (*body)(void *context, unsigned index);
    void *context;
    unsigned index;
};

static void *thread_main(void *argument) {
    struct thread_start *start = argument;
    start->body(start->context, start->index);
    return NULL;
}

void run_threads(unsigned count, void (*body)(void *context, unsigned index), void *context) {
    pthread_t threads[64];
    struct thread_start starts[64];
    REQUIRE(count <= 64);
    for (unsigned i = 0; i < count; i++) {
        starts[i] = (struct thread_start){body, context, i};
        REQUIRE(pthread_create(&threads[i], NULL, thread_main, &starts[i]) == 0);
    }
    for (unsigned i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

void check_refused(bh_status status, bh_status expected, const char *text, const char *file,
                   int line) {
    bh_error error;
    memset(&error, 0xa5, sizeof error);
    if (expected < 0) {
        test_check(status != BH_OK, false, text, file, line);
    } else {
        test_check_status(status, expected, false, text, file, line);
    }
    if (status == BH_OK) return;
    bh_status last = bh_last_error(&error);
    if (last != status || error.status != status || error.message[0] == '\0' ||
        error.fix[0] == '\0' || memchr(error.message, 0, sizeof error.message) == NULL ||
        memchr(error.fix, 0, sizeof error.fix) == NULL) {
        test_fail(file, line,
                  "%s returned %s but bh_last_error says %s, message \"%.200s\", fix \"%.200s\"",
                  text, bh_status_name(status), bh_status_name(last), error.message, error.fix);
    }
}

void *kill_now_and_then(void *killer) {
    struct killer *self = killer;
    rng random = {self->seed};
    while (!atomic_load(&self->stop)) {
        sleep_ms(rng_below(&random, 25));
        bh_health health = health_of(self->device);
        if (health.worker_pid > 0 && kill(health.worker_pid, SIGKILL) == 0) self->kills++;
    }
    return NULL;
}
