/* SPDX-License-Identifier: Apache-2.0 */
/* Writing JSON. */
#include "cli.h"

#include <string.h>

void bh__json_begin(bh__json *json, FILE *to) {
    memset(json, 0, sizeof *json);
    json->to = to;
}

static bool is_inline(const bh__json *json) {
    return json->inline_ >> json->depth & 1;
}

static void indent(bh__json *json) {
    fprintf(json->to, "\n%*s", json->depth * 2, "");
}

/* Writes the comma and line break before the next element. */
static void separate(bh__json *json) {
    if (json->after_key) {
        json->after_key = false;
        return;
    }
    bool filled = json->filled >> json->depth & 1;
    if (filled) fputs(is_inline(json) ? ", " : ",", json->to);
    if (json->depth > 0 && !is_inline(json)) indent(json);
    json->filled |= UINT64_C(1) << json->depth;
}

static void open_bracket(bh__json *json, char bracket, bool on_one_line) {
    separate(json);
    on_one_line |= is_inline(json);
    fputc(bracket, json->to);
    json->depth++;
    uint64_t bit = UINT64_C(1) << json->depth;
    json->filled &= ~bit;
    json->inline_ = on_one_line ? json->inline_ | bit : json->inline_ & ~bit;
}

void bh__json_open(bh__json *json, char bracket) {
    open_bracket(json, bracket, false);
}

void bh__json_open_inline(bh__json *json, char bracket) {
    open_bracket(json, bracket, true);
}

void bh__json_close(bh__json *json, char bracket) {
    bool filled = json->filled >> json->depth & 1, on_one_line = is_inline(json);
    json->depth--;
    if (filled && !on_one_line) indent(json);
    fputc(bracket, json->to);
}

/* Returns the length of the UTF-8 character at `at`, or 0 if it is invalid. */
static size_t utf8_length(const unsigned char *at, size_t left) {
    size_t length = at[0] < 0x80   ? 1
                    : at[0] < 0xc2 ? 0
                    : at[0] < 0xe0 ? 2
                    : at[0] < 0xf0 ? 3
                    : at[0] < 0xf5 ? 4
                                   : 0;
    if (length == 0 || length > left) return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    bool overlong = (at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xf0 && at[1] < 0x90);
    bool surrogate = at[0] == 0xed && at[1] >= 0xa0;
    bool beyond = at[0] == 0xf4 && at[1] >= 0x90;
    return overlong || surrogate || beyond ? 0 : length;
}

static void put_string(FILE *to, const char *text, size_t length) {
    fputc('"', to);
    for (size_t i = 0; i < length;) {
        const unsigned char *at = (const unsigned char *)text + i;
        size_t step = utf8_length(at, length - i);
        if (step == 0)
            fputs("\\ufffd", to);
        else if (*at == '"' || *at == '\\')
            fprintf(to, "\\%c", *at);
        else if (*at == '\n')
            fputs("\\n", to);
        else if (*at == '\t')
            fputs("\\t", to);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(to, "\\u%04x", *at);
        else if (*at == 0xc2 && at[1] < 0xa0) /* a terminal may obey U+0080 to U+009F, too */
            fprintf(to, "\\u%04x", at[1]);
        else
            fwrite(at, 1, step, to);
        i += step == 0 ? 1 : step;
    }
    fputc('"', to);
}

void bh__json_key(bh__json *json, const char *key) {
    separate(json);
    put_string(json->to, key, strlen(key));
    fputs(": ", json->to);
    json->after_key = true;
}

void bh__json_text_n(bh__json *json, const char *text, size_t length) {
    separate(json);
    put_string(json->to, text, length);
}

void bh__json_text(bh__json *json, const char *text) {
    bh__json_text_n(json, text, strlen(text));
}

void bh__json_number(bh__json *json, uint64_t number) {
    separate(json);
    fprintf(json->to, "%llu", (unsigned long long)number);
}

void bh__json_bool(bh__json *json, bool value) {
    bh__json_raw(json, value ? "true" : "false");
}

void bh__json_raw(bh__json *json, const char *text) {
    separate(json);
    fputs(text, json->to);
}

void bh__json_error(bh__json *json, const bh_error *error) {
    bh__json_open(json, '{');
    bh__json_key(json, "message");
    bh__json_text(json, error->message);
    bh__json_key(json, "fix");
    bh__json_text(json, error->fix);
    if (error->device_name[0] != '\0' || error->device_code != 0) {
        char code[16];
        snprintf(code, sizeof code, "%d", (int)error->device_code);
        bh__json_key(json, "device_code");
        bh__json_raw(json, code);
        bh__json_key(json, "device_name");
        bh__json_text(json, error->device_name);
    }
    if (error->kernel[0] != '\0') {
        bh__json_key(json, "kernel");
        bh__json_text(json, error->kernel);
    }
    if (error->generation != 0) {
        bh__json_key(json, "certain");
        bh__json_bool(json, error->certain != 0);
        bh__json_key(json, "generation");
        bh__json_number(json, error->generation);
    }
    bh__json_close(json, '}');
}

void bh__json_end(bh__json *json) {
    fputc('\n', json->to);
}
