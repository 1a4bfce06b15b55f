/* SPDX-License-Identifier: Apache-2.0 */
/* Writing the results of a run: to files, to standard output as lines, or as JSON. */
#include "run.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (1u << 20)

typedef struct source {
    bh__run *run;
    size_t index;
} source;

static bh_status read_elements(void *context, uint64_t first, uint64_t count, void *target) {
    source *from = context;
    size_t size = bh_type_size(from->run->options->args[from->index].type);
    bh_buffer buffer = from->run->buffers[from->index];
    if (bh_buffer_read(buffer, first * size, target, count * size) != BH_OK)
        return bh__report_library(&from->run->error);
    return BH_OK;
}

static bool is_written(const bh__arg *arg) {
    return arg->kind == BH__ARG_BUFFER && arg->access != BH_ACCESS_IN;
}

static bh_status save(bh__run *run, size_t index, unsigned char *piece) {
    const bh__arg *arg = &run->options->args[index];
    bh__output *output = &run->outputs[index];
    source from = {run, index};
    uint64_t max = PIECE_BYTES / bh_type_size(arg->type);
    bh_status status = bh__output_begin(output, &run->error);
    if (status == BH_OK && bh__npy_name(arg->out_path)) {
        char header[BH__NPY_HEADER];
        size_t length = bh__npy_header(arg->type, arg->count, header);
        status = bh__output_write(output, header, length, &run->error);
    }
    for (uint64_t first = 0; status == BH_OK && first < arg->count; first += max) {
        uint64_t count = arg->count - first < max ? arg->count - first : max;
        status = read_elements(&from, first, count, piece);
        if (status == BH_OK)
            status = bh__output_write(output, piece, count * bh_type_size(arg->type), &run->error);
    }
    return status;
}

bh_status bh__result_save(bh__run *run) {
    unsigned char *piece = malloc(PIECE_BYTES);
    if (piece == NULL) {
        bh__report_set(&run->error, BH_E_NO_HOST_MEMORY, "no memory for %u bytes", PIECE_BYTES);
        return bh__report_fix(&run->error, "free some memory");
    }
    bh_status status = BH_OK;
    for (size_t i = 0; status == BH_OK && i < run->options->arg_count; i++)
        if (run->options->args[i].out_path != NULL) status = save(run, i, piece);
    free(piece);
    return status;
}

bh_status bh__result_print(bh__run *run) {
    bh_status status = BH_OK;
    for (size_t i = 0; status == BH_OK && i < run->options->arg_count; i++) {
        const bh__arg *arg = &run->options->args[i];
        source from = {run, i};
        if (!is_written(arg) || arg->out_path != NULL) continue;
        printf("ARG%zu ", i);
        status = bh__print_line(stdout, arg->type, arg->count, run->options->style, read_elements,
                                &from);
    }
    return status;
}

bh_status bh__result_json_args(bh__run *run, bh__json *json) {
    bh_status status = BH_OK;
    bh__json_key(json, "args");
    bh__json_open(json, '[');
    for (size_t i = 0; status == BH_OK && i < run->options->arg_count; i++) {
        const bh__arg *arg = &run->options->args[i];
        source from = {run, i};
        if (!is_written(arg)) continue;
        bh__json_open(json, '{');
        bh__json_key(json, "index");
        bh__json_number(json, i);
        bh__json_key(json, "access");
        bh__json_text(json, arg->access == BH_ACCESS_OUT ? "out" : "inout");
        bh__json_key(json, "type");
        bh__json_text(json, bh_type_name(arg->type));
        bh__json_key(json, "count");
        bh__json_number(json, arg->count);
        if (arg->out_path != NULL) {
            bh__json_key(json, "file");
            bh__json_text(json, arg->out_path);
        } else {
            status = bh__print_json(json, arg->type, arg->count, run->options->style, read_elements,
                                    &from);
        }
        bh__json_close(json, '}');
    }
    bh__json_close(json, ']');
    return status;
}

static void json_dim(bh__json *json, const char *key, bh_dim dim) {
    bh__json_key(json, key);
    bh__json_open_inline(json, '[');
    bh__json_number(json, dim.x);
    bh__json_number(json, dim.y);
    bh__json_number(json, dim.z);
    bh__json_close(json, ']');
}

static void json_shape(bh__json *json, const bh__run_options *options) {
    bh__json_key(json, "shape");
    bh__json_open(json, '{');
    json_dim(json, "grid", options->shape.grid);
    json_dim(json, "block", options->shape.block);
    if (options->shape.cluster.x != 0) json_dim(json, "cluster", options->shape.cluster);
    bh__json_key(json, "shared");
    bh__json_number(json, options->shape.shared_bytes);
    bh__json_key(json, "cooperative");
    bh__json_bool(json, options->cooperative);
    bh__json_close(json, '}');
}

static void json_device(bh__json *json, const bh_device_info *info) {
    bh__json_key(json, "device");
    bh__json_open(json, '{');
    bh__json_key(json, "kind");
    bh__json_text(json, info->kind);
    bh__json_key(json, "name");
    bh__json_text(json, info->name);
    bh__json_key(json, "driver");
    bh__json_text(json, info->driver);
    bh__json_key(json, "arch");
    bh__json_text(json, info->arch);
    bh__json_close(json, '}');
}

void bh__result_json_rest(bh__run *run, bh__json *json) {
    fflush(run->printed);
    bh__json_key(json, "file");
    bh__json_text(json, run->options->file);
    if (run->options->file_count > 1) {
        bh__json_key(json, "files");
        bh__json_open(json, '[');
        for (size_t i = 0; i < run->options->file_count; i++)
            bh__json_text(json, run->options->files[i]);
        bh__json_close(json, ']');
    }
    if (run->kernel_info.name[0] != '\0') {
        bh__json_key(json, "kernel");
        bh__json_text(json, run->kernel_info.name);
    }
    if (run->info.kind[0] != '\0') json_device(json, &run->info);
    json_shape(json, run->options);
    bh__json_key(json, "launches");
    bh__json_number(json, run->launches);
    if (run->launches > 0) {
        bh__json_key(json, "time_ns");
        bh__json_open(json, '{');
        bh__json_key(json, "total");
        bh__json_number(json, run->total_ns);
        bh__json_key(json, "per_launch");
        bh__json_number(json, run->total_ns / run->launches);
        bh__json_close(json, '}');
    }
    bh__json_key(json, "printed");
    bh__json_text_n(json, run->printed_text, run->printed_size);
    if (run->state != NULL) {
        bh__json_key(json, "state");
        bh__json_text(json, run->state);
    }
    bh__json_key(json, "status");
    bh__json_text(json, bh_status_name(run->error.status));
    if (run->error.status != BH_OK) {
        bh__json_key(json, "error");
        bh__json_error(json, &run->error);
    }
}
