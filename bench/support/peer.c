/* SPDX-License-Identifier: Apache-2.0 */
/* A peer in a process of its own that measures when it is asked to. */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figures.h"

enum { PATIENCE_MS = 60000 };
extern char **environ;

static void beside(const char *program, char path[PATH_MAX]) {
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0) bench_wrong("/proc/self/exe: %s", strerror(errno));
    path[length] = '\0';
    char *name = strrchr(path, '/') + 1;
    if ((size_t)(path + PATH_MAX - name) <= strlen(program)) bench_wrong("%s: too long", path);
    strcpy(name, program);
}

static void read_line(bench_peer *peer, char *line, size_t size) {
    struct pollfd ready = {.fd = fileno(peer->answers), .events = POLLIN};
    if (poll(&ready, 1, PATIENCE_MS) == 0)
        bench_wrong("the peer has said nothing for %d s", PATIENCE_MS / 1000);
    if (!fgets(line, (int)size, peer->answers)) bench_wrong("the peer has ended");
    line[strcspn(line, "\n")] = '\0';
}

bool bench_peer_start(bench_peer *peer, const char *program, const char *device) {
    char path[PATH_MAX], line[1024];
    beside(program, path);
    int to[2], from[2];
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        bench_wrong("pipe2: %s", strerror(errno));
    char *arguments[] = {path, (char *)"-s", (char *)"-d", (char *)device, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    int failed = posix_spawn(&peer->pid, path, &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failed) bench_wrong("%s: %s", path, strerror(failed));
    close(to[0]);
    close(from[1]);
    peer->ask = fdopen(to[1], "w");
    peer->answers = fdopen(from[0], "r");
    if (!peer->ask || !peer->answers) bench_wrong("fdopen: %s", strerror(errno));
    setvbuf(peer->ask, NULL, _IOLBF, 0);
    read_line(peer, line, sizeof line);
    puts(line);
    return strncmp(line, "skipped:", 8) != 0;
}

double bench_peer_measure(bench_peer *peer, const char *name) {
    char line[256];
    double value;
    size_t length = strlen(name);
    fprintf(peer->ask, "%s\n", name);
    read_line(peer, line, sizeof line);
    if (strncmp(line, name, length) != 0 || sscanf(line + length, " %lf", &value) != 1)
        bench_wrong("asked for %s, the peer said: %s", name, line);
    return value;
}

void bench_peer_end(bench_peer *peer) {
    fclose(peer->ask);
    fclose(peer->answers);
    int status;
    while (waitpid(peer->pid, &status, 0) < 0 && errno == EINTR) continue;
    if (status != 0) bench_wrong("the peer ended with status %d", status);
}
