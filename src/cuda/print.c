/* SPDX-License-Identifier: Apache-2.0 */
/* Text that kernels print: the driver writes it to standard output, and the worker passes it on to
 * the application. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/state.h"

/*
 * Standard output becomes a memfd and not a pipe: the driver must never block on a reader that
 * waits for the driver. It is append-only, because the driver may write while earlier text is
 * passed on. Pages whose text was passed on are freed.
 */
bh_status bh__cuda_print_open(bh__cuda_print *print, bh_error *error) {
    print->fd = memfd_create("bulkhead-printed", MFD_CLOEXEC);
    if (print->fd < 0 || fcntl(print->fd, F_SETFL, O_APPEND) < 0 || dup2(print->fd, 1) < 0) {
        char reason[128];
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory or descriptors in this machine",
                        "the file for what kernels print cannot be made: %s",
                        bh__errno_text(errno, reason, sizeof reason));
    }
    pthread_mutex_init(&print->lock, NULL);
    print->open = true;
    return BH_OK;
}

void bh__cuda_print_close(bh__cuda_print *print) {
    close(print->fd);
    pthread_mutex_destroy(&print->lock);
}

/*
 * The driver writes printed text when a thread synchronizes, which returns at once if the context
 * has failed. The text of an assertion goes to standard error, which the application reads before
 * it reads the fault. Both have been written when this returns.
 */
void bh__cuda_print_last(const bh__device_instance *device, int result) {
    if (!device->print.open) return;
    if (result == BH__CU_ASSERT || atomic_load(&device->may_print))
        device->cu.context_synchronize();
    bh__cuda_print_flush((bh__device_instance *)(uintptr_t)device); /* its text position changes */
}

void bh__cuda_print_flush(bh__device_instance *device) {
    bh__cuda_print *print = &device->print;
    char text[16 * 1024];
    ssize_t got;
    pthread_mutex_lock(&print->lock);
    fflush(stdout);
    uint64_t before = print->passed;
    while ((got = pread(print->fd, text, sizeof text, (off_t)print->passed)) > 0) {
        device->services->print(device->services->context, text, (size_t)got);
        print->passed += (uint64_t)got;
    }
    uint64_t page = 4096, from = before / page * page, to = print->passed / page * page;
    if (to > from)
        fallocate(print->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from,
                  (off_t)(to - from));
    pthread_mutex_unlock(&print->lock);
}
