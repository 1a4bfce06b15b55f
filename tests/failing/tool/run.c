/* SPDX-License-Identifier: Apache-2.0 */
/* One run: the scenario without a failure, with it, and without it again; then what is held is
 * compared. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "balance.h"

const char *const process_names[PROCESS_KINDS] = {"application", "worker", "compiler"};
const char *const class_names[CALLS_CLASSES] = {"allocate", "map",  "descriptor", "thread", "spawn",
                                                "socket",   "read", "write",      "file"};

enum { MAX_SECONDS = 90 };

void plan_print(const plan *p) {
    printf("failing-calls run %s %s %s %llu %s\n", p->scenario->name, process_names[p->process],
           class_names[p->calls], (unsigned long long)p->n, p->mode == FAIL_ONCE ? "once" : "on");
}

/* ---- in the process of the run ---- */

static void prepare(world *w, const scenario *s) {
    if (s->prepare) s->prepare(w);
}

static void act(world *w, const scenario *s) {
    w->pass++;
    s->act(w);
}

/* The device works, or says that it is stopped and why. While it starts a worker it is neither. */
static bool is_stopped(world *w) {
    bh_health health = BH_INIT(health);
    for (int i = 0; i < 3000; i++) {
        if (!w->open || !TRY(w, bh_device_get_health(w->device, &health))) return true;
        if (health.state != BH_HEALTH_REPLACING) break;
        nanosleep(&(struct timespec){.tv_nsec = 5 * MS}, NULL);
    }
    if (health.state == BH_HEALTH_STOPPED) HOLDS(w, health.reason[0]);
    return health.state == BH_HEALTH_STOPPED;
}

static void act_failing(world *w, const plan *p, failing_page *page) {
    w->clean = false;
    w->deaf = p->mode == FAIL_ON && (p->calls == CALLS_READ || p->calls == CALLS_WRITE);
    atomic_store(&page->armed, true);
    act(w, p->scenario);
    atomic_store(&page->armed, false);
    w->clean = true;
    w->deaf = false;
}

static void finish(world *w, const scenario *s) {
    world_close(w);
    if (s->tidy) s->tidy(w);
}

static bool run(const plan *p, failing_page *page, const char *folder) {
    world w = {.clean = true};
    snprintf(w.folder, sizeof w.folder, "%s", folder);
    prepare(&w, p->scenario);
    act(&w, p->scenario); /* what is kept from the first time on is there now */
    finish(&w, p->scenario);
    balance before = balance_take(page, 1);
    w.kept = 0;
    prepare(&w, p->scenario);
    act_failing(&w, p, page);
    if (is_stopped(&w)) {
        world_close(&w);
        prepare(&w, p->scenario);
    }
    act(&w, p->scenario);
    finish(&w, p->scenario);
    before.blocks += w.kept;
    balance after = balance_take(page, before.threads);
    balance_compare(&w, &before, &after);
    return !w.defect;
}

/* ---- in the process that starts it ---- */

void slot_make(slot *s, unsigned number) {
    memset(s, 0, sizeof *s);
    const char *tmp = getenv("BULKHEAD_TEST_TMP");
    snprintf(s->folder, sizeof s->folder, "%.150s/failing-%d-%u", tmp ? tmp : "/tmp", (int)getpid(),
             number);
    snprintf(s->output, sizeof s->output, "%s.txt", s->folder);
    s->page_fd = memfd_create("failing-page", 0);
    if (ftruncate(s->page_fd, sizeof *s->page) < 0) abort();
    s->page = mmap(NULL, sizeof *s->page, PROT_READ | PROT_WRITE, MAP_SHARED, s->page_fd, 0);
    if (s->page == MAP_FAILED) abort();
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place) {
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

static void clear_folder(const slot *s) {
    (void)nftw(s->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

void slot_remove(slot *s) {
    clear_folder(s);
    unlink(s->output);
}

_Noreturn static void become(slot *s, pid_t parent) {
    char path[64];
    int out = open(s->output, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(out, 1);
    dup2(out, 2);
    setvbuf(stdout, NULL, _IONBF, 0);
    setpgid(0, 0);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)parent, s->page_fd);
    setenv(FAILING_PAGE, path, 1);
    failing_use(s->page);
    exit(run(&s->plan, s->page, s->folder) ? 0 : 1);
}

void slot_start(slot *s, const plan *p) {
    clear_folder(s);
    if (mkdir(s->folder, 0700) < 0) abort();
    memset(s->page, 0, sizeof *s->page);
    s->plan = *p;
    s->page->process = p->process;
    s->page->calls = p->calls;
    s->page->mode = p->mode;
    s->page->n = p->n;
    s->begun = (uint64_t)time(NULL);
    fflush(stdout);
    pid_t parent = getpid();
    s->pid = fork();
    if (s->pid < 0) abort();
    if (s->pid == 0) become(s, parent);
}

static void print_output(const slot *s) {
    char line[2048];
    FILE *file = fopen(s->output, "r");
    while (file && fgets(line, sizeof line, file)) fputs(line, stdout);
    if (file) fclose(file);
}

static bool wait_for_end(const slot *s, int *status) {
    for (;;) {
        pid_t ended = waitpid(s->pid, status, WNOHANG);
        if (ended == s->pid) return true;
        if ((uint64_t)time(NULL) > s->begun + MAX_SECONDS * TIME_SCALE) return false;
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
}

/* Lets a person look at a process that hangs: FAILING_HOLD=1. */
static void end_hanging(const slot *s, int *status) {
    printf("  hangs: process %d\n", (int)s->pid);
    while (getenv("FAILING_HOLD")) pause();
    kill(s->pid, SIGABRT);
    waitpid(s->pid, status, 0);
}

outcome slot_end(slot *s) {
    int status = 0;
    bool ended = wait_for_end(s, &status);
    bool good = ended && status == 0;
    if (!good) {
        plan_print(&s->plan);
        if (s->page->name[0])
            printf("  first to fail: %s, called at 0x%llx; %llu failed\n", s->page->name,
                   (unsigned long long)s->page->caller, (unsigned long long)s->page->failed);
    }
    if (!ended) end_hanging(s, &status);
    if (!good && WIFSIGNALED(status)) printf("  crashed: %s\n", strsignal(WTERMSIG(status)));
    if (!good) print_output(s);
    s->pid = 0;
    return good ? RUN_GOOD : RUN_DEFECT;
}
