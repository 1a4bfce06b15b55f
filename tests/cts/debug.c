/* SPDX-License-Identifier: Apache-2.0 */
/* bh_kernel_debug: threads that are followed, and what becomes of the launch; the state at a
 * fault. */
#include "../support/support.h"

/* count(inout u32 p, u32 n): p[block] = 0 + 1 + ... + n - 1, by each block's first thread. */
static const char text[] =
    /* 1 */ ".version 8.0\n"
            /* 2 */ ".target sm_90\n"
            /* 3 */ ".address_size 64\n"
            /* 4 */ ".visible .entry count(.param .u64 p, .param .u32 n)\n"
            /* 5 */ "{ .reg .b64 %rd<4>; .reg .b32 %r<8>; .reg .pred %p;\n"
            /* 6 */ "ld.param.u64 %rd1, [p];\n"
            /* 7 */ "ld.param.u32 %r1, [n];\n"
            /* 8 */ "mov.u32 %r2, %ctaid.x;\n"
            /* 9 */ "mul.wide.u32 %rd2, %r2, 4;\n"
            /* 10 */ "add.u64 %rd3, %rd1, %rd2;\n"
            /* 11 */ "mov.u32 %r3, 0;\n"
            /* 12 */ "mov.u32 %r4, 0;\n"
            /* 13 */ "LOOP: setp.ge.u32 %p, %r3, %r1;\n"
            /* 14 */ "@%p bra DONE;\n"
            /* 15 */ "add.u32 %r4, %r4, %r3;\n"
            /* 16 */ "add.u32 %r3, %r3, 1;\n"
            /* 17 */ "bra LOOP;\n"
            /* 18 */ "DONE: bar.sync 0;\n"
            /* 19 */ "st.global.u32 [%rd3], %r4;\n"
            /* 20 */ "ret; }\n";

enum { BLOCKS = 8, THREADS = 64 };

typedef struct scene {
    bh_device device;
    bh_kernel count;
    bh_buffer sums;
    char *heard;
    size_t length;
} scene;

enum { HEARD = 4 << 20 };

static void hear(void *context, const bh_event *event) {
    scene *self = context;
    if (event->length >= HEARD - self->length) return;
    memcpy(self->heard + self->length, event->text, event->length);
    self->length += event->length;
}

static void scene_open(scene *self, uint32_t flags) {
    bh_device_options options = device_options(flags);
    self->heard = calloc(1, HEARD);
    REQUIRE(self->heard != NULL);
    self->length = 0;
    self->device = open_device_with(&options);
    self->count = get_kernel(load_module(self->device, text), "count");
    self->sums = words_filled(self->device, BLOCKS, 7);
    if (!is_cpu(self->device)) {
        bh_debug_options debug = BH_INIT(debug);
        CHECK_STATUS(bh_kernel_debug(self->count, &debug), BH_E_UNSUPPORTED);
        SKIP("only the CPU device follows threads");
    }
    watch_for(self->device, BH_EVENT_PRINT, hear, self);
}

static bh_status launch(scene *self, uint32_t n) {
    return run_now(self->count, BH_SHAPE(BLOCKS, 1, 1, THREADS, 1, 1),
                   BH_ARGS(BH_INOUT(self->sums), n));
}

/* All text has arrived when the device is closed. */
static void scene_close(scene *self) {
    CHECK_OK(bh_device_close(self->device));
}

static unsigned count_of(const scene *self, const char *what) {
    unsigned count = 0;
    for (const char *at = self->heard; (at = strstr(at, what)); at++) count++;
    return count;
}

TEST(values_are_printed_whenever_a_line_was_passed) {
    static scene self;
    scene_open(&self, 0);
    static const char *const prints[] = {"%r4@15", "%p@13"};
    bh_debug_options debug = BH_INIT(debug);
    debug.block[0] = 3;
    debug.threads = "1,33..35";
    debug.prints = prints;
    debug.print_count = 2;
    REQUIRE_OK(bh_kernel_debug(self.count, &debug));
    CHECK_OK(launch(&self, 4));
    CHECK(words_are(self.sums, BLOCKS, 6));
    CHECK_OK(bh_kernel_debug(self.count, NULL));
    CHECK_OK(launch(&self, 5));
    CHECK(words_are(self.sums, BLOCKS, 10));
    scene_close(&self);
    CHECK_STR_CONTAINS(self.heard, "thread 1, PTX line 15: %r4 = 0 (0x0)\n");
    CHECK_STR_CONTAINS(self.heard, "thread 34, PTX line 15: %r4 = 6 (0x6)\n");
    CHECK_EQ(count_of(&self, "PTX line 15: %r4"), 3 * 4);
    CHECK_EQ(count_of(&self, "PTX line 13: %p = false"), 3 * 4);
    CHECK_EQ(count_of(&self, "PTX line 13: %p = true"), 3);
    CHECK_EQ(count_of(&self, "\n"), 3 * 4 * 2 + 3);
}

TEST(every_instruction_of_a_thread_is_traced) {
    static scene self;
    scene_open(&self, 0);
    bh_debug_options debug = BH_INIT(debug);
    debug.flags = BH_DEBUG_TRACE;
    debug.threads = "63";
    REQUIRE_OK(bh_kernel_debug(self.count, &debug));
    CHECK_OK(launch(&self, 3));
    CHECK(words_are(self.sums, BLOCKS, 3));
    scene_close(&self);
    CHECK_EQ(count_of(&self, "\n"), 7 + 3 * 5 + 2 + 3);
    CHECK_EQ(count_of(&self, "thread 63, PTX line 15: `add.u32 %r4, %r4, %r3`"), 3);
    CHECK_STR_CONTAINS(self.heard, "with %r4 = 1 (0x1), %r3 = 2 (0x2) gives %r4 = 3 (0x3)\n");
    CHECK_STR_CONTAINS(self.heard, "`@%p bra DONE` with %p = true\n");
}

TEST(text_beyond_the_limit_is_left_out_and_the_kernel_ends) {
    static scene self;
    scene_open(&self, 0);
    bh_debug_options debug = BH_INIT(debug);
    debug.flags = BH_DEBUG_TRACE;
    debug.threads = "0..64";
    debug.text_limit = 10000;
    REQUIRE_OK(bh_kernel_debug(self.count, &debug));
    CHECK_OK(launch(&self, 5000));
    CHECK(words_are(self.sums, BLOCKS, 5000 * 4999 / 2));
    scene_close(&self);
    CHECK_LE(self.length, 10000 + 100);
    CHECK_EQ(count_of(&self, "... cut after"), 1);
}

TEST(a_launch_is_stopped_at_a_line) {
    static scene self;
    scene_open(&self, 0);
    if (has_queues(self.device)) SKIP("a failure in a queue has another meaning");
    bh_debug_options debug = BH_INIT(debug);
    debug.threads = "2,40";
    debug.stop = "19";
    REQUIRE_OK(bh_kernel_debug(self.count, &debug));
    bh_ticket ticket = submit(self.count, BH_SHAPE(BLOCKS, 1, 1, THREADS, 1, 1),
                              BH_ARGS(BH_INOUT(self.sums), 3u), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_CANCELLED);
    bh_error error;
    bh_ticket_error(ticket, &error);
    CHECK_STR_CONTAINS(error.message, "kernel \"count\" was stopped at PTX line 19");
    /* Other blocks may have written, or not. */
    CHECK(is_suspect(self.sums));
    CHECK_EQ(health_of(self.device).losses, 0);
    CHECK_OK(bh_kernel_debug(self.count, NULL));
    const uint32_t zero = 0;
    CHECK_OK(bh_buffer_fill(self.sums, 0, BLOCKS * sizeof zero, &zero, sizeof zero));
    CHECK_OK(launch(&self, 4));
    CHECK(words_are(self.sums, BLOCKS, 6));
    scene_close(&self);
    CHECK_EQ(count_of(&self, "stopped: block (0,0,0), thread ("), 1);
    CHECK_STR_CONTAINS(self.heard, "block (0,0,0), thread (2,0,0)\nin count, ");
    CHECK_STR_CONTAINS(self.heard, "block (0,0,0), thread (40,0,0)\nin count, ");
    CHECK_EQ(count_of(&self, "    %r4 = 3 (0x3)\n"), 2);
}

TEST(a_block_of_a_cluster_is_followed) {
    static scene self;
    if (strcmp(test_device(), "cpu") != 0) SKIP("only the CPU device checks");
    scene_open(&self, BH_DEVICE_CHECK);
    static const char *const prints[] = {"%r4@19"};
    bh_debug_options debug = BH_INIT(debug);
    debug.block[0] = 5;
    debug.prints = prints;
    debug.print_count = 1;
    REQUIRE_OK(bh_kernel_debug(self.count, &debug));
    bh_shape shape = BH_SHAPE(BLOCKS, 1, 1, THREADS, 1, 1);
    shape.cluster = (bh_dim){4, 1, 1};
    CHECK_OK(run_now(self.count, shape, BH_ARGS(BH_INOUT(self.sums), 5u)));
    CHECK(words_are(self.sums, BLOCKS, 10));
    scene_close(&self);
    CHECK_STR_EQ(self.heard, "thread 0, PTX line 19: %r4 = 10 (0xa)\n");
}

TEST(what_is_not_there_is_refused) {
    static scene self;
    scene_open(&self, 0);
    static const struct {
        const char *threads, *stop, *print, *message;
    } wrong[] = {
        {"", NULL, NULL, "threads is \"\""},
        {"1024", NULL, NULL, "not a list of numbers from 0 to 1023"},
        {"0..1025", NULL, NULL, "not a list of numbers"},
        {"1,", NULL, NULL, "not a list of numbers"},
        {"4294967296", NULL, NULL, "not a list of numbers"},
        {"0", "4", NULL, "there is no instruction on this line"},
        {"0", "x", NULL, "this is not a line"},
        {"0", ":9", NULL, "this is not a line"},
        {"0", "0", NULL, "this is not a line"},
        {"0", "count.cu:9", NULL, "there is no instruction on this line"},
        {"0", NULL, "@9", "there is no register and line"},
        {"0", NULL, "%r1", "there is no register and line"},
        {"0", NULL, "%r9@9", "there is no such register or variable"},
        {"0", NULL, "%r@9", "there is no such register or variable"},
        {"0", NULL, "%r7@9", "there is no such register or variable"}, /* nothing uses it */
        {"0", NULL, "%rd1@", "this is not a line"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        bh_debug_options debug = BH_INIT(debug);
        debug.threads = wrong[i].threads;
        debug.stop = wrong[i].stop;
        debug.prints = &wrong[i].print;
        debug.print_count = wrong[i].print != NULL;
        CHECK_STATUS(bh_kernel_debug(self.count, &debug), BH_E_INVALID);
        CHECK_STR_CONTAINS(bh_last_message(), wrong[i].message);
    }
    char *longest = malloc(100001);
    memset(longest, '7', 100000);
    longest[100000] = '\0';
    bh_debug_options debug = BH_INIT(debug);
    debug.stop = longest;
    CHECK_STATUS(bh_kernel_debug(self.count, &debug), BH_E_INVALID);
    free(longest);
    debug.stop = NULL;
    debug.flags = 8;
    CHECK_STATUS(bh_kernel_debug(self.count, &debug), BH_E_INVALID);
    CHECK_STR_CONTAINS(bh_last_message(), "bh_debug_options.flags is 0x8");
    debug.flags = 0;
    debug.reserved = 1;
    CHECK_STATUS(bh_kernel_debug(self.count, &debug), BH_E_UNSUPPORTED);
    scene_close(&self);
    CHECK_EQ(self.length, 0);
}

TEST(a_launch_without_the_threads_or_the_block_is_refused) {
    static scene self;
    scene_open(&self, 0);
    if (has_queues(self.device)) SKIP("a failure in a queue has another meaning");
    bh_debug_options debug = BH_INIT(debug);
    debug.threads = "64";
    CHECK_OK(bh_kernel_debug(self.count, &debug));
    CHECK_STATUS(launch(&self, 1), BH_E_LAUNCH);
    debug.threads = NULL;
    debug.block[2] = 1;
    CHECK_OK(bh_kernel_debug(self.count, &debug));
    CHECK_STATUS(launch(&self, 1), BH_E_LAUNCH);
    CHECK(words_are(self.sums, BLOCKS, 7));
    CHECK_EQ(health_of(self.device).losses, 0);
    scene_close(&self);
    CHECK_EQ(self.length, 0);
}

TEST(the_state_of_a_thread_that_faulted_is_known) {
    rig r = rig_open(0);
    char state[4096] = "";
    size_t length = 0;
    CHECK_STATUS(bh_device_get_fault_state(r.device, 0, state, sizeof state, &length),
                 BH_E_NOT_FOUND);
    CHECK_STATUS(run_now(rig_kernel(&r, "poke"), BH_GRID(1, 1), BH_ARGS(NOWHERE_FAR, 42u)),
                 BH_E_FAULT);
    REQUIRE_OK(bh_device_get_fault_state(r.device, 0, state, sizeof state, &length));
    CHECK_EQ(length, strlen(state));
    if (is_cpu(r.device) && !has_queues(r.device)) {
        CHECK_STR_CONTAINS(state, "block (0,0,0), thread (0,0,0)\nin poke, PTX line ");
        bh_kernel_info info = BH_INIT(info);
        REQUIRE_OK(bh_kernel_get_info(rig_kernel(&r, "poke"), &info));
        if (info.executor == BH_EXECUTOR_INTERPRETER) {
            CHECK_STR_CONTAINS(state, " = 0x500000000000\n");
            CHECK_STR_CONTAINS(state, " = 42 (0x2a)\n");
        } else {
            CHECK_STR_CONTAINS(state, "registers are not known: native code ran");
        }
        CHECK_STATUS(bh_device_get_fault_state(r.device, 0, state, 10, &length), BH_E_INVALID);
        static char report[65536];
        REQUIRE_OK(bh_device_get_report(r.device, 0, report, sizeof report, &length));
        CHECK_STR_CONTAINS(report, "state of the thread:\n  block (0,0,0), thread (0,0,0)\n");
    } else {
        CHECK_STR_EQ(state, "");
    }
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}
