/* SPDX-License-Identifier: Apache-2.0 */
/* Everyday kernels, compiled in several ways, must all compute what is recorded in answers.txt. */
#include <math.h>
#include <sys/stat.h>

#include "../support/clangs.h"
#include "support/kernels.h"

typedef struct way {
    const char *name;
    uint32_t compiler;
    unsigned arch;
    uint32_t flags;
    const char *extra;
    uint32_t device_flags;
} way;

/* What is compared: all bits, and two sums of the words taken as floats. */
typedef struct result {
    uint64_t hash;
    double sum, weighted;
} result;

static void need_compiler(uint32_t compiler) {
    bh_compiler_entry entries[16];
    size_t count = 0;
    memset(entries, 0, sizeof entries);
    REQUIRE_OK(bh_compiler_list(entries, sizeof *entries, 16, &count));
    for (size_t i = 0; i < count && i < 16; i++) {
        if (entries[i].compiler == compiler && entries[i].usable) return;
    }
    SKIP("%s is not installed", compiler == BH_COMPILER_NVRTC ? "NVRTC" : "clang");
}

/* BULKHEAD_KERNELS=print: prints results, for answers.txt, instead of comparing them. */
static bool printing(void) {
    const char *mode = getenv("BULKHEAD_KERNELS");
    return mode && strcmp(mode, "print") == 0;
}

/* The part of the name that was asked for, for work on one file. */
static bool is_chosen(const char *file) {
    const char *only = getenv("BULKHEAD_KERNELS_FILE");
    return !only || strstr(file, only);
}

static result result_of(const uint32_t *words, uint32_t n) {
    result r = {UINT64_C(14695981039346656037), 0, 0};
    for (uint32_t i = 0; i < n; i++) {
        float value;
        memcpy(&value, &words[i], sizeof value);
        r.hash = (r.hash ^ words[i]) * UINT64_C(1099511628211);
        r.sum += value;
        r.weighted += value * (1 + i % 7);
    }
    return r;
}

static bool is_near(double a, double b, double eps) {
    return fabs(a - b) <= eps * fmax(fabs(a), fmax(fabs(b), 1e-3));
}

/* One line for each kernel: name hash, or name sum weighted. */
static bool answer_of(const char *answers, const run *r, result *out) {
    size_t length = strlen(r->name);
    for (const char *at = answers; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, r->name, length) != 0 || at[length] != ' ') continue;
        if (r->loose > 0) return sscanf(at + length, "%lf %lf", &out->sum, &out->weighted) == 2;
        unsigned long long hash = 0;
        bool found = sscanf(at + length, "%llx", &hash) == 1;
        out->hash = hash;
        return found;
    }
    return false;
}

static void check_result(const run *r, const result *got, const char *answers, const way *w) {
    result answer = {0, 0, 0};
    if (!answer_of(answers, r, &answer)) {
        FAIL("%s is not in answers.txt: add it (BULKHEAD_KERNELS=print prints it)", r->name);
    } else if (r->loose > 0) {
        if (!is_near(got->sum, answer.sum, r->loose) ||
            !is_near(got->weighted, answer.weighted, r->loose)) {
            FAIL("%s by %s: sums %.9g %.9g, recorded %.9g %.9g", r->name, w->name, got->sum,
                 got->weighted, answer.sum, answer.weighted);
        }
    } else if (got->hash != answer.hash) {
        FAIL("%s by %s: hash %016llx, recorded %016llx", r->name, w->name,
             (unsigned long long)got->hash, (unsigned long long)answer.hash);
    }
}

static void check_reference(const run *r, const uint32_t *in, const uint32_t *got, const way *w) {
    reference_fn *reference = reference_of(r->name);
    if (!reference) return;
    uint32_t *expected = calloc(r->n, sizeof *expected);
    REQUIRE(expected != NULL);
    reference(in, expected, r->n);
    for (uint32_t i = 0; i < r->n; i++) {
        if (got[i] != expected[i]) {
            FAIL("%s by %s: word %u is %#x, must be %#x", r->name, w->name, i, got[i], expected[i]);
            break;
        }
    }
    free(expected);
}

static void print_result(const run *r, const result *got, const way *w) {
    printf("%s", r->name);
    if (r->loose > 0) printf(" %.9g %.9g", got->sum, got->weighted);
    printf(" %016llx # %s\n", (unsigned long long)got->hash, w->name);
}

static bh_tensor_map map_over(bh_buffer buffer, uint32_t n) {
    bh_tensor_shape shape = BH_INIT(shape);
    bh_tensor_map map;
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = 64;
    shape.dimensions[1] = n / 64;
    shape.strides[0] = 256;
    shape.box[0] = 32;
    shape.box[1] = 8;
    shape.swizzle = BH_SWIZZLE_128;
    REQUIRE_OK(bh_tensor_map_create(buffer, &shape, &map));
    return map;
}

static bh_status launch(bh_kernel kernel, const run *r, bh_buffer in, bh_buffer out) {
    bh_launch_options options = BH_INIT(options);
    options.flags = r->cooperative ? BH_LAUNCH_COOPERATIVE : 0;
    if (!r->maps)
        return run_with(kernel, r->shape, BH_ARGS(BH_IN(in), BH_INOUT(out), r->n), &options);
    bh_tensor_map from = map_over(in, r->n), to = map_over(out, r->n);
    bh_status status = run_with(kernel, r->shape,
                                BH_ARGS(BH_TENSOR_IN(from), BH_TENSOR_INOUT(to), r->n), &options);
    CHECK_OK(bh_tensor_map_release(from));
    CHECK_OK(bh_tensor_map_release(to));
    return status;
}

static void run_kernel(bh_device device, bh_module module, const run *r, const char *answers,
                       const way *w) {
    uint32_t *words = calloc(2 * (size_t)r->n, sizeof *words);
    REQUIRE(words != NULL);
    for (uint32_t i = 0; i < r->n; i++) words[i] = input_word(i);
    bh_buffer in = words_alloc(device, r->n), out = words_filled(device, r->n, 0);
    REQUIRE_OK(bh_buffer_write(in, 0, words, r->n * sizeof *words));
    bh_status status = launch(get_kernel(module, r->name), r, in, out);
    if (status != BH_OK) {
        FAIL("%s by %s does not run: %s", r->name, w->name, bh_last_message());
    } else {
        uint32_t *got = words + r->n;
        REQUIRE_OK(bh_buffer_read(out, 0, got, r->n * sizeof *got));
        result found = result_of(got, r->n);
        if (printing()) {
            print_result(r, &found, w);
        } else {
            check_result(r, &found, answers, w);
        }
        check_reference(r, words, got, w);
    }
    CHECK_OK(bh_buffer_release(in));
    CHECK_OK(bh_buffer_release(out));
    free(words);
}

static bool fits(const kernel_file *file, const way *w) {
    if (!is_chosen(file->name)) return false;
    if (file->nvrtc_only && w->compiler != BH_COMPILER_NVRTC) return false;
    return !file->arch[0] || strtoul(file->arch, NULL, 10) <= w->arch;
}

static bool compile(bh_device device, const kernel_file *file, const way *w, bh_module *module) {
    char arch[32];
    snprintf(arch, sizeof arch, "sm_%u%s", w->arch, strchr(file->arch, 'a') ? "a" : "");
    bh_compile_options options = BH_INIT(options);
    options.compiler = w->compiler;
    options.arch = arch;
    options.name = file->name;
    options.flags = w->flags;
    options.output = BH_OUTPUT_PTX;
    options.extra = &w->extra;
    options.extra_count = w->extra ? 1 : 0;
    if (bh_module_compile(device, file->source, &options, module) == BH_OK) return true;
    FAIL("%s by %s: %s", file->name, w->name, bh_last_message());
    return false;
}

/* Returns how many kernels ran. */
static unsigned run_file(bh_device device, const kernel_file *file, const way *w,
                         const char *answers) {
    bh_module module;
    unsigned ran = 0;
    if (!fits(file, w) || !compile(device, file, w, &module)) return 0;
    for (unsigned i = 0; i < file->count; i++) {
        if (!file->runs[i].fast && w->flags & BH_COMPILE_FAST_MATH) continue;
        run_kernel(device, module, &file->runs[i], answers, w);
        ran++;
    }
    CHECK_OK(bh_module_release(module));
    return ran;
}

static char *read_answers(void) {
    char path[1024];
    return test_read_file(
        test_path(path, sizeof path, "%s/tests/kernels/answers.txt", test_source_dir()), NULL);
}

static unsigned run_all(const way *w) {
    static kernel_file files[FILES_MAX];
    need_compiler(w->compiler);
    unsigned count = kernel_files(files), ran = 0;
    char *answers = read_answers();
    bh_device_options options = device_options(w->device_flags);
    bh_device device = open_device_with(&options);
    for (unsigned i = 0; i < count; i++) {
        ran += run_file(device, &files[i], w, answers);
        free(files[i].source);
    }
    CHECK_OK(bh_device_close(device));
    free(answers);
    return ran;
}

/* The same PTX twice, which the cache of this test has the second time: as it is, and on a device
 * that checks. These kernels are correct: the checker finds nothing. */
static void run_both(const way *w) {
    run_all(w);
    if (strcmp(test_device(), "cpu") != 0) return; /* only the CPU device checks */
    way checked = *w;
    char name[64];
    snprintf(name, sizeof name, "%s-checked", w->name);
    checked.name = name;
    checked.device_flags = BH_DEVICE_CHECK;
    run_all(&checked);
}

/* The compiler takes the newest clang in PATH: a folder that has only this one is PATH. */
static void use_only(const char *clang, unsigned index) {
    char folder[4096], link[4200];
    test_path(folder, sizeof folder, "%s/clang%u", test_tmp_dir(), index);
    test_path(link, sizeof link, "%s/clang", folder);
    REQUIRE(mkdir(folder, 0700) == 0 && symlink(clang, link) == 0);
    setenv("PATH", folder, 1);
}

static void run_with_each_clang(const way *w) {
    const char *path;
    clang_path(0);
    for (unsigned i = 0; (path = clang_path(i)) != NULL; i++) {
        use_only(path, i);
        run_both(w);
    }
}

/* Answers and references are found by the kernel's name. */
TEST(every_name_is_there_once) {
    char *answers = read_answers(), *rest = answers;
    char *names[1024];
    unsigned count = 0;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, " ")] = '\0';
        for (unsigned i = 0; i < count && line[0] != '#'; i++)
            if (strcmp(names[i], line) == 0) FAIL("two kernels are called %s", line);
        REQUIRE(count < sizeof names / sizeof *names);
        names[count++] = line;
    }
    CHECK_GT(count, 100);
    free(answers);
}

TEST_TIMEOUT(nvrtc_for_sm_80, 120) {
    run_both(&(way){"nvrtc-sm_80", BH_COMPILER_NVRTC, 80, 0, NULL, 0});
}

TEST_TIMEOUT(nvrtc_for_sm_90, 120) {
    run_all(&(way){"nvrtc-sm_90", BH_COMPILER_NVRTC, 90, 0, NULL, 0});
}

TEST_TIMEOUT(nvrtc_without_optimisation, 120) {
    run_both(&(way){"nvrtc-debug", BH_COMPILER_NVRTC, 90, BH_COMPILE_DEBUG, NULL, 0});
}

TEST_TIMEOUT(nvrtc_with_fast_math, 120) {
    run_all(&(way){"nvrtc-fast", BH_COMPILER_NVRTC, 80, BH_COMPILE_FAST_MATH, NULL, 0});
}

TEST_TIMEOUT(clang_for_sm_80, 240) {
    run_with_each_clang(&(way){"clang-sm_80", BH_COMPILER_CLANG, 80, 0, NULL, 0});
}

TEST_TIMEOUT(clang_without_optimisation, 240) {
    run_with_each_clang(&(way){"clang-O0", BH_COMPILER_CLANG, 80, 0, "-O0", 0});
}
