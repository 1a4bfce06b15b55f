/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead compile`: CUDA C++ to PTX, cubin or LTO-IR, through the cache. `bulkhead link`: several
 * files to PTX or a cubin. */
#include "source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OPT_OUT = 1,
    OPT_PTX,
    OPT_CUBIN,
    OPT_LTOIR,
    OPT_NAME,
    OPT_RELOCATABLE,
    OPT_TIMEOUT,
    OPT_VERBOSE,
    OPT_JSON,
    OPT_HELP
};

static const bh__option table[] = {
    {'o', "output", "FILE", OPT_OUT},
    {0, "ptx", NULL, OPT_PTX},
    {0, "cubin", NULL, OPT_CUBIN},
    {0, "ltoir", NULL, OPT_LTOIR},
    {0, "name", "EXPRESSION", OPT_NAME},
    {0, "relocatable", NULL, OPT_RELOCATABLE},
    {0, "timeout", "SECONDS", OPT_TIMEOUT},
    {'v', "verbose", NULL, OPT_VERBOSE},
    {0, "json", NULL, OPT_JSON},
    {'h', "help", NULL, OPT_HELP},
    BH__SOURCE_OPTIONS,
};

/* --ltoir, --name and --relocatable are for one source. */
static const bh__option link_table[] = {
    {'o', "output", "FILE", OPT_OUT},    {0, "ptx", NULL, OPT_PTX},
    {0, "cubin", NULL, OPT_CUBIN},       {0, "timeout", "SECONDS", OPT_TIMEOUT},
    {'v', "verbose", NULL, OPT_VERBOSE}, {0, "json", NULL, OPT_JSON},
    {'h', "help", NULL, OPT_HELP},       BH__SOURCE_OPTIONS,
};

typedef struct compile {
    bool links;
    bh__source source;
    const char **files; /* owned array */
    size_t file_count;
    const char *file; /* of a compile */
    const char *out;
    bool verbose, json, help;
    bh_binary binary;
    bh_binary_info info;
    char *log; /* owned: of a failure */
    bh_error error;
} compile;

static bh_status set_output(compile *c, uint32_t output) {
    uint32_t before = c->source.options.output;
    if (before != 0 && before != output) {
        bh__report_set(&c->error, BH_E_INVALID, "both %s and %s output were requested",
                       bh__source_output_text(before), bh__source_output_text(output));
        return bh__report_fix(&c->error, c->links ? "use only one of --ptx and --cubin"
                                                  : "use only one of --ptx, --cubin and --ltoir");
    }
    c->source.options.output = output;
    return BH_OK;
}

static bh_status take(compile *c, int id, const char *value) {
    switch (id) {
    case OPT_OUT:
        c->out = strcmp(value, "-") == 0 ? NULL : value;
        return BH_OK;
    case OPT_PTX:
        return set_output(c, BH_OUTPUT_PTX);
    case OPT_CUBIN:
        return set_output(c, BH_OUTPUT_CUBIN);
    case OPT_LTOIR:
        return set_output(c, BH_OUTPUT_LTOIR);
    case OPT_NAME:
        bh__source_add_name(&c->source, value);
        return BH_OK;
    case OPT_RELOCATABLE:
        c->source.options.flags |= BH_COMPILE_RELOCATABLE;
        return BH_OK;
    case OPT_TIMEOUT:
        return bh__timeout_parse(value, 1e-3, &c->source.options.timeout_ns, &c->error);
    case OPT_VERBOSE:
        c->verbose = true;
        return BH_OK;
    case OPT_JSON:
        c->json = true;
        return BH_OK;
    case OPT_HELP:
        c->help = true;
        return BH_OK;
    case BH__OPTIONS_OPERAND:
        c->files[c->file_count++] = value;
        if (c->file == NULL || c->links) {
            c->file = c->files[0];
            return BH_OK;
        }
        bh__report_set(&c->error, BH_E_INVALID, "two files were named: %.100s and %.100s", c->file,
                       value);
        return bh__report_fix(&c->error, "compile them one by one with --relocatable, or use "
                                         "\"bulkhead link\"");
    default:
        return bh__source_take(&c->source, id, value, &c->error);
    }
}

static int parse(compile *c, int count, char **list) {
    size_t compile_count = sizeof table / sizeof table[0];
    bh__options words = {.command = c->links ? "link" : "compile",
                         .table = c->links ? link_table : table,
                         .table_count =
                             c->links ? sizeof link_table / sizeof link_table[0] : compile_count,
                         .list = list,
                         .count = count};
    for (;;) {
        const char *value = NULL;
        int id = bh__options_next(&words, &value, &c->error);
        if (id == BH__OPTIONS_END) break;
        if (id == BH__OPTIONS_WRONG || take(c, id, value) != BH_OK)
            return bh__report_usage(&c->error);
    }
    if (c->help || c->file != NULL) return BH__EXIT_DONE;
    bh__report_set(&c->error, BH_E_INVALID, "no file was named");
    bh__report_fix(&c->error, c->links
                                  ? "write bulkhead link a.ptx b.cu; \"bulkhead link --help\" has "
                                    "more"
                                  : "write bulkhead compile FILE.cu; \"bulkhead compile --help\" "
                                    "has more");
    return bh__report_usage(&c->error);
}

/* By the extension of the output file; PTX by default. */
static void choose_output(compile *c) {
    uint32_t *output = &c->source.options.output;
    if (*output != 0) return;
    *output = c->out != NULL && bh__source_ends_with(c->out, ".cubin")   ? BH_OUTPUT_CUBIN
              : c->out != NULL && bh__source_ends_with(c->out, ".ltoir") ? BH_OUTPUT_LTOIR
                                                                         : BH_OUTPUT_PTX;
}

static bh_status refuse_terminal(compile *c) {
    bh__report_set(&c->error, BH_E_INVALID, "%s is binary, and standard output is a terminal",
                   bh__source_output_text(c->source.options.output));
    return bh__report_fix(&c->error, "name a file with -o, or use --ptx");
}

static void print_verbose(const compile *c) {
    char size[BH__TEXT], time[BH__TEXT];
    fprintf(stderr, "%s of %s for %s by %s", bh__text_size(c->info.count, size),
            bh__source_output_text(c->info.output), c->info.arch, c->info.compiler);
    if (c->info.why[0] != '\0') fprintf(stderr, " (%s)", c->info.why);
    if (c->info.cache == BH_CACHE_DISK || c->info.cache == BH_CACHE_MEMORY)
        fprintf(stderr, ", from the cache\n");
    else
        fprintf(stderr, ", compiled in %s\n", bh__text_time(c->info.compile_ns, time));
    for (size_t i = 0; i < c->source.options.expression_count; i++) {
        const char *lowered;
        if (bh_binary_lowered(c->binary, c->source.expressions[i], &lowered) == BH_OK)
            fprintf(stderr, "%s is %s\n", c->source.expressions[i], lowered);
    }
}

static void print_json(const compile *c) {
    bh__json json;
    bh__json_begin(&json, stdout);
    bh__json_open(&json, '{');
    if (c->links) {
        bh__json_key(&json, "files");
        bh__json_open(&json, '[');
        for (size_t i = 0; i < c->file_count; i++) bh__json_text(&json, c->files[i]);
        bh__json_close(&json, ']');
    } else {
        bh__json_key(&json, "file");
        bh__json_text(&json, c->file);
    }
    bh__json_key(&json, "status");
    bh__json_text(&json, bh_status_name(c->error.status));
    if (c->error.status != BH_OK) {
        bh__json_key(&json, "error");
        bh__json_error(&json, &c->error);
        bh__json_key(&json, "log");
        bh__json_text(&json, c->log != NULL ? c->log : "");
    } else {
        const bh_binary_info *info = &c->info;
        bh__json_key(&json, "output");
        bh__json_text(&json, bh__source_output_text(info->output));
        bh__json_key(&json, "bytes");
        bh__json_number(&json, info->count);
        bh__json_key(&json, "arch");
        bh__json_text(&json, info->arch);
        bh__json_key(&json, "compiler");
        bh__json_text(&json, info->compiler);
        bh__json_key(&json, "why");
        bh__json_text(&json, info->why);
        bh__json_key(&json, "cache");
        bh__json_text(&json, bh__source_cache_text(info->cache));
        bh__json_key(&json, "compile_ns");
        bh__json_number(&json, info->compile_ns);
        bh__json_key(&json, "names");
        bh__json_open(&json, '{');
        for (size_t i = 0; i < c->source.options.expression_count; i++) {
            const char *lowered;
            if (bh_binary_lowered(c->binary, c->source.expressions[i], &lowered) != BH_OK) continue;
            bh__json_key(&json, c->source.expressions[i]);
            bh__json_text(&json, lowered);
        }
        bh__json_close(&json, '}');
        bh__json_key(&json, "log");
        bh__json_text(&json, info->log);
    }
    bh__json_close(&json, '}');
    bh__json_end(&json);
}

static bh_status write_result(compile *c) {
    if (c->out == NULL) {
        if (!c->json) fwrite(c->info.bytes, 1, c->info.count, stdout);
        return BH_OK;
    }
    bh__output output;
    bh_status status = bh__output_open(c->out, &output, &c->error);
    if (status != BH_OK) return status;
    status = bh__output_begin(&output, &c->error);
    if (status == BH_OK)
        status = bh__output_write(&output, c->info.bytes, c->info.count, &c->error);
    bh_error ignored;
    bh_status closed =
        bh__output_close(&output, status == BH_OK, status == BH_OK ? &c->error : &ignored);
    return status == BH_OK ? closed : status;
}

static bh_status take_result(compile *c) {
    c->info = (bh_binary_info)BH_INIT(c->info);
    return bh_binary_get_info(c->binary, &c->info) == BH_OK ? BH_OK : bh__report_library(&c->error);
}

static bh_status link_files(compile *c) {
    bh__parts parts = {.source = &c->source,
                       .files = c->files,
                       .count = c->file_count,
                       .output = c->source.options.output,
                       .arch = c->source.options.arch,
                       .quiet = c->json};
    bh_status status = bh__parts_link(&parts, &c->binary, &c->error);
    c->log = parts.log;
    if (status == BH_OK) status = take_result(c);
    if (status != BH_OK) return status;
    if (!c->json) fputs(c->info.log, stderr);
    if (c->verbose) print_verbose(c);
    return write_result(c);
}

static bh_status compile_text(compile *c, const bh__bytes *text) {
    const char *name = c->source.options.name;
    if (bh_compile((const char *)text->data, &c->source.options, &c->binary) != BH_OK) {
        bh__report_library(&c->error);
        c->log = bh__source_last_log();
        fflush(stdout);
        if (c->log != NULL && !c->json)
            bh__source_print_log(stderr, c->log, name, (const char *)text->data);
        return c->error.status;
    }
    if (take_result(c) != BH_OK) return c->error.status;
    if (!c->json) bh__source_print_log(stderr, c->info.log, name, (const char *)text->data);
    if (c->verbose) print_verbose(c);
    return write_result(c);
}

static int execute(compile *c) {
    choose_output(c);
    bh__bytes text = {NULL, 0};
    bh_status status = BH_OK;
    if (c->source.options.output != BH_OUTPUT_PTX && c->out == NULL && !c->json && isatty(1))
        status = refuse_terminal(c);
    if (status == BH_OK && c->links) {
        status = link_files(c);
    } else if (status == BH_OK) {
        status = bh__source_read(c->file, &text, &c->error);
        if (status == BH_OK) status = bh__source_ready(&c->source, c->file, &c->error);
        if (status == BH_OK) status = compile_text(c, &text);
    }
    if (c->json) print_json(c);
    if (status != BH_OK) bh__report_print(&c->error);
    if (c->binary.id != 0) bh_binary_release(c->binary);
    free(text.data);
    free(c->log);
    return bh__report_exit(status);
}

static int run(int count, char **list, bool links) {
    compile c;
    memset(&c, 0, sizeof c);
    c.links = links;
    c.files = calloc((size_t)count + 1, sizeof *c.files);
    int code = BH__EXIT_REFUSED;
    if (bh__source_init(&c.source, count) && c.files != NULL) code = parse(&c, count, list);
    if (code == BH__EXIT_DONE && c.help)
        bh__help_print(stdout, links ? "link" : "compile");
    else if (code == BH__EXIT_DONE)
        code = execute(&c);
    bh__source_free(&c.source);
    free(c.files);
    return code;
}

int bh__compile_main(int count, char **list) {
    return run(count, list, false);
}

int bh__link_main(int count, char **list) {
    return run(count, list, true);
}
