/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the NVIDIA driver, and explains why it cannot be used. */
#include "cuda/driver/driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { OLDEST_DRIVER = 12000 };

static bh_status refuse_old(bh_error *error, int number, const char *missing) {
    return bh__fail(error, BH_E_UNSUPPORTED,
                    "install an NVIDIA driver that supports CUDA 12.0 or later (525 or later)",
                    "the NVIDIA driver supports CUDA %d.%d%s%s; 12.0 or later is required",
                    number / 1000, number % 1000 / 10, missing ? " and lacks " : "",
                    missing ? missing : "");
}

/* dlsym returns data pointers, which POSIX lets us convert to function pointers. */
static bool look_up(void *library, const char *symbol, void *field) {
    void *found = dlsym(library, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

static const char *look_up_all(bh__driver *driver) {
#define BH__NEEDED(name, symbol, parameters)                                                       \
    if (!look_up(driver->library, symbol, &driver->name)) return symbol;
#define BH__OPTIONAL(name, symbol, parameters) look_up(driver->library, symbol, &driver->name);
#include "cuda/driver/table.h"
    return NULL;
}

static bh_status refuse_init(const bh__driver *driver, int result, bh_error *error) {
    const char *name = bh__driver_error_name(driver, result);
    if (access("/dev/nvidiactl", F_OK) == 0 && access("/dev/nvidiactl", R_OK | W_OK) != 0)
        bh__fail(
            error, BH_E_NO_DEVICE,
            "give this user access to /dev/nvidia* (group video, or the container's device list)",
            "the NVIDIA driver cannot be used: no permission to open /dev/nvidiactl (%s)", name);
    else if (result == BH__CU_STUB_LIBRARY)
        bh__fail(error, BH_E_NO_DEVICE, "take the toolkit's stubs folder out of LD_LIBRARY_PATH",
                 "libcuda.so.1 is the toolkit's stub, not the driver's library");
    else if (result == BH__CU_SYSTEM_DRIVER_MISMATCH)
        bh__fail(error, BH_E_NO_DEVICE,
                 "reboot, or install the same version of both parts of the driver",
                 "the driver's library and its kernel module are of different versions (%s)", name);
    else if (result == BH__CU_NO_DEVICE)
        bh__fail(error, BH_E_NO_DEVICE,
                 "open \"cpu\", or see that nvidia-smi lists a GPU here and that "
                 "CUDA_VISIBLE_DEVICES does not hide it",
                 "the NVIDIA driver finds no device (%s)", name);
    else
        bh__fail(error, BH_E_NO_DEVICE, "see whether nvidia-smi works on this machine",
                 "the NVIDIA driver does not start: %s (%d): %s", name, result,
                 bh__driver_error_text(driver, result));
    bh__driver_tell_limits(result, error);
    bh__fail_device_code(error, result, name);
    return error->status;
}

bh_status bh__driver_open(bh__driver *driver, bh_error *error) {
    memset(driver, 0, sizeof *driver);
    driver->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!driver->library) {
        const char *reason = dlerror();
        return bh__fail(
            error, BH_E_NO_DEVICE,
            "install the NVIDIA driver (libcuda.so.1, in the container too), or open \"cpu\"",
            "the NVIDIA driver's library cannot be loaded: %.200s",
            reason ? reason : "no reason given");
    }
    int (*version)(int *) = NULL;
    if (!look_up(driver->library, "cuDriverGetVersion", &version) ||
        version(&driver->number) != BH__CU_OK)
        return refuse_old(error, 0, "cuDriverGetVersion");
    if (driver->number < OLDEST_DRIVER) return refuse_old(error, driver->number, NULL);
    const char *missing = look_up_all(driver);
    if (missing) return refuse_old(error, driver->number, missing);
    int result = driver->init(0);
    if (result != BH__CU_OK) return refuse_init(driver, result, error);
    bh__driver_log_skip(driver);
    return BH_OK;
}

const char *bh__driver_error_name(const bh__driver *driver, int result) {
    const char *name = NULL;
    return driver->error_name(result, &name) == BH__CU_OK && name ? name : "an unknown error";
}

const char *bh__driver_error_text(const bh__driver *driver, int result) {
    const char *text = NULL;
    return driver->error_string(result, &text) == BH__CU_OK && text ? text : "no description";
}

/* ---- the driver's log ---- */

enum { MAX_LOG = 25600 }; /* the size of the driver's log */

/* Where in the log the next read begins. A process has one log. */
static _Atomic unsigned log_from;

void bh__driver_log_skip(const bh__driver *driver) {
    unsigned now = 0;
    if (driver->log_current && driver->log_current(&now, 0) == BH__CU_OK)
        atomic_store(&log_from, now);
}

/* A line reads "[time][thread][source][level] message", on some drivers with "[function]" before
 * the message. A message that only says that a function returned an error is left out. */
static const char *log_message(char *line) {
    while (*line == '[') {
        char *end = strchr(line, ']');
        if (!end) break;
        line = end + 1;
    }
    line += strspn(line, " \t");
    return strncmp(line, "Returning ", 10) == 0 ? "" : line;
}

void bh__driver_log_take(const bh__driver *driver, char *out, size_t size) {
    out[0] = '\0';
    if (!driver->log_dump) return;
    char *text = malloc(MAX_LOG);
    size_t length = MAX_LOG, used = 0;
    unsigned from = atomic_load(&log_from);
    if (!text || driver->log_dump(&from, text, &length, 0) != BH__CU_OK) length = 0;
    if (length) atomic_store(&log_from, from);
    if (text) text[length < MAX_LOG ? length : MAX_LOG - 1] = '\0';
    char *rest = length ? text : NULL;
    for (char *line; (line = strsep(&rest, "\n")) && used + 1 < size;) {
        const char *message = log_message(line);
        if (!*message) continue;
        int some = snprintf(out + used, size - used, "%s%s", used ? "; " : "", message);
        if (some > 0) used += (size_t)some;
    }
    free(text);
}

/* ---- errors ---- */

/* A process that uses a GPU opens 40 to 60, and some are free again when it has failed. One with a
 * higher limit than MAX_COUNTED is not short of them. */
enum { MANY_DESCRIPTORS = 100, MAX_COUNTED = 4096 };

/* Counted without a file system: it may be this that cannot be opened. Some descriptors may be
 * above a limit that was lowered. */
static bool is_short_of_descriptors(unsigned *out_used, unsigned *out_limit) {
    struct rlimit limit;
    *out_used = 0;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > MAX_COUNTED) return false;
    *out_limit = (unsigned)limit.rlim_cur;
    for (int fd = 0; fd < MAX_COUNTED; fd++)
        if (fcntl(fd, F_GETFD) >= 0) ++*out_used;
    return *out_used + MANY_DESCRIPTORS > *out_limit;
}

void bh__driver_tell_limits(int result, bh_error *error) {
    unsigned used, limit;
    bool may_be =
        result == BH__CU_NO_DEVICE || result == BH__CU_OPERATING_SYSTEM || result == BH__CU_UNKNOWN;
    if (!may_be || !is_short_of_descriptors(&used, &limit)) return;
    char before[sizeof error->message];
    memcpy(before, error->message, sizeof before);
    if (!strstr(before, "descriptors"))
        snprintf(error->message, sizeof error->message,
                 "%.350s; it may lack descriptors: %u of %u are in use", before, used, limit);
    snprintf(error->fix, sizeof error->fix,
             "raise the limit on open files (ulimit -n 1024), and if that does not help, see "
             "nvidia-smi");
}

/* Not CUDA_ERROR_CONTAINED (226): there the hardware has confined the damage to this process, and
 * the next one can use the device. */
bool bh__driver_is_broken(int result) {
    return result == BH__CU_ECC_UNCORRECTABLE;
}

bool bh__driver_is_fatal(int result) {
    switch (result) {
    case 4:   /* DEINITIALIZED */
    case 46:  /* DEVICE_UNAVAILABLE */
    case 201: /* INVALID_CONTEXT */
    case 214: /* ECC_UNCORRECTABLE */
    case 220: /* NVLINK_UNCORRECTABLE */
    case 226: /* CONTAINED */
    case 700: /* ILLEGAL_ADDRESS */
    case 702: /* LAUNCH_TIMEOUT */
    case 709: /* CONTEXT_IS_DESTROYED */
    case 710: /* ASSERT */
    case 714: /* HARDWARE_STACK_ERROR */
    case 715: /* ILLEGAL_INSTRUCTION */
    case 716: /* MISALIGNED_ADDRESS */
    case 717: /* INVALID_ADDRESS_SPACE */
    case 718: /* INVALID_PC */
    case 719: /* LAUNCH_FAILED */
    case 721: /* TENSOR_MEMORY_LEAK */
    case 806: /* MPS_RPC_FAILURE */
    case 810: /* MPS_CLIENT_TERMINATED */
    case 999: /* UNKNOWN */
        return true;
    default:
        return false;
    }
}
