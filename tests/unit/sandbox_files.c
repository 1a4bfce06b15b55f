/* SPDX-License-Identifier: Apache-2.0 */
/* src/sandbox/files: what a confined process can still reach, and what not. Each in a child. */
#include "sandbox/files.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

enum { NETWORK_ABI = 4, SCOPE_ABI = 6 };

static char inside[600], outside[600], workshop[600];

static void write_file(const char *folder, const char *name) {
    char path[700];
    FILE *file = fopen(test_path(path, sizeof path, "%s/%s", folder, name), "w");
    REQUIRE(file != NULL);
    fputs("text", file);
    fclose(file);
}

static void make_folder(char out[600], const char *name) {
    test_path(out, 600, "%s/%s", test_tmp_dir(), name);
    REQUIRE(mkdir(out, 0700) == 0);
    write_file(out, "file");
}

static void prepare(int needed) {
    int abi = bh__sandbox_files_abi();
    if (abi < needed) SKIP("Landlock ABI %d is needed, and this kernel has %d", needed, abi);
    make_folder(inside, "inside");
    make_folder(outside, "outside");
    make_folder(workshop, "workshop");
}

/* errno of opening it; 0: it can be opened. */
static int try_open(const char *folder, const char *name, int flags) {
    char path[700];
    int fd = open(test_path(path, sizeof path, "%s/%s", folder, name), flags | O_CLOEXEC, 0600);
    if (fd < 0) return errno;
    close(fd);
    return 0;
}

static int confine(void) {
    const bh__sandbox_path paths[] = {{inside, false},    {"/there/is/no/such/path", true},
                                      {workshop, true},   {"/usr", false},
                                      {"/lib", false},    {"/lib64", false},
                                      {"/dev/null", true}};
    return bh__sandbox_files(paths, sizeof paths / sizeof *paths);
}

/* Runs `body` in a child that is confined; the exit status is the number of the check that
 * failed. */
static void run_confined(int (*body)(void)) {
    fflush(stdout);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(confine() == 0 ? body() : 100);
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}

static int check_files(void) {
    if (try_open(inside, "file", O_RDONLY) != 0) return 1;
    if (try_open(inside, "file", O_WRONLY) != EACCES) return 2;
    if (try_open(inside, "new", O_WRONLY | O_CREAT) != EACCES) return 3;
    if (try_open(outside, "file", O_RDONLY) != EACCES) return 4;
    if (try_open(outside, "new", O_WRONLY | O_CREAT) != EACCES) return 5;
    if (try_open("/etc", "passwd", O_RDONLY) != EACCES) return 6;
    if (try_open("/etc", "", O_RDONLY | O_DIRECTORY) != EACCES) return 7;
    if (try_open(workshop, "new", O_RDWR | O_CREAT) != 0) return 8;
    if (try_open("/dev", "null", O_RDWR) != 0) return 9;
    return 0;
}

TEST(files_inside_are_reached_and_others_are_not) {
    prepare(1);
    run_confined(check_files);
    CHECK_EQ(try_open(outside, "file", O_RDONLY), 0); /* the parent is as free as before */
}

static int check_escapes(void) {
    char from[700], to[700], memory[64];
    snprintf(from, sizeof from, "%s/file", outside);
    snprintf(to, sizeof to, "%s/way-out", workshop);
    if (symlink(from, to) != 0) return 1;
    if (try_open(workshop, "way-out", O_RDONLY) != EACCES) return 2;
    if (try_open(workshop, "../outside/file", O_RDONLY) != EACCES) return 3;
    snprintf(to, sizeof to, "%s/linked", workshop);
    if (link(from, to) == 0) return 4;
    if (rename(from, to) == 0) return 5;
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) return 6;
    /* Memory without a name is nobody's secret, also by its name in /proc. */
    int fd = memfd_create("memory", MFD_CLOEXEC);
    snprintf(memory, sizeof memory, "%d", fd);
    if (fd < 0 || try_open("/proc/self/fd", memory, O_RDWR) != 0) return 7;
    return 0;
}

TEST(no_link_and_no_rename_leads_outside) {
    prepare(2);
    run_confined(check_escapes);
}

static int check_children(void) {
    pid_t child = fork();
    if (child == 0) {
        char path[700];
        snprintf(path, sizeof path, "%s/file", outside);
        execl("/usr/bin/cat", "cat", path, (char *)NULL);
        _exit(50);
    }
    int status;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
    return WEXITSTATUS(status) == 1 ? 0 : 2; /* cat: permission denied */
}

TEST(a_program_that_is_started_is_confined_too) {
    prepare(1);
    if (access("/usr/bin/cat", X_OK) != 0) SKIP("there is no /usr/bin/cat");
    run_confined(check_children);
}

static int check_execution(void) {
    char path[700];
    snprintf(path, sizeof path, "%s/file", workshop);
    chmod(path, 0700);
    execl(path, path, (char *)NULL);
    return errno == EACCES ? 0 : 1;
}

TEST(what_can_be_written_cannot_be_executed) {
    prepare(1);
    run_confined(check_execution);
}

static int listener;

static int check_network(void) {
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    if (getsockname(listener, (struct sockaddr *)&address, &size) != 0) return 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 2;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != EACCES) return 3;
    address.sin_port = 0;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno != EACCES) return 4;
    return 0;
}

TEST(tcp_is_refused) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    prepare(NETWORK_ABI);
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1) != 0)
        SKIP("no TCP here: %s", strerror(errno));
    run_confined(check_network);
}

static struct sockaddr_un abstract = {.sun_family = AF_UNIX};

static int check_scope(void) {
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return 1;
    if (connect(fd, (struct sockaddr *)&abstract, sizeof abstract) == 0 || errno != EPERM) return 2;
    if (kill(getppid(), 0) == 0 || errno != EPERM) return 3;
    return kill(getpid(), 0) == 0 ? 0 : 4;
}

TEST(abstract_sockets_and_signals_to_outside_are_refused) {
    prepare(SCOPE_ABI);
    snprintf(abstract.sun_path + 1, sizeof abstract.sun_path - 1, "bulkhead-test-%d", getpid());
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(bind(fd, (struct sockaddr *)&abstract, sizeof abstract) == 0 && listen(fd, 1) == 0);
    run_confined(check_scope);
    close(fd);
}
