/* SPDX-License-Identifier: Apache-2.0 */
/* Losses of every kind, mixed, under load from many threads, stops and closings included. No answer
 * changes, no byte is wrong, no doubt is lost, nothing hangs, nothing is left over or grows. Ends
 * with 1 if that does not hold. */
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/bench.h"
#include "support/process.h"
#include "support/soak.h"

enum { THREADS = 16, FAILURES_KEPT = 200 };
#define MIB (1024.0 * 1024.0)
/* What a GPU hands out memory by. A leak would show as one for each loss. */
#define GRANULE  (2 * MIB)
#define STUCK_NS (300 * BENCH_MS)

/* What is kept for ever: a status for each ticket that failed, and a list for each lane that had
 * any. */
#define BYTES_PER_FAILURE 16.0
#define BYTES_PER_LANE    256.0

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif
/* Beyond this a call hangs. */
#define HANG_NS ((SANITIZED ? 240 : 60) * BENCH_S)

typedef enum loss_kind {
    KILL_WORKER,
    CRASH_WORKER,
    STOP_WORKER,
    KILL_STANDBY,
    STOP_STANDBY,
    KILL_BOTH,
    STOP_STANDBY_KILL_WORKER,
    BAD_ADDRESS,
    TRAP,
    DEADLINE,
    KILL_BUSY_WORKER,
    KILL_WHILE_PAUSED,
    KINDS
} loss_kind;

static const char *const kind_names[KINDS] = {
    "killed",
    "crashed",
    "stopped",
    "standby_killed",
    "standby_stopped",
    "killed_with_standby",
    "killed_with_standby_stopped",
    "bad_address",
    "trap",
    "deadline",
    "killed_when_busy",
    "killed_while_paused",
};

/* What the application holds while no device is open. */
typedef struct holdings {
    size_t descriptors, children;
    uint64_t anonymous, heap, shared, failures, lanes;
} holdings;

typedef struct soak {
    soak_stage stage;
    soak_thread *threads;
    soak_random random;
    uint64_t losses_wanted, began_ns, end_ns, printed;
    bool shared; /* others take and return the device's memory meanwhile: it is not compared */
    uint64_t eras, stops, losses, made[KINDS];
    _Atomic uint64_t told, from_standby, by_cause[SOAK_STATUSES];
    /* The watcher's: it strikes a worker that has just taken over. */
    _Atomic bool strike;
    _Atomic uint64_t strikes;
    bh_buffer ruin;
    bh_kernel trap;
    _Atomic bool over;
} soak;

/* ---- options ---- */

static uint64_t number_of(const char *name, const char *text) {
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (*text && !*end) return value;
    fprintf(stderr, "error: %s=%s is not a number\nFix: give it as digits, %s=1000\n", name, text,
            name);
    exit(2);
}

/* Takes losses=N, seconds=N, seed=N and shared=N out of the arguments. */
static void take_options(soak *self, int *argc, char **argv, uint64_t *seconds, uint64_t *seed) {
    int kept = 1;
    for (int i = 1; i < *argc; i++) {
        if (strncmp(argv[i], "losses=", 7) == 0)
            self->losses_wanted = number_of("losses", argv[i] + 7);
        else if (strncmp(argv[i], "seconds=", 8) == 0)
            *seconds = number_of("seconds", argv[i] + 8);
        else if (strncmp(argv[i], "seed=", 5) == 0)
            *seed = number_of("seed", argv[i] + 5);
        else if (strncmp(argv[i], "shared=", 7) == 0)
            self->shared = number_of("shared", argv[i] + 7) != 0;
        else
            argv[kept++] = argv[i];
    }
    argv[ *argc = kept] = NULL;
}

/* ---- holdings ---- */

static uint64_t failed_tickets(void) {
    uint64_t failed = 0;
    for (int i = 1; i < SOAK_STATUSES; i++) failed += atomic_load(&soak_verdicts[i]);
    return failed;
}

static uint64_t lanes_opened(const soak *self) {
    uint64_t opened = 0;
    for (uint32_t i = 0; i < THREADS; i++) opened += self->threads[i].lanes_opened;
    return opened;
}

/* What is allocated, to the byte; a sanitizer's own allocator does not say. */
static uint64_t heap_bytes(void) {
    struct mallinfo2 info = mallinfo2();
    return SANITIZED ? 0 : info.uordblks + info.hblkhd;
}

/* With all threads parked. Dead workers are reaped in the background: gives them a moment. */
static holdings holdings_now(const soak *self) {
    for (int i = 0; i < 500 && process_children() > 0; i++) bench_sleep_ns(10 * BENCH_MS);
    return (holdings){.lanes = lanes_opened(self),
                      .heap = heap_bytes(),
                      .descriptors = process_descriptors(),
                      .children = process_children(),
                      .anonymous = process_memory(getpid(), "status", "RssAnon:"),
                      .shared = process_shared_bytes(),
                      .failures = failed_tickets()};
}

/* What a fresh worker finds free on the device. On the CPU device that is the memory of the
 * machine, in which others come and go: 0. */
static uint64_t device_memory_free(void) {
    if (bench_on_cpu()) return 0;
    bh_device device;
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_device_info info = BH_INIT(info);
    BENCH_NEED(bh_device_open(&options, &device));
    BENCH_NEED(bh_device_get_info(device, &info));
    BENCH_NEED(bh_device_close(device));
    return info.memory_free;
}

/* The record of a device stays for the life of the process and is used again. Reading from a
 * stopped device takes a second one: both are made here, before anything is measured. */
static void make_records(void) {
    bh_device devices[2];
    bh_device_options options = bench_options();
    options.flags = BH_DEVICE_NO_STANDBY;
    for (int i = 0; i < 2; i++) BENCH_NEED(bh_device_open(&options, &devices[i]));
    for (int i = 0; i < 2; i++) BENCH_NEED(bh_device_close(devices[i]));
}

/* ---- hangs ---- */

static void *look_for_hangs(void *context) {
    soak *self = context;
    while (!atomic_load(&self->over)) {
        bench_sleep_ns(200 * BENCH_MS);
        uint64_t now = bench_now_ns();
        bool hangs = false;
        for (uint32_t i = 0; i <= THREADS; i++) {
            soak_thread *thread = &self->threads[i];
            uint64_t since = atomic_load(&thread->since_ns);
            if (!since || now < since || now - since < HANG_NS) continue;
            fprintf(stderr, "wrong: thread %u hangs, for %llu s so far, in %s\n", i,
                    (unsigned long long)((now - since) / BENCH_S), atomic_load(&thread->call));
            hangs = true;
        }
        if (!hangs) continue;
        printf("soak.hangs 1 count target<=0 MISS\n");
        fflush(stdout);
        if (getenv("SOAK_HOLD")) pause(); /* for a debugger */
        _exit(1);
    }
    return NULL;
}

/* ---- losses ---- */

/* Signals a process only if it is still our child: its number may have been given to another. */
static bool signal_child(pid_t pid, int number) {
    if (pid <= 0) return false;
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (fd < 0) return false;
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1) parent = 0;
        fclose(file);
    }
    bool sent = parent == getpid() && syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
    close(fd);
    return sent;
}

static void want(soak *self, soak_bad bad) {
    if (atomic_load(&self->stage.wanted[bad]) <= 0) atomic_fetch_add(&self->stage.wanted[bad], 1);
}

static void on_loss(void *context, const bh_event *event) {
    const bh_loss *loss = event->loss;
    soak *self = context;
    atomic_fetch_add(&self->told, 1);
    if (loss->cause > 0 && loss->cause < SOAK_STATUSES)
        atomic_fetch_add(&self->by_cause[loss->cause], 1);
    if (loss->from_standby) atomic_fetch_add(&self->from_standby, 1);
    if (loss->stopped || !atomic_exchange(&self->strike, false)) return;
    bh_launch_options options = BH_INIT(options);
    options.flags = BH_SUBMIT_NO_BLOCK;
    if (bh_launch(self->trap, BH_SHAPE(1, 1, 1, 1, 1, 1), BH_ARGS(BH_OUT(self->ruin)), &options,
                  NULL) == BH_OK)
        atomic_fetch_add(&self->strikes, 1);
}

static bh_health health_of(soak *self) {
    bh_health health = BH_INIT(health);
    soak_thread *me = &self->threads[THREADS];
    bench_need(SOAK_CALL(me, bh_device_get_health(self->stage.era.device, &health)),
               "bh_device_get_health");
    return health;
}

/* A stopped worker costs the whole time-out: not often. */
static loss_kind some_kind(soak_random *random, const bh_health *health) {
    if (soak_chance(random, 40)) return soak_chance(random, 2) ? STOP_WORKER : KILL_WHILE_PAUSED;
    /* One that has not said READY has longer, as drivers take their time to start. */
    if (health->standbys_ready && soak_chance(random, 20))
        return soak_chance(random, 2) ? STOP_STANDBY : STOP_STANDBY_KILL_WORKER;
    static const loss_kind usual[] = {KILL_WORKER, CRASH_WORKER, BAD_ADDRESS,      TRAP,
                                      DEADLINE,    KILL_BOTH,    KILL_BUSY_WORKER, KILL_STANDBY};
    return usual[soak_below(random, sizeof usual / sizeof *usual)];
}

/* Stops this whole process, ends the worker, and lets the process go on, by a process of its
 * own. */
static bool kill_while_paused(pid_t worker) {
    char script[256];
    if (worker <= 0) return false;
    snprintf(script, sizeof script,
             "kill -STOP %d; sleep 0.01; "
             "test \"$(awk '{print $4}' /proc/%d/stat 2>/dev/null)\" = %d && kill -KILL %d; "
             "sleep 0.01; kill -CONT %d",
             (int)getpid(), (int)worker, (int)getpid(), (int)worker, (int)getpid());
    char *arguments[] = {"sh", "-c", script, NULL};
    pid_t pid;
    if (posix_spawnp(&pid, "sh", NULL, NULL, arguments, environ)) return false;
    int result;
    while (waitpid(pid, &result, 0) < 0 && errno == EINTR) continue;
    return true;
}

/* Begins a loss. False: there will be none of it. */
static bool strike(soak *self, loss_kind kind, const bh_health *health) {
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE};
    int crash = crashes[soak_below(&self->random, 5)];
    switch (kind) {
    case KILL_WORKER:
        return signal_child(health->worker_pid, SIGKILL);
    case CRASH_WORKER:
        return signal_child(health->worker_pid, crash);
    case STOP_WORKER:
        return signal_child(health->worker_pid, SIGSTOP);
    case KILL_STANDBY:
        (void)signal_child(health->standby_pids[0], SIGKILL);
        return false;
    case STOP_STANDBY:
        (void)signal_child(health->standby_pids[0], SIGSTOP);
        return false;
    case KILL_BOTH:
        (void)signal_child(health->standby_pids[0],
                           soak_chance(&self->random, 2) ? SIGKILL : crash);
        return signal_child(health->worker_pid, SIGKILL);
    case STOP_STANDBY_KILL_WORKER:
        (void)signal_child(health->standby_pids[0], SIGSTOP);
        return signal_child(health->worker_pid, SIGKILL);
    case BAD_ADDRESS:
        want(self, SOAK_BAD_WILD);
        return true;
    case TRAP:
        want(self, SOAK_BAD_TRAP);
        return true;
    case DEADLINE:
        want(self, SOAK_BAD_DEADLINE);
        return true;
    case KILL_WHILE_PAUSED:
        return kill_while_paused(health->worker_pid);
    default:
        want(self, SOAK_BAD_DEADLINE);
        bench_sleep_ns(soak_below(&self->random, 4) * BENCH_MS);
        return signal_child(health->worker_pid, SIGKILL);
    }
}

/* Waits until the loss is counted, or it is clear that it will not be: a worker that is lost before
 * it went on is replaced without being one. */
static void await_loss(soak *self, const bh_health *before) {
    uint64_t give_up = bench_now_ns() + (SANITIZED ? 20 : 5) * BENCH_S;
    while (bench_now_ns() < give_up) {
        bh_health health = health_of(self);
        if (health.losses != before->losses || health.state == BH_HEALTH_STOPPED ||
            (health.worker_pid && health.worker_pid != before->worker_pid))
            return;
        bench_sleep_ns(BENCH_MS);
    }
}

/* ---- eras ---- */

static void open_era(soak *self, bool limited) {
    soak_thread *me = &self->threads[THREADS];
    bh_device_options options = bench_options();
    options.stuck_timeout_ns = STUCK_NS * (SANITIZED ? 5 : 1);
    options.close_timeout_ns = soak_chance(&self->random, 2) ? BENCH_S : 1 + BENCH_MS;
    options.quarantine_after = soak_chance(&self->random, 4) ? 3 : UINT32_MAX;
    options.restart_limit = 5 + soak_below(&self->random, 40);
    options.standbys = 1 + soak_below(&self->random, 2);
    if (!limited) options.flags = BH_DEVICE_NO_RESTART_LIMIT;
    if (soak_chance(&self->random, 8)) options.flags |= BH_DEVICE_NO_STANDBY;
    if (soak_chance(&self->random, 6)) options.flags |= BH_DEVICE_GUARD;
    if (soak_chance(&self->random, 2)) options.queue_length = 64; /* full now and then */
    BENCH_NEED(bh_failure_set_limit(soak_below(&self->random, FAILURES_KEPT + 1)));
    soak_era era = {.number = ++self->eras};
    bench_need(SOAK_CALL(me, bh_device_open(&options, &era.device)), "bh_device_open");
    bh_module module;
    if (!soak_kernels_load(era.device, &module, &era.kernels)) {
        bh_error error;
        bench_need(bh_last_error(&error), "loading the kernels");
    }
    self->ruin = bench_buffer(era.device, BH_U32, 64);
    self->trap = era.kernels.trap;
    bench_watch_losses(era.device, on_loss, self);
    for (int i = 0; i < SOAK_BADS; i++) atomic_store(&self->stage.wanted[i], 0);
    pthread_mutex_lock(&self->stage.lock);
    self->stage.era = era;
    atomic_store(&self->stage.open, era.number);
    pthread_cond_broadcast(&self->stage.changed);
    pthread_mutex_unlock(&self->stage.lock);
}

/* Closes the device under the threads' hands, and waits until all have noticed. */
static void close_era(soak *self) {
    soak_thread *me = &self->threads[THREADS];
    soak_stage *stage = &self->stage;
    atomic_store(&self->strike, false);
    atomic_store(&stage->ending, stage->era.number);
    pthread_rwlock_wrlock(&stage->memory);
    atomic_store(&stage->open, 0);
    bench_need(SOAK_CALL(me, bh_device_close(stage->era.device)), "bh_device_close");
    pthread_rwlock_unlock(&stage->memory);
    soak_call_begin(me, "waiting for the threads to notice");
    pthread_mutex_lock(&stage->lock);
    while (stage->parked < THREADS) pthread_cond_wait(&stage->changed, &stage->lock);
    pthread_mutex_unlock(&stage->lock);
    soak_call_end(me, BH_OK);
}

static bool enough(const soak *self) {
    return self->losses >= self->losses_wanted || bench_now_ns() > self->end_ns;
}

/* Nothing, a standby, or some work between two losses. */
static void pause_between(soak *self) {
    soak_thread *me = &self->threads[THREADS];
    if (soak_chance(&self->random, 4)) return;
    if (soak_chance(&self->random, 4)) {
        (void)SOAK_CALL(me, bh_device_wait_standby(self->stage.era.device, 2 * BENCH_S));
        return;
    }
    uint64_t until = bench_now_ns() + (SANITIZED ? 2000 : 200) * BENCH_MS;
    uint64_t rounds = atomic_load(&self->stage.rounds) + soak_below(&self->random, 6 * THREADS);
    while (atomic_load(&self->stage.rounds) < rounds && bench_now_ns() < until)
        bench_sleep_ns(BENCH_MS);
}

static void print_progress(const soak *self) {
    bench_note("%llu losses, %llu openings, %llu stops, %.1f s", (unsigned long long)self->losses,
               (unsigned long long)self->eras, (unsigned long long)self->stops,
               (double)(bench_now_ns() - self->began_ns) / 1e9);
}

/* One opening of the device, until it stops, or has lost enough. */
static void one_era(soak *self) {
    bool limited = self->eras % 2 == 1;
    open_era(self, limited);
    uint64_t limit = 5 + soak_below(&self->random, 80), seen = 0;
    for (;;) {
        bh_health health = health_of(self);
        self->losses += health.losses - seen;
        seen = health.losses;
        if (health.state == BH_HEALTH_STOPPED) self->stops++;
        if (health.state == BH_HEALTH_STOPPED || seen >= limit || enough(self)) break;
        loss_kind kind = some_kind(&self->random, &health);
        self->made[kind]++;
        if (soak_chance(&self->random, 12)) atomic_store(&self->strike, true);
        if (strike(self, kind, &health)) await_loss(self, &health);
        pause_between(self);
    }
    close_era(self);
}

/* ---- the whole ---- */

static void start(soak *self, uint64_t seed, pthread_t *looker) {
    self->random.state = seed;
    self->threads = calloc(THREADS + 1, sizeof *self->threads);
    if (!self->threads) bench_wrong("no memory");
    pthread_mutex_init(&self->stage.lock, NULL);
    pthread_cond_init(&self->stage.changed, NULL);
    pthread_rwlock_init(&self->stage.memory, NULL);
    for (uint32_t i = 0; i < THREADS; i++) {
        soak_thread *thread = &self->threads[i];
        thread->index = i;
        thread->stage = &self->stage;
        thread->random.state = seed * 1000003 + i;
        if (pthread_create(&thread->thread, NULL, soak_thread_run, thread))
            bench_wrong("cannot start thread %u of %d", i, THREADS);
    }
    if (pthread_create(looker, NULL, look_for_hangs, self)) bench_wrong("cannot start a thread");
}

static void finish(soak *self, pthread_t looker) {
    pthread_mutex_lock(&self->stage.lock);
    self->stage.over = true;
    pthread_cond_broadcast(&self->stage.changed);
    pthread_mutex_unlock(&self->stage.lock);
    for (uint32_t i = 0; i < THREADS; i++) pthread_join(self->threads[i].thread, NULL);
    for (uint32_t i = 0; i < THREADS; i++)
        soak_answers_ask_all(&self->threads[i].answers, &self->random);
    atomic_store(&self->over, true);
    pthread_join(looker, NULL);
}

static void print_work(const soak *self, double seconds) {
    uint64_t tickets = 0, refused = 0, rounds = 0, lanes = 0, modules = 0, managed = 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        const soak_thread *thread = &self->threads[i];
        tickets += thread->tickets;
        refused += thread->refused;
        rounds += thread->rounds;
        lanes += thread->lanes_opened;
        modules += thread->modules;
        managed += thread->managed;
    }
    bench_figure("soak.losses", (double)self->losses, "count");
    bench_figure("soak.seconds", seconds, "s");
    bench_figure("soak.time_per_loss", seconds * 1e3 / (double)(self->losses ? self->losses : 1),
                 "ms");
    bench_figure("soak.openings", (double)self->eras, "count");
    bench_figure("soak.stops", (double)self->stops, "count");
    bench_figure("soak.tickets", (double)tickets, "count");
    bench_figure("soak.answers_asked_again", (double)atomic_load(&soak_asked_again), "count");
    bench_note("%llu rounds, %llu calls refused, %llu lanes opened, %llu modules loaded, %llu "
               "managed buffers used",
               (unsigned long long)rounds, (unsigned long long)refused, (unsigned long long)lanes,
               (unsigned long long)modules, (unsigned long long)managed);
    for (int i = 0; i < SOAK_STATUSES; i++) {
        uint64_t count = atomic_load(&soak_verdicts[i]);
        if (count) bench_note("%llu tickets got %s", (unsigned long long)count, bh_status_name(i));
    }
    for (int i = 0; i < KINDS; i++)
        bench_note("%llu losses begun by %s", (unsigned long long)self->made[i], kind_names[i]);
    for (int i = 0; i < SOAK_STATUSES; i++) {
        uint64_t count = atomic_load(&self->by_cause[i]);
        if (count)
            bench_note("%llu losses told as %s", (unsigned long long)count, bh_status_name(i));
    }
    bench_note("%llu losses told, %llu of them taken over by a standby; %llu new workers struck at "
               "once",
               (unsigned long long)atomic_load(&self->told),
               (unsigned long long)atomic_load(&self->from_standby),
               (unsigned long long)atomic_load(&self->strikes));
}

static bool target(const char *name, double value, const char *unit, double most) {
    bench_target(name, value, unit, most);
    return value <= most;
}

static bool print_faults(void) {
    static const char *const names[SOAK_FAULTS] = {"soak.wrong_bytes", "soak.changed_answers",
                                                   "soak.doubt_lost",  "soak.doubt_unexplained",
                                                   "soak.odd_answers", "soak.callbacks_wrong"};
    bool good = target("soak.hangs", 0, "count", 0); /* or the program had ended */
    for (int i = 0; i < SOAK_FAULTS; i++)
        good &= target(names[i], (double)soak_reported((soak_fault)i), "count", 0);
    return good;
}

static double grown(uint64_t after, uint64_t before) {
    return after > before ? (double)(after - before) : 0;
}

static bool print_holdings(const holdings *first, const holdings *middle, const holdings *last) {
    bench_note("descriptors %zu, %zu, %zu; memory %.1f, %.1f, %.1f MiB; shared %.1f, %.1f, %.1f "
               "MiB (after the first opening, in the middle, at the end)",
               first->descriptors, middle->descriptors, last->descriptors,
               (double)first->anonymous / MIB, (double)middle->anonymous / MIB,
               (double)last->anonymous / MIB, (double)first->shared / MIB,
               (double)middle->shared / MIB, (double)last->shared / MIB);
    bool good =
        target("soak.descriptors_left", grown(last->descriptors, first->descriptors), "count", 0);
    good &= target("soak.processes_left", (double)last->children, "count", 0);
    good &= target("soak.shared_memory_left", grown(last->shared, first->shared) / MIB, "MiB", 0);
    double failures = grown(last->failures, middle->failures),
           lanes = grown(last->lanes, middle->lanes),
           kept = failures * BYTES_PER_FAILURE + lanes * BYTES_PER_LANE;
    bench_note(
        "details of at most the latest %d failed tickets are kept; since the middle %.0f tickets "
        "failed and %.0f lanes were opened",
        FAILURES_KEPT, failures, lanes);
    bench_note("allocated %.2f, %.2f, %.2f MiB", (double)first->heap / MIB,
               (double)middle->heap / MIB, (double)last->heap / MIB);
    good &= target("soak.heap_grown_since_middle", grown(last->heap, middle->heap) / MIB, "MiB",
                   0.25 + kept / MIB);
    /* The allocator keeps what threads have freed, each thread its own. */
    good &= target("soak.memory_grown_since_middle",
                   grown(last->anonymous, middle->anonymous) / MIB, "MiB", 16 + kept / MIB);
    return good;
}

int main(int argc, char **argv) {
    static soak self;
    uint64_t seconds = 0, seed = 1;
    take_options(&self, &argc, argv, &seconds, &seed);
    bench_begin(argc, argv,
                "soak: losses of every kind under load from 16 threads; losses=N seconds=N seed=N "
                "shared=1");
    size_t given = bench_count(0);
    if (given) self.losses_wanted = given;
    if (!self.losses_wanted && !seconds) seconds = 20;
    if (!self.losses_wanted) self.losses_wanted = UINT64_MAX;
    uint64_t began = self.began_ns = bench_now_ns();
    self.end_ns = seconds ? began + seconds * BENCH_S : UINT64_MAX;
    make_records();
    uint64_t free_before = device_memory_free();

    pthread_t looker;
    start(&self, seed, &looker);
    holdings first = {0}, middle = {0}, last = {0};
    do {
        one_era(&self);
        if (self.losses / 1000 != self.printed) print_progress(&self);
        self.printed = self.losses / 1000;
        last = holdings_now(&self);
        uint64_t now = bench_now_ns();
        bool half = self.losses * 2 >= self.losses_wanted ||
                    (seconds && (now - began) * 2 >= seconds * BENCH_S);
        if (self.eras == 1) first = last;
        if (!middle.descriptors && (half || enough(&self))) middle = last;
    } while (!enough(&self));
    double took = (double)(bench_now_ns() - began) / 1e9;
    finish(&self, looker);

    print_work(&self, took);
    bool good = print_faults();
    good &= print_holdings(&first, &middle, &last);
    if (!bench_on_cpu() && !self.shared)
        good &= target("soak.device_memory_left", grown(free_before, device_memory_free()) / MIB,
                       "MiB", GRANULE / MIB);
    free(self.threads);
    if (!good) fprintf(stderr, "error: something is wrong; see the lines marked MISS\n");
    return good ? 0 : 1;
}
