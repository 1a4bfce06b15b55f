/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of NumPy files, good and bad. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "test.h"

/* A file with this header and `data_size` zero bytes, in memory of exactly its size. */
static bh__bytes make(int version, const char *dict, size_t data_size) {
    size_t length = strlen(dict), start = version == 1 ? 10 : 12;
    bh__bytes file = {calloc(1, start + length + data_size), start + length + data_size};
    REQUIRE(file.data != NULL);
    memcpy(file.data, "\x93NUMPY", 6);
    file.data[6] = (unsigned char)version;
    file.data[8] = (unsigned char)length;
    file.data[9] = (unsigned char)(length >> 8);
    memcpy(file.data + start, dict, length);
    return file;
}

static bh_status parse(int version, const char *dict, size_t data_size, bh__npy *out,
                       bh_error *error) {
    bh__bytes file = make(version, dict, data_size);
    bh_status status = bh__npy_parse("a.npy", &file, out, error);
    free(file.data);
    return status;
}

TEST(headers_of_all_versions_are_read) {
    bh__npy npy;
    bh_error error;
    for (int version = 1; version <= 3; version++) {
        const char *dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n";
        REQUIRE_EQ(parse(version, dict, 24, &npy, &error), BH_OK);
        CHECK_EQ(npy.type, BH_F32);
        CHECK_EQ(npy.count, 6u);
        CHECK_EQ(npy.offset, (version == 1 ? 10 : 12) + strlen(dict));
    }
    CHECK_EQ(
        parse(4, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 4, &npy, &error),
        BH_E_IO);
    CHECK_EQ(
        parse(0, "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n", 4, &npy, &error),
        BH_E_IO);
}

TEST(types_and_shapes) {
    static const struct {
        const char *descr;
        bh_type type;
    } types[] = {{"|i1", BH_I8},  {"|u1", BH_U8},  {"|b1", BH_U8},  {"<i2", BH_I16},
                 {"<u2", BH_U16}, {"<i4", BH_I32}, {"<u4", BH_U32}, {"<i8", BH_I64},
                 {"<u8", BH_U64}, {"<f2", BH_F16}, {"=f4", BH_F32}, {"f8", BH_F64},
                 {">u1", BH_U8}};
    bh__npy npy;
    bh_error error;
    char dict[200];
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        snprintf(dict, sizeof dict, "{\"shape\":(1L,), 'descr':'%s','fortran_order':False}",
                 types[i].descr);
        CHECK_EQ(parse(1, dict, 8, &npy, &error), BH_OK);
        CHECK_EQ(npy.type, types[i].type);
    }
    CHECK_EQ(parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': ()}", 4, &npy, &error),
             BH_OK);
    CHECK_EQ(npy.count, 1u);
    CHECK_EQ(parse(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0)}", 0, &npy, &error),
             BH_OK);
    CHECK_EQ(npy.count, 0u);
    CHECK_EQ(parse(1, "{'descr': '<f4', 'fortran_order': True, 'shape': (4, 1)}", 16, &npy, &error),
             BH_OK);
    CHECK_EQ(parse(2, "{'descr': '|V2', 'fortran_order': False, 'shape': (2,)}", 4, &npy, &error),
             BH_OK);
    CHECK_EQ(npy.type, 0);
    CHECK_EQ(npy.raw_size, 2u);
}

TEST(what_cannot_be_used_says_why) {
    static const struct {
        const char *dict;
        bh_status status;
        const char *message;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (1,)}", BH_E_UNSUPPORTED, "big-endian"},
        {"{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", BH_E_UNSUPPORTED, "<c8"},
        {"{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", BH_E_UNSUPPORTED, "|O"},
        {"{'descr': [('a','<f4')], 'fortran_order': False, 'shape': (1,)}", BH_E_UNSUPPORTED,
         "structured"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2,2)}", BH_E_UNSUPPORTED, "Fortran"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (9,)}", BH_E_IO,
         "its header says 9 elements"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296,4294967296,2)}", BH_E_IO,
         "2^64"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", BH_E_IO,
         "not a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", BH_E_IO, "not a size"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1", BH_E_IO, "end"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': 1}", BH_E_IO, "tuple"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}", BH_E_IO, "True nor False"},
        {"{'descr': '<f4', 'shape': (1,)}", BH_E_IO, "lacks"},
        {"{'descr': '<f4', 'fortran_order': False, 'color': 'red'}", BH_E_IO, "unknown key"},
        {"{'descr': '<f4444444444444444444444444444444444444444'}", BH_E_IO, "type"},
        {"{'descr", BH_E_IO, "key"},
        {"", BH_E_IO, "dict"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bh__npy npy;
        bh_error error;
        memset(&error, 0, sizeof error);
        if (parse(1, cases[i].dict, 16, &npy, &error) != cases[i].status) FAIL("%s", cases[i].dict);
        CHECK_STR_CONTAINS(error.message, cases[i].message);
        CHECK(error.fix[0] != '\0');
    }
}

TEST(every_prefix_of_a_file_is_refused) {
    bh__bytes whole = make(2, "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", 8);
    bh__npy npy;
    bh_error error;
    CHECK_EQ(bh__npy_parse("a.npy", &whole, &npy, &error), BH_OK);
    for (size_t size = 0; size < whole.size; size++) {
        bh__bytes part = {malloc(size + 1), size};
        memcpy(part.data, whole.data, size);
        if (bh__npy_parse("a.npy", &part, &npy, &error) != BH_E_IO) FAIL("%zu bytes", size);
        free(part.data);
    }
    free(whole.data);
}

TEST(what_is_written_is_read) {
    for (bh_type type = BH_I8; type <= BH_F64; type++) {
        char header[BH__NPY_HEADER];
        size_t length = bh__npy_header(type, UINT64_C(2), header);
        CHECK_EQ(length % 64, 0u);
        CHECK_EQ(header[length - 1], '\n');
        unsigned char bytes[BH__NPY_HEADER + 16] = {0};
        memcpy(bytes, header, length);
        bh__bytes file = {bytes, sizeof bytes};
        bh__npy npy;
        bh_error error;
        REQUIRE_EQ(bh__npy_parse("a.npy", &file, &npy, &error), BH_OK);
        CHECK_EQ(npy.type, type == BH_BF16 ? 0 : type);
        CHECK_EQ(npy.count, 2u);
        CHECK_EQ(npy.offset, length);
    }
    char longest[BH__NPY_HEADER];
    CHECK_EQ(bh__npy_header(BH_F64, UINT64_MAX, longest), (size_t)BH__NPY_HEADER);
    CHECK_STR_CONTAINS((longest[BH__NPY_HEADER - 1] = '\0', longest + 10), "18446744073709551615");
}

TEST(mutated_headers_are_taken_or_refused) {
    bh__bytes whole = make(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", 8);
    uint32_t state = 12345;
    for (int round = 0; round < 100000; round++) {
        bh__bytes copy = {malloc(whole.size), whole.size};
        memcpy(copy.data, whole.data, whole.size);
        for (int change = 0; change < 3; change++) {
            state = state * 1664525 + 1013904223;
            size_t at = 6 + (state >> 8) % (whole.size - 6);
            copy.data[at] = (unsigned char)"{}(),:'\"0919L<>|fiuV2 TF\0\xff"[(state >> 3) % 27];
        }
        bh__npy npy = {0, 0, 0, 0};
        bh_error error;
        if (bh__npy_parse("a.npy", &copy, &npy, &error) == BH_OK) {
            size_t element = npy.type != 0 ? bh_type_size(npy.type) : npy.raw_size;
            REQUIRE(npy.offset <= copy.size && npy.count <= (copy.size - npy.offset) / element);
        } else {
            REQUIRE(error.message[0] != '\0' && error.fix[0] != '\0');
        }
        free(copy.data);
    }
    free(whole.data);
}
