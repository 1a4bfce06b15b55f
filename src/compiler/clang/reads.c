/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What clang read, from its list of dependencies; and where it would have found something else.
 * The list says what was found, not what was searched before. So every #include in the files that
 * were read is followed through the search list: if it leads to a file that was read, the places
 * before it are where a header would be found first, and are recorded as missing. So are all places
 * for names that __has_include asks for, and folders of the list that do not exist. If only the
 * preprocessor knows a name, the record is incomplete.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/read_record.h"

typedef struct list {
    const char **items;
    size_t count, room;
} list;

typedef struct source {
    const char *folder; /* where #include "..." searches first; NULL: nowhere on disk */
    const char *text;
} source;

typedef struct tracer {
    bh__read_record *reads;
    list folders; /* in the order of the search */
    list files;   /* files that were read, including this program's own */
    source *sources;
    size_t source_count, source_room;
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

static void add_source(tracer *t, const char *folder, const char *text) {
    source *sources = bh__arena_grow(t->reads->arena, t->sources, t->source_count, &t->source_room,
                                     sizeof *sources);
    if (sources == NULL || text == NULL) {
        t->reads->failed = true;
        return;
    }
    t->sources = sources;
    sources[t->source_count++] = (source){folder, text};
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
            char *folder = bh__arena_copy(t->reads->arena, name, name_length);
            if (folder == NULL)
                t->reads->failed = true;
            else if (!is_virtual(folder))
                bh__read_record_missing(t->reads, folder);
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

static char *folder_of(bh__arena *arena, const char *path) {
    const char *slash = strrchr(path, '/');
    return bh__arena_copy(arena, path, slash ? (size_t)(slash - path) : 0);
}

static void read_content(tracer *t, const char *path, struct timespec since) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0) {
        bh__read_record_changed(t->reads, path);
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
        bh__read_record_changed(t->reads, path);
    else
        bh__read_record_content(t->reads, path, bytes.data, bytes.count);
    if (bytes.data != NULL) add_source(t, folder_of(t->reads->arena, path), bh__chars(bytes));
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

/* A header of this program's own or of the job's. */
static void read_virtual(tracer *t, const bh__compile_job *job, const char *path) {
    static const char root[] = BH__VIRTUAL_ROOT "/", memory[] = BH__VIRTUAL_MEMORY "/";
    if (strncmp(path, memory, sizeof memory - 1) != 0) {
        for (size_t i = 0; i < bh__embedded_count; i++) {
            const bh__embedded *file = &bh__embedded_files[i];
            const char *below = path + sizeof root - 1;
            size_t folder = strlen(file->folder);
            if (strncmp(below, file->folder, folder) == 0 && below[folder] == '/' &&
                strcmp(file->name, below + folder + 1) == 0)
                add_source(t, NULL, (const char *)file->data);
        }
    } else {
        for (size_t i = 0; i < job->header_names.count; i++) {
            if (strcmp(bh__chars(job->header_names.list[i]), path + sizeof memory - 1) == 0)
                add_source(t, NULL, bh__chars(job->header_bodies.list[i]));
        }
    }
}

static void read_dependencies(tracer *t, const bh__compile_job *job, bh__bytes dependencies,
                              struct timespec since) {
    const char *at = strchr(bh__chars(dependencies), ':');
    char *name;
    if (at == NULL) return;
    at++;
    while ((name = next_dependency(t->reads->arena, &at)) != NULL) {
        if (strcmp(name, "-") == 0) continue;
        if (name[0] != '/') name = bh__text_format(t->reads->arena, "/%s", name);
        add_once(t, &t->files, name);
        if (t->reads->failed) return;
        if (is_virtual(name))
            read_virtual(t, job, name);
        else
            read_content(t, name, since);
    }
}

static bool was_read(const tracer *t, const char *path) {
    for (size_t i = 0; i < t->files.count; i++) {
        if (strcmp(t->files.items[i], path) == 0) return true;
    }
    return false;
}

/* What follows one #include or __has_include. */
typedef struct question {
    char *name;
    bool quoted;
    bool next;  /* include_next: the first match is not the one */
    bool asked; /* by __has_include: whether it exists matters */
} question;

/* Follows the search list up to a file that was read; `misses` gets the places before it that are
 * empty. True: there was such a file. Files that exist and were not read do not end the search:
 * some folders are for #include "..." only. */
static bool follow(tracer *t, const char *folder, const question *q, list *misses) {
    bool hit = false;
    for (size_t i = q->quoted && folder != NULL ? 0 : 1; i <= t->folders.count; i++) {
        const char *in = i == 0 ? folder : t->folders.items[i - 1];
        char *path = bh__text_format(t->reads->arena, "%s/%s", in, q->name);
        if (path == NULL) {
            t->reads->failed = true;
            return false;
        }
        if (was_read(t, path)) {
            hit = true;
            if (!q->next) return true;
        } else if (!is_virtual(path) && !exists(path)) {
            add_item(t, misses, path);
        }
    }
    return hit;
}

static void ask(tracer *t, const char *folder, const question *q) {
    list misses = {0};
    if (q->name[0] == '/') { /* no search */
        if (q->asked && !exists(q->name)) bh__read_record_missing(t->reads, q->name);
        return;
    }
    /* A directive that leads to no file that was read was not reached. */
    if (!follow(t, folder, q, &misses) && !q->asked) return;
    for (size_t i = 0; i < misses.count; i++) bh__read_record_missing(t->reads, misses.items[i]);
}

/* <name> or "name" at `at`; false: neither. */
static bool read_name(tracer *t, const char *at, question *out) {
    at += strspn(at, " \t");
    const char *stop = *at == '<' ? ">\n" : *at == '"' ? "\"\n" : NULL;
    if (stop == NULL) return false;
    out->quoted = *at == '"';
    out->name = bh__arena_copy(t->reads->arena, at + 1, strcspn(at + 1, stop));
    t->reads->failed = t->reads->failed || out->name == NULL;
    return out->name != NULL;
}

static void doubt(tracer *t) {
    bh__read_record_changed(t->reads, "/");
}

/* `at` is behind the # of a line. */
static void take_directive(tracer *t, const char *folder, const char *at) {
    question q = {0};
    at += strspn(at, " \t");
    if (strncmp(at, "include", 7) == 0)
        at += 7;
    else if (strncmp(at, "import", 6) == 0)
        at += 6;
    else
        return;
    q.next = strncmp(at, "_next", 5) == 0;
    at += q.next ? 5 : 0;
    if (read_name(t, at, &q))
        ask(t, folder, &q);
    else if (*at == ' ' || *at == '\t' || *at == '/')
        doubt(t); /* a macro, or a comment where the name should be */
}

static void take_questions(tracer *t, const char *folder, const char *line, size_t length) {
    static const char word[] = "__has_include";
    const char *end = line + length, *at = line;
    while ((at = memmem(at, (size_t)(end - at), word, sizeof word - 1)) != NULL) {
        question q = {.asked = true};
        at += sizeof word - 1;
        q.next = strncmp(at, "_next", 5) == 0;
        at += q.next ? 5 : 0;
        at += strspn(at, " \t");
        if (*at != '(') continue;
        if (read_name(t, at + 1, &q))
            ask(t, folder, &q);
        else
            doubt(t);
    }
}

static void take_source(tracer *t, const source *from) {
    for (const char *line = from->text; *line != 0 && !t->reads->failed;) {
        size_t length = strcspn(line, "\n");
        const char *at = line + strspn(line, " \t");
        if (*at == '#') take_directive(t, from->folder, at + 1);
        take_questions(t, from->folder, line, length);
        line += length + (line[length] == '\n');
    }
}

/* Files included by flags, as if the source began with them. */
static void add_flags(tracer *t, bh__texts extra) {
    static const char *const flags[] = {"-include", "--include", "-imacros", "--imacros"};
    for (size_t i = 0; i < extra.count; i++) {
        const char *given = bh__chars(extra.list[i]);
        for (size_t n = 0; n < sizeof flags / sizeof *flags; n++) {
            size_t length = strlen(flags[n]);
            if (strncmp(given, flags[n], length) != 0) continue;
            const char *name = given + length;
            if (*name == 0 && i + 1 < extra.count) name = bh__chars(extra.list[i + 1]);
            name += *name == '=';
            add_source(t, "", bh__text_format(t->reads->arena, "#include \"%s\"\n", name));
            break;
        }
    }
}

void bh__read_record_from_clang(bh__read_record *reads, const bh__compile_job *job,
                                bh__bytes dependencies, bh__bytes search, struct timespec since) {
    tracer t = {.reads = reads};
    const char *name = bh__chars(job->name);
    read_search(&t, search);
    read_dependencies(&t, job, dependencies, since);
    add_source(&t, name[0] == '/' ? folder_of(reads->arena, name) : "", bh__chars(job->source));
    add_flags(&t, job->extra);
    for (size_t i = 0; i < t.source_count && !reads->failed; i++) take_source(&t, &t.sources[i]);
}
