/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of `bulkhead run`. */
#include "run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPT_KERNEL = 1,
    OPT_GRID,
    OPT_BLOCK,
    OPT_SHARED,
    OPT_CLUSTER,
    OPT_COOPERATIVE,
    OPT_DEVICE,
    OPT_CHECK,
    OPT_EXECUTOR,
    OPT_VERBOSE,
    OPT_REPEAT,
    OPT_TIMEOUT,
    OPT_JSON,
    OPT_SARIF,
    OPT_HEX,
    OPT_ALL,
    OPT_COUNTERS,
    OPT_TRACE,
    OPT_REPORT,
    OPT_TRACE_THREADS,
    OPT_TRACE_BLOCK,
    OPT_THREADS,
    OPT_PRINT,
    OPT_STOP,
    OPT_HELP
};

static const bh__option table[] = {
    {'k', "kernel", "NAME", OPT_KERNEL},
    {'g', "grid", "X[,Y[,Z]]", OPT_GRID},
    {'b', "block", "X[,Y[,Z]]", OPT_BLOCK},
    {'s', "shared", "BYTES", OPT_SHARED},
    {0, "cluster", "X[,Y[,Z]]", OPT_CLUSTER},
    {0, "cooperative", NULL, OPT_COOPERATIVE},
    {'d', "device", "auto|cpu|cuda[:N]", OPT_DEVICE},
    {0, "check", NULL, OPT_CHECK},
    {0, "executor", "interp|jit|auto", OPT_EXECUTOR},
    {'v', "verbose", NULL, OPT_VERBOSE},
    {0, "repeat", "N", OPT_REPEAT},
    {0, "timeout", "SECONDS", OPT_TIMEOUT},
    {0, "json", NULL, OPT_JSON},
    {0, "sarif", NULL, OPT_SARIF},
    {0, "hex", NULL, OPT_HEX},
    {0, "all", NULL, OPT_ALL},
    {0, "counters", NULL, OPT_COUNTERS},
    {0, "trace", "FILE", OPT_TRACE},
    {0, "report", "FOLDER", OPT_REPORT},
    {0, "trace-threads", "LIST", OPT_TRACE_THREADS},
    {0, "trace-block", "X[,Y[,Z]]", OPT_TRACE_BLOCK},
    {0, "threads", "LIST", OPT_THREADS},
    {0, "print", "REG@LINE", OPT_PRINT},
    {0, "stop", "LINE", OPT_STOP},
    BH__SOURCE_OPTIONS,
    {'h', "help", NULL, OPT_HELP},
};

#define DEFAULT_TIMEOUT_NS UINT64_C(60000000000)

/* One to three numbers. Those that are left out are `least`. */
static bh_status parse_numbers(const char *option, const char *text, uint32_t least,
                               uint32_t parts[3], bh_error *error) {
    const char *at = text;
    for (size_t i = 0; i < 3; i++) parts[i] = least;
    for (size_t i = 0;; i++) {
        size_t length = strcspn(at, ",");
        uint64_t number = 0;
        if (i == 3 || !bh__count_parse(at, length, &number) || number < least ||
            number > UINT32_MAX) {
            bh__report_set(error, BH_E_INVALID,
                           "%s is \"%.100s\", not one to three %s from %u to %u", option, text,
                           least ? "sizes" : "numbers", least, UINT32_MAX);
            return bh__report_fix(error, "write X, X,Y or X,Y,Z, for example %s 4,2", option);
        }
        parts[i] = (uint32_t)number;
        if (at[length] == '\0') break;
        at += length + 1;
    }
    return BH_OK;
}

static bh_status parse_dim(const char *option, const char *text, bh_dim *out, bh_error *error) {
    uint32_t parts[3];
    bh_status status = parse_numbers(option, text, 1, parts, error);
    if (status == BH_OK) *out = (bh_dim){parts[0], parts[1], parts[2]};
    return status;
}

static bh_status parse_count(const char *option, const char *text, uint64_t min, uint64_t max,
                             uint64_t *out, bh_error *error) {
    if (bh__count_parse(text, strlen(text), out) && *out >= min && *out <= max) return BH_OK;
    bh__report_set(error, BH_E_INVALID, "%s is \"%.100s\", not a whole number from %llu to %llu",
                   option, text, (unsigned long long)min, (unsigned long long)max);
    return bh__report_fix(error, "write for example %s 16", option);
}

static bh_status take_debug_option(bh__run_options *out, int id, const char *value,
                                   bh_error *error) {
    bh_debug_options *debug = &out->debug;
    out->follow = true;
    switch (id) {
    case OPT_TRACE_BLOCK:
        return parse_numbers("--trace-block", value, 0, debug->block, error);
    case OPT_PRINT:
        out->prints[debug->print_count++] = value;
        return BH_OK;
    case OPT_STOP:
        debug->stop = value;
        return BH_OK;
    default: /* OPT_THREADS, OPT_TRACE_THREADS */
        if (debug->threads != NULL) {
            bh__report_set(error, BH_E_INVALID, "threads are listed twice, \"%.60s\" and \"%.60s\"",
                           debug->threads, value);
            return bh__report_fix(error, "give one list, with --trace-threads or --threads");
        }
        if (id == OPT_TRACE_THREADS) debug->flags |= BH_DEBUG_TRACE;
        debug->threads = value;
        return BH_OK;
    }
}

static bh_status parse_executor(const char *text, const char **out, bh_error *error) {
    static const char *const names[] = {"interp", "jit", "auto"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = names[i];
            return BH_OK;
        }
    }
    bh__report_set(error, BH_E_INVALID, "--executor is \"%.100s\", not interp, jit or auto", text);
    return bh__report_fix(error, "write --executor=jit for native code on the CPU device");
}

static void take_source_option(bh__run_options *out, const char *name) {
    if (out->source_option == NULL) out->source_option = name;
}

static bh_status take_option(bh__run_options *out, int id, const char *value, bh_error *error) {
    uint64_t number = 0;
    bh_status status = BH_OK;
    switch (id) {
    case OPT_KERNEL:
        out->kernel = value;
        break;
    case OPT_GRID:
        return parse_dim("--grid", value, &out->shape.grid, error);
    case OPT_BLOCK:
        return parse_dim("--block", value, &out->shape.block, error);
    case OPT_SHARED:
        status = parse_count("--shared", value, 0, UINT32_MAX, &number, error);
        out->shape.shared_bytes = (uint32_t)number;
        break;
    case OPT_CLUSTER:
        return parse_dim("--cluster", value, &out->shape.cluster, error);
    case OPT_COOPERATIVE:
        out->cooperative = true;
        break;
    case OPT_DEVICE:
        out->device = value;
        break;
    case OPT_CHECK:
        out->check = true;
        break;
    case OPT_EXECUTOR:
        return parse_executor(value, &out->executor, error);
    case OPT_VERBOSE:
        out->verbose = true;
        break;
    case OPT_REPEAT:
        return parse_count("--repeat", value, 1, UINT32_MAX, &out->repeat, error);
    case OPT_TIMEOUT:
        return bh__timeout_parse(value, 1e-9, &out->timeout_ns, error);
    case OPT_JSON:
        out->json = true;
        break;
    case OPT_SARIF:
        out->sarif = out->check = true;
        break;
    case OPT_HEX:
        out->style.hex = true;
        break;
    case OPT_ALL:
        out->style.all = true;
        break;
    case OPT_COUNTERS:
        out->counters = true;
        break;
    case OPT_TRACE:
        out->trace = value;
        break;
    case OPT_REPORT:
        out->report = value;
        break;
    case OPT_TRACE_THREADS:
    case OPT_TRACE_BLOCK:
    case OPT_THREADS:
    case OPT_PRINT:
    case OPT_STOP:
        return take_debug_option(out, id, value, error);
    case OPT_HELP:
        out->help = true;
        break;
    default:
        take_source_option(out, bh__source_option_name(id));
        return bh__source_take(&out->source, id, value, error);
    }
    return status;
}

static bool is_cuda_source(const char *path) {
    const char *dot = strrchr(path, '.');
    return dot != NULL && (strcmp(dot, ".cu") == 0 || strcmp(dot, ".cuh") == 0);
}

/* Checks that a file was named, and that its options apply to it. */
static bh_status check_combination(const bh__run_options *options, bh_error *error) {
    if (options->file == NULL) {
        bh__report_set(error, BH_E_INVALID, "no file was named");
        return bh__report_fix(error, "write bulkhead run FILE.ptx ...; \"bulkhead run --help\" has "
                                     "examples");
    }
    size_t sources = 0;
    for (size_t i = 0; i < options->file_count; i++) sources += is_cuda_source(options->files[i]);
    if (options->source_option != NULL && sources == 0) {
        const char *dashes = options->source_option[0] == '-' ? "" : "--";
        bh__report_set(error, BH_E_INVALID,
                       "%s%s applies to CUDA C++ sources (.cu) only, not to %.200s", dashes,
                       options->source_option, options->file_text);
        return bh__report_fix(error, "remove %s%s", dashes, options->source_option);
    }
    return BH_OK;
}

/* A further file: by its extension, unless it is an argument such as in:f32:@x.ptx. */
static bool is_file(const char *word) {
    static const char *const ends[] = {".cu", ".cuh", ".ptx", ".cubin", ".fatbin", ".ltoir"};
    const char *colon = strchr(word, ':'), *slash = strchr(word, '/');
    const char *dot = strrchr(word, '.');
    if (dot == NULL || (colon != NULL && (slash == NULL || colon < slash))) return false;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (strcmp(dot, ends[i]) == 0) return true;
    return false;
}

static int parse_words(bh__options *words, bh__run_options *out, const char **operands,
                       size_t *operand_count) {
    bh_error error;
    for (;;) {
        const char *value = NULL;
        int id = bh__options_next(words, &value, &error);
        if (id == BH__OPTIONS_END) break;
        if (id == BH__OPTIONS_WRONG) return bh__report_usage(&error);
        if (id == BH__OPTIONS_OPERAND) {
            if (out->file_count == 0 || (!words->only_operands && is_file(value)))
                out->files[out->file_count++] = value;
            else
                operands[(*operand_count)++] = value;
        } else if (take_option(out, id, value, &error) != BH_OK) {
            return bh__report_usage(&error);
        }
    }
    if (out->file_count == 0) return BH__EXIT_DONE;
    out->file = out->files[0];
    bh__parts_text(out->files, out->file_count, out->file_text, sizeof out->file_text);
    return BH__EXIT_DONE;
}

static int parse_args(bh__run_options *out, const char **operands, size_t count) {
    bh_error error;
    out->args = calloc(count + 1, sizeof *out->args);
    if (out->args == NULL) {
        bh__report_set(&error, BH_E_NO_HOST_MEMORY, "no memory for %zu arguments", count);
        bh__report_fix(&error, "free some memory");
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    for (size_t i = 0; i < count; i++) {
        bh_status status = bh__arg_parse(operands[i], &out->args[i], &error);
        if (status != BH_OK) {
            bh__report_print(&error);
            return status == BH_E_INVALID ? BH__EXIT_USAGE : BH__EXIT_REFUSED;
        }
        out->arg_count++;
    }
    return BH__EXIT_DONE;
}

int bh__run_options_parse(int count, char **list, bh__run_options *out) {
    memset(out, 0, sizeof *out);
    out->shape.grid = out->shape.block = (bh_dim){1, 1, 1};
    out->timeout_ns = DEFAULT_TIMEOUT_NS;
    bh__options words = {.command = "run",
                         .table = table,
                         .table_count = sizeof table / sizeof table[0],
                         .list = list,
                         .count = count};
    const char **operands = calloc((size_t)count + 1, sizeof *operands);
    out->files = calloc((size_t)count + 1, sizeof *out->files);
    out->prints = calloc((size_t)count + 1, sizeof *out->prints);
    out->debug = (bh_debug_options)BH_INIT(out->debug);
    out->debug.prints = out->prints;
    if (!bh__source_init(&out->source, count) || operands == NULL || out->files == NULL ||
        out->prints == NULL) {
        free(operands);
        return BH__EXIT_REFUSED;
    }
    size_t operand_count = 0;
    bh_error error;
    int code = parse_words(&words, out, operands, &operand_count);
    if (code == BH__EXIT_DONE && !out->help && check_combination(out, &error) != BH_OK)
        code = bh__report_usage(&error);
    if (code == BH__EXIT_DONE && !out->help) code = parse_args(out, operands, operand_count);
    free(operands);
    return code;
}

void bh__run_options_free(bh__run_options *options) {
    for (size_t i = 0; i < options->arg_count; i++) bh__arg_free(&options->args[i]);
    free(options->args);
    free(options->files);
    free(options->prints);
    bh__source_free(&options->source);
}
