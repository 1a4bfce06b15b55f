/* SPDX-License-Identifier: Apache-2.0 */
/* Output of kernels: printf, with its arguments in device memory, and failed assertions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/run/exec.h"

#define MAX_WIDTH 4096
#define MAX_TEXT  ((size_t)1 << 20) /* of one printf */

typedef struct output {
    char *text;
    size_t length, capacity;
} output;

static void put(output *out, const char *text, size_t length) {
    if (length == 0) {
        return;
    }
    if (length > MAX_TEXT - out->length) {
        length = MAX_TEXT - out->length;
    }
    if (out->length + length > out->capacity) {
        size_t capacity = (out->length + length) * 2 + 256;
        char *grown = realloc(out->text, capacity);
        if (grown == NULL) {
            return;
        }
        out->text = grown;
        out->capacity = capacity;
    }
    memcpy(out->text + out->length, text, length);
    out->length += length;
}

/* A string in device memory, up to its NUL or the end of the range. NULL: not mapped. */
static const char *string_at(bh__ptx_exec *x, unsigned lane, uint64_t address, size_t *length) {
    uint64_t left;
    const char *s = (const char *)bh__ptx_at(x, lane, address, 1, false, &left);
    if (s != NULL) {
        *length = strnlen(s, left > MAX_TEXT ? MAX_TEXT : (size_t)left);
    }
    return s;
}

typedef struct reader { /* of the packed arguments */
    bh__ptx_exec *x;
    unsigned lane;
    uint64_t address;
    uint32_t taken;
    bool failed;
} reader;

static uint64_t take(reader *r, unsigned bytes) {
    r->address = (r->address + bytes - 1) & ~(uint64_t)(bytes - 1);
    const uint8_t *p = bh__ptx_at(r->x, r->lane, r->address, bytes, false, NULL);
    uint64_t v = 0;
    if (p == NULL) {
        if (!r->failed) {
            bh__ptx_fault_access(r->x, BH__PTX_FAULT_ADDRESS, r->lane, r->address, bytes, false,
                                 "printf argument");
        }
        r->failed = true;
        return 0;
    }
    memcpy(&v, p, bytes);
    r->address += bytes;
    r->taken++;
    return v;
}

typedef struct spec {
    char flags[8];
    int width, precision; /* -1: none */
    int size;             /* of an integer: 1, 2, 4 or 8 */
    char conversion;
} spec;

static const char *parse_number(const char *at, const char *end, reader *r, int *out) {
    if (at < end && *at == '*') {
        *out = (int)(int32_t)take(r, 4);
        return at + 1;
    }
    int n = 0;
    while (at < end && *at >= '0' && *at <= '9') {
        n = n < MAX_WIDTH ? n * 10 + (*at - '0') : n;
        at++;
    }
    *out = n;
    return at;
}

static const char *parse_spec(const char *at, const char *end, reader *r, spec *s) {
    *s = (spec){.width = -1, .precision = -1, .size = 4};
    size_t flags = 0;
    while (at < end && strchr("-+ #0", *at) != NULL && *at != 0) {
        if (flags < sizeof s->flags - 1 && strchr(s->flags, *at) == NULL) {
            s->flags[flags++] = *at;
        }
        at++;
    }
    if (at < end && (*at == '*' || (*at >= '0' && *at <= '9'))) {
        at = parse_number(at, end, r, &s->width);
        if (s->width < 0) { /* a negative width from an argument aligns to the left */
            s->width = s->width < -MAX_WIDTH ? MAX_WIDTH : -s->width;
            if (flags < sizeof s->flags - 1 && strchr(s->flags, '-') == NULL) {
                s->flags[flags++] = '-';
            }
        }
    }
    if (at < end && *at == '.') {
        at = parse_number(at + 1, end, r, &s->precision);
        s->precision = s->precision < 0 ? -1 : s->precision;
    }
    for (; at < end && *at != 0 && strchr("hlzjtLq", *at) != NULL; at++) {
        s->size = *at == 'h' ? (s->size == 2 ? 1 : 2) : 8;
    }
    s->width = s->width > MAX_WIDTH ? MAX_WIDTH : s->width;
    s->precision = s->precision > MAX_WIDTH ? MAX_WIDTH : s->precision;
    s->conversion = at < end ? *at++ : 0;
    return at;
}

static int64_t narrowed(uint64_t v, int size) {
    switch (size) {
    case 1:
        return (int8_t)v;
    case 2:
        return (int16_t)v;
    case 4:
        return (int32_t)v;
    default:
        return (int64_t)v;
    }
}

static void put_formatted(output *out, reader *r, const spec *s) {
    char format[32], buffer[2 * MAX_WIDTH + 512];
    int precision = s->precision, width = s->width < 0 ? 0 : s->width, n = 0;
    unsigned bytes = s->size == 8 ? 8 : 4;
    switch (s->conversion) {
    case 'd':
    case 'i':
        snprintf(format, sizeof format, "%%%s*.*lld", s->flags);
        n = snprintf(buffer, sizeof buffer, format, width, precision,
                     (long long)narrowed(take(r, bytes), s->size));
        break;
    case 'u':
    case 'x':
    case 'X':
    case 'o': {
        uint64_t v = take(r, bytes);
        v = s->size == 8 ? v : v & (UINT64_MAX >> (64 - 8 * s->size));
        snprintf(format, sizeof format, "%%%s*.*ll%c", s->flags, s->conversion);
        n = snprintf(buffer, sizeof buffer, format, width, precision, (unsigned long long)v);
        break;
    }
    case 'c':
        snprintf(format, sizeof format, "%%%s*c", s->flags);
        n = snprintf(buffer, sizeof buffer, format, width, (int)(unsigned char)take(r, 4));
        break;
    case 'p':
        snprintf(format, sizeof format, "%%%s*p", s->flags);
        n = snprintf(buffer, sizeof buffer, format, width, (void *)(uintptr_t)take(r, 8));
        break;
    default: {
        uint64_t bits = take(r, 8);
        double d;
        memcpy(&d, &bits, 8);
        snprintf(format, sizeof format, "%%%s*.*%c", s->flags, s->conversion);
        n = snprintf(buffer, sizeof buffer, format, width, precision, d);
        break;
    }
    }
    if (n > 0) {
        put(out, buffer, (size_t)n < sizeof buffer ? (size_t)n : sizeof buffer - 1);
    }
}

static void put_string(output *out, reader *r, const spec *s) {
    uint64_t address = take(r, 8);
    size_t length = 6;
    const char *text = "(null)";
    if (address != 0 && !r->failed) {
        text = string_at(r->x, r->lane, address, &length);
        if (text == NULL) {
            bh__ptx_fault_access(r->x, BH__PTX_FAULT_ADDRESS, r->lane, address, 1, false,
                                 "printf string");
            r->failed = true;
            return;
        }
    }
    if (s->precision >= 0 && length > (size_t)s->precision) {
        length = (size_t)s->precision;
    }
    size_t pad = s->width > 0 && (size_t)s->width > length ? (size_t)s->width - length : 0;
    bool left = strchr(s->flags, '-') != NULL;
    for (size_t n = 0; !left && n < pad; n++) {
        put(out, " ", 1);
    }
    put(out, text, length);
    for (size_t n = 0; left && n < pad; n++) {
        put(out, " ", 1);
    }
}

static void print_all(output *out, reader *r, const char *at, const char *end) {
    while (at < end && !r->failed) {
        const char *percent = memchr(at, '%', (size_t)(end - at));
        const char *stop = percent == NULL ? end : percent;
        put(out, at, (size_t)(stop - at));
        if (percent == NULL) {
            return;
        }
        spec s;
        at = parse_spec(percent + 1, end, r, &s);
        if (s.conversion == '%') {
            put(out, "%", 1);
        } else if (s.conversion == 's') {
            put_string(out, r, &s);
        } else if (s.conversion != 0 && strchr("diuxXocpfFeEgGaA", s.conversion) != NULL) {
            put_formatted(out, r, &s);
        } else {
            put(out, percent, (size_t)(at - percent)); /* not a conversion: printed as text */
        }
    }
}

bool bh__ptx_run_vprintf(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_call *call = i->extra;
    output out = {0};
    bool ok = true;
    FOR_LANES_IN_ORDER(mask) {
        uint64_t format = bh__ptx_call_argument(x, &call->args[0], l);
        reader r = {.x = x, .lane = l, .address = bh__ptx_call_argument(x, &call->args[1], l)};
        size_t length = 0;
        const char *text = string_at(x, l, format, &length);
        if (text == NULL) {
            ok = bh__ptx_fault_access(x, BH__PTX_FAULT_ADDRESS, l, format, 1, false,
                                      "printf format");
            break;
        }
        out.length = 0;
        print_all(&out, &r, text, text + length);
        if (r.failed) {
            ok = false;
            break;
        }
        if (x->grid->print != NULL && out.length > 0) {
            x->grid->print(x->grid->print_context, out.text, out.length);
        }
        if (call->result_count > 0) {
            bh__ptx_call_result(x, &call->results[0], l, r.taken);
        }
    }
    free(out.text);
    return ok;
}

/* __assertfail(message, file, line, function, size of a character) */
bool bh__ptx_run_assertfail(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask) {
    const bh__ptx_call *call = i->extra;
    unsigned l = (unsigned)__builtin_ctz(mask);
    char parts[3][160] = {"?", "?", "?"};
    static const unsigned arguments[3] = {0, 1, 3};
    for (int n = 0; n < 3; n++) {
        size_t length = 0;
        uint64_t address = bh__ptx_call_argument(x, &call->args[arguments[n]], l);
        const char *text = string_at(x, l, address, &length);
        if (text != NULL) {
            snprintf(parts[n], sizeof parts[n], "%.*s",
                     (int)(length < sizeof parts[n] ? length : sizeof parts[n] - 1), text);
        }
    }
    uint32_t line = (uint32_t)bh__ptx_call_argument(x, &call->args[2], l);
    bh__ptx_fault_other(x, BH__PTX_FAULT_ASSERT, l, "assertion failed");
    bh__ptx_fault *f = x->fault;
    int n = snprintf(
        f->text, sizeof f->text,
        "%.90s:%u: %.80s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%.100s` failed.",
        parts[1], (unsigned)line, parts[2], (unsigned)f->block[0], (unsigned)f->block[1],
        (unsigned)f->block[2], (unsigned)f->thread[0], (unsigned)f->thread[1],
        (unsigned)f->thread[2], parts[0]);
    if (n >= (int)sizeof f->text) {
        memcpy(f->text + sizeof f->text - 4, "...", 4);
    }
    return false;
}
