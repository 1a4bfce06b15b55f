/* SPDX-License-Identifier: Apache-2.0 */
/* Entries of the cache with native code for the CPU device, which would be run: what is damaged, of
 * somebody else, or for another processor is not. */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/siphash.h"
#include "client/compile/cache_layout.h"
#include "support/compile.h"
#include "wire/native.h"

enum { WORDS = 256 };

/* What a device with the JIT says of its kernel, whose results are right. */
static bh_kernel_info use_kernel(void) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.device = "cpu";
    options.executor = BH_EXECUTE_JIT;
    bh_device device = open_device_with(&options);
    bh_module module = load_module(device, ptx_factor);
    bh_kernel_info info = BH_INIT(info);
    bh_kernel kernel = get_kernel(module, "scale_by");
    REQUIRE_OK(bh_kernel_get_info(kernel, &info));
    REQUIRE_OK(bh_module_global_write(module, "factor", 0, &(uint32_t){3}, 4));
    bh_buffer x = words_counting(device, WORDS, 1);
    REQUIRE_OK(run_now(kernel, BH_GRID(WORDS, 64), BH_ARGS(BH_INOUT(x), (uint32_t)WORDS)));
    uint32_t words[WORDS];
    REQUIRE_OK(bh_buffer_read(x, 0, words, sizeof words));
    for (uint32_t i = 0; i < WORDS; i++) CHECK_EQ(words[i], 3 * (1 + i));
    CHECK_EQ(counters_of(device).losses, 0);
    REQUIRE_OK(bh_device_close(device));
    return info;
}

/* Makes the entry, and skips where there is no native code. */
static char *make_entry(char path[700], size_t *size) {
    setenv("BULKHEAD_CACHE_DIR", cache_dir(), 1);
    bh_kernel_info info = use_kernel();
    if (info.executor != BH_EXECUTOR_JIT) SKIP("%s", info.executor_note);
    REQUIRE_EQ(entry_files(path, 700), 1);
    return test_read_file(path, size);
}

static void forget_memory(void) {
    char path[600];
    CHECK_OK(bh_cache_clear(tmp_path(path, sizeof path, "elsewhere")));
}

/* The file is not used: its kernel is compiled anew, and the file replaced by a good one. */
static void check_unused(const char *what, size_t at) {
    bh_cache_info before = cache_info();
    forget_memory();
    bh_kernel_info info = use_kernel();
    bh_cache_info after = cache_info();
    if (after.compiles != before.compiles + 1 || after.dropped != before.dropped + 1 ||
        info.executor != BH_EXECUTOR_JIT)
        FAIL("%s, %zu: %llu compiles, %llu entries dropped, %s", what, at,
             (unsigned long long)(after.compiles - before.compiles),
             (unsigned long long)(after.dropped - before.dropped), info.executor_note);
}

TEST_TIMEOUT(a_byte_changed_anywhere_is_found, 120) {
    char path[700];
    size_t size;
    char *whole = make_entry(path, &size);
    for (size_t at = 0; at < size; at += 1 + size / 48) {
        whole[at] = (char)(whole[at] ^ (1 << at % 8));
        write_file(path, whole, size);
        whole[at] = (char)(whole[at] ^ (1 << at % 8));
        check_unused("a bit of byte", at);
    }
    for (size_t keep = 0; keep < size; keep += 1 + size / 8) {
        write_file(path, whole, keep);
        check_unused("bytes left", keep);
    }
    free(whole);
}

TEST(code_of_somebody_else_is_not_used) {
    char path[700], other[700];
    size_t size;
    char *whole = make_entry(path, &size);
    REQUIRE(chmod(path, 0622) == 0);
    check_unused("mode", 0622);
    write_file(tmp_path(other, sizeof other, "copy"), whole, size);
    REQUIRE(chmod(other, 0600) == 0 && unlink(path) == 0 && symlink(other, path) == 0);
    check_unused("link", 0);
    if (geteuid() == 0) {
        REQUIRE(chown(path, 12345, 12345) == 0);
        check_unused("owner", 12345);
    }
    free(whole);
}

static void seal(char *entry, bh__entry_head *head) {
    size_t at = sizeof *head;
    for (int i = 0; i < BH__PARTS; i++) {
        bh__checksum(entry + at, head->parts[i].bytes, head->parts[i].hash);
        at += head->parts[i].bytes;
    }
    bh__checksum(head, offsetof(bh__entry_head, hash), head->hash);
    memcpy(entry, head, sizeof *head);
}

/* A folder that several machines share, with an entry whose checksums are right and whose key is
 * that of this machine: the worker looks at the code itself. */
static void check_forged(size_t field, const char *why) {
    char path[700];
    size_t size;
    char *entry = make_entry(path, &size);
    bh__entry_head head;
    memcpy(&head, entry, sizeof head);
    size_t at = sizeof head;
    for (int i = 0; i < BH__PART_OUTPUT; i++) at += head.parts[i].bytes;
    entry[at + field] ^= 1;
    seal(entry, &head);
    write_file(path, entry, size);
    forget_memory();
    bh_cache_info before = cache_info();
    bh_kernel_info info = use_kernel();
    CHECK_EQ(cache_info().compiles, before.compiles);
    CHECK_EQ(info.executor, BH_EXECUTOR_INTERPRETER);
    CHECK_STR_CONTAINS(info.executor_note, why);
    free(entry);
}

TEST(code_for_another_processor_is_not_used) {
    check_forged(offsetof(bh__native_head, processor), "is for another processor");
}

TEST(code_of_another_program_is_not_used) {
    check_forged(offsetof(bh__native_head, fingerprint), "is of another build");
}

TEST(code_with_entries_that_lie_is_not_used) {
    check_forged(sizeof(bh__native_head) + offsetof(bh__native_entry, offset), "is not valid");
}
