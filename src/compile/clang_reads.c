/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clang read, from its list of dependencies; and where it would have found something else.
 * The list says what was found, not what was looked for before that. So every header that was
 * found in a folder of the search list is looked for in all folders before it, and beside every
 * file that was read; and so are the names that __has_include asks for. What is not there is
 * recorded as missing. That is more than clang looked at, and never less.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/reads.h"

typedef struct list {
    const char **items;
    size_t count, room;
} list;

typedef struct tracer {
    bh__reads *reads;
    list folders;  /* in the order of the search */
    list absent;   /* given or built in, and not there */
    list beside;   /* of files read: where #include "..." looks first */
    list contents; /* of files read, and of the source */
} tracer;

static void add_item(tracer *t, list *to, const char *item) {
    const char **items =
        bh__arena_grow(t->reads->arena, to->items, to->count, &to->room, sizeof *items);
    if (items == NULL || item == NULL) {
        t->reads->failed = true;
        return;
    }
    to->items = items;
    items[to->count++] = item;
}

static void add_once(tracer *t, list *to, const char *item) {
    for (size_t i = 0; i < to->count && item != NULL; i++) {
        if (strcmp(to->items[i], item) == 0) return;
    }
    add_item(t, to, item);
}

static bool is_virtual(const char *path) {
    return strncmp(path, BH__VIRTUAL_ROOT "/", sizeof BH__VIRTUAL_ROOT) == 0;
}

/* "ignoring nonexistent directory "X"", then the folders, each in a line after one blank. */
static void read_search(tracer *t, bh__bytes search) {
    static const char absent[] = "ignoring nonexistent directory \"";
    for (const char *line = bh__chars(search); *line != 0;) {
        size_t length = strcspn(line, "\n");
        if (strncmp(line, absent, sizeof absent - 1) == 0) {
            const char *name = line + sizeof absent - 1;
            size_t name_length = length - (sizeof absent - 1);
            if (name_length > 0 && name[name_length - 1] == '"') name_length--;
            add_once(t, &t->absent, bh__arena_copy(t->reads->arena, name, name_length));
        } else if (line[0] == ' ' && line[1] == '/') {
            add_once(t, &t->folders, bh__arena_copy(t->reads->arena, line + 1, length - 1));
        }
        line += length + (line[length] == '\n');
    }
}

static bool exists(const char *path) {
    struct stat info;
    return stat(path, &info) == 0;
}

static void miss(tracer *t, const char *folder, const char *name) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    if (length < 0 || length >= (int)sizeof path || is_virtual(path) || exists(path)) return;
    bh__reads_missing(t->reads, path);
}

/* Places where a header of this name would be found before folder number `until`. */
static void miss_before(tracer *t, const char *name, size_t until) {
    for (size_t i = 0; i < t->beside.count; i++) miss(t, t->beside.items[i], name);
    for (size_t i = 0; i < until && i < t->folders.count; i++) miss(t, t->folders.items[i], name);
    for (size_t i = 0; i < t->absent.count; i++) miss(t, t->absent.items[i], name);
}

static void read_content(tracer *t, const char *path, struct timespec since) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        bh__reads_changed(t->reads, path);
        if (fd >= 0) close(fd);
        return;
    }
    bool later = info.st_ctim.tv_sec > since.tv_sec ||
                 (info.st_ctim.tv_sec == since.tv_sec && info.st_ctim.tv_nsec > since.tv_nsec);
    bh__bytes bytes = bh__read_file(t->reads->arena, fd);
    close(fd);
    if (bytes.data == NULL)
        t->reads->failed = true;
    else if (later)
        bh__reads_changed(t->reads, path);
    else
        bh__reads_content(t->reads, path, bytes.data, bytes.count);
    if (bytes.data != NULL) add_item(t, &t->contents, bh__chars(bytes));
}

/* The next name of a list of dependencies, as make reads it; NULL: no more. */
static char *next_dependency(bh__arena *arena, const char **at) {
    const char *from = *at;
    while (*from == ' ' || *from == '\n' || (from[0] == '\\' && from[1] == '\n'))
        from += from[0] == '\\' ? 2 : 1;
    if (*from == 0) return NULL;
    bh__text name = {.arena = arena};
    while (*from != 0 && *from != ' ' && *from != '\n') {
        if (from[0] == '\\' && from[1] == '\n') break;
        if ((from[0] == '\\' && (from[1] == ' ' || from[1] == '#')) ||
            (from[0] == '$' && from[1] == '$'))
            from++;
        bh__text_append(&name, from++, 1);
    }
    *at = from;
    return name.failed ? NULL : name.data;
}

static void read_dependencies(tracer *t, bh__bytes dependencies, list *out, struct timespec since) {
    const char *at = strchr(bh__chars(dependencies), ':');
    char *name;
    if (at == NULL) return;
    at++;
    while ((name = next_dependency(t->reads->arena, &at)) != NULL) {
        if (strcmp(name, "-") == 0) continue;
        if (is_virtual(name)) {
            add_once(t, out, name);
            continue;
        }
        if (name[0] != '/') name = bh__text_format(t->reads->arena, "/%s", name);
        if (name == NULL) break;
        add_once(t, out, name);
        read_content(t, name, since);
        char *slash = strrchr(name, '/');
        char *folder = bh__arena_copy(t->reads->arena, name, (size_t)(slash - name));
        add_once(t, &t->beside, folder);
    }
}

static bool is_mentioned(const tracer *t, const char *name) {
    for (size_t i = 0; i < t->contents.count; i++) {
        if (strstr(t->contents.items[i], name) != NULL) return true;
    }
    return false;
}

/* For each folder of the list that holds the file: what may have been its name there. Headers of
 * this program include each other in any number: those that nobody else names are left out. */
static void miss_instead_of(tracer *t, const char *path) {
    for (size_t i = 0; i < t->folders.count; i++) {
        size_t length = strlen(t->folders.items[i]);
        if (strncmp(path, t->folders.items[i], length) == 0 && path[length] == '/' &&
            (!is_virtual(path) || is_mentioned(t, path + length + 1)))
            miss_before(t, path + length + 1, i);
    }
}

/* The names in __has_include(<name>) and __has_include_next("name"), wherever they stand. */
static void miss_questions(tracer *t, const char *text) {
    static const char word[] = "__has_include";
    for (const char *at = text; (at = strstr(at, word)) != NULL;) {
        at += sizeof word - 1;
        if (strncmp(at, "_next", 5) == 0) at += 5;
        at += strspn(at, " \t");
        if (*at != '(') continue;
        at++;
        at += strspn(at, " \t");
        const char *stop = *at == '<' ? ">\n" : *at == '"' ? "\"\n" : NULL;
        if (stop == NULL) continue;
        size_t length = strcspn(at + 1, stop);
        char *name = bh__arena_copy(t->reads->arena, at + 1, length);
        if (name == NULL) {
            t->reads->failed = true;
            return;
        }
        if (name[0] == '/')
            miss(t, "", name + 1);
        else
            miss_before(t, name, t->folders.count);
    }
}

void bh__reads_from_clang(bh__reads *reads, const bh__compile_job *job, bh__bytes dependencies,
                          bh__bytes search, struct timespec since) {
    tracer t = {.reads = reads};
    list files = {0};
    read_search(&t, search);
    const char *name = bh__chars(job->name), *slash = strrchr(name, '/');
    if (name[0] == '/' && slash > name)
        add_once(&t, &t.beside, bh__arena_copy(reads->arena, name, (size_t)(slash - name)));
    else
        add_once(&t, &t.beside, "");
    read_dependencies(&t, dependencies, &files, since);
    add_item(&t, &t.contents, bh__chars(job->source));
    for (size_t i = 0; i < job->header_bodies.count; i++)
        add_item(&t, &t.contents, bh__chars(job->header_bodies.list[i]));
    for (size_t i = 0; i < job->defines.count; i++)
        add_item(&t, &t.contents, bh__chars(job->defines.list[i]));
    for (size_t i = 0; i < files.count && !reads->failed; i++) miss_instead_of(&t, files.items[i]);
    for (size_t i = 0; i < t.contents.count && !reads->failed; i++)
        miss_questions(&t, t.contents.items[i]);
}
