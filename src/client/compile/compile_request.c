/* SPDX-License-Identifier: Apache-2.0 */
/* Compile and link requests: checking each option, choosing the compiler, and making the cache
 * key. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "base/errno_text.h"
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/request.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/core/sized.h"
#include "client/module/module.h"
#include "wire/message.h"

#define MAX_SOURCE ((size_t)256 << 20)
#define MIN_MEMORY ((uint64_t)64 << 20)

enum { MAX_LISTED = 65536, MAX_TEXT = 65536, KEY_VERSION = 4 };

#define ALL_FLAGS                                                                                  \
    (uint32_t)(BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS | BH_COMPILE_LINE_INFO |          \
               BH_COMPILE_DEBUG | BH_COMPILE_RELOCATABLE | BH_COMPILE_NO_CACHE |                   \
               BH_COMPILE_UNCONFINED)

static bh__bytes bytes_of(const char *text) {
    return (bh__bytes){(const uint8_t *)text, strlen(text)};
}

static bh_status refuse_number(const char *field, unsigned long long value, const char *fix) {
    return bh__refuse(BH_E_INVALID, fix, "bh_compile_options.%s is %llu", field, value);
}

static bh_status refuse_text(const char *field, size_t index, const char *text, const char *what,
                             const char *fix) {
    return bh__refuse(BH_E_INVALID, fix, "bh_compile_options.%s[%zu] (\"%.80s\") %s", field, index,
                      text, what);
}

static bh_status refuse_memory(void) {
    return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                      "no host memory for a compile request");
}

/* ---- single options ---- */

static bh_status take_options(const bh_compile_options *given, bh_compile_options *out) {
    *out = (bh_compile_options)BH_INIT(*out);
    return bh__options_take(given, out, "bh_compile_options");
}

#define VIRTUAL "compute_" /* compute_90: PTX for sm_90 */

static bool is_virtual(const char *arch) {
    return arch && strncmp(arch, VIRTUAL, sizeof VIRTUAL - 1) == 0;
}

/* What follows "sm_" or "compute_". */
static const char *version_of(const char *arch) {
    return arch + (is_virtual(arch) ? sizeof VIRTUAL - 1 : 3);
}

bool bh__is_arch(const char *text) {
    if (strncmp(text, "sm_", 3) != 0 && !is_virtual(text)) return false;
    const char *version = version_of(text);
    size_t digits = strspn(version, "0123456789");
    const char *rest = version + digits;
    int number = digits >= 2 && digits <= 3 ? atoi(version) : 0;
    return number >= 50 && number < 200 &&
           (*rest == 0 || ((*rest == 'a' || *rest == 'f') && rest[1] == 0));
}

static bh_status check_numbers(const bh_compile_options *o) {
    if (o->flags & ~ALL_FLAGS)
        return bh__refuse(BH_E_INVALID, "use only BH_COMPILE_... flags",
                          "bh_compile_options.flags is 0x%x; 0x%x of it is not a known flag",
                          o->flags, o->flags & ~ALL_FLAGS);
    if ((o->flags & BH_COMPILE_UNCONFINED) && bh__is_privileged())
        return bh__refuse(BH_E_UNSUPPORTED, "remove the flag",
                          "bh_compile_options.flags has BH_COMPILE_UNCONFINED, and this program is "
                          "privileged (set-user-ID): its compilers are always confined");
    if (o->compiler > BH_COMPILER_CLANG)
        return refuse_number("compiler", o->compiler,
                             "use BH_COMPILER_AUTO, BH_COMPILER_NVRTC or BH_COMPILER_CLANG");
    if (o->output > BH_OUTPUT_LTOIR)
        return refuse_number("output", o->output,
                             "use BH_OUTPUT_AUTO, BH_OUTPUT_PTX, BH_OUTPUT_CUBIN, both of these "
                             "together, or BH_OUTPUT_LTOIR");
    if (o->standard && o->standard != 14 && o->standard != 17 && o->standard != 20)
        return refuse_number("standard", o->standard, "use 14, 17 or 20, or 0 for 17");
    if (o->max_registers && (o->max_registers < 16 || o->max_registers > 255))
        return refuse_number("max_registers", o->max_registers, "use 16 to 255, or 0 for no limit");
    if (o->memory_limit && o->memory_limit < MIN_MEMORY)
        return refuse_number("memory_limit", o->memory_limit,
                             "allow at least 64 MiB (67108864), or 0 for 8 GiB");
    if (o->timeout_ns && o->timeout_ns < BH__NS_PER_MS)
        return refuse_number("timeout_ns", o->timeout_ns,
                             "allow at least a millisecond (1000000), or 0 for 60 s");
    if (o->arch && !bh__is_arch(o->arch))
        return bh__refuse(BH_E_INVALID,
                          "write it like sm_80, sm_90a, sm_120 or compute_90; the oldest is sm_50",
                          "bh_compile_options.arch is \"%.60s\"", o->arch);
    if (is_virtual(o->arch) && o->output > BH_OUTPUT_PTX)
        return bh__refuse(BH_E_INVALID, "use BH_OUTPUT_PTX, or an architecture like sm_90",
                          "bh_compile_options.arch is \"%.60s\", which gives PTX, and output is %u",
                          o->arch, o->output);
    if (o->output == BH_OUTPUT_LTOIR && (o->flags & BH_COMPILE_DEBUG))
        return bh__refuse(BH_E_INVALID, "use only one of them",
                          "BH_COMPILE_DEBUG and BH_OUTPUT_LTOIR cannot be combined");
    return BH_OK;
}

static bh_status check_name(const char *name) {
    if (!name) return BH_OK;
    size_t length = strlen(name);
    bool bad = length == 0 || length > 1024;
    for (size_t i = 0; i < length && !bad; i++)
        bad = (unsigned char)name[i] < 32 || name[i] == '"' || name[i] == '\\';
    return bad ? bh__refuse(
                     BH_E_INVALID,
                     "use 1 to 1024 characters without control characters, quotes or backslashes",
                     "bh_compile_options.name is \"%.60s\" (%zu bytes)", name, length)
               : BH_OK;
}

/* ---- lists ---- */

static bh_status take_list(bh__compile_request *request, const char *field, const char *const *list,
                           size_t count, bh__texts *out) {
    if (count == 0) return BH_OK;
    if (!list)
        return bh__refuse(BH_E_INVALID, "pass an array, or a count of 0",
                          "bh_compile_options.%s is NULL and its count is %zu", field, count);
    if (count > MAX_LISTED)
        return bh__refuse(BH_E_INVALID, "pass at most 65536",
                          "bh_compile_options.%s has %zu elements", field, count);
    out->list = bh__arena_alloc(&request->arena, count, sizeof *out->list);
    if (!out->list) return refuse_memory();
    for (size_t i = 0; i < count; i++) {
        if (!list[i])
            return bh__refuse(BH_E_INVALID, "pass a text for each element",
                              "bh_compile_options.%s[%zu] is NULL", field, i);
        out->list[i] = bytes_of(list[i]);
        if (out->list[i].count == 0)
            return bh__refuse(BH_E_INVALID, "remove the element",
                              "bh_compile_options.%s[%zu] is empty", field, i);
        if (out->list[i].count > MAX_TEXT)
            return bh__refuse(BH_E_INVALID, "use at most 65536 bytes",
                              "bh_compile_options.%s[%zu] has %llu bytes", field, i,
                              (unsigned long long)out->list[i].count);
    }
    out->count = count;
    return BH_OK;
}

static size_t identifier_length(const char *text) {
    if (*text >= '0' && *text <= '9') return 0;
    return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static bh_status check_defines(const bh__texts *defines) {
    for (size_t i = 0; i < defines->count; i++) {
        const char *text = (const char *)defines->list[i].data;
        size_t length = identifier_length(text);
        if (length == 0 || (text[length] != 0 && text[length] != '='))
            return refuse_text("defines", i, text, "does not begin with a name",
                               "write NAME or NAME=VALUE");
        if (strchr(text, '\n'))
            return refuse_text("defines", i, text, "contains a line break", "write it on one line");
        for (size_t before = 0; before < i; before++) {
            const char *other = (const char *)defines->list[before].data;
            bool same_name = identifier_length(other) == length && !strncmp(other, text, length);
            if (same_name && strcmp(other, text) != 0)
                return bh__refuse(BH_E_INVALID, "define each name once",
                                  "bh_compile_options.defines[%zu] (\"%.80s\") contradicts [%zu] "
                                  "(\"%.80s\")",
                                  i, text, before, other);
        }
    }
    return BH_OK;
}

static bh_status check_expressions(const bh__texts *expressions) {
    for (size_t i = 0; i < expressions->count; i++) {
        const char *text = (const char *)expressions->list[i].data;
        bool blank = true;
        for (const char *at = text; *at; at++) {
            if ((unsigned char)*at < 32 || *at == ';' || *at == '"')
                return refuse_text("expressions", i, text, "is not a name expression",
                                   "write for example my_kernel<float, 256>");
            blank &= *at == ' ';
        }
        if (blank)
            return refuse_text("expressions", i, text, "is blank",
                               "write for example my_kernel<float, 256>");
    }
    return BH_OK;
}

/* Refuses flags that a field of bh_compile_options already sets. */
static bh_status check_extra(const bh__texts *extra) {
    static const struct {
        const char *flag, *field;
    } reserved[] = {{"-arch", "arch"},
                    {"--gpu-architecture", "arch"},
                    {"--cuda-gpu-arch", "arch"},
                    {"--offload-arch", "arch"},
                    {"-std", "standard"},
                    {"--std", "standard"},
                    {"-maxrregcount", "max_registers"},
                    {"--maxrregcount", "max_registers"},
                    {"-dlto", "output"},
                    {"--dlink-time-opt", "output"}};
    for (size_t i = 0; i < extra->count; i++) {
        const char *text = (const char *)extra->list[i].data;
        if (strcmp(text, "-o") == 0 || strncmp(text, "--output", 8) == 0 || strchr(text, '\n'))
            return refuse_text("extra", i, text, "cannot be passed to the compiler",
                               "remove it; the result is returned in memory");
        for (size_t n = 0; n < sizeof reserved / sizeof *reserved; n++) {
            size_t length = strlen(reserved[n].flag);
            if (strncmp(text, reserved[n].flag, length) == 0 &&
                (text[length] == 0 || text[length] == '='))
                return bh__refuse(BH_E_INVALID, "set the field instead",
                                  "bh_compile_options.extra[%zu] (\"%.80s\") sets the same as "
                                  "bh_compile_options.%s",
                                  i, text, reserved[n].field);
        }
    }
    return BH_OK;
}

/* Relative paths are resolved here: the compiler process may have another working directory. */
static bh_status make_absolute(bh__compile_request *request, bh__texts *paths) {
    char here[4096], text[96];
    for (size_t i = 0; i < paths->count; i++) {
        const char *path = (const char *)paths->list[i].data;
        if (path[0] == '/') continue;
        if (!getcwd(here, sizeof here))
            return bh__refuse(BH_E_IO, "use absolute include paths",
                              "the working directory is not known: %s",
                              bh__errno_text(errno, text, sizeof text));
        size_t folder = strlen(here), length = strlen(path);
        char *whole = bh__arena_alloc(&request->arena, folder + length + 2, 1);
        if (!whole) return refuse_memory();
        memcpy(whole, here, folder);
        whole[folder] = '/';
        memcpy(whole + folder + 1, path, length);
        paths->list[i] = (bh__bytes){(uint8_t *)whole, folder + length + 1};
    }
    return BH_OK;
}

static bh_status take_headers(bh__compile_request *request, const bh_header *headers,
                              size_t count) {
    if (count == 0) return BH_OK;
    if (!headers || count > MAX_LISTED)
        return bh__refuse(BH_E_INVALID, "pass an array of at most 65536, or a count of 0",
                          "bh_compile_options.headers is %p and header_count is %zu",
                          (const void *)headers, count);
    bh__texts *names = &request->job.header_names, *bodies = &request->job.header_bodies;
    names->list = bh__arena_alloc(&request->arena, count, sizeof *names->list);
    bodies->list = bh__arena_alloc(&request->arena, count, sizeof *bodies->list);
    if (!names->list || !bodies->list) return refuse_memory();
    for (size_t i = 0; i < count; i++) {
        const char *name = headers[i].name;
        if (!name || !headers[i].text)
            return bh__refuse(BH_E_INVALID, "give each header a name and a text",
                              "bh_compile_options.headers[%zu].%s is NULL", i,
                              name ? "text" : "name");
        if (!*name || strlen(name) > 1024 || strpbrk(name, "\"<>\n\\"))
            return refuse_text("headers", i, name, "has a name that #include cannot name",
                               "use 1 to 1024 characters, none of \", <, > and \\");
        for (size_t before = 0; before < i; before++) {
            if (strcmp(name, headers[before].name) == 0)
                return refuse_text("headers", i, name, "has the same name as an earlier header",
                                   "give each header a unique name");
        }
        names->list[i] = bytes_of(name);
        bodies->list[i] = bytes_of(headers[i].text);
        if (bodies->list[i].count > MAX_SOURCE)
            return refuse_text("headers", i, name, "has more than 256 MiB", "pass at most 256 MiB");
        names->count = bodies->count = i + 1;
    }
    return BH_OK;
}

/* ---- requests ---- */

static void take_common(bh__compile_request *request, const bh_compile_options *o) {
    bh__compile_job *job = &request->job;
    job->output = is_virtual(o->arch) ? BH_OUTPUT_PTX : o->output;
    job->flags = o->flags & ~(uint32_t)BH_COMPILE_NO_CACHE;
    job->standard = o->standard ? o->standard : 17;
    job->max_registers = o->max_registers;
    job->memory_limit = o->memory_limit ? o->memory_limit : (uint64_t)8 << 30;
    job->time_limit_ns = o->timeout_ns ? o->timeout_ns : 60 * BH__NS_PER_S;
    request->wanted = o->compiler;
    request->compiler_dir = o->compiler_dir && *o->compiler_dir ? o->compiler_dir : NULL;
    request->cache_dir = o->cache_dir && *o->cache_dir ? o->cache_dir : NULL;
    request->cache_limit = bh__cache_limit(o->cache_limit);
    request->cached = !(o->flags & BH_COMPILE_NO_CACHE);
}

/* The device's architecture if it has one. The CPU device runs PTX of any architecture. */
static const char *choose_arch(const bh_compile_options *o, const bh__compile_target *target) {
    if (o->arch) return o->arch;
    return target && bh__is_arch(target->info.arch) ? target->info.arch : "sm_80";
}

static bh_status fill_compile(bh__compile_request *request, const char *source,
                              const bh_compile_options *o, const bh__compile_target *target) {
    bh__compile_job *job = &request->job;
    bh_status status = check_numbers(o);
    if (status == BH_OK) status = check_name(o->name);
    if (status != BH_OK) return status;
    job->op = BH__COMPILE_SOURCE;
    job->source = bytes_of(source);
    if (job->source.count > MAX_SOURCE)
        return bh__refuse(BH_E_INVALID, "compile at most 256 MiB at once",
                          "the source has %llu bytes", (unsigned long long)job->source.count);
    take_common(request, o);
    request->for_cubin = target && (target->traits & BH__TRAIT_LOADS_CUBIN);
    if (target && o->output == BH_OUTPUT_LTOIR)
        return bh__refuse(BH_E_INVALID, "compile with bh_compile and link with bh_link",
                          "bh_compile_options.output is BH_OUTPUT_LTOIR, which no device can run");
    if (target && !request->for_cubin && o->output == BH_OUTPUT_CUBIN)
        return bh__refuse(BH_E_UNSUPPORTED, "use BH_OUTPUT_AUTO or BH_OUTPUT_PTX",
                          "bh_compile_options.output is BH_OUTPUT_CUBIN, and the %s device "
                          "runs PTX only",
                          target->info.kind);
    snprintf(request->arch, sizeof request->arch, "sm_%s", version_of(choose_arch(o, target)));
    job->arch = bytes_of(request->arch);
    job->name = bytes_of(o->name ? o->name : "source.cu");
    status = take_list(request, "defines", o->defines, o->define_count, &job->defines);
    if (status == BH_OK) status = check_defines(&job->defines);
    if (status == BH_OK)
        status = take_list(request, "include_paths", o->include_paths, o->include_path_count,
                           &job->include_paths);
    if (status == BH_OK) status = make_absolute(request, &job->include_paths);
    if (status == BH_OK) status = take_headers(request, o->headers, o->header_count);
    if (status == BH_OK)
        status = take_list(request, "expressions", o->expressions, o->expression_count,
                           &job->expressions);
    if (status == BH_OK) status = check_expressions(&job->expressions);
    if (status == BH_OK)
        status = take_list(request, "extra", o->extra, o->extra_count, &job->extra);
    if (status == BH_OK) status = check_extra(&job->extra);
    return status;
}

bh_status bh__request_compile(bh__compile_request *request, const char *source,
                              const bh_compile_options *options, const bh__compile_target *target) {
    memset(request, 0, sizeof *request);
    if (!source) return bh__refuse(BH_E_INVALID, "pass CUDA C++ as text", "source is NULL");
    bh_compile_options o;
    bh_status status = take_options(options, &o);
    if (status == BH_OK) status = fill_compile(request, source, &o, target);
    if (status != BH_OK) bh__request_free(request);
    return status;
}

/* Refuses options that apply to compiles only. */
static bh_status check_link_options(const bh_compile_options *o) {
    const char *field = o->define_count         ? "defines"
                        : o->include_path_count ? "include_paths"
                        : o->header_count       ? "headers"
                        : o->expression_count   ? "expressions"
                        : o->standard           ? "standard"
                        : o->compiler           ? "compiler"
                                                : NULL;
    if (field)
        return bh__refuse(BH_E_INVALID, "pass it to bh_compile instead",
                          "bh_compile_options.%s does not apply to a link", field);
    if (o->output == BH_OUTPUT_LTOIR)
        return bh__refuse(BH_E_INVALID, "use BH_OUTPUT_PTX, BH_OUTPUT_CUBIN or both",
                          "bh_compile_options.output is BH_OUTPUT_LTOIR, which a link cannot "
                          "produce");
    return check_numbers(o);
}

/* PTX can be linked to PTX if every part holds PTX. */
static bh_status choose_images(bh__compile_request *request, bh__product *const *parts,
                               size_t count) {
    const bh__compile_job *job = &request->job;
    size_t i = 0;
    while (i < count && (parts[i]->output & BH_OUTPUT_PTX)) i++;
    request->links_ptx = i == count && job->output != BH_OUTPUT_CUBIN;
    if (i == count || job->output != (BH_OUTPUT_PTX | BH_OUTPUT_CUBIN)) return BH_OK;
    return bh__refuse(BH_E_INVALID, "ask for one of them, or compile all parts to PTX",
                      "bh_compile_options.output is BH_OUTPUT_PTX | BH_OUTPUT_CUBIN, which needs "
                      "parts that hold PTX, and part %zu holds outputs 0x%x (BH_OUTPUT_...)",
                      i, parts[i]->output);
}

/* The image of a part for the link, and its name for messages. Lines of PTX are not lines of the
 * source: the name says so. */
static bool take_part(bh__compile_request *request, const bh__product *part, size_t index) {
    static const char behind[] = " (PTX)";
    bh__compile_job *job = &request->job;
    bool beside = request->links_ptx && part->ptx;
    size_t length = part->name ? strlen(part->name) : 0;
    char *name = bh__arena_alloc(&request->arena, length + sizeof behind, 1);
    if (!name) return false;
    if (length) {
        memcpy(name, part->name, length);
        memcpy(name + length, behind, sizeof behind);
    }
    job->inputs.list[index] =
        beside ? (bh__bytes){part->ptx, part->ptx_count} : (bh__bytes){part->bytes, part->count};
    job->input_names.list[index] = bytes_of(name);
    return true;
}

/* PTX runs on newer architectures, but not on older ones, and linking does not change that. */
static bh_status check_targets(const char *arch, bh__product *const *parts, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!*parts[i]->arch || atoi(version_of(parts[i]->arch)) <= atoi(version_of(arch)))
            continue;
        return bh__refuse(BH_E_INVALID, "compile all parts for that architecture, or name none",
                          "bh_compile_options.arch is \"%.20s\", and part %zu is PTX for %s", arch,
                          i, parts[i]->arch);
    }
    return BH_OK;
}

/* The name expressions of all parts, with what each is called in its part. */
static bool take_expressions(bh__compile_request *request, bh__product *const *parts,
                             size_t count) {
    bh__compile_job *job = &request->job;
    bh__texts *lists[] = {&request->expressions, &job->expressions, &job->expression_inputs};
    size_t names = 0;
    for (size_t i = 0; i < count; i++) names += parts[i]->names.count;
    for (size_t i = 0; i < 3; i++) {
        lists[i]->list = bh__arena_alloc(&request->arena, names + 1, sizeof *lists[i]->list);
        if (!lists[i]->list) return false;
    }
    for (size_t i = 0; i < count; i++) {
        char number[24];
        int length = snprintf(number, sizeof number, "%zu", i);
        char *input = bh__arena_copy(&request->arena, number, (size_t)length);
        if (!input) return false;
        for (size_t n = 0; n < parts[i]->names.count; n++) {
            const bh__name *name = &parts[i]->names.list[n];
            request->expressions.list[request->expressions.count++] = bytes_of(name->expression);
            job->expressions.list[job->expressions.count++] = bytes_of(name->lowered);
            job->expression_inputs.list[job->expression_inputs.count++] = bytes_of(input);
        }
    }
    return true;
}

static bh_status fill_link(bh__compile_request *request, bh__product *const *parts, size_t count,
                           const bh_compile_options *o) {
    bh__compile_job *job = &request->job;
    bh_status status = check_link_options(o);
    if (status == BH_OK) status = check_name(o->name);
    if (status != BH_OK) return status;
    take_common(request, o);
    job->op = BH__COMPILE_LINK;
    status = choose_images(request, parts, count);
    if (status != BH_OK) return status;
    if (job->output == BH_OUTPUT_AUTO)
        job->output = request->links_ptx ? BH_OUTPUT_PTX : BH_OUTPUT_CUBIN;
    if (o->arch && request->links_ptx) {
        status = check_targets(o->arch, parts, count);
        if (status != BH_OK) return status;
    }
    const char *arch = o->arch ? o->arch : parts[0]->arch;
    snprintf(request->arch, sizeof request->arch, "sm_%s", *arch ? version_of(arch) : "80");
    job->arch = bytes_of(request->arch);
    job->name = bytes_of(o->name ? o->name : "linked");
    job->inputs.list = bh__arena_alloc(&request->arena, count, sizeof *job->inputs.list);
    job->input_names.list = bh__arena_alloc(&request->arena, count, sizeof *job->inputs.list);
    if (!job->inputs.list || !job->input_names.list || !take_expressions(request, parts, count))
        return refuse_memory();
    for (size_t i = 0; i < count; i++)
        if (!take_part(request, parts[i], i)) return refuse_memory();
    job->inputs.count = job->input_names.count = count;
    status = take_list(request, "extra", o->extra, o->extra_count, &job->extra);
    return status == BH_OK ? check_extra(&job->extra) : status;
}

bh_status bh__request_link(bh__compile_request *request, bh__product *const *parts, size_t count,
                           const bh_compile_options *options) {
    memset(request, 0, sizeof *request);
    bh_compile_options o;
    bh_status status = take_options(options, &o);
    if (status == BH_OK) status = fill_link(request, parts, count, &o);
    if (status != BH_OK) bh__request_free(request);
    return status;
}

void bh__request_free(bh__compile_request *request) {
    bh__pack_free(&request->key);
    bh__arena_free(&request->arena);
    bh__probe_release(request->probe);
    if (request->holds_image) bh__fd_close(request->image_fd);
    memset(request, 0, sizeof *request);
}

static bool own_text(bh__arena *arena, const char **text) {
    if (*text) *text = bh__arena_copy(arena, *text, strlen(*text));
    return true;
}

static bool own_bytes(bh__arena *arena, bh__bytes *bytes) {
    char *copy = bh__arena_copy(arena, (const char *)bytes->data, bytes->count);
    bytes->data = (const uint8_t *)copy;
    return copy != NULL;
}

static bool own_texts(bh__arena *arena, bh__texts *texts) {
    bool owned = true;
    for (size_t i = 0; i < texts->count && owned; i++) owned = own_bytes(arena, &texts->list[i]);
    return owned;
}

bool bh__request_own(bh__compile_request *request) {
    bh__arena *arena = &request->arena;
    bh__compile_job *job = &request->job;
    const char *dir = request->compiler_dir, *cache = request->cache_dir;
    own_text(arena, &request->compiler_dir);
    own_text(arena, &request->cache_dir);
    if ((dir && !request->compiler_dir) || (cache && !request->cache_dir)) return false;
    return own_bytes(arena, &job->name) && own_bytes(arena, &job->source) &&
           own_texts(arena, &job->defines) && own_texts(arena, &job->include_paths) &&
           own_texts(arena, &job->header_names) && own_texts(arena, &job->header_bodies) &&
           own_texts(arena, &job->expressions) && own_texts(arena, &job->extra) &&
           own_texts(arena, &job->inputs) && own_texts(arena, &job->input_names) &&
           own_texts(arena, &job->expression_inputs) && own_texts(arena, &request->expressions);
}

/* ---- the compiler ---- */

static const char install[] =
    "install clang (apt install clang-19) or NVRTC (the CUDA toolkit, or pip install "
    "nvidia-cuda-nvrtc-cu12); \"bulkhead doctor\" shows which compilers are found";

static bool is_usable(const bh__probe_entry *entry) {
    return entry && entry->usable;
}

static const char *why_not(const bh__probe_entry *entry) {
    return entry && *entry->why ? entry->why : "bulkhead-compiler did not look for it";
}

#define TEXT(x)   #x
#define NUMBER(x) TEXT(x)
#define VERSION   NUMBER(BH_VERSION_MAJOR) "." NUMBER(BH_VERSION_MINOR) "." NUMBER(BH_VERSION_PATCH)

/* bulkhead-compiler links PTX to PTX itself; all else needs nvJitLink. */
static bh_status choose_linker(const bh__compile_request *request, const bh__probe *probe,
                               const bh__probe_entry **out, bh_error *error) {
    static const bh__probe_entry own = {
        .usable = true, .path = "", .version = "bulkhead " VERSION, .why = ""};
    const bh__probe_entry *nvjitlink = bh__probe_find(probe, BH__COMPILER_NVJITLINK);
    bool itself = request->links_ptx && request->job.output == BH_OUTPUT_PTX;
    *out = itself ? &own : nvjitlink;
    if (is_usable(*out)) return BH_OK;
    return bh__fail(error, BH_E_UNSUPPORTED,
                    "install nvJitLink: it comes with the CUDA toolkit 12 and later; or link parts "
                    "that are all PTX to BH_OUTPUT_PTX",
                    "linking to a cubin is not supported here: nvJitLink: %.300s",
                    why_not(nvjitlink));
}

static bh_status choose(bh__compile_request *request, const bh__probe *probe,
                        const bh__probe_entry **out, char why[192], bh_error *error) {
    bh__compile_job *job = &request->job;
    const bh__probe_entry *nvrtc = bh__probe_find(probe, BH_COMPILER_NVRTC);
    const bh__probe_entry *clang = bh__probe_find(probe, BH_COMPILER_CLANG);
    bool binary = job->output & (BH_OUTPUT_CUBIN | BH_OUTPUT_LTOIR);
    if (request->wanted == BH_COMPILER_NVRTC || (request->wanted == BH_COMPILER_AUTO && binary)) {
        if (!is_usable(nvrtc))
            return bh__fail(
                error, BH_E_UNSUPPORTED,
                binary ? "use BH_OUTPUT_PTX, or install NVRTC (the CUDA toolkit)" : install,
                "%s NVRTC, which cannot be used: %.300s",
                binary ? "cubin and LTO-IR output need" : "bh_compile_options.compiler is",
                why_not(nvrtc));
        *out = nvrtc;
        snprintf(why, 192, "%s", request->wanted ? "asked for" : "cubin and LTO-IR need it");
        return BH_OK;
    }
    if (request->wanted == BH_COMPILER_CLANG) {
        if (binary)
            return bh__fail(
                error, BH_E_UNSUPPORTED, "use BH_OUTPUT_PTX or BH_COMPILER_NVRTC",
                "bh_compile_options.compiler is clang, which produces PTX only, and output is %s",
                job->output & BH_OUTPUT_CUBIN ? "cubin" : "LTO-IR");
        if (!is_usable(clang))
            return bh__fail(error, BH_E_UNSUPPORTED, install,
                            "bh_compile_options.compiler is clang, which cannot be used: %.300s",
                            why_not(clang));
        *out = clang;
        snprintf(why, 192, "asked for");
        return BH_OK;
    }
    *out = is_usable(nvrtc) ? nvrtc : clang;
    if (!is_usable(*out))
        return bh__fail(error, BH_E_UNSUPPORTED, install,
                        "no compiler can be used: NVRTC: %.180s; clang: %.180s", why_not(nvrtc),
                        why_not(clang));
    if (*out == nvrtc) {
        snprintf(why, 192, "NVRTC is preferred: %.150s", nvrtc->why);
    } else {
        snprintf(why, 192, "NVRTC cannot be used: %.150s", why_not(nvrtc));
    }
    return BH_OK;
}

/* ---- the key: everything that determines the result, and its name ---- */

static void make_key(bh__compile_request *request, const bh__probe *probe,
                     const bh__probe_entry *with) {
    const bh__compile_job *job = &request->job;
    bh__pack *key = &request->key;
    bh__pack_reserve(key, job->source.count + 1024);
    const uint64_t numbers[] = {KEY_VERSION,   job->op,    job->compiler,     job->output,
                                job->standard, job->flags, job->max_registers};
    bh__pack_raw(key, numbers, sizeof numbers);
    bh__pack_text(key, with->path);
    bh__pack_text(key, with->version);
    bh__pack_raw(key, &with->id, sizeof with->id);
    bh__pack_text(key, probe->program);
    bh__pack_raw(key, &probe->program_id, sizeof probe->program_id);
    bh__pack_bytes(key, job->arch.data, job->arch.count);
    bh__pack_bytes(key, job->name.data, job->name.count);
    bh__pack_bytes(key, job->source.data, job->source.count);
    bh__pack_texts(key, &job->defines);
    bh__pack_texts(key, &job->include_paths);
    bh__pack_texts(key, &job->header_names);
    bh__pack_texts(key, &job->header_bodies);
    bh__pack_texts(key, &job->expressions);
    bh__pack_texts(key, &job->extra);
    bh__pack_texts(key, &job->inputs);
    bh__pack_texts(key, &job->input_names);
    bh__pack_texts(key, &job->expression_inputs);
    bh__pack_texts(key, &request->expressions);
    if (!key->failed) bh__checksum(key->data, key->count, request->hash);
}

bh_status bh__request_resolve(bh__compile_request *request, bh_error *error) {
    bh__compile_job *job = &request->job;
    if (job->op == BH__COMPILE_NATIVE) return bh__native_resolve(request, error);
    bool links = job->op == BH__COMPILE_LINK;
    bh__probe *probe = bh__probe_get(request->compiler_dir, request->cache_dir,
                                     request->cached ? BH__PROBE_KNOWN : BH__PROBE_MEMORY,
                                     links ? BH__COMPILER_NVJITLINK : request->wanted, error);
    if (!probe) return error->status;
    request->probe = probe;
    const bh__probe_entry *with = NULL;
    bh_status status = links ? choose_linker(request, probe, &with, error)
                             : choose(request, probe, &with, request->why, error);
    if (status != BH_OK) return status;
    job->compiler = links ? 0 : with->compiler;
    if (job->output == BH_OUTPUT_AUTO) {
        bool cubin = request->for_cubin && with->compiler == BH_COMPILER_NVRTC;
        job->output = cubin ? BH_OUTPUT_CUBIN : BH_OUTPUT_PTX;
    }
    job->compiler_path = bytes_of(with->path);
    request->program = probe->program;
    request->compiler = with->version;
    make_key(request, probe, with);
    if (!request->key.failed) return BH_OK;
    return bh__fail(error, BH_E_NO_HOST_MEMORY, "free host memory",
                    "no host memory for a compile request");
}
