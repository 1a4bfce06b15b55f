/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of an open device, as `bulkhead top` and `bulkhead serve` read them from another
 * process: what they are, the message that carries them, the folder with the sockets, and their
 * text in the Prometheus format. Used by the library and the command; uses libc and the public
 * header.
 *
 * A message is a header and sections. A section is a struct that begins with its size and only
 * grows, so that both sides may be of different versions: each takes the fields that it knows, and
 * skips sections that it does not know.
 */
#ifndef BH_FIGURES_FIGURES_H
#define BH_FIGURES_FIGURES_H

#include "bulkhead.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    BH__FIGURES_LANES = 64,
    BH__FIGURES_LOSSES = BH_LOSS_HISTORY,
    BH__FIGURES_TAGS = 32,   /* those with the most bytes */
    BH__FIGURES_KERNELS = 32 /* those with the most launches */
};

/* The process, and what the library knows of it. */
typedef struct bh__figures_process {
    uint32_t size;
    int32_t pid;
    uint64_t start; /* when it started, in clock ticks since boot: tells a pid from a later one */
    char program[64];
    char version[16]; /* of its library */
    /* Of bh_cache_info. */
    uint64_t compiles, memory_hits, disk_hits, misses, joined;
} bh__figures_process;

typedef struct bh__figures_device {
    uint32_t size;
    uint32_t slot; /* the number of the compartment in its process */
    uint32_t index;
    uint32_t reserved;
    char kind[16];
    uint64_t age_ns; /* since it was opened */
    uint64_t running;
    uint64_t generation, standbys_ready;
    uint64_t buffers, bytes_allocated, bytes_reserved;
    uint64_t memory_limit, peak_allocated;
    uint64_t managed_buffers, managed_bytes, managed_to_device, managed_to_host;
} bh__figures_device;

typedef struct bh__figures_kernel {
    uint32_t size;
    uint32_t quarantined;
    uint64_t launches;
    uint64_t dropped; /* launches that did not complete */
    uint64_t faults;
    uint64_t timed; /* launches whose time is known */
    uint64_t device_ns;
    char name[128];
} bh__figures_kernel;

typedef struct bh__figures {
    bh__figures_process process;
    bh__figures_device device;
    bh_device_info info;
    bh_health health;
    bh_device_counters counters;
    uint32_t lane_count, loss_count, tag_count, kernel_count;
    bh_lane_counters lanes[BH__FIGURES_LANES];
    bh_loss losses[BH__FIGURES_LOSSES]; /* newest first */
    bh_memory_tag tags[BH__FIGURES_TAGS];
    bh__figures_kernel kernels[BH__FIGURES_KERNELS];
} bh__figures;

/* ---- message.c ---- */

#define BH__FIGURES_MAGIC UINT64_C(0x3165727567696662) /* "bfigure1" */

enum { BH__FIGURES_MESSAGE_MAX = 160 << 10 };

/* Writes the message and returns its length; 0: more than `room`. */
size_t bh__figures_pack(const bh__figures *from, void *out, size_t room);
/* Reads a message, which may be anything at all. Texts in *out end with a NUL. Returns NULL, or
 * what is wrong with it. */
const char *bh__figures_unpack(const void *message, size_t bytes, bh__figures *out);

/* ---- folder.c: sockets are named PID-START-SLOT in a folder of the user ---- */

enum { BH__RUNTIME_PATHS = 3, BH__RUNTIME_PATH = 256, BH__OFFER_NAME = 64 };

/* Candidates for the folder, best first: in BULKHEAD_RUNTIME_DIR alone if that is set; else in
 * XDG_RUNTIME_DIR, in /run/user/UID, and /tmp. Returns their number. */
size_t bh__runtime_paths(char out[BH__RUNTIME_PATHS][BH__RUNTIME_PATH]);
/* Opens a folder that belongs to this user and that nobody else can enter. `make`: creates it if it
 * does not exist. Returns a descriptor, or -1 with errno; EPERM: it is another user's, or open to
 * others. */
int bh__runtime_open(const char *path, bool make);

typedef struct bh__offer {
    pid_t pid;
    uint64_t start;
    uint32_t slot;
    bool fresh; /* its socket does not answer yet: the name begins with a dot */
} bh__offer;

void bh__offer_name(const bh__offer *entry, char out[BH__OFFER_NAME]);
/* Returns false if the name is not one that the function above writes. */
bool bh__offer_parse(const char *name, bh__offer *out);
/* When a process started; 0: there is no such process, or the system does not say. */
uint64_t bh__started_at(pid_t pid);
/* Removes entries whose process has ended, looking at `limit` entries at most. Returns how many it
 * removed. */
size_t bh__runtime_sweep(int folder, size_t limit);
/* Connects to an entry, without waiting. Returns a descriptor or -1 with errno. */
int bh__offer_connect(int folder, const char *name);

/* ---- page.c ---- */

typedef struct bh__page {
    char *out;   /* may be NULL if `room` is 0 */
    size_t room; /* bytes at `out`, including the NUL */
    size_t length;
} bh__page;

/* Writes the figures of devices in the Prometheus text format: each metric family once, with the
 * samples of every device. `own`: the counters of this process, without labels; NULL: those
 * of the devices' processes, and all samples are labelled with the process. */
void bh__page_write(bh__page *page, const bh__figures *const *all, size_t count,
                    const bh__figures_process *own);

#endif
