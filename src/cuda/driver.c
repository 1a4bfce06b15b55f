/* SPDX-License-Identifier: Apache-2.0 */
/* Loading the NVIDIA driver, and saying what is wrong where it cannot be used. */
#include "cuda/driver.h"

#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

enum { OLDEST_DRIVER = 12000 };

static bh_status refuse_old(bh_error *error, int number, const char *missing) {
    return bh__fail(error, BH_E_UNSUPPORTED,
                    "install an NVIDIA driver that supports CUDA 12.0 or later (525 or later)",
                    "the NVIDIA driver supports CUDA %d.%d%s%s; 12.0 is the oldest that will do",
                    number / 1000, number % 1000 / 10, missing ? " and lacks " : "",
                    missing ? missing : "");
}

/* Functions are found as data pointers, which POSIX lets us turn into functions. */
static bool look_up(void *library, const char *symbol, void *field) {
    void *found = dlsym(library, symbol);
    memcpy(field, &found, sizeof found);
    return found != NULL;
}

static const char *look_up_all(bh__driver *driver) {
#define BH__NEEDED(name, symbol, parameters)                                                       \
    if (!look_up(driver->library, symbol, &driver->name)) return symbol;
#define BH__OPTIONAL(name, symbol, parameters) look_up(driver->library, symbol, &driver->name);
#include "cuda/driver_table.h"
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
        bh__fail(
            error, BH_E_NO_DEVICE,
            "open \"cpu\", or see that nvidia-smi lists a GPU here and that CUDA_VISIBLE_DEVICES lets it through",
            "the NVIDIA driver finds no device (%s)", name);
    else
        bh__fail(error, BH_E_NO_DEVICE, "see whether nvidia-smi works on this machine",
                 "the NVIDIA driver does not start: %s (%d): %s", name, result,
                 bh__driver_error_text(driver, result));
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
    return result == BH__CU_OK ? BH_OK : refuse_init(driver, result, error);
}

const char *bh__driver_error_name(const bh__driver *driver, int result) {
    const char *name = NULL;
    return driver->error_name(result, &name) == BH__CU_OK && name ? name : "an unknown error";
}

const char *bh__driver_error_text(const bh__driver *driver, int result) {
    const char *text = NULL;
    return driver->error_string(result, &text) == BH__CU_OK && text ? text : "no description";
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
