/* SPDX-License-Identifier: Apache-2.0 */
/* The same measures with the NVIDIA driver alone, in a child process: what a program without
 * Bulkhead has. A loss cannot be measured, because such a program does not survive it. */
#include "cli/bench/bench.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef unsigned long long address;

typedef struct driver {
    int (*init)(unsigned);
    int (*device)(int *, int);
    int (*retain)(void **, int);
    int (*current)(void *);
    int (*load)(void **, const void *);
    int (*function)(void **, void *, const char *);
    int (*stream)(void **, unsigned);
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                  void *, void **, void **);
    int (*wait)(void *);
    int (*alloc)(address *, size_t);
    int (*to_device)(address, const void *, size_t);
    int (*to_host)(void *, address, size_t);
} driver;

static const struct {
    const char *name;
    size_t offset;
} functions[] = {
    {"cuInit", offsetof(driver, init)},
    {"cuDeviceGet", offsetof(driver, device)},
    {"cuDevicePrimaryCtxRetain", offsetof(driver, retain)},
    {"cuCtxSetCurrent", offsetof(driver, current)},
    {"cuModuleLoadData", offsetof(driver, load)},
    {"cuModuleGetFunction", offsetof(driver, function)},
    {"cuStreamCreate", offsetof(driver, stream)},
    {"cuLaunchKernel", offsetof(driver, launch)},
    {"cuStreamSynchronize", offsetof(driver, wait)},
    {"cuMemAlloc_v2", offsetof(driver, alloc)},
    {"cuMemcpyHtoD_v2", offsetof(driver, to_device)},
    {"cuMemcpyDtoH_v2", offsetof(driver, to_host)},
};

typedef struct subject {
    driver cu;
    void *stream, *kernel;
    address buffer;
    uint8_t *host;
    double scale;
} subject;

static const char ptx[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                          ".visible .entry nothing() { ret; }\n";

static bool load(driver *out) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; library && i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        if (!found) return false;
        memcpy((char *)out + functions[i].offset, &found, sizeof found);
    }
    return library != NULL;
}

static bool open_device(subject *s, int index) {
    void *context = NULL, *module = NULL;
    int device;
    return s->cu.init(0) == 0 && s->cu.device(&device, index) == 0 &&
           s->cu.retain(&context, device) == 0 && s->cu.current(context) == 0 &&
           s->cu.load(&module, ptx) == 0 && s->cu.function(&s->kernel, module, "nothing") == 0 &&
           s->cu.stream(&s->stream, 1) == 0 && s->cu.alloc(&s->buffer, BH__LARGE_BYTES) == 0;
}

static bool launch(const subject *s) {
    return s->cu.launch(s->kernel, 1, 1, 1, 1, 1, 1, 0, s->stream, NULL, NULL) == 0;
}

static bool once(const subject *s, bh__measure which, uint64_t *out_ns) {
    enum { GROUP = 64 };
    bool good = true;
    uint64_t start = bh__now_ns();
    switch (which) {
    case BH__MEASURE_SUBMIT:
        for (int i = 0; i < GROUP; i++) good &= launch(s);
        *out_ns = (bh__now_ns() - start) / GROUP;
        return good && s->cu.wait(s->stream) == 0;
    case BH__MEASURE_ROUND_TRIP:
        good = launch(s) && s->cu.wait(s->stream) == 0;
        break;
    case BH__MEASURE_TO_DEVICE_SMALL:
        good = s->cu.to_device(s->buffer, s->host, BH__SMALL_BYTES) == 0;
        break;
    case BH__MEASURE_TO_HOST_SMALL:
        good = s->cu.to_host(s->host, s->buffer, BH__SMALL_BYTES) == 0;
        break;
    case BH__MEASURE_TO_DEVICE:
        good = s->cu.to_device(s->buffer, s->host, BH__LARGE_BYTES) == 0;
        break;
    case BH__MEASURE_TO_HOST:
        good = s->cu.to_host(s->host, s->buffer, BH__LARGE_BYTES) == 0;
        break;
    default:
        return false;
    }
    *out_ns = bh__now_ns() - start;
    return good;
}

static bool write_whole(int fd, const void *from, size_t bytes) {
    for (const char *at = from; bytes > 0;) {
        ssize_t some = write(fd, at, bytes);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) return false;
        at += some;
        bytes -= (size_t)some;
    }
    return true;
}

static size_t read_whole(int fd, void *to, size_t bytes) {
    size_t got = 0;
    while (got < bytes) {
        ssize_t some = read(fd, (char *)to + got, bytes - got);
        if (some < 0 && errno == EINTR) continue;
        if (some <= 0) break;
        got += (size_t)some;
    }
    return got;
}

/* Writes the times of each measure, in their order. */
_Noreturn static void run_child(int to, uint32_t index, double scale) {
    static const size_t counts[BH__MEASURES] = {0, 1000, 2000, 1000, 1000, 20, 20, 0};
    static bh__times times;
    subject s = {.scale = scale, .host = calloc(1, BH__LARGE_BYTES)};
    if (!s.host || !load(&s.cu)) _exit(2);
    uint64_t start = bh__now_ns(), ns = 0;
    if (!open_device(&s, (int)index)) _exit(3);
    for (int which = 0; which < BH__MEASURES; which++) {
        size_t count = (size_t)((double)counts[which] * scale);
        times.count = 0;
        if (which == BH__MEASURE_OPEN) bh__times_add(&times, bh__now_ns() - start);
        for (size_t i = 0; counts[which] && i < (count < 3 ? 3 : count) + 10; i++) {
            if (!once(&s, (bh__measure)which, &ns)) _exit(4);
            if (i >= 10 || counts[which] < 100) bh__times_add(&times, ns);
        }
        if (!write_whole(to, &times, sizeof times)) _exit(5);
    }
    _exit(0);
}

void bh__bench_driver(uint32_t index, double scale, bh__results *out) {
    int ends[2], status = 0;
    if (pipe(ends) != 0) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], index, scale);
    }
    close(ends[1]);
    size_t got = child > 0 ? read_whole(ends[0], out->plain, sizeof out->plain) : 0;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    bool whole = got == sizeof out->plain && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    for (int i = 0; i < BH__MEASURES; i++) {
        if (!whole || out->plain[i].count > BH__SAMPLES) out->plain[i].count = 0;
        bh__times_sort(&out->plain[i]);
    }
    if (!whole)
        snprintf(out->plain_lack, sizeof out->plain_lack,
                 "the driver alone could not be measured (step %d of its process)",
                 WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}
