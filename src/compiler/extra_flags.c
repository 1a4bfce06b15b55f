/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The flags in `extra`. Some contradict the options, and are refused by name. Of the others a
 * confined compiler takes only those of a list. Flags that load code, name files to be read or
 * written, or choose programs would defeat the sandbox or would fail in it, and a list of such
 * flags would never be complete. BH_COMPILE_UNCONFINED allows every flag.
 */
#include <string.h>

#include "compiler/compile.h"

/* ---- flags that duplicate a member of the options ---- */

/* `joined`: the value may follow without a space or an equals sign. */
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
    {"-M", "output", true},
};

static bool flag_is(const char *given, const char *flag, bool joined) {
    size_t length = strlen(flag);
    if (strncmp(given, flag, length) != 0) return false;
    return given[length] == 0 || given[length] == '=' || joined;
}

/* `is_known`: it is a flag of its own, not another flag with its value joined: -opt-info is not -o.
 */
static bh_status refuse_duplicate(const char *given, bool is_known, bh_error *error) {
    for (size_t n = 0; n < sizeof taken / sizeof *taken; n++) {
        if (!flag_is(given, taken[n].flag, taken[n].joined && !is_known)) continue;
        char fix[128] = "use ";
        strncat(fix, taken[n].use, sizeof fix - 64);
        strcat(fix, " of bh_compile_options");
        return bh__fail(error, BH_E_INVALID, fix,
                        "extra flag '%.100s' contradicts the options: %s sets it", given,
                        taken[n].use);
    }
    return BH_OK;
}

/* ---- flags that a confined compiler takes ---- */

enum { NVRTC = 1, CLANG = 2, LINKER = 4 };

/* How a flag's value is given; the last three restrict the value. */
enum {
    ALONE = 1,     /* no value */
    JOINED = 2,    /* right after the flag, without an equals sign in it */
    EQUALS = 4,    /* after an equals sign */
    WORD = 8,      /* the next word */
    IS_FLAG = 16,  /* the value is a flag itself, and checked as one */
    IS_LLVM = 32,  /* the value is an option of LLVM */
    IS_HEADER = 64 /* the value is a header; the sandbox decides which are readable */
};

typedef struct known {
    const char *name;
    unsigned compilers, value;
} known;

static const known known_flags[] = {
    /* both compilers */
    {"-w", NVRTC | CLANG, ALONE},
    {"-U", NVRTC | CLANG, JOINED | WORD},
    {"--undefine-macro", NVRTC | CLANG, EQUALS | WORD},
    {"-include", NVRTC | CLANG, EQUALS | WORD | IS_HEADER},
    /* clang */
    {"--include", CLANG, EQUALS | WORD | IS_HEADER},
    {"-imacros", CLANG, WORD | IS_HEADER},
    {"--imacros", CLANG, EQUALS | WORD | IS_HEADER},
    {"-O", CLANG, ALONE | JOINED},
    {"-W", CLANG, JOINED | EQUALS},
    {"-R", CLANG, JOINED | EQUALS},
    {"-f", CLANG, JOINED},
    {"-pedantic", CLANG, ALONE},
    {"-pedantic-errors", CLANG, ALONE},
    {"-gdwarf", CLANG, ALONE | JOINED},
    {"-ggdb", CLANG, ALONE | JOINED},
    {"-gno-", CLANG, JOINED},
    {"-g0", CLANG, ALONE},
    {"-g1", CLANG, ALONE},
    {"-g2", CLANG, ALONE},
    {"-g3", CLANG, ALONE},
    {"-m64", CLANG, ALONE},
    {"-nostdinc", CLANG, ALONE},
    {"-nostdinc++", CLANG, ALONE},
    {"-nobuiltininc", CLANG, ALONE},
    {"-stdlib", CLANG, EQUALS},
    {"--cuda-feature", CLANG, EQUALS},
    {"-ferror-limit", CLANG, EQUALS},
    {"-ftemplate-depth", CLANG, EQUALS},
    {"-ftemplate-backtrace-limit", CLANG, EQUALS},
    {"-fconstexpr-depth", CLANG, EQUALS},
    {"-fconstexpr-steps", CLANG, EQUALS},
    {"-fconstexpr-backtrace-limit", CLANG, EQUALS},
    {"-fmacro-backtrace-limit", CLANG, EQUALS},
    {"-fbracket-depth", CLANG, EQUALS},
    {"-fmessage-length", CLANG, EQUALS},
    {"-ffp-contract", CLANG, EQUALS},
    {"-ffp-model", CLANG, EQUALS},
    {"-ffp-eval-method", CLANG, EQUALS},
    {"-ffp-exception-behavior", CLANG, EQUALS},
    {"-fdenormal-fp-math", CLANG, EQUALS},
    {"-fdenormal-fp-math-f32", CLANG, EQUALS},
    {"-fexcess-precision", CLANG, EQUALS},
    {"-fvisibility", CLANG, EQUALS},
    {"-ftrivial-auto-var-init", CLANG, EQUALS},
    {"-fstrict-flex-arrays", CLANG, EQUALS},
    {"-Xclang", CLANG, EQUALS | WORD | IS_FLAG},
    {"-mllvm", CLANG, EQUALS | WORD | IS_LLVM},
    /* NVRTC */
    {"--pre-include", NVRTC, EQUALS | WORD | IS_HEADER},
    {"--disable-warnings", NVRTC, ALONE},
    {"-fmad", NVRTC, EQUALS | WORD},
    {"--fmad", NVRTC, EQUALS | WORD},
    {"-prec-div", NVRTC | LINKER, EQUALS | WORD},
    {"--prec-div", NVRTC, EQUALS | WORD},
    {"-prec-sqrt", NVRTC | LINKER, EQUALS | WORD},
    {"--prec-sqrt", NVRTC, EQUALS | WORD},
    {"-fassociative-math", NVRTC, ALONE},
    {"--fassociative-math", NVRTC, ALONE},
    {"-extra-device-vectorization", NVRTC, ALONE},
    {"--extra-device-vectorization", NVRTC, ALONE},
    {"-restrict", NVRTC, ALONE},
    {"--restrict", NVRTC, ALONE},
    {"-default-device", NVRTC, ALONE},
    {"--device-as-default-execution-space", NVRTC, ALONE},
    {"-device-int128", NVRTC, ALONE},
    {"--device-int128", NVRTC, ALONE},
    {"-device-float128", NVRTC, ALONE},
    {"--device-float128", NVRTC, ALONE},
    {"-builtin-move-forward", NVRTC, EQUALS | WORD},
    {"--builtin-move-forward", NVRTC, EQUALS | WORD},
    {"-builtin-initializer-list", NVRTC, EQUALS | WORD},
    {"--builtin-initializer-list", NVRTC, EQUALS | WORD},
    {"-modify-stack-limit", NVRTC, EQUALS | WORD},
    {"--modify-stack-limit", NVRTC, EQUALS | WORD},
    {"-dopt", NVRTC, ALONE | EQUALS | WORD},
    {"--dopt", NVRTC, ALONE | EQUALS | WORD},
    {"-Ofc", NVRTC, EQUALS | WORD},
    {"--Ofast-compile", NVRTC, EQUALS | WORD},
    {"-no-source-include", NVRTC, ALONE},
    {"--no-source-include", NVRTC, ALONE},
    {"-minimal", NVRTC, ALONE},
    {"--minimal", NVRTC, ALONE},
    {"-diag-error", NVRTC, EQUALS | WORD},
    {"--diag-error", NVRTC, EQUALS | WORD},
    {"-diag-suppress", NVRTC, EQUALS | WORD},
    {"--diag-suppress", NVRTC, EQUALS | WORD},
    {"-diag-warn", NVRTC, EQUALS | WORD},
    {"--diag-warn", NVRTC, EQUALS | WORD},
    {"-brief-diag", NVRTC, EQUALS | WORD},
    {"--brief-diagnostics", NVRTC, EQUALS | WORD},
    {"-err-no", NVRTC, ALONE},
    {"--display-error-number", NVRTC, ALONE},
    {"-no-err-no", NVRTC, ALONE},
    {"--no-display-error-number", NVRTC, ALONE},
    {"-opt-info", NVRTC, EQUALS | WORD},
    {"--optimization-info", NVRTC, EQUALS | WORD},
    {"--frandom-seed", NVRTC, EQUALS | WORD},
    {"-frandom-seed", NVRTC, EQUALS | WORD},
    {"-jtd", NVRTC, EQUALS | WORD},
    {"--jump-table-density", NVRTC, EQUALS | WORD},
    {"-device-stack-protector", NVRTC | LINKER, EQUALS | WORD},
    {"--device-stack-protector", NVRTC, EQUALS | WORD},
    {"-no-cache", NVRTC | LINKER, ALONE},
    {"--no-cache", NVRTC, ALONE},
    {"-split-compile", NVRTC | LINKER, EQUALS | WORD},
    {"--split-compile", NVRTC, EQUALS | WORD},
    {"-Xptxas", NVRTC | LINKER, EQUALS | WORD},
    {"--ptxas-options", NVRTC, EQUALS | WORD},
    /* nvJitLink */
    {"-O", LINKER, ALONE | JOINED},
    {"-v", LINKER, ALONE},
    {"-verbose", LINKER, ALONE},
    {"-time", LINKER, ALONE},
    {"-ftz", LINKER, EQUALS},
    {"-fma", LINKER, EQUALS},
    {"-kernels-used", LINKER, EQUALS},
    {"-variables-used", LINKER, EQUALS},
    {"-optimize-unused-variables", LINKER, ALONE},
    {"-split-compile-extended", LINKER, EQUALS},
    {"-jump-table-density", LINKER, EQUALS},
};

/* ---- flags that are never allowed, and why ---- */

static const char loads_code[] = "it loads code into the compiler";
static const char reads_file[] = "it makes the compiler read other files";
static const char writes_file[] = "it makes the compiler write a file";
static const char names_tools[] = "it chooses the compiler's programs or its own files";
static const char passes_on[] = "it passes a flag on to another program";

/* Prefixes of flags. Those of clang's -f... and -W... must be listed here to be refused. */
static const struct {
    const char *begin, *why;
} harmful[] = {
    {"@", "it is a file of flags"},
    {"-fplugin", loads_code},
    {"-fpass-plugin", loads_code},
    {"-load", loads_code},
    {"-plugin", loads_code},
    {"-add-plugin", loads_code},
    {"-fprofile", reads_file},
    {"-fcs-profile", reads_file},
    {"-fauto-profile", reads_file},
    {"-fmemory-profile", reads_file},
    {"-fmodule", reads_file},
    {"-fcxx-modules", reads_file},
    {"-fimplicit-module", reads_file},
    {"-fprebuilt", reads_file},
    {"-fsanitize", reads_file},
    {"-fxray", reads_file},
    {"-fembed", reads_file},
    {"-fthinlto", reads_file},
    {"-fdepscan", reads_file},
    {"-fbuild-session", reads_file},
    {"-fapinotes", reads_file},
    {"-fworking-directory", reads_file},
    {"-filelist", reads_file},
    {"-framework", reads_file},
    {"-force_", reads_file},
    {"-working-directory", reads_file},
    {"--sysroot", reads_file},
    {"-isysroot", reads_file},
    {"-ivfsoverlay", reads_file},
    {"-vfsoverlay", reads_file},
    {"-include-pch", reads_file},
    {"--system-header-prefix", reads_file},
    {"--embed-dir", reads_file},
    {"--config", reads_file},
    {"--use-pch", reads_file},
    {"--use_pch", reads_file},
    {"-use-pch", reads_file},
    {"-ftime-trace", writes_file},
    {"-ftest-coverage", writes_file},
    {"-fcoverage", writes_file},
    {"-fsave-optimization-record", writes_file},
    {"-foptimization-record", writes_file},
    {"-fcrash-diagnostics", writes_file},
    {"-fstack-usage", writes_file},
    {"-fproc-stat-report", writes_file},
    {"-fsplit-dwarf", writes_file},
    {"-gsplit-dwarf", writes_file},
    {"-save-", writes_file},
    {"--save-", writes_file},
    {"-serialize-diagnostics", writes_file},
    {"--serialize-diagnostics", writes_file},
    {"--create-pch", writes_file},
    {"--create_pch", writes_file},
    {"-create-pch", writes_file},
    {"--pch", writes_file},
    {"-pch", writes_file},
    {"--time", writes_file},
    {"-time=", writes_file},
    {"--fdevice-time-trace", writes_file},
    {"-fdevice-time-trace", writes_file},
    {"-fuse-ld", names_tools},
    {"-fno-integrated-as", names_tools},
    {"-B", names_tools},
    {"--prefix", names_tools},
    {"-ccc-", names_tools},
    {"--ptxas-path", names_tools},
    {"--cuda-path", names_tools},
    {"--gcc-", names_tools},
    {"-resource-dir", names_tools},
    {"-Xcuda-", passes_on},
    {"-Xarch_", passes_on},
    {"-Xassembler", passes_on},
    {"-Xlinker", passes_on},
    {"-Xpreprocessor", passes_on},
    {"-Wa,", passes_on},
    {"-Wl,", passes_on},
    {"-Wp,", passes_on},
};

/* NULL: none of them. */
static const char *harm_of(const char *given) {
    for (size_t i = 0; i < sizeof harmful / sizeof *harmful; i++) {
        if (strncmp(given, harmful[i].begin, strlen(harmful[i].begin)) == 0) return harmful[i].why;
    }
    return NULL;
}

/* ---- checking ---- */

/* True for names that affect only how code is generated. */
static bool is_llvm_option(const char *value) {
    static const char *const begins[] = {"nvptx-", "unroll-", "inline-", "slp-", "vectorize-"};
    size_t dashes = strspn(value, "-");
    for (size_t i = 0; i < sizeof begins / sizeof *begins && dashes > 0 && dashes <= 2; i++) {
        if (strncmp(value + dashes, begins[i], strlen(begins[i])) == 0) return true;
    }
    return false;
}

static bool is_known_alone(unsigned compiler, const char *given);

static bool is_good_value(unsigned compiler, const known *flag, const char *value) {
    if (value[0] == 0 || value[0] == '@') return false; /* clang searches for these everywhere */
    if (flag->value & IS_HEADER) return true;
    if (strchr(value, '/') != NULL) return false;
    if (flag->value & IS_LLVM) return is_llvm_option(value);
    if (flag->value & IS_FLAG) return harm_of(value) == NULL && is_known_alone(compiler, value);
    return true;
}

/* How `given` gives the flag its value, which goes to `out_value`; 0: it is another flag. */
static unsigned how_given(const char *given, const known *flag, const char **out_value) {
    size_t length = strlen(flag->name);
    if (strncmp(given, flag->name, length) != 0) return 0;
    const char *rest = given + length;
    *out_value = rest;
    if (*rest == 0) return flag->value & (ALONE | WORD);
    if (*rest == '=' && (flag->value & EQUALS)) {
        *out_value = rest + 1;
        return EQUALS;
    }
    bool equals = strchr(rest, '=') != NULL;
    return !equals || (flag->value & EQUALS) ? flag->value & JOINED : 0;
}

/* How many words the flag takes, where `next` is the next one or NULL; 0: the flag is not known. */
static size_t words_taken(unsigned compiler, const char *given, const char *next) {
    for (size_t i = 0; i < sizeof known_flags / sizeof *known_flags; i++) {
        const known *flag = &known_flags[i];
        const char *value = NULL;
        unsigned how = flag->compilers & compiler ? how_given(given, flag, &value) : 0;
        if ((how & WORD) && next != NULL && is_good_value(compiler, flag, next) &&
            (next[0] != '-' || (flag->value & (IS_FLAG | IS_LLVM))))
            return 2;
        if (how & ALONE) return 1;
        if ((how & (JOINED | EQUALS)) && is_good_value(compiler, flag, value)) return 1;
    }
    return 0;
}

static bool is_known_alone(unsigned compiler, const char *given) {
    return words_taken(compiler, given, NULL) == 1;
}

static bh_status refuse(const char *given, const char *why, bh_error *error) {
    return bh__fail(error, BH_E_INVALID,
                    "leave it out; if both flags and source are trusted, set "
                    "BH_COMPILE_UNCONFINED (bulkhead compile --unconfined)",
                    "extra flag '%.100s' is refused: %s", given, why);
}

static bh_status refuse_unknown(const char *given, const char *next, bh_error *error) {
    const char *why = harm_of(given);
    if (given[0] != '-' && why == NULL)
        return refuse(given, "it is not a flag, and would be read as another source", error);
    bool nested = next != NULL && (strcmp(given, "-Xclang") == 0 || strcmp(given, "-mllvm") == 0);
    if (nested)
        return refuse(next, harm_of(next) ? harm_of(next) : "it is not known to be harmless",
                      error);
    return refuse(given, why ? why : "it is not known to be harmless", error);
}

static unsigned compiler_of(const bh__compile_job *job) {
    if (job->op == BH__COMPILE_LINK) return LINKER;
    return job->compiler == BH_COMPILER_CLANG ? CLANG : NVRTC;
}

bh_status bh__flags_check(const bh__compile_job *job, bh_error *error) {
    bool confined = !(job->flags & BH_COMPILE_UNCONFINED);
    for (size_t i = 0, words; i < job->extra.count; i += words) {
        const char *given = bh__chars(job->extra.list[i]);
        const char *next = i + 1 < job->extra.count ? bh__chars(job->extra.list[i + 1]) : NULL;
        if (given[0] != '-' && i == 0)
            return bh__fail(error, BH_E_INVALID, "give flags that begin with '-' in extra",
                            "extra flag '%.100s' is not a flag", given);
        words = harm_of(given) ? 0 : words_taken(compiler_of(job), given, next);
        bh_status status = refuse_duplicate(given, words > 0, error);
        if (status != BH_OK) return status;
        if (confined && words == 0) return refuse_unknown(given, next, error);
        if (words == 0) words = 1;
    }
    return BH_OK;
}
