/* SPDX-License-Identifier: Apache-2.0 */
/* Compiling with NVRTC, loaded at run time. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/compile.h"
#include "compiler/read_record.h"
#include "writes/writes.h"

/* NVRTC's results. */
enum {
    RESULT_OK = 0,
    RESULT_NO_MEMORY = 1,
    RESULT_BAD_OPTION = 5,
    RESULT_COMPILATION = 6,
    RESULT_NO_BUILTINS = 7,
    RESULT_BAD_NAME = 10
};

typedef struct nvrtc {
#define BH__NEEDED(name, symbol, parameters)   int(*name) parameters;
#define BH__OPTIONAL(name, symbol, parameters) int(*name) parameters;
#include "compiler/nvrtc/table.h"
} nvrtc;

static bool look_up(void *library, const char *symbol, void *field) {
    void *found = dlsym(library, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

/* The symbol that is missing; NULL: none. */
static const char *look_up_all(const bh__library *library, nvrtc *out) {
#define BH__NEEDED(name, symbol, parameters)                                                       \
    if (!look_up(library->handle, symbol, &out->name)) return symbol;
#define BH__OPTIONAL(name, symbol, parameters) look_up(library->handle, symbol, &out->name);
#include "compiler/nvrtc/table.h"
    return NULL;
}

bh_status bh__nvrtc_version(const bh__library *library, int *major, int *minor) {
    int (*version)(int *, int *) = NULL;
    if (!look_up(library->handle, "nvrtcVersion", &version)) return BH_E_UNSUPPORTED;
    return version(major, minor) == RESULT_OK ? BH_OK : BH_E_UNSUPPORTED;
}

/* ---- options ---- */

/* NVRTC loads this by its name, which fails if its folder is not in the loader's path. */
static void load_builtins(const bh__library *library, int major, int minor) {
    char path[PATH_MAX + 64];
    const char *slash = strrchr(library->path, '/');
    if (slash == NULL) return;
    snprintf(path, sizeof path, "%.*s/libnvrtc-builtins.so.%d.%d", (int)(slash - library->path),
             library->path, major, minor);
    if (access(path, R_OK) == 0) dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* The folders of CUDA's own headers, which are beside the library. */
static void find_toolkit_headers(const bh__library *library, bh__words *folders) {
    static const char *const places[] = {"../include", "../../include", "../../../include",
                                         "../../cuda_runtime/include"};
    char folder[PATH_MAX], real[PATH_MAX], probe[PATH_MAX + 32];
    snprintf(folder, sizeof folder, "%s", library->path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) return;
    *slash = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(probe, sizeof probe, "%.*s/%s", PATH_MAX - 1, folder, places[i]);
        if (realpath(probe, real) == NULL) continue;
        /* The system's own folder has other headers that NVRTC cannot compile. */
        if (strcmp(real, "/usr/include") == 0 || strcmp(real, "/include") == 0) continue;
        snprintf(probe, sizeof probe, "%s/cuda_fp16.h", real);
        if (access(probe, R_OK) != 0) continue;
        bh__words_format(folders, "%s", real);
        snprintf(probe, sizeof probe, "%s/cccl", real);
        if (access(probe, R_OK) == 0) bh__words_format(folders, "%s", probe);
        return;
    }
}

static bh_status refuse_arch(bh__compile *c, const nvrtc *rtc, const bh__arch *arch) {
    int count = 0, list[128];
    if (rtc->arch_count(&count) != RESULT_OK || count < 1 || count > 128 ||
        rtc->archs(list) != RESULT_OK)
        return BH_OK; /* then the compiler itself reports it */
    bh__text known = {.arena = c->arena};
    for (int i = 0; i < count; i++) {
        if ((unsigned)list[i] == arch->number) return BH_OK;
        bh__text_add(&known, "%ssm_%d", i ? ", " : "", list[i]);
    }
    return bh__fail(&c->answer->error, BH_E_UNSUPPORTED,
                    "compile for one of those, or install a version of NVRTC that knows it",
                    "%s does not know %s; it knows %.300s", bh__chars(c->answer->version),
                    bh__chars(c->job->arch), known.data ? known.data : "none");
}

static bool texts_as_words(bh__compile *c, bh__texts texts, bh__words *out) {
    *out = (bh__words){.arena = c->arena};
    for (size_t i = 0; i < texts.count; i++) bh__words_add(out, bh__chars(texts.list[i]));
    return !out->failed;
}

/* ---- results ---- */

static void take_log(bh__compile *c, const nvrtc *rtc, void *program) {
    size_t size = 0;
    if (rtc->log_size(program, &size) != RESULT_OK || size <= 1) return;
    char *log = bh__arena_alloc(c->arena, size + 1, 1);
    if (log != NULL && rtc->log(program, log) == RESULT_OK) c->answer->log = bh__bytes_of(log);
}

typedef int size_fn(void *program, size_t *out);
typedef int bytes_fn(void *program, char *out);

/* Appends a record to a cubin of which variables its kernels can write, which only PTX shows. If it
 * cannot be made it is left out, and the cubin works without it. A cubin that is still to be linked
 * gets none, because it does not have all the code yet. */
static void add_writes(bh__compile *c, const nvrtc *rtc, void *program) {
    size_t size = 0, bytes = 0;
    if (c->job->flags & BH_COMPILE_RELOCATABLE) return;
    if (rtc->ptx_size(program, &size) != RESULT_OK || size <= 1) return;
    char *ptx = malloc(size);
    bh__writes *writes = NULL;
    if (ptx && rtc->ptx(program, ptx) == RESULT_OK) writes = bh__writes_of_ptx(ptx, size - 1);
    free(ptx);
    uint8_t *record = bh__writes_record_make(writes, &bytes);
    bh__writes_free(writes);
    bh__bytes cubin = c->answer->output;
    uint8_t *both = record ? bh__arena_alloc(c->arena, cubin.count + bytes, 1) : NULL;
    if (both) {
        memcpy(both, cubin.data, cubin.count);
        memcpy(both + cubin.count, record, bytes);
        c->answer->output = (bh__bytes){both, cubin.count + bytes};
    }
    free(record);
}

/* Takes one output of the program. */
static bh_status take(bh__compile *c, size_fn *size_of, bytes_fn *bytes_of, void *program,
                      bh__bytes *out) {
    size_t size = 0;
    if (size_of(program, &size) != RESULT_OK || size == 0)
        return bh__fail(&c->answer->error, BH_E_COMPILE, "see the log",
                        "%s succeeded without output", bh__chars(c->answer->version));
    char *bytes = bh__arena_alloc(c->arena, size + 1, 1);
    if (bytes == NULL) return bh__compile_no_memory(c);
    if (bytes_of(program, bytes) != RESULT_OK)
        return bh__fail(&c->answer->error, BH_E_COMPILE, "see the log",
                        "%s does not return its output of %zu bytes", bh__chars(c->answer->version),
                        size);
    *out = (bh__bytes){(const uint8_t *)bytes, size};
    return BH_OK;
}

static bh_status take_ptx(bh__compile *c, const nvrtc *rtc, void *program, bh__bytes *out) {
    bh_status status = take(c, rtc->ptx_size, rtc->ptx, program, out);
    if (status != BH_OK) return status;
    out->count = strlen(bh__chars(*out)); /* NVRTC counts the NUL */
    if (c->job->max_registers) *out = bh__ptx_limit_registers(c, *out, c->job->max_registers);
    return out->data ? BH_OK : bh__compile_no_memory(c);
}

static bh_status take_output(bh__compile *c, const nvrtc *rtc, void *program) {
    bh__bytes *out = &c->answer->output;
    if (c->job->output == BH_OUTPUT_PTX) return take_ptx(c, rtc, program, out);
    if (c->job->output == BH_OUTPUT_LTOIR)
        return take(c, rtc->ltoir_size, rtc->ltoir, program, out);
    bh_status status = take(c, rtc->cubin_size, rtc->cubin, program, out);
    if (status == BH_OK) add_writes(c, rtc, program);
    if (status == BH_OK && (c->job->output & BH_OUTPUT_PTX))
        status = take_ptx(c, rtc, program, &c->answer->ptx);
    return status;
}

static bh_status take_names(bh__compile *c, const nvrtc *rtc, void *program) {
    bh__texts wanted = c->job->expressions;
    bh__bytes *lowered = bh__arena_alloc(c->arena, wanted.count, sizeof *lowered);
    if (lowered == NULL) return bh__compile_no_memory(c);
    for (size_t i = 0; i < wanted.count; i++) {
        const char *name = NULL;
        if (rtc->lowered_name(program, bh__chars(wanted.list[i]), &name) != RESULT_OK || !name)
            return bh__fail(&c->answer->error, BH_E_COMPILE,
                            "name a kernel or variable that the source defines",
                            "name expression '%.200s' has no lowered name",
                            bh__chars(wanted.list[i]));
        char *copy = bh__arena_copy(c->arena, name, strlen(name));
        if (copy == NULL) return bh__compile_no_memory(c);
        lowered[i] = bh__bytes_of(copy);
    }
    c->answer->lowered = (bh__texts){lowered, wanted.count};
    return BH_OK;
}

/* NVRTC reports a wrong expression at a line of a file of its own, one line for each expression.
 * The message names the expression. */
static bh_status blame_expression(bh__compile *c) {
    static const char place[] = "__nv_name_map(";
    bh__texts expressions = c->job->expressions;
    const char *at = strstr(bh__chars(c->answer->log), place);
    size_t line = at ? strtoul(at + sizeof place - 1, NULL, 10) : 0;
    if (line == 0 || line > expressions.count) return BH_OK;
    const char *text = strstr(at, "error: ");
    text = text ? text + 7 : at;
    return bh__fail(&c->answer->error, BH_E_COMPILE,
                    "name a kernel or variable that the source defines",
                    "name expression '%.150s': %.*s", bh__chars(expressions.list[line - 1]),
                    (int)strcspn(text, "\n"), text);
}

static bh_status refuse_option(bh__compile *c) {
    const char *log = bh__chars(c->answer->log), *version = bh__chars(c->answer->version);
    bh_error *error = &c->answer->error;
    if (strstr(log, "invalid value for --gpu-architecture"))
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "compile for another, or install a version of NVRTC that knows it",
                        "%s does not know %s", version, bh__chars(c->job->arch));
    if (strstr(log, "invalid value for --std"))
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "use an earlier standard, or install a newer version of NVRTC",
                        "%s does not know C++%u", version, c->job->standard);
    const char *text = strstr(log, "error: ");
    text = text ? text + 7 : log;
    return bh__fail(error, BH_E_INVALID, "leave it out, or see the flags that NVRTC has",
                    "%s refuses the flags: %.*s", version, (int)strcspn(text, "\n"), text);
}

static bh_status explain(bh__compile *c, int result) {
    const char *version = bh__chars(c->answer->version);
    /* NVRTC's front end reports it as an error in the source. */
    if (strstr(bh__chars(c->answer->log), "error: out of memory")) result = RESULT_NO_MEMORY;
    switch (result) {
    case RESULT_NO_MEMORY:
        return bh__compile_over_limit(c, version);
    case RESULT_BAD_OPTION:
        return refuse_option(c);
    case RESULT_NO_BUILTINS:
        return bh__fail(&c->answer->error, BH_E_UNSUPPORTED,
                        "install all of NVRTC: libnvrtc-builtins belongs beside libnvrtc",
                        "%s cannot load libnvrtc-builtins", version);
    default:
        if (c->job->expressions.count && blame_expression(c) != BH_OK)
            return c->answer->error.status;
        return bh__compile_failed(c, version);
    }
}

static bh_status run(bh__compile *c, const nvrtc *rtc, void *program, bh__words *options) {
    bh__read_record reads = {.arena = c->arena};
    int result = RESULT_OK;
    for (size_t i = 0; i < c->job->expressions.count && result == RESULT_OK; i++)
        result = rtc->add_name(program, bh__chars(c->job->expressions.list[i]));
    if (result == RESULT_OK) {
        bh__read_record_intercept(&reads);
        result = rtc->compile(program, (int)options->count, options->list);
        bh__read_record_intercept(NULL);
    }
    take_log(c, rtc, program);
    if (reads.failed) return bh__compile_no_memory(c);
    c->answer->reads = reads.list;
    c->answer->read_count = reads.count;
    if (result != RESULT_OK) return explain(c, result);
    bh_status status = take_output(c, rtc, program);
    return status == BH_OK ? take_names(c, rtc, program) : status;
}

/* Loads NVRTC and checks its version and functions. */
static bh_status open_nvrtc(bh__compile *c, bh__library *library, nvrtc *rtc) {
    bh_error *error = &c->answer->error;
    int major = 0, minor = 0;
    bh__library_open_nvrtc(c->arena, bh__chars(c->job->compiler_path), library);
    if (library->handle == NULL && bh__is_memory_error(library->why))
        return bh__compile_over_limit(c, "NVRTC");
    if (library->handle == NULL)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "install NVRTC (CUDA toolkit, or pip install nvidia-cuda-nvrtc), or "
                        "compile with clang",
                        "NVRTC: %.300s", library->why);
    const char *missing = look_up_all(library, rtc);
    if (missing != NULL || rtc->version(&major, &minor) != RESULT_OK ||
        (major == 11 && minor < 8) || major < 11)
        return bh__fail(error, BH_E_UNSUPPORTED, "install NVRTC 11.8 or later",
                        "NVRTC %d.%d at %.200s is too old%s%s", major, minor, library->path,
                        missing ? ": it lacks " : "", missing ? missing : "");
    c->answer->version = bh__bytes_of(bh__text_format(c->arena, "nvrtc %d.%d", major, minor));
    load_builtins(library, major, minor);
    if (c->job->output == BH_OUTPUT_LTOIR && (!rtc->ltoir || !rtc->ltoir_size))
        return bh__fail(error, BH_E_UNSUPPORTED, "install NVRTC 12.0 or later, or ask for PTX",
                        "%s does not support LTO-IR", bh__chars(c->answer->version));
    return BH_OK;
}

/* Finds the toolkit, adds it to `options`, and confines this process to it and the job's folders.
 */
static bh_status confine(bh__compile *c, const bh__library *library, bh__words *options) {
    bh__words toolchain = {.arena = c->arena};
    find_toolkit_headers(library, &toolchain);
    for (size_t i = 0; i < toolchain.count; i++)
        bh__words_format(options, "-I%s", toolchain.list[i]);
    bh__words_add(options, "-I" BH__VIRTUAL_RTC);
    bh__toolchain_add(&toolchain, library->path);
    return bh__confine(c, &toolchain);
}

static bh_status create_and_run(bh__compile *c, const nvrtc *rtc, bh__words *names,
                                bh__words *bodies, bh__words *options) {
    void *program = NULL;
    int result = rtc->create(&program, bh__chars(c->job->source), bh__chars(c->job->name),
                             (int)names->count, bodies->list, names->list);
    if (result != RESULT_OK) return explain(c, result);
    /* The program is not destroyed: the process ends soon. */
    return run(c, rtc, program, options);
}

/* The first error is in a header, not in the source itself. */
static bool declares_host_functions(const bh__compile *c) {
    const char *log = bh__chars(c->answer->log), *name = bh__chars(c->job->name);
    const char *error = strstr(log, "host functions are not allowed in JIT mode");
    if (error == NULL) return false;
    size_t length = strlen(name);
    while (error > log && error[-1] != '\n') error--;
    return strncmp(error, name, length) != 0 || error[length] != '(';
}

bh_status bh__compile_nvrtc(bh__compile *c) {
    const bh__compile_job *job = c->job;
    bh__library library = {0};
    nvrtc rtc = {0};
    bh__arch arch;
    bh_status status = open_nvrtc(c, &library, &rtc);
    if (status == BH_OK && bh__arch_read(bh__chars(job->arch), &arch))
        status = refuse_arch(c, &rtc, &arch);
    if (status != BH_OK) return status;

    bh__words options = {.arena = c->arena}, names, bodies;
    bh__options_nvrtc(job, &options);
    status = confine(c, &library, &options);
    if (status != BH_OK) return status;
    if (options.failed || !texts_as_words(c, job->header_names, &names) ||
        !texts_as_words(c, job->header_bodies, &bodies))
        return bh__compile_no_memory(c);
    status = create_and_run(c, &rtc, &names, &bodies, &options);
    if (status == BH_OK || !declares_host_functions(c)) return status;
    /* Headers such as cuda.h declare functions of the host. NVRTC accepts them as functions of the
     * device, which no kernel calls. */
    bh__words_add(&options, "--device-as-default-execution-space");
    c->answer->error = (bh_error){0};
    c->answer->log = (bh__bytes){(const uint8_t *)"", 0};
    return options.failed ? bh__compile_no_memory(c)
                          : create_and_run(c, &rtc, &names, &bodies, &options);
}
