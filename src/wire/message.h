/* SPDX-License-Identifier: Apache-2.0 */
/* Messages on the socket between the supervisor and one worker: rare operations, and
 * descriptors. */
#ifndef BH_WIRE_MESSAGE_H
#define BH_WIRE_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/control.h"

enum { BH__MESSAGE_FDS = 4, BH__MESSAGE_BYTES = 48 * 1024 };

/*
 * The supervisor sends BOOT first; the worker answers READY, or REFUSED and exits. After that every
 * message of the supervisor except GO is answered by one ACK with the same serial, in order. A
 * worker executes messages in the order in which they arrive.
 */
enum {
    /* supervisor to worker */
    BH__MSG_BOOT = 1, /* fds: the front, the worker's area, its bell, the application's pidfd
                         if any */
    BH__MSG_GO,       /* start taking requests, from the area's claim and done words */
    BH__MSG_LANE_OPEN,
    BH__MSG_CHUNK_CREATE, /* ACK has its descriptor; for BH__CHUNK_DRIVER its address, as data */
    BH__MSG_CHUNK_MAP,    /* fd: the chunk */
    BH__MSG_CHUNK_UNMAP,
    BH__MSG_HOST_MAP, /* fd: the host region */
    BH__MSG_HOST_UNMAP,
    BH__MSG_MODULE_LOAD, /* fd: the image; ACK has a descriptor with a bh__module_blob */
    BH__MSG_MODULE_UNLOAD,
    BH__MSG_GLOBAL_SET,      /* data: the bytes */
    BH__MSG_FIT,             /* ACK's data: a bh__fit */
    BH__MSG_SEQUENCE_DEFINE, /* fd: its versions; the first is filled in */
    BH__MSG_SEQUENCE_DROP,
    BH__MSG_ADVISE,        /* a range of a BH__CHUNK_DRIVER chunk */
    BH__MSG_MODULE_NATIVE, /* fd: native code of a module's kernels (wire/native.h) */
    BH__MSG_DEBUG, /* module, and the kernel as `variable`; data: a bh__debug_message, or none */
    BH__MSG_ORDERS_END,

    /* worker to supervisor */
    BH__MSG_READY = 100, /* fd, optional: its other end closes when the worker dies */
    BH__MSG_REFUSED,     /* could not boot; has the error */
    BH__MSG_ACK,
    BH__MSG_FAULT,   /* the area's fault report is set */
    BH__MSG_REPORT,  /* the area has new reports */
    BH__MSG_PRINT,   /* data: text printed by a kernel */
    BH__MSG_NOTE,    /* data: a line for the log; the worker is fine */
    BH__MSG_FINDING, /* data: several bh_finding of the launch whose FAULT follows */
    BH__MSG_STATE,   /* data: text, the state of the thread whose FAULT follows */
    BH__MSG_REPLIES_END
};

/* Of one launch. */
enum { BH__MAX_FINDINGS = 128 };

typedef struct bh__boot {
    uint64_t magic;
    uint32_t version;
    uint32_t area; /* the index of this worker's ping */
    uint64_t front_bytes;
    uint32_t device_index;
    uint32_t flags;     /* BH_DEVICE_CHECK, BH_DEVICE_CORE_DUMPS */
    uint32_t sandbox;   /* BH_SANDBOX_DEFAULT ... */
    uint32_t native;    /* 1: MODULE_NATIVE may come */
    uint32_t libraries; /* BH_LIBRARY_... that modules may be of */
    uint32_t reserved;
} bh__boot;

/* How long a worker that runs under a profiler may take to exit. */
enum { BH__FINISH_SECONDS = 5 };

/* How a device differs from one whose memory, work and process are ordinary ones of the system.
 * Each trait gives a worker more freedom, so the application accepts only those that the kind of
 * device may have (client/process/kinds.h). A worker that has not stated any has none. */
enum {
    /* Chunks are descriptors of a driver. Otherwise they are memfds, and the application checks
     * that they can be written and cannot shrink. */
    BH__TRAIT_OPAQUE_MEMORY = 1,
    BH__TRAIT_ORDERS_WAIT = 2, /* orders may wait for running kernels to end */
    BH__TRAIT_ENDS_SLOWLY = 4, /* the process takes long to end, and reports its crashes itself */
    BH__TRAIT_LOADS_CUBIN = 8, /* modules may be cubins */
    BH__TRAIT_INTERLEAVES = 16 /* tensor maps may have an interleave */
};

typedef struct bh__ready {
    uint64_t magic;
    uint32_t version;
    int32_t pid;
    uint64_t chunk_granularity; /* chunks are multiples of this power of two: 64 KiB .. 64 MiB */
    uint32_t profiled;          /* 1: the worker runs under a profiler and should exit by itself */
    uint32_t traits;            /* BH__TRAIT_... */
    bh__device_facts info;
} bh__ready;

enum {
    BH__CHUNK_DRIVER = 1,  /* memory of the device's driver, at an address that it chooses: each
                              worker  has its own, which is lost when the worker ends */
    BH__CHUNK_MEASURED = 2 /* with it: refused if there is not enough memory */
};

typedef struct bh__chunk {
    uint32_t id;
    uint32_t flags; /* BH__CHUNK_... */
    uint64_t bytes;
    uint64_t address; /* BH__CHUNK_DRIVER: what the address must be a multiple of, a power of two */
    uint64_t read_only_address;
} bh__chunk;

typedef struct bh__host_region {
    uint32_t id;
    uint32_t reserved;
    uint64_t bytes;
} bh__host_region;

typedef struct bh__advice_message {
    uint32_t chunk;
    uint32_t advice;  /* BH_ADVISE_... */
    uint32_t changed; /* the bits of it that this is about; the others stay as they are */
    uint32_t reserved;
    uint64_t offset, bytes;
} bh__advice_message;

typedef struct bh__lane_message {
    uint32_t index;
    int32_t priority; /* higher is more urgent */
} bh__lane_message;

typedef struct bh__module_message {
    uint32_t id;
    uint32_t variable; /* GLOBAL_SET */
    uint64_t offset;   /* GLOBAL_SET */
    uint64_t bytes;    /* MODULE_LOAD: of the image; MODULE_NATIVE: of the code */
} bh__module_message;

typedef struct bh__sequence_message {
    uint32_t id;
    uint32_t step_count;
    uint64_t version_bytes; /* of each; a multiple of 64 */
    uint32_t version_count;
    uint32_t reserved;
    char name[64]; /* DEFINE: for messages */
} bh__sequence_message;

/* Which threads of a kernel are followed. The line to stop at and what to print follow, each as a
 * text that ends in NUL; no line is "". */
enum { BH__DEBUG_PRINTS = 63, BH__DEBUG_THREADS = 1024 };
typedef struct bh__debug_message {
    uint32_t block[3];
    uint32_t print_count;
    uint32_t threads[BH__DEBUG_THREADS / 32]; /* a bit for each */
    uint32_t trace;                           /* 1: every instruction */
    uint32_t reserved;
    uint64_t limit; /* bytes of text in one launch */
} bh__debug_message;

/* A query: how many blocks of a kernel can be resident at once. */
typedef struct bh__fit_question {
    uint32_t module, kernel;
    uint32_t block[3];
    uint32_t cluster[3]; /* zeros: none */
    uint32_t shared_bytes;
    uint32_t advice; /* 1: also return `recommended_*` and `fitting_threads` */
    uint64_t blocks; /* with advice: of the grid */
} bh__fit_question;

typedef struct bh__fit {
    uint32_t blocks_per_multiprocessor;
    uint32_t
        clusters; /* on the whole device; 0: such clusters cannot run, or none were requested */
    uint32_t largest_cluster; /* blocks; 0: the device has no clusters */
    uint32_t recommended_block, recommended_grid;
    uint32_t fitting_threads; /* the largest block size for which all of `blocks` are resident */
    uint64_t resident;        /* blocks, on the whole device */
    double occupancy;
} bh__fit;

typedef struct bh__message {
    uint32_t type;
    uint32_t serial;
    uint32_t data_bytes; /* used in `data` */
    uint32_t fd_count;
    union {
        bh__boot boot;
        bh__ready ready;
        bh__chunk chunk;
        bh__host_region host;
        bh__advice_message advice;
        bh__module_message module;
        bh__lane_message lane;
        bh__fit_question fit;
        bh__sequence_message sequence;
        bh_error error; /* REFUSED, ACK: status BH_OK means success */
    } u;
    int fds[BH__MESSAGE_FDS]; /* filled in by receive; the receiver owns them */
    uint8_t data[BH__MESSAGE_BYTES];
    bool fds_refused; /* set by receive: the process has reached its limit on descriptors */
} bh__message;

/* The description of a module in a memfd: this head, then kernels, their params, variables, names.
 * All offsets are from the start of the blob. */
typedef struct bh__module_blob {
    uint64_t magic;
    uint32_t kernel_count;
    uint32_t variable_count;
    uint64_t kernels_offset;   /* bh__blob_kernel[] */
    uint64_t variables_offset; /* bh__blob_variable[] */
    uint64_t total_bytes;
} bh__module_blob;

enum { BH__EXECUTOR_NOTE = 128 };

typedef struct bh__blob_kernel {
    uint64_t name_offset;   /* NUL-terminated within the blob */
    uint64_t params_offset; /* bh__blob_param[] */
    uint32_t param_count;
    uint32_t param_bytes;
    uint32_t static_shared;
    uint32_t local_bytes;
    uint32_t registers;
    uint32_t max_threads;
    uint32_t required_block[3];
    uint32_t needs_cluster; /* 1: must be launched with a cluster, of any size */
    uint32_t required_cluster[3];
    uint32_t executor; /* BH_EXECUTOR_DEVICE or BH_EXECUTOR_INTERPRETER */
    /* Filled in by the application: instructions, as in bh_kernel_info. */
    uint32_t native, handled;
    uint32_t compile_us;
    char executor_note[BH__EXECUTOR_NOTE];
    uint32_t reserved;
} bh__blob_kernel;

typedef struct bh__blob_param {
    uint32_t offset;
    uint32_t bytes;
    uint32_t pointer; /* 1: known to be a pointer */
    uint32_t scalar;  /* 1: known not to be a pointer */
    uint32_t
        tensor_map; /* 1: can hold a tensor map: of its size, and aligned as the device needs */
    uint32_t reserved;
} bh__blob_param;

typedef struct bh__blob_variable {
    uint64_t name_offset;
    uint64_t bytes;
    uint32_t writable; /* 1: a kernel of the module may write it */
    uint32_t reserved;
} bh__blob_variable;

#define BH__BLOB_MAGIC 0x31444f4d48424c42ull

/* Both return 0, or a negative errno. send never raises SIGPIPE and does not close fds. receive
 * returns -EPIPE if the peer has closed the socket, -EAGAIN if the socket is non-blocking and
 * empty, -EBADMSG for a malformed message. */
int bh__message_send(int socket, const bh__message *message, const int *fds, uint32_t fd_count);
int bh__message_receive(int socket, bh__message *message);
void bh__message_close_fds(bh__message *message);

#endif
