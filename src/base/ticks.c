/* SPDX-License-Identifier: Apache-2.0 */
/* Detects whether the processor's time stamp counter can be used. */
#include "base/ticks.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)

#include <cpuid.h>

/* If the counters of the processors differ, the kernel uses another clock source. */
static bool kernel_trusts_it(void) {
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    char name[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return true; /* not known */
    ssize_t got = read(fd, name, sizeof name - 1);
    close(fd);
    if (got <= 0) return true;
    return strncmp(name, "tsc", 3) == 0 || strncmp(name, "kvm-clock", 9) == 0 ||
           strncmp(name, "hyperv_clocksource_tsc", 22) == 0;
}

bool bh__ticks_usable(void) {
    enum { POWER_LEAF = 0x80000007, INVARIANT = 1 << 8 };
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(POWER_LEAF, &a, &b, &c, &d) && (d & INVARIANT) && kernel_trusts_it();
}

#elif defined(__aarch64__)

bool bh__ticks_usable(void) {
    return true; /* guaranteed by the architecture */
}

#else

bool bh__ticks_usable(void) {
    return false;
}

#endif
