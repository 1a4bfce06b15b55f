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

/* NULL: refused. */
static bh__module *parse(const description *from) {
    int fd = memfd_create("description", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ(write(fd, from, sizeof *from), sizeof *from);
    bh__module *module = calloc(1, sizeof *module);
    REQUIRE(module != NULL);
    module->image_fd = -1;
    bool sound = bh__module_parse(module, fd);
    close(fd);
    if (sound) return module;
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
