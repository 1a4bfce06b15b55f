/* SPDX-License-Identifier: Apache-2.0 */
/* How a GPU is shared with others (compute mode, MPS), and what that means for a standby. */
#include <sys/stat.h>

#include "base/environment.h"
#include "cuda/state.h"

static int compute_mode(const bh__device_instance *device) {
    int mode = BH__CU_MODE_DEFAULT;
    device->cu.device_attribute(&mode, BH__CU_COMPUTE_MODE, device->ordinal);
    return mode;
}

/* Older drivers cannot be asked; they look for the control daemon's pipe, and so does this. */
static bool has_mps_pipe(void) {
    const char *folder = bh__environment("CUDA_MPS_PIPE_DIRECTORY");
    char path[4096];
    struct stat info;
    snprintf(path, sizeof path, "%s/control", folder ? folder : "/tmp/nvidia-mps");
    return stat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode));
}

bool bh__cuda_uses_mps(const bh__device_instance *device) {
    int used = 0;
    if (device->cu.device_attribute(&used, BH__CU_MPS, device->ordinal) == BH__CU_OK)
        return used != 0;
    return has_mps_pipe();
}

bh_status bh__cuda_modes_check(const bh__device_instance *device, bh_error *error) {
    if (compute_mode(device) != BH__CU_MODE_PROHIBITED) return BH_OK;
    return bh__fail(error, BH_E_NO_DEVICE,
                    "allow it: nvidia-smi -i NUMBER -c DEFAULT, as root; or open another device",
                    "the compute mode of CUDA device %d is Prohibited: no program may use it",
                    device->ordinal);
}

/* With MPS the server has the only context that counts, so exclusive-process lets its clients in:
 * what matters then is that they die together. */
void bh__cuda_modes_fill(bh__device_instance *device) {
    bh__device_facts *info = &device->info;
    int mode = compute_mode(device);
    info->compute_mode = mode == BH__CU_MODE_EXCLUSIVE_PROCESS ? BH_COMPUTE_EXCLUSIVE
                         : mode == BH__CU_MODE_PROHIBITED      ? BH_COMPUTE_PROHIBITED
                                                               : BH_COMPUTE_DEFAULT;
    info->mps = bh__cuda_uses_mps(device);
    if (info->mps)
        snprintf(info->no_standby, sizeof info->no_standby,
                 "an MPS server shares this GPU among programs, and a fault in one of them ends "
                 "all of them on this GPU, a standby too");
    else if (info->compute_mode == BH_COMPUTE_EXCLUSIVE)
        snprintf(info->no_standby, sizeof info->no_standby,
                 "the GPU's compute mode is Exclusive_Process: no second process may use it");
}
