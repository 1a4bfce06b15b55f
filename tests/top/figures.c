/* SPDX-License-Identifier: Apache-2.0 */
/* The message with a device's figures, names in the folder, the page for Prometheus. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../harness/test.h"
#include "figures/figures.h"

static bh__figures *example(void) {
    bh__figures *f = calloc(1, sizeof *f);
    f->process.pid = 42;
    f->device.slot = 3;
    f->counters.losses = 7;
    f->lane_count = 2;
    f->lanes[1].index = 1;
    f->lanes[1].launches = 99;
    f->tag_count = 1;
    strcpy(f->tags[0].tag, "weights \"x\"");
    f->tags[0].bytes = 1234;
    f->kernel_count = 1;
    strcpy(f->kernels[0].name, "saxpy");
    strcpy(f->process.program, "prog\nram");
    strcpy(f->process.version, "1.2.3");
    strcpy(f->device.kind, "cpu");
    return f;
}

TEST(a_message_reads_back_as_it_was_written) {
    bh__figures *f = example(), *g = malloc(sizeof *g);
    char message[BH__FIGURES_MESSAGE_MAX];
    size_t bytes = bh__figures_pack(f, message, sizeof message);
    REQUIRE(bytes > 0);
    REQUIRE(bh__figures_unpack(message, bytes, g) == NULL);
    CHECK_EQ(g->process.pid, 42);
    CHECK_EQ(g->device.slot, 3u);
    CHECK_EQ(g->counters.losses, 7u);
    CHECK_EQ(g->lane_count, 2u);
    CHECK_EQ(g->lanes[1].launches, 99u);
    CHECK_STR_EQ(g->tags[0].tag, "weights \"x\"");
    CHECK_STR_EQ(g->kernels[0].name, "saxpy");
    free(f);
    free(g);
}

TEST(the_largest_message_has_room) {
    bh__figures *f = calloc(1, sizeof *f);
    f->lane_count = BH__FIGURES_LANES;
    f->loss_count = BH__FIGURES_LOSSES;
    f->tag_count = BH__FIGURES_TAGS;
    f->kernel_count = BH__FIGURES_KERNELS;
    char message[BH__FIGURES_MESSAGE_MAX];
    CHECK(bh__figures_pack(f, message, sizeof message) > 0);
    CHECK_EQ(bh__figures_pack(f, message, 5000), 0u);
    free(f);
}

TEST(every_cut_and_every_wrong_length_is_refused) {
    bh__figures *f = example(), *g = malloc(sizeof *g);
    char message[BH__FIGURES_MESSAGE_MAX], copy[BH__FIGURES_MESSAGE_MAX];
    size_t bytes = bh__figures_pack(f, message, sizeof message);
    for (size_t cut = 0; cut < bytes; cut++) CHECK(bh__figures_unpack(message, cut, g) != NULL);
    for (size_t at = 0; at < 24; at++) {
        memcpy(copy, message, bytes);
        copy[at] ^= 0x40;
        if (bh__figures_unpack(copy, bytes, g) == NULL) FAIL("byte %zu changed is not seen", at);
    }
    free(f);
    free(g);
}

/* A section of a later version is longer, one of an earlier version shorter. */
TEST(sections_of_other_versions_are_taken_as_far_as_they_go) {
    bh__figures *f = example(), *g = malloc(sizeof *g);
    char message[BH__FIGURES_MESSAGE_MAX], other[BH__FIGURES_MESSAGE_MAX + 64];
    size_t bytes = bh__figures_pack(f, message, sizeof message), used = 16, changed = 0;
    memcpy(other, message, 16);
    for (size_t at = 16; at < bytes;) {
        uint32_t head[2];
        memcpy(head, message + at, sizeof head);
        uint32_t size = head[1];
        if (head[0] == 5 && changed++ == 0) head[1] += 64; /* counters */
        memcpy(other + used, head, sizeof head);
        memcpy(other + used + 8, message + at + 8, size);
        memset(other + used + 8 + size, 0xff, head[1] - size);
        used += 8 + head[1];
        at += 8 + size;
    }
    uint64_t length = used;
    memcpy(other + 8, &length, sizeof length);
    REQUIRE(bh__figures_unpack(other, used, g) == NULL);
    CHECK_EQ(g->counters.losses, 7u);
    CHECK_EQ(g->lane_count, 2u);
    CHECK_EQ(g->lanes[1].launches, 99u);
    free(f);
    free(g);
}

TEST(names_are_taken_only_as_they_are_written) {
    bh__offer offer = {1234, 567890, 2, false}, read;
    char name[BH__OFFER_NAME];
    bh__offer_name(&offer, name);
    CHECK_STR_EQ(name, "1234-567890-2");
    REQUIRE(bh__offer_parse(name, &read));
    CHECK_EQ(read.pid, 1234);
    CHECK_EQ(read.start, 567890u);
    CHECK_EQ(read.slot, 2u);
    static const char *const wrong[] = {"",
                                        ".",
                                        "..",
                                        "1234",
                                        "1-2",
                                        "1-2-3x",
                                        "01-2-3",
                                        "-1-2-3",
                                        "1-2-3-4",
                                        "+1-2-3",
                                        " 1-2-3",
                                        "1- 2-3",
                                        "0-2-3",
                                        "1-2--3",
                                        "..1-2-3",
                                        "1-2-3\n",
                                        "999999999999999-1-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (bh__offer_parse(wrong[i], &read)) FAIL("\"%s\" was taken", wrong[i]);
    CHECK(bh__offer_parse(".1-2-3", &read) && read.fresh);
}

TEST(a_process_has_a_start) {
    uint64_t own = bh__started_at(getpid());
    CHECK(own > 0);
    CHECK_EQ(own, bh__started_at(getpid()));
    CHECK_EQ(bh__started_at(0x3ffffffe), 0u);
}

TEST(a_page_labels_every_sample_with_its_process) {
    bh__figures *f = example();
    const bh__figures *list[] = {f, f};
    static char page[1 << 20];
    bh__page to = {.out = page, .room = sizeof page};
    bh__page_write(&to, list, 1, NULL);
    REQUIRE(to.length < sizeof page);
    CHECK_STR_CONTAINS(page, "bulkhead_compiles_total{pid=\"42\",program=\"prog?ram\"} 0\n");
    CHECK_STR_CONTAINS(page, "bulkhead_losses_total{device=\"cpu:0\",compartment=\"3\",pid=\"42\","
                             "program=\"prog?ram\"} 7\n");
    CHECK_STR_CONTAINS(page, "tag=\"weights \\\"x\\\"\"} 1234\n");
    free(f);
}

TEST(the_folders_are_looked_for_in_order) {
    char paths[BH__RUNTIME_PATHS][BH__RUNTIME_PATH], expected[64], long_path[600];
    unsetenv("BULKHEAD_RUNTIME_DIR");
    setenv("XDG_RUNTIME_DIR", "/run/x", 1);
    REQUIRE_EQ(bh__runtime_paths(paths), 3u);
    CHECK_STR_EQ(paths[0], "/run/x/bulkhead");
    snprintf(expected, sizeof expected, "/run/user/%u/bulkhead", (unsigned)geteuid());
    CHECK_STR_EQ(paths[1], expected);
    snprintf(expected, sizeof expected, "/tmp/bulkhead-%u", (unsigned)geteuid());
    CHECK_STR_EQ(paths[2], expected);
    setenv("XDG_RUNTIME_DIR", "run/x", 1);
    CHECK_EQ(bh__runtime_paths(paths), 2u);
    memset(long_path, 'a', sizeof long_path - 1);
    long_path[0] = '/';
    long_path[sizeof long_path - 1] = '\0';
    setenv("XDG_RUNTIME_DIR", long_path, 1);
    CHECK_EQ(bh__runtime_paths(paths), 2u);
    snprintf(expected, sizeof expected, "/run/user/%u", (unsigned)geteuid());
    setenv("XDG_RUNTIME_DIR", expected, 1);
    CHECK_EQ(bh__runtime_paths(paths), 2u);
    setenv("BULKHEAD_RUNTIME_DIR", "/only", 1);
    REQUIRE_EQ(bh__runtime_paths(paths), 1u);
    CHECK_STR_EQ(paths[0], "/only/bulkhead");
    setenv("BULKHEAD_RUNTIME_DIR", "only", 1);
    CHECK_EQ(bh__runtime_paths(paths), 0u);
}
