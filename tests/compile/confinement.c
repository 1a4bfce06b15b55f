/* SPDX-License-Identifier: Apache-2.0 */
/* A source or a flag that comes from somebody else: what it cannot make a compiler read, write or
 * load; and what still works. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "compiler.h"
#include "sandbox.h"
#include "sandbox/files.h"

static const char kernel[] = "extern \"C\" __global__ void k(int *p) { *p = 1; }\n";
static const char secret[] = "#error the secret text\n";

static void need_confinement(void) {
    int abi = bh__sandbox_files_abi();
    if (abi < 0) SKIP("this kernel has no Landlock: %s", strerror(-abi));
}

/* A folder of headers, with a secret beside it. */
typedef struct place {
    char *inside, *secret;
} place;

static place make_place(void) {
    place p = {write_file("inside/good.h", "#define GOOD 7\n"), write_file("secret.h", secret)};
    *strrchr(p.inside, '/') = 0;
    return p;
}

static char *source_with(const char *format, const char *path) {
    char whole[8192];
    snprintf(whole, sizeof whole, format, path);
    return keep(strcat(whole, kernel));
}

/* It is not compiled, and nothing of the file is told. */
static void check_unread(const bh__compile_job *job) {
    outcome o = run_job(job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
    const char *log = o.answer.log.count ? (const char *)o.answer.log.data : "";
    CHECK(strstr(log, "the secret text") == NULL);
    CHECK(strstr(o.answer.error.message, "the secret text") == NULL);
    CHECK_STR_CONTAINS(o.answer.error.message, "open");
    CHECK_STR_CONTAINS(o.answer.error.fix, "include_paths");
}

TEST_BOTH(a_source_cannot_include_what_is_elsewhere) {
    need_confinement();
    place p = make_place();
    char link[4096];
    snprintf(link, sizeof link, "%s/link.h", p.inside);
    REQUIRE_EQ(symlink(p.secret, link), 0);
    char *sources[] = {
        source_with("#include \"%s\"\n", p.secret), source_with("#include \"%s\"\n", "../secret.h"),
        source_with("#include \"%s\"\n", "link.h"), source_with("#include \"%s\"\n", "/etc/passwd"),
        source_with("#include \"%s\"\n", "/proc/self/maps")};
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        bh__compile_job job = source_job(compiler, sources[i]);
        job.include_paths = LIST(text(p.inside));
        check_unread(&job);
    }
    char flag[4096];
    snprintf(flag, sizeof flag, "--pre-include=%s", p.secret);
    bh__compile_job job = source_job(compiler, kernel);
    job.extra =
        compiler == BH_COMPILER_CLANG ? LIST(text("-include"), text(p.secret)) : LIST(text(flag));
    check_unread(&job);
}

TEST_TIMEOUT(a_source_cannot_embed_what_is_elsewhere, 60) {
    need_compiler(BH_COMPILER_CLANG);
    need_confinement();
    bh__compile_job job =
        source_job(BH_COMPILER_CLANG,
                   "__device__ const unsigned char stolen[] = {\n#embed \"/etc/passwd\"\n};\n");
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_COMPILE);
}

/* Whether it exists can be told from whether the source compiles; no answer is in the code. */
TEST_BOTH(asking_for_a_file_elsewhere_is_not_answered_with_yes) {
    need_confinement();
    place p = make_place();
    bh__compile_job job = source_job(
        compiler, source_with("#if __has_include(\"%s\")\n#error is there\n#endif\n", p.secret));
    outcome o = run_job(&job);
    REQUIRE(o.answered);
    const char *log = o.answer.log.count ? (const char *)o.answer.log.data : "";
    CHECK(strstr(log, "error: is there") == NULL);
    CHECK(strstr(log, "#error directive") == NULL);
}

TEST_BOTH(headers_of_folders_that_were_given_are_read) {
    place p = make_place();
    char own[4096];
    write_file("own/beside.h", "#define BESIDE 30\n");
    snprintf(own, sizeof own, "%s/own/kernel.cu", own_folder());
    char absolute[4096];
    snprintf(absolute, sizeof absolute,
             "#include \"%s/good.h\"\n#include \"beside.h\"\n#include \"../inside/good.h\"\n"
             "extern \"C\" __global__ void k(int *p) { *p = GOOD + BESIDE; }\n",
             p.inside);
    bh__compile_job job = source_job(compiler, absolute);
    job.include_paths = LIST(text(p.inside), text("/nowhere/at/all"));
    job.name = text(own);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    CHECK_STR_EQ(run_ptx(&o.answer, "-- out:i32:1"), "ARG0 i32[1] 37\n");
}

TEST_BOTH(an_unconfined_compiler_reads_what_is_elsewhere) {
    make_place();
    char *other = write_file("other/elsewhere.h", "#define ELSEWHERE 5\n");
    bh__compile_job job = source_job(
        compiler, source_with("#include \"%s\"\n__device__ int e = ELSEWHERE;\n", other));
    job.flags = BH_COMPILE_UNCONFINED;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
}

/* ---- flags ---- */

static void check_flag(uint32_t compiler, bh__texts extra, const char *named) {
    bh__compile_job job = source_job(compiler, kernel);
    job.extra = extra;
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_E_INVALID);
    CHECK_STR_CONTAINS(o.answer.error.message, named);
    CHECK_STR_CONTAINS(o.answer.error.fix, "BH_COMPILE_UNCONFINED");
}

TEST_TIMEOUT(flags_that_reach_files_programs_or_code_are_refused_clang, 120) {
    static const char *const flags[] = {"-fplugin=/x.so",
                                        "-fpass-plugin=/x.so",
                                        "-fprofile-use=/x",
                                        "-fprofile-generate",
                                        "-fprofile-instr-use=/x",
                                        "-foptimization-record-file=/x",
                                        "-fsave-optimization-record",
                                        "-ftime-trace",
                                        "-ftime-trace=/x",
                                        "-fcrash-diagnostics-dir=/x",
                                        "-fmodules",
                                        "-fmodules-cache-path=/x",
                                        "-fmodule-file=/x",
                                        "-fsanitize-ignorelist=/x",
                                        "-fstack-usage",
                                        "-fuse-ld=/x",
                                        "-fdebug-compilation-dir=/x",
                                        "-save-temps",
                                        "--save-temps=obj",
                                        "-serialize-diagnostics",
                                        "--serialize-diagnostics",
                                        "-working-directory=/etc",
                                        "-B/x",
                                        "--sysroot=/x",
                                        "-isysroot",
                                        "--config=/x",
                                        "-ccc-install-dir",
                                        "--ptxas-path=/x",
                                        "-Xcuda-ptxas",
                                        "-Xassembler",
                                        "-Xlinker",
                                        "-Xpreprocessor",
                                        "-Wp,-MD,/x",
                                        "-Wl,-x",
                                        "-Wa,-x",
                                        "--system-header-prefix=x",
                                        "--gcc-toolchain=/x",
                                        "-resource-dir",
                                        "--cuda-path=/x",
                                        "-include-pch",
                                        "-ivfsoverlay",
                                        "--embed-dir=/etc",
                                        "-gsplit-dwarf",
                                        "-load",
                                        "-filelist",
                                        "--frobnicate"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        check_flag(BH_COMPILER_CLANG, LIST(text(flags[i])), flags[i]);
        /* Clang takes these for flags wherever they stand; so does its front end with -Xclang. */
        check_flag(BH_COMPILER_CLANG, LIST(text("-Xclang"), text(flags[i])), flags[i]);
    }
    check_flag(BH_COMPILER_CLANG, LIST(text("-w"), text("/etc/passwd")), "/etc/passwd");
    check_flag(BH_COMPILER_CLANG, LIST(text("-w"), text("@/etc/passwd")), "@/etc/passwd");
    check_flag(BH_COMPILER_CLANG, LIST(text("-include"), text("@/etc/passwd")), "-include");
    check_flag(BH_COMPILER_CLANG, LIST(text("-mllvm"), text("-load=/x.so")), "-load=/x.so");
    check_flag(BH_COMPILER_CLANG, LIST(text("-mllvm"), text("-info-output-file=x")),
               "-info-output");
    check_flag(BH_COMPILER_CLANG, LIST(text("-mllvm"), text("-inline-x=/x")), "-inline-x=/x");
}

TEST_TIMEOUT(flags_that_reach_files_are_refused_nvrtc, 60) {
    static const char *const flags[] = {
        "--pch",        "--create-pch=/x", "--use-pch=/x",
        "--pch-dir=/x", "--time=/x",       "--fdevice-time-trace=/x",
        "--perf-stats", "--okey",          "-fdevice-time-trace=/x",
        "--frobnicate", "-Xptxas=-o/x",    "--enable-cache-trace"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        check_flag(BH_COMPILER_NVRTC, LIST(text(flags[i])), flags[i]);
    check_flag(BH_COMPILER_NVRTC, LIST(text("-fmad"), text("--pch")), "-fmad");
}

TEST_TIMEOUT(everyday_flags_are_taken_clang, 60) {
    need_compiler(BH_COMPILER_CLANG);
    place p = make_place();
    bh__compile_job job = source_job(BH_COMPILER_CLANG, kernel);
    job.include_paths = LIST(text(p.inside));
    job.extra = LIST(text("-O2"), text("-ffast-math"), text("-fno-unroll-loops"), text("-Wall"),
                     text("-Wno-unused"), text("-UNOTHING"), text("-U"), text("NOTHING"),
                     text("-include"), text("good.h"), text("-Xclang"),
                     text("-fcuda-allow-variadic-functions"), text("-mllvm"),
                     text("-nvptx-fma-level=1"), text("-ferror-limit=3"), text("-Rpass=inline"),
                     text("-ffp-contract=off"), text("-gdwarf-4"), text("-pedantic"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
}

TEST_TIMEOUT(everyday_flags_are_taken_nvrtc, 60) {
    need_compiler(BH_COMPILER_NVRTC);
    place p = make_place();
    bh__compile_job job = source_job(BH_COMPILER_NVRTC, kernel);
    job.include_paths = LIST(text(p.inside));
    job.extra = LIST(text("--fmad=false"), text("--prec-div=false"), text("-w"), text("--restrict"),
                     text("-default-device"), text("--diag-suppress=177"), text("-UNOTHING"),
                     text("--pre-include=good.h"), text("--ptxas-options=-v"),
                     text("--extra-device-vectorization"), text("-opt-info=inline"));
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
}

/* What the flags say holds without the kernel's help; all else works as before. */
TEST_BOTH(without_landlock_flags_are_still_refused) {
    forbid_landlock();
    REQUIRE(bh__sandbox_files_abi() < 0);
    bh__compile_job job = source_job(compiler, kernel);
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    check_flag(compiler, LIST(text("-fplugin=/x.so")), "-fplugin=/x.so");
}

/* ---- a compiler that somebody has taken over: a script in its place ---- */

static outcome run_as_clang(const char *path) {
    bh__compile_job job = source_job(BH_COMPILER_CLANG, kernel);
    job.compiler_path = text(path);
    job.memory_limit = (uint64_t)256 << 20;
    job.time_limit_ns = 20 * BH__NS_PER_S;
    return run_job(&job);
}

static outcome run_script(const char *script) {
    char *path = write_file("clang", script);
    REQUIRE_EQ(chmod(path, 0700), 0);
    return run_as_clang(path);
}

/* Found through a link, as most are: its own libraries are where it really is. */
TEST_TIMEOUT(a_compiler_elsewhere_reads_its_own_libraries, 60) {
    need_confinement();
    char script[8192], link[4096];
    char *part = write_file("tool/lib/part", "a part of it\n");
    char *file = write_file("tool/secret", secret);
    snprintf(script, sizeof script, "#!/bin/sh\ncat '%s' '%s' >&2\nexit 1\n", part, file);
    char *program = write_file("tool/bin/clang", script);
    REQUIRE_EQ(chmod(program, 0700), 0);
    write_file("links/other", "");
    snprintf(link, sizeof link, "%s/links/clang", own_folder());
    REQUIRE_EQ(symlink("../tool/bin/clang", link), 0);
    outcome o = run_as_clang(link);
    REQUIRE(o.answered);
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "a part of it");
    CHECK(strstr((const char *)o.answer.log.data, "the secret text") == NULL);
}

TEST_TIMEOUT(a_compiler_reads_no_secret_and_writes_no_file, 60) {
    need_confinement();
    char script[8192], *file = write_file("secret.h", secret);
    snprintf(script, sizeof script,
             "#!/bin/sh\necho ran >&2\ncat '%s' >&2\necho x > '%s.new'\necho x > /tmp/bulkhead-%d\n"
             "kill -0 $PPID\nexit 1\n",
             file, file, (int)getpid());
    outcome o = run_script(script);
    REQUIRE(o.answered);
    const char *log = (const char *)o.answer.log.data;
    CHECK_STR_CONTAINS(log, "ran");
    CHECK(strstr(log, "the secret text") == NULL);
    snprintf(script, sizeof script, "%s.new", file);
    CHECK(access(script, F_OK) != 0);
    snprintf(script, sizeof script, "/tmp/bulkhead-%d", (int)getpid());
    CHECK(access(script, F_OK) != 0);
}

/* Python makes the calls that no shell makes. */
TEST_TIMEOUT(a_compiler_has_no_network_and_stays_in_its_group, 60) {
    if (access("/usr/bin/python3", X_OK) != 0) SKIP("there is no /usr/bin/python3");
    outcome o = run_script("#!/usr/bin/python3 -IS\n"
                           "import os, sys\n"
                           "def refused(name, call):\n"
                           "    try:\n"
                           "        call()\n"
                           "        print('allowed:', name, file=sys.stderr)\n"
                           "    except OSError as e:\n"
                           "        print('refused:', name, file=sys.stderr)\n"
                           "import _socket\n"
                           "refused('socket', lambda: _socket.socket(_socket.AF_INET, 1, 0))\n"
                           "refused('unix', lambda: _socket.socket(_socket.AF_UNIX, 1, 0))\n"
                           "pid = os.fork()\n"
                           "if pid == 0:\n"
                           "    refused('session', os.setsid)\n"
                           "    os._exit(0)\n"
                           "os.waitpid(pid, 0)\n"
                           "sys.exit(1)\n");
    REQUIRE(o.answered);
    const char *log = (const char *)o.answer.log.data;
    CHECK_STR_CONTAINS(log, "refused: socket");
    CHECK_STR_CONTAINS(log, "refused: unix");
    CHECK_STR_CONTAINS(log, "refused: session");
    CHECK(strstr(log, "allowed") == NULL);
}

/* By the filter alone, as where the kernel's file rules do not cover signals. It can end itself,
 * and what it starts ends too. */
TEST_TIMEOUT(a_compiler_signals_no_other_process, 60) {
    if (access("/usr/bin/python3", X_OK) != 0) SKIP("there is no /usr/bin/python3");
    forbid_landlock();
    char script[4096];
    snprintf(script, sizeof script,
             "#!/usr/bin/python3 -IS\n"
             "import os, sys\n"
             "def refused(name, pid):\n"
             "    try:\n"
             "        os.kill(pid, 0)\n"
             "        print('allowed:', name, file=sys.stderr)\n"
             "    except OSError as e:\n"
             "        print('refused:', name, file=sys.stderr)\n"
             "if len(sys.argv) == 2: print('clang version 19.1.7'); sys.exit(0)\n"
             "refused('parent', os.getppid())\n"
             "refused('application', %d)\n"
             "refused('everybody', -1)\n"
             "refused('group', 0)\n"
             "os.kill(os.getpid(), 0)\n"
             "child = os.fork()\n"
             "if child == 0: os.abort()\n"
             "end = os.waitpid(child, 0)[1]\n"
             "print('child ended by a signal:', os.WIFSIGNALED(end), file=sys.stderr)\n"
             "sys.stderr.flush()\n"
             "os.abort()\n",
             (int)getpid());
    outcome o = run_script(script);
    REQUIRE(o.answered);
    const char *log = (const char *)o.answer.log.data;
    CHECK_STR_CONTAINS(log, "refused: parent");
    CHECK_STR_CONTAINS(log, "refused: application");
    CHECK_STR_CONTAINS(log, "refused: everybody");
    CHECK_STR_CONTAINS(log, "refused: group");
    CHECK_STR_CONTAINS(log, "child ended by a signal: True");
    CHECK(strstr(log, "allowed") == NULL);
    CHECK_STR_CONTAINS(o.answer.error.message, strsignal(SIGABRT));
}

TEST_TIMEOUT(a_compiler_that_writes_without_end_is_stopped, 60) {
    if (test_time_scale() > 1) SKIP("sanitizers reserve more memory than any limit");
    outcome o = run_script("#!/bin/sh\nexec yes\n");
    REQUIRE_ANSWER(o, o.answer.error.status);
    CHECK_NE(o.answer.error.status, BH_OK);
    CHECK_LT(o.took_ns, 15 * BH__NS_PER_S);
    CHECK(strstr(o.answer.error.message, "20.000 s") == NULL);
}

TEST_TIMEOUT(a_log_without_end_is_cut_in_its_middle, 120) {
    need_compiler(BH_COMPILER_CLANG);
    bh__compile_job job = source_job(BH_COMPILER_CLANG, "#include \"again.h\"\n");
    job.header_names = LIST(text("again.h"));
    job.header_bodies = LIST(text("#if __INCLUDE_LEVEL__ < 15\n#include \"again.h\"\n"
                                  "#include \"again.h\"\n#endif\n#warning and again\n"));
    outcome o = run_job(&job);
    REQUIRE(o.answered);
    CHECK_GT(o.answer.log.count, 4 << 20);
    CHECK_LT(o.answer.log.count, (4 << 20) + 4096);
    CHECK_STR_CONTAINS((const char *)o.answer.log.data, "bytes are left out");
}
