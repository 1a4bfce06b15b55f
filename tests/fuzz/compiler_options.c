/* SPDX-License-Identifier: Apache-2.0 */
/* Options of a compile job: checked, and turned into each compiler's flags. Texts of the input are
 * a line each, in the order of the job's members. */
#include "compiler/compile.h"
#include "compiler/link/image.h"
#include "fuzz.h"

static bh__bytes take_text(fuzz_input *in, bh__arena *arena) {
    size_t length;
    char *text = fuzz_text(in, '\n', &length);
    size_t end = strlen(text); /* readers of jobs refuse a NUL within */
    bh__bytes bytes = {(const uint8_t *)bh__arena_copy(arena, text, end), end};
    free(text);
    FUZZ_CHECK(bytes.data != NULL);
    return bytes;
}

static bh__texts take_texts(fuzz_input *in, bh__arena *arena, uint8_t count) {
    bh__texts texts = {bh__arena_alloc(arena, count + 1u, sizeof *texts.list), count};
    FUZZ_CHECK(texts.list != NULL);
    for (size_t i = 0; i < count; i++) texts.list[i] = take_text(in, arena);
    return texts;
}

static void make_flags(const bh__compile_job *job, bh__arena *arena) {
    bh__words nvrtc = {.arena = arena}, clang = {.arena = arena}, link = {.arena = arena};
    bh__options_nvrtc(job, &nvrtc);
    bh__options_clang(job, job->flags & 2, &clang);
    bh__options_link(job, job->flags & 1, &link);
    bh__words_end(&clang);
    for (size_t i = 0; i < clang.count; i++) FUZZ_CHECK(strlen(clang.list[i]) < SIZE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    bh__arena arena = {0};
    bh__compile_job job = {0};
    uint8_t numbers[8];
    fuzz_take(&in, numbers, sizeof numbers);
    job.op = numbers[0] % 4;
    job.compiler = numbers[1] % 4;
    job.output = numbers[2] % 6;
    job.standard = numbers[3];
    job.flags = numbers[4];
    job.max_registers = numbers[5];
    job.arch = take_text(&in, &arena);
    job.name = take_text(&in, &arena);
    job.extra = take_texts(&in, &arena, numbers[6] % 8);
    job.defines = take_texts(&in, &arena, numbers[7] % 4);
    job.include_paths = take_texts(&in, &arena, numbers[7] / 4 % 4);
    job.expressions = take_texts(&in, &arena, numbers[7] / 16 % 4);
    job.source = take_text(&in, &arena);
    bh_error error;
    if (bh__job_options_check(&job, &error) == BH_OK)
        make_flags(&job, &arena);
    else
        FUZZ_CHECK(error.message[0] && error.fix[0]);
    FUZZ_CHECK(bh__link_kind_name(bh__link_kind_of((bh__bytes){in.at, in.left})) != NULL);
    bh__arena_free(&arena);
    return 0;
}
