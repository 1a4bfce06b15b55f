/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept: hits in memory and on disk, what makes a miss, headers that change, least recently
 * used first, folders that cannot be used. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/compile.h"

static const char source[] = "extern \"C\" __global__ void f(unsigned *p) { *p = 1; }\n";

typedef struct step {
    bh_compile_options options;
    const char *source;
    uint32_t expected;
} step;

static void compile_step(void *context) {
    const step *s = context;
    CHECK_EQ(compile_from(s->source, &s->options), s->expected);
}

static void twice_in_two_processes(uint32_t compiler) {
    need_compiler(compiler);
    step s = {real_options(compiler), source, BH_CACHE_MISS};
    in_process(compile_step, &s);
    CHECK_EQ(entry_files(NULL, 0), 1);
    s.expected = BH_CACHE_DISK;
    in_process(compile_step, &s);
    CHECK_EQ(compile_from(source, &s.options), BH_CACHE_DISK);
    CHECK_EQ(compile_from(source, &s.options), BH_CACHE_MEMORY);
    bh_cache_info info = cache_info();
    CHECK_EQ(info.usable, 1);
    CHECK_EQ(info.entries, 1);
    CHECK_EQ(info.disk_hits, 1);
    CHECK_EQ(info.memory_hits, 1);
    CHECK_EQ(info.misses, 0);
    CHECK_EQ(info.dropped, 0);
    CHECK_STR_EQ(info.dir, cache_dir());
    CHECK_EQ(info.all_misses, 1);
    CHECK_EQ(info.all_hits, 2); /* what was found in memory is added later */
    s.options.flags = BH_COMPILE_NO_CACHE;
    CHECK_EQ(compile_from(source, &s.options), BH_CACHE_OFF);
    CHECK_OK(bh_cache_clear(NULL));
    CHECK_EQ(entry_files(NULL, 0), 0);
    s.options.flags = 0;
    CHECK_EQ(compile_from(source, &s.options), BH_CACHE_MISS);
}

TEST_TIMEOUT(nvrtc_is_run_once_for_two_processes, 60) {
    twice_in_two_processes(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(clang_is_run_once_for_two_processes, 60) {
    twice_in_two_processes(BH_COMPILER_CLANG);
}

TEST(each_option_makes_a_compile_of_its_own) {
    bh_compile_options base = stand_in_options(), options = base;
    const char *lists[] = {"A=1", "B"}, *expression[] = {"f"}, *path[] = {"/usr"};
    bh_header header = {"h.h", "x"};
    CHECK_EQ(compile_from(source, &base), BH_CACHE_MISS);
    CHECK_EQ(compile_from(source, &base), BH_CACHE_MEMORY);
    CHECK_EQ(compile_from("other", &base), BH_CACHE_MISS);
#define DIFFERS(change)                                                                            \
    do {                                                                                           \
        options = base;                                                                            \
        change;                                                                                    \
        CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);                                   \
        CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);                                 \
    } while (0)
    DIFFERS(options.arch = "sm_90");
    DIFFERS(options.name = "other.cu");
    DIFFERS(options.standard = 20);
    DIFFERS(options.max_registers = 32);
    DIFFERS(options.flags = BH_COMPILE_FAST_MATH);
    DIFFERS(options.flags = BH_COMPILE_FLUSH_DENORMALS);
    DIFFERS(options.flags = BH_COMPILE_LINE_INFO);
    DIFFERS(options.flags = BH_COMPILE_DEBUG);
    DIFFERS(options.flags = BH_COMPILE_RELOCATABLE);
    DIFFERS(options.flags = BH_COMPILE_UNCONFINED);
    DIFFERS(options.output = BH_OUTPUT_CUBIN);
    DIFFERS((options.defines = lists, options.define_count = 1));
    DIFFERS((options.defines = lists, options.define_count = 2));
    DIFFERS((options.extra = lists, options.extra_count = 2));
    DIFFERS((options.expressions = expression, options.expression_count = 1));
    DIFFERS((options.include_paths = path, options.include_path_count = 1));
    DIFFERS((options.headers = &header, options.header_count = 1));
    header.text = "y";
    DIFFERS((options.headers = &header, options.header_count = 1));
#undef DIFFERS
    options = base;
    options.output = BH_OUTPUT_PTX; /* what AUTO means without a device */
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);
    options.timeout_ns = 59000 * MS;
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);
    CHECK_EQ(stand_in_runs(), cache_info().misses);
}

/* ---- headers ---- */

static void put_header(const char *folder, const char *value) {
    char path[700], text[100];
    test_path(path, sizeof path, "%s/value.h", folder);
    test_path(text, sizeof text, "#define VALUE %s\n", value);
    write_file(path, text, strlen(text));
}

static const char includes[] = "#include \"value.h\"\n"
                               "extern \"C\" __global__ void f(unsigned *p) { *p = VALUE; }\n";

static bool result_has(bh_binary binary, const char *text) {
    bh_binary_info info = info_of(binary);
    return memmem(info.bytes, info.count, text, strlen(text)) != NULL;
}

static void compile_with_value(void *context) {
    const step *s = context;
    char value[8];
    test_path(value, sizeof value, "%u", s->expected / 10);
    bh_binary binary = compile_ok(includes, &s->options);
    CHECK_EQ(info_of(binary).cache, s->expected % 10);
    CHECK(result_has(binary, value));
}

static void follow_headers(uint32_t compiler) {
    need_compiler(compiler);
    char first[600], second[600], path[700];
    REQUIRE(mkdir(tmp_path(first, sizeof first, "first"), 0700) == 0);
    REQUIRE(mkdir(tmp_path(second, sizeof second, "second"), 0700) == 0);
    const char *folders[] = {first, second};
    step s = {real_options(compiler), includes, 0};
    s.options.include_paths = folders;
    s.options.include_path_count = 2;
    put_header(second, "12345");
    s.expected = 123450 + BH_CACHE_MISS;
    in_process(compile_with_value, &s);
    s.expected = 123450 + BH_CACHE_DISK;
    in_process(compile_with_value, &s);
    put_header(second, "12345"); /* touched, and as it was */
    in_process(compile_with_value, &s);
    put_header(second, "54321"); /* as long as before */
    s.expected = 543210 + BH_CACHE_MISS;
    in_process(compile_with_value, &s);
    put_header(first, "33333"); /* one that comes before it */
    s.expected = 333330 + BH_CACHE_MISS;
    in_process(compile_with_value, &s);
    s.expected = 333330 + BH_CACHE_DISK;
    in_process(compile_with_value, &s);
    REQUIRE(unlink(test_path(path, sizeof path, "%s/value.h", first)) == 0);
    s.expected = 543210 + BH_CACHE_MISS;
    in_process(compile_with_value, &s);

    /* The same within one process, where results are in memory. */
    s.expected = 543210 + BH_CACHE_DISK;
    compile_with_value(&s);
    s.expected = 543210 + BH_CACHE_MEMORY;
    compile_with_value(&s);
    put_header(second, "77777");
    s.expected = 777770 + BH_CACHE_MISS;
    compile_with_value(&s);
    put_header(first, "88888");
    s.expected = 888880 + BH_CACHE_MISS;
    compile_with_value(&s);
    CHECK_EQ(cache_info().dropped, 0);
}

TEST_TIMEOUT(headers_that_change_are_seen_with_nvrtc, 90) {
    follow_headers(BH_COMPILER_NVRTC);
}

TEST_TIMEOUT(headers_that_change_are_seen_with_clang, 90) {
    follow_headers(BH_COMPILER_CLANG);
}

TEST_TIMEOUT(a_source_of_ten_megabytes, 120) {
    need_compiler(BH_COMPILER_CLANG);
    size_t size = 10 << 20;
    char *text = malloc(size + sizeof source);
    REQUIRE(text != NULL);
    memset(text, ' ', size);
    for (size_t i = 0; i < size; i += 64) memcpy(text + i, "//", 2), text[i + 63] = '\n';
    memcpy(text + size, source, sizeof source);
    step s = {real_options(BH_COMPILER_CLANG), text, BH_CACHE_MISS};
    in_process(compile_step, &s);
    s.expected = BH_CACHE_DISK;
    in_process(compile_step, &s);
    text[size / 2 + 5] = 'x'; /* one byte of a comment */
    s.expected = BH_CACHE_MISS;
    in_process(compile_step, &s);
    free(text);
}

/* ---- bounds ---- */

static bool was_kept(const char *text, const bh_compile_options *options) {
    unsigned before = stand_in_runs();
    compile_from(text, options);
    return stand_in_runs() == before;
}

/* In a process of its own each time, so that nothing comes from memory. */
static void compile_quietly(void *context) {
    const step *s = context;
    compile_from(s->source, &s->options);
}

TEST_TIMEOUT(the_least_recently_used_go_first, 60) {
    enum { BODY = 40000 };
    step s = {stand_in_options(), NULL, 0};
    s.options.cache_limit = 4 * (3 * BODY); /* an entry has its source in the key and the result */
    char text[4][BODY + 1];
    for (int i = 0; i < 4; i++) {
        memset(text[i], 'a' + i, BODY);
        text[i][BODY] = 0;
    }
    for (int i = 0; i < 4; i++) {
        s.source = text[i];
        in_process(compile_quietly, &s);
        sleep_ms(20);
    }
    CHECK_EQ(entry_files(NULL, 0), 4);
    sleep_ms(1100);
    s.source = text[0]; /* the oldest is used again */
    s.expected = BH_CACHE_DISK;
    in_process(compile_step, &s);
    char large[2 * BODY + 1];
    memset(large, 'z', 2 * BODY);
    large[2 * BODY] = 0;
    s.source = large;
    in_process(compile_quietly, &s);
    bh_cache_info info = cache_info();
    CHECK_LE(info.bytes, s.options.cache_limit);
    CHECK_LT(info.entries, 5);
    CHECK(was_kept(text[0], &s.options));
    CHECK(was_kept(large, &s.options));
    CHECK(!was_kept(text[1], &s.options));
}

TEST(a_result_larger_than_the_limit_is_not_kept) {
    bh_compile_options options = stand_in_options();
    options.cache_limit = 100;
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);
    CHECK_EQ(entry_files(NULL, 0), 0);
    CHECK_STR_CONTAINS(cache_info().why, "limit is 100");
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);
}

/* ---- folders ---- */

/* All works without a folder, and the reason can be asked for. */
static void check_without(const char *dir, const char *why) {
    bh_compile_options options = stand_in_options();
    options.cache_dir = dir;
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);
    bh_cache_info info = BH_INIT(info);
    REQUIRE_OK(bh_cache_get_info(dir, &info));
    CHECK_EQ(info.usable, 0);
    CHECK_STR_CONTAINS(info.why, why);
    CHECK_EQ(info.entries, 0);
}

TEST(a_folder_that_others_may_write_to_is_not_used) {
    char path[600];
    REQUIRE(mkdir(tmp_path(path, sizeof path, "open"), 0700) == 0);
    REQUIRE(chmod(path, 0777) == 0);
    check_without(path, "0777");
}

TEST(a_folder_of_somebody_else_is_not_used) {
    if (geteuid() != 0) SKIP("only root can give a folder away");
    char path[600];
    REQUIRE(mkdir(tmp_path(path, sizeof path, "theirs"), 0700) == 0);
    REQUIRE(chown(path, 12345, 12345) == 0);
    check_without(path, "12345");
}

/* A link of this user's is a way to keep the cache elsewhere; somebody else's is a trap. */
TEST(a_folder_that_is_a_link_is_used_if_it_is_our_own) {
    char real[600], link[600], slash[700];
    REQUIRE(mkdir(tmp_path(real, sizeof real, "real"), 0700) == 0);
    REQUIRE(symlink(real, tmp_path(link, sizeof link, "link")) == 0);
    bh_cache_info info = BH_INIT(info);
    REQUIRE_OK(bh_cache_get_info(link, &info));
    CHECK_EQ(info.usable, 1);
    if (geteuid() != 0) SKIP("only root can give a link away");
    REQUIRE(lchown(link, 12345, 12345) == 0);
    check_without(link, "symbolic link of user 12345");
    CHECK_OK(bh_cache_clear(NULL)); /* memory too */
    check_without(test_path(slash, sizeof slash, "%s//", link), "symbolic link of user 12345");
}

/* Whatever folder it is: only what has the names that the cache gives is ever removed. */
TEST(files_that_are_not_the_cache_s_own_are_left_alone) {
    static const char *const names[] = {"tmp-notes.txt", "tmp-1-2", "tmp-1-2-3.txt",
                                        "probe-results", "probe-0123456789abcdef0"};
    struct timespec old[2] = {{.tv_sec = 1}, {.tv_sec = 1}};
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[700];
        write_file(test_path(path, sizeof path, "%s/%s", cache_dir(), names[i]), "x", 1);
        REQUIRE(chmod(path, 0600) == 0);
        REQUIRE(utimensat(AT_FDCWD, path, old, 0) == 0);
        cache_info();
        CHECK_OK(bh_cache_clear(NULL));
        CHECK(access(path, F_OK) == 0);
    }
}

/* The file of hits and misses is written through no link, and to no pipe. */
TEST(counts_that_are_no_private_file_are_not_written_to) {
    char counts[700], other[600];
    struct stat info;
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);
    test_path(counts, sizeof counts, "%s/counts", cache_dir());
    write_file(tmp_path(other, sizeof other, "other"), "", 0);
    for (int pipe = 0; pipe < 2; pipe++) {
        unlink(counts);
        REQUIRE((pipe ? mkfifo(counts, 0600) : symlink(other, counts)) == 0);
        CHECK_EQ(compile_from(pipe ? "one" : "two", &options), BH_CACHE_MISS);
        CHECK_EQ(cache_info().all_misses, 0);
        REQUIRE(stat(other, &info) == 0);
        CHECK_EQ(info.st_size, 0);
    }
}

TEST(a_folder_that_is_a_file_is_not_used) {
    char path[600], below[700];
    write_file(tmp_path(path, sizeof path, "file"), "x", 1);
    check_without(path, "Not a directory");
    CHECK_OK(bh_cache_clear(NULL)); /* memory too */
    check_without(test_path(below, sizeof below, "%s/below", path), "Not a directory");
}

TEST(without_a_home_folder) {
    bh_compile_options options = stand_in_options();
    unsetenv("BULKHEAD_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MISS);
    CHECK_EQ(compile_from(source, &options), BH_CACHE_MEMORY);
    bh_cache_info info = cache_info();
    CHECK_EQ(info.usable, 0);
    CHECK_STR_CONTAINS(info.why, "HOME");
    setenv("HOME", "/no/such/home", 1);
    if (geteuid() != 0) CHECK_EQ(cache_info().usable, 0);
    setenv("HOME", "relative", 1);
    CHECK_EQ(cache_info().usable, 0);
}

TEST(folders_come_from_the_environment_in_order) {
    char home[600], xdg[600], path[700];
    stand_in_options();
    unsetenv("BULKHEAD_CACHE_DIR");
    setenv("HOME", tmp_path(home, sizeof home, "home"), 1);
    unsetenv("XDG_CACHE_HOME");
    CHECK_STR_EQ(cache_info().dir, test_path(path, sizeof path, "%s/.cache/bulkhead", home));
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK_STR_EQ(cache_info().dir, path);
    setenv("XDG_CACHE_HOME", tmp_path(xdg, sizeof xdg, "xdg"), 1);
    CHECK_STR_EQ(cache_info().dir, test_path(path, sizeof path, "%s/bulkhead", xdg));
    struct stat info;
    REQUIRE(stat(path, &info) == 0);
    CHECK_EQ(info.st_mode & 0777, 0700);
    setenv("BULKHEAD_CACHE_LIMIT", "3M", 1);
    CHECK_EQ(cache_info().limit, 3 << 20);
    setenv("BULKHEAD_CACHE_LIMIT", "lots", 1);
    CHECK_EQ(cache_info().limit, 1 << 30);
}

/* A file system of its own, seen by this process alone. */
static void mount_small(const char *path, const char *options, unsigned long flags) {
    REQUIRE(mkdir(path, 0700) == 0);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", path, "tmpfs", flags, options) != 0)
        SKIP("file systems cannot be mounted here: %s", strerror(errno));
}

TEST(on_a_full_disk) {
    char path[600], filler[700];
    bh_compile_options options = stand_in_options();
    mount_small(tmp_path(path, sizeof path, "small"), "size=256k,mode=0700", 0);
    options.cache_dir = path;
    CHECK_EQ(compile_from("one", &options), BH_CACHE_MISS);
    int fd = open(test_path(filler, sizeof filler, "%s/filler", path), O_WRONLY | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    char block[4096] = {1};
    while (write(fd, block, sizeof block) > 0) continue;
    close(fd);
    CHECK_EQ(compile_from("two", &options), BH_CACHE_MISS);
    CHECK_EQ(compile_from("two", &options), BH_CACHE_MEMORY);
    bh_cache_info info = BH_INIT(info);
    REQUIRE_OK(bh_cache_get_info(path, &info));
    CHECK_EQ(info.entries, 1);
    CHECK_STR_CONTAINS(info.why, "full");
    CHECK(unlink(filler) == 0);
    CHECK_EQ(compile_from("three", &options), BH_CACHE_MISS);
    REQUIRE_OK(bh_cache_get_info(path, &info));
    CHECK_EQ(info.entries, 2);
    CHECK_STR_EQ(info.why, "");
}

TEST(on_a_read_only_file_system) {
    char path[600];
    mount_small(tmp_path(path, sizeof path, "fixed"), "size=256k,mode=0700", MS_RDONLY);
    check_without(path, "read-only");
}

TEST(files_that_may_not_grow) {
    char large[100000];
    bh_compile_options options = stand_in_options();
    CHECK_EQ(compile_from("small", &options), BH_CACHE_MISS);
    memset(large, 'a', sizeof large - 1);
    large[sizeof large - 1] = 0;
    /* The job and the answer fit; the entry, which has the source twice, does not. */
    struct rlimit limit = {150000, 150000};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_EQ(compile_from(large, &options), BH_CACHE_MISS);
    CHECK_EQ(compile_from(large, &options), BH_CACHE_MEMORY);
    CHECK_STR_CONTAINS(cache_info().why, "could not be written");
    CHECK_EQ(entry_files(NULL, 0), 1);
}

static void check_entry(const bh_cache_entry *entry, const char *name) {
    CHECK_EQ(entry->size, sizeof *entry);
    CHECK_EQ(entry->output, BH_OUTPUT_PTX);
    CHECK_STR_EQ(entry->arch, "sm_80");
    CHECK_STR_EQ(entry->compiler, "stand-in 1.0");
    CHECK_STR_EQ(entry->name, name);
    CHECK_EQ(strlen(entry->key), 32);
    CHECK_GT(entry->bytes, 100);
}

TEST(entries_are_listed_latest_first) {
    bh_compile_options options = stand_in_options();
    bh_cache_entry entries[3], untouched;
    size_t count = 0;
    options.name = "first.cu";
    compile_from(source, &options);
    sleep_ms(30);
    options.name = "second.cu";
    compile_from(source, &options);
    memset(entries, 0x5a, sizeof entries);
    memset(&untouched, 0x5a, sizeof untouched);
    REQUIRE_OK(bh_cache_list(NULL, NULL, 0, 0, &count));
    CHECK_EQ(count, 2);
    REQUIRE_OK(bh_cache_list(NULL, entries, sizeof *entries, 1, &count));
    CHECK_EQ(count, 2);
    check_entry(&entries[0], "second.cu");
    CHECK_MEM_EQ(&entries[1], &untouched, sizeof untouched);
    REQUIRE_OK(bh_cache_list(NULL, entries, sizeof *entries, 3, &count));
    CHECK_EQ(count, 2);
    check_entry(&entries[0], "second.cu");
    check_entry(&entries[1], "first.cu");
    CHECK_MEM_EQ(&entries[2], &untouched, sizeof untouched);
}

/* ---- the log ---- */

static char log_lines[1 << 14];

static void collect(void *context, int32_t level, const char *text) {
    (void)context;
    size_t used = strlen(log_lines);
    snprintf(log_lines + used, sizeof log_lines - used, "%d %s\n", (int)level, text);
}

TEST(the_log_tells_of_compiles_and_cache_hits) {
    bh_compile_options options = stand_in_options();
    options.name = "logged.cu";
    char folder[512];
    REQUIRE_OK(bh_log_set(collect, NULL, BH_LOG_DEBUG));
    CHECK_EQ(compile_from("a source", &options), BH_CACHE_MISS);
    CHECK_EQ(compile_from("a source", &options), BH_CACHE_MEMORY);
    /* Clearing another folder clears the cache in memory too. */
    CHECK_OK(bh_cache_clear(tmp_path(folder, sizeof folder, "other")));
    CHECK_EQ(compile_from("a source", &options), BH_CACHE_DISK);
    REQUIRE_OK(bh_log_set(NULL, NULL, 0));
    CHECK_STR_CONTAINS(log_lines, "3 compiled \"logged.cu\" for sm_80 with ");
    CHECK_STR_CONTAINS(log_lines, "; compiler: ");
    CHECK_STR_CONTAINS(log_lines, "4 compile cache: memory hit, key ");
    CHECK_STR_CONTAINS(log_lines, "4 compile cache: disk hit, key ");
}
