/* SPDX-License-Identifier: Apache-2.0 */
/* Parses device names and finds the programs that the library starts. */
#ifndef BH_CLIENT_PROCESS_PROGRAMS_H
#define BH_CLIENT_PROCESS_PROGRAMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

/* Returns true if the machine has an NVIDIA GPU, whether or not it can be used. */
bool bh__nvidia_present(void);
/* The part of it that looks at PCI devices: `folder` is /sys/bus/pci/devices. */
bool bh__pci_has_nvidia(const char *folder);

/* "auto" is CUDA if the machine has an NVIDIA device, else the CPU. Sets the thread's error on
 * failure. */
bh_status bh__device_name_parse(const char *name, char kind[16], uint32_t *out_index);

/* Looks in worker_dir if it is given, else in BULKHEAD_WORKER_DIR if it is set, else beside the
 * library, beside the executable and in the libexec folder, in this order. */
bh_status bh__worker_find(const char *worker_dir, const char *kind, char *out, size_t bytes);
/* The same for bulkhead-compiler. */
bh_status bh__compiler_find(const char *compiler_dir, char *out, size_t bytes, bh_error *error);
/* Returns BULKHEAD_WORKER_DIR; NULL: not set. */
const char *bh__program_folder(void);

#endif
