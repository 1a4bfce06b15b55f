/* SPDX-License-Identifier: Apache-2.0 */
/* src/wire/compile: jobs and answers arrive as they were sent; anything else is refused. */
#include "wire/compile.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/siphash.h"
#include "test.h"

enum { HEAD_BYTES = 40, HASH_AT = 24, SIZE_AT = 16 };

static bh__bytes bytes_of(const char *text) {
    return (bh__bytes){(const uint8_t *)text, strlen(text)};
}

static bh__bytes sample_defines[] = {{(const uint8_t *)"N=4", 3}, {(const uint8_t *)"", 0}};
static bh__bytes sample_headers[] = {{(const uint8_t *)"a.h", 3}};
static bh__bytes sample_bodies[] = {{(const uint8_t *)"int a;", 6}};
static bh__bytes sample_inputs[] = {{(const uint8_t *)"\0\1\2\0", 4}, {(const uint8_t *)"", 0}};

static bh__compile_job sample_job(void) {
    return (bh__compile_job){.op = BH__COMPILE_SOURCE,
                             .compiler = BH_COMPILER_CLANG,
                             .output = BH_OUTPUT_PTX,
                             .standard = 20,
                             .flags = BH_COMPILE_DEBUG,
                             .max_registers = 32,
                             .memory_limit = 1ull << 33,
                             .time_limit_ns = 60000000000,
                             .compiler_path = bytes_of("/usr/bin/clang"),
                             .arch = bytes_of("sm_90a"),
                             .name = bytes_of("a.cu"),
                             .source = bytes_of("__global__ void k() {}"),
                             .defines = {sample_defines, 2},
                             .header_names = {sample_headers, 1},
                             .header_bodies = {sample_bodies, 1},
                             .inputs = {sample_inputs, 2}};
}

static bh__compile_read sample_reads[] = {
    {.path = {(const uint8_t *)"/a/b.h", 6}, .bytes = 12, .hash = {3, 4}},
    {.path = {(const uint8_t *)"/c/b.h", 6}, .missing = 1},
};
static bh__compiler_found sample_found[] = {
    {1, 1, {(const uint8_t *)"/x", 2}, {(const uint8_t *)"nvrtc 13.0", 10}, {NULL, 0}},
};

static bh__compile_answer sample_answer(void) {
    static bh__bytes lowered[] = {{(const uint8_t *)"_Z1kv", 5}};
    bh__compile_answer answer = {.log = bytes_of("a warning\n"),
                                 .version = bytes_of("clang 19.1.7"),
                                 .output = {(const uint8_t *)"\x7f\0E", 3},
                                 .lowered = {lowered, 1},
                                 .reads = sample_reads,
                                 .read_count = 2,
                                 .found = sample_found,
                                 .found_count = 1};
    bh__fail(&answer.error, BH_E_COMPILE, "mend it", "a.cu:3: no");
    return answer;
}

static void check_bytes(bh__bytes a, bh__bytes b) {
    REQUIRE_EQ(a.count, b.count);
    CHECK_EQ(a.data[a.count], 0);
    if (b.count > 0) CHECK_MEM_EQ(a.data, b.data, b.count);
}

static void check_texts(bh__texts a, bh__texts b) {
    REQUIRE_EQ(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) check_bytes(a.list[i], b.list[i]);
}

TEST(a_job_arrives_as_it_was_sent) {
    bh__compile_job job = sample_job(), got;
    bh__arena arena = {0};
    int fd = bh__compile_job_write(&job);
    REQUIRE(fd >= 0);
    CHECK(ftruncate(fd, 0) != 0); /* sealed */
    REQUIRE(bh__compile_job_read(fd, &arena, &got));
    CHECK_EQ(got.op, job.op);
    CHECK_EQ(got.compiler, job.compiler);
    CHECK_EQ(got.output, job.output);
    CHECK_EQ(got.standard, job.standard);
    CHECK_EQ(got.flags, job.flags);
    CHECK_EQ(got.max_registers, job.max_registers);
    CHECK_EQ(got.memory_limit, job.memory_limit);
    CHECK_EQ(got.time_limit_ns, job.time_limit_ns);
    check_bytes(got.compiler_path, job.compiler_path);
    check_bytes(got.arch, job.arch);
    check_bytes(got.name, job.name);
    check_bytes(got.source, job.source);
    check_texts(got.defines, job.defines);
    check_texts(got.include_paths, job.include_paths);
    check_texts(got.header_names, job.header_names);
    check_texts(got.header_bodies, job.header_bodies);
    check_texts(got.expressions, job.expressions);
    check_texts(got.extra, job.extra);
    check_texts(got.inputs, job.inputs);
    bh__compile_answer answer;
    CHECK(!bh__compile_answer_read(fd, &arena, &answer));
    bh__arena_free(&arena);
    close(fd);
}

TEST(an_answer_arrives_as_it_was_sent) {
    bh__compile_answer answer = sample_answer(), got;
    bh__arena arena = {0};
    int fd = memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(bh__compile_answer_write(fd, &answer));
    REQUIRE(bh__compile_answer_read(fd, &arena, &got));
    CHECK_EQ(got.error.status, BH_E_COMPILE);
    CHECK_STR_EQ(got.error.message, "a.cu:3: no");
    CHECK_STR_EQ(got.error.fix, "mend it");
    check_bytes(got.log, answer.log);
    check_bytes(got.version, answer.version);
    check_bytes(got.output, answer.output);
    check_texts(got.lowered, answer.lowered);
    REQUIRE_EQ(got.read_count, 2);
    for (size_t i = 0; i < 2; i++) {
        check_bytes(got.reads[i].path, sample_reads[i].path);
        CHECK_EQ(got.reads[i].missing, sample_reads[i].missing);
        CHECK_EQ(got.reads[i].bytes, sample_reads[i].bytes);
        CHECK_MEM_EQ(got.reads[i].hash, sample_reads[i].hash, 16);
    }
    REQUIRE_EQ(got.found_count, 1);
    CHECK_EQ(got.found[0].compiler, 1);
    CHECK_EQ(got.found[0].usable, 1);
    check_bytes(got.found[0].version, sample_found[0].version);
    check_bytes(got.found[0].why, sample_found[0].why);
    bh__compile_job job;
    CHECK(!bh__compile_job_read(fd, &arena, &job));
    bh__arena_free(&arena);
    close(fd);
}

TEST(large_lists_and_texts_arrive) {
    enum { COUNT = 20000, LONG = 3 << 20 };
    bh__compile_job job = {.op = BH__COMPILE_LINK}, got;
    bh__bytes *list = calloc(COUNT, sizeof *list);
    char *text = malloc(LONG);
    REQUIRE(list && text);
    memset(text, 'x', LONG);
    for (size_t i = 0; i < COUNT; i++) list[i] = (bh__bytes){(const uint8_t *)text, i % 100};
    job.expressions = (bh__texts){list, COUNT};
    job.source = (bh__bytes){(const uint8_t *)text, LONG};
    bh__arena arena = {0};
    int fd = bh__compile_job_write(&job);
    REQUIRE(fd >= 0);
    REQUIRE(bh__compile_job_read(fd, &arena, &got));
    check_texts(got.expressions, job.expressions);
    check_bytes(got.source, job.source);
    bh__arena_free(&arena);
    close(fd);
    free(list);
    free(text);
}

/* ---- blocks that are wrong ---- */

static uint8_t *take_block(int fd, size_t *out_bytes) {
    struct stat info;
    REQUIRE(fstat(fd, &info) == 0);
    *out_bytes = (size_t)info.st_size;
    uint8_t *block = malloc(*out_bytes);
    REQUIRE(block != NULL);
    REQUIRE_EQ(pread(fd, block, *out_bytes, 0), info.st_size);
    close(fd);
    return block;
}

static uint8_t *answer_block(size_t *out_bytes) {
    bh__compile_answer answer = sample_answer();
    int fd = memfd_create("answer", MFD_CLOEXEC);
    REQUIRE(bh__compile_answer_write(fd, &answer));
    return take_block(fd, out_bytes);
}

static uint8_t *job_block(size_t *out_bytes) {
    bh__compile_job job = sample_job();
    return take_block(bh__compile_job_write(&job), out_bytes);
}

/* Makes the checksum and the length right, so that what lies behind them is what is checked. */
static void mend_head(uint8_t *block, size_t bytes) {
    uint64_t size = bytes, hash[2];
    bh__checksum(block + HEAD_BYTES, bytes - HEAD_BYTES, hash);
    memcpy(block + SIZE_AT, &size, sizeof size);
    memcpy(block + HASH_AT, hash, sizeof hash);
}

/* Reads all that an accepted block points to: a sanitizer tells of what lies outside. */
static uint64_t touch(bh__bytes bytes) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i <= bytes.count; i++) sum += bytes.data[i];
    return sum;
}

static bool read_both(const uint8_t *block, size_t bytes) {
    int fd = memfd_create("block", MFD_CLOEXEC);
    REQUIRE(fd >= 0);
    REQUIRE_EQ((size_t)pwrite(fd, block, bytes, 0), bytes);
    bh__arena arena = {0};
    bh__compile_answer answer;
    bh__compile_job job;
    bool taken = false;
    if (bh__compile_answer_read(fd, &arena, &answer)) {
        taken = true;
        uint64_t sum = touch(answer.log) + touch(answer.output) + strlen(answer.error.message);
        for (size_t i = 0; i < answer.read_count; i++) sum += touch(answer.reads[i].path);
        for (size_t i = 0; i < answer.lowered.count; i++) sum += touch(answer.lowered.list[i]);
        for (size_t i = 0; i < answer.found_count; i++) sum += touch(answer.found[i].why);
        CHECK_NE(sum, UINT64_MAX);
    }
    if (bh__compile_job_read(fd, &arena, &job)) {
        taken = true;
        uint64_t sum = touch(job.source) + touch(job.arch);
        for (size_t i = 0; i < job.defines.count; i++) sum += touch(job.defines.list[i]);
        for (size_t i = 0; i < job.inputs.count; i++) sum += touch(job.inputs.list[i]);
        CHECK_NE(sum, UINT64_MAX);
        CHECK_EQ(job.header_names.count, job.header_bodies.count);
    }
    bh__arena_free(&arena);
    close(fd);
    return taken;
}

TEST(a_block_cut_anywhere_is_refused) {
    for (int kind = 0; kind < 2; kind++) {
        size_t bytes;
        uint8_t *block = kind ? job_block(&bytes) : answer_block(&bytes);
        CHECK(read_both(block, bytes));
        for (size_t cut = 0; cut < bytes; cut++) CHECK(!read_both(block, cut));
        /* Cut, with a head that hides it: whole fields may be missing, never half of one. */
        uint8_t *copy = malloc(bytes);
        REQUIRE(copy != NULL);
        for (size_t cut = HEAD_BYTES; cut < bytes; cut++) {
            memcpy(copy, block, cut);
            mend_head(copy, cut);
            bool taken = read_both(copy, cut);
            CHECK(!taken || cut % 8 == 0);
        }
        free(copy);
        free(block);
    }
}

TEST(a_flipped_bit_anywhere_is_refused) {
    size_t bytes;
    uint8_t *block = answer_block(&bytes);
    for (size_t bit = 0; bit < bytes * 8; bit += 3) {
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(!read_both(block, bytes));
        block[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    free(block);
}

TEST_TIMEOUT(forged_blocks_never_reach_beyond_themselves, 60) {
    for (int kind = 0; kind < 2; kind++) {
        size_t bytes;
        uint8_t *block = kind ? job_block(&bytes) : answer_block(&bytes);
        uint8_t *copy = malloc(bytes);
        REQUIRE(copy != NULL);
        uint64_t seed = 99;
        for (int round = 0; round < 20000; round++) {
            memcpy(copy, block, bytes);
            for (int change = 0; change < 1 + round % 3; change++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                size_t at = HEAD_BYTES + (size_t)(seed >> 33) % (bytes - HEAD_BYTES);
                if (round & 1) at &= ~(size_t)7;
                copy[at] = seed >> 20 & 1 ? (uint8_t)(seed >> 50) : (uint8_t)0xff;
            }
            mend_head(copy, bytes);
            read_both(copy, bytes);
        }
        free(copy);
        free(block);
    }
}

TEST(lengths_near_the_largest_number_are_refused) {
    static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 7,    UINT64_MAX - 15,
                                       INT64_MAX,  (uint64_t)1 << 32, 100000};
    size_t bytes;
    uint8_t *block = job_block(&bytes);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memcpy(block + HEAD_BYTES + 8, &lengths[i], 8);
        mend_head(block, bytes);
        CHECK(!read_both(block, bytes));
    }
    free(block);
}

TEST(a_text_with_a_nul_within_is_refused) {
    bh__compile_job job = sample_job(), got;
    job.arch = (bh__bytes){(const uint8_t *)"sm\0_90", 6};
    bh__arena arena = {0};
    int fd = bh__compile_job_write(&job);
    REQUIRE(fd >= 0);
    CHECK(!bh__compile_job_read(fd, &arena, &got));
    close(fd);
    job = sample_job();
    job.header_bodies.count = 0;
    fd = bh__compile_job_write(&job);
    REQUIRE(fd >= 0);
    CHECK(!bh__compile_job_read(fd, &arena, &got));
    bh__arena_free(&arena);
    close(fd);
}
