/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests that are one file: how to run the command, and what it must print.
 *
 * In the comment at the top of a .ptx file (//) and in a .test file (#):
 *
 *     RUN: ARGS         .ptx: `bulkhead run FILE ARGS`; .test: a command line as it stands
 *     EXPECT: LINE      standard output, line by line, all of it. A line `...` stands for any
 *                       number of lines, `<...>` inside a line for any text
 *     EXPECT-ERR: TEXT  standard error contains this; without any, it must be empty
 *     EXIT: N           the exit status; 0 unless said
 *     ENV: NAME=VALUE   for all runs of the file
 *     ONLY: DEVICE      skipped when another device is tested
 *     TIMEOUT: SECONDS  instead of 30        SERIAL:   with no other test beside it
 *
 * The lines after a RUN belong to it, and there may be several. Words are split at spaces; quotes
 * keep them together. $TMP (an empty directory), $SRC, $BUILD and $DIR (of the file) are replaced.
 * Commands run in the directory of the file.
 */
#include "runner.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_LINES = 2000, MAX_WORDS = 500 };

struct lines {
    char *text[MAX_LINES];
    size_t count;
};

struct run {
    char *command; /* NULL: the file has none yet */
    struct lines expected;
    struct lines errors;
    int exit_status;
    int line;
};

struct golden {
    const char *path;
    char *directory;
    bool ptx;
    const char *device;
    struct run run;
    int runs;
    bool failed;
};

static void push_line(struct lines *lines, char *text) {
    if (lines->count == MAX_LINES) {
        die("more than %d lines", MAX_LINES);
    }
    lines->text[lines->count++] = text;
}

static struct lines split_lines(char *text) {
    struct lines lines = {.count = 0};
    while (*text != '\0') {
        char *end = strchrnul(text, '\n');
        bool more = *end == '\n';
        *end = '\0';
        push_line(&lines, text);
        text = end + more;
    }
    return lines;
}

/* Whether `text` is `pattern`, in which <...> stands for anything. */
static bool line_matches(const char *pattern, const char *text) {
    const char *after_wild = NULL, *retry = NULL;
    for (;;) {
        if (strncmp(pattern, "<...>", 5) == 0) {
            pattern += 5;
            after_wild = pattern;
            retry = text;
        } else if (*pattern == *text && *text != '\0') {
            pattern++;
            text++;
        } else if (*pattern == '\0' && *text == '\0') {
            return true;
        } else if (after_wild != NULL && *retry != '\0') {
            pattern = after_wild;
            text = ++retry;
        } else {
            return false;
        }
    }
}

/* The same for lines, of which "..." stands for any number. */
static bool lines_match(const struct lines *patterns, const struct lines *texts) {
    size_t p = 0, t = 0, after_wild = 0, retry = 0;
    bool wild = false;
    for (;;) {
        if (p < patterns->count && strcmp(patterns->text[p], "...") == 0) {
            after_wild = ++p;
            retry = t;
            wild = true;
        } else if (p < patterns->count && t < texts->count &&
                   line_matches(patterns->text[p], texts->text[t])) {
            p++;
            t++;
        } else if (p == patterns->count && t == texts->count) {
            return true;
        } else if (wild && retry < texts->count) {
            p = after_wild;
            t = ++retry;
        } else {
            return false;
        }
    }
}

/* The value of $NAME at `text`, and in `length` how long the name is; NULL if there is none. */
static const char *variable_at(const struct golden *golden, const char *text, size_t *length) {
    const struct {
        const char *name, *value;
    } variables[] = {{"$TMP", getenv("BULKHEAD_TEST_TMP")},
                     {"$SRC", BULKHEAD_SOURCE_DIR},
                     {"$BUILD", BULKHEAD_BUILD_DIR},
                     {"$DIR", golden->directory}};
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        *length = strlen(variables[i].name);
        if (strncmp(text, variables[i].name, *length) == 0) {
            return variables[i].value;
        }
    }
    return NULL;
}

static char *expand(const struct golden *golden, const char *text) {
    char *result = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&result, &size);
    while (*text != '\0') {
        size_t length;
        const char *value = *text == '$' ? variable_at(golden, text, &length) : NULL;
        if (value != NULL) {
            fputs(value, stream);
            text += length;
        } else {
            fputc(*text++, stream);
        }
    }
    fclose(stream);
    return result;
}

/* Splits `line` in place. Returns how many words there are. */
static size_t split_words(char *line, char **words, size_t room) {
    size_t count = 0;
    while (*(line += strspn(line, " \t")) != '\0') {
        char *word = line, *end = line, quote = '\0';
        for (; *line != '\0' && (quote || (*line != ' ' && *line != '\t')); line++) {
            if (quote ? *line == quote : *line == '\'' || *line == '"') {
                quote = quote ? '\0' : *line;
            } else {
                *end++ = *line;
            }
        }
        line += *line != '\0';
        *end = '\0';
        if (count == room) {
            die("more than %zu words", room);
        }
        words[count++] = word;
    }
    return count;
}

static bool names_device(char **words, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (strncmp(words[i], "-d", 2) == 0 || strncmp(words[i], "--device", 8) == 0) {
            return true;
        }
    }
    return false;
}

static void execute(const struct golden *golden, const char *out, const char *err) {
    char *given[MAX_WORDS], *argv[MAX_WORDS + 8];
    size_t count = 0;
    size_t words = split_words(expand(golden, golden->run.command), given, MAX_WORDS);
    if (golden->ptx) {
        argv[count++] = "bulkhead";
        argv[count++] = "run";
        argv[count++] = strrchr(golden->path, '/') + 1;
        if (!names_device(given, words)) {
            argv[count++] = "--device";
            argv[count++] = (char *)golden->device;
        }
    }
    for (size_t i = 0; i < words; i++) {
        argv[count++] = given[i];
    }
    argv[count] = NULL;
    process_prepare_child();
    int out_file = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int err_file = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (out_file < 0 || err_file < 0 || chdir(golden->directory) != 0 || count == 0) {
        _exit(126);
    }
    dup2(out_file, STDOUT_FILENO);
    dup2(err_file, STDERR_FILENO);
    close(out_file);
    close(err_file);
    execvp(argv[0], argv);
    fprintf(stderr, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

__attribute__((format(printf, 2, 3))) static void complain(struct golden *golden,
                                                           const char *format, ...) {
    va_list list;
    va_start(list, format);
    printf("%s:%d: ", golden->path, golden->run.line);
    vprintf(format, list);
    printf("\n");
    va_end(list);
    golden->failed = true;
}

static void print_lines(const char *title, const struct lines *lines) {
    printf("--- %s\n", title);
    for (size_t i = 0; i < lines->count; i++) {
        printf("%s\n", lines->text[i]);
    }
    printf("---\n");
}

static void compare(struct golden *golden, int status, char *out, char *err) {
    struct run *run = &golden->run;
    if (WIFSIGNALED(status)) {
        complain(golden, "killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != run->exit_status) {
        complain(golden, "exit status %d, not %d", WEXITSTATUS(status), run->exit_status);
    }
    for (size_t i = 0; i < run->errors.count; i++) {
        if (strstr(err, run->errors.text[i]) == NULL) {
            complain(golden, "standard error lacks: %s", run->errors.text[i]);
        }
    }
    if (run->errors.count == 0 && err[0] != '\0') {
        complain(golden, "standard error is not empty");
    }
    struct lines got = split_lines(out);
    if (!lines_match(&run->expected, &got)) {
        complain(golden, "standard output is not what was expected");
        print_lines("expected", &run->expected);
    }
    if (golden->failed) {
        printf("command: %s%s\n", golden->ptx ? "bulkhead run FILE " : "", run->command);
        print_lines("standard output", &got);
        printf("--- standard error\n%s---\n", err);
    }
}

static void finish_run(struct golden *golden) {
    if (golden->run.command == NULL || golden->failed) {
        return;
    }
    char *out = format_text("%s/stdout", getenv("BULKHEAD_TEST_TMP"));
    char *err = format_text("%s/stderr", getenv("BULKHEAD_TEST_TMP"));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        execute(golden, out, err);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) {
        die("fork: %s", strerror(errno));
    }
    char *out_text = read_file(out), *err_text = read_file(err);
    if (out_text == NULL || err_text == NULL) {
        die("the output of the command cannot be read");
    }
    compare(golden, status, out_text, err_text);
    unlink(out);
    unlink(err);
    golden->runs++;
}

static bool starts(const char *text, const char *key, char **value) {
    size_t length = strlen(key);
    if (strncmp(text, key, length) != 0) {
        return false;
    }
    *value = (char *)text + length + (text[length] == ' ');
    return true;
}

/* All capitals and a colon: meant for us. */
static bool is_directive(const char *text) {
    size_t length = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-");
    return length > 0 && text[length] == ':';
}

static void obey(struct golden *golden, char *text, int line) {
    char *value;
    struct run *run = &golden->run;
    if (starts(text, "RUN:", &value)) {
        finish_run(golden);
        memset(run, 0, sizeof *run);
        run->command = value;
        run->line = line;
    } else if (starts(text, "ENV:", &value)) {
        putenv(expand(golden, value));
    } else if (starts(text, "ONLY:", &value)) {
        if (strcmp(golden->device, value) != 0) {
            printf("skip: for the %s device only\n", value);
            exit(TEST_SKIPPED);
        }
    } else if (starts(text, "TIMEOUT:", &value) || starts(text, "SERIAL:", &value)) {
        return; /* read before the test was started */
    } else if (!is_directive(text)) {
        return;
    } else if (run->command == NULL) {
        die("%s:%d: no RUN line stands before this: %s", golden->path, line, text);
    } else if (starts(text, "EXPECT:", &value)) {
        push_line(&run->expected, expand(golden, value));
    } else if (starts(text, "EXPECT-ERR:", &value)) {
        push_line(&run->errors, expand(golden, value));
    } else if (starts(text, "EXIT:", &value)) {
        run->exit_status = atoi(value);
    } else {
        die("%s:%d: unknown: %s", golden->path, line, text);
    }
}

int golden_run(const char *path) {
    const char *device = getenv("BULKHEAD_TEST_DEVICE");
    struct golden *golden = calloc(1, sizeof *golden);
    char *text = read_file(path);
    const char *slash = strrchr(path, '/');
    if (golden == NULL || text == NULL || slash == NULL) {
        die("cannot read %s", path);
    }
    golden->path = path;
    golden->directory = format_text("%.*s", (int)(slash - path), path);
    golden->ptx = strcmp(path + strlen(path) - 4, ".ptx") == 0;
    golden->device = device && device[0] ? device : "cpu";

    const char *mark = golden->ptx ? "//" : "#";
    int number = 1;
    for (char *line = text; *line != '\0'; number++) {
        char *end = strchrnul(line, '\n');
        char *next = *end == '\n' ? end + 1 : end;
        *end = '\0';
        line += strspn(line, " \t");
        if (strncmp(line, mark, strlen(mark)) == 0) {
            line += strlen(mark);
            obey(golden, line + (*line == ' '), number);
        } else if (golden->ptx && *line != '\0') {
            break; /* the program begins */
        }
        line = next;
    }
    finish_run(golden);
    if (golden->runs == 0) {
        die("%s has no RUN line", path);
    }
    return golden->failed ? TEST_FAILED : TEST_PASSED;
}
