/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes whose input and output are memory files. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/environment.h"
#include "compiler/compile.h"
#include "sandbox/sandbox.h"

int bh__memory_file(const char *name, bh__bytes bytes, bool inherited) {
    int fd = memfd_create(name, inherited ? 0 : MFD_CLOEXEC);
    if (fd < 0) return -errno;
    for (uint64_t at = 0; at < bytes.count;) {
        ssize_t done = pwrite(fd, bytes.data + at, bytes.count - at, (off_t)at);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) {
            int error = done < 0 ? errno : ENOSPC;
            close(fd);
            return -error;
        }
        at += (uint64_t)done;
    }
    return fd;
}

bh__bytes bh__read_file(bh__arena *arena, int fd) {
    bh__bytes result = {NULL, 0};
    struct stat info;
    if (fstat(fd, &info) != 0 || info.st_size < 0) return result;
    size_t size = (size_t)info.st_size, used = 0;
    uint8_t *data = bh__arena_alloc(arena, size + 1, 1);
    while (data != NULL && used < size) {
        ssize_t done = pread(fd, data + used, size - used, (off_t)used);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return result;
        if (done == 0) break; /* the file was truncated meanwhile */
        used += (size_t)done;
    }
    if (data == NULL) return result;
    data[used] = 0;
    return (bh__bytes){data, used};
}

void bh__die_with(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
}

static bool confined;

void bh__child_confine(void) {
    confined = true;
}

static _Noreturn void become(pid_t parent, const char *const *argv, const int streams[3]) {
    bh__die_with(parent);
    for (int i = 0; i < 3; i++) {
        if (dup2(streams[i], i) < 0) _exit(127);
    }
    const char *path = bh__environment("PATH");
    char search[4096 + 8] = "PATH=/usr/local/bin:/usr/bin:/bin";
    if (path != NULL && strlen(path) < 4096) {
        memcpy(search + 5, path, strlen(path) + 1);
    }
    /* Nothing else: variables that change what a compiler does are not part of a job. */
    char *environment[] = {search, "LC_ALL=C", "TMPDIR=/tmp", NULL};
    if (chdir("/") != 0) _exit(127);
    int result = confined ? bh__sandbox_calls(BH__SANDBOX_OWN_SIGNALS) : 0;
    if (result != 0 && result != -ENOSYS && result != -EINVAL) _exit(127);
    execve(argv[0], (char *const *)argv, environment);
    _exit(127);
}

bool bh__child_run(bh__arena *arena, const char *const *argv, int input, bh__child_end *out) {
    memset(out, 0, sizeof *out);
    bh__bytes nothing = {NULL, 0};
    int streams[3] = {input >= 0 ? input : open("/dev/null", O_RDONLY | O_CLOEXEC),
                      bh__memory_file("output", nothing, false),
                      bh__memory_file("errors", nothing, false)};
    bool ok = streams[0] >= 0 && streams[1] >= 0 && streams[2] >= 0;
    pid_t parent = getpid(), child = ok ? fork() : -1;
    if (child == 0) become(parent, argv, streams);
    ok = child > 0;
    if (ok) {
        int status = 0;
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        out->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        out->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
        out->started = out->exit_code != 127;
        out->output = bh__read_file(arena, streams[1]);
        out->errors = bh__read_file(arena, streams[2]);
        ok = out->output.data != NULL && out->errors.data != NULL;
    }
    for (int i = input >= 0 ? 1 : 0; i < 3; i++) {
        if (streams[i] >= 0) close(streams[i]);
    }
    return ok;
}
