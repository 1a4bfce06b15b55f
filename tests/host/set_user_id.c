/* SPDX-License-Identifier: Apache-2.0 */
/* A set-user-ID program does not let its environment choose the programs it starts, nor what they
 * load, nor where it keeps what it compiled. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include "../support/support.h"

enum { OWNER = 65534, CALLER = 65533 }; /* user ids: whose program it is, and who runs it */

static void copy_file(const char *from, const char *to) {
    char bytes[65536];
    int source = open(from, O_RDONLY | O_CLOEXEC),
        target = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    REQUIRE(source >= 0 && target >= 0);
    for (ssize_t got; (got = read(source, bytes, sizeof bytes)) > 0;)
        REQUIRE(write(target, bytes, (size_t)got) == got);
    close(source);
    close(target);
}

/* In a child: another user from here on. False: not possible here. */
static bool become(uid_t user) {
    return setgroups(0, NULL) == 0 && setgid(user) == 0 && setuid(user) == 0;
}

/* Whether another user can get at what the program needs. */
static bool is_within_reach(const char *path) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(become(CALLER) && access(path, R_OK | X_OK) == 0 ? 0 : 1);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    return status == 0;
}

/* Runs the program as another user, with this variable in its environment; what it says. */
static void say(const char *program, const char *argument, const char *variable, const char *value,
                char *out, size_t size) {
    int ends[2];
    REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        if (!become(CALLER) || dup2(ends[1], 1) < 0) _exit(120);
        setenv(variable, value, 1);
        execl(program, program, argument, (char *)NULL);
        _exit(121);
    }
    close(ends[1]);
    size_t length = 0;
    for (ssize_t got;
         length < size - 1 && (got = read(ends[0], out + length, size - 1 - length)) > 0;)
        length += (size_t)got;
    out[length] = '\0';
    close(ends[0]);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    printf("exit status %d: %s\n", WEXITSTATUS(status), out);
}

/* A folder that every user can look into, gone when the test ends. */
static char folder[] = "/tmp/bulkhead-setuid-XXXXXX";
static char program[64], workers[64], told[64];

static void clean_up(void) {
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    CHECK_EQ(system(command), 0);
}

/* A copy of a program of the tests, to be made set-user-ID. */
static void prepare_program(const char *name) {
    char original[600], worker[600];
    struct statvfs mount;
    if (geteuid() != 0) SKIP("needs root, to make a program set-user-ID");
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) SKIP("no_new_privs is set");
    test_path(original, sizeof original, "%s/tests/programs/%s", test_build_dir(), name);
    test_path(worker, sizeof worker, "%s/bin/bulkhead-worker-cpu", test_build_dir());
    if (!is_within_reach(worker)) SKIP("other users cannot get at %s, or cannot be become", worker);
    REQUIRE(mkdtemp(folder) != NULL);
    atexit(clean_up);
    REQUIRE(chmod(folder, 0755) == 0);
    test_path(program, sizeof program, "%s/%s", folder, name);
    test_path(workers, sizeof workers, "%s/workers", folder);
    REQUIRE(mkdir(workers, 0755) == 0);
    copy_file(original, program);
    if (statvfs(folder, &mount) == 0 && mount.f_flag & ST_NOSUID) SKIP("/tmp is mounted nosuid");
    if (chown(program, OWNER, OWNER) != 0) SKIP("user %d cannot own files here", OWNER);
}

static void prepare(void) {
    prepare_program("opener");
}

TEST(the_environment_chooses_worker_programs_for_plain_programs_only) {
    char text[1024];
    prepare();
    REQUIRE(chmod(program, 0755) == 0);
    say(program, NULL, "BULKHEAD_WORKER_DIR", workers, text, sizeof text);
    CHECK_STR_CONTAINS(text, "plain BH_E_NO_DEVICE");
    CHECK_STR_CONTAINS(text, workers);

    REQUIRE(chmod(program, 04755) == 0);
    say(program, NULL, "BULKHEAD_WORKER_DIR", workers, text, sizeof text);
    if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
    CHECK_STR_CONTAINS(text, "secure BH_OK");
}

/* A word that means nothing is refused, if anybody listens to it. */
TEST(the_environment_chooses_the_sandbox_for_plain_programs_only) {
    char text[1024], here[600];
    prepare();
    setenv("BULKHEAD_WORKER_DIR", test_path(here, sizeof here, "%s/bin", test_build_dir()), 1);
    REQUIRE(chmod(program, 0755) == 0);
    say(program, NULL, "BULKHEAD_SANDBOX", "nonsense", text, sizeof text);
    CHECK_STR_CONTAINS(text, "plain BH_E_INVALID");

    REQUIRE(chmod(program, 04755) == 0);
    say(program, NULL, "BULKHEAD_SANDBOX", "nonsense", text, sizeof text);
    if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
    CHECK_STR_CONTAINS(text, "secure BH_OK");
}

/* The profiler's library writes to a file of whoever loads it. */
static void prepare_profiler(char *library, size_t size) {
    static char workers_here[600];
    prepare();
    test_path(library, size, "%s/tests/nvtx/libprofiler.so", test_build_dir());
    if (!is_within_reach(library)) SKIP("other users cannot get at %s", library);
    test_path(workers_here, sizeof workers_here, "%s/bin", test_build_dir());
    setenv("BULKHEAD_WORKER_DIR", workers_here, 1);
    test_path(told, sizeof told, "%s/told.txt", folder);
    REQUIRE(chmod(folder, 0777) == 0);
    setenv("PROFILER_FILE", told, 1);
}

TEST(the_environment_names_profilers_for_plain_programs_only) {
    char text[1024], library[600];
    const char *variable = "NVTX_INJECTION64_PATH";
    prepare_profiler(library, sizeof library);
    REQUIRE(chmod(program, 0755) == 0);
    say(program, NULL, variable, library, text, sizeof text);
    CHECK_STR_CONTAINS(text, "plain BH_OK");
    CHECK(access(told, F_OK) == 0);
    unlink(told);

    REQUIRE(chmod(program, 06755) == 0);
    for (int for_good = 0; for_good < 2; for_good++) {
        say(program, for_good ? "for good" : NULL, variable, library, text, sizeof text);
        if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
        CHECK_STR_CONTAINS(text, "secure BH_OK");
        CHECK(access(told, F_OK) != 0);
    }
}

/* ---- compiling ---- */

/* A script in the folder, which anybody can run. */
static void write_script(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    REQUIRE(fputs(text, file) >= 0);
    REQUIRE_EQ(fclose(file), 0);
    REQUIRE_EQ(chmod(path, 0755), 0);
}

static void prepare_compile(void) {
    prepare_program("compiles");
    REQUIRE(chmod(folder, 0777) == 0);
    test_path(told, sizeof told, "%s/told.txt", folder);
}

static bool is_there(const char *name) {
    char path[128];
    return access(test_path(path, sizeof path, "%s/%s", folder, name), F_OK) == 0;
}

TEST_TIMEOUT(the_environment_names_clang_for_plain_programs_only, 60) {
    char text[2048], clang[128], script[512], path[256];
    prepare_compile();
    test_path(clang, sizeof clang, "%s/clang-39", workers);
    test_path(script, sizeof script, "#!/bin/sh\necho was here >> %s\n", told);
    write_script(clang, script);
    test_path(path, sizeof path, "%s:/usr/bin:/bin", workers);
    REQUIRE(chmod(program, 0755) == 0);
    say(program, NULL, "PATH", path, text, sizeof text);
    CHECK_STR_CONTAINS(text, "plain");
    CHECK(is_there("told.txt"));
    unlink(told);

    REQUIRE(chmod(program, 06755) == 0);
    for (int for_good = 0; for_good < 2; for_good++) {
        say(program, for_good ? "for-good" : NULL, "PATH", path, text, sizeof text);
        if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
        CHECK_STR_CONTAINS(text, "secure");
        CHECK(!is_there("told.txt"));
    }
}

/* A bulkhead-compiler that writes down what it is given; the program itself says where it is. */
TEST_TIMEOUT(compilers_get_no_variable_that_names_a_file_from_privileged_programs, 60) {
    static const char *const names[] = {"HOME",        "CUDA_HOME",    "CUDA_PATH",
                                        "VIRTUAL_ENV", "CONDA_PREFIX", "BULKHEAD_CACHE_DIR"};
    char text[2048], compiler[128], script[512], line[128];
    prepare_compile();
    test_path(compiler, sizeof compiler, "%s/bulkhead-compiler", workers);
    test_path(script, sizeof script, "#!/bin/sh\nenv > %s\n", told);
    write_script(compiler, script);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) setenv(names[i], folder, 1);
    setenv("SECRET", "of the application", 1);
    for (int privileged = 0; privileged < 2; privileged++) {
        REQUIRE(chmod(program, privileged ? 06755 : 0755) == 0);
        say(program, workers, "TMPDIR", folder, text, sizeof text);
        if (privileged && strncmp(text, "plain", 5) == 0)
            SKIP("this system does not honour set-user-ID");
        REQUIRE(is_there("told.txt"));
        char *environment = test_read_file(told, NULL);
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            test_path(line, sizeof line, "%s=%s", names[i], folder);
            CHECK_EQ(strstr(environment, line) != NULL, !privileged);
        }
        CHECK(strstr(environment, "SECRET") == NULL);
        CHECK(strstr(environment, "TMPDIR") == NULL);
        if (privileged) CHECK_STR_CONTAINS(environment, "PATH=/usr/local/bin:/usr/bin:/bin\n");
        free(environment);
        unlink(told);
    }
}

TEST_TIMEOUT(the_environment_names_the_cache_for_plain_programs_only, 60) {
    static const char *const names[] = {"HOME", "XDG_CACHE_HOME", "BULKHEAD_CACHE_DIR"};
    char text[2048], cache[128];
    prepare_compile();
    test_path(cache, sizeof cache, "%s/cache", folder);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        for (size_t other = 0; other < sizeof names / sizeof *names; other++)
            unsetenv(names[other]);
        REQUIRE(chmod(program, 0755) == 0);
        say(program, NULL, names[i], cache, text, sizeof text);
        CHECK(is_there("cache"));
        char command[256];
        snprintf(command, sizeof command, "rm -rf '%s'", cache);
        REQUIRE_EQ(system(command), 0);
        REQUIRE(chmod(program, 06755) == 0);
        say(program, NULL, names[i], cache, text, sizeof text);
        if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
        CHECK(!is_there("cache"));
        CHECK_STR_CONTAINS(text, "privileged");
    }
}

TEST_TIMEOUT(privileged_programs_cannot_lift_the_confinement_of_compilers, 60) {
    char text[2048];
    prepare_compile();
    for (int privileged = 0; privileged < 2; privileged++) {
        REQUIRE(chmod(program, privileged ? 06755 : 0755) == 0);
        say(program, "unconfined", "HOME", folder, text, sizeof text);
        if (privileged && strncmp(text, "plain", 5) == 0)
            SKIP("this system does not honour set-user-ID");
        CHECK_EQ(strstr(text, "BH_COMPILE_UNCONFINED") != NULL, privileged);
    }
}

/* Linked into a folder of the caller's, beside other programs: these are not used. The library is
 * part of the program here. */
TEST_TIMEOUT(programs_beside_a_privileged_one_are_used_only_if_they_are_safe, 60) {
    char text[2048], compiler[128], script[512];
    prepare_program("compiles_static");
    unsetenv("BULKHEAD_WORKER_DIR");
    REQUIRE(chmod(folder, 0777) == 0);
    test_path(told, sizeof told, "%s/told.txt", folder);
    test_path(compiler, sizeof compiler, "%s/bulkhead-compiler", folder);
    test_path(script, sizeof script, "#!/bin/sh\necho was here > %s\n", told);
    write_script(compiler, script);
    for (int privileged = 0; privileged < 2; privileged++) {
        REQUIRE(chmod(program, privileged ? 06755 : 0755) == 0);
        say(program, NULL, "HOME", folder, text, sizeof text);
        if (privileged && strncmp(text, "plain", 5) == 0)
            SKIP("this system does not honour set-user-ID");
        CHECK_EQ(is_there("told.txt"), !privileged);
        if (privileged) CHECK_STR_CONTAINS(text, "which a privileged program requires");
        unlink(told);
    }
}

/* Which folder it would use is the caller's choice, and so is whether. */
TEST(only_plain_programs_show_their_devices) {
    char text[1024], here[600], run[100], made[120], shared[64];
    prepare();
    setenv("BULKHEAD_WORKER_DIR", test_path(here, sizeof here, "%s/bin", test_build_dir()), 1);
    test_path(run, sizeof run, "%s/run", folder);
    test_path(made, sizeof made, "%s/bulkhead", run);
    snprintf(shared, sizeof shared, "/tmp/bulkhead-%d", OWNER);
    bool was_there = access(shared, F_OK) == 0;
    REQUIRE(mkdir(run, 0777) == 0 && chmod(run, 0777) == 0 && chmod(program, 04755) == 0);
    say(program, NULL, "BULKHEAD_RUNTIME_DIR", run, text, sizeof text);
    if (strncmp(text, "plain", 5) == 0) SKIP("this system does not honour set-user-ID");
    CHECK_STR_CONTAINS(text, "secure BH_OK");
    CHECK_EQ(access(made, F_OK), -1);
    CHECK(was_there || access(shared, F_OK) == -1);

    REQUIRE(chmod(program, 0755) == 0);
    say(program, NULL, "BULKHEAD_RUNTIME_DIR", run, text, sizeof text);
    CHECK_STR_CONTAINS(text, "plain BH_OK");
    CHECK_EQ(access(made, F_OK), 0);
}
