/* SPDX-License-Identifier: Apache-2.0 */
/* What `bulkhead serve` answers: the page, JSON, metrics, traces, reports. */
#include "cli/serve/serve.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_FILES = 1000, MOST_BYTES = 64 << 20 };

void bh__content_text(bh__content *out, int status, const char *text) {
    free(out->body);
    *out =
        (bh__content){.status = status, .type = "text/plain; charset=utf-8", .body = strdup(text)};
    out->length = out->body ? strlen(out->body) : 0;
}

static void give(bh__content *out, const char *type, char *body, size_t length) {
    *out = (bh__content){.status = 200, .type = type, .body = body, .length = length};
    if (!body) bh__content_text(out, 500, "no memory for the answer\n");
}

/* ---- the devices ---- */

/* A second reader of the same page costs nothing. */
static bool look(bh__site *site) {
    const uint64_t patience_ns = 300000000;
    uint64_t now = bh__now_ns();
    if (site->looked_ns != 0 && now - site->looked_ns < site->interval_ns) return true;
    bool fits = bh__view_refresh(&site->view, patience_ns);
    site->looked_ns = bh__now_ns();
    return fits;
}

static void make_json(bh__site *site, bh__content *out) {
    char *body = NULL;
    size_t length = 0;
    FILE *to = look(site) ? open_memstream(&body, &length) : NULL;
    if (to) {
        bh__json json;
        bh__json_begin(&json, to);
        bh__view_json(&site->view, &json, true);
        bh__json_end(&json);
        fclose(to);
    }
    give(out, "application/json", body, length);
}

static void make_metrics(bh__site *site, bh__content *out) {
    bool fits = look(site);
    size_t count = site->view.count;
    const bh__figures **list = calloc(count + 1, sizeof *list);
    if (!fits || !list) {
        free(list);
        bh__content_text(out, 500, "no memory for the answer\n");
        return;
    }
    for (size_t i = 0; i < count; i++) list[i] = site->view.rows[i]->now;
    bh__page measured = {0};
    bh__page_write(&measured, list, count, NULL);
    bh__page page = {.out = malloc(measured.length + 1), .room = measured.length + 1};
    if (page.out) bh__page_write(&page, list, count, NULL);
    free(list);
    give(out, "text/plain; version=0.0.4", page.out, measured.length);
}

/* ---- files ---- */

static bool is_report(const char *name) {
    size_t length = strlen(name);
    return strncmp(name, "bulkhead-loss-", 14) == 0 && length > 18 &&
           strcmp(name + length - 4, ".txt") == 0;
}

static bool is_trace(const char *name) {
    size_t length = strlen(name);
    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".json") == 0;
}

typedef bool is_wanted(const char *name);

typedef struct found {
    char name[256];
    int64_t seconds;
    uint64_t bytes;
} found;

static int compare_found(const void *a, const void *b) {
    const found *left = a, *right = b;
    if (left->seconds != right->seconds) return left->seconds < right->seconds ? 1 : -1;
    return strcmp(left->name, right->name);
}

/* The newest first. */
static size_t sort_files(found *list, size_t count) {
    qsort(list, count, sizeof *list, compare_found);
    return count < MOST_FILES ? count : MOST_FILES;
}

/* The list has twice the room, so that the oldest can be left out once in a while. */
static size_t list_files(const char *folder, is_wanted *wanted, found list[2 * MOST_FILES]) {
    size_t count = 0;
    DIR *dir = folder ? opendir(folder) : NULL;
    for (struct dirent *next; dir && (next = readdir(dir));) {
        struct stat info;
        if (!wanted(next->d_name) ||
            fstatat(dirfd(dir), next->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(info.st_mode))
            continue;
        if (count == 2 * MOST_FILES) count = sort_files(list, count);
        found *to = &list[count++];
        snprintf(to->name, sizeof to->name, "%s", next->d_name);
        to->seconds = info.st_mtime;
        to->bytes = (uint64_t)info.st_size;
    }
    if (dir) closedir(dir);
    return sort_files(list, count);
}

static void make_list(const char *folder, is_wanted *wanted, bh__content *out) {
    char *body = NULL;
    size_t length = 0;
    found *list = calloc((size_t)2 * MOST_FILES, sizeof *list);
    FILE *to = list ? open_memstream(&body, &length) : NULL;
    if (to) {
        bh__json json;
        size_t count = list_files(folder, wanted, list);
        bh__json_begin(&json, to);
        bh__json_open(&json, '[');
        for (size_t i = 0; i < count; i++) {
            bh__json_open_inline(&json, '{');
            bh__json_key(&json, "name");
            bh__json_text(&json, list[i].name);
            bh__json_key(&json, "seconds");
            bh__json_number(&json, (uint64_t)list[i].seconds);
            bh__json_key(&json, "bytes");
            bh__json_number(&json, list[i].bytes);
            bh__json_close(&json, '}');
        }
        bh__json_close(&json, ']');
        bh__json_end(&json);
        fclose(to);
    }
    free(list);
    give(out, "application/json", body, length);
}

/* A name that the list has: no folder in it, no link, a plain file of a bearable size. */
static void make_file(const char *folder, is_wanted *wanted, const char *name, const char *type,
                      bh__content *out) {
    struct stat info;
    bool possible = folder && wanted(name) && strchr(name, '/') == NULL;
    int at = possible ? open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = at >= 0 ? openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
    if (at >= 0) close(at);
    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        if (fd >= 0) close(fd);
        bh__content_text(out, 404, "there is no such file\n");
        return;
    }
    size_t room = info.st_size > MOST_BYTES ? MOST_BYTES : (size_t)info.st_size, length = 0;
    char *body = malloc(room + 1);
    for (ssize_t got = 1; body && length < room && got > 0; length += got > 0 ? (size_t)got : 0)
        got = read(fd, body + length, room - length);
    close(fd);
    give(out, type, body, length);
}

/* ---- all ---- */

void bh__content_make(bh__site *site, const bh__request *request, bh__content *out) {
    static const char text[] = "text/plain; charset=utf-8";
    const char *path = request->path;
    if (strcmp(path, "/") == 0) {
        size_t length = (size_t)(bh__page_html_end - bh__page_html);
        char *copy = malloc(length + 1);
        if (copy) memcpy(copy, bh__page_html, length);
        give(out, "text/html; charset=utf-8", copy, length);
    } else if (strcmp(path, "/json") == 0) {
        make_json(site, out);
    } else if (strcmp(path, "/metrics") == 0) {
        make_metrics(site, out);
    } else if (strcmp(path, "/traces") == 0) {
        make_list(site->traces, is_trace, out);
    } else if (strcmp(path, "/trace") == 0) {
        make_file(site->traces, is_trace, request->name, text, out);
    } else if (strcmp(path, "/reports") == 0) {
        make_list(site->reports, is_report, out);
    } else if (strcmp(path, "/report") == 0) {
        make_file(site->reports, is_report, request->name, text, out);
    } else {
        bh__content_text(out, 404, "there are /, /json, /metrics, /traces, /reports\n");
    }
}
