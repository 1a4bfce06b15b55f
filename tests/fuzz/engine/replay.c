/* SPDX-License-Identifier: Apache-2.0 */
/* The main function of a fuzz target without libFuzzer:
 *
 *     fuzz-NAME corpus                 runs every input of tests/fuzz/corpus/NAME
 *     fuzz-NAME FILE...                runs these
 *     fuzz-NAME --mutate SECONDS [--seed N] [--crashes DIR] [--found DIR] [FOLDER...]
 *                                      mutates the inputs of its corpus and of the folders
 *
 * It prints the name of each input before it runs it: the last one printed is the one that
 * failed. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine.h"

void corpus_add(corpus *to, const uint8_t *bytes, size_t size) {
    if (to->count == to->room) {
        to->room = to->room ? to->room * 2 : 64;
        to->list = realloc(to->list, to->room * sizeof *to->list);
        FUZZ_CHECK(to->list != NULL);
    }
    input *one = &to->list[to->count++];
    *one = (input){malloc(size ? size : 1), size};
    FUZZ_CHECK(one->bytes != NULL);
    memcpy(one->bytes, bytes, size);
}

void corpus_free(corpus *all) {
    for (size_t i = 0; i < all->count; i++) free(all->list[i].bytes);
    free(all->list);
}

static input read_input(const char *path) {
    struct stat info;
    FILE *file = fopen(path, "rbe");
    if (!file || fstat(fileno(file), &info) != 0) {
        fprintf(stderr, "error: cannot read %s: %s\nFix: name a file that holds an input\n", path,
                strerror(errno));
        exit(2);
    }
    input one = {malloc((size_t)info.st_size + 1), (size_t)info.st_size};
    FUZZ_CHECK(one.bytes != NULL);
    one.size = fread(one.bytes, 1, one.size, file);
    fclose(file);
    /* Of exactly its size, so that a sanitizer sees a read behind it. */
    one.bytes = realloc(one.bytes, one.size ? one.size : 1);
    return one;
}

static void run_file(const char *path) {
    printf("%s\n", path);
    fflush(stdout);
    input one = read_input(path);
    LLVMFuzzerTestOneInput(one.bytes, one.size);
    free(one.bytes);
}

static int is_input(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* The files of a folder, in the order of their names; their number, -1: there is no such folder. */
static int for_each(const char *folder, void (*visit)(const char *path, void *context),
                    void *context) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_input, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        visit(path, context);
        free(entries[i]);
    }
    if (count >= 0) free(entries);
    return count;
}

static void visit_run(const char *path, void *context) {
    (void)context;
    run_file(path);
}

static void visit_add(const char *path, void *context) {
    input one = read_input(path);
    corpus_add(context, one.bytes, one.size);
    free(one.bytes);
}

static int run_corpus(void) {
    int count = for_each(FUZZ_CORPUS, visit_run, NULL);
    if (count > 0) return 0;
    printf("%s holds no inputs\nFix: keep at least one there\n", FUZZ_CORPUS);
    return 1;
}

static int run_mutation(int argc, char **argv) {
    mutation how = {.name = FUZZ_NAME, .crashes = ".", .found = ".", .seed = 1};
    corpus all = {0};
    for_each(FUZZ_CORPUS, visit_add, &all);
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        bool option = argv[i][0] == '-';
        if (strcmp(argv[i], "--mutate") == 0)
            how.seconds = (unsigned)atoi(value);
        else if (strcmp(argv[i], "--seed") == 0)
            how.seed = strtoull(value, NULL, 0);
        else if (strcmp(argv[i], "--crashes") == 0)
            how.crashes = value;
        else if (strcmp(argv[i], "--found") == 0)
            how.found = value;
        else if (option || for_each(argv[i], visit_add, &all) < 0) {
            fprintf(stderr, "error: %s is no option and no folder\nFix: see engine/replay.c\n",
                    argv[i]);
            return 2;
        }
        i += option;
    }
    int failures = mutate(&how, &all);
    corpus_free(&all);
    return failures ? 1 : 0;
}

int main(int argc, char **argv) {
    if (argc == 2 && strcmp(argv[1], "--list") == 0) return printf("corpus 60\n") < 0;
    if (argc == 1 || strcmp(argv[1], "corpus") == 0) return run_corpus();
    if (argv[1][0] == '-') return run_mutation(argc, argv);
    for (int i = 1; i < argc; i++) run_file(argv[i]);
    return 0;
}
