/* SPDX-License-Identifier: Apache-2.0 */
/* One seed: devices, threads, peace, and what must hold in the end. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver.h"

enum { LOADERS = 3, MAX_RSS_MIB = 256 * DRIVER_SCALE, MAX_DESCRIPTORS = 400 };
enum { CANARY_BYTES = 1 << 20 };
#define STUCK_NS (60 * DRIVER_MS * DRIVER_SCALE)

typedef struct run {
    chance chance;
    stage stage;
    char folder[200], log[230], hostile_dir[600], honest_dir[600];
    uint32_t workers;
    uint8_t *canary;
} run;

/* ---- what the process holds ---- */

static unsigned count_descriptors(void) {
    unsigned count = 0;
    DIR *folder = opendir("/proc/self/fd");
    if (!folder) return 0;
    while (readdir(folder)) count++;
    closedir(folder);
    return count;
}

/* Says which descriptors are open, for a report. */
static void list_descriptors(void) {
    for (int fd = 0; fd < MAX_DESCRIPTORS; fd++) {
        char path[32], what[200];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(path, what, sizeof what - 1);
        if (length > 0) fprintf(stderr, "descriptor %d: %.*s\n", fd, (int)length, what);
    }
}

static unsigned long peak_rss_mib(void) {
    char line[200];
    unsigned long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    if (!file) return 0;
    while (fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %lu", &kib) == 1) break;
    fclose(file);
    return kib / 1024;
}

static void canary_set(run *self) {
    self->canary = malloc(CANARY_BYTES);
    for (uint32_t i = 0; i < CANARY_BYTES; i++) self->canary[i] = (uint8_t)(i * 31);
}

static void canary_check(run *self) {
    for (uint32_t i = 0; i < CANARY_BYTES; i++) {
        if (self->canary[i] == (uint8_t)(i * 31)) continue;
        problem("byte %u of memory that no worker was given has changed", i);
        break;
    }
    free(self->canary);
}

/* ---- hostile and honest workers ---- */

static bool find_programs(run *self) {
    char here[500];
    ssize_t length = readlink("/proc/self/exe", here, sizeof here - 1);
    if (length <= 0) return false;
    here[length] = 0;
    *strrchr(here, '/') = 0;
    snprintf(self->hostile_dir, sizeof self->hostile_dir, "%s/hostile", here);
    snprintf(self->honest_dir, sizeof self->honest_dir, "%s/../bin", here);
    return true;
}

static void set_number(const char *name, uint64_t value) {
    char text[30];
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    setenv(name, text, 1);
}

static bool prepare(run *self, uint64_t seed, const char *only) {
    const char *base = getenv("TMPDIR");
    atomic_store(&self->chance.state, seed * 7919);
    snprintf(self->folder, sizeof self->folder, "%s/bulkhead-hostile-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(self->folder) || !find_programs(self)) return false;
    snprintf(self->log, sizeof self->log, "%s/log", self->folder);
    int fd = open(self->log, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) return false;
    close(fd);
    self->workers = only ? 3 : 1 + chance_below(&self->chance, 6);
    set_number("BULKHEAD_HOSTILE_SEED", seed);
    set_number("BULKHEAD_HOSTILE_WORKERS", self->workers);
    setenv("BULKHEAD_HOSTILE_LOG", self->log, 1);
    setenv("TSAN_OPTIONS", "report_bugs=0",
           1); /* of workers: they race with themselves on purpose */
    if (only) setenv("BULKHEAD_HOSTILE_ONLY", only, 1);
    /* The application must hold even where workers are not confined. */
    if (!chance_one_in(&self->chance, 8)) setenv("BULKHEAD_SANDBOX", "off", 1);
    return true;
}

/* From now on workers are honest: those that are not are ended. */
static void make_peace(run *self) {
    char path[300], line[400];
    snprintf(path, sizeof path, "%s.peace", self->log);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    FILE *log = fopen(self->log, "r");
    while (log && fgets(line, sizeof line, log)) {
        siginfo_t info = {0};
        pid_t pid = (pid_t)atoi(line);
        bool ours = pid > 1 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
        if (ours && !strstr(line, " honest")) kill(pid, SIGKILL);
    }
    if (log) fclose(log);
}

static void show_log(const run *self) {
    char line[400];
    FILE *log = fopen(self->log, "r");
    while (log && fgets(line, sizeof line, log)) printf("worker %s", line);
    if (log) fclose(log);
}

static void remove_folder(const run *self) {
    DIR *folder = opendir(self->folder);
    char path[500];
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%.250s", self->folder, entry->d_name);
        if (entry->d_name[0] != '.') unlink(path);
    }
    if (folder) closedir(folder);
    rmdir(self->folder);
}

/* ---- devices ---- */

/* stuck_ns: 0 is the library's own, with which honest workers are never too slow. */
static bh_status open_hostile(run *self, uint64_t stuck_ns, bh_device *out) {
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.worker_dir = self->hostile_dir;
    options.stuck_timeout_ns = stuck_ns;
    options.deadline_ns = 100 * DRIVER_MS * DRIVER_SCALE;
    options.close_timeout_ns = 50 * DRIVER_MS;
    options.queue_length = 64;
    options.standbys = chance_below(&self->chance, 3);
    options.flags = options.standbys ? 0 : BH_DEVICE_NO_STANDBY;
    if (!chance_one_in(&self->chance, 3)) options.flags |= BH_DEVICE_NO_RESTART_LIMIT;
    if (chance_one_in(&self->chance, 8)) options.flags |= BH_DEVICE_CHECK;
    if (chance_one_in(&self->chance, 4)) options.report_dir = self->folder;
    options.executor = chance_one_in(&self->chance, 4) ? BH_EXECUTE_AUTO : BH_EXECUTE_INTERPRETER;
    return IN_THE_END(bh_device_open(&options, out));
}

static bh_status open_honest(run *self) {
    bh_device_options options = BH_INIT(options);
    options.device = "cpu";
    options.worker_dir = self->honest_dir;
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_status status = IN_THE_END(bh_device_open(&options, &self->stage.honest));
    if (status == BH_OK)
        status = IN_THE_END(
            bh_buffer_alloc(self->stage.honest, BH_U32, 1024, NULL, &self->stage.honest_buffer));
    static const uint32_t words[1024];
    return status == BH_OK ? IN_THE_END(bh_buffer_write(self->stage.honest_buffer, 0, words, 4096))
                           : status;
}

static void heard(void *context, const bh_event *event) {
    static _Atomic uint8_t sum;
    (void)context;
    for (size_t i = 0; i < event->length; i++) sum += (uint8_t)event->text[i];
    if (event->loss && !memchr(event->loss->message, 0, sizeof event->loss->message))
        problem("the text of a loss does not end");
    if (event->health && !memchr(event->health->reason, 0, sizeof event->health->reason))
        problem("the text of a health does not end");
}

static void heard_log(void *context, int32_t level, const char *text) {
    (void)context;
    (void)level;
    if (getenv("HOSTILE_SHOW_LOG")) printf("log: %s\n", text);
}

/* ---- a stage's life ---- */

/* Threads use the device; it is closed under their hands, or when they are done and it serves
 * again. */
static void use_device(run *self) {
    stage *where = &self->stage;
    loader loaders[LOADERS];
    pthread_t threads[LOADERS];
    bool abrupt = chance_one_in(&self->chance, 4);
    atomic_store(&where->over, false);
    bh_watch watch;
    AT_ONCE(bh_watch_open(where->device, NULL, heard, NULL, &watch));
    for (uint32_t i = 0; i < LOADERS; i++) {
        loaders[i] = (loader){.stage = where, .index = i};
        atomic_store(&loaders[i].chance.state, chance_next(&self->chance));
        if (pthread_create(&threads[i], NULL, load_main, &loaders[i]) != 0) abort();
    }
    struct timespec time = {.tv_nsec = (long)(60 + chance_below(&self->chance, 90)) * 1000000};
    nanosleep(&time, NULL);
    if (count_descriptors() > MAX_DESCRIPTORS)
        problem("%u descriptors are open", count_descriptors());
    if (abrupt) IN_THE_END(bh_device_close(where->device));
    atomic_store(&where->over, true);
    for (uint32_t i = 0; i < LOADERS; i++) pthread_join(threads[i], NULL);
    if (abrupt) return;
    make_peace(self);
    (void)serves_again(where->device);
    book_check();
    if (IN_THE_END(bh_device_close(where->device)) != BH_OK) problem("the device cannot be closed");
}

/* A compile that nobody waits for any more is killed when the device is closed, and gone soon
 * after. */
static void let_compiles_end(unsigned descriptors) {
    uint64_t until = driver_now() + 5 * DRIVER_S * DRIVER_SCALE;
    siginfo_t info;
    while (driver_now() < until && (count_descriptors() > descriptors ||
                                    waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void check_end(run *self, unsigned descriptors) {
    let_compiles_end(descriptors);
    book_check();
    uint64_t wanted = atomic_load(&self->stage.callbacks_wanted);
    uint64_t ran = atomic_load(&self->stage.callbacks_run);
    if (wanted != ran)
        problem("%llu callbacks were registered, %llu ran", (unsigned long long)wanted,
                (unsigned long long)ran);
    canary_check(self);
    if (count_descriptors() > descriptors) {
        list_descriptors();
        problem("%u descriptors before, %u after", descriptors, count_descriptors());
    }
    if (peak_rss_mib() > MAX_RSS_MIB)
        problem("up to %lu MiB of memory were used, %d are allowed", peak_rss_mib(), MAX_RSS_MIB);
    int status;
    if (waitpid(-1, &status, WNOHANG) >= 0 || errno != ECHILD) problem("a worker is left over");
}

/* Opened a second time, all workers are honest. */
static void use_again(run *self) {
    bh_device device;
    make_peace(self);
    bh_status status = open_hostile(self, 0, &device);
    if (status != BH_OK) {
        problem("a device with honest workers cannot be opened: %s", bh_status_name(status));
        return;
    }
    if (!serves_again(device)) problem("a device with honest workers does not serve");
    IN_THE_END(bh_device_close(device));
}

int run_seed(uint64_t seed, const char *only) {
    static run self;
    calls_watch(self.log);
    if (!prepare(&self, seed, only)) {
        printf("error: cannot prepare: %s\n", strerror(errno));
        return 2;
    }
    self.stage.folder = self.folder;
    canary_set(&self);
    AT_ONCE(bh_log_set(heard_log, NULL, BH_LOG_DEBUG));
    unsigned descriptors = count_descriptors();
    pthread_t honest;
    bool helped =
        open_honest(&self) == BH_OK && pthread_create(&honest, NULL, honest_main, &self.stage) == 0;
    if (!helped) problem("the honest device cannot be used");
    if (open_hostile(&self, STUCK_NS, &self.stage.device) == BH_OK) use_device(&self);
    atomic_store(&self.stage.over, true);
    if (helped) pthread_join(honest, NULL);
    use_again(&self);
    IN_THE_END(bh_device_close(self.stage.honest));
    check_end(&self, descriptors);
    show_log(&self);
    remove_folder(&self);
    return problem_count() ? 1 : 0;
}
