/* SPDX-License-Identifier: Apache-2.0 */
/* The rest of what the sources ask of the system. There are no files here but the programs that the
 * library looks for. */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "heap.h"
#include "objects.h"
#include "process.h"

static int refuse(int error) {
    errno = error;
    return -1;
}

/* ---- refused memory ---- */

static unsigned refuse_in;
static bool refuse_workers_only;

void sim_refuse_memory(unsigned in, bool workers_only) {
    refuse_in = in;
    refuse_workers_only = workers_only;
}

bool sim_refuses(void) {
    if (!refuse_in || !sim_exploring || !sim_current) return false;
    if (refuse_workers_only && sim_current->process == 0) return false;
    return sim_random() % refuse_in == 0;
}

/* ---- who am I ---- */

pid_t sim_os_getpid(void);
pid_t sim_os_getpid(void) {
    return sim_process_pid(sim_current ? sim_current->process : 0);
}
pid_t sim_os_gettid(void);
pid_t sim_os_gettid(void) {
    return sim_current->id;
}
void sim_os__exit(int code);
void sim_os__exit(int code) {
    sim_process_exit(code);
}
void sim_os_exit(int code);
void sim_os_exit(int code) {
    sim_process_exit(code);
}
int sim_os_unshare(int flags);
int sim_os_unshare(int flags) {
    (void)flags;
    return 0;
}
long sim_os_syscall(long number, ...);
long sim_os_syscall(long number, ...) {
    if (number != SYS_close_range) return refuse(ENOSYS);
    va_list list;
    va_start(list, number);
    unsigned first = va_arg(list, unsigned), last = va_arg(list, unsigned);
    va_end(list);
    if (last == ~0u) sim_fd_keep_for_thread((int)first - 1);
    return 0;
}
int sim_os_prctl(int option, ...);
int sim_os_prctl(int option, ...) {
    (void)option;
    return 0;
}
int sim_os_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set);
int sim_os_sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
    (void)pid, (void)bytes, (void)set;
    errno = ENOSYS; /* sysconf knows */
    return -1;
}
long sim_os_sysconf(int name);
long sim_os_sysconf(int name) {
    return name == _SC_NPROCESSORS_ONLN ? 2 : sysconf(name);
}
ssize_t sim_os_getrandom(void *to, size_t bytes, unsigned flags);
ssize_t sim_os_getrandom(void *to, size_t bytes, unsigned flags) {
    (void)flags;
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)to)[i] = (uint8_t)sim_random();
    return (ssize_t)bytes;
}
char *sim_os_secure_getenv(const char *name);
char *sim_os_secure_getenv(const char *name) {
    (void)name;
    return NULL;
}

/* ---- signals: none are ever pending ---- */

int sim_os_sigpending(sigset_t *set);
int sim_os_sigpending(sigset_t *set) {
    return sigemptyset(set);
}
/* Dispositions have nothing to decide. */
sighandler_t sim_os_signal(int number, sighandler_t handler);
sighandler_t sim_os_signal(int number, sighandler_t handler) {
    (void)number;
    (void)handler;
    return SIG_DFL;
}
int sim_os_sigtimedwait(const sigset_t *set, siginfo_t *info, const void *time);
int sim_os_sigtimedwait(const sigset_t *set, siginfo_t *info, const void *time) {
    (void)set, (void)info, (void)time;
    return refuse(EAGAIN);
}
int sim_os_sigaction(int number, const struct sigaction *action, struct sigaction *before);
int sim_os_sigaction(int number, const struct sigaction *action, struct sigaction *before) {
    (void)number, (void)action, (void)before;
    return 0;
}
int sim_os_raise(int number);
int sim_os_raise(int number) {
    (void)number;
    return 0;
}

/* ---- files ---- */

int sim_os_access(const char *path, int mode);
int sim_os_access(const char *path, int mode) {
    (void)mode;
    return strstr(path, "bulkhead-worker-") ? 0 : refuse(ENOENT);
}
int sim_os_open(const char *path, int flags, ...);
int sim_os_open(const char *path, int flags, ...) {
    (void)path, (void)flags;
    return refuse(ENOENT);
}
FILE *sim_os_fopen(const char *path, const char *mode);
FILE *sim_os_fopen(const char *path, const char *mode) {
    (void)path, (void)mode;
    errno = ENOENT;
    return NULL;
}
int sim_os_ioctl(int fd, unsigned long request, ...);
int sim_os_ioctl(int fd, unsigned long request, ...) {
    (void)fd, (void)request;
    return refuse(ENOTTY);
}

/* Text that grows. The C library allocates it; when it is closed it becomes a block of the
 * simulated heap. */
static struct growing {
    FILE *file;
    char **out;
    size_t *out_length;
} growing[16];

static struct growing *growing_of(const FILE *file) {
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
        if (growing[i].file == file) return &growing[i];
    return NULL;
}

FILE *sim_os_open_memstream(char **out, size_t *out_length);
FILE *sim_os_open_memstream(char **out, size_t *out_length) {
    struct growing *self = growing_of(NULL);
    if (!self) sim_fail(SIM_UNSUPPORTED, "too many growing texts");
    if (sim_refuses()) {
        errno = ENOMEM;
        return NULL;
    }
    *self = (struct growing){open_memstream(out, out_length), out, out_length};
    return self->file;
}
int sim_os_fclose(FILE *file);
int sim_os_fclose(FILE *file) {
    struct growing *self = growing_of(file);
    if (!self) sim_fail(SIM_UNSUPPORTED, "there are no files to close");
    int failed = fclose(file);
    char *text = *self->out, *copy = sim_os_malloc(*self->out_length + 1);
    if (copy) memcpy(copy, text, *self->out_length + 1);
    free(text);
    *self->out = copy;
    self->file = NULL;
    return copy ? failed : EOF;
}

/* On standard error, what a worker says to whoever reads its pipe. */
int sim_os_fprintf(FILE *to, const char *format, ...);
int sim_os_fprintf(FILE *to, const char *format, ...) {
    char text[512];
    va_list list;
    va_start(list, format);
    int length =
        to == stderr ? vsnprintf(text, sizeof text, format, list) : vfprintf(to, format, list);
    va_end(list);
    if (to == stderr && sim_object_of(sim_current->process, 2))
        sim_os_write(2, text, (size_t)length < sizeof text ? (size_t)length : sizeof text);
    return length;
}

/* Nothing that is simulated comes here: a run that does ends, and says so. */
#define REFUSED(name)                                                                              \
    void sim_os_##name(void);                                                                      \
    void sim_os_##name(void) {                                                                     \
        sim_fail(SIM_UNSUPPORTED, "%s is not simulated: see core/system.c", #name);                \
    }
REFUSED(alarm)
REFUSED(closedir)
REFUSED(dlopen)
REFUSED(dlclose)
REFUSED(faccessat)
REFUSED(fchmod)
REFUSED(fdopendir)
REFUSED(fgets)
REFUSED(flock)
REFUSED(fstatat)
REFUSED(fstatvfs)
REFUSED(getcwd)
REFUSED(mkdir)
REFUSED(openat)
REFUSED(opendir)
REFUSED(posix_spawn)
REFUSED(pthread_cancel)
REFUSED(readdir)
REFUSED(renameat)
REFUSED(stat)
REFUSED(unlinkat)
REFUSED(utimensat)
REFUSED(waitid)
REFUSED(waitpid)
