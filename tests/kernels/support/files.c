/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the lines in the kernels' files that say how to run them. */
#include <dirent.h>

#include "kernels.h"

uint32_t input_word(uint32_t index) {
    uint32_t x = index * 2654435761u + 12345u;
    x ^= x >> 16;
    x *= 0x85ebca6bu;
    x ^= x >> 13;
    x *= 0xc2b2ae35u;
    return x ^ x >> 16;
}

static bh_dim parse_dim(const char *text) {
    bh_dim dim = {1, 1, 1};
    CHECK(sscanf(text, "%ux%ux%u", &dim.x, &dim.y, &dim.z) >= 1);
    return dim;
}

static void parse_word(run *r, const char *word, const char *file) {
    if (strncmp(word, "n=", 2) == 0) {
        r->n = (uint32_t)strtoul(word + 2, NULL, 10);
    } else if (strncmp(word, "grid=", 5) == 0) {
        r->shape.grid = parse_dim(word + 5);
    } else if (strncmp(word, "block=", 6) == 0) {
        r->shape.block = parse_dim(word + 6);
    } else if (strncmp(word, "cluster=", 8) == 0) {
        r->shape.cluster = parse_dim(word + 8);
    } else if (strncmp(word, "shared=", 7) == 0) {
        r->shape.shared_bytes = (uint32_t)strtoul(word + 7, NULL, 10);
    } else if (strncmp(word, "loose=", 6) == 0) {
        r->loose = strtod(word + 6, NULL);
    } else if (strcmp(word, "cooperative") == 0) {
        r->cooperative = true;
    } else if (strcmp(word, "maps") == 0) {
        r->maps = true;
    } else if (strcmp(word, "nofast") == 0) {
        r->fast = false;
    } else if (strcmp(word, "exact") != 0) {
        FAIL("%s: kernel %s: unknown word '%s' in its RUN line", file, r->name, word);
    }
}

static void parse_run(kernel_file *file, char *line) {
    REQUIRE(file->count < RUNS_MAX);
    run *r = &file->runs[file->count++];
    char *rest = NULL;
    char *word = strtok_r(line, " ", &rest);
    REQUIRE(word != NULL);
    *r = (run){.fast = true};
    snprintf(r->name, sizeof r->name, "%s", word);
    while ((word = strtok_r(NULL, " ", &rest)) != NULL) parse_word(r, word, file->name);
    CHECK(r->n != 0 && r->shape.grid.x != 0 && r->shape.block.x != 0);
}

static void parse_file_line(kernel_file *file, char *line) {
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "nvrtc") == 0) {
            file->nvrtc_only = true;
        } else if (strncmp(word, "arch=", 5) == 0) {
            snprintf(file->arch, sizeof file->arch, "%s", word + 5);
        } else {
            FAIL("%s: unknown word '%s' in its FILE line", file->name, word);
        }
    }
}

static void parse(kernel_file *file) {
    char line[256];
    for (const char *at = file->source; *at;) {
        size_t length = strcspn(at, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, at);
        if (strncmp(line, "// RUN ", 7) == 0) parse_run(file, line + 7);
        if (strncmp(line, "// FILE ", 8) == 0) parse_file_line(file, line + 8);
        at += length + (at[length] != 0);
    }
    CHECK_GT(file->count, 0);
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const kernel_file *)a)->name, ((const kernel_file *)b)->name);
}

unsigned kernel_files(kernel_file files[FILES_MAX]) {
    char folder[1024], path[1400];
    unsigned count = 0;
    test_path(folder, sizeof folder, "%s/tests/kernels", test_source_dir());
    DIR *directory = opendir(folder);
    REQUIRE(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *dot = strrchr(entry->d_name, '.');
        if (!dot || strcmp(dot, ".cu") != 0) continue;
        REQUIRE(count < FILES_MAX);
        kernel_file *file = &files[count++];
        memset(file, 0, sizeof *file);
        snprintf(file->name, sizeof file->name, "%.63s", entry->d_name);
        file->source =
            test_read_file(test_path(path, sizeof path, "%s/%s", folder, entry->d_name), NULL);
        parse(file);
    }
    closedir(directory);
    qsort(files, count, sizeof *files, by_name);
    return count;
}
