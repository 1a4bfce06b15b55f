/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead doctor`: what is installed, what is missing, what to do about it. */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

typedef enum level { INFO, OK, WARN, BROKEN } level;

typedef struct doctor {
    bh__json *json; /* NULL: lines of text */
    unsigned warnings, broken;
} doctor;

static const char *const level_names[] = {"info", "ok", "warn", "FAIL"};

/* `fix` is NULL where there is nothing to do. */
__attribute__((format(printf, 4, 5))) static void find(doctor *d, level how, const char *fix,
                                                       const char *format, ...) {
    char text[700];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    d->warnings += how == WARN;
    d->broken += how == BROKEN;
    if (d->json == NULL) {
        printf("%-4s  %s\n", level_names[how], text);
        if (fix != NULL && fix[0] != '\0') printf("      Fix: %s\n", fix);
        fflush(stdout);
        return;
    }
    bh__json_open(d->json, '{');
    bh__json_key(d->json, "level");
    bh__json_text(d->json, level_names[how]);
    bh__json_key(d->json, "text");
    bh__json_text(d->json, text);
    if (fix != NULL && fix[0] != '\0') {
        bh__json_key(d->json, "fix");
        bh__json_text(d->json, fix);
    }
    bh__json_close(d->json, '}');
}

/* ---- the system ---- */

static void look_at_machine(doctor *d) {
    struct utsname name;
    char total[BH__TEXT], spare[BH__TEXT];
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus)
                                                              : (int)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t available = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
    if (uname(&name) == 0)
        find(d, OK, NULL, "%s %s on %s", name.sysname, name.release, name.machine);
    find(d, OK, NULL, "%d core%s, %s of memory, %s of it unused", cores, cores == 1 ? "" : "s",
         bh__text_size(bh__memory_limit(), total), bh__text_size(available, spare));
}

static void look_at_memfd(doctor *d) {
    int fd = memfd_create("bulkhead-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && ftruncate(fd, 4096) == 0 &&
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
    int number = errno;
    if (fd >= 0) close(fd);
    if (sealed)
        find(d, OK, NULL, "shared memory that can be sealed (memfd)");
    else
        find(d, BROKEN, "run on Linux 3.17 or later, in a container that allows memfd_create",
             "shared memory cannot be made or sealed (memfd): %s", strerror(number));
}

static void look_at_pidfd(doctor *d) {
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        close((int)fd);
        find(d, OK, NULL, "processes can be watched (pidfd)");
    } else {
        find(
            d, WARN,
            "nothing need be done; Linux 5.4 or later that allows pidfd_open saves a thread a worker",
            "no pidfds (%s): processes are watched by threads", strerror(errno));
    }
}

static void look_at_tracking(doctor *d) {
    if (bh_managed_tracking() == BH_OK) {
        find(d, OK, NULL,
             "written pages are told (userfaultfd, PAGEMAP_SCAN), for transparent buffers");
        return;
    }
    bh_error why;
    (void)bh_last_error(&why);
    find(d, INFO, why.fix, "transparent managed buffers move all that a launch uses: %s",
         why.message);
}

static void look_at_limits(doctor *d) {
    struct rlimit files, memory;
    char size[BH__TEXT];
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 256)
        find(d, WARN, "raise it: ulimit -n 1024", "only %llu open files are allowed",
             (unsigned long long)files.rlim_cur);
    else
        find(d, OK, NULL, "enough open files are allowed");
    if (getrlimit(RLIMIT_MEMLOCK, &memory) == 0) {
        bool any = memory.rlim_cur == RLIM_INFINITY;
        find(d, INFO,
             any || access("/dev/nvidiactl", F_OK) != 0
                 ? NULL
                 : "if host memory cannot be registered with a GPU, raise it: ulimit -l unlimited",
             "locked memory: %s; the CPU device needs none",
             any ? "any amount" : bh__text_size(memory.rlim_cur, size));
    }
    /* 1: UFFD_USER_MODE_ONLY, allowed without privileges since Linux 5.11. */
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
    if (fd >= 0) close((int)fd);
    find(d, INFO, NULL, "page tracking by userfaultfd, not needed: %s",
         fd >= 0 ? "there" : strerror(errno));
}

/* ---- NVIDIA and compilers ---- */

static void look_at_driver_files(doctor *d, const bh__nvidia *nvidia) {
    if (nvidia->denied[0] != '\0')
        find(d, WARN,
             "give this user access to /dev/nvidia* (group video or render, or the container's "
             "device list)",
             "NVIDIA driver: no permission to open %s", nvidia->denied);
    if (nvidia->no_memory_file)
        find(d, WARN, "make it with nvidia-modprobe -u -c 0, as root, or pass it to the container",
             "NVIDIA driver: /dev/nvidia-uvm is not there");
}

static void look_at_driver_versions(doctor *d, const bh__nvidia *nvidia) {
    if (nvidia->version > 0 && nvidia->version < 12000)
        find(d, WARN, "install an NVIDIA driver that supports CUDA 12.0 or later (525 or later)",
             "NVIDIA driver: it supports CUDA %d.%d; 12.0 is the oldest that will do",
             nvidia->version / 1000, nvidia->version % 1000 / 10);
    const char *module = nvidia->module_version, *library = nvidia->library_version;
    if (module[0] == '\0' || library[0] == '\0' || strcmp(module, library) == 0) return;
    if (strstr(nvidia->library_path, "compat") != NULL)
        find(d, INFO, NULL, "NVIDIA driver: kernel module %s, used by a newer library, %s", module,
             nvidia->library_path);
    else
        find(d, WARN, "reboot, or install the same version of both parts of the driver",
             "NVIDIA driver: its kernel module is %s and its library %s (%s)", module, library,
             nvidia->library_path);
}

static void look_at_driver(doctor *d, const bh__nvidia *nvidia) {
    char version[96] = "";
    if (nvidia->version > 0)
        snprintf(version, sizeof version, " (CUDA %d.%d%s%s)", nvidia->version / 1000,
                 nvidia->version % 1000 / 10, nvidia->module_version[0] != '\0' ? ", " : "",
                 nvidia->module_version);
    if (nvidia->control && nvidia->library)
        find(d, OK, NULL, "NVIDIA driver%s: /dev/nvidiactl and libcuda.so.1 are there", version);
    else if (nvidia->control)
        find(d, WARN, "install the user part of the driver (libcuda.so.1), in the container too",
             "NVIDIA driver: /dev/nvidiactl is there, libcuda.so.1 is not");
    else if (nvidia->library)
        find(d, INFO, "start a container with its GPU, or load the nvidia kernel module",
             "NVIDIA driver%s: libcuda.so.1 is there, /dev/nvidiactl is not", version);
    else if (nvidia->gpus > 0)
        find(
            d, INFO,
            "to use it, install the NVIDIA driver, 525 or later; a container must be given its GPU",
            "no NVIDIA driver, though there %s NVIDIA GPU%s on the PCI bus: kernels run on the "
            "CPU device",
            nvidia->gpus == 1 ? "is an" : "are", nvidia->gpus == 1 ? "" : "s");
    else
        find(d, INFO, NULL, "no NVIDIA driver: kernels run on the CPU device");
    look_at_driver_files(d, nvidia);
    look_at_driver_versions(d, nvidia);
}

static void look_at_compilers(doctor *d) {
    enum { MOST = 16 };
    bh_compiler_entry entries[MOST] = {{.size = sizeof entries[0]}};
    size_t count = 0;
    bool any = false;
    bh_error error;
    if (bh_compiler_enumerate(entries, MOST, &count) != BH_OK) {
        bh__report_library(&error);
        find(d, WARN, error.fix, "CUDA C++ cannot be compiled: %s", error.message);
        return;
    }
    for (size_t i = 0; i < count && i < MOST; i++) {
        const bh_compiler_entry *entry = &entries[i];
        const char *name = entry->compiler == BH_COMPILER_NVRTC   ? "NVRTC"
                           : entry->compiler == BH_COMPILER_CLANG ? "clang"
                                                                  : "nvJitLink";
        if (entry->usable)
            find(d, OK, NULL, "%s: %s, %s", name, entry->version, entry->path);
        else
            find(d, INFO, NULL, "%s cannot be used: %s", name, entry->why);
        any |= entry->usable && entry->compiler != 0;
    }
    if (!any)
        find(d, INFO, "apt install clang-19, or install the CUDA toolkit",
             "no compiler for CUDA C++ was found; none is needed to run PTX");
}

static void look_at_cache(doctor *d) {
    bh_cache_info info = BH_INIT(info);
    bh_error error;
    char bytes[BH__TEXT], limit[BH__TEXT];
    if (bh_cache_query(NULL, &info) != BH_OK) {
        bh__report_library(&error);
        find(d, WARN, error.fix, "the cache cannot be looked at: %s", error.message);
    } else if (!info.usable) {
        find(d, WARN, "set BULKHEAD_CACHE_DIR to a private folder; all works without, slower",
             "compiled kernels are not kept in %s: %s", info.dir, info.why);
    } else {
        find(d, info.why[0] != '\0' ? WARN : OK,
             info.why[0] != '\0' ? "make room, or set BULKHEAD_CACHE_DIR" : NULL,
             "cache %s: %llu entr%s, %s of %s%s%s", info.dir, (unsigned long long)info.entries,
             info.entries == 1 ? "y" : "ies", bh__text_size(info.bytes, bytes),
             bh__text_size(info.limit, limit), info.why[0] != '\0' ? "; " : "", info.why);
    }
}

/* ---- devices ---- */

/* Runs saxpy over a few elements. BH_E_INTERNAL: it ran and the result was wrong. */
static bh_status try_kernel(bh_device device) {
    enum { N = 64 };
    float x[N], y[N];
    bh_module module;
    bh_kernel saxpy;
    bh_buffer bx, by;
    bh_ticket done;
    for (int i = 0; i < N; i++) {
        x[i] = (float)i;
        y[i] = 1;
    }
    bh_status status = bh_module_load(device, bh__demo_ptx, strlen(bh__demo_ptx), &module);
    if (status == BH_OK) status = bh_kernel_get(module, "saxpy", &saxpy);
    if (status == BH_OK) status = bh_buffer_alloc(device, BH_F32, N, &bx);
    if (status == BH_OK) status = bh_buffer_alloc(device, BH_F32, N, &by);
    if (status == BH_OK) status = bh_buffer_write(bx, 0, x, sizeof x);
    if (status == BH_OK) status = bh_buffer_write(by, 0, y, sizeof y);
    if (status == BH_OK)
        status = bh_launch(saxpy, BH_GRID(N, 32),
                           BH_ARGS(3.0f, BH_IN(bx), BH_INOUT(by), (uint32_t)N), &done);
    if (status == BH_OK) status = bh_wait(done, UINT64_C(30000000000));
    if (status == BH_OK) status = bh_buffer_read(by, 0, y, sizeof y);
    for (int i = 0; status == BH_OK && i < N; i++)
        if (y[i] != 3.0f * (float)i + 1.0f) status = BH_E_INTERNAL;
    return status;
}

static void find_worker_path(bh_device device, char *out, size_t size) {
    bh_device_status state = BH_INIT(state);
    char link[64];
    snprintf(out, size, "unknown");
    if (bh_device_get_status(device, &state) != BH_OK) return;
    snprintf(link, sizeof link, "/proc/%d/exe", (int)state.worker_pid);
    ssize_t length = readlink(link, out, size - 1);
    if (length >= 0)
        out[length] = '\0';
    else
        snprintf(out, size, "unknown");
}

static void try_device(doctor *d, const char *name) {
    bh_device_options options = BH_INIT(options);
    options.device = name;
    options.flags = BH_DEVICE_NO_STANDBY;
    bh_device device;
    bh_error error;
    uint64_t start = bh__now_ns();
    if (bh_device_open(&options, &device) != BH_OK) {
        bh__report_library(&error);
        find(d, BROKEN, error.fix, "device %s: %s: %s", name, bh_status_name(error.status),
             error.message);
        return;
    }
    char time[BH__TEXT], path[512];
    bh__text_time(bh__now_ns() - start, time);
    find_worker_path(device, path, sizeof path);
    find(d, OK, NULL, "device %s: opened in %s, worker %s", name, time, path);
    bh_status status = try_kernel(device);
    if (status == BH_OK) {
        find(d, OK, NULL, "device %s: a kernel ran and its result was right", name);
    } else if (status == BH_E_INTERNAL) {
        find(d, BROKEN, "reinstall Bulkhead", "device %s: a kernel ran and its result was wrong",
             name);
    } else {
        bh__report_library(&error);
        find(d, BROKEN, error.fix, "device %s: no kernel could be run: %s: %s", name,
             bh_status_name(status), error.message);
    }
    bh_device_close(device);
}

/* What works, and could work better. */
static void look_at_use(doctor *d, const bh_device_entry *entry) {
    enum { ENOUGH_MIB = 768 };
    const bh_device_info *info = &entry->info;
    char spare[BH__TEXT], total[BH__TEXT];
    if (strcmp(info->kind, "cpu") == 0) return;
    if (info->memory_free < (uint64_t)ENOUGH_MIB << 20)
        find(d, WARN, "end other programs on it; nvidia-smi lists them",
             "device %s: %s free of %s; a worker needs about half a GiB besides its buffers, and a "
             "standby as much again",
             entry->name, bh__text_size(info->memory_free, spare),
             bh__text_size(info->memory_total, total));
    if (info->no_standby[0] != '\0')
        find(d, WARN,
             info->mps
                 ? "to have one, stop the MPS control daemon: echo quit | nvidia-cuda-mps-control"
                 : "to have one, as root: nvidia-smi -i NUMBER -c DEFAULT",
             "device %s: no standby: %s", entry->name, info->no_standby);
}

static void look_at_devices(doctor *d, const bh__nvidia *nvidia) {
    enum { MOST = 64 };
    bh_error error;
    size_t count = 0;
    bh_device_entry *entries = calloc(MOST, sizeof *entries);
    for (size_t i = 0; entries != NULL && i < MOST; i++)
        entries[i].info.size = (uint32_t)sizeof entries[i].info;
    if (entries == NULL || bh_device_enumerate(entries, MOST, &count) != BH_OK) {
        bh__report_library(&error);
        find(d, BROKEN, error.fix, "devices cannot be listed: %s", error.message);
        free(entries);
        return;
    }
    for (size_t i = 0; i < count && i < MOST; i++) {
        const bh_device_entry *entry = &entries[i];
        bool is_cpu = strcmp(entry->name, "cpu") == 0;
        if (entry->status == BH_OK) {
            look_at_use(d, entry);
            try_device(d, entry->name);
            continue;
        }
        /* Where there is no such hardware, nothing is wrong and there is nothing to do. */
        enum { NO_DEVICE = 100 };
        bool none = !nvidia->library || entry->error.device_code == NO_DEVICE;
        bool expected = !is_cpu && !nvidia->control && none;
        find(d,
             is_cpu     ? BROKEN
             : expected ? INFO
                        : WARN,
             expected ? NULL : entry->error.fix, "device %s: %s: %s", entry->name,
             bh_status_name(entry->status), entry->error.message);
    }
    if (count == 0) find(d, BROKEN, "reinstall Bulkhead", "there is no device at all");
    free(entries);
}

static void look_at_library(doctor *d) {
    char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
    if (strcmp(built, bh_version()) == 0)
        find(d, OK, NULL, "bulkhead %s with its library", built);
    else
        find(d, WARN, "install both from the same version",
             "this command is %s, the library it found is %s", built, bh_version());
}

static void look_at_all(doctor *d) {
    look_at_library(d);
    look_at_machine(d);
    look_at_memfd(d);
    look_at_pidfd(d);
    look_at_tracking(d);
    look_at_limits(d);
    bh__nvidia nvidia;
    bh__nvidia_look(&nvidia);
    look_at_driver(d, &nvidia);
    look_at_compilers(d);
    look_at_cache(d);
    look_at_devices(d, &nvidia);
}

int bh__doctor_main(int count, char **list) {
    bh__simple_options options;
    int code = bh__simple_options_parse("doctor", "j", count, list, &options);
    if (code != BH__EXIT_DONE || options.help) return code;
    doctor d = {NULL, 0, 0};
    if (options.json) {
        bh__json json;
        bh__json_begin(&json, stdout);
        d.json = &json;
        bh__json_open(&json, '{');
        bh__json_key(&json, "findings");
        bh__json_open(&json, '[');
        look_at_all(&d);
        bh__json_close(&json, ']');
        bh__json_key(&json, "warnings");
        bh__json_number(&json, d.warnings);
        bh__json_key(&json, "broken");
        bh__json_number(&json, d.broken);
        bh__json_close(&json, '}');
        bh__json_end(&json);
    } else {
        look_at_all(&d);
        if (d.broken > 0)
            printf("\n%u broken, %u warning%s.\n", d.broken, d.warnings,
                   d.warnings == 1 ? "" : "s");
        else if (d.warnings > 0)
            printf("\nBulkhead works here; %u warning%s.\n", d.warnings,
                   d.warnings == 1 ? "" : "s");
        else
            printf("\nEverything Bulkhead needs is here.\n");
    }
    return d.broken > 0 ? BH__EXIT_REFUSED : BH__EXIT_DONE;
}
