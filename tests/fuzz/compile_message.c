/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and answers of compiles, as the other side reads them. The first byte says which of both,
 * and whether the checksum is made to fit, so that the fields are read. What was read is written
 * and read again. */
#include "base/siphash.h"
#include "memory_file.h"
#include "wire/compile.h"

enum { HEAD = 40, BYTES_AT = 16, HASH_AT = 24 };

/* Length and checksum of a block, as src/wire/compile.c has them in its head. */
static void mend(uint8_t *block, uint64_t size) {
    uint64_t hash[2];
    if (size < HEAD) return;
    bh__checksum(block + HEAD, size - HEAD, hash);
    memcpy(block + BYTES_AT, &size, sizeof size);
    memcpy(block + HASH_AT, hash, sizeof hash);
}

static void read_job(int fd) {
    bh__arena arena = {0}, again = {0};
    bh__compile_job job, copy;
    if (bh__compile_job_read(fd, &arena, &job)) {
        int written = bh__compile_job_write(&job);
        FUZZ_CHECK(written >= 0 && bh__compile_job_read(written, &again, &copy));
        FUZZ_CHECK(copy.op == job.op && copy.source.count == job.source.count);
        FUZZ_CHECK(copy.extra.count == job.extra.count && copy.inputs.count == job.inputs.count);
        close(written);
    }
    bh__arena_free(&arena);
    bh__arena_free(&again);
}

static void read_answer(int fd) {
    bh__arena arena = {0}, again = {0};
    bh__compile_answer answer, copy;
    if (bh__compile_answer_read(fd, &arena, &answer)) {
        int written = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        FUZZ_CHECK(written >= 0 && bh__compile_answer_write(written, &answer));
        FUZZ_CHECK(bh__compile_answer_read(written, &again, &copy));
        FUZZ_CHECK(copy.read_count == answer.read_count &&
                   copy.output.count == answer.output.count);
        close(written);
    }
    bh__arena_free(&arena);
    bh__arena_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_input in = {data, size};
    uint8_t how = fuzz_byte(&in);
    uint8_t *block = malloc(in.left + 1);
    FUZZ_CHECK(block != NULL);
    memcpy(block, in.at, in.left);
    if (how & 2) mend(block, in.left);
    int fd = fuzz_memory_file(block, in.left);
    if (how & 1)
        read_job(fd);
    else
        read_answer(fd);
    free(block);
    return 0;
}
