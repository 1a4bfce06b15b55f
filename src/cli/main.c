/* SPDX-License-Identifier: Apache-2.0 */
/* The bulkhead command: finds the subcommand and runs it. */
#include "cli.h"

#include <string.h>

static const struct {
    const char *name;
    int (*main)(int count, char **list);
} commands[] = {
    {"devices", bh__devices_main}, {"run", bh__run_main},         {"demo", bh__demo_main},
    {"doctor", bh__doctor_main},   {"compile", bh__compile_main}, {"link", bh__link_main},
    {"cache", bh__cache_main},     {"top", bh__top_main},         {"serve", bh__serve_main},
    {"bench", bh__bench_main},
};

#define COMMANDS (sizeof commands / sizeof commands[0])

static int unknown(const char *word) {
    const char *names[COMMANDS + 1];
    for (size_t i = 0; i < COMMANDS; i++) names[i] = commands[i].name;
    names[COMMANDS] = "help";
    const char *nearest = bh__report_nearest(word, names, COMMANDS + 1);
    bh_error error;
    bh__report_set(&error, BH_E_INVALID, "\"%.100s\" is not %s of bulkhead", word,
                   word[0] == '-' ? "an option" : "a command");
    if (nearest != NULL)
        bh__report_fix(&error, "did you mean \"bulkhead %s\"? \"bulkhead --help\" lists them all",
                       nearest);
    else
        bh__report_fix(&error, "\"bulkhead --help\" lists the commands");
    return bh__report_usage(&error);
}

static int help(int count, char **list) {
    if (count > 1) {
        bh_error error;
        bh__report_set(&error, BH_E_INVALID, "bulkhead help takes one command, %d words were given",
                       count);
        bh__report_fix(&error, "write for example \"bulkhead help run\"");
        return bh__report_usage(&error);
    }
    const char *topic = count == 1 ? list[0] : NULL;
    return bh__help_print(stdout, topic) ? BH__EXIT_DONE : unknown(topic);
}

static int dispatch(int count, char **list) {
    const char *word = list[0];
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return help(0, NULL);
    if (strcmp(word, "help") == 0) return help(count - 1, list + 1);
    if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
        printf("bulkhead %s\n", bh_version());
        return BH__EXIT_DONE;
    }
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(word, commands[i].name) == 0) return commands[i].main(count - 1, list + 1);
    return unknown(word);
}

int main(int argc, char **argv) {
    if (argc < 2) {
        bh__help_print(stderr, NULL);
        return BH__EXIT_USAGE;
    }
    return bh__report_flush(dispatch(argc - 1, argv + 1));
}
