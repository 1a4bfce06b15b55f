/* SPDX-License-Identifier: Apache-2.0 */
/* Starting bulkhead-compiler for tests. */
#include "compiler.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

static bh__arena arena;
static bh__compiler_found found_compilers[32]; /* by number */

bh__bytes text(const char *from) {
    return (bh__bytes){(const uint8_t *)from, strlen(from)};
}

char *keep(const char *from) {
    char *copy = bh__arena_copy(&arena, from, strlen(from));
    REQUIRE(copy != NULL);
    return copy;
}

bh__compile_job source_job(uint32_t compiler, const char *source) {
    return (bh__compile_job){.op = BH__COMPILE_SOURCE,
                             .compiler = compiler,
                             .output = BH_OUTPUT_PTX,
                             .standard = 17,
                             .memory_limit = (uint64_t)8 << 30,
                             .time_limit_ns = 60 * BH__NS_PER_S,
                             .arch = text("sm_80"),
                             .name = text("source.cu"),
                             .compiler_path = found_compilers[compiler].path,
                             .source = text(source)};
}

started start_job(const bh__compile_job *job) {
    char program[4096];
    test_path(program, sizeof program, "%s/bin/bulkhead-compiler", test_build_dir());
    int input = bh__compile_job_write(job);
    started s = {.answer = memfd_create("answer", MFD_CLOEXEC | MFD_ALLOW_SEALING),
                 .errors = memfd_create("errors", MFD_CLOEXEC),
                 .since = bh__now_ns()};
    REQUIRE(input >= 0 && s.answer >= 0 && s.errors >= 0);
    /* Out of the way of 3 and 4. */
    int high = fcntl(input, F_DUPFD_CLOEXEC, 100), answer = fcntl(s.answer, F_DUPFD_CLOEXEC, 100),
        errors = fcntl(s.errors, F_DUPFD_CLOEXEC, 100);
    s.pid = fork();
    REQUIRE(s.pid >= 0);
    if (s.pid == 0) {
        if (dup2(high, BH__COMPILE_JOB_FD) < 0 || dup2(answer, BH__COMPILE_ANSWER_FD) < 0 ||
            dup2(errors, 2) < 0)
            _exit(99);
        execl(program, program, (char *)NULL);
        _exit(98);
    }
    close(high);
    close(answer);
    close(errors);
    close(input);
    return s;
}

outcome finish_job(started *s) {
    outcome o = {0};
    while (waitpid(s->pid, &o.status, 0) < 0) REQUIRE_EQ(errno, EINTR);
    o.took_ns = bh__now_ns() - s->since;
    if (WIFEXITED(o.status) && WEXITSTATUS(o.status) == 0)
        o.answered = bh__compile_answer_read(s->answer, &arena, &o.answer);
    struct stat info;
    REQUIRE(fstat(s->errors, &info) == 0);
    o.printed = bh__arena_alloc(&arena, (size_t)info.st_size + 1, 1);
    REQUIRE(o.printed != NULL);
    REQUIRE_EQ(pread(s->errors, o.printed, (size_t)info.st_size, 0), info.st_size);
    close(s->answer);
    close(s->errors);
    return o;
}

outcome run_job(const bh__compile_job *job) {
    started s = start_job(job);
    return finish_job(&s);
}

void explain_outcome(const outcome *o, bh_status expected, const char *file, int line) {
    if (!o->answered)
        test_fail(file, line, "no answer: status 0x%x, printed: %s", (unsigned)o->status,
                  o->printed);
    else if (o->answer.error.status != expected)
        test_fail(file, line, "status %d: %s\nFix: %s\n%s", o->answer.error.status,
                  o->answer.error.message, o->answer.error.fix,
                  o->answer.log.count ? (const char *)o->answer.log.data : "");
}

void need_compiler(uint32_t compiler) {
    bh__compile_job job = {.op = BH__COMPILE_PROBE,
                           .memory_limit = (uint64_t)8 << 30,
                           .time_limit_ns = 60 * BH__NS_PER_S};
    outcome o = run_job(&job);
    REQUIRE_ANSWER(o, BH_OK);
    for (size_t i = 0; i < o.answer.found_count; i++) {
        const bh__compiler_found *found = &o.answer.found[i];
        if (found->compiler == compiler && !found->usable)
            SKIP("%s", (const char *)found->why.data);
        if (found->compiler == compiler) {
            found_compilers[compiler] = *found;
            return;
        }
    }
    REQUIRE(false);
}

const char *own_folder(void) {
    static char path[4000];
    if (path[0] == 0) {
        test_path(path, sizeof path, "%s/XXXXXX", test_tmp_dir());
        REQUIRE(mkdtemp(path) != NULL);
    }
    return path;
}

char *write_file(const char *name, const char *contents) {
    char path[4096];
    test_path(path, sizeof path, "%s/%s", own_folder(), name);
    for (char *slash = path + strlen(own_folder()) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(path, 0700);
        *slash = '/';
    }
    FILE *file = fopen(path, "w");
    REQUIRE(file != NULL);
    REQUIRE(fputs(contents, file) >= 0);
    REQUIRE_EQ(fclose(file), 0);
    return keep(path);
}

char *run_ptx(const bh__compile_answer *answer, const char *arguments) {
    char command[8192];
    char *path = write_file("run.ptx", (const char *)answer->output.data);
    snprintf(command, sizeof command, "%s/bin/bulkhead run %s -d cpu %s 2>&1", test_build_dir(),
             path, arguments);
    FILE *pipe = popen(command, "r");
    REQUIRE(pipe != NULL);
    char *result = bh__arena_alloc(&arena, 65536, 1);
    REQUIRE(result != NULL);
    size_t used = fread(result, 1, 65535, pipe);
    result[used] = 0;
    pclose(pipe);
    return result;
}

const bh__compile_read *find_read(const bh__compile_answer *answer, const char *path) {
    for (size_t i = 0; i < answer->read_count; i++) {
        if (strcmp((const char *)answer->reads[i].path.data, path) == 0) return &answer->reads[i];
    }
    return NULL;
}
