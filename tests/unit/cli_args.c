/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of kernel arguments on the command line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "test.h"

/* The elements of a buffer argument as text, separated by spaces. */
static const char *values_of(const char *text) {
    static char out[4096];
    bh__arg arg;
    bh_error error;
    if (bh__arg_parse(text, &arg, &error) != BH_OK) {
        snprintf(out, sizeof out, "%s: %s", bh_status_name(error.status), error.message);
        return out;
    }
    size_t length = 0;
    for (uint64_t i = 0; i < arg.count; i++) {
        char number[BH__VALUE_TEXT];
        const unsigned char *element = arg.data + i * bh_type_size(arg.type);
        bh__value_format(arg.type, bh__value_load(element, arg.type), number);
        length +=
            (size_t)snprintf(out + length, sizeof out - length, "%s%s", i > 0 ? " " : "", number);
    }
    bh__arg_free(&arg);
    return out;
}

static void check_refused(const char *text, bh_status status, const char *contains) {
    bh__arg arg;
    bh_error error;
    memset(&error, 0, sizeof error);
    bh_status got = bh__arg_parse(text, &arg, &error);
    if (got == BH_OK) {
        FAIL("%s was taken", text);
        bh__arg_free(&arg);
        return;
    }
    if (got != status) FAIL("%s: %s", text, bh_status_name(got));
    CHECK_STR_CONTAINS(error.message, contains);
    CHECK(error.fix[0] != '\0');
    CHECK(arg.data == NULL);
}

static const char *make_file(const char *name, const void *data, size_t size) {
    static char path[512];
    test_path(path, sizeof path, "%s/%s", test_tmp_dir(), name);
    FILE *file = fopen(path, "wb");
    REQUIRE(file != NULL);
    REQUIRE_EQ(fwrite(data, 1, size, file), size);
    REQUIRE_EQ(fclose(file), 0);
    return path;
}

TEST(scalars) {
    CHECK_STR_EQ(values_of("f32:2.5"), "2.5");
    CHECK_STR_EQ(values_of("i32:-7"), "-7");
    CHECK_STR_EQ(values_of("u64:0x10"), "16");
    check_refused("i8:300", BH_E_INVALID, "-128 to 127");
    check_refused("f32:", BH_E_INVALID, "missing");
    check_refused("f32:1,2", BH_E_INVALID, "not a number of type f32");
}

TEST(lists_mix_all_forms) {
    CHECK_STR_EQ(values_of("in:i32:1,2,3*4,0..5"), "1 2 3 3 3 3 0 1 2 3 4");
    CHECK_STR_EQ(values_of("inout:f32:0.5*2,-1..2,1e3"), "0.5 0.5 -1 0 1 1000");
    CHECK_STR_EQ(values_of("in:u8:250..256"), "250 251 252 253 254 255");
    CHECK_STR_EQ(values_of("in:i8:-128..-125"), "-128 -127 -126");
    CHECK_STR_EQ(values_of("in:f16:0.5..3"), "0.5 1.5 2.5");
    CHECK_STR_EQ(values_of("in:u64:18446744073709551613..18446744073709551615"),
                 "18446744073709551613 18446744073709551614");
    CHECK_STR_EQ(values_of("in:f64:nan,inf,-inf"), "nan inf -inf");
    CHECK_STR_EQ(values_of("in:i32:7,0*0,8,3..3"), "7 8");
}

TEST(wrong_lists_are_refused) {
    check_refused("in:f32:", BH_E_INVALID, "missing");
    check_refused("in:f32:1,,2", BH_E_INVALID, "missing");
    check_refused("in:f32:1,", BH_E_INVALID, "missing");
    check_refused("in:i32:5..2", BH_E_INVALID, "before it begins");
    check_refused("in:f32:5..2", BH_E_INVALID, "before it begins");
    check_refused("in:f32:0..inf", BH_E_INVALID, "not finite");
    check_refused("in:f64:1e300..2e300", BH_E_INVALID, "2^53");
    check_refused("in:f16:65000..70000", BH_E_INVALID, "largest");
    check_refused("in:i32:3..3", BH_E_INVALID, "no elements");
    check_refused("in:u8:0..257", BH_E_INVALID, "0 to 255");
    check_refused("in:u8:-1..3", BH_E_INVALID, "0 to 255");
    check_refused("in:i32:1*x", BH_E_INVALID, "\"x\"");
    check_refused("in:i32:1*-1", BH_E_INVALID, "\"-1\"");
    check_refused("in:i32:0..5*2", BH_E_INVALID, "0..5");
    check_refused("in:i32:1..", BH_E_INVALID, "missing");
    check_refused("in:i32:..5", BH_E_INVALID, "missing");
}

TEST(absurd_counts_take_no_memory) {
    check_refused("in:f32:1*99999999999999", BH_E_NO_HOST_MEMORY, "memory");
    check_refused("in:f64:1*18446744073709551615", BH_E_NO_HOST_MEMORY, "memory");
    check_refused("in:u64:1,1*18446744073709551615", BH_E_NO_HOST_MEMORY, "memory");
    check_refused("in:i64:0..9223372036854775807", BH_E_NO_HOST_MEMORY, "memory");
    check_refused("in:f64:-9007199254740992..9007199254740992", BH_E_NO_HOST_MEMORY, "memory");
    check_refused("out:f64:18446744073709551615", BH_E_INVALID, "2^64");
    check_refused("out:f64:99999999999999999999", BH_E_INVALID, "count");
}

TEST(outputs) {
    bh__arg arg;
    bh_error error;
    REQUIRE_EQ(bh__arg_parse("out:f32:99999999999999", &arg, &error), BH_OK);
    CHECK_EQ(arg.kind, BH__ARG_BUFFER);
    CHECK_EQ(arg.access, BH_ACCESS_OUT);
    CHECK_EQ(arg.count, UINT64_C(99999999999999));
    CHECK(arg.data == NULL && arg.out_path == NULL);
    REQUIRE_EQ(bh__arg_parse("out:bf16:8:@a:b.npy", &arg, &error), BH_OK);
    CHECK_EQ(arg.type, BH_BF16);
    CHECK_STR_EQ(arg.out_path, "a:b.npy");
    check_refused("out:f32", BH_E_INVALID, "not an output buffer");
    check_refused("out:f32:", BH_E_INVALID, "count");
    check_refused("out:f32:0", BH_E_INVALID, "count");
    check_refused("out:f32:-1", BH_E_INVALID, "count");
    check_refused("out:f32:8:file", BH_E_INVALID, "not an output buffer");
    check_refused("out:f32:8:@", BH_E_INVALID, "not an output buffer");
    check_refused("out:x32:8", BH_E_INVALID, "not an output buffer");
}

TEST(bytes_and_null) {
    bh__arg arg;
    bh_error error;
    REQUIRE_EQ(bh__arg_parse("bytes:0000803fFf", &arg, &error), BH_OK);
    CHECK_EQ(arg.kind, BH__ARG_BYTES);
    CHECK_EQ(arg.count, 5u);
    CHECK_MEM_EQ(arg.data, "\x00\x00\x80\x3f\xff", 5);
    bh__arg_free(&arg);
    REQUIRE_EQ(bh__arg_parse("null", &arg, &error), BH_OK);
    CHECK_EQ(arg.kind, BH__ARG_NULL);
    check_refused("bytes:", BH_E_INVALID, "hexadecimal");
    check_refused("bytes:123", BH_E_INVALID, "hexadecimal");
    check_refused("bytes:zz", BH_E_INVALID, "hexadecimal");
}

TEST(unknown_forms_get_a_suggestion) {
    bh__arg arg;
    bh_error error;
    CHECK_EQ(bh__arg_parse("f23:1", &arg, &error), BH_E_INVALID);
    CHECK_STR_CONTAINS(error.fix, "did you mean f32?");
    CHECK_EQ(bh__arg_parse("inuot:f32:1", &arg, &error), BH_E_INVALID);
    CHECK_STR_CONTAINS(error.fix, "did you mean inout?");
    check_refused("5", BH_E_INVALID, "no type");
    check_refused("", BH_E_INVALID, "no type");
    check_refused("zebra:1", BH_E_INVALID, "not a type");
    check_refused("in:", BH_E_INVALID, "neither");
    check_refused("in:5", BH_E_INVALID, "neither");
    check_refused("in:x:1", BH_E_INVALID, "neither");
}

TEST(raw_files) {
    char text[600];
    snprintf(text, sizeof text, "in:u16:@%s", make_file("raw.bin", "\x01\x00\x02\x01", 4));
    CHECK_STR_EQ(values_of(text), "1 258");
    snprintf(text, sizeof text, "in:u64:@%s", make_file("raw.bin", "\x01\x00\x02\x01", 4));
    check_refused(text, BH_E_INVALID, "multiple");
    snprintf(text, sizeof text, "in:u8:@%s", make_file("empty.bin", "", 0));
    check_refused(text, BH_E_INVALID, "no elements");
    snprintf(text, sizeof text, "in:u8:@%s", test_tmp_dir());
    check_refused(text, BH_E_IO, "directory");
    check_refused("in:u8:@/no/such/file", BH_E_NOT_FOUND, "/no/such/file");
    check_refused("in:/no/such/file.npy", BH_E_NOT_FOUND, "/no/such/file.npy");
    check_refused("in:u8:@", BH_E_NOT_FOUND, "cannot be read");
}

TEST(npy_files) {
    char header[BH__NPY_HEADER], file[BH__NPY_HEADER + 8], text[600];
    bh__npy_header(BH_U16, 3, header);
    memcpy(file, header, sizeof header);
    memcpy(file + sizeof header, "\x01\x00\x80\x3f\x03\x00", 6);
    const char *path = make_file("three.npy", file, sizeof header + 6);
    snprintf(text, sizeof text, "in:%s", path);
    CHECK_STR_EQ(values_of(text), "1 16256 3");
    snprintf(text, sizeof text, "inout:u16:@%s", path);
    CHECK_STR_EQ(values_of(text), "1 16256 3");
    snprintf(text, sizeof text, "in:bf16:@%s", path);
    CHECK_STR_EQ(values_of(text), "9e-41 1 3e-40");
    snprintf(text, sizeof text, "in:i16:@%s", path);
    check_refused(text, BH_E_INVALID, "holds u16 elements, the argument says i16");
    snprintf(text, sizeof text, "in:%s", make_file("short.npy", file, sizeof header + 5));
    check_refused(text, BH_E_IO, "its header says 3 elements, it has 2");
    snprintf(text, sizeof text, "in:%s", make_file("text.npy", "hello, world", 12));
    check_refused(text, BH_E_IO, "not a valid NumPy file");

    bh__npy_header(BH_BF16, 2, header);
    memcpy(file, header, sizeof header);
    path = make_file("brain.npy", file, sizeof header + 4);
    snprintf(text, sizeof text, "in:%s", path);
    check_refused(text, BH_E_INVALID, "without a type");
    snprintf(text, sizeof text, "in:bf16:@%s", path);
    CHECK_STR_EQ(values_of(text), "9e-41 1");
    snprintf(text, sizeof text, "in:f32:@%s", path);
    check_refused(text, BH_E_INVALID, "raw 2-byte");
}

TEST(mutated_arguments_are_taken_or_refused) {
    static const char *const seeds[] = {
        "in:f32:1,2.5*3,0..4", "out:f16:12:@x.npy",      "bytes:00ff",
        "i64:-12345",          "inout:u8:0x10,7*2,1..3", "bf16:nan"};
    uint32_t state = 99;
    for (int round = 0; round < 50000; round++) {
        char text[64];
        snprintf(text, sizeof text, "%s", seeds[round % 6]);
        size_t length = strlen(text);
        for (int change = 0; change < 2; change++) {
            state = state * 1664525 + 1013904223;
            text[(state >> 8) % length] = ":,*..-+x09efinb@"[(state >> 4) % 16];
        }
        bh__arg arg;
        bh_error error;
        if (bh__arg_parse(text, &arg, &error) == BH_OK)
            bh__arg_free(&arg);
        else
            REQUIRE(error.message[0] != '\0' && error.fix[0] != '\0' && arg.data == NULL);
    }
}
