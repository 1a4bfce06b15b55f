/* SPDX-License-Identifier: Apache-2.0 */
/* Devices that are seen from outside: who finds them, who does not, and what a reader cannot do to
 * them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "../support/support.h"
#include "cli/top/top.h"

static void use_own_folder(void) {
    REQUIRE(setenv("BULKHEAD_RUNTIME_DIR", test_tmp_dir(), 1) == 0);
}

static void folder_path(char out[300]) {
    test_path(out, 300, "%s/bulkhead", test_tmp_dir());
}

static size_t entries(void) {
    char path[300];
    folder_path(path);
    size_t count = 0;
    DIR *dir = opendir(path);
    for (struct dirent *next; dir && (next = readdir(dir));) count += next->d_name[0] != '.';
    if (dir) closedir(dir);
    return count;
}

/* What is found in the test's own folder: others on this machine may have devices open too. */
static size_t find(pid_t pid, bh__figures *out) {
    bh__sightings all;
    size_t found = 0;
    REQUIRE(bh__gather(&all, 5000 * MS));
    for (size_t i = 0; i < all.count; i++) {
        if (all.list[i].entry.pid != pid) continue;
        found += all.list[i].figures != NULL;
        if (out && all.list[i].figures) *out = *all.list[i].figures;
    }
    bh__sightings_free(&all);
    return found;
}

static bh_device open_bare(uint32_t flags) {
    bh_device device;
    bh_device_options options = device_options(flags | BH_DEVICE_NO_STANDBY);
    REQUIRE_OK(bh_device_open(&options, &device));
    return device;
}

TEST(an_open_device_is_found_and_a_closed_one_is_not) {
    use_own_folder();
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    bh_buffer_options options = BH_INIT(options);
    options.tag = "weights";
    bh_buffer x;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 1000, &options, &x));
    for (int i = 0; i < 3; i++)
        CHECK_OK(
            run_now(rig_kernel(&r, "iota"), BH_GRID(1000, 100), BH_ARGS(BH_OUT(x), 1u, 1000u)));
    CHECK_STATUS(run_now(rig_kernel(&r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    bh_health health = BH_INIT(health);
    static bh__figures f;
    REQUIRE_EQ(find(getpid(), &f), 1u);
    CHECK_OK(bh_device_get_health(r.device, &health));
    CHECK_EQ(f.counters.losses, 1u);
    CHECK_EQ(f.lanes[0].launches, 4u);
    CHECK_EQ(f.device.bytes_allocated, 4000u);
    CHECK_EQ(f.health.generation, health.generation);
    CHECK_STR_EQ(f.tags[0].tag, "weights");
    CHECK_STR_EQ(f.kernels[0].name, "iota");
    CHECK_EQ(f.kernels[0].launches, 3u);
    CHECK_EQ(f.kernels[1].faults, 1u);
    CHECK_EQ(f.kernels[0].timed, 3u);
    CHECK_GT(f.kernels[0].device_ns, 0u);
    CHECK_EQ(f.loss_count, 1u);
    CHECK_STR_CONTAINS(f.losses[0].kernel, "trap_now");
    /* The next worker's launches are added to those of the lost one. */
    uint64_t before = f.kernels[0].device_ns;
    for (int i = 0; i < 2; i++)
        CHECK_OK(
            run_now(rig_kernel(&r, "iota"), BH_GRID(1000, 100), BH_ARGS(BH_OUT(x), 1u, 1000u)));
    for (int tries = 0; tries < 100; tries++) {
        REQUIRE_EQ(find(getpid(), &f), 1u);
        if (f.kernels[0].timed == 5) break;
    }
    CHECK_EQ(f.kernels[0].timed, 5u);
    CHECK_GT(f.kernels[0].device_ns, before);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(find(getpid(), NULL), 0u);
    CHECK_EQ(entries(), 0u);
}

TEST(nobody_else_may_enter) {
    use_own_folder();
    bh_device device = open_bare(0);
    char path[300], socket_path[700] = "";
    folder_path(path);
    struct stat info;
    REQUIRE(stat(path, &info) == 0);
    CHECK_EQ(info.st_mode & 07777, 0700u);
    DIR *dir = opendir(path);
    for (struct dirent *next; (next = readdir(dir));)
        if (next->d_name[0] != '.')
            snprintf(socket_path, sizeof socket_path, "%s/%s", path, next->d_name);
    closedir(dir);
    REQUIRE(stat(socket_path, &info) == 0);
    CHECK(S_ISSOCK(info.st_mode));
    CHECK_EQ(info.st_mode & 07777, 0600u);
    if (geteuid() != 0) SKIP("only root can be another user");
    /* Even with every door open, another user gets no answer. */
    REQUIRE(chmod(path, 0777) == 0 && chmod(socket_path, 0777) == 0);
    int folder = open(path, O_RDONLY | O_DIRECTORY);
    pid_t child = fork();
    if (child == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char byte;
        if (fchdir(folder) != 0 || setresuid(12345, 12345, 12345) != 0) _exit(2);
        snprintf(address.sun_path, sizeof address.sun_path, "%.100s",
                 strrchr(socket_path, '/') + 1);
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) _exit(3);
        _exit(read(fd, &byte, 1) == 0 ? 0 : 4);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK_EQ(WEXITSTATUS(status), 0);
    close(folder);
    chmod(path, 0700);
    CHECK_EQ(find(getpid(), NULL), 1u);
    CHECK_OK(bh_device_close(device));
}

TEST(a_program_can_hide_its_devices) {
    use_own_folder();
    bh_device device = open_bare(BH_DEVICE_PRIVATE);
    CHECK_EQ(find(getpid(), NULL), 0u);
    CHECK_OK(bh_device_close(device));
    setenv("BULKHEAD_PUBLISH", "off", 1);
    device = open_bare(0);
    CHECK_EQ(find(getpid(), NULL), 0u);
    CHECK_OK(bh_device_close(device));
    CHECK_EQ(entries(), 0u);
}

/* A folder of another user, one that others may enter, a link, a file. */
TEST(folders_that_cannot_be_trusted_are_not_used) {
    use_own_folder();
    char path[300];
    folder_path(path);
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 0) REQUIRE(mkdir(path, 0755) == 0);
        if (kind == 1) REQUIRE(symlink("/tmp", path) == 0);
        if (kind == 2) REQUIRE(close(open(path, O_CREAT | O_WRONLY, 0600)) == 0);
        if (kind == 3 && (geteuid() != 0 || mkdir(path, 0700) != 0 || chown(path, 12345, 0) != 0))
            continue;
        CHECK_EQ(bh__runtime_open(path, true), -1);
        bh_device device = open_bare(0);
        CHECK_EQ(entries() > 0 && kind != 1, 0);
        CHECK_OK(bh_device_close(device));
        REQUIRE(remove(path) == 0);
    }
}

/* ---- what is left behind ---- */

static pid_t start_host(int *out_pipe) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        bh_device device;
        bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
        char done = bh_device_open(&options, &device) == BH_OK;
        if (write(ends[1], &done, 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ends[1]);
    *out_pipe = ends[0];
    return pid;
}

TEST(processes_that_were_killed_leave_nothing) {
    enum { HOSTS = 6 };
    use_own_folder();
    pid_t pids[HOSTS];
    for (int i = 0; i < HOSTS; i++) {
        int ready;
        char done = 0;
        pids[i] = start_host(&ready);
        REQUIRE(read(ready, &done, 1) == 1 && done == 1);
        close(ready);
    }
    for (int i = 0; i < HOSTS; i++) CHECK_EQ(find(pids[i], NULL), 1u);
    for (int i = 0; i < HOSTS; i++) kill(pids[i], SIGKILL);
    for (int i = 0; i < HOSTS; i++) waitpid(pids[i], NULL, 0);
    CHECK_EQ(entries(), (size_t)HOSTS);
    CHECK_EQ(find(pids[0], NULL), 0u);
    CHECK_EQ(entries(), 0u);
}

static void bind_in(int folder, const char *name, bool listens, int *out) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%s", folder, name);
    *out = socket(AF_UNIX, SOCK_STREAM, 0);
    REQUIRE(bind(*out, (struct sockaddr *)&address, sizeof address) == 0);
    if (listens) REQUIRE(listen(*out, 1) == 0);
}

static int dead_pid(void) {
    pid_t pid = fork();
    if (pid == 0) _exit(0);
    waitpid(pid, NULL, 0);
    return (int)pid;
}

TEST(a_thousand_stale_entries_are_removed) {
    use_own_folder();
    bh_device device = open_bare(0);
    char path[300], name[64];
    folder_path(path);
    int folder = bh__runtime_open(path, false), dead = dead_pid(), fd;
    for (int i = 0; i < 1000; i++) {
        bool reused = i % 2; /* of a process that lives, and started at another time */
        snprintf(name, sizeof name, "%s%d-%d-%d", i % 3 ? "" : ".", reused ? (int)getpid() : dead,
                 1000 + i, i);
        bind_in(folder, name, false, &fd);
        close(fd);
    }
    CHECK_GE(entries(), 600u);
    CHECK_EQ(find(getpid(), NULL), 1u);
    CHECK_EQ(entries(), 1u);
    /* Opening a device removes some, too. */
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "%d-77-%d", dead, i);
        bind_in(folder, name, false, &fd);
        close(fd);
    }
    bh_device second = open_bare(0);
    CHECK_EQ(entries(), 2u);
    CHECK_OK(bh_device_close(second));
    CHECK_OK(bh_device_close(device));
    close(folder);
}

/* Nothing but sockets is touched, and nothing that is in the folder can hold a reader up. */
TEST(what_does_not_belong_there_is_left_alone) {
    use_own_folder();
    bh_device device = open_bare(0);
    char path[300], name[64];
    folder_path(path);
    int folder = bh__runtime_open(path, false), dead = dead_pid(), fd;
    snprintf(name, sizeof name, "%d-5-0", dead);
    REQUIRE(mkfifoat(folder, name, 0600) == 0);
    snprintf(name, sizeof name, "%d-5-1", dead);
    REQUIRE(symlinkat("/dev/zero", folder, name) == 0);
    snprintf(name, sizeof name, "%d-5-2", dead);
    REQUIRE(mkdirat(folder, name, 0700) == 0);
    REQUIRE(close(openat(folder, "notes.txt", O_CREAT | O_WRONLY, 0600)) == 0);
    snprintf(name, sizeof name, "%d-5-3",
             dead); /* a live one whose process is in another namespace */
    bind_in(folder, name, true, &fd);
    size_t before = entries();
    bh__sightings all;
    uint64_t start = bh__now_ns();
    REQUIRE(bh__gather(&all, 200 * MS));
    CHECK_LT(bh__now_ns() - start, 3000 * MS * test_time_scale());
    size_t silent = 0;
    for (size_t i = 0; i < all.count; i++)
        silent += all.list[i].entry.pid == dead && !all.list[i].figures;
    CHECK_EQ(silent, 1u);
    bh__sightings_free(&all);
    CHECK_EQ(entries(), before);
    close(fd);
    CHECK_EQ(find(getpid(), NULL), 1u);
    CHECK_EQ(entries(), before - 1); /* that one is stale now */
    CHECK_OK(bh_device_close(device));
    close(folder);
}

/* ---- many of which some are silent ---- */

enum { CROWD = 200 };

typedef struct crowd {
    int fds[CROWD];
    size_t silent; /* the first ones */
    _Atomic bool stop;
} crowd;

static void *answer_main(void *context) {
    static bh__figures figures;
    static char message[BH__FIGURES_MESSAGE_MAX];
    crowd *self = context;
    size_t length = bh__figures_pack(&figures, message, sizeof message);
    while (!atomic_load(&self->stop)) {
        struct pollfd look[CROWD];
        for (size_t i = 0; i < CROWD; i++)
            look[i] = (struct pollfd){.fd = i < self->silent ? -1 : self->fds[i], .events = POLLIN};
        if (poll(look, CROWD, 20) <= 0) continue;
        for (size_t i = self->silent; i < CROWD; i++) {
            if (!look[i].revents) continue;
            int fd = accept(self->fds[i], NULL, NULL);
            /* It may have gone to ask others first. */
            ssize_t sent = send(fd, message, length, MSG_NOSIGNAL);
            if (sent != (ssize_t)length) CHECK_EQ(errno, EPIPE);
            close(fd);
        }
    }
    return NULL;
}

/* A device that is stopped must not make others vanish, wherever in the folder it is. */
static void ask_a_crowd(size_t silent) {
    use_own_folder();
    char path[300], name[64];
    folder_path(path);
    int folder = bh__runtime_open(path, true);
    crowd self = {.silent = silent};
    for (unsigned i = 0; i < CROWD; i++) {
        bh__offer_name(&(bh__offer){getpid(), bh__started_at(getpid()), i, false}, name);
        bind_in(folder, name, true, &self.fds[i]);
    }
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, answer_main, &self) == 0);
    for (int rounds = 0; rounds < 2; rounds++) {
        bh__sightings all;
        uint64_t start = bh__now_ns();
        size_t answered = 0, named = 0;
        REQUIRE(bh__gather(&all, 600 * MS * test_time_scale()));
        CHECK_LT(bh__now_ns() - start, 2000 * MS * test_time_scale());
        CHECK_EQ(all.count, (size_t)CROWD);
        for (size_t i = 0; i < all.count; i++) {
            answered += all.list[i].figures != NULL;
            named += strcmp(all.list[i].why, "it does not answer") == 0;
        }
        CHECK_EQ(answered, CROWD - silent);
        CHECK_EQ(named, silent);
        bh__sightings_free(&all);
    }
    atomic_store(&self.stop, true);
    pthread_join(thread, NULL);
    for (size_t i = 0; i < CROWD; i++) close(self.fds[i]);
    close(folder);
}

TEST(a_few_silent_devices_do_not_hide_the_others) {
    ask_a_crowd(3);
}

TEST(many_silent_devices_do_not_hide_the_others) {
    ask_a_crowd(130);
}

/* ---- readers that do harm ---- */

static int own_name(char out[64]) {
    char path[300];
    folder_path(path);
    int folder = bh__runtime_open(path, false);
    DIR *dir = opendir(path);
    out[0] = 0;
    for (struct dirent *next; (next = readdir(dir));)
        if (next->d_name[0] != '.') snprintf(out, 64, "%.63s", next->d_name);
    closedir(dir);
    return folder;
}

static uint64_t loss_takes(const rig *r) {
    bh_loss loss[1];
    size_t count;
    CHECK_STATUS(run_now(rig_kernel(r, "trap_now"), BH_GRID(1, 1), BH_NO_ARGS), BH_E_FAULT);
    CHECK_OK(bh_device_sync(r->device, LONG_NS));
    CHECK_OK(bh_device_list_losses(r->device, loss, sizeof *loss, 1, &count));
    return loss[0].takeover_ns;
}

TEST(readers_that_never_read_hold_nothing_up) {
    enum { READERS = 200 };
    use_own_folder();
    rig r = rig_open(0);
    char name[64];
    int folder = own_name(name), fds[READERS];
    CHECK_OK(bh_device_wait_standby(r.device, LONG_NS));
    unsigned before = open_descriptors();
    for (int i = 0; i < READERS; i++) {
        for (int tries = 0; (fds[i] = bh__offer_connect(folder, name)) < 0 && tries < 2000; tries++)
            usleep(1000);
        REQUIRE(fds[i] >= 0);
    }
    usleep(100000);
    CHECK_EQ(open_descriptors(), before + READERS); /* none of the library's */
    CHECK_OK(bh_device_wait_standby(r.device, LONG_NS));
    CHECK_LT(loss_takes(&r), 500 * MS * test_time_scale());
    CHECK_EQ(find(getpid(), NULL), 1u);
    for (int i = 0; i < READERS; i++) close(fds[i]);
    CHECK_OK(bh_device_close(r.device));
    close(folder);
}

typedef struct hammer {
    int folder;
    char name[64];
    _Atomic bool stop;
    _Atomic uint64_t attempts, connected;
} hammer;

static void *hammer_main(void *context) {
    hammer *self = context;
    while (!atomic_load(&self->stop)) {
        int fd = bh__offer_connect(self->folder, self->name);
        atomic_fetch_add(&self->attempts, 1);
        if (fd < 0) {
            usleep(10);
            continue;
        }
        atomic_fetch_add(&self->connected, 1);
        close(fd);
    }
    return NULL;
}

TEST(ten_thousand_connections_do_not_keep_the_supervisor_from_its_work) {
    use_own_folder();
    rig r = rig_open(0);
    hammer h = {0};
    pthread_t thread;
    h.folder = own_name(h.name);
    CHECK_OK(bh_device_wait_standby(r.device, LONG_NS));
    unsigned before = open_descriptors();
    REQUIRE(pthread_create(&thread, NULL, hammer_main, &h) == 0);
    uint64_t worst = 0, end = bh__now_ns() + 30000 * MS;
    int losses = 0;
    while (losses < 3 || (atomic_load(&h.attempts) < 10000 && bh__now_ns() < end)) {
        CHECK_OK(bh_device_wait_standby(r.device, LONG_NS));
        uint64_t took = losses < 3 ? loss_takes(&r) : 0;
        if (took > worst) worst = took;
        losses++;
    }
    atomic_store(&h.stop, true);
    pthread_join(thread, NULL);
    CHECK_LT(worst, 500 * MS * test_time_scale());
    CHECK_GT(atomic_load(&h.connected), 10u);
    usleep(50000);
    CHECK_LE(open_descriptors(), before + 8);
    CHECK_EQ(find(getpid(), NULL), 1u);
    CHECK_OK(bh_device_close(r.device));
    close(h.folder);
}

static void *look_main(void *context) {
    _Atomic bool *stop = context;
    while (!atomic_load(stop)) {
        bh__sightings all;
        if (bh__gather(&all, 100 * MS)) bh__sightings_free(&all);
    }
    return NULL;
}

TEST(devices_come_and_go_before_a_reader) {
    const char *given = getenv("BULKHEAD_TOP_ROUNDS");
    int rounds = given ? atoi(given) : 40;
    use_own_folder();
    _Atomic bool stop = false;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, look_main, &stop) == 0);
    for (int i = 0; i < rounds; i++) CHECK_OK(bh_device_close(open_bare(0)));
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    CHECK_EQ(entries(), 0u);
}

TEST(a_forked_child_neither_keeps_nor_removes_the_socket) {
    use_own_folder();
    bh_device device = open_bare(0);
    char name[64];
    int folder = own_name(name), ends[2];
    REQUIRE(pipe(ends) == 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        close(ends[1]);
        (void)bh_device_close(device);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
    }
    CHECK_EQ(find(getpid(), NULL), 1u);
    CHECK_OK(bh_device_close(device));
    CHECK_EQ(bh__offer_connect(folder, name), -1);
    CHECK_EQ(entries(), 0u);
    close(ends[0]);
    close(ends[1]);
    waitpid(child, NULL, 0);
    close(folder);
}

/* Folders that are read-only, relative, or cannot be made. */
TEST(a_device_opens_wherever_its_socket_cannot_be) {
    use_own_folder();
    char path[300];
    folder_path(path);
    REQUIRE(mkdir(path, 0500) == 0);
    bh_device device = open_bare(0);
    CHECK_OK(bh_device_close(device));
    static const char *const folders[] = {"relative", "/proc/self/nothing", "/dev/null"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        setenv("BULKHEAD_RUNTIME_DIR", folders[i], 1);
        device = open_bare(0);
        CHECK_OK(bh_device_close(device));
    }
}
