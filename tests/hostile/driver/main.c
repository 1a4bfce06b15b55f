/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-hostile seeds=N first=N jobs=N seconds=N only=NAME: an application among hostile
 * workers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "driver.h"

static const char *value_of(const char *argument, const char *name) {
    size_t length = strlen(name);
    return strncmp(argument, name, length) == 0 && argument[length] == '=' ? argument + length + 1
                                                                           : NULL;
}

static uint64_t number_of(const char *text) {
    char *end;
    uint64_t value = strtoull(text, &end, 10);
    if (*text && !*end) return value;
    fprintf(stderr, "error: \"%s\" is not a number\nFix: give it as digits, seeds=1000\n", text);
    exit(2);
}

static void usage(const char *argument) {
    fprintf(stderr,
            "error: unknown argument \"%s\"\n"
            "Fix: bulkhead-hostile [seeds=N] [first=N] [jobs=N] [seconds=N] [only=HOSTILITY],\n"
            "     or run=SEED for one in this process\n",
            argument);
    exit(2);
}

int main(int argc, char **argv) {
    seeds_options options = {.first = 1, .count = 100, .jobs = 4};
    const char *text, *one = NULL;
    struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"seeds", &options.count},
                   {"first", &options.first},
                   {"jobs", &options.jobs},
                   {"seconds", &options.seconds}};
    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++) {
            if (!(text = value_of(argv[i], numbers[k].name))) continue;
            *numbers[k].number = number_of(text);
            known = true;
        }
        if ((text = value_of(argv[i], "only")))
            options.only = text;
        else if ((text = value_of(argv[i], "run")))
            one = text;
        else if (!known)
            usage(argv[i]);
    }
    if (one) return run_seed(number_of(one), options.only);
    return run_seeds(&options) ? 1 : 0;
}
