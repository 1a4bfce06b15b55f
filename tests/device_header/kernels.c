/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that check themselves, compiled with the device headers in every way that counts. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/clang.h"
#include "support/support.h"

enum { WORDS = 32 };

static bh_module compile_and_load(bh_device device, const char *name, const char *flags) {
    bh_module module;
    REQUIRE_OK(bh_module_load_file(device, clang_must_compile(name, flags), &module));
    return module;
}

static void run_checks(bh_device device, bh_module module, const char *name) {
    bh_buffer failed = words_filled(device, WORDS, 0);
    uint32_t lines[WORDS];
    bh_launch_options options = BH_INIT(options);
    options.flags = strcmp(name, "grid") == 0 ? BH_LAUNCH_COOPERATIVE : 0;
    CHECK_OK(run_with(get_kernel(module, name), BH_SHAPE(2, 1, 1, 64, 1, 1),
                      BH_ARGS(BH_INOUT(failed)), &options));
    REQUIRE_OK(bh_buffer_read(failed, 0, lines, sizeof lines));
    for (uint32_t i = 0; i < lines[0] && i < WORDS - 2; i++) {
        FAIL("%s: the check on line %u does not hold", name, lines[1 + i]);
    }
    CHECK_OK(bh_buffer_release(failed));
}

static const char *const language[] = {"builtins",   "bits",      "conversions", "rounding",
                                       "block_sync", "warps",     "atomics",     "memory",
                                       "clocks",     "math_names"};
static const char *const library[] = {"halves", "bfloats", "groups", "grid", "standard"};

static const char *const groups[] = {"tiles", "partitions", "copies"};

static const char *const cuda_std[] = {"tuples", "optionals", "atomic_types"};

static const char *const random_kernels[] = {"random_words", "random_numbers"};

static void run_file(bh_device device, const char *file, const char *flags,
                     const char *const *kernels, size_t count) {
    bh_module module = compile_and_load(device, file, flags);
    for (size_t i = 0; i < count; i++) {
        run_checks(device, module, kernels[i]);
    }
}
#define RUN_FILE(device, file, flags, list)                                                        \
    run_file(device, file, flags, list, sizeof list / sizeof *list)

static void run_all(const char *flags) {
    bh_device device = open_device();
    while (clang_next()) {
        RUN_FILE(device, "language", flags, language);
        RUN_FILE(device, "library", flags, library);
        RUN_FILE(device, "groups", flags, groups);
    }
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(kernels_check_out_as_cxx14, 240) {
    run_all("-std=c++14 --cuda-gpu-arch=sm_80");
}

TEST_TIMEOUT(kernels_check_out_as_cxx17_for_sm_90, 240) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_90");
}

TEST_TIMEOUT(kernels_check_out_as_cxx20, 240) {
    run_all("-std=c++20 --cuda-gpu-arch=sm_86");
}

TEST_TIMEOUT(kernels_check_out_without_any_library, 240) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_80 -nostdlibinc -nostdinc++");
}

TEST_TIMEOUT(kernels_check_out_without_optimisation_and_with_debug_information, 240) {
    run_all("-std=c++17 --cuda-gpu-arch=sm_80 -O0 -g");
}

TEST_TIMEOUT(random_numbers_have_the_known_sequences, 240) {
    bh_device device = open_device();
    while (clang_next())
        RUN_FILE(device, "random", "-std=c++14 --cuda-gpu-arch=sm_80", random_kernels);
    CHECK_OK(bh_device_close(device));
}

TEST_TIMEOUT(libcudacxx_checks_out, 240) {
    static const char *const flags[] = {
        "-std=c++14 --cuda-gpu-arch=sm_80 -nostdlibinc",
        "-std=c++20 --cuda-gpu-arch=sm_90 -nostdlibinc -O0",
        ("-std=c++17 --cuda-gpu-arch=sm_80 -D__BULKHEAD_HOSTED__=1 "
         "-Xclang -fcuda-allow-variadic-functions"),
    };
    bh_device device = open_device();
    while (clang_next()) {
        for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
            RUN_FILE(device, "cuda_std", flags[i], cuda_std);
    }
    CHECK_OK(bh_device_close(device));
}

/* Makes a trap of each instruction of PTX that is for memory which threads share. */
static unsigned forbid_atomics(char *text) {
    static const char *const names[] = {"atom.", "ld.relaxed.", "ld.acquire.", "st.relaxed.",
                                        "st.release."};
    unsigned count = 0;
    for (char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, " \t\n");
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (strncmp(line, names[i], strlen(names[i])) != 0) continue;
            memcpy(line, "trap;//", 7);
            count++;
        }
    }
    return count;
}

/* GPUs do not have atomic instructions for local memory, and do not say so. */
TEST_TIMEOUT(atomic_objects_in_local_memory_need_no_atomic_instruction, 120) {
    bh_device device = open_device();
    while (clang_next()) {
        const char *path = clang_must_compile("local_atomics", "-std=c++17 --cuda-gpu-arch=sm_80");
        char *text = test_read_file(path, NULL);
        bh_buffer right = words_filled(device, 32, 0);
        CHECK_GT(forbid_atomics(text), 10);
        CHECK_OK(run_now(get_kernel(load_module(device, text), "local_atomics"),
                         BH_SHAPE(1, 1, 1, 32, 1, 1), BH_ARGS(BH_INOUT(right))));
        CHECK(words_are(right, 32, 9));
        CHECK_OK(bh_buffer_release(right));
        free(text);
    }
    CHECK_OK(bh_device_close(device));
}

static void run_program(bh_device device, const char *standard) {
    char flags[256];
    snprintf(flags, sizeof flags,
             "-std=c++%s --cuda-gpu-arch=sm_80 -D__BULKHEAD_HOSTED__=1 "
             "-Xclang -fcuda-allow-variadic-functions -Wno-unused-value",
             standard);
    run_checks(device, compile_and_load(device, "program", flags), "program");
}

/* The host's C++ library is needed for the rest of it. */
TEST_TIMEOUT(kernels_of_a_whole_program_check_out, 240) {
    static const char *const standards[] = {"14", "17", "20"};
    bh_device device = open_device();
    while (clang_next()) {
        for (size_t i = 0; i < sizeof standards / sizeof *standards; i++)
            run_program(device, standards[i]);
    }
    CHECK_OK(bh_device_close(device));
}

static void compile_for_every_architecture(void) {
    static const char *const archs[] = {"sm_75", "sm_80",  "sm_86",  "sm_87", "sm_89",
                                        "sm_90", "sm_90a", "sm_100", "sm_120"};
    unsigned known = 0;
    for (size_t i = 0; i < sizeof archs / sizeof *archs; i++) {
        char flags[64];
        snprintf(flags, sizeof flags, "-std=c++17 --cuda-gpu-arch=%s", archs[i]);
        if (clang_knows(archs[i])) {
            known++;
            clang_must_compile(strcmp(archs[i], "sm_75") == 0 ? "math" : "library", flags);
        }
    }
    CHECK_GE(known, 5);
}

TEST_TIMEOUT(headers_compile_for_every_architecture_clang_knows, 240) {
    while (clang_next()) compile_for_every_architecture();
}

/* Not for themselves: a part of two others, and what needs the host's library. */
static bool is_part(const char *name) {
    return strcmp(name, "bulkhead_half_common.h") == 0 || strcmp(name, "bulkhead_hosted.h") == 0;
}

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static void check_header(const char *name) {
    char flags[1024];
    snprintf(flags, sizeof flags,
             "-std=c++17 --cuda-gpu-arch=sm_80 -fsyntax-only -nostdlibinc -include %s", name);
    clang_must_compile_with(NULL, flags, false);
}

/* One that says that it is not supported must name itself. */
static void check_refusal(const char *name) {
    char flags[1024], expected[512];
    snprintf(flags, sizeof flags, "-std=c++17 --cuda-gpu-arch=sm_80 -fsyntax-only -include %s",
             name);
    snprintf(expected, sizeof expected, "%s is not supported", name);
    CHECK(clang_compile(NULL, flags) == NULL);
    CHECK_STR_CONTAINS(clang_said(), expected);
}

/* The headers of a folder; the names are those that #include has. */
enum { HEADERS_MAX = 128 };
typedef struct headers {
    char names[HEADERS_MAX][96];
    unsigned count;
} headers;

/* `below` is "" or the name of a folder and a slash. */
static void list_headers(const char *of, const char *below, headers *out) {
    char folder[4096], path[4096], name[96];
    test_path(folder, sizeof folder, "%s/src/compiler/headers/%s/%s", test_source_dir(), of, below);
    DIR *directory = opendir(folder);
    REQUIRE(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.' || is_part(entry->d_name)) continue;
        int length = snprintf(name, sizeof name - 1, "%s%s", below, entry->d_name);
        REQUIRE(length > 0 && (size_t)length < sizeof name - 2);
        test_path(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (is_folder(path)) {
            memcpy(name + length, "/", 2);
            list_headers(of, name, out);
        } else {
            REQUIRE(out->count < HEADERS_MAX);
            memcpy(out->names[out->count++], name, sizeof name);
        }
    }
    closedir(directory);
}

static bool is_refused(const char *of, const char *name) {
    char path[4096];
    char *text = test_read_file(
        test_path(path, sizeof path, "%s/src/compiler/headers/%s/%s", test_source_dir(), of, name),
        NULL);
    bool refused = strstr(text, "#error") && strstr(text, "is not supported by");
    free(text);
    return refused;
}

/* Those of cuda/std only include another header: they are compiled together. Returns how many
 * there are. */
static unsigned check_each_header(const char *of) {
    static headers found;
    char together[HEADERS_MAX * 64] = "-std=c++17 --cuda-gpu-arch=sm_80 -fsyntax-only -nostdlibinc";
    size_t length = strlen(together);
    bool std_refused = false;
    found.count = 0;
    list_headers(of, "", &found);
    for (unsigned i = 0; i < found.count; i++) {
        const char *name = found.names[i];
        bool is_std = strncmp(name, "cuda/std/", 9) == 0;
        if (is_refused(of, name)) {
            if (!is_std || !std_refused) check_refusal(name); /* those have all the same form */
            std_refused = std_refused || is_std;
        } else if (is_std) {
            length +=
                (size_t)snprintf(together + length, sizeof together - length, " -include %s", name);
            REQUIRE(length < sizeof together);
        } else {
            check_header(name);
        }
    }
    clang_must_compile_with(NULL, together, false);
    return found.count;
}

TEST_TIMEOUT(every_header_compiles_by_itself, 240) {
    while (clang_next()) {
        CHECK_GT(check_each_header("device"), 80);
        CHECK_GT(check_each_header("standard"), 33);
    }
}

static char printed[256];
static size_t printed_length;

static void on_print(void *context, const bh_event *event) {
    (void)context;
    const char *text = event->text;
    size_t length = event->length;
    if (printed_length + length < sizeof printed) {
        memcpy(printed + printed_length, text, length);
        printed_length += length;
    }
}

TEST_TIMEOUT(printf_assert_and_trap_reach_the_program, 60) {
    bh_device device = open_device();
    bh_module module = compile_and_load(device, "language", "-std=c++17 --cuda-gpu-arch=sm_80");
    watch_for(device, BH_EVENT_PRINT, on_print, NULL);
    CHECK_OK(run_now(get_kernel(module, "prints"), BH_SHAPE(2, 1, 1, 64, 1, 1), BH_NO_ARGS));
    CHECK_OK(run_now(get_kernel(module, "asserts"), BH_SHAPE(1, 1, 1, 64, 1, 1), BH_ARGS(64)));
    bh_ticket ticket =
        submit(get_kernel(module, "asserts"), BH_SHAPE(1, 1, 1, 64, 1, 1), BH_ARGS(60), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    bh_error why;
    CHECK_STATUS(bh_ticket_error(ticket, &why), BH_E_FAULT);
    if (is_cpu(device)) {
        CHECK_STR_CONTAINS(why.message, "(int)threadIdx.x < limit");
        CHECK_STR_CONTAINS(why.message, "language.cu");
    }
    CHECK_OK(bh_module_accept(module));
    CHECK_STATUS(run_now(get_kernel(module, "traps"), BH_SHAPE(1, 1, 1, 1, 1, 1), BH_NO_ARGS),
                 BH_E_FAULT);
    CHECK_OK(bh_device_close(device));
    /* What the failed assertion says comes after it. */
    static const char expected[] = "42 text 1.50 x -5 %\nno arguments\n";
    CHECK_GE(strlen(printed), strlen(expected));
    CHECK_MEM_EQ(printed, expected, strlen(expected));
}

TEST(what_is_not_there_is_refused_by_name) {
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80 -DMANAGED") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "__managed__ variables are not supported");
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80 -DCLUSTER") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "__cluster_dims__ is not supported");
    CHECK(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_60") == NULL);
    CHECK_STR_CONTAINS(clang_said(), "sm_70 or later");
    REQUIRE(clang_compile("refused", "-std=c++17 --cuda-gpu-arch=sm_80") != NULL);
}

TEST(kernels_make_and_delete_objects) {
    const char *path = clang_must_compile("heap", "-std=c++17 --cuda-gpu-arch=sm_80");
    bh_device device = open_device();
    bh_module module;
    bh_buffer counts = words_filled(device, 64, 0);
    REQUIRE_OK(bh_module_load_file(device, path, &module));
    CHECK_OK(run_now(get_kernel(module, "chain"), BH_SHAPE(1, 1, 1, 64, 1, 1),
                     BH_ARGS(BH_INOUT(counts))));
    CHECK(words_count(counts, 64, 3));
    CHECK_OK(bh_device_close(device));
}
