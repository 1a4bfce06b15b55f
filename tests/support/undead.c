/* SPDX-License-Identifier: Apache-2.0 */
#include "undead.h"

#include <dirent.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

/* A thread of the process that is not its first; 0: there is none. */
static pid_t some_thread(pid_t process) {
    char path[64];
    DIR *dir = opendir(test_path(path, sizeof path, "/proc/%d/task", (int)process));
    REQUIRE(dir != NULL);
    pid_t found = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread > 0 && thread != process) found = thread;
    }
    closedir(dir);
    return found;
}

pid_t undead_hold(bh_device device) {
    pid_t thread = some_thread(health_of(device).worker_pid);
    if (thread == 0) SKIP("the worker has one thread");
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
        SKIP("threads of a worker cannot be traced here: %s", strerror(errno));
    return thread;
}

void undead_let_go(pid_t thread) {
    int status;
    while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status))
        REQUIRE(ptrace(PTRACE_CONT, thread, NULL, NULL) == 0);
}
