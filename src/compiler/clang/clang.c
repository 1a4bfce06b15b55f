/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiling with clang, as a child process. Source, headers in memory, this program's own headers
 * and all output are memory files: clang finds the headers through an overlay of its file system
 * that maps names to /proc/self/fd. Nothing is written to disk, so nothing can be left there.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compiler/compile.h"
#include "compiler/read_record.h"

static void append_json(bh__text *text, const char *from) {
    for (; *from != 0; from++) {
        if ((unsigned char)*from < 0x20)
            bh__text_add(text, "\\u%04x", (unsigned char)*from);
        else if (*from == '"' || *from == '\\')
            bh__text_add(text, "\\%c", *from);
        else
            bh__text_append(text, from, 1);
    }
}

/* One file of the overlay; false: no memory or no descriptor. */
static bool add_file(bh__text *overlay, bool first, const char *name, bh__bytes body) {
    int fd = bh__memory_file("header", body, true);
    if (fd < 0) return false;
    bh__text_add(overlay, "%s{\"type\":\"file\",\"name\":\"", first ? "" : ",");
    append_json(overlay, name);
    bh__text_add(overlay, "\",\"external-contents\":\"/proc/self/fd/%d\"}", fd);
    return true;
}

/* One of this program's own folders. */
static bool add_folder(bh__text *overlay, const char *folder) {
    bh__text_add(overlay,
                 "{\"type\":\"directory\",\"name\":\"" BH__VIRTUAL_ROOT "/%s\",\"contents\":[",
                 folder);
    bool first = true;
    for (size_t i = 0; i < bh__embedded_count; i++) {
        const bh__embedded *file = &bh__embedded_files[i];
        if (strcmp(file->folder, folder) != 0) continue;
        bh__bytes body = {file->data, (uint64_t)(file->end - file->data)};
        if (!add_file(overlay, first, file->name, body)) return false;
        first = false;
    }
    bh__text_add(overlay, "]},");
    return true;
}

static bool build_overlay(const bh__compile *c, bh__text *overlay) {
    const bh__compile_job *job = c->job;
    bh__text_add(overlay, "{\"version\":0,\"case-sensitive\":true,\"use-external-names\":false,"
                          "\"roots\":[");
    if (!add_folder(overlay, "device") || !add_folder(overlay, "standard") ||
        !add_folder(overlay, "hosted"))
        return false;
    bh__text_add(overlay,
                 "{\"type\":\"directory\",\"name\":\"" BH__VIRTUAL_MEMORY "\",\"contents\":[");
    for (size_t i = 0; i < job->header_names.count; i++) {
        bh__bytes body = bh__accept_alignas(c->arena, job->header_bodies.list[i]);
        if (body.data == NULL && job->header_bodies.list[i].count) return false;
        if (!add_file(overlay, i == 0, bh__chars(job->header_names.list[i]), body)) return false;
    }
    bh__text_add(overlay, "]}]}\n");
    return !overlay->failed;
}

static bh_status check_headers(bh__compile *c) {
    for (size_t i = 0; i < c->job->header_names.count; i++) {
        const char *name = bh__chars(c->job->header_names.list[i]);
        if (name[0] == '/' || strncmp(name, "../", 3) == 0 || strstr(name, "/../") != NULL)
            return bh__fail(&c->answer->error, BH_E_UNSUPPORTED,
                            "give it a name below a folder, or compile with NVRTC",
                            "header %zu in memory has the name '%.100s', which clang cannot find",
                            i, name);
    }
    return BH_OK;
}

/* ---- output and errors ---- */

static const char search_start[] = "clang -cc1 version ", search_end[] = "End of search list.\n";

/* Splits the errors: what -v printed goes to `out_search`, the rest is the log. */
static bool split_errors(bh__compile *c, bh__bytes errors, bh__bytes *out_search) {
    const char *text = bh__chars(errors), *from = strstr(text, search_start);
    const char *to = from ? strstr(from, search_end) : NULL;
    bh__text log = {.arena = c->arena};
    *out_search = (bh__bytes){(const uint8_t *)"", 0};
    if (to == NULL) {
        c->answer->log = errors;
        return true;
    }
    to += sizeof search_end - 1;
    *out_search = (bh__bytes){(const uint8_t *)from, (uint64_t)(to - from)};
    bh__text_append(&log, text, (size_t)(from - text));
    bh__text_append(&log, to, strlen(to));
    c->answer->log = bh__text_bytes(&log);
    const char *version = from + sizeof search_start - 1;
    c->answer->version = bh__bytes_of(
        bh__text_format(c->arena, "clang %.*s", (int)strspn(version, "0123456789."), version));
    return !log.failed && c->answer->version.data != NULL;
}

static bh_status refuse_arch(bh__compile *c, const char *path) {
    const char *argv[] = {path, "--target=nvptx64-nvidia-cuda", "--print-supported-cpus", NULL};
    bh__child_end end;
    bh__text known = {.arena = c->arena};
    if (bh__child_run(c->arena, argv, -1, &end)) {
        /* Which of the two it prints to depends on its version. */
        const char *lists[2] = {bh__chars(end.errors), bh__chars(end.output)};
        for (int i = 0; i < 2; i++) {
            for (const char *at = lists[i]; (at = strstr(at, "\tsm_")) != NULL; at += 4) {
                int length = (int)strcspn(at + 1, "\n \t");
                if (atoi(at + 4) >= 70)
                    bh__text_add(&known, "%s%.*s", known.used ? ", " : "", length, at + 1);
            }
        }
    }
    char *version = bh__clang_version(c->arena, path);
    return bh__fail(&c->answer->error, BH_E_UNSUPPORTED,
                    "compile for one of those, or install a newer clang or NVRTC",
                    "clang %s does not know %s; it knows %.300s", version ? version : "?",
                    bh__chars(c->job->arch), known.used ? known.data : "none");
}

/* What bulkhead_hosted.h says. */
static const char no_host_library[] = "the C++ library of the host is not installed";

static bool has_crashed(const bh__child_end *end, const char *log) {
    /* If a signal ends the front end, the driver reports it and has the signal in its status. */
    return end->signal != 0 || end->exit_code > 128 || strstr(log, "due to signal") ||
           strstr(log, "PLEASE submit a bug report") != NULL;
}

/* The flag that clang does not know; NULL: none. */
static const char *unknown_flag(const char *log) {
    static const char *const texts[] = {"error: unknown argument", "error: argument unused",
                                        "Unknown command line argument",
                                        "error: unsupported option"};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts && found == NULL; i++)
        found = strstr(log, texts[i]);
    return found;
}

static bool is_unknown_arch(const char *log) {
    return strstr(log, "nsupported CUDA gpu architecture") || strstr(log, "nknown CUDA gpu");
}

/* The source does not compile, and it is not for another reason. */
static bool is_source_error(const bh__compile *c, const bh__child_end *end) {
    const char *log = bh__chars(c->answer->log);
    return end->started && end->exit_code != 0 && !bh__is_memory_error(log) &&
           !is_unknown_arch(log) && !has_crashed(end, log) && !unknown_flag(log);
}

static bh_status explain(bh__compile *c, const char *path, const bh__child_end *end) {
    const char *log = bh__chars(c->answer->log);
    bh_error *error = &c->answer->error;
    if (bh__is_memory_error(log)) return bh__compile_over_limit(c, "clang");
    const char *loader = strstr(log, "error while loading shared libraries: ");
    if (!end->started && loader != NULL)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "keep clang's libraries in the lib folder beside its bin, or set "
                        "BH_COMPILE_UNCONFINED (--unconfined)",
                        "%.200s cannot be started: %.*s", path, (int)strcspn(loader, "\n"), loader);
    if (!end->started)
        return bh__fail(error, BH_E_UNSUPPORTED, "install clang 16 or later",
                        "%.200s cannot be started", path);
    if (is_unknown_arch(log)) return refuse_arch(c, path);
    if (has_crashed(end, log)) {
        int number = end->signal ? end->signal : end->exit_code > 128 ? end->exit_code - 128 : 0;
        return bh__fail(error, BH_E_COMPILE,
                        "make the source smaller until it compiles, and report what clang prints",
                        "clang crashed%s%s", number ? ": " : "", number ? strsignal(number) : "");
    }
    const char *unknown = unknown_flag(log);
    if (unknown != NULL && c->job->extra.count)
        return bh__fail(error, BH_E_INVALID, "leave it out, or see the flags that clang has",
                        "clang refuses the flags: %.*s", (int)strcspn(unknown, "\n"), unknown);
    const char *expression = strstr(log, "name expression ");
    bh_status status = bh__compile_failed(c, "clang");
    if (expression != NULL && strncmp(error->message, "name expression ", 16) == 0) {
        memcpy(error->fix, "name a kernel, or a variable with & before it", 46);
    }
    return status;
}

/* ---- running it ---- */

typedef struct files {
    int source, overlay, dependencies;
} files;

static bool open_files(bh__compile *c, files *f) {
    bh__text overlay = {.arena = c->arena};
    bh__bytes source = bh__names_source(c), nothing = {NULL, 0};
    /* Every header is a descriptor. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (source.data == NULL || !build_overlay(c, &overlay)) return false;
    f->source = bh__memory_file("source", source, false);
    f->overlay = bh__memory_file("overlay", bh__text_bytes(&overlay), true);
    f->dependencies = bh__memory_file("dependencies", nothing, true);
    return f->source >= 0 && f->overlay >= 0 && f->dependencies >= 0;
}

static void close_files(const files *f) {
    close(f->source);
    close(f->overlay);
    close(f->dependencies);
}

static void build_command(const bh__compile *c, const char *path, bool hosted, const files *f,
                          bh__words *argv) {
    bh__words_add(argv, path);
    bh__options_clang(c->job, hosted, argv);
    const char *name = bh__chars(c->job->name), *slash = strrchr(name, '/');
    if (name[0] == '/' && slash > name) { /* as if the source were read from there */
        bh__words_add(argv, "-iquote");
        bh__words_format(argv, "%.*s", (int)(slash - name), name);
    }
    bh__words_format(argv, "-ivfsoverlay/proc/self/fd/%d", f->overlay);
    bh__words_add(argv, "-MD");
    bh__words_add(argv, "-MF");
    bh__words_format(argv, "/proc/self/fd/%d", f->dependencies);
    bh__words_add(argv, "-Xclang");
    bh__words_add(argv, "-v");
    bh__words_add(argv, "-o");
    bh__words_add(argv, "-");
    bh__words_add(argv, "-");
}

static bh_status finish(bh__compile *c, bh__bytes ptx) {
    bh_status status = bh__names_take(c, ptx, &c->answer->output);
    if (status != BH_OK) return status;
    if (c->job->max_registers) {
        c->answer->output = bh__ptx_limit_registers(c, c->answer->output, c->job->max_registers);
        if (c->answer->output.data == NULL) return bh__compile_no_memory(c);
    }
    return BH_OK;
}

/* Runs clang once. The reads of each run decide the result, so they are collected in `reads`. */
static bh_status attempt(bh__compile *c, const char *path, bool hosted, bh__read_record *reads,
                         bh__child_end *end) {
    files f;
    bh__words argv = {.arena = c->arena};
    if (!open_files(c, &f)) return bh__compile_no_memory(c);
    build_command(c, path, hosted, &f, &argv);
    /* File times may be a tick behind this clock; a compiler takes longer than that to start. */
    struct timespec since;
    clock_gettime(CLOCK_REALTIME, &since);
    bh__words_end(&argv);
    if (argv.failed || !bh__child_run(c->arena, argv.list, f.source, end))
        return bh__compile_no_memory(c);
    bh__bytes search, dependencies = bh__read_file(c->arena, f.dependencies);
    close_files(&f);
    if (!split_errors(c, end->errors, &search) || dependencies.data == NULL)
        return bh__compile_no_memory(c);
    bh__read_record_from_clang(reads, c->job, dependencies, search, since);
    if (reads->failed) return bh__compile_no_memory(c);
    c->answer->reads = reads->list;
    c->answer->read_count = reads->count;
    return BH_OK;
}

/* Kernels alone need no library of the host, and compile faster and the same everywhere without.
 * What does not compile so may be a whole program, which needs it. */
static bh_status attempt_both(bh__compile *c, const char *path, bh__child_end *end) {
    bh__read_record reads = {.arena = c->arena};
    bh_status status = attempt(c, path, false, &reads, end);
    if (status != BH_OK || !is_source_error(c, end)) return status;
    bh__bytes log = c->answer->log;
    bh__child_end first = *end;
    status = attempt(c, path, true, &reads, end);
    if (status == BH_OK && strstr(bh__chars(c->answer->log), no_host_library)) {
        c->answer->log = log;
        *end = first;
    }
    return status;
}

bh_status bh__compile_clang(bh__compile *c) {
    const char *path = bh__chars(c->job->compiler_path);
    bh_status status = check_headers(c);
    if (status != BH_OK) return status;
    if (path[0] == 0) {
        char *version, *why;
        path = bh__clang_find(c->arena, &version, &why);
        if (path == NULL) return bh__compile_no_memory(c);
        if (path[0] == 0)
            return bh__fail(&c->answer->error, BH_E_UNSUPPORTED,
                            "install clang 16 or later, or NVRTC", "clang: %.300s", why);
    }
    bh__words toolchain = {.arena = c->arena};
    bh__child_end end;
    bh__toolchain_add(&toolchain, path);
    status = bh__confine(c, &toolchain);
    if (status == BH_OK) status = attempt_both(c, path, &end);
    if (status != BH_OK) return status;
    if (end.exit_code != 0) return explain(c, path, &end);
    if (end.output.count == 0)
        return bh__fail(&c->answer->error, BH_E_COMPILE, "see the log",
                        "clang succeeded without output");
    return finish(c, end.output);
}
