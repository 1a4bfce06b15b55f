/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a job's options and translates them to each compiler's flags. What is unknown or
 * contradictory is refused by name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/siphash.h"
#include "compiler/compile.h"

enum { MIN_REGISTERS = 16, MAX_REGISTERS = 255 };

#define KNOWN_FLAGS                                                                                \
    (BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS | BH_COMPILE_LINE_INFO | BH_COMPILE_DEBUG | \
     BH_COMPILE_RELOCATABLE | BH_COMPILE_NO_CACHE | BH_COMPILE_UNCONFINED)

bool bh__arch_read(const char *text, bh__arch *out) {
    if (strncmp(text, "sm_", 3) != 0) return false;
    const char *at = text + 3;
    size_t digits = strspn(at, "0123456789");
    if (digits < 2 || digits > 3 || at[0] == '0') return false;
    out->number = (unsigned)atoi(at);
    out->suffix = at[digits];
    if (out->suffix == 0) return true;
    return (out->suffix == 'a' || out->suffix == 'f') && at[digits + 1] == 0;
}

unsigned bh__options_ptx_version(bh__arch arch) {
    /* The oldest version that knows the architecture and what is new in it; for architectures up to
     * sm_90 one that all drivers of 12.0 and later load. */
    if (arch.suffix == 'f') return 88;
    if (arch.number <= 90) return arch.number == 90 ? 80 : 78;
    if (arch.number <= 101) return 86;
    if (arch.number == 120) return 87;
    return 88;
}

/* ---- checks ---- */

static bool is_define(const char *text) {
    if (!isalpha((unsigned char)text[0]) && text[0] != '_') return false;
    while (isalnum((unsigned char)*text) || *text == '_') text++;
    /* NAME(ARGUMENT)=VALUE too */
    return *text == 0 || *text == '=' || *text == '(';
}

static bh_status check_texts(const bh__compile_job *job, bh_error *error) {
    for (size_t i = 0; i < job->defines.count; i++) {
        const char *text = bh__chars(job->defines.list[i]);
        if (!is_define(text) || strchr(text, '\n'))
            return bh__fail(error, BH_E_INVALID, "give NAME or NAME=VALUE",
                            "define %zu is '%.100s', which does not define a macro", i, text);
    }
    for (size_t i = 0; i < job->include_paths.count; i++) {
        const char *text = bh__chars(job->include_paths.list[i]);
        if (text[0] != '/')
            return bh__fail(error, BH_E_INVALID, "give the folder from / on",
                            "include path %zu is '%.100s', which is not absolute", i, text);
    }
    for (size_t i = 0; i < job->header_names.count; i++) {
        if (job->header_names.list[i].count == 0)
            return bh__fail(error, BH_E_INVALID, "give the name that #include has",
                            "header %zu in memory has no name", i);
    }
    for (size_t i = 0; i < job->expressions.count; i++) {
        const char *text = bh__chars(job->expressions.list[i]);
        if (text[strspn(text, " \t")] == 0 || strpbrk(text, "\r\n") || strchr(text, '#') ||
            strchr(text, ';'))
            return bh__fail(error, BH_E_INVALID, "give the name of a kernel, 'my_kernel<float>'",
                            "name expression %zu is '%.100s', which is not an expression", i, text);
    }
    return BH_OK;
}

static bh_status check_combination(const bh__compile_job *job, bh_error *error) {
    bool lto = job->output == BH_OUTPUT_LTOIR, debug = job->flags & BH_COMPILE_DEBUG;
    if (lto && debug)
        return bh__fail(error, BH_E_INVALID, "leave out one of the two",
                        "output LTO-IR and BH_COMPILE_DEBUG contradict each other: code to be "
                        "optimised at link time cannot be debugged");
    if (debug && (job->flags & BH_COMPILE_FAST_MATH))
        return bh__fail(error, BH_E_INVALID, "leave out one of the two",
                        "BH_COMPILE_DEBUG and BH_COMPILE_FAST_MATH contradict each other");
    if (job->op == BH__COMPILE_LINK && lto)
        return bh__fail(error, BH_E_INVALID, "ask for PTX or cubin",
                        "linking cannot output LTO-IR");
    if (job->op != BH__COMPILE_SOURCE) return BH_OK;
    if (job->compiler == BH_COMPILER_CLANG && job->output != BH_OUTPUT_PTX)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "install NVRTC (CUDA toolkit, or pip install nvidia-cuda-nvrtc), or ask "
                        "for PTX",
                        "clang outputs only PTX, not %s: use NVRTC for that",
                        lto ? "LTO-IR" : "a cubin");
    return BH_OK;
}

bh_status bh__job_options_check(const bh__compile_job *job, bh_error *error) {
    bh__arch arch;
    const char *name = bh__chars(job->arch);
    if (!bh__arch_read(name, &arch))
        return bh__fail(error, BH_E_INVALID, "give one such as sm_80, sm_90a or sm_120",
                        "'%.40s' is not an architecture", name);
    bool both = job->output == (BH_OUTPUT_PTX | BH_OUTPUT_CUBIN);
    if (!both && job->output != BH_OUTPUT_PTX && job->output != BH_OUTPUT_CUBIN &&
        job->output != BH_OUTPUT_LTOIR)
        return bh__fail(error, BH_E_INVALID,
                        "ask for BH_OUTPUT_PTX, _CUBIN or _LTOIR, or the first two together",
                        "output %u does not exist", job->output);
    if (job->flags & ~(uint32_t)KNOWN_FLAGS)
        return bh__fail(error, BH_E_INVALID, "use only BH_COMPILE_... flags",
                        "flags 0x%x are unknown", job->flags & ~(uint32_t)KNOWN_FLAGS);
    if (job->max_registers != 0 &&
        (job->max_registers < MIN_REGISTERS || job->max_registers > MAX_REGISTERS))
        return bh__fail(error, BH_E_INVALID, "give 16 to 255, or 0 for no limit",
                        "max_registers is %u", job->max_registers);
    if (job->op == BH__COMPILE_SOURCE) {
        if (job->standard != 14 && job->standard != 17 && job->standard != 20)
            return bh__fail(error, BH_E_INVALID, "give 14, 17 or 20", "standard is %u",
                            job->standard);
        if (job->compiler != BH_COMPILER_NVRTC && job->compiler != BH_COMPILER_CLANG)
            return bh__fail(error, BH_E_INVALID, "use BH_COMPILER_NVRTC or BH_COMPILER_CLANG",
                            "compiler %u does not exist", job->compiler);
    }
    bh_status status = check_texts(job, error);
    if (status == BH_OK) status = bh__flags_check(job, error);
    return status == BH_OK ? check_combination(job, error) : status;
}

/* ---- flags ---- */

static void add_extra(const bh__compile_job *job, bh__words *out) {
    for (size_t i = 0; i < job->extra.count; i++) bh__words_add(out, bh__chars(job->extra.list[i]));
}

void bh__options_nvrtc(const bh__compile_job *job, bh__words *out) {
    const char *arch = bh__chars(job->arch);
    /* A cubin is for one architecture; other outputs are for it and later ones. */
    bh__words_format(out, "--gpu-architecture=%s%s",
                     job->output & BH_OUTPUT_CUBIN ? "sm_" : "compute_", arch + 3);
    bh__words_format(out, "--std=c++%u", job->standard);
    if (job->output == BH_OUTPUT_LTOIR) bh__words_add(out, "-dlto");
    if (job->flags & BH_COMPILE_RELOCATABLE) bh__words_add(out, "--relocatable-device-code=true");
    if (job->flags & BH_COMPILE_FAST_MATH) bh__words_add(out, "--use_fast_math");
    if (job->flags & BH_COMPILE_FLUSH_DENORMALS) bh__words_add(out, "--ftz=true");
    if (job->flags & BH_COMPILE_DEBUG)
        bh__words_add(out, "--device-debug");
    else if (job->flags & BH_COMPILE_LINE_INFO)
        bh__words_add(out, "--generate-line-info");
    if (job->max_registers) bh__words_format(out, "--maxrregcount=%u", job->max_registers);
    for (size_t i = 0; i < job->defines.count; i++)
        bh__words_format(out, "-D%s", bh__chars(job->defines.list[i]));
    for (size_t i = 0; i < job->include_paths.count; i++)
        bh__words_format(out, "-I%s", bh__chars(job->include_paths.list[i]));
    add_extra(job, out);
}

/* An installed toolkit is not used, and clang may warn about its version. */
#define NO_TOOLKIT ("--cuda-path=" BH__VIRTUAL_ROOT)

/* A library that device code can use: this program's own, or the host's with a few additions. */
static void add_library(bool hosted, bh__words *out) {
    static const char *const own[] = {"-nostdlibinc", "-isystem", BH__VIRTUAL_STANDARD};
    static const char *const of_host[] = {"-D__BULKHEAD_HOSTED__=1", "-Xclang",
                                          "-fcuda-allow-variadic-functions", "-isystem",
                                          BH__VIRTUAL_HOSTED};
    size_t count = hosted ? sizeof of_host / sizeof *of_host : sizeof own / sizeof *own;
    for (size_t i = 0; i < count; i++) bh__words_add(out, hosted ? of_host[i] : own[i]);
}

static void add_sum(uint64_t sum[2], bh__bytes bytes) {
    uint64_t both[4] = {sum[0], sum[1], 0, 0};
    bh__checksum(bytes.data, bytes.count, both + 2);
    bh__checksum(both, sizeof both, sum);
}

/* clang makes static kernels and variables weak or visible, with names that are to be those of one
 * file. It sees all sources as standard input, so it must be told which are the same. */
static void add_unit(const bh__compile_job *job, bh__words *out) {
    const bh__texts *lists[] = {&job->defines, &job->include_paths, &job->header_names,
                                &job->header_bodies, &job->extra};
    uint64_t sum[2] = {0, 0};
    add_sum(sum, job->name);
    add_sum(sum, job->source);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        add_sum(sum, (bh__bytes){(const uint8_t *)&lists[i]->count, sizeof lists[i]->count});
        for (size_t n = 0; n < lists[i]->count; n++) add_sum(sum, lists[i]->list[n]);
    }
    bh__words_format(out, "-cuid=%016llx%016llx", (unsigned long long)sum[0],
                     (unsigned long long)sum[1]);
}

void bh__options_clang(const bh__compile_job *job, bool hosted, bh__words *out) {
    static const char *const always[] = {
        "--no-default-config", "-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib",
        NO_TOOLKIT, "-S", "-fno-color-diagnostics", "-fno-crash-diagnostics",
        /* warnings to NVIDIA's compilers too */
        "-Wno-error=register", "-Wno-error=c++11-narrowing", "-Werror=unused-command-line-argument",
        "-Wno-unused-command-line-argument"};
    bh__arch arch;
    if (!bh__arch_read(bh__chars(job->arch), &arch)) return;
    size_t count = sizeof always / sizeof *always;
    /* An extra flag without effect is an error, but some of our own have none in some versions. */
    for (size_t i = 0; i < count - (job->extra.count ? 1 : 0); i++) bh__words_add(out, always[i]);
    /* Of optimised code LLVM writes into PTX which line it is of, but not where variables are. */
    bh__words_add(out, job->flags & BH_COMPILE_DEBUG ? "-O0" : "-O3");
    bh__words_format(out, "--cuda-gpu-arch=%s", bh__chars(job->arch));
    bh__words_format(out, "--cuda-feature=+ptx%u", bh__options_ptx_version(arch));
    bh__words_format(out, "-std=c++%u", job->standard);
    if (job->flags & BH_COMPILE_RELOCATABLE) {
        bh__words_add(out, "-fgpu-rdc");
        add_unit(job, out);
    }
    if (job->flags & (BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS))
        bh__words_add(out, "-fcuda-flush-denormals-to-zero");
    if (job->flags & BH_COMPILE_FAST_MATH) {
        /* What --use_fast_math means to NVIDIA's compilers: faster, but infinities are kept. */
        static const char *const fast[] = {"-fcuda-approx-transcendentals",
                                           "-D__USE_FAST_MATH__=1",
                                           "-mllvm",
                                           "-nvptx-prec-divf32=0",
                                           "-mllvm",
                                           "-nvptx-prec-sqrtf32=0"};
        for (size_t i = 0; i < sizeof fast / sizeof *fast; i++) bh__words_add(out, fast[i]);
    }
    if (job->flags & BH_COMPILE_DEBUG) {
        bh__words_add(out, "-g");
        bh__words_add(out, "--cuda-noopt-device-debug");
    } else if (job->flags & BH_COMPILE_LINE_INFO) {
        bh__words_add(out, "-gline-directives-only");
    }
    for (size_t i = 0; i < job->defines.count; i++)
        bh__words_format(out, "-D%s", bh__chars(job->defines.list[i]));
    bh__words_add(out, "-I" BH__VIRTUAL_MEMORY);
    for (size_t i = 0; i < job->include_paths.count; i++)
        bh__words_format(out, "-I%s", bh__chars(job->include_paths.list[i]));
    bh__words_add(out, "-isystem");
    bh__words_add(out, BH__VIRTUAL_DEVICE);
    add_library(hosted, out);
    bh__words_add(out, "-include");
    bh__words_add(out, BH__VIRTUAL_DEVICE "/bulkhead_cuda.h");
    add_extra(job, out);
}

void bh__options_link(const bh__compile_job *job, bool lto, bh__words *out) {
    bh__words_format(out, "-arch=%s", bh__chars(job->arch));
    if (lto) bh__words_add(out, "-lto");
    if (job->output == BH_OUTPUT_PTX) bh__words_add(out, "-ptx");
    if (job->flags & BH_COMPILE_DEBUG) bh__words_add(out, "-g");
    if (job->flags & BH_COMPILE_LINE_INFO) bh__words_add(out, "-lineinfo");
    if (job->flags & (BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS))
        bh__words_add(out, "-ftz=1");
    if (job->flags & BH_COMPILE_FAST_MATH) {
        bh__words_add(out, "-prec-div=0");
        bh__words_add(out, "-prec-sqrt=0");
        bh__words_add(out, "-fma=1");
    }
    if (job->max_registers) bh__words_format(out, "-maxrregcount=%u", job->max_registers);
    add_extra(job, out);
}
