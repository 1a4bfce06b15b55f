/* SPDX-License-Identifier: Apache-2.0 */
/* Values for parameters and fields: a good one, and each kind of bad one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/call.h"
#include "test.h"

typedef unsigned long long ull;

/* ---- memory that arguments point to ---- */

enum { SCRATCH = 1 << 16, DATA = 1 << 21 };
static _Alignas(64) unsigned char scratch[SCRATCH];
static size_t scratch_used;
/* Longer than any number below 2^31 in the lists. Zeros, a NUL behind each string. */
static _Alignas(64) unsigned char data[DATA];
static _Alignas(64) unsigned char outputs[MAX_ARGUMENTS][OUT_BYTES];
enum { UNTOUCHED = 0x5a };

static void *scratch_take(size_t bytes) {
    scratch_used = (scratch_used + 15) & ~(size_t)15;
    REQUIRE(bytes <= SCRATCH - scratch_used);
    void *at = scratch + scratch_used;
    scratch_used += bytes;
    memset(at, 0, bytes);
    return at;
}

/* ---- the call as text ---- */

typedef struct maker {
    call *call;
    unsigned argument;
    unsigned depth; /* in structs */
} maker;

__attribute__((format(printf, 2, 3))) static void say(maker *m, const char *format, ...) {
    size_t used = strlen(m->call->text);
    va_list list;
    va_start(list, format);
    vsnprintf(m->call->text + used, TEXT_BYTES - used, format, list);
    va_end(list);
}

/* ---- lists of bad values ---- */

static const uint64_t numbers[] = {0,
                                   1,
                                   2,
                                   3,
                                   5,
                                   7,
                                   8,
                                   12,
                                   13,
                                   16,
                                   27,
                                   32,
                                   63,
                                   65,
                                   255,
                                   4096,
                                   65535,
                                   65536,
                                   65537,
                                   INT32_MAX,
                                   UINT64_C(1) << 31,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   (UINT64_C(1) << 61) + 1,
                                   (UINT64_C(1) << 62) + 1,
                                   INT64_MAX,
                                   UINT64_C(1) << 63,
                                   UINT64_MAX - 63,
                                   UINT64_MAX - 3,
                                   UINT64_MAX};
static const uint64_t small_numbers[] = {0, 1, 3};
/* Of a grid or block: a few, and more than any device has. */
static const uint64_t dimensions[] = {0, 1, 3, UINT64_C(1) << 31, UINT32_MAX};
static const uint64_t deadlines[] = {0, INT64_MAX, UINT64_MAX};
/* Of arrays: none, one, and more than there can be. */
static const uint64_t counts[] = {0, 1, (UINT64_C(1) << 60) + 1, UINT64_C(1) << 63, UINT64_MAX};
static const uint32_t sizes[] = {0, 1, 4, 7, 4097, UINT32_MAX};

static const struct {
    const char *text, *code;
} texts[] = {{NULL, "NULL"},
             {"", "\"\""},
             {"%s%n%d%1000000c", "\"%s%n%d%1000000c\""},
             {"\xff\xfe\x80 \xc3(", "\"\\xff\\xfe\\x80 \\xc3(\""},
             {"two\nlines\r\t\x01", "\"two\\nlines\\r\\t\\x01\""},
             {"/nowhere/at/all", "\"/nowhere/at/all\""},
             {".", "\".\""},
             {NULL, "a_mebibyte_of_n"}};

#define LENGTH(list) ((unsigned)(sizeof(list) / sizeof *(list)))

static const char *long_text(void) {
    static char text[(1 << 20) + 1];
    if (!*text) memset(text, 'n', sizeof text - 1);
    return text;
}

/* ---- how many there are ---- */

static unsigned layout_variants(const layout *of) {
    unsigned all = 1 + (of->sized ? LENGTH(sizes) : 0);
    for (size_t i = 0; i < of->count; i++) all += variants(&of->slots[i]) - 1;
    return all;
}

/* Whether a struct that is filled in is read too: it names memory or objects, or is an array of
 * entries that say how long they are. */
static bool is_read(const layout *of) {
    bool named = !of->sized && of->count > 2;
    for (size_t i = 0; i < of->count; i++)
        named |= of->slots[i].sort == HANDLE || of->slots[i].sort == IN_STRUCT;
    return named;
}

static unsigned out_variants(const layout *of) {
    return is_read(of) ? layout_variants(of) : 1 + (of->sized ? LENGTH(sizes) : 0);
}

typedef struct list {
    const uint64_t *numbers;
    unsigned count;
} list;

static list list_of(const slot *of) {
    if (of->sort == NUMBER) return (list){numbers, LENGTH(numbers)};
    if (of->sort == COUNT) return (list){counts, LENGTH(counts)};
    if (strstr(of->name, "_ns")) return (list){deadlines, LENGTH(deadlines)};
    if (strlen(of->name) == 1) return (list){dimensions, LENGTH(dimensions)};
    return (list){small_numbers, LENGTH(small_numbers)};
}

unsigned variants(const slot *of) {
    switch (of->sort) {
    case NUMBER:
    case SMALL:
    case COUNT:
        return 1 + list_of(of).count;
    case HANDLE:
        return 6;
    case STRUCT:
        return layout_variants(of->extra);
    case IN_STRUCT:
        return 2 + layout_variants(of->extra);
    case OUT_STRUCT:
        return 2 + out_variants(of->extra);
    case IN_TEXT:
        return 1 + LENGTH(texts);
    case IN_DATA:
    case OUT_DATA:
        return 4;
    case IN_FDS:
        return 5;
    case OUT_WORD:
        return 3;
    case OUT_TEXT:
    case IN_TEXTS:
    case IN_NUMBERS:
    case CALLBACK:
        return 2;
    case BYTES:
    case ARGUMENT:
        return 3;
    default:
        return 1;
    }
}

/* ---- one value ---- */

static void put_number(maker *m, const slot *of, uint64_t value, void *at) {
    memcpy(at, &value, of->size < sizeof value ? of->size : sizeof value);
    say(m, "%llu", (ull)value);
}

static void put_handle(maker *m, const slot *of, unsigned variant, void *at) {
    const char *type = of->extra;
    const bool is_buffer = strcmp(type, "bh_buffer") == 0;
    const uint64_t ids[] = {world_handle(type, GOOD),
                            0,
                            UINT64_C(0xdeadbeef00c0ffee),
                            world_handle(type, CLOSED),
                            world_handle(is_buffer ? "bh_lane" : "bh_buffer", GOOD),
                            world_handle(type, FOREIGN)};
    static const char *const names[] = {"good",   "zero",       "made_up",
                                        "closed", "other_kind", "of_another_device"};
    memcpy(at, &ids[variant], sizeof *ids);
    say(m, "%s_%s", names[variant], type + 3);
}

static void put_pointer(maker *m, const void *value, void *at, const char *code) {
    memcpy(at, &value, sizeof value);
    say(m, "%s", code);
}

static void put_text(maker *m, const slot *of, unsigned variant, void *at) {
    if (variant == 0) {
        put_pointer(m, world_text(m->call->function->name, of->name), at, "good_text");
        return;
    }
    bool is_long = variant == LENGTH(texts);
    put_pointer(m, is_long ? long_text() : texts[variant - 1].text, at, texts[variant - 1].code);
}

static void put_data(maker *m, const slot *of, unsigned variant, void *at) {
    char *own = world_memory(m->call->function->name, of->name);
    switch (variant) {
    case 0:
        put_pointer(m, own ? own : (char *)data, at, own ? "good_memory" : "data");
        break;
    case 1:
        put_pointer(m, NULL, at, "NULL");
        break;
    case 2: /* not aligned, and not the beginning of what the library gave out */
        put_pointer(m, (own ? own : (char *)data) + 1, at, own ? "good_memory + 1" : "data + 1");
        break;
    default:
        put_pointer(m, data + DATA / 2, at, "other_memory");
    }
}

static void put_descriptors(maker *m, unsigned variant, void *at) {
    static const int wrong[][2] = {{-1, -1}, {0, 0}, {1000000, 1000001}};
    static const char *const codes[] = {"(int[]){-1, -1}", "(int[]){0, 0}",
                                        "(int[]){1000000, 1000001}"};
    if (variant == 0)
        put_pointer(m, world_descriptors(), at, "good_fds");
    else if (variant == 1)
        put_pointer(m, NULL, at, "NULL");
    else
        put_pointer(m, wrong[variant - 2], at, codes[variant - 2]);
}

static void put_bytes(maker *m, const slot *of, unsigned variant, void *at) {
    if (variant) memset(at, variant == 1 ? 0xff : '%', of->size);
    say(m, "%s", variant == 0 ? "{0}" : variant == 1 ? "all_ones" : "percent_signs");
}

static unsigned char *output(maker *m) {
    if (m->depth) return scratch_take(4096);
    unsigned char *at = outputs[m->argument];
    memset(at, UNTOUCHED, OUT_BYTES);
    m->call->written[m->argument] = at;
    return at;
}

static void put_output(maker *m, unsigned variant, void *at) {
    if (variant == 1)
        put_pointer(m, NULL, at, "NULL");
    else
        put_pointer(m, output(m) + (variant == 2), at, variant ? "out + 1" : "out");
}

static void put_slot(maker *m, const slot *of, unsigned variant, void *at);

/* ---- structs ---- */

/* A good one, in which `variant` says what is wrong: its size, or a field. */
static void put_layout(maker *m, const layout *of, unsigned variant, unsigned char *at) {
    uint32_t bytes = (uint32_t)of->bytes;
    if (of->sized) memcpy(at, &bytes, sizeof bytes);
    world_struct(of->name, at);
    m->depth++;
    say(m, "{good");
    if (variant && of->sized && variant <= LENGTH(sizes)) {
        memcpy(at, &sizes[variant - 1], sizeof *sizes);
        say(m, ", .size = %u", sizes[variant - 1]);
    } else if (variant) {
        variant -= of->sized ? LENGTH(sizes) : 0;
        const slot *field = of->slots;
        while (variant >= variants(field)) variant -= variants(field++) - 1;
        say(m, ", .%s = ", field->name);
        put_slot(m, field, variant, at + field->offset);
    }
    say(m, "}");
    m->depth--;
}

static void put_in_struct(maker *m, const layout *of, unsigned variant, void *at) {
    if (variant == 1) {
        put_pointer(m, NULL, at, "NULL");
        return;
    }
    unsigned char *made = scratch_take(of->bytes < 4096 ? 4096 : of->bytes);
    size_t shift = variant == 2; /* not aligned: for x86 alone, see put_slot */
    memcpy(at, &(unsigned char *){made + shift}, sizeof made);
    say(m, "%s&(%s)", shift ? "1 + (char *)" : "", of->name);
    put_layout(m, of, variant <= 2 ? 0 : variant - 2, made + shift);
}

static void put_out_struct(maker *m, const layout *of, unsigned variant, void *at) {
    if (variant == 1) {
        put_pointer(m, NULL, at, "NULL");
        return;
    }
    unsigned char *made = output(m) + (variant == 2);
    uint32_t bytes = (uint32_t)of->bytes;
    put_pointer(m, made, at, "&out ");
    if (of->sized && !is_read(of) && variant < 3) memcpy(made, &bytes, sizeof bytes);
    if (is_read(of) || variant > 2) put_layout(m, of, variant <= 2 ? 0 : variant - 2, made);
}

/* ---- any of them ---- */

/* Pointers that are not aligned are the program's mistake. On x86 they do no harm, which is
 * checked; a sanitizer would report them. */
static bool takes_unaligned(void) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(BULKHEAD_SANITIZED)
    return true;
#else
    return false;
#endif
}

static void put_slot(maker *m, const slot *of, unsigned variant, void *at) {
    bool may_be_unaligned = of->sort == IN_STRUCT || of->sort == OUT_STRUCT || of->sort == OUT_WORD;
    if (variant == 2 && may_be_unaligned && !takes_unaligned()) variant = 0;
    switch (of->sort) {
    case NUMBER:
    case SMALL:
    case COUNT:
        put_number(m, of, variant ? list_of(of).numbers[variant - 1] : of->good, at);
        break;
    case HANDLE:
        put_handle(m, of, variant, at);
        break;
    case STRUCT:
        say(m, "(%s)", ((const layout *)of->extra)->name);
        put_layout(m, of->extra, variant, at);
        break;
    case IN_STRUCT:
        put_in_struct(m, of->extra, variant, at);
        break;
    case OUT_STRUCT:
        put_out_struct(m, of->extra, variant, at);
        break;
    case IN_DATA:
    case OUT_DATA:
        put_data(m, of, variant, at);
        break;
    case OUT_WORD:
    case OUT_TEXT:
        put_output(m, variant, at);
        break;
    case IN_TEXT:
        put_text(m, of, variant, at);
        break;
    case IN_NUMBERS:
        put_pointer(m, variant ? NULL : data, at, variant ? "NULL" : "zeros");
        break;
    case IN_TEXTS:
        put_pointer(m, variant ? scratch_take(64) : NULL, at, variant ? "nulls" : "NULL");
        break;
    case IN_FDS:
        put_descriptors(m, variant, at);
        break;
    case CALLBACK: {
        void (*callback)(void) = variant ? NULL : of->callback;
        memcpy(at, &callback, sizeof callback);
        say(m, "%s", variant ? "NULL" : "callback");
        break;
    }
    case CONTEXT:
        put_pointer(m, NULL, at, "NULL");
        break;
    default:
        put_bytes(m, of, variant, at);
    }
}

void call_make(call *self, const function *what, const unsigned *variant) {
    self->function = what;
    self->text[0] = 0;
    scratch_used = 0;
    maker m = {.call = self};
    say(&m, "%s(", what->name);
    for (unsigned i = 0; i < what->count; i++) {
        m.argument = i;
        self->written[i] = NULL;
        self->pointers[i] = self->values[i];
        memset(self->values[i], 0, VALUE_BYTES);
        REQUIRE(what->slots[i].size <= VALUE_BYTES);
        put_slot(&m, &what->slots[i], variant[i], self->values[i]);
        say(&m, "%s", i + 1 < what->count ? ", " : "");
    }
    say(&m, ");");
}

bool call_untouched(const call *self, unsigned argument) {
    const unsigned char *at = self->written[argument];
    const slot *of = &self->function->slots[argument];
    if (!at || of->sort == OUT_TEXT) return true;
    /* Structs were given their good fields: what is behind them, and handles and tickets whole. */
    const layout *its = of->sort == OUT_STRUCT ? of->extra : NULL;
    size_t from = its && (its->sized || its->count > 2) ? its->bytes + 1 : 0;
    for (size_t i = from; i < OUT_BYTES; i++)
        if (at[i] != UNTOUCHED) return false;
    return true;
}
