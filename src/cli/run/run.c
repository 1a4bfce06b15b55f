/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead run`: loads a kernel, launches it with the given arguments, prints the results. */
#include "run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH    64                    /* launches of --repeat in flight at once */
#define GRACE_NS UINT64_C(10000000000) /* for replacing a worker after a deadline */

/* ---- the kernel's file ---- */

static bh_status read_image(bh__run *run, bh__bytes *out) {
    const char *path = run->options->file;
    bh_status status = bh__file_read(path, out, &run->error);
    if (status != BH_OK) return status;
    if (out->size == 0) {
        bh__report_set(&run->error, BH_E_LOAD, "%s is empty", path);
        bh__report_fix(&run->error, "name a file with PTX or CUDA C++ in it");
    }
    return run->error.status;
}

/* -k may be a name expression, which must be registered; a mangled name need not be. */
static bh_status compile(bh__run *run, const bh__bytes *text, bh_module *module) {
    bh__source *source = &run->options->source;
    const char *wanted = run->options->kernel;
    bh_status status = bh__source_ready(source, run->options->file, &run->error);
    if (status != BH_OK) return status;
    if (memchr(text->data, 0, text->size) != NULL) {
        bh__report_set(&run->error, BH_E_INVALID, "%s contains zero bytes, so it is not a source",
                       run->options->file);
        return bh__report_fix(&run->error, "name a file with CUDA C++ in it");
    }
    if (wanted != NULL && strncmp(wanted, "_Z", 2) != 0) bh__source_add_name(source, wanted);
    bh__progress progress;
    bh__progress_begin(&progress, "compiling");
    bh_ticket ticket;
    status =
        bh_submit_compile(run->device, (const char *)text->data, &source->options, module, &ticket);
    if (status != BH_OK) {
        bh__report_library(&run->error);
        bh__progress_end(&progress);
        return status;
    }
    status = bh__progress_wait(&progress, ticket, BH_FOREVER);
    bh__progress_end(&progress);
    size_t length = 0;
    char *log = NULL;
    if (bh_compile_log(&ticket, NULL, 0, &length) == BH_OK && (log = malloc(length + 1)) != NULL &&
        bh_compile_log(&ticket, log, length + 1, NULL) == BH_OK) {
        fflush(stdout);
        bh__source_print_log(stderr, log, source->options.name, (const char *)text->data);
    }
    free(log);
    if (status != BH_OK) {
        bh_ticket_error(ticket, &run->error);
        bh__report_translate(&run->error);
    }
    return status;
}

/* Several files. A GPU runs PTX as the CPU device does; what is not PTX becomes a cubin. */
static bh_status load_parts(bh__run *run, bh_module *module) {
    bh__run_options *options = run->options;
    bool gpu = strncmp(run->info.arch, "sm_", 3) == 0;
    bh__parts parts = {.source = &options->source,
                       .files = options->files,
                       .count = options->file_count,
                       .kernel = options->kernel,
                       .output = gpu ? BH_OUTPUT_AUTO : BH_OUTPUT_PTX,
                       .arch = gpu ? run->info.arch : NULL};
    bh_binary binary;
    if (gpu && options->source.options.arch == NULL) options->source.options.arch = run->info.arch;
    bh_status status = bh__parts_link(&parts, &binary, &run->error);
    free(parts.log);
    if (status != BH_OK) return status;
    status = bh_module_load_binary(run->device, binary, module);
    if (status != BH_OK) bh__report_library(&run->error);
    bh_binary_release(binary);
    return status;
}

static bh_status load(bh__run *run, const bh__bytes *image, bh_module *module) {
    /* For the worker, which has it from here. */
    if (run->options->executor != NULL) setenv("BULKHEAD_EXECUTOR", run->options->executor, 1);
    bh_device_options options = BH_INIT(options);
    /* The command ends after one kernel: a standby would never be used. */
    options.flags = BH_DEVICE_NO_STANDBY;
    options.device = run->options->device;
    options.report_dir = run->options->report;
    options.print_limit = UINT64_C(64) << 20; /* for a slow terminal or pager */
    if (run->options->check) {
        options.flags |= BH_DEVICE_CHECK;
    }
    if ((run->options->check || run->options->follow) && options.device == NULL)
        options.device = "cpu";
    if (bh_device_open(&options, &run->device) != BH_OK) return bh__report_library(&run->error);
    if (run->options->trace && bh_trace_start(run->device, run->options->trace) != BH_OK)
        return bh__report_library(&run->error);
    run->info = (bh_device_info)BH_INIT(run->info);
    if (bh_device_get_info(run->device, &run->info) != BH_OK)
        return bh__report_library(&run->error);
    if (run->options->file_count > 1) return load_parts(run, module);
    if (bh__source_is_cuda(run->options->file, image)) return compile(run, image, module);
    if (bh_module_load(run->device, image->data, image->size, module) != BH_OK)
        return bh__report_library(&run->error);
    return BH_OK;
}

/* ---- the kernel ---- */

/* "a, b, c", as many as fit. */
static void list_names(const bh_kernel *kernels, size_t count, char *out, size_t size) {
    size_t length = 0;
    out[0] = '\0';
    for (size_t i = 0; i < count; i++) {
        bh_kernel_info info = BH_INIT(info);
        if (bh_kernel_get_info(kernels[i], &info) != BH_OK) return;
        const char *name = info.name;
        if (length + strlen(name) + 8 > size) {
            snprintf(out + length, size - length, ", ...");
            return;
        }
        length += (size_t)snprintf(out + length, size - length, "%s%s", i > 0 ? ", " : "", name);
    }
}

/* Who runs launches that begin now. */
static void say_executor(const bh_kernel_info *k) {
    if (k->executor == BH_EXECUTOR_DEVICE) {
        fprintf(stderr, "kernel %s: runs on the GPU\n", k->name);
    } else if (k->executor == BH_EXECUTOR_INTERPRETER) {
        bool why = k->executor_note[0] != '\0';
        fprintf(stderr, "kernel %s: interpreted%s%s\n", k->name, why ? ": " : "", k->executor_note);
    } else if (k->native_instructions + k->handled_instructions == 0) {
        fprintf(stderr, "kernel %s: native code, %s\n", k->name, k->executor_note);
    } else {
        fprintf(stderr,
                "kernel %s: native code, made in %.1f ms: %u instructions, and %u by the "
                "interpreter%s%s\n",
                k->name, k->compile_us / 1e3, k->native_instructions, k->handled_instructions,
                k->executor_note[0] != '\0' ? ", mostly " : "", k->executor_note);
    }
}

/* Native code may have come meanwhile. */
static void say_switch(const bh__run *run) {
    bh_kernel_info now = BH_INIT(now);
    bh_device_counters counters = BH_INIT(counters);
    if (run->kernel.id == 0 || bh_kernel_get_info(run->kernel, &now) != BH_OK ||
        bh_device_get_counters(run->device, &counters) != BH_OK)
        return;
    if (now.executor != run->kernel_info.executor ||
        strcmp(now.executor_note, run->kernel_info.executor_note) != 0)
        say_executor(&now);
    if (counters.launches_interpreted > 0)
        fprintf(stderr, "kernel %s: %llu launches were interpreted, before there was native code\n",
                now.name, (unsigned long long)counters.launches_interpreted);
}

static bh_status find_kernel(bh__run *run, bh_module module) {
    const char *wanted = run->options->kernel, *file = run->options->file_text;
    enum { NAMED = 64 }; /* in messages: more than fit into one */
    bh_kernel kernels[NAMED] = {0};
    size_t count = 0;
    char names[180];
    if (bh_module_list_kernels(module, kernels, NAMED, &count) != BH_OK)
        return bh__report_library(&run->error);
    list_names(kernels, count < NAMED ? count : NAMED, names, sizeof names);
    if (count == 0) {
        bh__report_set(&run->error, BH_E_NOT_FOUND, "%s has no kernels", file);
        return bh__report_fix(&run->error,
                              "a kernel is an .entry in PTX, a __global__ function in C++");
    }
    if (wanted == NULL && count > 1) {
        bh__report_set(&run->error, BH_E_INVALID, "%s has %zu kernels and -k was not given", file,
                       count);
        return bh__report_fix(&run->error, "choose one with -k: %s", names);
    }
    run->kernel = kernels[0];
    bh_status status = wanted != NULL ? bh_kernel_get(module, wanted, &run->kernel) : BH_OK;
    if (status == BH_E_NOT_FOUND) {
        bh__report_set(&run->error, status, "%s has no kernel \"%s\"", file, wanted);
        return bh__report_fix(&run->error, "it has: %s", names);
    }
    run->kernel_info = (bh_kernel_info)BH_INIT(run->kernel_info);
    if (status == BH_OK) status = bh_kernel_get_info(run->kernel, &run->kernel_info);
    if (status == BH_OK && run->options->verbose) say_executor(&run->kernel_info);
    return status == BH_OK ? BH_OK : bh__report_library(&run->error);
}

/* ---- the arguments ---- */

/* Writes "a buffer, 4 bytes, ...", as many parameters as fit. */
static void list_params(const bh__run *run, char *out, size_t size) {
    size_t length = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < run->kernel_info.param_count; i++) {
        bh_param_info param = BH_INIT(param);
        if (bh_kernel_get_param(run->kernel, i, &param) != BH_OK) return;
        if (length + 40 > size) {
            snprintf(out + length, size - length, ", ...");
            return;
        }
        const char *comma = i > 0 ? ", " : "";
        if (param.pointer)
            length += (size_t)snprintf(out + length, size - length, "%sa buffer", comma);
        else
            length += (size_t)snprintf(out + length, size - length, "%s%s%u byte%s", comma,
                                       param.bytes == 8 ? "a buffer or " : "", param.bytes,
                                       param.bytes == 1 ? "" : "s");
    }
}

static bh_status check_count(bh__run *run) {
    size_t given = run->options->arg_count;
    uint32_t taken = run->kernel_info.param_count;
    if (given == taken) return BH_OK;
    char params[200];
    list_params(run, params, sizeof params);
    bh__report_set(&run->error, BH_E_LAUNCH, "kernel \"%s\" takes %u argument%s, %zu %s given",
                   run->kernel_info.name, taken, taken == 1 ? "" : "s", given,
                   given == 1 ? "was" : "were");
    if (taken == 0) return bh__report_fix(&run->error, "give no arguments");
    return bh__report_fix(&run->error, "give, in this order: %s", params);
}

static uint64_t passed_bytes(const bh__arg *arg) {
    switch (arg->kind) {
    case BH__ARG_SCALAR:
        return bh_type_size(arg->type);
    case BH__ARG_BYTES:
        return arg->count;
    default:
        return 8;
    }
}

static bh_status check_size(bh__run *run, uint32_t index) {
    const bh__arg *arg = &run->options->args[index];
    bh_param_info param = BH_INIT(param);
    if (bh_kernel_get_param(run->kernel, index, &param) != BH_OK)
        return bh__report_library(&run->error);
    if (passed_bytes(arg) == param.bytes) return BH_OK;
    const char *what = arg->kind == BH__ARG_BUFFER ? "is a buffer, passed as an address of"
                       : arg->kind == BH__ARG_NULL ? "is an address of"
                                                   : "has";
    bh__report_set(&run->error, BH_E_LAUNCH,
                   "ARG%u (%.60s) %s %llu byte%s, parameter %u of kernel \"%s\" has %u", index,
                   arg->text, what, (unsigned long long)passed_bytes(arg),
                   passed_bytes(arg) == 1 ? "" : "s", index, run->kernel_info.name, param.bytes);
    const char *types = param.bytes == 1   ? "i8 or u8"
                        : param.bytes == 2 ? "i16, u16, f16 or bf16"
                        : param.bytes == 4 ? "i32, u32 or f32"
                        : param.bytes == 8 ? "a buffer, i64, u64 or f64"
                                           : NULL;
    if (types == NULL)
        return bh__report_fix(&run->error, "pass a struct as bytes:HEX with %u digits",
                              param.bytes * 2);
    return bh__report_fix(&run->error, "use %s here", types);
}

static bh_status make_buffer(bh__run *run, size_t index) {
    const bh__arg *arg = &run->options->args[index];
    uint64_t bytes = arg->count * bh_type_size(arg->type);
    bh_status status =
        bh_buffer_alloc(run->device, arg->type, arg->count, NULL, &run->buffers[index]);
    const unsigned char zero = 0;
    if (status == BH_OK && arg->data != NULL)
        status = bh_buffer_write(run->buffers[index], 0, arg->data, bytes);
    else if (status == BH_OK)
        status = bh_buffer_fill(run->buffers[index], 0, bytes, &zero, 1);
    if (status != BH_OK) return bh__report_library(&run->error);
    if (arg->out_path != NULL)
        return bh__output_open(arg->out_path, &run->outputs[index], &run->error);
    return BH_OK;
}

static bh_status prepare(bh__run *run, bh_arg *list) {
    bh_status status = check_count(run);
    for (uint32_t i = 0; status == BH_OK && i < run->options->arg_count; i++)
        status = check_size(run, i);
    for (size_t i = 0; status == BH_OK && i < run->options->arg_count; i++) {
        const bh__arg *arg = &run->options->args[i];
        switch (arg->kind) {
        case BH__ARG_SCALAR:
            list[i] = bh_arg_value(arg->data, bh_type_size(arg->type));
            break;
        case BH__ARG_BYTES:
            list[i] = bh_arg_data(arg->data, arg->count);
            break;
        case BH__ARG_NULL:
            list[i] = bh_arg_null();
            break;
        case BH__ARG_BUFFER:
            status = make_buffer(run, i);
            list[i] = bh_arg_buffer(run->buffers[i], arg->access);
            break;
        }
    }
    return status;
}

/* ---- the launch ---- */

static void take_printed(void *context, const bh_event *event) {
    bh__run *run = context;
    fwrite(event->text, 1, event->length, run->printed != NULL ? run->printed : stdout);
}

static bh_status ticket_failed(bh__run *run, bh_ticket ticket, bh_status status) {
    if (status != BH_E_TIMEOUT) {
        memset(&run->error, 0, sizeof run->error);
        bh_ticket_error(ticket, &run->error);
        bh__report_translate(&run->error);
        run->error.status = status;
        if (status == BH_E_DEADLINE)
            bh__report_fix(&run->error,
                           "raise --timeout SECONDS, or make the kernel finish earlier");
        return status;
    }
    char time[BH__TEXT];
    bh__report_set(&run->error, BH_E_DEADLINE, "kernel \"%s\" timed out after %s",
                   run->kernel_info.name, bh__text_time(run->options->timeout_ns, time));
    return bh__report_fix(&run->error, "raise --timeout SECONDS");
}

/* Launches `count` times and waits for all launches, for at most `left_ns`. */
static bh_status launch_batch(bh__run *run, bh_args args, uint64_t count, uint64_t left_ns,
                              bh__progress *progress) {
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = left_ns;
    options.flags = run->options->cooperative ? BH_LAUNCH_COOPERATIVE : 0;
    bh_ticket tickets[BATCH];
    uint64_t sent = 0;
    bh_status status = BH_OK;
    while (sent < count && status == BH_OK) {
        status = bh_launch(run->kernel, run->options->shape, args, &options, &tickets[sent]);
        sent += status == BH_OK;
    }
    bh_error refused;
    if (status != BH_OK) bh__report_library(&refused);
    for (uint64_t i = 0; i < sent; i++) {
        bh_status done = bh__progress_wait(progress, tickets[i], left_ns + GRACE_NS);
        if (done != BH_OK) return ticket_failed(run, tickets[i], done);
    }
    if (status != BH_OK) run->error = refused;
    run->launches += sent;
    return status;
}

static bh_status launch(bh__run *run, bh_args args) {
    char what[300];
    snprintf(what, sizeof what, "running %s", run->kernel_info.name);
    bh__progress progress;
    bh__progress_begin(&progress, what);
    uint64_t wanted = run->options->repeat > 0 ? run->options->repeat : 1;
    bool bars = run->options->repeat > 1 && isatty(STDERR_FILENO) == 1;
    if (bars) bh__times_begin(run);
    uint64_t start = bh__now_ns();
    bh_status status = BH_OK;
    while (run->launches < wanted && status == BH_OK) {
        uint64_t spent = bh__now_ns() - start, limit = run->options->timeout_ns;
        uint64_t rest = wanted - run->launches;
        if (spent >= limit) {
            char time[BH__TEXT];
            bh__report_set(&run->error, BH_E_DEADLINE,
                           "timed out: %llu of %llu launches of kernel \"%s\" completed in %s",
                           (unsigned long long)run->launches, (unsigned long long)wanted,
                           run->kernel_info.name, bh__text_time(limit, time));
            status = bh__report_fix(&run->error, "raise --timeout SECONDS, or lower --repeat");
            break;
        }
        status = launch_batch(run, args, rest < BATCH ? rest : BATCH, limit - spent, &progress);
        bh__progress_tick(&progress);
    }
    run->total_ns = bh__now_ns() - start;
    if (bars) bh__times_end(run);
    bh__progress_end(&progress);
    return status;
}

static void report_times(const bh__run *run) {
    char each[BH__TEXT], all[BH__TEXT];
    if (run->options->repeat > 0 && run->launches > 0)
        fprintf(stderr, "time: %s per launch (%llu launch%s, %s in all)\n",
                bh__text_time(run->total_ns / run->launches, each),
                (unsigned long long)run->launches, run->launches == 1 ? "" : "es",
                bh__text_time(run->total_ns, all));
    bh__times_print(stderr, run);
}

/* ---- the whole run ---- */

static bh_status watch_printed(bh__run *run) {
    bh_watch_options options = BH_INIT(options);
    options.kinds = BH_EVENT_PRINT;
    bh_watch watch; /* until the device is closed */
    bh_status status = bh_watch_open(run->device, &options, take_printed, run, &watch);
    return status == BH_OK ? BH_OK : bh__report_library(&run->error);
}

static bh_status execute(bh__run *run, bh_arg *list) {
    bh__bytes image = {NULL, 0};
    bh_module module;
    bh_status status = run->options->file_count > 1 ? BH_OK : read_image(run, &image);
    if (status == BH_OK) status = load(run, &image, &module);
    free(image.data);
    if (status == BH_OK) status = find_kernel(run, module);
    if (status == BH_OK) status = prepare(run, list);
    if (status == BH_OK) status = bh__debug_begin(run);
    if (status == BH_OK) status = watch_printed(run);
    if (status == BH_OK) {
        status = launch(run, (bh_args){list, run->options->arg_count});
        /* Waits until everything that the kernel printed has arrived, even if the kernel failed. */
        bh_device_sync(run->device, GRACE_NS);
    }
    if (status == BH_OK) status = bh__result_save(run);
    return status;
}

static void close_all(bh__run *run, bool done) {
    for (size_t i = 0; i < run->options->arg_count; i++) {
        bh_error error;
        if (bh__output_close(&run->outputs[i], done, &error) != BH_OK && done) run->error = error;
    }
    if (run->device.id != 0 && run->options->trace && bh_trace_stop(run->device) != BH_OK && done)
        bh__report_library(&run->error);
    if (run->device.id != 0 && run->options->verbose) say_switch(run);
    if (run->device.id != 0 && run->options->counters) bh__counters_print(stderr, run->device);
    if (run->device.id != 0) bh_device_close(run->device);
    run->device.id = 0;
}

static int run_with(bh__run *run, bh_arg *list) {
    const bh__run_options *options = run->options;
    bh_status status = execute(run, list);
    bh__json json;
    if (status != BH_OK) bh__findings_get(run);
    if (status != BH_OK) bh__debug_get_state(run);
    bool stopped = options->debug.stop != NULL && status == BH_E_CANCELLED;
    if (options->json && !options->sarif) {
        bh__json_begin(&json, stdout);
        bh__json_open(&json, '{');
        if (status == BH_OK) status = bh__result_json_args(run, &json);
    } else if (status == BH_OK && !options->sarif) {
        status = bh__result_print(run);
    }
    close_all(run, status == BH_OK);
    if (options->sarif) {
        bh__findings_sarif(run);
    } else if (options->json) {
        bh__findings_json(run, &json);
        bh__result_json_rest(run, &json);
        bh__json_close(&json, '}');
        bh__json_end(&json);
    } else if (run->error.status == BH_OK) {
        report_times(run);
        bh__debug_note(run);
    }
    if (stopped) {
        fflush(stdout);
        fprintf(stderr, "%s\n", run->error.message);
    } else if (run->error.status != BH_OK) {
        bh__report_print(&run->error);
    }
    bh__findings_print(run);
    bh__debug_print_state(run);
    free(run->findings);
    free(run->state);
    return stopped ? BH__EXIT_DONE : bh__report_exit(run->error.status);
}

static int run_options(bh__run_options *options) {
    bh__run run = {.options = options};
    size_t count = options->arg_count;
    bh_arg *list = calloc(count + 1, sizeof *list);
    run.buffers = calloc(count + 1, sizeof *run.buffers);
    run.outputs = calloc(count + 1, sizeof *run.outputs);
    bool document = options->json || options->sarif; /* alone on standard output */
    if (document) run.printed = open_memstream(&run.printed_text, &run.printed_size);
    int code = BH__EXIT_REFUSED;
    if (list == NULL || run.buffers == NULL || run.outputs == NULL ||
        (document && run.printed == NULL)) {
        bh__report_set(&run.error, BH_E_NO_HOST_MEMORY, "no memory for %zu arguments", count);
        bh__report_fix(&run.error, "free some memory");
        bh__report_print(&run.error);
    } else {
        for (size_t i = 0; i < count; i++) run.outputs[i].fd = -1;
        code = run_with(&run, list);
    }
    if (run.printed != NULL) fclose(run.printed);
    free(run.printed_text);
    free(run.outputs);
    free(run.buffers);
    free(list);
    return code;
}

int bh__run_main(int count, char **list) {
    bh__run_options options;
    int code = bh__run_options_parse(count, list, &options);
    if (code == BH__EXIT_DONE && options.help)
        code = bh__help_print(stdout, "run") ? BH__EXIT_DONE : BH__EXIT_REFUSED;
    else if (code == BH__EXIT_DONE)
        code = run_options(&options);
    bh__run_options_free(&options);
    return code;
}
