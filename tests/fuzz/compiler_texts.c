/* SPDX-License-Identifier: Apache-2.0 */
/* What the compiler program reads of compilers: a log in which it looks for the error, PTX out of
 * which it takes names, and into which it puts limits of registers. */
#include "compiler/compile.h"
#include "fuzz.h"

/* As what a compiler gave is kept: a NUL behind, which is not counted. */
static bh__bytes keep(bh__arena *arena, const uint8_t *data, size_t size) {
    char *copy = bh__arena_copy(arena, (const char *)data, size);
    FUZZ_CHECK(copy != NULL);
    return (bh__bytes){(const uint8_t *)copy, size};
}

static void take_names(bh__compile *c, bh__bytes ptx) {
    bh__bytes out;
    if (bh__names_take(c, ptx, &out) != BH_OK) return;
    FUZZ_CHECK(out.count <= ptx.count && c->answer->lowered.count == c->job->expressions.count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bh__arena arena = {0};
    bh__bytes expressions[] = {{(const uint8_t *)"k<int>", 6}, {(const uint8_t *)"&v", 2}};
    bh__compile_job job = {.expressions = {expressions, 2}, .memory_limit = 1 << 20};
    bh__compile_answer answer = {0};
    bh__compile c = {.job = &job, .arena = &arena, .answer = &answer};
    bh__bytes text = keep(&arena, data, size);
    answer.log = text;
    FUZZ_CHECK(bh__compile_failed(&c, "the compiler") == BH_E_COMPILE);
    FUZZ_CHECK(answer.error.message[0] && answer.error.fix[0]);
    bh__is_memory_error((const char *)text.data);
    take_names(&c, text);
    FUZZ_CHECK(bh__ptx_limit_registers(&c, text, 32).count >= text.count);
    bh__arena_free(&arena);
    return 0;
}
