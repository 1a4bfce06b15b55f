/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead doctor`: checks what is installed and what is missing, and prints fixes. */
#include "cli.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "sandbox/files.h"

typedef enum level { INFO, OK, WARN, BROKEN } level;

typedef struct doctor {
    bh__json *json; /* NULL: lines of text */
    unsigned warnings, broken;
} doctor;

static const char *const level_names[] = {"info", "ok", "warn", "FAIL"};

/* Prints one finding. `fix` is NULL if nothing needs to be done. */
__attribute__((format(printf, 4, 5))) static void report(doctor *d, level how, const char *fix,
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

static void check_machine(doctor *d) {
    struct utsname name;
    char total[BH__TEXT], spare[BH__TEXT];
    cpu_set_t cpus;
    int cores = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus)
                                                              : (int)sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t available = (uint64_t)sysconf(_SC_AVPHYS_PAGES) * page;
    if (uname(&name) == 0)
        report(d, OK, NULL, "%s %s on %s", name.sysname, name.release, name.machine);
    report(d, OK, NULL, "%d core%s, %s of memory, %s of it unused", cores, cores == 1 ? "" : "s",
           bh__text_size(bh__memory_limit(), total), bh__text_size(available, spare));
}

static void check_memfd(doctor *d) {
    int fd = memfd_create("bulkhead-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    bool sealed = fd >= 0 && ftruncate(fd, 4096) == 0 &&
                  fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0;
    int number = errno;
    if (fd >= 0) close(fd);
    if (sealed)
        report(d, OK, NULL, "shared memory can be sealed (memfd)");
    else
        report(d, BROKEN, "run on Linux 3.17 or later, in a container that allows memfd_create",
               "shared memory cannot be made or sealed (memfd): %s", strerror(number));
}

static void check_pidfd(doctor *d) {
    long fd = syscall(SYS_pidfd_open, getpid(), 0);
    if (fd >= 0) {
        close((int)fd);
        report(d, OK, NULL, "processes can be watched (pidfd)");
    } else {
        report(d, WARN,
               "optional: Linux 5.4 or later that allows pidfd_open saves one thread per worker",
               "no pidfd (%s): processes are watched by threads", strerror(errno));
    }
}

static void check_sandbox(doctor *d) {
    uint32_t trap = SECCOMP_RET_TRAP;
    if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &trap) == 0)
        report(d, OK, NULL, "system calls of workers and compilers can be filtered (seccomp)");
    else
        report(d, WARN, "run on Linux 4.14 or later, in a container that allows seccomp",
               "no seccomp (%s): workers and compilers can make any system call", strerror(errno));
    int version = bh__sandbox_files_abi();
    if (version > 0)
        report(d, OK, NULL,
               "file access of workers and compilers can be restricted (Landlock, version %d)",
               version);
    else
        report(
            d, WARN,
            "run on Linux 5.13 or later with landlock in its list of security modules (lsm=), in "
            "a container that allows landlock_create_ruleset",
            "no Landlock (%s): only seccomp restricts the file access of workers, and a source "
            "that is "
            "compiled can include every file of this user",
            strerror(-version));
}

/* Of the system: any device that can be opened has the answer. */
static void check_tracking(doctor *d, const bh_device_entry *entries, size_t count) {
    size_t i = 0;
    while (i < count && entries[i].status != BH_OK) i++;
    if (i == count) return;
    if (entries[i].limits.no_tracking[0] == '\0')
        report(d, OK, NULL,
               "written pages can be tracked (userfaultfd, PAGEMAP_SCAN), for transparent buffers");
    else
        report(d, INFO, "run on Linux 6.7 or later with userfaultfd and /proc",
               "transparent managed buffers copy everything that a launch uses: %s",
               entries[i].limits.no_tracking);
}

static void check_limits(doctor *d) {
    struct rlimit files, memory;
    char size[BH__TEXT];
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 256)
        report(d, WARN, "raise it: ulimit -n 1024", "only %llu open files are allowed",
               (unsigned long long)files.rlim_cur);
    else
        report(d, OK, NULL, "enough open files are allowed");
    if (getrlimit(RLIMIT_MEMLOCK, &memory) == 0) {
        bool any = memory.rlim_cur == RLIM_INFINITY;
        report(
            d, INFO,
            any || access("/dev/nvidiactl", F_OK) != 0
                ? NULL
                : "if host memory cannot be registered with a GPU, raise it: ulimit -l unlimited",
            "locked memory: %s; the CPU device needs none",
            any ? "any amount" : bh__text_size(memory.rlim_cur, size));
    }
    /* 1: UFFD_USER_MODE_ONLY, allowed without privileges since Linux 5.11. */
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | 1);
    if (fd >= 0) close((int)fd);
    report(d, INFO, NULL, "page tracking by userfaultfd, not needed: %s",
           fd >= 0 ? "available" : strerror(errno));
}

/* ---- NVIDIA and compilers ---- */

static void check_driver_files(doctor *d, const bh__nvidia *nvidia) {
    if (nvidia->denied[0] != '\0')
        report(d, WARN,
               "give this user access to /dev/nvidia* (group video or render, or the container's "
               "device list)",
               "NVIDIA driver: no permission to open %s", nvidia->denied);
    if (nvidia->no_memory_file)
        report(d, WARN,
               "make it with nvidia-modprobe -u -c 0, as root, or pass it to the container",
               "NVIDIA driver: /dev/nvidia-uvm does not exist");
}

static void check_driver_versions(doctor *d, const bh__nvidia *nvidia) {
    if (nvidia->version > 0 && nvidia->version < 12000)
        report(d, WARN, "install an NVIDIA driver that supports CUDA 12.0 or later (525 or later)",
               "NVIDIA driver: it supports CUDA %d.%d; at least 12.0 is needed",
               nvidia->version / 1000, nvidia->version % 1000 / 10);
    const char *module = nvidia->module_version, *library = nvidia->library_version;
    if (module[0] == '\0' || library[0] == '\0' || strcmp(module, library) == 0) return;
    if (strstr(nvidia->library_path, "compat") != NULL)
        report(d, INFO, NULL, "NVIDIA driver: kernel module %s, used by a newer library, %s",
               module, nvidia->library_path);
    else
        report(d, WARN, "reboot, or install the same version of both parts of the driver",
               "NVIDIA driver: its kernel module is %s and its library %s (%s)", module, library,
               nvidia->library_path);
}

static void check_driver(doctor *d, const bh__nvidia *nvidia) {
    char version[96] = "";
    if (nvidia->version > 0)
        snprintf(version, sizeof version, " (CUDA %d.%d%s%s)", nvidia->version / 1000,
                 nvidia->version % 1000 / 10, nvidia->module_version[0] != '\0' ? ", " : "",
                 nvidia->module_version);
    if (nvidia->control && nvidia->library)
        report(d, OK, NULL, "NVIDIA driver%s: /dev/nvidiactl and libcuda.so.1 found", version);
    else if (nvidia->control)
        report(d, WARN, "install the user part of the driver (libcuda.so.1), in the container too",
               "NVIDIA driver: /dev/nvidiactl exists, libcuda.so.1 was not found");
    else if (nvidia->library)
        report(d, INFO, "start a container with its GPU, or load the nvidia kernel module",
               "NVIDIA driver%s: libcuda.so.1 found, /dev/nvidiactl does not exist", version);
    else if (nvidia->gpus > 0)
        report(
            d, WARN,
            "install the NVIDIA driver, 525 or later, or open \"cpu\" or \"cuda,cpu\"; a container "
            "must be given its GPU",
            "no NVIDIA driver, though there %s %u NVIDIA GPU%s on the PCI bus: the device \"auto\" "
            "cannot be opened",
            nvidia->gpus == 1 ? "is" : "are", nvidia->gpus, nvidia->gpus == 1 ? "" : "s");
    else
        report(d, INFO, NULL, "no NVIDIA driver: kernels run on the CPU device");
    check_driver_files(d, nvidia);
    check_driver_versions(d, nvidia);
}

static void check_compilers(doctor *d) {
    enum { MAX_ENTRIES = 16 };
    bh_compiler_entry entries[MAX_ENTRIES];
    size_t count = 0;
    bool any = false;
    bh_error error;
    if (bh_compiler_list(entries, sizeof *entries, MAX_ENTRIES, &count) != BH_OK) {
        bh__report_library(&error);
        report(d, WARN, error.fix, "CUDA C++ cannot be compiled: %s", error.message);
        return;
    }
    for (size_t i = 0; i < count && i < MAX_ENTRIES; i++) {
        const bh_compiler_entry *entry = &entries[i];
        const char *name = entry->compiler == BH_COMPILER_NVRTC   ? "NVRTC"
                           : entry->compiler == BH_COMPILER_CLANG ? "clang"
                                                                  : "nvJitLink";
        if (entry->usable)
            report(d, OK, NULL, "%s: %s, %s", name, entry->version, entry->path);
        else
            report(d, INFO, NULL, "%s cannot be used: %s", name, entry->why);
        any |= entry->usable && entry->compiler != 0;
    }
    if (!any)
        report(d, INFO, "apt install clang-19, or install the CUDA toolkit",
               "no compiler for CUDA C++ was found; none is needed to run PTX");
}

static void check_cache(doctor *d) {
    bh_cache_info info = BH_INIT(info);
    bh_error error;
    char bytes[BH__TEXT], limit[BH__TEXT];
    if (bh_cache_get_info(NULL, &info) != BH_OK) {
        bh__report_library(&error);
        report(d, WARN, error.fix, "the cache cannot be queried: %s", error.message);
    } else if (!info.usable) {
        report(d, WARN,
               "set BULKHEAD_CACHE_DIR to a private folder; without a cache, compiles are slower",
               "compiled kernels are not cached in %s: %s", info.dir, info.why);
    } else {
        report(d, info.why[0] != '\0' ? WARN : OK,
               info.why[0] != '\0' ? "free disk space, or set BULKHEAD_CACHE_DIR" : NULL,
               "cache %s: %llu entr%s, %s of %s%s%s", info.dir, (unsigned long long)info.entries,
               info.entries == 1 ? "y" : "ies", bh__text_size(info.bytes, bytes),
               bh__text_size(info.limit, limit), info.why[0] != '\0' ? "; " : "", info.why);
    }
}

/* ---- devices ---- */

/* Runs saxpy over a few elements. Returns BH_E_INTERNAL if it ran and the result was wrong. */
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
    if (status == BH_OK) status = bh_buffer_alloc(device, BH_F32, N, NULL, &bx);
    if (status == BH_OK) status = bh_buffer_alloc(device, BH_F32, N, NULL, &by);
    if (status == BH_OK) status = bh_buffer_write(bx, 0, x, sizeof x);
    if (status == BH_OK) status = bh_buffer_write(by, 0, y, sizeof y);
    if (status == BH_OK)
        status = bh_launch(saxpy, BH_GRID(N, 32),
                           BH_ARGS(3.0f, BH_IN(bx), BH_INOUT(by), (uint32_t)N), NULL, &done);
    if (status == BH_OK) status = bh_wait(done, UINT64_C(30000000000));
    if (status == BH_OK) status = bh_buffer_read(by, 0, y, sizeof y);
    for (int i = 0; status == BH_OK && i < N; i++)
        if (y[i] != 3.0f * (float)i + 1.0f) status = BH_E_INTERNAL;
    return status;
}

static void find_worker_path(bh_device device, char *out, size_t size) {
    bh_health state = BH_INIT(state);
    char link[64];
    snprintf(out, size, "unknown");
    if (bh_device_get_health(device, &state) != BH_OK) return;
    snprintf(link, sizeof link, "/proc/%d/exe", (int)state.worker_pid);
    ssize_t length = readlink(link, out, size - 1);
    if (length >= 0)
        out[length] = '\0';
    else
        snprintf(out, size, "unknown");
}

static void check_confinement(doctor *d, const char *name, bh_device device) {
    bh_device_info info = BH_INIT(info);
    if (bh_device_get_info(device, &info) != BH_OK) return;
    if (info.sandbox_lack[0] != '\0')
        report(d, WARN, "see docs/sandbox.md for what each part needs; kernels run without it too",
               "device %s: its worker is not fully confined: %s", name, info.sandbox_lack);
    else
        report(d, OK, NULL, "device %s: its worker is confined: %s", name,
               info.sandbox & BH_CONFINED_LIST ? "memory, threads and its socket, nothing else"
                                               : "no programs, no sockets, no other process");
}

/* Libraries for library calls (bulkhead/library.h), as the worker of a device finds them. */
static void check_libraries(doctor *d, const char *name) {
    static const struct {
        uint32_t bit;
        const char *what;
    } libraries[] = {
        {BH_LIBRARY_BLAS, "BLAS"}, {BH_LIBRARY_FFT, "FFT"}, {BH_LIBRARY_SOLVER, "SOLVER"}};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
        bh_device_options options = BH_INIT(options);
        bh_device device;
        bh_error error;
        options.device = name;
        options.flags = BH_DEVICE_NO_STANDBY;
        options.libraries = libraries[i].bit;
        bh_status status = bh_device_open(&options, &device);
        if (status == BH_OK) status = bh_library_load(device, libraries[i].bit);
        if (status != BH_OK) bh__report_library(&error);
        if (status == BH_OK)
            report(d, OK, NULL, "device %s: library %s can be used", name, libraries[i].what);
        else
            report(d, INFO, error.fix, "device %s: library %s cannot be used: %s", name,
                   libraries[i].what, error.message);
        bh_device_close(device);
    }
}

/* LLVM of another major version has another name: the library finds the one it was built with. */
static const char *other_llvm(void) {
    static const char *const names[] = {"libLLVM.so.20.1", "libLLVM-20.so.1", "libLLVM.so.18.1",
                                        "libLLVM-18.so.1", "libLLVM-17.so.1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        void *library = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);
        if (library == NULL) continue;
        dlclose(library);
        return names[i];
    }
    return NULL;
}

/* bulkhead-compiler loads it from its own folder, which is the worker's. */
static void check_jit(doctor *d, const char *worker) {
    char path[600];
    const char *slash = strrchr(worker, '/');
    snprintf(path, sizeof path, "%.*slibbulkhead-jit.so", slash ? (int)(slash + 1 - worker) : 0,
             worker);
    if (access(path, R_OK) != 0) {
        report(d, INFO, NULL, "device cpu: kernels are interpreted: built without LLVM 19");
        return;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        char why[220];
        snprintf(why, sizeof why, "%s", dlerror());
        const char *other = other_llvm();
        report(d, WARN, "install LLVM 19 (apt install libllvm19), or rebuild Bulkhead with it",
               "device cpu: kernels are interpreted, its JIT does not load: %s%s%s", why,
               other ? "; found instead: " : "", other ? other : "");
        return;
    }
    void (*version)(unsigned *, unsigned *, unsigned *);
    unsigned major = 0, minor = 0, patch = 0;
    *(void **)&version = dlsym(library, "LLVMGetVersion");
    if (version) version(&major, &minor, &patch);
    report(d, OK, NULL,
           "device cpu: native code for kernels (--executor=auto, jit) with LLVM %u.%u.%u", major,
           minor, patch);
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
        report(d, BROKEN, error.fix, "device %s: %s: %s", name, bh_status_name(error.status),
               error.message);
        return;
    }
    char time[BH__TEXT], path[512];
    bh__text_time(bh__now_ns() - start, time);
    find_worker_path(device, path, sizeof path);
    report(d, OK, NULL, "device %s: opened in %s, worker %s", name, time, path);
    check_confinement(d, name, device);
    if (strcmp(name, "cpu") == 0) check_jit(d, path);
    bh_status status = try_kernel(device);
    if (status == BH_OK) {
        report(d, OK, NULL, "device %s: a kernel ran and its result was right", name);
    } else if (status == BH_E_INTERNAL) {
        report(d, BROKEN, "reinstall Bulkhead", "device %s: a kernel ran and its result was wrong",
               name);
    } else {
        bh__report_library(&error);
        report(d, BROKEN, error.fix, "device %s: a kernel could not be run: %s: %s", name,
               bh_status_name(status), error.message);
    }
    if (status == BH_OK) check_libraries(d, name);
    bh_device_close(device);
}

/* Warnings about a device that works. */
static void check_use(doctor *d, const bh_device_entry *entry) {
    enum { ENOUGH_MIB = 768 };
    const bh_device_info *info = &entry->info;
    char spare[BH__TEXT], total[BH__TEXT];
    if (strcmp(info->kind, "cpu") == 0) return;
    if (info->memory_free < (uint64_t)ENOUGH_MIB << 20)
        report(
            d, WARN, "close other programs on it; nvidia-smi lists them",
            "device %s: %s of %s free; a worker needs about half a GiB in addition to its buffers, "
            "and "
            "a standby needs as much",
            entry->device, bh__text_size(info->memory_free, spare),
            bh__text_size(info->memory_total, total));
    if (info->no_standby[0] != '\0')
        report(d, WARN,
               entry->limits.mps
                   ? "to have one, stop the MPS control daemon: echo quit | nvidia-cuda-mps-control"
                   : "to have one, as root: nvidia-smi -i NUMBER -c DEFAULT",
               "device %s: no standby: %s", entry->device, info->no_standby);
}

static void check_devices(doctor *d, const bh__nvidia *nvidia) {
    enum { MAX_ENTRIES = 64 };
    bh_error error;
    size_t count = 0;
    bh_device_entry *entries = calloc(MAX_ENTRIES, sizeof *entries);
    if (entries == NULL || bh_device_list(entries, sizeof *entries, MAX_ENTRIES, &count) != BH_OK) {
        bh__report_library(&error);
        report(d, BROKEN, error.fix, "devices cannot be listed: %s", error.message);
        free(entries);
        return;
    }
    check_tracking(d, entries, count < MAX_ENTRIES ? count : MAX_ENTRIES);
    for (size_t i = 0; i < count && i < MAX_ENTRIES; i++) {
        const bh_device_entry *entry = &entries[i];
        bool is_cpu = strcmp(entry->device, "cpu") == 0;
        if (entry->status == BH_OK) {
            check_use(d, entry);
            try_device(d, entry->device);
            continue;
        }
        /* Missing hardware is not an error. */
        enum { NO_DEVICE = 100 };
        bool none = !nvidia->library || entry->error.device_code == NO_DEVICE;
        bool expected = !is_cpu && !nvidia->control && none;
        report(d,
               is_cpu     ? BROKEN
               : expected ? INFO
                          : WARN,
               expected ? NULL : entry->error.fix, "device %s: %s: %s", entry->device,
               bh_status_name(entry->status), entry->error.message);
    }
    if (count == 0) report(d, BROKEN, "reinstall Bulkhead", "no device was found");
    free(entries);
}

static void check_library(doctor *d) {
    char built[32];
    snprintf(built, sizeof built, "%d.%d.%d", BH_VERSION_MAJOR, BH_VERSION_MINOR, BH_VERSION_PATCH);
    if (strcmp(built, bh_version()) == 0)
        report(d, OK, NULL, "bulkhead %s with its library", built);
    else
        report(d, WARN, "install both from the same version",
               "this command is %s, the library it found is %s", built, bh_version());
}

static void check_all(doctor *d) {
    check_library(d);
    check_machine(d);
    check_memfd(d);
    check_pidfd(d);
    check_sandbox(d);
    check_limits(d);
    bh__nvidia nvidia;
    bh__nvidia_look(&nvidia);
    check_driver(d, &nvidia);
    check_compilers(d);
    check_cache(d);
    check_devices(d, &nvidia);
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
        check_all(&d);
        bh__json_close(&json, ']');
        bh__json_key(&json, "warnings");
        bh__json_number(&json, d.warnings);
        bh__json_key(&json, "broken");
        bh__json_number(&json, d.broken);
        bh__json_close(&json, '}');
        bh__json_end(&json);
    } else {
        check_all(&d);
        if (d.broken > 0)
            printf("\nNot well: %u broken, %u warning%s.\n", d.broken, d.warnings,
                   d.warnings == 1 ? "" : "s");
        else if (d.warnings > 0)
            printf("\nWell, with %u warning%s: Bulkhead works here.\n", d.warnings,
                   d.warnings == 1 ? "" : "s");
        else
            printf("\nAll is well: Bulkhead works here.\n");
    }
    return d.broken > 0 ? BH__EXIT_REFUSED : BH__EXIT_DONE;
}
