/* SPDX-License-Identifier: Apache-2.0 */
/* src/client/module/module.c: what a worker says of a module is checked before it is believed. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/module/module.h"
#include "test.h"

typedef struct description {
    bh__module_blob head;
    bh__blob_variable variables[2];
    char names[8];
} description;

static description two_variables(uint64_t first, uint64_t second) {
    uint64_t names = offsetof(description, names);
    return (description){.head = {.magic = BH__BLOB_MAGIC,
                                  .variable_count = 2,
                                  .kernels_offset = sizeof(bh__module_blob),
                                  .variables_offset = offsetof(description, variables),
                                  .total_bytes = sizeof(description)},
                         .variables = {{.name_offset = names, .bytes = first},
                                       {.name_offset = names + 2, .bytes = second}},
                         .names = "a\0b"};
}

/* Whether it is taken; what was read of it is in the module either way. */
static bool parse_bytes(const void *from, size_t bytes, uint64_t image_bytes, bh__module **out) {
    int fd = memfd_create("description", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, from, bytes), bytes);
    bh__module *module = calloc(1, sizeof *module);
    REQUIRE(module != NULL);
    module->image_fd = -1;
    module->image_bytes = image_bytes;
    bool sound = bh__module_parse(module, fd);
    close(fd);
    *out = module;
    return sound;
}

/* NULL: refused. */
static bh__module *parse(const description *from) {
    bh__module *module;
    if (parse_bytes(from, sizeof *from, 0, &module)) return module;
    bh__module_delete(module);
    return NULL;
}

TEST(sizes_of_variables_are_added_up) {
    description sound = two_variables(12, 30);
    bh__module *module = parse(&sound);
    REQUIRE(module != NULL);
    CHECK_EQ(module->variable_bytes, 42);
    bh__module_delete(module);
}

TEST(sizes_that_cannot_be_added_are_refused) {
    description wild = two_variables(UINT64_MAX, 1);
    CHECK(parse(&wild) == NULL);
}

TEST(more_variables_than_the_description_has_room_for_are_refused) {
    description wild = two_variables(12, 30);
    wild.head.variable_count = UINT32_MAX;
    CHECK(parse(&wild) == NULL);
    wild = two_variables(12, 30);
    wild.variables[1].name_offset = sizeof wild;
    CHECK(parse(&wild) == NULL);
}

/* ---- descriptions that are small and name the same bytes again and again ---- */

enum { LARGE = 4 << 20, LARGE_IMAGE = LARGE / 64, KERNELS = 4000 };

/* Kernels that all have the name at `name`, and the parameters that fill the rest. */
static uint8_t *repeated(uint32_t kernels, uint64_t name, uint32_t params) {
    uint8_t *bytes = calloc(1, LARGE);
    REQUIRE(bytes != NULL);
    bh__module_blob head = {.magic = BH__BLOB_MAGIC,
                            .kernel_count = kernels,
                            .kernels_offset = sizeof head,
                            .variables_offset = sizeof head,
                            .total_bytes = LARGE};
    uint64_t end = sizeof head + (uint64_t)kernels * sizeof(bh__blob_kernel);
    memcpy(bytes, &head, sizeof head);
    for (uint32_t i = 0; i < kernels; i++) {
        bh__blob_kernel kernel = {
            .name_offset = name, .params_offset = (end + 7) & ~UINT64_C(7), .param_count = params};
        memcpy(bytes + sizeof head + i * sizeof kernel, &kernel, sizeof kernel);
    }
    return bytes;
}

/* Parameters are looked at one by one: those of all kernels together must fit. */
TEST(kernels_cannot_share_their_parameters) {
    uint32_t params = (LARGE / 2) / sizeof(bh__blob_param);
    uint8_t *bytes = repeated(KERNELS, LARGE - 8, params);
    bh__module *module;
    CHECK(!parse_bytes(bytes, LARGE, LARGE_IMAGE, &module));
    CHECK_LE(module->kernel_count * (uint64_t)params * sizeof(bh__blob_param), LARGE);
    bh__module_delete(module);
    free(bytes);
}

TEST(kernels_and_variables_cannot_share_a_long_name) {
    enum { NAME = 2 << 20 };
    uint8_t *bytes = repeated(KERNELS, NAME, 0);
    memset(bytes + NAME, 'a', LARGE - NAME - 1);
    bh__module *module;
    CHECK(!parse_bytes(bytes, LARGE, LARGE_IMAGE, &module));
    CHECK_LE(module->kernel_count * (uint64_t)(LARGE - NAME), LARGE);
    bh__module_delete(module);
    bytes[LARGE - 1] = 'a'; /* without an end */
    CHECK(!parse_bytes(bytes, LARGE, LARGE_IMAGE, &module));
    CHECK_EQ(module->kernel_count, 0);
    bh__module_delete(module);
    free(bytes);
}

/* Reports and logs show names. */
TEST(names_with_control_characters_are_refused) {
    static const char *const bad[] = {"\x1b", "\n", "\x7f", "\xc2\x9b", "\t"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        description wild = two_variables(12, 30);
        memcpy(wild.names, bad[i], strlen(bad[i]) + 1);
        wild.variables[1].name_offset = wild.variables[0].name_offset + 4;
        CHECK(parse(&wild) == NULL);
    }
    description sound = two_variables(12, 30);
    memcpy(sound.names, "\xc3\xa9\0b", 5);
    sound.variables[1].name_offset = sound.variables[0].name_offset + 3;
    bh__module *module = parse(&sound);
    REQUIRE(module != NULL);
    bh__module_delete(module);
}
