/* SPDX-License-Identifier: Apache-2.0 */
/* Splits a command line into options and operands, in any order, driven by a table. */
#include "cli.h"

#include <string.h>

#define MAX_NAMES 64

static void unknown(const bh__options *options, const char *word, size_t length, bh_error *error) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)length, word);
    bh__report_set(error, BH_E_INVALID, "\"%s\" is not an option of bulkhead %s", name,
                   options->command);
    const char *names[MAX_NAMES];
    size_t count = 0;
    for (size_t i = 0; i < options->table_count && count < MAX_NAMES; i++)
        if (options->table[i].name != NULL) names[count++] = options->table[i].name;
    const char *nearest =
        strncmp(name, "--", 2) == 0 ? bh__report_nearest(name + 2, names, count) : NULL;
    if (nearest != NULL)
        bh__report_fix(error, "did you mean --%s? \"bulkhead %s --help\" lists them all", nearest,
                       options->command);
    else
        bh__report_fix(error, "\"bulkhead %s --help\" lists the options", options->command);
}

static int missing(const bh__options *options, const char *word, const bh__option *option,
                   bh_error *error) {
    bh__report_set(error, BH_E_INVALID, "option %s needs a value: %s", word, option->value);
    bh__report_fix(error, "write %s %s; \"bulkhead %s --help\" has more", word, option->value,
                   options->command);
    return BH__OPTIONS_WRONG;
}

static int take_long(bh__options *options, const char *word, const char **value, bh_error *error) {
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    for (size_t i = 0; i < options->table_count; i++) {
        const bh__option *option = &options->table[i];
        if (option->name == NULL || strlen(option->name) != length ||
            memcmp(option->name, name, length) != 0)
            continue;
        if (option->value == NULL && equals != NULL) {
            bh__report_set(error, BH_E_INVALID, "option --%s takes no value, \"%s\" was given",
                           option->name, equals + 1);
            bh__report_fix(error, "write --%s without a value", option->name);
            return BH__OPTIONS_WRONG;
        }
        *value = equals ? equals + 1 : NULL;
        if (option->value != NULL && equals == NULL) {
            if (options->next >= options->count) return missing(options, word, option, error);
            *value = options->list[options->next++];
        }
        return option->id;
    }
    unknown(options, word, 2 + length, error);
    return BH__OPTIONS_WRONG;
}

static int take_short(bh__options *options, const char **value, bh_error *error) {
    char word[3] = {'-', *options->bundle, '\0'};
    options->bundle++;
    for (size_t i = 0; i < options->table_count; i++) {
        const bh__option *option = &options->table[i];
        if (option->letter == 0 || option->letter != word[1]) continue;
        *value = NULL;
        if (option->value != NULL) {
            if (*options->bundle != '\0')
                *value = options->bundle;
            else if (options->next < options->count)
                *value = options->list[options->next++];
            else
                return missing(options, word, option, error);
            options->bundle = NULL;
        }
        return option->id;
    }
    unknown(options, word, 2, error);
    return BH__OPTIONS_WRONG;
}

int bh__options_next(bh__options *options, const char **value, bh_error *error) {
    if (options->bundle != NULL && *options->bundle != '\0')
        return take_short(options, value, error);
    options->bundle = NULL;
    if (options->next >= options->count) return BH__OPTIONS_END;
    const char *word = options->list[options->next++];
    if (!options->only_operands) {
        if (strcmp(word, "--") == 0) {
            options->only_operands = true;
            return bh__options_next(options, value, error);
        }
        if (strncmp(word, "--", 2) == 0) return take_long(options, word, value, error);
        if (word[0] == '-' && word[1] != '\0') {
            options->bundle = word + 1;
            return take_short(options, value, error);
        }
    }
    *value = word;
    return BH__OPTIONS_OPERAND;
}

int bh__simple_options_parse(const char *command, const char *letters, int count, char **list,
                             bh__simple_options *out) {
    bh__option table[3] = {{'h', "help", NULL, 'h'}};
    size_t table_count = 1;
    if (strchr(letters, 'j') != NULL) table[table_count++] = (bh__option){0, "json", NULL, 'j'};
    if (strchr(letters, 'd') != NULL)
        table[table_count++] = (bh__option){'d', "device", "auto|cpu|cuda[:N]", 'd'};
    bh__options words = {.command = command,
                         .table = table,
                         .table_count = table_count,
                         .list = list,
                         .count = count};
    memset(out, 0, sizeof *out);
    bh_error error;
    for (;;) {
        const char *value = NULL;
        switch (bh__options_next(&words, &value, &error)) {
        case BH__OPTIONS_END:
            return BH__EXIT_DONE;
        case 'h':
            out->help = true;
            bh__help_print(stdout, command);
            return BH__EXIT_DONE;
        case 'j':
            out->json = true;
            break;
        case 'd':
            out->device = value;
            break;
        case BH__OPTIONS_OPERAND:
            bh__report_set(&error, BH_E_INVALID,
                           "bulkhead %s takes no arguments, \"%.100s\" was given", command, value);
            bh__report_fix(&error, "remove it; \"bulkhead %s --help\" has more", command);
            return bh__report_usage(&error);
        default:
            return bh__report_usage(&error);
        }
    }
}
