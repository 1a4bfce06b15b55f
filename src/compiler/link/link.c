/* SPDX-License-Identifier: Apache-2.0 */
/* Linking images: with nvJitLink, loaded at run time; or PTX to PTX, without it. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/compile.h"
#include "compiler/link/image.h"
#include "ptx/link/link.h"

enum {
    RESULT_OK = 0,
    RESULT_BAD_OPTION = 1,
    RESULT_MISSING_ARCH = 2,
    RESULT_BAD_INPUT = 3,
    RESULT_PTX = 4,
    RESULT_NVVM = 5
};

typedef struct jitlink {
    unsigned major, minor;
#define BH__NEEDED(name, symbol, parameters) int(*name) parameters;
#include "compiler/link/jitlink_table.h"
} jitlink;

bh_status bh__jitlink_version(const bh__library *library, unsigned *major, unsigned *minor) {
    int (*version)(unsigned *, unsigned *) = NULL;
    void *found = dlsym(library->handle, "nvJitLinkVersion");
    memcpy(&version, &found, sizeof found);
    return version && version(major, minor) == RESULT_OK ? BH_OK : BH_E_UNSUPPORTED;
}

/* The header's names have a version, __nvJitLinkCreate_12_4. Libraries also have the plain names,
 * which are those of their first version. */
static bool look_up(const bh__library *library, const jitlink *of, const char *symbol,
                    void *field) {
    char versioned[96];
    snprintf(versioned, sizeof versioned, "__%s_%u_%u", symbol, of->major, of->minor);
    void *found = dlsym(library->handle, versioned);
    if (found == NULL) found = dlsym(library->handle, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

static const char *look_up_all(const bh__library *library, jitlink *out) {
#define BH__NEEDED(name, symbol, parameters)                                                       \
    if (!look_up(library, out, symbol, &out->name)) return symbol;
#include "compiler/link/jitlink_table.h"
    return NULL;
}

static void take_log(bh__compile *c, const jitlink *link, void *linker) {
    bh__text log = {.arena = c->arena};
    size_t size = 0;
    for (int part = 0; part < 2; part++) {
        int (*size_of)(void *, size_t *) = part ? link->info_size : link->error_size;
        int (*text_of)(void *, char *) = part ? link->info : link->error;
        if (size_of(linker, &size) != RESULT_OK || size <= 1) continue;
        char *text = bh__arena_alloc(c->arena, size + 1, 1);
        if (text == NULL || text_of(linker, text) != RESULT_OK || text[0] == 0) continue;
        bh__text_add(&log, "%s%s", text, text[strlen(text) - 1] == '\n' ? "" : "\n");
    }
    c->answer->log = bh__text_bytes(&log);
}

/* The line of the log that says most, shortened to fit the message. */
static const char *main_line(const char *log, size_t *out_length) {
    static const char *const marks[] = {"link error: ", "fatal ", "error ", "Undefined", "ERROR"};
    const char *line = NULL;
    for (size_t i = 0; i < sizeof marks / sizeof *marks && line == NULL; i++)
        line = strstr(log, marks[i]);
    if (line == NULL) line = log;
    while (line > log && line[-1] != '\n') line--;
    *out_length = strcspn(line, "\n");
    if (*out_length > 300) *out_length = 300;
    return line;
}

/* ---- errors that are only printed ----
 *
 * nvJitLink finds names that are defined twice, and declarations that do not agree, prints that to
 * standard error, and succeeds. Standard error is a memory file. */

static uint64_t printed_bytes(void) {
    struct stat info;
    bool file = fstat(STDERR_FILENO, &info) == 0 && S_ISREG(info.st_mode);
    return file ? (uint64_t)info.st_size : 0;
}

/* Whether the line is "error   : ..." or "fatal   : ...", perhaps behind "@E@". Returns what
 * follows. */
static const char *error_text(const char *line) {
    static const char *const kinds[] = {"error", "fatal"};
    if (line[0] == '@' && line[1] != 0 && line[2] == '@') line += 3;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        size_t length = strlen(kinds[i]);
        if (strncmp(line, kinds[i], length) != 0) continue;
        length += strspn(line + length, " ");
        if (line[length] == ':') return line + length + 1 + strspn(line + length + 1, " ");
    }
    return NULL;
}

/* The first error that was printed since; NULL: none. */
static const char *printed_error(bh__compile *c, uint64_t since) {
    if (printed_bytes() <= since) return NULL;
    bh__bytes all = bh__read_file(c->arena, STDERR_FILENO);
    if (all.data == NULL || all.count <= since) return NULL;
    const char *line = bh__chars(all) + since, *error = NULL;
    while (error == NULL && *line != 0) {
        error = error_text(line);
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return error;
}

static bh_status explain_printed(bh__compile *c, const char *text) {
    const char *fix = strstr(text, "ultiple definition")
                          ? "rename one of the two, make it static, or leave out one part"
                      : strstr(text, "match") ? "make both declarations the same"
                                              : "see the log";
    return bh__fail(&c->answer->error, BH_E_COMPILE, fix, "%s: %.*s", bh__chars(c->answer->version),
                    (int)strcspn(text, "\n"), text);
}

/* If the inputs are all PTX, this program's own linker may say more: with lines. */
static bh_status explain_better(bh__compile *c, bool all_ptx, bh_status status) {
    if (!all_ptx) return status;
    bh_error before = c->answer->error;
    bh__bytes log = c->answer->log, unused;
    if (bh__compile_link_ptx(c, &unused) != BH_E_COMPILE) c->answer->error = before;
    bh__text both = {.arena = c->arena};
    bh__text_append(&both, bh__chars(c->answer->log), c->answer->log.count);
    bh__text_append(&both, bh__chars(log), log.count);
    c->answer->log = both.failed ? log : bh__text_bytes(&both);
    return status;
}

static bh_status explain(bh__compile *c, int result, bh__link_kind kind, size_t index) {
    bh_error *error = &c->answer->error;
    const char *log = bh__chars(c->answer->log), *version = bh__chars(c->answer->version);
    size_t length;
    const char *text = main_line(log, &length);
    if (strstr(log, "link error: ") != NULL) /* of LTO-IR */
        return bh__fail(error, BH_E_COMPILE,
                        "rename one of the two, make it static, or leave out one part", "%s: %.*s",
                        version, (int)length, text);
    if (result == RESULT_BAD_OPTION || result == RESULT_MISSING_ARCH)
        return bh__fail(error, BH_E_INVALID, "use an architecture and flags that nvJitLink has",
                        "%s refuses the flags for %s: %.*s", version, bh__chars(c->job->arch),
                        (int)length, text);
    if (kind == BH__LINK_LTOIR && index != SIZE_MAX)
        return bh__fail(error, BH_E_COMPILE,
                        "compile with an NVRTC that is not newer than nvJitLink and of the same "
                        "major version",
                        "%s cannot read input %zu, LTO-IR: damaged, or made by another version of "
                        "the compiler: %.*s",
                        version, index, (int)length, text);
    if (index != SIZE_MAX)
        return bh__fail(error, BH_E_COMPILE, "see the log", "%s refuses input %zu, %s: %.*s",
                        version, index, bh__link_kind_name(kind), (int)length, text);
    if (strstr(log, "ndefined") || strstr(log, "nresolved"))
        return bh__fail(
            error, BH_E_COMPILE,
            "link the part that defines it; parts take BH_COMPILE_RELOCATABLE or LTO-IR",
            "%s: %.*s", version, (int)length, text);
    return bh__fail(error, BH_E_COMPILE, "see the log", "%s failed (%d): %.*s", version, result,
                    (int)length, text);
}

typedef struct contents {
    bool lto;  /* some input is LTO-IR */
    bool text; /* all inputs are PTX */
} contents;

static bh_status refuse_input(bh__compile *c, size_t index) {
    return bh__fail(&c->answer->error, BH_E_INVALID, "link PTX, cubins, fatbins and LTO-IR",
                    "input %zu of %llu bytes is not an image that can be linked", index,
                    (unsigned long long)c->job->inputs.list[index].count);
}

/* Some text: to link it to PTX shows best what is wrong with it. */
static bool may_be_ptx(const bh__compile_job *job, bh__bytes image) {
    return job->output == BH_OUTPUT_PTX && image.count > 0 &&
           memchr(image.data, 0, image.count) == NULL;
}

/* Finds the kind of each input; refuses what cannot be linked. */
static bh_status check_inputs(bh__compile *c, bh__link_kind *kinds, contents *found) {
    bh_error *error = &c->answer->error;
    bh__texts inputs = c->job->inputs;
    if (inputs.count == 0)
        return bh__fail(error, BH_E_INVALID, "give at least one image", "there is nothing to link");
    for (size_t i = 0; i < inputs.count; i++) {
        kinds[i] = bh__link_kind_of(inputs.list[i]);
        if (kinds[i] == BH__LINK_UNKNOWN && !may_be_ptx(c->job, inputs.list[i]))
            return refuse_input(c, i);
        found->lto |= kinds[i] == BH__LINK_LTOIR;
        found->text &= kinds[i] == BH__LINK_PTX || kinds[i] == BH__LINK_UNKNOWN;
    }
    for (size_t i = 0; i < inputs.count && !found->text; i++)
        if (kinds[i] == BH__LINK_UNKNOWN) return refuse_input(c, i);
    bool wants_ptx = c->job->output & BH_OUTPUT_PTX, both = c->job->output & BH_OUTPUT_CUBIN;
    for (size_t i = 0; i < inputs.count && wants_ptx && !found->text; i++) {
        bh__link_kind must_be = both || kinds[0] == BH__LINK_PTX ? BH__LINK_PTX : BH__LINK_LTOIR;
        if (kinds[i] != must_be)
            return bh__fail(error, BH_E_UNSUPPORTED,
                            "ask for a cubin, or compile all parts to PTX or all to LTO-IR",
                            "%s linked from parts that are all PTX%s, and input %zu is %s",
                            both ? "PTX and a cubin together are" : "PTX is",
                            both ? "" : " or all LTO-IR", i, bh__link_kind_name(kinds[i]));
    }
    return BH_OK;
}

static bh_status take_output(bh__compile *c, const jitlink *link, void *linker) {
    bool ptx = c->job->output == BH_OUTPUT_PTX;
    size_t size = 0;
    int result = ptx ? link->ptx_size(linker, &size) : link->cubin_size(linker, &size);
    char *bytes = result == RESULT_OK ? bh__arena_alloc(c->arena, size + 1, 1) : NULL;
    if (result == RESULT_OK && bytes == NULL) return bh__compile_no_memory(c);
    if (result == RESULT_OK) result = ptx ? link->ptx(linker, bytes) : link->cubin(linker, bytes);
    if (result != RESULT_OK || size == 0)
        return bh__fail(&c->answer->error, BH_E_COMPILE, "see the log",
                        "%s succeeded without output (%d)", bh__chars(c->answer->version), result);
    if (ptx) size = strnlen(bytes, size);
    c->answer->output = (bh__bytes){(const uint8_t *)bytes, size};
    return BH_OK;
}

static bh_status run(bh__compile *c, const jitlink *link, const bh__link_kind *kinds,
                     const bh__words *options) {
    void *linker = NULL;
    bh__texts inputs = c->job->inputs;
    uint64_t printed = printed_bytes();
    int result = link->create(&linker, (uint32_t)options->count, options->list);
    if (result != RESULT_OK) {
        if (linker != NULL) take_log(c, link, linker);
        return explain(c, result, BH__LINK_UNKNOWN, SIZE_MAX);
    }
    for (size_t i = 0; i < inputs.count; i++) {
        /* nvJitLink does not copy the name. */
        const char *name = bh__compile_input_name(c, i);
        bh__bytes image = inputs.list[i];
        if (name == NULL) return bh__compile_no_memory(c);
        if (kinds[i] == BH__LINK_PTX) { /* it knows no #line before .version, and counts the NUL */
            size_t head = bh__link_ptx_head(image);
            image = (bh__bytes){image.data + head, image.count - head + 1};
        }
        result = link->add(linker, (int)kinds[i], image.data, image.count, name);
        if (result != RESULT_OK) {
            take_log(c, link, linker);
            return explain(c, result, kinds[i], i);
        }
    }
    result = link->complete(linker);
    take_log(c, link, linker);
    if (result != RESULT_OK)
        return explain(c, result, kinds[0],
                       kinds[0] == BH__LINK_LTOIR && result == RESULT_NVVM ? 0 : SIZE_MAX);
    const char *error = printed_error(c, printed);
    if (error != NULL) return explain_printed(c, error);
    return take_output(c, link, linker);
}

static bh_status link_without_nvjitlink(bh__compile *c) {
    bh__words toolchain = {.arena = c->arena};
    c->answer->version = bh__bytes_of(bh__text_format(
        c->arena, "bulkhead %d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH));
    bh_status status = bh__confine(c, &toolchain);
    return status == BH_OK ? bh__compile_link_ptx(c, &c->answer->output) : status;
}

/* Unless the linker finds others, kernels have the names in the output that they have in the
 * inputs. */
static bh_status take_names(bh__compile *c) {
    bh__texts names = c->job->expressions;
    if (names.count != c->job->expression_inputs.count)
        return bh__fail(&c->answer->error, BH_E_INVALID,
                        "install the library and its programs from one version",
                        "there are %zu names, and inputs for %zu of them", names.count,
                        c->job->expression_inputs.count);
    bh__bytes *copy = bh__arena_alloc(c->arena, names.count + 1, sizeof *copy);
    if (copy == NULL) return bh__compile_no_memory(c);
    for (size_t i = 0; i < names.count; i++) copy[i] = names.list[i];
    c->answer->lowered = (bh__texts){copy, names.count};
    return BH_OK;
}

/* nvJitLink makes PTX of LTO-IR although names are missing. */
static bh_status check_whole(bh__compile *c) {
    bh__ptx_text text = {.name = "what nvJitLink made",
                         .text = bh__chars(c->answer->output),
                         .length = c->answer->output.count};
    bh__ptx_linked linked;
    bh_error error = {0};
    if (bh__ptx_link(c->arena, &text, 1, &error, &linked) != BH_E_COMPILE) return BH_OK;
    bh__text log = {.arena = c->arena};
    bh__text_append(&log, linked.log, strlen(linked.log));
    bh__text_append(&log, bh__chars(c->answer->log), c->answer->log.count);
    if (!log.failed) c->answer->log = bh__text_bytes(&log);
    c->answer->error = error;
    return error.status;
}

bh_status bh__compile_link(bh__compile *c) {
    bh_error *error = &c->answer->error;
    bh__link_kind *kinds = bh__arena_alloc(c->arena, c->job->inputs.count + 1, sizeof *kinds);
    contents found = {.text = true};
    if (kinds == NULL) return bh__compile_no_memory(c);
    bh_status status = check_inputs(c, kinds, &found);
    if (status == BH_OK) status = take_names(c);
    if (status != BH_OK) return status;
    if (found.text && c->job->output == BH_OUTPUT_PTX) return link_without_nvjitlink(c);

    bh__library library = {0};
    jitlink link = {0};
    bh__library_open_jitlink(c->arena, bh__chars(c->job->compiler_path), &library);
    if (library.handle == NULL && bh__is_memory_error(library.why))
        return bh__compile_over_limit(c, "nvJitLink");
    if (library.handle == NULL)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "install nvJitLink 12.0 or later (CUDA toolkit, or pip install "
                        "nvidia-nvjitlink)",
                        "nvJitLink: %.300s", library.why);
    status = bh__jitlink_version(&library, &link.major, &link.minor);
    const char *missing = status == BH_OK ? look_up_all(&library, &link) : "nvJitLinkVersion";
    if (missing != NULL)
        return bh__fail(error, BH_E_UNSUPPORTED, "install nvJitLink 12.0 or later",
                        "nvJitLink at %.200s cannot be used: it lacks %s", library.path, missing);
    c->answer->version =
        bh__bytes_of(bh__text_format(c->arena, "nvJitLink %u.%u", link.major, link.minor));
    bh__words options = {.arena = c->arena}, toolchain = {.arena = c->arena};
    bh__toolchain_add(&toolchain, library.path);
    status = bh__confine(c, &toolchain);
    if (status == BH_OK && found.text && (c->job->output & BH_OUTPUT_PTX))
        status = bh__compile_link_ptx(c, &c->answer->ptx);
    if (status != BH_OK) return status;
    bh__options_link(c->job, found.lto, &options);
    if (options.failed) return bh__compile_no_memory(c);
    status = run(c, &link, kinds, &options);
    if (status == BH_E_COMPILE) return explain_better(c, found.text, status);
    if (status == BH_OK) status = bh__compile_check_kernels(c);
    return status == BH_OK && c->job->output == BH_OUTPUT_PTX ? check_whole(c) : status;
}
