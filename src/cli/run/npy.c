/* SPDX-License-Identifier: Apache-2.0 */
/* NumPy's .npy files: reading headers of versions 1 to 3, writing version 1. */
#include "../cli.h"

#include <string.h>

static const char magic[6] = {'\x93', 'N', 'U', 'M', 'P', 'Y'};

bool bh__npy_is(const bh__bytes *file) {
    return file->size >= sizeof magic && memcmp(file->data, magic, sizeof magic) == 0;
}

bool bh__npy_name(const char *path) {
    size_t length = strlen(path);
    return length > 4 && strcmp(path + length - 4, ".npy") == 0;
}

/* The header is a Python dict; `at` moves through it and never passes `end`. */
typedef struct cursor {
    const char *path;
    const char *at;
    const char *end;
    bh_error *error;
} cursor;

static bh_status broken(const cursor *in, const char *what) {
    bh__report_set(in->error, BH_E_IO, "%s is not a valid NumPy file: %s", in->path, what);
    return bh__report_fix(in->error, "save the array again with numpy.save");
}

static void skip_space(cursor *in) {
    while (in->at < in->end && strchr(" \t\r\n", *in->at) != NULL && *in->at != '\0') in->at++;
}

static bool take(cursor *in, char c) {
    skip_space(in);
    if (in->at >= in->end || *in->at != c) return false;
    in->at++;
    return true;
}

static bool take_word(cursor *in, const char *word) {
    skip_space(in);
    size_t length = strlen(word);
    if ((size_t)(in->end - in->at) < length || memcmp(in->at, word, length) != 0) return false;
    in->at += length;
    return true;
}

/* Reads a quoted string without escapes. Fails if it does not fit. */
static bool take_string(cursor *in, char *out, size_t size) {
    skip_space(in);
    if (in->at >= in->end || (*in->at != '\'' && *in->at != '"')) return false;
    char quote = *in->at++;
    size_t length = 0;
    while (in->at < in->end && *in->at != quote) {
        if (length + 1 >= size) return false;
        out[length++] = *in->at++;
    }
    out[length] = '\0';
    return take(in, quote);
}

static bh_status take_shape(cursor *in, uint64_t *count, unsigned *wide) {
    if (!take(in, '(')) return broken(in, "its shape is not a tuple");
    bool empty = false;
    *count = 1;
    *wide = 0;
    while (!take(in, ')')) {
        skip_space(in);
        const char *start = in->at;
        while (in->at < in->end && *in->at >= '0' && *in->at <= '9') in->at++;
        uint64_t extent;
        if (!bh__count_parse(start, (size_t)(in->at - start), &extent))
            return broken(in, "its shape contains something that is not a size");
        take(in, 'L');
        empty |= extent == 0;
        *wide += extent > 1;
        if (extent != 0 && __builtin_mul_overflow(*count, extent, count))
            return broken(in, "its shape has more than 2^64 elements");
        if (!take(in, ',') && (in->at >= in->end || *in->at != ')'))
            return broken(in, "its shape does not end");
    }
    if (empty) *count = 0;
    return BH_OK;
}

static bh_status find_type(const cursor *in, const char *descr, bh__npy *out) {
    static const struct {
        const char *code;
        bh_type type;
    } types[] = {
        {"i1", BH_I8},  {"u1", BH_U8},  {"b1", BH_U8},  {"i2", BH_I16},
        {"u2", BH_U16}, {"i4", BH_I32}, {"u4", BH_U32}, {"i8", BH_I64},
        {"u8", BH_U64}, {"f2", BH_F16}, {"f4", BH_F32}, {"f8", BH_F64},
    };
    bool big = descr[0] == '>';
    const char *code = descr + (strchr("<>=|", descr[0]) != NULL && descr[0] != '\0');
    out->type = 0;
    out->raw_size = 0;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(code, types[i].code) == 0) out->type = types[i].type;
    if (strcmp(code, "V2") == 0) out->raw_size = 2;
    if (out->type == 0 && out->raw_size == 0) {
        bh__report_set(in->error, BH_E_UNSUPPORTED, "%s has elements of NumPy type \"%s\"",
                       in->path, descr);
        return bh__report_fix(in->error,
                              "convert it first, for example with .astype(numpy.float32)");
    }
    if (big && (out->raw_size != 0 || bh_type_size(out->type) > 1)) {
        bh__report_set(in->error, BH_E_UNSUPPORTED, "%s is big-endian (NumPy type \"%s\")",
                       in->path, descr);
        return bh__report_fix(in->error, "convert it first: a.astype(a.dtype.newbyteorder('<'))");
    }
    return BH_OK;
}

static bh_status parse_dict(cursor *in, bh__npy *out) {
    char key[32], descr[32] = "";
    bool has_order = false, fortran = false, has_shape = false;
    unsigned wide = 0;
    if (!take(in, '{')) return broken(in, "its header is not a dict");
    while (!take(in, '}')) {
        if (!take_string(in, key, sizeof key) || !take(in, ':'))
            return broken(in, "its header lacks a key");
        if (strcmp(key, "descr") == 0) {
            skip_space(in);
            if (in->at < in->end && *in->at == '[') {
                bh__report_set(in->error, BH_E_UNSUPPORTED, "%s has structured elements", in->path);
                return bh__report_fix(in->error, "save each field as a separate array");
            }
            if (!take_string(in, descr, sizeof descr))
                return broken(in, "its element type cannot be read");
        } else if (strcmp(key, "fortran_order") == 0) {
            fortran = take_word(in, "True");
            if (!fortran && !take_word(in, "False"))
                return broken(in, "its fortran_order is neither True nor False");
            has_order = true;
        } else if (strcmp(key, "shape") == 0) {
            bh_status status = take_shape(in, &out->count, &wide);
            if (status != BH_OK) return status;
            has_shape = true;
        } else {
            return broken(in, "its header has an unknown key");
        }
        if (!take(in, ',') && (in->at >= in->end || *in->at != '}'))
            return broken(in, "its header does not end");
    }
    if (descr[0] == '\0' || !has_order || !has_shape)
        return broken(in, "its header lacks descr, fortran_order or shape");
    if (fortran && wide > 1) {
        bh__report_set(in->error, BH_E_UNSUPPORTED, "%s is in Fortran order", in->path);
        return bh__report_fix(in->error, "save it with numpy.ascontiguousarray(a)");
    }
    return find_type(in, descr, out);
}

bh_status bh__npy_parse(const char *path, const bh__bytes *file, bh__npy *out, bh_error *error) {
    cursor in = {path, NULL, NULL, error};
    if (!bh__npy_is(file)) return broken(&in, "it does not begin with \\x93NUMPY");
    if (file->size < 10) return broken(&in, "it ends inside its header");
    const unsigned char *bytes = file->data;
    unsigned version = bytes[6];
    if (version < 1 || version > 3) return broken(&in, "its format version is not 1, 2 or 3");
    size_t start = version == 1 ? 10 : 12;
    if (file->size < start) return broken(&in, "it ends inside its header");
    size_t length = (size_t)bytes[8] | (size_t)bytes[9] << 8;
    if (version > 1) length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    if (file->size - start < length) return broken(&in, "it ends inside its header");
    in.at = (const char *)bytes + start;
    in.end = in.at + length;
    out->offset = start + length;
    bh_status status = parse_dict(&in, out);
    if (status != BH_OK) return status;
    size_t element = out->type != 0 ? bh_type_size(out->type) : out->raw_size;
    uint64_t room = (file->size - out->offset) / element;
    if (out->count > room) {
        bh__report_set(error, BH_E_IO,
                       "%s is truncated: its header says %llu elements, it has %llu", path,
                       (unsigned long long)out->count, (unsigned long long)room);
        return bh__report_fix(error, "save the array again with numpy.save");
    }
    return BH_OK;
}

size_t bh__npy_header(bh_type type, uint64_t count, char out[BH__NPY_HEADER]) {
    static const char *const codes[] = {
        [BH_I8] = "|i1",  [BH_U8] = "|u1",   [BH_I16] = "<i2", [BH_U16] = "<u2",
        [BH_I32] = "<i4", [BH_U32] = "<u4",  [BH_I64] = "<i8", [BH_U64] = "<u8",
        [BH_F16] = "<f2", [BH_BF16] = "<V2", [BH_F32] = "<f4", [BH_F64] = "<f8",
    };
    memset(out, ' ', BH__NPY_HEADER);
    memcpy(out, magic, sizeof magic);
    out[6] = 1;
    out[7] = 0;
    out[8] = BH__NPY_HEADER - 10;
    out[9] = 0;
    char dict[BH__NPY_HEADER - 10];
    int length =
        snprintf(dict, sizeof dict, "{'descr': '%s', 'fortran_order': False, 'shape': (%llu,), }",
                 codes[type], (unsigned long long)count);
    memcpy(out + 10, dict, (size_t)length);
    out[BH__NPY_HEADER - 1] = '\n';
    return BH__NPY_HEADER;
}
