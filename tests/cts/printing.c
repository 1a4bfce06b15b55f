/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel that prints more than the program takes costs text, not memory, and the text says so. */
#include "../support/support.h"

enum { LIMIT = 64 * 1024, LINES = 40000, NOTICE = 256 };

/* dots(u32 n) prints "." from each of n threads: text without an end of line. */
static const char ptx_dots[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 arguments);\n"
    ".global .align 1 .b8 dot[2] = {46, 0};\n"
    ".visible .entry dots()\n{\n  .reg .b64 %rd<4>;\n  .reg .b32 %r<4>;\n"
    "  mov.u64 %rd1, dot;\n  cvta.global.u64 %rd1, %rd1;\n  mov.u64 %rd2, 0;\n"
    "  {\n  .param .b64 format;\n  .param .b64 arguments;\n  .param .b32 result;\n"
    "  st.param.b64 [format], %rd1;\n  st.param.b64 [arguments], %rd2;\n"
    "  call.uni (result), vprintf, (format, arguments);\n  ld.param.b32 %r1, [result];\n  }\n"
    "  ret;\n}\n";

/* A callback that begins once it is let, or takes its time with each text. */
typedef struct listener {
    _Atomic(bool) open;
    unsigned pause_ms;
    char text[2 << 20];
    size_t length;
} listener;

static void hear(void *context, const bh_event *event) {
    listener *self = context;
    while (!atomic_load(&self->open)) sleep_ms(1);
    sleep_ms(self->pause_ms);
    if (event->length >= sizeof self->text - self->length) return;
    memcpy(self->text + self->length, event->text, event->length);
    self->length += event->length;
}

/* How much has come so far. What the test read of it, it read before anything more comes: the way
 * from here to the next text leads through another process, where a sanitizer sees no order. */
static size_t heard_so_far(listener *from) {
    size_t length = from->length;
    atomic_store(&from->open, true);
    return length;
}

/* What is in the text that arrived. */
typedef struct heard {
    uint64_t bytes, dropped; /* of the kernels' own text; of what the notices speak of */
    unsigned notices, torn;  /* lines that are neither */
} heard;

static heard sort_out(const listener *from) {
    heard all = {0};
    for (const char *line = from->text, *end; (end = strchr(line, '\n')); line = end + 1) {
        unsigned long long dropped;
        unsigned number;
        int length = 0;
        if (sscanf(line, "bulkhead: %llu bytes of kernel output were dropped", &dropped) == 1) {
            all.dropped += dropped;
            all.notices++;
        } else if (sscanf(line, "line %u%n", &number, &length) == 1 && line + length == end) {
            all.bytes += (uint64_t)(end + 1 - line);
        } else {
            all.torn++;
        }
    }
    return all;
}

static uint64_t bytes_of_lines(unsigned count) {
    uint64_t bytes = 0;
    char line[32];
    for (unsigned i = 0; i < count; i++)
        bytes += (uint64_t)snprintf(line, sizeof line, "line %u\n", i);
    return bytes;
}

static uint64_t counted(bh_device device) {
    return counters_of(device).print_dropped;
}

/* A GPU's driver keeps 1 MiB of a launch's text and drops the rest without a word, and takes long
 * to write it out. */
static bh_device open_limited(listener *to, uint64_t limit) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.print_limit = limit;
    bh_device device = open_device_with(&options);
    if (!is_cpu(device)) {
        CHECK_OK(bh_device_close(device));
        SKIP("a GPU's driver drops text by itself");
    }
    watch_for(device, BH_EVENT_PRINT, hear, to);
    return device;
}

static void print_lines(bh_device device, unsigned count) {
    CHECK_OK(run_now(get_kernel(load_module(device, ptx_printf), "say_many"), BH_GRID(count, 64),
                     BH_ARGS((uint32_t)count)));
}

/* The supervisor reads what a finished kernel printed a little later. Once this much was dropped,
 * no more than `limit` bytes can reach the callback, whenever they come. */
static void wait_until_bounded(bh_device device, uint64_t printed, uint64_t limit) {
    while (counted(device) < printed - limit) sleep_ms(1);
}

static void check_complete(bh_device device, const listener *to, uint64_t printed) {
    heard all = sort_out(to);
    CHECK_EQ(all.torn, 0);
    CHECK_GT(all.dropped, 0);
    CHECK_EQ(all.bytes + all.dropped, printed);
    CHECK_EQ(counted(device), all.dropped);
}

TEST_TIMEOUT(what_waits_for_a_slow_callback_is_bounded, 60) {
    static listener slow;
    bh_device device = open_limited(&slow, LIMIT);
    print_lines(device, LINES);
    CHECK_OK(bh_memory_trim(device, 0, NULL)); /* the device itself goes on */
    wait_until_bounded(device, bytes_of_lines(LINES), LIMIT);
    atomic_store(&slow.open, true);
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_LE(slow.length, LIMIT + NOTICE);
    CHECK_GT(sort_out(&slow).notices, 0);
    check_complete(device, &slow, bytes_of_lines(LINES));

    size_t before = heard_so_far(&slow);
    bh_kernel say = get_kernel(load_module(device, ptx_printf), "say");
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_STR_EQ(slow.text + before, "a=1 b=2\n");
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(each_gap_is_reported_in_its_place_and_lines_stay_whole, 60) {
    static listener slow = {.open = true, .pause_ms = 5};
    bh_device device = open_limited(&slow, 20000);
    print_lines(device, LINES);
    CHECK_OK(bh_device_sync(device, LONG_NS));
    check_complete(device, &slow, bytes_of_lines(LINES));
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(a_mebibyte_waits_where_no_limit_is_set, 60) {
    enum { MANY = 150000 };
    static listener slow;
    bh_device device = open_limited(&slow, 0);
    print_lines(device, 2 * MANY);
    wait_until_bounded(device, bytes_of_lines(2 * MANY), 1 << 20);
    atomic_store(&slow.open, true);
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_LE(slow.length, (1 << 20) + NOTICE);
    CHECK_GT(slow.length, (1 << 20) - (64 << 10));
    check_complete(device, &slow, bytes_of_lines(2 * MANY));
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(text_without_ends_of_lines_is_bounded_too, 60) {
    static listener slow;
    bh_device device = open_limited(&slow, LIMIT);
    bh_kernel dots = get_kernel(load_module(device, ptx_dots), "dots");
    CHECK_OK(run_now(dots, BH_GRID(4 * LIMIT, 64), BH_NO_ARGS));
    wait_until_bounded(device, 4 * LIMIT, LIMIT);
    atomic_store(&slow.open, true);
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_LE(slow.length, LIMIT + NOTICE);
    uint64_t dots_heard = 0, dropped = 0;
    for (const char *at = slow.text; *at; at++) {
        unsigned long long count;
        dots_heard += *at == '.';
        if (*at != '\n') continue;
        REQUIRE(sscanf(at, "\nbulkhead: %llu bytes", &count) == 1);
        dropped += count;
        at = strchr(at + 1, '\n');
        REQUIRE(at != NULL);
    }
    CHECK_GT(dropped, 0);
    CHECK_EQ(dots_heard + dropped, 4 * LIMIT);
    size_t before = heard_so_far(&slow);
    CHECK_OK(run_now(dots, BH_GRID(4, 4), BH_NO_ARGS));
    CHECK_OK(bh_device_sync(device, LONG_NS));
    CHECK_STR_EQ(slow.text + before, "....");
    CHECK_OK(bh_device_close(device));
}

/* Nobody missed it: it was not asked for. */
TEST(text_without_a_callback_is_not_counted_as_dropped) {
    bh_device device = open_device();
    print_lines(device, LINES);
    CHECK_EQ(counted(device), 0);
    CHECK_OK(bh_device_close(device));
}
