/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels in an event loop: a descriptor becomes readable when work is done, beside a timer.
 * usage: epoll_loop [DEVICE] */
#ifndef _POSIX_C_SOURCE
#define _POSIX_C_SOURCE 200809L
#endif
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* out[0] = the number of steps until n, halved when even and else 3 * n + 1, is 1; `times`
 * times. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry collatz(\n"
    "    .param .u64 .ptr .global .align 4 out, .param .u64 n, .param .u32 times)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b32 %count, %times;\n"
    "    .reg .b64 %to, %n, %odd, %next;\n"
    "    ld.param.u32 %times, [times];\n"
    "AGAIN:\n"
    "    ld.param.u64 %n, [n];\n"
    "    mov.u32 %count, 0;\n"
    "STEP:\n"
    "    setp.eq.u64 %p, %n, 1;\n"
    "    @%p bra DONE;\n"
    "    add.u32 %count, %count, 1;\n"
    "    and.b64 %odd, %n, 1;\n"
    "    setp.eq.u64 %p, %odd, 0;\n"
    "    mul.lo.u64 %next, %n, 3;\n"
    "    add.u64 %next, %next, 1;\n"
    "    shr.u64 %n, %n, 1;\n"
    "    @!%p mov.b64 %n, %next;\n"
    "    bra STEP;\n"
    "DONE:\n"
    "    sub.u32 %times, %times, 1;\n"
    "    setp.ne.u32 %p, %times, 0;\n"
    "    @%p bra AGAIN;\n"
    "    ld.param.u64 %to, [out];\n"
    "    st.global.u32 [%to], %count;\n"
    "    ret;\n"
    "}\n";

enum { JOBS = 6, TIMES = 1000 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

static int must_fd(int result, const char *what) {
    if (result >= 0) return result;
    perror(what);
    exit(1);
}

static void watch(int loop, int fd) {
    struct epoll_event event;
    memset(&event, 0, sizeof event);
    event.events = EPOLLIN;
    event.data.fd = fd;
    must_fd(epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event), "epoll_ctl");
}

/* Both kinds of descriptor here hold a count of 8 bytes; reading it rearms them. */
static uint64_t read_count(int fd) {
    uint64_t count = 0;
    return read(fd, &count, sizeof count) == (ssize_t)sizeof count ? count : 0;
}

static uint32_t collatz_steps(uint64_t n) {
    uint32_t count = 0;
    for (; n != 1; count++) n = n % 2 ? 3 * n + 1 : n / 2;
    return count;
}

int main(int argc, char **argv) {
    static const uint64_t start[JOBS] = {27, 97, 871, 6171, 77031, 837799};
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel collatz;
    must(bh_device_open(&options, &gpu), "open");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "collatz", &collatz), "get the kernel");

    int done_fd;
    must(bh_device_eventfd(gpu, &done_fd), "get the eventfd");
    int timer = must_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK), "timerfd");
    struct itimerspec every_ms;
    memset(&every_ms, 0, sizeof every_ms);
    every_ms.it_interval.tv_nsec = every_ms.it_value.tv_nsec = 1000000;
    must_fd(timerfd_settime(timer, 0, &every_ms, NULL), "timerfd_settime");
    int loop = must_fd(epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
    watch(loop, done_fd);
    watch(loop, timer);

    /* Each kernel writes a buffer, which is then read into memory that the device can reach: the
     * loop never waits in a call. The read comes after its kernel, so its ticket stands for
     * both. */
    void *host;
    must(bh_host_alloc(gpu, JOBS * sizeof(uint32_t), &host), "allocate host memory");
    uint32_t *steps = (uint32_t *)host;
    bh_lane lane = {0}; /* the one that every device has */
    bh_ticket ticket[JOBS];
    int pending[JOBS];
    for (int i = 0; i < JOBS; i++) {
        bh_buffer out;
        must(bh_buffer_alloc(gpu, BH_U32, 1, NULL, &out), "allocate");
        must(bh_launch(collatz, BH_GRID(1, 1), BH_ARGS(BH_OUT(out), start[i], (uint32_t)TIMES),
                       NULL, &ticket[i]),
             "launch");
        must(bh_submit_read(lane, out, 0, &steps[i], sizeof steps[i], &ticket[i]), "read");
        must(bh_notify(ticket[i]), "arm the eventfd");
        must(bh_buffer_release(out), "release"); /* it stays until the work that uses it is done */
        pending[i] = 1;
    }

    int left = JOBS, wrong = 0;
    unsigned long ticks = 0, wakes = 0;
    while (left > 0) {
        struct epoll_event events[2];
        int count = epoll_wait(loop, events, 2, -1);
        for (int e = 0; e < count; e++) {
            uint64_t times = read_count(events[e].data.fd);
            if (events[e].data.fd == timer) {
                ticks += (unsigned long)times;
                continue;
            }
            wakes++;
            /* The descriptor says that something is done; the tickets say what. */
            for (int i = 0; i < JOBS; i++) {
                bh_status status = pending[i] ? bh_wait(ticket[i], 0) : BH_E_BUSY;
                if (status == BH_E_BUSY) continue;
                must(status, "run");
                printf("%lu takes %u steps\n", (unsigned long)start[i], (unsigned)steps[i]);
                wrong += steps[i] != collatz_steps(start[i]);
                pending[i] = 0;
                left--;
            }
        }
    }
    printf("%d kernels done, %lu wake-ups for them, %lu timer ticks meanwhile, %d wrong\n", JOBS,
           wakes, ticks, wrong);
    close(loop);
    close(timer);
    must(bh_device_close(gpu), "close"); /* its eventfd and host memory go with it */
    return wrong != 0;
}
