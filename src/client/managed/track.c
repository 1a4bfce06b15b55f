/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the pages of a mirror that the program wrote, with asynchronous write protection of
 * userfaultfd and PAGEMAP_SCAN (Linux 6.7). The program gets no faults, and system calls may write
 * the pages too. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/errno_text.h"
#include "base/file_signal.h"
#include "client/core/fork.h"
#include "client/managed/internal.h"
#include "client/managed/managed.h"

/* From linux/userfaultfd.h and linux/fs.h of 6.7: the installed headers may be older. */
enum {
    WANTED_FEATURES = 1 << 0 |  /* UFFD_FEATURE_PAGEFAULT_FLAG_WP */
                      1 << 12 | /* UFFD_FEATURE_WP_HUGETLBFS_SHMEM */
                      1 << 13 | /* UFFD_FEATURE_WP_UNPOPULATED */
                      1 << 15,  /* UFFD_FEATURE_WP_ASYNC */
    USER_MODE_ONLY = 1,         /* UFFD_USER_MODE_ONLY: needs no privilege */
    PROTECT_FOUND = 1 << 0,     /* PM_SCAN_WP_MATCHING */
    CHECK_PROTECTED = 1 << 1,   /* PM_SCAN_CHECK_WPASYNC */
    WRITTEN = 1 << 1            /* PAGE_IS_WRITTEN */
};

/* struct page_region and struct pm_scan_arg of linux/fs.h. */
struct region {
    uint64_t start, end, categories;
};

struct scan {
    uint64_t size, flags, start, end, walk_end, regions, region_count, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan)

/* Why the system does not track writes: what was missing, and errno. */
typedef struct lack {
    const char *what;
    int number;
} lack;

/* One descriptor for the process, opened on first use and never closed. */
static _Atomic int pagemap_fd = -1;

static int pagemap(void) {
    int fd = atomic_load(&pagemap_fd);
    if (fd >= 0 && bh__fd_is_ours(fd)) return fd;
    int fresh = bh__fd_keep(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
    if (fresh < 0) return -1;
    if (atomic_compare_exchange_strong(&pagemap_fd, &fd, fresh)) return fresh;
    bh__fd_close(fresh);
    return fd;
}

/* To a forked child it shows the parent's pages. Such a child may open devices of its own. */
static void forget_pagemap(void) {
    bh__fd_close(atomic_exchange(&pagemap_fd, -1));
}

__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(NULL, NULL, forget_pagemap);
}

static int scan(const uint8_t *from, const uint8_t *to, struct region *regions, uint64_t count,
                uint64_t *out_end) {
    struct scan ask = {.size = sizeof ask,
                       .flags = PROTECT_FOUND | CHECK_PROTECTED,
                       .start = (uintptr_t)from,
                       .end = (uintptr_t)to,
                       .regions = (uintptr_t)regions,
                       .region_count = count,
                       .category_mask = WRITTEN,
                       .return_mask = WRITTEN};
    int fd = pagemap();
    int found = fd < 0 ? -1 : ioctl(fd, SCAN, &ask);
    *out_end = ask.walk_end;
    return found;
}

/* Returns a userfaultfd that tracks writes to these whole pages, all of them clean. -1: *out says
 * why not. */
static int track(uint8_t *memory, uint64_t bytes, lack *out) {
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | USER_MODE_ONLY);
    if (fd < 0) {
        *out = (lack){"userfaultfd is not available", errno};
        return -1;
    }
    struct uffdio_api api = {.api = UFFD_API, .features = WANTED_FEATURES};
    struct uffdio_range range = {.start = (uintptr_t)memory, .len = bytes};
    struct uffdio_register registration = {.range = range, .mode = UFFDIO_REGISTER_MODE_WP};
    struct uffdio_writeprotect protection = {.range = range, .mode = UFFDIO_WRITEPROTECT_MODE_WP};
    const char *failed = NULL;
    struct region one;
    uint64_t end;
    if (ioctl(fd, UFFDIO_API, &api) < 0)
        failed = "userfaultfd does not support asynchronous write protection";
    else if (ioctl(fd, UFFDIO_REGISTER, &registration) < 0)
        failed = "userfaultfd cannot register shared memory";
    else if (ioctl(fd, UFFDIO_WRITEPROTECT, &protection) < 0)
        failed = "userfaultfd cannot protect shared memory";
    else if (scan(memory, memory + bytes, &one, 1, &end) < 0)
        failed = "PAGEMAP_SCAN is not available";
    if (!failed) return fd;
    *out = (lack){failed, errno};
    close(fd);
    return -1;
}

bool bh__track_begin(bh__mirror *mirror) {
    lack why;
    mirror->tracker = bh__fd_keep(track(mirror->pointer, mirror->bytes, &why));
    return mirror->tracker >= 0;
}

bool bh__track_collect(bh__mirror *mirror, uint64_t from, uint64_t to,
                       void (*found)(void *context, uint64_t from, uint64_t to), void *context) {
    struct region regions[128];
    const uint8_t *at = mirror->pointer + from, *end = mirror->pointer + to;
    while (at < end) {
        uint64_t walked = 0;
        int count = scan(at, end, regions, sizeof regions / sizeof *regions, &walked);
        if (count < 0) return false;
        for (int i = 0; i < count; i++)
            found(context, regions[i].start - (uintptr_t)mirror->pointer,
                  regions[i].end - (uintptr_t)mirror->pointer);
        if (walked <= (uintptr_t)at) return false;
        at = (const uint8_t *)(uintptr_t)walked;
    }
    return true;
}

void bh__track_probe(char *why, size_t size) {
    uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    int file = memfd_create("bulkhead-probe", MFD_CLOEXEC), fd = -1;
    void *memory = MAP_FAILED;
    if (file >= 0 && bh__file_grow(file, bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    lack found = {"cannot allocate shared memory to test with", errno};
    if (file >= 0) close(file);
    if (memory != MAP_FAILED) {
        fd = track(memory, bytes, &found);
        munmap(memory, bytes);
    }
    *why = 0;
    char text[128];
    if (fd >= 0)
        close(fd);
    else
        snprintf(why, size, "%s: %s", found.what, bh__errno_text(found.number, text, sizeof text));
}
