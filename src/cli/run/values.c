/* SPDX-License-Identifier: Apache-2.0 */
/* Elements as text: parsing with range checks, and the shortest text that parses to the same
 * value. */
#include "../cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NUMBER  1000
#define NUMBER_TEXT (BH__VALUE_TEXT - 1) /* one byte is for the sign */
#define QUOTED      60                   /* characters of a wrong text quoted in a message */

bh_type bh__type_find(const char *text, size_t length) {
    for (bh_type type = BH_I8; type <= BH_F64; type++) {
        const char *name = bh_type_name(type);
        if (strlen(name) == length && memcmp(name, text, length) == 0) return type;
    }
    return 0;
}

bool bh__type_is_float(bh_type type) {
    return type >= BH_F16 && type <= BH_F64;
}

static bool type_is_signed(bh_type type) {
    return type == BH_I8 || type == BH_I16 || type == BH_I32 || type == BH_I64;
}

uint64_t bh__value_load(const void *element, bh_type type) {
    const unsigned char *bytes = element;
    uint64_t bits = 0;
    for (size_t i = bh_type_size(type); i-- > 0;) bits = bits << 8 | bytes[i];
    return bits;
}

void bh__value_store(void *element, bh_type type, uint64_t bits) {
    unsigned char *bytes = element;
    for (size_t i = 0; i < bh_type_size(type); i++) bytes[i] = (unsigned char)(bits >> (8 * i));
}

/* ---- integers ---- */

static int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

typedef enum { DIGITS_GOOD, DIGITS_WRONG, DIGITS_HUGE } digits_result;

/* Digits with an optional prefix 0x, 0o or 0b. A leading zero does not mean octal: 010 is ten. */
static digits_result parse_digits(const char *text, size_t length, uint64_t *out) {
    unsigned base = 10;
    if (length > 2 && text[0] == '0') {
        char mark = (char)(text[1] | 0x20);
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
        if (base != 10) {
            text += 2;
            length -= 2;
        }
    }
    if (length == 0) return DIGITS_WRONG;
    uint64_t sum = 0;
    bool huge = false;
    for (size_t i = 0; i < length; i++) {
        int digit = digit_value(text[i]);
        if (digit >= (int)base) return DIGITS_WRONG;
        huge |= __builtin_mul_overflow(sum, base, &sum);
        huge |= __builtin_add_overflow(sum, (uint64_t)digit, &sum);
    }
    *out = sum;
    return huge ? DIGITS_HUGE : DIGITS_GOOD;
}

bool bh__count_parse(const char *text, size_t length, uint64_t *out) {
    return parse_digits(text, length, out) == DIGITS_GOOD;
}

static bh_status out_of_range(bh_type type, const char *text, size_t length, bh_error *error) {
    unsigned width = (unsigned)bh_type_size(type) * 8;
    uint64_t highest = type_is_signed(type) ? (UINT64_C(1) << (width - 1)) - 1
                       : width == 64        ? UINT64_MAX
                                            : (UINT64_C(1) << width) - 1;
    char lowest[24] = "0";
    if (type_is_signed(type))
        snprintf(lowest, sizeof lowest, "-%llu", (unsigned long long)highest + 1);
    bh__report_set(error, BH_E_INVALID, "%.*s does not fit %s, which holds %s to %llu",
                   (int)(length < QUOTED ? length : QUOTED), text, bh_type_name(type), lowest,
                   (unsigned long long)highest);
    return bh__report_fix(error, "use a value in that range, or another type");
}

static bh_status no_number(bh_type type, const char *text, size_t length, const char *examples,
                           bh_error *error) {
    if (length == 0)
        bh__report_set(error, BH_E_INVALID, "a number of type %s is missing", bh_type_name(type));
    else
        bh__report_set(error, BH_E_INVALID, "\"%.*s\" is not a number of type %s",
                       (int)(length < QUOTED ? length : QUOTED), text, bh_type_name(type));
    return bh__report_fix(error, "write a number, for example %s", examples);
}

static bh_status parse_integer(bh_type type, const char *text, size_t length, uint64_t *bits,
                               bh_error *error) {
    bool has_sign = length > 0 && (text[0] == '-' || text[0] == '+');
    bool negative = has_sign && text[0] == '-';
    uint64_t magnitude = 0;
    digits_result result = parse_digits(text + has_sign, length - has_sign, &magnitude);
    if (result == DIGITS_WRONG)
        return no_number(type, text, length, type_is_signed(type) ? "7, -7 or 0x10" : "7 or 0x10",
                         error);
    unsigned width = (unsigned)bh_type_size(type) * 8;
    uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
    uint64_t max = type_is_signed(type) ? mask / 2 + negative : negative ? 0 : mask;
    if (result == DIGITS_HUGE || magnitude > max) return out_of_range(type, text, length, error);
    *bits = (negative ? UINT64_C(0) - magnitude : magnitude) & mask;
    return BH_OK;
}

/* ---- floating point ---- */

static uint64_t double_bits(double number) {
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

static double bits_double(uint64_t bits) {
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static float bits_float(uint32_t bits) {
    float number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

static uint32_t float_bits(float number) {
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return bits;
}

/* Rounds to a format with fewer bits, to nearest even. Returns false if the result is infinite. */
static bool narrow(double number, unsigned exponent_bits, unsigned fraction_bits, uint64_t *out) {
    uint64_t bits = double_bits(number);
    uint64_t sign = bits >> 63 << (exponent_bits + fraction_bits);
    uint64_t infinity = ((UINT64_C(1) << exponent_bits) - 1) << fraction_bits;
    if (isnan(number)) {
        *out = sign | infinity | UINT64_C(1) << (fraction_bits - 1);
        return true;
    }
    if (isinf(number)) {
        *out = sign | infinity;
        return true;
    }
    int bias = (1 << (exponent_bits - 1)) - 1;
    int exponent = (int)(bits >> 52 & 0x7ff) - 1023 + bias;
    uint64_t significand = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    unsigned shift = 52 - fraction_bits;
    if (exponent <= 0) {
        if (exponent < -(int)fraction_bits - 1 || (bits >> 52 & 0x7ff) == 0) {
            *out = sign;
            return true;
        }
        shift += (unsigned)(1 - exponent);
    }
    uint64_t kept = significand >> shift;
    uint64_t rest = significand & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
    if (rest > half || (rest == half && (kept & 1))) kept++;
    /* A carry out of the fraction correctly increments the exponent. */
    if (exponent > 0) kept += (uint64_t)(exponent - 1) << fraction_bits;
    *out = sign | kept;
    return kept < infinity;
}

static double widen(bh_type type, uint64_t bits) {
    switch (type) {
    case BH_F64:
        return bits_double(bits);
    case BH_F32:
        return (double)bits_float((uint32_t)bits);
    case BH_BF16:
        return (double)bits_float((uint32_t)bits << 16);
    default:
        break;
    }
    uint64_t sign = bits >> 15 & 1, exponent = bits >> 10 & 31, fraction = bits & 1023;
    double number;
    if (exponent == 0)
        number = (double)fraction / 16777216.0;
    else if (exponent == 31)
        number = bits_double(UINT64_C(0x7ff) << 52 | fraction << 42);
    else
        number = bits_double((exponent + 1008) << 52 | fraction << 42);
    return sign ? -number : number;
}

bool bh__value_from_double(bh_type type, double number, uint64_t *bits) {
    switch (type) {
    case BH_F64:
        *bits = double_bits(number);
        return true;
    case BH_F32:
        *bits = float_bits((float)number);
        return isinf(number) || !isinf((float)number);
    case BH_BF16:
        return narrow(number, 8, 7, bits);
    default:
        return narrow(number, 5, 10, bits);
    }
}

static bh_status parse_float(bh_type type, const char *text, size_t length, uint64_t *bits,
                             bh_error *error) {
    char copy[MAX_NUMBER + 1];
    bool starts = length > 0 && strchr("+-.0123456789nNiI", text[0]) != NULL;
    if (!starts || length > MAX_NUMBER || memchr(text, '\0', length) != NULL)
        return no_number(type, text, length, "2.5, -1e-3, inf or nan", error);
    memcpy(copy, text, length);
    copy[length] = '\0';

    char *end;
    double number = strtod(copy, &end);
    bool fits;
    if (type == BH_F32) {
        float single = strtof(copy, &end);
        *bits = float_bits(single);
        fits = !isinf(single);
    } else {
        fits = bh__value_from_double(type, number, bits) && !isinf(number);
    }
    if (end != copy + length) return no_number(type, text, length, "2.5, -1e-3, inf or nan", error);
    bool says_infinity = strpbrk(copy, "iI") != NULL;
    if (!fits && !says_infinity) {
        static const char *const largest[] = {"65504", "3.3895314e+38", "3.4028235e+38",
                                              "1.7976931348623157e+308"};
        bh__report_set(error, BH_E_INVALID, "%.*s does not fit %s, whose largest value is %s",
                       (int)(length < QUOTED ? length : QUOTED), text, bh_type_name(type),
                       largest[type - BH_F16]);
        return bh__report_fix(error, "use a smaller value, a wider type, or write inf");
    }
    return BH_OK;
}

bh_status bh__value_parse(bh_type type, const char *text, size_t length, uint64_t *bits,
                          bh_error *error) {
    return bh__type_is_float(type) ? parse_float(type, text, length, bits, error)
                                   : parse_integer(type, text, length, bits, error);
}

bool bh__value_is_special(bh_type type, uint64_t bits) {
    if (!bh__type_is_float(type)) return false;
    double number = widen(type, bits);
    return isnan(number) || isinf(number);
}

/* ---- formatting ---- */

/* Writes d.ddd times 10^exponent as 0.ddd, ddd.ddd or d.dde+xx. */
static void compose(const char *digits, int exponent, char *out) {
    int count = (int)strlen(digits);
    while (count > 1 && digits[count - 1] == '0') count--;
    if (exponent < -4 || exponent >= 16) {
        if (count == 1)
            snprintf(out, NUMBER_TEXT, "%ce%+03d", digits[0], exponent);
        else
            snprintf(out, NUMBER_TEXT, "%c.%.*se%+03d", digits[0], count - 1, digits + 1, exponent);
    } else if (exponent < 0) {
        snprintf(out, NUMBER_TEXT, "0.%.*s%.*s", -exponent - 1, "0000", count, digits);
    } else if (count <= exponent + 1) {
        snprintf(out, NUMBER_TEXT, "%.*s%.*s", count, digits, exponent + 1 - count,
                 "0000000000000000");
    } else {
        snprintf(out, NUMBER_TEXT, "%.*s.%.*s", exponent + 1, digits, count - exponent - 1,
                 digits + exponent + 1);
    }
}

static bool round_trips(bh_type type, uint64_t bits, const char *text) {
    bh_error ignored;
    uint64_t again;
    return bh__value_parse(type, text, strlen(text), &again, &ignored) == BH_OK && again == bits;
}

/* Adds one to the last digit. If all digits were nines, increments the exponent. */
static void increment(char *digits, int *exponent) {
    for (size_t i = strlen(digits); i-- > 0;) {
        if (digits[i] != '9') {
            digits[i]++;
            return;
        }
        digits[i] = '0';
    }
    digits[0] = '1';
    *exponent += 1;
}

static void format_magnitude(bh_type type, uint64_t bits, char *out) {
    double number = widen(type, bits);
    for (int precision = 1; precision <= 17; precision++) {
        char text[40], digits[20];
        snprintf(text, sizeof text, "%.*e", precision - 1, number);
        int exponent = atoi(strchr(text, 'e') + 1);
        digits[0] = text[0];
        if (precision > 1) memcpy(digits + 1, text + 2, (size_t)precision - 1);
        digits[precision] = '\0';
        compose(digits, exponent, out);
        if (round_trips(type, bits, out)) return;
        /* Values are spaced wider above a power of two than below it, so the next higher decimal
         * may round-trip although the nearest one, which is below, does not. */
        increment(digits, &exponent);
        compose(digits, exponent, out);
        if (round_trips(type, bits, out)) return;
    }
}

void bh__value_format(bh_type type, uint64_t bits, char out[BH__VALUE_TEXT]) {
    unsigned width = (unsigned)bh_type_size(type) * 8;
    if (!bh__type_is_float(type)) {
        if (type_is_signed(type) && (bits >> (width - 1) & 1)) {
            uint64_t mask = width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
            snprintf(out, NUMBER_TEXT, "-%llu", (unsigned long long)((UINT64_C(0) - bits) & mask));
        } else {
            snprintf(out, NUMBER_TEXT, "%llu", (unsigned long long)bits);
        }
        return;
    }
    double number = widen(type, bits);
    if (isnan(number)) {
        strcpy(out, "nan");
        return;
    }
    if (bits >> (width - 1)) {
        bits ^= UINT64_C(1) << (width - 1);
        *out++ = '-';
    }
    if (isinf(number))
        strcpy(out, "inf");
    else if (bits == 0)
        strcpy(out, "0");
    else
        format_magnitude(type, bits, out);
}

void bh__value_format_hex(bh_type type, uint64_t bits, char out[BH__VALUE_TEXT]) {
    snprintf(out, NUMBER_TEXT, "0x%0*llx", (int)bh_type_size(type) * 2, (unsigned long long)bits);
}

bh_status bh__timeout_parse(const char *text, double at_least, uint64_t *out_ns, bh_error *error) {
    uint64_t bits;
    double seconds = 0;
    if (bh__value_parse(BH_F64, text, strlen(text), &bits, error) == BH_OK)
        memcpy(&seconds, &bits, sizeof seconds);
    if (seconds >= at_least && seconds <= 1e9) {
        *out_ns = (uint64_t)(seconds * 1e9);
        return BH_OK;
    }
    bh__report_set(error, BH_E_INVALID, "--timeout is \"%.100s\", not a number of seconds", text);
    return bh__report_fix(error, "write a number from %g to 1e9, for example --timeout 10",
                          at_least);
}
