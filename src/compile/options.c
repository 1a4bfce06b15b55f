/* SPDX-License-Identifier: Apache-2.0 */
/* A job's options as each compiler's flags; what is unknown or contradictory is refused by name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile.h"

enum { FEWEST_REGISTERS = 16, MOST_REGISTERS = 255 };

#define KNOWN_FLAGS                                                                                \
    (BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS | BH_COMPILE_LINE_INFO | BH_COMPILE_DEBUG | \
     BH_COMPILE_RELOCATABLE | BH_COMPILE_NO_CACHE)

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
    /* The oldest that knows the architecture, and for those up to sm_90 what drivers of 12.0 and
     * later all load. */
    if (arch.suffix == 'f') return 88;
    if (arch.number <= 90) return arch.suffix == 'a' ? 80 : 78;
    if (arch.number <= 101) return 86;
    if (arch.number == 120) return 87;
    return 88;
}

/* ---- extra flags ---- */

/* Flags that say what a member of the options says, or that would change where the output goes.
 * `joined`: the value may follow without a space or an equals sign. */
static const struct {
    const char *flag;
    const char *use;
    bool joined;
} taken[] = {
    {"-arch", "arch", false},
    {"--gpu-architecture", "arch", false},
    {"--cuda-gpu-arch", "arch", false},
    {"--offload-arch", "arch", false},
    {"--no-offload-arch", "arch", false},
    {"--no-cuda-gpu-arch", "arch", false},
    {"-march", "arch", false},
    {"-mcpu", "arch", false},
    {"-std", "standard", false},
    {"--std", "standard", false},
    {"-I", "include_paths", true},
    {"--include-path", "include_paths", false},
    {"--include-directory", "include_paths", false},
    {"-isystem", "include_paths", true},
    {"-iquote", "include_paths", true},
    {"-idirafter", "include_paths", true},
    {"-iprefix", "include_paths", true},
    {"-iwithprefix", "include_paths", true},
    {"-D", "defines", true},
    {"--define-macro", "defines", false},
    {"-use_fast_math", "BH_COMPILE_FAST_MATH", false},
    {"--use_fast_math", "BH_COMPILE_FAST_MATH", false},
    {"-ftz", "BH_COMPILE_FLUSH_DENORMALS", false},
    {"--ftz", "BH_COMPILE_FLUSH_DENORMALS", false},
    {"-fcuda-flush-denormals-to-zero", "BH_COMPILE_FLUSH_DENORMALS", false},
    {"-fgpu-flush-denormals-to-zero", "BH_COMPILE_FLUSH_DENORMALS", false},
    {"-lineinfo", "BH_COMPILE_LINE_INFO", false},
    {"--generate-line-info", "BH_COMPILE_LINE_INFO", false},
    {"-gline-tables-only", "BH_COMPILE_LINE_INFO", false},
    {"-gline-directives-only", "BH_COMPILE_LINE_INFO", false},
    {"-G", "BH_COMPILE_DEBUG", false},
    {"-g", "BH_COMPILE_DEBUG", false},
    {"--device-debug", "BH_COMPILE_DEBUG", false},
    {"-maxrregcount", "max_registers", false},
    {"--maxrregcount", "max_registers", false},
    {"-dc", "BH_COMPILE_RELOCATABLE", false},
    {"-rdc", "BH_COMPILE_RELOCATABLE", false},
    {"--relocatable-device-code", "BH_COMPILE_RELOCATABLE", false},
    {"--device-c", "BH_COMPILE_RELOCATABLE", false},
    {"-fgpu-rdc", "BH_COMPILE_RELOCATABLE", false},
    {"-dlto", "output", false},
    {"--dlink-time-opt", "output", false},
    {"-lto", "output", false},
    {"-ptx", "output", false},
    {"-optix-ir", "output", false},
    {"--optix-ir", "output", false},
    {"-S", "output", false},
    {"-c", "output", false},
    {"-E", "output", false},
    {"-emit-llvm", "output", false},
    {"-fsyntax-only", "output", false},
    {"-o", "output", true},
    {"--output", "output", false},
    {"-x", "source", true},
    {"-M", "nothing: what was read is always recorded", true},
};

static bool flag_is(const char *given, const char *flag, bool joined) {
    size_t length = strlen(flag);
    if (strncmp(given, flag, length) != 0) return false;
    return given[length] == 0 || given[length] == '=' || joined;
}

static bh_status check_extra(const bh__compile_job *job, bh_error *error) {
    for (size_t i = 0; i < job->extra.count; i++) {
        const char *given = bh__chars(job->extra.list[i]);
        if (given[0] != '-' && i == 0)
            return bh__fail(error, BH_E_INVALID, "give flags that begin with '-' in extra",
                            "extra flag '%.100s' is no flag", given);
        for (size_t n = 0; n < sizeof taken / sizeof *taken; n++) {
            if (!flag_is(given, taken[n].flag, taken[n].joined)) continue;
            char fix[128] = "use ";
            strncat(fix, taken[n].use, sizeof fix - 64);
            strcat(fix, " of bh_compile_options");
            return bh__fail(error, BH_E_INVALID, fix,
                            "extra flag '%.100s' contradicts the options: %s says that", given,
                            taken[n].use);
        }
    }
    return BH_OK;
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
                            "define %zu is '%.100s', which defines no macro", i, text);
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
                            "name expression %zu is '%.100s', which is none", i, text);
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
                        "linking does not give LTO-IR");
    if (job->op != BH__COMPILE_SOURCE) return BH_OK;
    if (job->compiler == BH_COMPILER_CLANG && job->output != BH_OUTPUT_PTX)
        return bh__fail(error, BH_E_UNSUPPORTED,
                        "install NVRTC (CUDA toolkit, or pip install nvidia-cuda-nvrtc), or ask "
                        "for PTX",
                        "clang gives PTX alone, not %s: that takes NVRTC",
                        lto ? "LTO-IR" : "a cubin");
    return BH_OK;
}

bh_status bh__options_check(const bh__compile_job *job, bh_error *error) {
    bh__arch arch;
    const char *name = bh__chars(job->arch);
    if (!bh__arch_read(name, &arch))
        return bh__fail(error, BH_E_INVALID, "give one such as sm_80, sm_90a or sm_120",
                        "'%.40s' is no architecture", name);
    if (job->output < BH_OUTPUT_PTX || job->output > BH_OUTPUT_LTOIR)
        return bh__fail(error, BH_E_INVALID, "ask for BH_OUTPUT_PTX, _CUBIN or _LTOIR",
                        "output %u is none", job->output);
    if (job->flags & ~(uint32_t)KNOWN_FLAGS)
        return bh__fail(error, BH_E_INVALID, "use flags of bulkhead.h alone",
                        "flags 0x%x are unknown", job->flags & ~(uint32_t)KNOWN_FLAGS);
    if (job->max_registers != 0 &&
        (job->max_registers < FEWEST_REGISTERS || job->max_registers > MOST_REGISTERS))
        return bh__fail(error, BH_E_INVALID, "give 16 to 255, or 0 for no limit",
                        "max_registers is %u", job->max_registers);
    if (job->op == BH__COMPILE_SOURCE) {
        if (job->standard != 14 && job->standard != 17 && job->standard != 20)
            return bh__fail(error, BH_E_INVALID, "give 14, 17 or 20", "standard is %u",
                            job->standard);
        if (job->compiler != BH_COMPILER_NVRTC && job->compiler != BH_COMPILER_CLANG)
            return bh__fail(error, BH_E_INVALID, "use BH_COMPILER_NVRTC or BH_COMPILER_CLANG",
                            "compiler %u is none", job->compiler);
    }
    bh_status status = check_texts(job, error);
    if (status == BH_OK) status = check_extra(job, error);
    return status == BH_OK ? check_combination(job, error) : status;
}

/* ---- flags ---- */

static void add_extra(const bh__compile_job *job, bh__words *out) {
    for (size_t i = 0; i < job->extra.count; i++) bh__words_add(out, bh__chars(job->extra.list[i]));
}

void bh__options_nvrtc(const bh__compile_job *job, bh__words *out) {
    const char *arch = bh__chars(job->arch);
    /* A cubin is for the one architecture; the rest is for it and later ones. */
    bh__words_format(out, "--gpu-architecture=%s%s",
                     job->output == BH_OUTPUT_CUBIN ? "sm_" : "compute_", arch + 3);
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

/* One that is installed is of no use here, and of a version that clang may warn about. */
#define NO_TOOLKIT ("--cuda-path=" BH__VIRTUAL_ROOT)

void bh__options_clang(const bh__compile_job *job, bh__words *out) {
    static const char *const always[] = {"--no-default-config",
                                         "-x",
                                         "cuda",
                                         "--cuda-device-only",
                                         "-nocudainc",
                                         "-nocudalib",
                                         NO_TOOLKIT,
                                         "-S",
                                         "-O3",
                                         "-fno-color-diagnostics",
                                         "-fno-crash-diagnostics",
                                         "-Werror=unused-command-line-argument",
                                         "-Wno-unused-command-line-argument"};
    bh__arch arch;
    if (!bh__arch_read(bh__chars(job->arch), &arch)) return;
    size_t count = sizeof always / sizeof *always;
    /* An extra flag that has no effect is an error; of ours some have none in some versions. */
    for (size_t i = 0; i < count - (job->extra.count ? 1 : 0); i++) bh__words_add(out, always[i]);
    bh__words_format(out, "--cuda-gpu-arch=%s", bh__chars(job->arch));
    bh__words_format(out, "--cuda-feature=+ptx%u", bh__options_ptx_version(arch));
    bh__words_format(out, "-std=c++%u", job->standard);
    if (job->flags & BH_COMPILE_RELOCATABLE) bh__words_add(out, "-fgpu-rdc");
    if (job->flags & (BH_COMPILE_FAST_MATH | BH_COMPILE_FLUSH_DENORMALS))
        bh__words_add(out, "-fcuda-flush-denormals-to-zero");
    if (job->flags & BH_COMPILE_FAST_MATH) {
        /* What --use_fast_math means to NVIDIA's compilers: faster, not blind to infinities. */
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
