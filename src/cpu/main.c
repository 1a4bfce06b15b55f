/* SPDX-License-Identifier: Apache-2.0 */
/* bulkhead-worker-cpu: runs kernels on the processors of this machine. */
#include "cpu/cpu.h"
#include "worker/worker.h"

int main(int argc, char **argv) {
    bh__worker_main(argc, argv, &bh__cpu_device);
}
