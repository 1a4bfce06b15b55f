/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of devices: what the library must know of one before any worker of it exists, or must
 * not trust a worker for. The only file of the client that names kinds: everything else about
 * a device is in what its worker states (bh__ready, bh__report). */
#ifndef BH_CLIENT_PROCESS_KINDS_H
#define BH_CLIENT_PROCESS_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

typedef struct bh__device_kind {
    const char *name;    /* its worker program is bulkhead-worker-NAME */
    bool numbered;       /* a machine may have several: "cuda:1" */
    uint32_t boot_s;     /* maximum time from the start of a worker to its READY */
    bool native;         /* its workers take native code for kernels: wire/native.h */
    uint32_t traits;     /* BH__TRAIT_...: those that its workers may state */
    const char *needs;   /* hardware, for messages; NULL: none */
    bool (*found)(void); /* returns true if the machine has that; NULL: always */
} bh__device_kind;

/* In the order in which bh_device_list lists them, and "auto" tries them. */
enum { BH__DEVICE_KINDS = 2 };
extern const bh__device_kind bh__device_kinds[BH__DEVICE_KINDS];

/* Returns NULL if there is no such kind. */
const bh__device_kind *bh__device_kind_find(const char *name);
/* Returns true if workers of this kind may state the trait. True for unknown kinds. */
bool bh__device_kind_may(const char *name, uint32_t trait);

/* "auto" is the first kind whose hardware is found. Sets the thread's error on failure. */
bh_status bh__device_name_parse(const char *name, char kind[16], uint32_t *out_index);
/* The reverse: "cpu", "cuda:1". */
void bh__device_name_write(const char *kind, uint32_t index, char *out, size_t bytes);

/* Returns true if the machine has an NVIDIA GPU, whether or not it can be used: `folder` is
 * /sys/bus/pci/devices. */
bool bh__pci_has_nvidia(const char *folder);

#endif
