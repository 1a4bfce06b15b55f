/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of libraries: kinds are given once, rows are complete, and docs/libraries.md has
 * them. */
#include "library/operation.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bulkhead.h"
#include "test.h"

enum { PAGE_BYTES = 65536 };

static char made[PAGE_BYTES];
static size_t used;

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...) {
    va_list list;
    va_start(list, format);
    used += (size_t)vsnprintf(made + used, sizeof made - used, format, list);
    va_end(list);
    REQUIRE(used < sizeof made);
}

static void put_types(uint32_t types) {
    bool any = false;
    for (bh_type type = 1; type < 32; type++) {
        if (!(types & BH__TYPE_BIT(type))) continue;
        put("%s%s", any ? " " : "", bh_type_name(type));
        any = true;
    }
}

static void put_operand(const bh__operand *operand) {
    static const char *const accesses[] = {"", "in", "out", "inout"};
    put("`%s`", operand->name);
    if (operand->shape[0]) put(" %.2s", operand->shape);
    put(" %s", operand->scaled ? "beta" : accesses[operand->access]);
    if (operand->optional) put(", optional");
}

static void put_operation(const bh__operation *operation) {
    put("| `%s` | ", operation->name);
    for (uint32_t i = 0; i < operation->operand_count; i++) {
        if (i) put("; ");
        put_operand(&operation->operands[i]);
    }
    put(" | ");
    put_types(operation->types);
    put(" | %s%s%s |\n", operation->alpha ? "alpha" : "",
        operation->alpha && operation->beta ? ", " : "", operation->beta ? "beta" : "");
}

TEST(the_page_has_the_table) {
    char path[512];
    size_t size;
    for (uint32_t i = 0; i < BH__LIBRARIES; i++) {
        put("\n| operation | operands | types | numbers |\n|---|---|---|---|\n");
        for (uint32_t k = 0; k < bh__libraries[i].count; k++)
            put_operation(&bh__libraries[i].operations[k]);
    }
    put("\n");
    test_path(path, sizeof path, "%s/docs/libraries.md", test_source_dir());
    char *page = test_read_file(path, &size);
    const char *begin = strstr(page, "<!-- operations -->\n"), *end = strstr(page, "<!-- end -->");
    REQUIRE(begin != NULL && end != NULL);
    begin += strlen("<!-- operations -->\n");
    bool same = (size_t)(end - begin) == used && memcmp(begin, made, used) == 0;
    if (!same) printf("put this between the marks of docs/libraries.md:\n%s", made);
    CHECK(same);
    free(page);
}

TEST(kinds_and_names_are_given_once) {
    for (uint32_t i = 0; i < BH__LIBRARIES; i++) {
        const bh__library *library = &bh__libraries[i];
        CHECK(library->request_bytes <= 1024 && library->count > 0);
        for (uint32_t k = 0; k < library->count; k++) {
            const bh__operation *operation = &library->operations[k];
            uint32_t found = UINT32_MAX;
            CHECK(operation->kind >= BH__LIBRARY_KINDS && operation->types != 0);
            CHECK(operation->operand_count > 0 && operation->operand_count <= BH__OPERANDS);
            CHECK(bh__operation_find(operation->kind, &found) == operation && found == i);
            CHECK(strncmp(operation->name, library->name, strlen(library->name)) == 0);
            CHECK_EQ(operation->operands[0].type, BH__TYPE_SAME);
            for (uint32_t o = 0; o < operation->operand_count; o++) {
                const bh__operand *operand = &operation->operands[o];
                CHECK(operand->at + bh__operand_bytes(operand) <= library->request_bytes);
                CHECK(operand->access >= BH_ACCESS_IN && operand->access <= BH_ACCESS_INOUT);
            }
        }
    }
}

/* ---- regions ---- */

TEST(regions_of_matrices_are_where_their_elements_are) {
    bh__region region;
    bh_matrix matrix = bh_matrix_of((bh_buffer){0}, 3, 4);
    CHECK_EQ(bh__matrix_region(&matrix, 0, false, &region), BH__REGION_FITS);
    CHECK(region.span == 12 && bh__region_is_whole(&region));
    matrix.stride = 5;
    CHECK_EQ(bh__matrix_region(&matrix, 2, false, &region), BH__REGION_FITS);
    CHECK(region.span == 14 + 14 && !bh__region_is_whole(&region));
    matrix.batch_stride = 13; /* the second member begins in the last row of the first */
    CHECK_EQ(bh__matrix_region(&matrix, 2, false, &region), BH__REGION_OVERLAPS);
    CHECK_EQ(bh__matrix_region(&matrix, 2, true, &region), BH__REGION_FITS);
    matrix.stride = 8;
    matrix.batch_stride = 4; /* in the gaps of the first */
    CHECK_EQ(bh__matrix_region(&matrix, 2, false, &region), BH__REGION_FITS);
    CHECK_EQ(bh__matrix_region(&matrix, 3, false, &region), BH__REGION_OVERLAPS);
    matrix.batch_stride = BH_BATCH_SHARED;
    CHECK_EQ(bh__matrix_region(&matrix, 3, false, &region), BH__REGION_OVERLAPS);
    CHECK_EQ(bh__matrix_region(&matrix, 3, true, &region), BH__REGION_FITS);
    CHECK_EQ(region.span, 2 * 8 + 4);
}

TEST(regions_of_arrays_are_where_their_elements_are) {
    bh__region region;
    bh_array array = {.rank = 3, .extent = {2, 3, 4}};
    CHECK_EQ(bh__array_region(&array, 0, false, &region), BH__REGION_FITS);
    CHECK(region.span == 24 && bh__region_is_whole(&region));
    array.stride[0] = 1; /* in any order */
    array.stride[1] = 8;
    array.stride[2] = 2;
    CHECK_EQ(bh__array_region(&array, 0, false, &region), BH__REGION_FITS);
    CHECK(region.span == 24 && bh__region_is_whole(&region));
    array.stride[1] = 7; /* the rows overlap */
    CHECK_EQ(bh__array_region(&array, 0, false, &region), BH__REGION_OVERLAPS);
    CHECK_EQ(bh__array_region(&array, 0, true, &region), BH__REGION_FITS);
    array.stride[1] = 9;
    CHECK_EQ(bh__array_region(&array, 0, false, &region), BH__REGION_FITS);
    CHECK(region.span == 26 && !bh__region_is_whole(&region));
    array.extent[2] = UINT64_MAX;
    CHECK_EQ(bh__array_region(&array, 0, true, &region), BH__REGION_TOO_LARGE);
    array.rank = 9;
    CHECK_EQ(bh__array_region(&array, 0, true, &region), BH__REGION_TOO_LARGE);
}

/* Against counting every element. */
TEST(regions_that_meet_are_known_to) {
    for (uint64_t i = 0; i < 4096; i++) {
        bh__region a = {.first = i % 8,
                        .inner = 1 + i / 8 % 4,
                        .outer = 1 + i / 32 % 4,
                        .stride = 6,
                        .batch = 1};
        bh__region b = {
            .first = i / 128 % 16, .inner = 1 + i / 2048 * 2, .outer = 3, .stride = 6, .batch = 1};
        a.span = (a.outer - 1) * a.stride + a.inner;
        b.span = (b.outer - 1) * b.stride + b.inner;
        bool meet = false;
        for (uint64_t x = 0; x < a.inner * a.outer; x++) {
            uint64_t at = a.first + x / a.inner * a.stride + x % a.inner;
            for (uint64_t y = 0; y < b.inner * b.outer; y++)
                meet |= at == b.first + y / b.inner * b.stride + y % b.inner;
        }
        if (meet) CHECK(bh__regions_meet(&a, &b));
    }
}
