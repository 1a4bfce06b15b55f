/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-worker-cuda: runs kernels on an NVIDIA GPU. */
#include "cuda/state.h"
#include "worker/worker.h"

int main(int argc, char **argv) {
    bh__worker_main(argc, argv, &bh__cuda_device);
}
