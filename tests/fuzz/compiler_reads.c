/* SPDX-License-Identifier: Apache-2.0 */
/* What clang read: its list of dependencies, a NUL, its search list, a NUL, the source. Files that
 * the list may name do not exist, but for headers of the program's own and of the job's. */
#include "compiler/read_record.h"
#include "fuzz.h"

static const char header[] = "#include \"other.h\"\n#if __has_include(<far.h>)\n#endif\n";
const bh__embedded bh__embedded_files[] = {
    {"device", "near.h", (const uint8_t *)header, (const uint8_t *)header + sizeof header - 1}};
const size_t bh__embedded_count = 1;

/* Nothing of this machine is read: a name is one below /__bulkhead__, or has no file. */
static bool harmless(const char *text) {
    for (const char *at = text; (at = strchr(at, '/')); at++)
        if (strncmp(at, "/__bulkhead__", 13) != 0 && strncmp(at, "/device", 7) != 0 &&
            strncmp(at, "/memory", 7) != 0 && strncmp(at, "/near.h", 7) != 0 && at[1] != '_')
            return false;
    return !strstr(text, "proc") && !strstr(text, "dev/") && !strstr(text, "sys");
}

static bh__bytes bytes_of(const char *text) {
    return (bh__bytes){(const uint8_t *)text, strlen(text)};
}

static void trace(const char *dependencies, const char *search, const char *source) {
    bh__arena arena = {0};
    bh__bytes names[] = {bytes_of("near.h")}, bodies[] = {bytes_of(source)};
    bh__compile_job job = {.name = bytes_of("kernel.cu"),
                           .source = bytes_of(source),
                           .header_names = {names, 1},
                           .header_bodies = {bodies, 1}};
    bh__read_record reads = {.arena = &arena};
    bh__read_record_from_clang(&reads, &job, bytes_of(dependencies), bytes_of(search),
                         (struct timespec){0});
    for (size_t i = 0; i < reads.count; i++)
        FUZZ_CHECK(((const char *)reads.list[i].path.data)[0] == '/');
    bh__arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    char *dependencies = fuzz_text(&in, 0, NULL), *search = fuzz_text(&in, 0, NULL);
    char *source = fuzz_text(&in, 0, NULL);
    bool run = harmless(dependencies) && harmless(search);
    if (run) trace(dependencies, search, source);
    free(dependencies);
    free(search);
    free(source);
    return run ? 0 : -1;
}
