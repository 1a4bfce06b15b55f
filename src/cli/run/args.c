/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing a kernel's arguments on the command line: scalars, buffers, bytes, null. */
#include "../cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char all_forms[] = "\"bulkhead help run\" shows every form";

/* ---- lists of values ---- */

typedef struct list {
    bh_type type;
    size_t element; /* bytes */
    unsigned char *data;
    uint64_t count;
    uint64_t capacity;
    bh_error *error;
} list;

static bh_status too_many(const list *values) {
    char limit[BH__TEXT];
    bh__report_set(values->error, BH_E_NO_HOST_MEMORY,
                   "the values need more than the %s of memory of this machine",
                   bh__text_size(bh__memory_limit(), limit));
    return bh__report_fix(values->error, "use fewer values");
}

/* Makes room for `more` elements. */
static bh_status reserve(list *values, uint64_t more) {
    uint64_t max = bh__memory_limit() / values->element;
    if (more > max || values->count > max - more) return too_many(values);
    uint64_t needed = values->count + more;
    if (needed <= values->capacity) return BH_OK;
    uint64_t capacity = values->capacity * 2 > needed ? values->capacity * 2 : needed;
    unsigned char *grown = realloc(values->data, capacity * values->element);
    if (grown == NULL) return too_many(values);
    values->data = grown;
    values->capacity = capacity;
    return BH_OK;
}

static void append(list *values, uint64_t bits) {
    bh__value_store(values->data + values->count * values->element, values->type, bits);
    values->count++;
}

/* Copies what it has appended so far, which doubles each time. */
static void append_times(list *values, uint64_t bits, uint64_t times) {
    if (times == 0) return;
    unsigned char *first = values->data + values->count * values->element;
    append(values, bits);
    for (uint64_t done = 1; done < times;) {
        uint64_t now = done < times - done ? done : times - done;
        memcpy(first + done * values->element, first, now * values->element);
        done += now;
        values->count += now;
    }
}

static bh_status add_repeated(list *values, const char *item, size_t star, size_t length) {
    uint64_t bits, times;
    bh_status status = bh__value_parse(values->type, item, star, &bits, values->error);
    if (status != BH_OK) return status;
    if (!bh__count_parse(item + star + 1, length - star - 1, &times)) {
        size_t shown = length - star - 1 < 60 ? length - star - 1 : 60;
        bh__report_set(values->error, BH_E_INVALID, "\"%.*s\" is not a repeat count", (int)shown,
                       item + star + 1);
        return bh__report_fix(values->error, "write VALUE*TIMES, for example 0*1024");
    }
    status = reserve(values, times);
    if (status == BH_OK) append_times(values, bits, times);
    return status;
}

static bh_status wrong_range(const list *values, const char *item, size_t length,
                             const char *what) {
    bh__report_set(values->error, BH_E_INVALID, "the range %.*s %s",
                   (int)(length < 60 ? length : 60), item, what);
    return bh__report_fix(values->error, "write A..B for A, A+1, ... B-1, for example 0..5");
}

static bh_status add_float_range(list *values, const char *item, size_t dots, size_t length) {
    uint64_t from_bits, to_bits;
    bh_status status = bh__value_parse(BH_F64, item, dots, &from_bits, values->error);
    if (status == BH_OK)
        status =
            bh__value_parse(BH_F64, item + dots + 2, length - dots - 2, &to_bits, values->error);
    if (status != BH_OK) return status;
    double from, to;
    memcpy(&from, &from_bits, sizeof from);
    memcpy(&to, &to_bits, sizeof to);
    if (!isfinite(from) || !isfinite(to))
        return wrong_range(values, item, length, "has an end that is not finite");
    if (from > to) return wrong_range(values, item, length, "ends before it begins");
    const double exact = 9007199254740992.0; /* 2^53: above it, x + 1 may equal x */
    if (from < -exact || to > exact) return wrong_range(values, item, length, "exceeds 2^53");
    uint64_t count = (uint64_t)(to - from);
    count += from + (double)count < to;
    status = reserve(values, count);
    for (uint64_t i = 0; status == BH_OK && i < count; i++) {
        uint64_t bits;
        if (!bh__value_from_double(values->type, from + (double)i, &bits))
            return wrong_range(values, item, length, "exceeds the largest value of its type");
        append(values, bits);
    }
    return status;
}

/* Parses one end of a range as an element, which also produces the error message. */
static bh_status check_end(const list *values, bh_type wide, uint64_t bits) {
    char text[BH__VALUE_TEXT];
    uint64_t ignored;
    bh__value_format(wide, bits, text);
    return bh__value_parse(values->type, text, strlen(text), &ignored, values->error);
}

static bh_status add_integer_range(list *values, const char *item, size_t dots, size_t length) {
    bool negative = item[0] == '-' || item[dots + 2] == '-';
    bh_type wide = negative || values->type != BH_U64 ? BH_I64 : BH_U64;
    uint64_t from, to;
    bh_status status = bh__value_parse(wide, item, dots, &from, values->error);
    if (status == BH_OK)
        status = bh__value_parse(wide, item + dots + 2, length - dots - 2, &to, values->error);
    if (status != BH_OK) return status;
    if (wide == BH_I64 ? (int64_t)from > (int64_t)to : from > to)
        return wrong_range(values, item, length, "ends before it begins");
    if (from == to) return BH_OK;
    status = check_end(values, wide, from);
    if (status == BH_OK) status = check_end(values, wide, to - 1);
    if (status == BH_OK) status = reserve(values, to - from);
    for (uint64_t value = from; status == BH_OK && value != to; value++) append(values, value);
    return status;
}

static bh_status add_item(list *values, const char *item, size_t length) {
    const char *star = memchr(item, '*', length);
    if (star != NULL) return add_repeated(values, item, (size_t)(star - item), length);
    const char *dots = memmem(item, length, "..", 2);
    if (dots != NULL && bh__type_is_float(values->type))
        return add_float_range(values, item, (size_t)(dots - item), length);
    if (dots != NULL) return add_integer_range(values, item, (size_t)(dots - item), length);
    uint64_t bits;
    bh_status status = bh__value_parse(values->type, item, length, &bits, values->error);
    if (status == BH_OK) status = reserve(values, 1);
    if (status == BH_OK) append(values, bits);
    return status;
}

static bh_status parse_list(bh_type type, const char *text, bh__arg *out, bh_error *error) {
    list values = {type, bh_type_size(type), NULL, 0, 0, error};
    for (;;) {
        size_t length = strcspn(text, ",");
        bh_status status = add_item(&values, text, length);
        if (status != BH_OK) {
            free(values.data);
            return status;
        }
        if (text[length] == '\0') break;
        text += length + 1;
    }
    out->data = values.data;
    out->count = values.count;
    return BH_OK;
}

/* ---- files ---- */

static bh_status take_npy(bh__arg *out, const char *path, bh__bytes *file, bh_error *error) {
    bh__npy npy;
    bh_status status = bh__npy_parse(path, file, &npy, error);
    if (status != BH_OK) return status;
    if (out->type == 0 && npy.type == 0) {
        bh__report_set(error, BH_E_INVALID, "%s has raw elements of %zu bytes, without a type",
                       path, npy.raw_size);
        return bh__report_fix(error, "name the type: in:bf16:@%s", path);
    }
    if (out->type == 0) out->type = npy.type;
    bool raw = npy.type == 0 && bh_type_size(out->type) == npy.raw_size;
    bool brain = out->type == BH_BF16 && npy.type == BH_U16;
    if (npy.type != out->type && !raw && !brain) {
        const char *held = npy.type != 0 ? bh_type_name(npy.type) : "raw 2-byte";
        bh__report_set(error, BH_E_INVALID, "%s holds %s elements, the argument says %s", path,
                       held, bh_type_name(out->type));
        return bh__report_fix(error, "write in:%s to use the file's type, or convert the file",
                              path);
    }
    memmove(file->data, file->data + npy.offset, npy.count * bh_type_size(out->type));
    out->count = npy.count;
    return BH_OK;
}

static bh_status take_raw(bh__arg *out, const char *path, const bh__bytes *file, bh_error *error) {
    size_t element = bh_type_size(out->type);
    if (file->size % element != 0) {
        bh__report_set(error, BH_E_INVALID,
                       "%s has %zu bytes, which is not a multiple of %zu, the size of %s", path,
                       file->size, element, bh_type_name(out->type));
        return bh__report_fix(error, "check the type in the argument, and the file");
    }
    out->count = file->size / element;
    return BH_OK;
}

/* If out->type is 0, the file is a .npy file, and its type is used. */
static bh_status parse_file(const char *path, bh__arg *out, bh_error *error) {
    bh__bytes file;
    bh_status status = bh__file_read(path, &file, error);
    if (status != BH_OK) return status;
    status =
        bh__npy_name(path) ? take_npy(out, path, &file, error) : take_raw(out, path, &file, error);
    if (status != BH_OK)
        free(file.data);
    else
        out->data = file.data;
    return status;
}

/* ---- forms ---- */

static bh_status parse_input(const char *body, bh__arg *out, bh_error *error) {
    const char *colon = strchr(body, ':');
    bh_status status;
    out->type = colon != NULL ? bh__type_find(body, (size_t)(colon - body)) : 0;
    if (out->type != 0 && colon[1] == '@') {
        status = parse_file(colon + 2, out, error);
    } else if (out->type != 0) {
        status = parse_list(out->type, colon + 1, out, error);
    } else if (bh__npy_name(body)) {
        status = parse_file(body, out, error);
    } else {
        bh__report_set(error, BH_E_INVALID, "\"%.200s\" names neither a type nor a .npy file",
                       out->text);
        return bh__report_fix(error, "write in:f32:1,2,3 or in:FILE.npy or in:f32:@FILE; %s",
                              all_forms);
    }
    if (status == BH_OK && out->count == 0) {
        bh__arg_free(out);
        bh__report_set(error, BH_E_INVALID, "\"%.200s\" has no elements", out->text);
        return bh__report_fix(error, "give the buffer at least one element, or pass null");
    }
    return status;
}

static bh_status parse_output(const char *body, bh__arg *out, bh_error *error) {
    const char *colon = strchr(body, ':');
    out->type = colon != NULL ? bh__type_find(body, (size_t)(colon - body)) : 0;
    const char *number = colon != NULL ? colon + 1 : "";
    size_t length = strcspn(number, ":");
    const char *rest = number + length;
    bool has_path = strncmp(rest, ":@", 2) == 0 && rest[2] != '\0';
    if (out->type == 0 || (rest[0] != '\0' && !has_path)) {
        bh__report_set(error, BH_E_INVALID, "\"%.200s\" is not an output buffer", out->text);
        return bh__report_fix(error, "write out:TYPE:COUNT or out:TYPE:COUNT:@FILE, for example "
                                     "out:f32:1024");
    }
    if (!bh__count_parse(number, length, &out->count) || out->count == 0) {
        bh__report_set(error, BH_E_INVALID, "\"%.*s\" is not a count of elements",
                       (int)(length < 60 ? length : 60), number);
        return bh__report_fix(error, "write a count of at least 1, for example out:f32:1024");
    }
    uint64_t bytes;
    if (__builtin_mul_overflow(out->count, (uint64_t)bh_type_size(out->type), &bytes)) {
        bh__report_set(error, BH_E_INVALID, "%llu elements of %s are more than 2^64 bytes",
                       (unsigned long long)out->count, bh_type_name(out->type));
        return bh__report_fix(error, "use a smaller count");
    }
    out->out_path = has_path ? rest + 2 : NULL;
    return BH_OK;
}

static bh_status parse_bytes(const char *hex, bh__arg *out, bh_error *error) {
    size_t length = strlen(hex);
    bool good = length > 0 && length % 2 == 0 && strspn(hex, "0123456789abcdefABCDEF") == length;
    if (!good) {
        bh__report_set(error, BH_E_INVALID, "\"%.60s\" is not a sequence of bytes in hexadecimal",
                       hex);
        return bh__report_fix(error, "write two digits per byte, lowest address first, for example "
                                     "bytes:0000803f");
    }
    out->count = length / 2;
    out->data = malloc(out->count);
    if (out->data == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for %zu bytes", length / 2);
        return bh__report_fix(error, "use fewer bytes");
    }
    for (size_t i = 0; i < length / 2; i++) {
        char pair[3] = {hex[2 * i], hex[2 * i + 1], '\0'};
        out->data[i] = (unsigned char)strtoul(pair, NULL, 16);
    }
    return BH_OK;
}

static bh_status parse_scalar(bh_type type, const char *text, bh__arg *out, bh_error *error) {
    uint64_t bits;
    bh_status status = bh__value_parse(type, text, strlen(text), &bits, error);
    if (status != BH_OK) return status;
    out->data = malloc(8);
    if (out->data == NULL) {
        bh__report_set(error, BH_E_NO_HOST_MEMORY, "no memory for 8 bytes");
        return bh__report_fix(error, "free some memory");
    }
    out->type = type;
    out->count = 1;
    bh__value_store(out->data, type, bits);
    return BH_OK;
}

static bh_status parse_unknown(const char *text, size_t head, bh_error *error) {
    static const char *const words[] = {"in",  "out",  "inout", "bytes", "null", "i8",
                                        "u8",  "i16",  "u16",   "i32",   "u32",  "i64",
                                        "u64", "bf16", "f16",   "f32",   "f64"};
    if (text[head] == '\0') {
        bh__report_set(error, BH_E_INVALID, "\"%.200s\" has no type", text);
        return bh__report_fix(error, "write TYPE:VALUE, for example f32:2.5; %s", all_forms);
    }
    char word[32];
    snprintf(word, sizeof word, "%.*s", (int)head, text);
    bh__report_set(error, BH_E_INVALID, "\"%.200s\" begins with \"%s\", which is not a type", text,
                   word);
    const char *nearest = bh__report_nearest(word, words, sizeof words / sizeof words[0]);
    if (nearest != NULL) return bh__report_fix(error, "did you mean %s? %s", nearest, all_forms);
    return bh__report_fix(error,
                          "use i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64, in, out, inout "
                          "or bytes");
}

bh_status bh__arg_parse(const char *text, bh__arg *out, bh_error *error) {
    memset(out, 0, sizeof *out);
    out->text = text;
    if (strcmp(text, "null") == 0) {
        out->kind = BH__ARG_NULL;
        return BH_OK;
    }
    size_t head = strcspn(text, ":");
    const char *body = text + head + (text[head] == ':');
    bh_type type = bh__type_find(text, head);
    if (text[head] == '\0') return parse_unknown(text, head, error);
    if (type != 0) {
        out->kind = BH__ARG_SCALAR;
        return parse_scalar(type, body, out, error);
    }
    out->kind = BH__ARG_BUFFER;
    if (strncmp(text, "in:", 3) == 0) {
        out->access = BH_ACCESS_IN;
        return parse_input(body, out, error);
    }
    if (strncmp(text, "inout:", 6) == 0) {
        out->access = BH_ACCESS_INOUT;
        return parse_input(body, out, error);
    }
    if (strncmp(text, "out:", 4) == 0) {
        out->access = BH_ACCESS_OUT;
        return parse_output(body, out, error);
    }
    if (strncmp(text, "bytes:", 6) == 0) {
        out->kind = BH__ARG_BYTES;
        return parse_bytes(body, out, error);
    }
    return parse_unknown(text, head, error);
}

void bh__arg_free(bh__arg *arg) {
    free(arg->data);
    arg->data = NULL;
}
