/* SPDX-License-Identifier: Apache-2.0 */
/* Text that kernels print: the driver writes it to standard output, from where it goes to the
 * application. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda/state.h"

/*
 * A file in memory and not a pipe: the driver must never block on a reader that waits for the
 * driver. It is only ever appended to, because the driver may write while text before is handed
 * over; what has been is given back page by page.
 */
bh_status bh__cuda_print_open(bh__cuda_print *print, bh_error *error) {
    print->fd = memfd_create("bulkhead-printed", MFD_CLOEXEC);
    if (print->fd < 0 || fcntl(print->fd, F_SETFL, O_APPEND) < 0 || dup2(print->fd, 1) < 0) {
        char reason[128];
        return bh__fail(error, BH_E_NO_HOST_MEMORY, "free memory or descriptors in this machine",
                        "there is nowhere to put what kernels print: %s",
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
 * The driver hands text over when somebody waits, which a context that has died ends at once. What
 * an assertion says goes to standard error, where the application reads it before it looks at the
 * fault: both are on their way before this returns.
 */
void bh__cuda_print_last(const bh__device *device, int result) {
    if (!device->print.open) return;
    if (result == BH__CU_ASSERT || atomic_load(&device->may_print))
        device->cu.context_synchronize();
    bh__cuda_print_flush((bh__device *)(uintptr_t)device); /* its text may still change */
}

void bh__cuda_print_flush(bh__device *device) {
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
