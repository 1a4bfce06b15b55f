/* SPDX-License-Identifier: Apache-2.0 */
/* In place of libbulkhead-jit.so, for bulkhead-compiler: an LLVM that a kernel's text has taken
 * over. BULKHEAD_TEST_MAD says what it does; what it achieved is in the kernel's note. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit/jit.h"

static bool open_library(char *name, size_t name_size, char *why, size_t size) {
    (void)why, (void)size;
    snprintf(name, name_size, "LLVM 19.0.0");
    return true;
}

/* The files that can be opened, read or made. */
static void try_files(char *note, size_t size) {
    static const char *const files[] = {"/etc/passwd", "/etc/os-release", "/proc/self/maps",
                                        "/usr/lib",    "/dev/null",       "/"};
    size_t used = (size_t)snprintf(note, size, "opened:");
    for (size_t i = 0; i < sizeof files / sizeof *files && used < size; i++)
        if (open(files[i], O_RDONLY | O_CLOEXEC) >= 0)
            used += (size_t)snprintf(note + used, size - used, " %s", files[i]);
    if (used < size && open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600) >= 0)
        used += (size_t)snprintf(note + used, size - used, " a new file");
    if (used < size && mkdir("/tmp/bulkhead-mad", 0700) == 0)
        snprintf(note + used, size - used, " a new folder");
}

static void try_code(char *note, size_t size) {
    void *both = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    bool later = data != MAP_FAILED && mprotect(data, 4096, PROT_READ | PROT_EXEC) == 0;
    snprintf(note, size, "executable: %s%s", both != MAP_FAILED ? "mapped " : "",
             later ? "protected" : "");
}

static void take_all_memory(char *note, size_t size) {
    unsigned mib = 0;
    while (mib < 1 << 16 && malloc((size_t)64 << 20)) mib += 64;
    snprintf(note, size, "took %u MiB", mib);
}

/* Code that would begin behind its end. */
static void lie(bh__jit_result *out) {
    out->bytes = 64;
    out->image = malloc(out->bytes);
    if (out->image) memset(out->image, 0xcc, out->bytes);
    out->entry = 1 << 20;
}

static void compile(const bh__jit_request *request, bh__jit_result *out) {
    const char *what = getenv("BULKHEAD_TEST_MAD");
    (void)request;
    memset(out, 0, sizeof *out);
    snprintf(out->note, sizeof out->note, "nothing was tried");
    if (!what) return;
    if (strcmp(what, "files") == 0) try_files(out->note, sizeof out->note);
    if (strcmp(what, "code") == 0) try_code(out->note, sizeof out->note);
    if (strcmp(what, "program") == 0) execl("/bin/true", "true", (char *)NULL);
    if (strcmp(what, "process") == 0 && fork() == 0) _exit(0);
    if (strcmp(what, "socket") == 0) (void)socket(AF_UNIX, SOCK_STREAM, 0);
    if (strcmp(what, "crash") == 0) raise(SIGSEGV);
    if (strcmp(what, "memory") == 0) take_all_memory(out->note, sizeof out->note);
    if (strcmp(what, "lies") == 0) lie(out);
    while (strcmp(what, "hangs") == 0) continue;
}

__attribute__((visibility("default"))) const bh__jit_interface bh__jit_library = {
    .version = BH__JIT_VERSION, .open = open_library, .compile = compile};
