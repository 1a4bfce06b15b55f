/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of HTTP requests. It is strict: what it does not expect, it refuses. */
#include "cli/serve/serve.h"

#include <string.h>
#include <strings.h>

enum { MOST_LINES = 64 };

/* Part of the request's text. */
typedef struct piece {
    const char *at;
    size_t length;
} piece;

static bool is(piece text, const char *word) {
    return text.length == strlen(word) && memcmp(text.at, word, text.length) == 0;
}

static bool is_name(piece text, const char *word) {
    return text.length == strlen(word) && strncasecmp(text.at, word, text.length) == 0;
}

/* Takes what is before the first `end`. Returns false if there is none. */
static bool take_until(piece *from, char end, piece *out) {
    const char *found = memchr(from->at, end, from->length);
    if (!found) return false;
    *out = (piece){from->at, (size_t)(found - from->at)};
    from->at = found + 1;
    from->length -= out->length + 1;
    return true;
}

/* Takes a line without its CR LF. */
static bool take_line(piece *from, piece *out) {
    if (!take_until(from, '\n', out) || out->length == 0 || out->at[out->length - 1] != '\r')
        return false;
    out->length--;
    return true;
}

static bool copy(piece text, char *out, size_t room) {
    if (text.length >= room) return false;
    memcpy(out, text.at, text.length);
    out[text.length] = '\0';
    return true;
}

static int digit_of(char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes %41, and + to a space. A NUL or a control character is refused. */
static bool decode(piece text, char *out, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < text.length; i++) {
        int byte = (unsigned char)text.at[i];
        if (byte == '%') {
            bool whole = text.length - i > 2;
            int high = whole ? digit_of(text.at[i + 1]) : -1;
            int low = whole ? digit_of(text.at[i + 2]) : -1;
            if (high < 0 || low < 0) return false;
            byte = high * 16 + low;
            i += 2;
        }
        if (text.at[i] == '+') byte = ' ';
        if (byte < ' ' || byte == 0x7f || used + 1 >= room) return false;
        out[used++] = (char)byte;
    }
    out[used] = '\0';
    return true;
}

/* name=value&name=value. Unknown names are ignored, known ones may come once. */
static bool read_query(piece query, bh__request *out) {
    while (query.length > 0) {
        piece pair, name;
        if (!take_until(&query, '&', &pair)) {
            pair = query;
            query.length = 0;
        }
        if (!take_until(&pair, '=', &name)) continue;
        char *to = is(name, "name") ? out->name : is(name, "token") ? out->token : NULL;
        size_t room = to == out->name ? sizeof out->name : sizeof out->token;
        if (to && (*to != '\0' || !decode(pair, to, room))) return false;
    }
    return true;
}

static bool is_visible(piece text) {
    for (size_t i = 0; i < text.length; i++)
        if (text.at[i] <= ' ' || text.at[i] > '~') return false;
    return true;
}

static int read_target(piece target, bh__request *out) {
    piece path;
    if (target.length == 0 || target.at[0] != '/') return 400;
    if (!is_visible(target) || memchr(target.at, '#', target.length)) return 400;
    bool has_query = take_until(&target, '?', &path);
    if (!has_query) path = target;
    if (!copy(path, out->path, sizeof out->path)) return 404;
    return !has_query || read_query(target, out) ? 200 : 400;
}

static int read_first(piece line, bh__request *out) {
    piece method, target;
    if (!take_until(&line, ' ', &method) || !take_until(&line, ' ', &target)) return 400;
    if (!is(line, "HTTP/1.1") && !is(line, "HTTP/1.0"))
        return line.length == 8 && memcmp(line.at, "HTTP/", 5) == 0 ? 505 : 400;
    out->head = is(method, "HEAD");
    if (!out->head && !is(method, "GET")) return 405;
    return read_target(target, out);
}

/* Letters, digits, points and dashes, or an IPv6 address in brackets; then perhaps a port. */
static bool read_host(piece text, bh__request *out) {
    size_t length = 0;
    bool bracket = text.length > 0 && text.at[0] == '[';
    if (text.length == 0 || text.length >= sizeof out->host) return false;
    while (length < text.length && (bracket ? text.at[length] != ']' : text.at[length] != ':')) {
        char c = text.at[length];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '.' || c == '-' || c == '_' || (bracket && (c == ':' || c == '['));
        if (!good) return false;
        out->host[length++] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    if (bracket && length == text.length) return false;
    if (bracket) out->host[length++] = ']';
    out->host[length] = '\0';
    if (length == text.length) return length > 0;
    if (text.at[length] != ':' || text.length - length > 6) return false;
    for (size_t i = length + 1; i < text.length; i++)
        if (text.at[i] < '0' || text.at[i] > '9') return false;
    return true;
}

static bool is_token_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* A body is refused: its length would have to be believed. */
static int read_header(piece line, bh__request *out) {
    static const char bearer[] = "Bearer ";
    piece name;
    if (!take_until(&line, ':', &name) || name.length == 0) return 400;
    for (size_t i = 0; i < name.length; i++)
        if (!is_token_character(name.at[i])) return 400;
    while (line.length && (*line.at == ' ' || *line.at == '\t')) line.at++, line.length--;
    while (line.length && (line.at[line.length - 1] == ' ' || line.at[line.length - 1] == '\t'))
        line.length--;
    for (size_t i = 0; i < line.length; i++)
        if (((unsigned char)line.at[i] < ' ' && line.at[i] != '\t') || line.at[i] == 0x7f)
            return 400;
    if (is_name(name, "Host")) {
        if (out->host[0] != '\0' || !read_host(line, out)) return 400;
    } else if (is_name(name, "Content-Length")) {
        if (!is(line, "0")) return 413;
    } else if (is_name(name, "Transfer-Encoding") || is_name(name, "Upgrade")) {
        return 400;
    } else if (is_name(name, "Authorization") && line.length > sizeof bearer - 1 &&
               strncasecmp(line.at, bearer, sizeof bearer - 1) == 0) {
        line.at += sizeof bearer - 1;
        line.length -= sizeof bearer - 1;
        if (!is_visible(line) || !copy(line, out->token, sizeof out->token)) return 400;
    }
    return 200;
}

/* The end of the head, or NULL. */
static const char *find_end(const char *text, size_t length) {
    return memmem(text, length, "\r\n\r\n", 4);
}

int bh__request_read(const char *text, size_t length, bh__request *out) {
    memset(out, 0, sizeof *out);
    const char *end = find_end(text, length);
    if (!end) return length >= BH__REQUEST_MAX ? 431 : 0;
    if (end - text > BH__REQUEST_MAX) return 431;
    piece rest = {text, (size_t)(end - text) + 2}, line;
    if (memchr(rest.at, '\0', rest.length) || !take_line(&rest, &line)) return 400;
    int status = read_first(line, out);
    for (int count = 0; status == 200 && rest.length > 0; count++) {
        if (count == MOST_LINES) return 431;
        if (!take_line(&rest, &line)) return 400;
        status = read_header(line, out);
    }
    return status == 200 && out->host[0] == '\0' ? 400 : status;
}
