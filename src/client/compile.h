/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files behind bh_compile share. A request is looked for in memory, then on disk, then
 * compiled; what comes out is a product, which binaries, modules and the memory cache share.
 *
 * Locks: one for all of the state here (bh__compile_lock), never held while a process, a file or a
 * device is waited for, and taken after no other lock but a device's.
 */
#ifndef BH_CLIENT_COMPILE_H
#define BH_CLIENT_COMPILE_H

#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "client/internal.h"
#include "client/pack.h"
#include "client/spawn.h"
#include "wire/compile.h"

/* ---- files that decided a result (reads.c) ---- */

/* What tells a file that was changed or replaced from the same file. All zero: not known. */
typedef struct bh__file_id {
    uint64_t device, inode, bytes, mtime_ns, ctime_ns;
} bh__file_id;

/* False: there is no such file. */
bool bh__file_id_get(const char *path, bh__file_id *out);
bool bh__file_id_equal(const bh__file_id *a, const bh__file_id *b);
bool bh__file_id_known(const bh__file_id *id);

typedef struct bh__read {
    const char *path; /* absolute */
    bool missing;     /* was looked for and not found */
    uint32_t folder;  /* missing: which of the folders would have to change for it to appear */
    uint64_t bytes;
    uint64_t hash[2];   /* as the compiler saw it */
    uint8_t digest[32]; /* SHA-256: two files that hash alike are still told apart */
    bh__file_id id;     /* of the file with these contents */
} bh__read;

typedef struct bh__read_folder {
    const char *path;
    bh__file_id id;
} bh__read_folder;

typedef struct bh__reads {
    bh__read *list;
    size_t count;
    bh__read_folder *folders;
    size_t folder_count;
} bh__reads;

/* Completes what the compiler said it read. `begun_ns` (since 1970): when it was started; a file
 * changed since then cannot be known by its identity. False: a file has changed meanwhile, and the
 * result is good for now but not to be kept. */
bool bh__reads_complete(bh__reads *reads, bh__arena *arena, uint64_t begun_ns);

typedef enum bh__freshness { BH__STALE, BH__FRESH, BH__FRESH_RENEWED } bh__freshness;
/* Whether each file is as it was; looks at contents only where the identity differs. RENEWED: one is
 * known by another identity now, which `renew` puts into `reads`. */
bh__freshness bh__reads_check(bh__reads *reads, bool renew);

uint64_t bh__clock_ns(void); /* since 1970 */

/* ---- products (product.c) ---- */

/* Never changed once it is shared. */
typedef struct bh__product {
    _Atomic uint32_t references;
    bh__arena arena;
    uint32_t output; /* BH_OUTPUT_PTX ... */
    const uint8_t *bytes;
    uint64_t count;
    const char *log;
    const char *name; /* of the source */
    const char *arch;
    const char *compiler; /* with its version */
    const char *why;
    uint64_t compile_ns;
    bh__names names;
    bh__reads reads;
    const uint8_t *key;
    size_t key_bytes;
    uint64_t hash[2]; /* of the key */

    /* The memory cache's. */
    struct bh__product *next_in_bucket, *newer, *older;
    _Atomic uint64_t touched_ns; /* when its file was last marked as used */
} bh__product;

bh__product *bh__product_new(void); /* NULL: no host memory. One reference. */
void bh__product_retain(bh__product *product);
void bh__product_release(bh__product *product);
uint64_t bh__product_bytes(const bh__product *product);

/* ---- requests (request.c) ---- */

/* What was asked for, checked. Texts are the caller's own unless bh__request_own copied them. */
typedef struct bh__compile_request {
    bh__arena arena;
    bh__compile_job job;
    uint32_t wanted; /* BH_COMPILER_AUTO ... */
    bool for_cuda;   /* the result is for a CUDA device */
    const char *compiler_dir;
    const char *cache_dir; /* NULL: the default one */
    uint64_t cache_limit;  /* 0: the default one */
    bool cached;
    struct bh__probe *probe; /* Retained, once it is resolved: what these three are from */
    const char *program;     /* bulkhead-compiler */
    const char *compiler;    /* with its version */
    char why[192];
    char arch[16];
    bh__names names; /* LINK: of the parts */
    bh__pack key;
    uint64_t hash[2];
} bh__compile_request;

/* Checks options and source. `device`: what it is for, or NULL. Fills the thread's error. */
bh_status bh__request_compile(bh__compile_request *request, const char *source,
                              const bh_compile_options *options, const bh_device_info *device);
bh_status bh__request_link(bh__compile_request *request, bh__product *const *parts, size_t count,
                           const bh_compile_options *options);
/* Chooses the compiler and makes the key. */
bh_status bh__request_resolve(bh__compile_request *request, bh_error *error);
/* Copies everything the request borrows. False: no host memory. */
bool bh__request_own(bh__compile_request *request);
void bh__request_free(bh__compile_request *request);

/* ---- which compilers there are (probe.c) ---- */

typedef struct bh__probe_entry {
    uint32_t compiler;
    bool usable;
    const char *path, *version, *why;
    bh__file_id id;
} bh__probe_entry;

typedef struct bh__probe {
    _Atomic uint32_t references;
    bh__arena arena;
    const char *dir; /* compiler_dir or BULKHEAD_WORKER_DIR; "": neither */
    const char *environment;
    const char *program;
    bh__file_id program_id, loader_id;
    bh__probe_entry *entries;
    size_t count;
    uint64_t folders;           /* a sum over the folders where compilers are looked for */
    uint64_t made_ns;           /* since 1970 */
    _Atomic uint64_t looked_ns; /* at the folders, on bh__now_ns's clock */
} bh__probe;

/* Where a probe is remembered beside this process's memory. */
typedef enum bh__probe_use { BH__PROBE_KNOWN, BH__PROBE_MEMORY, BH__PROBE_FRESH } bh__probe_use;

/* What is there: as found before and remembered in memory or on disk (KNOWN), in memory alone, or
 * as found now. `compiler`: the one that must still be what it was, BH_COMPILER_AUTO being the one
 * that is preferred. NULL with *error filled in. */
bh__probe *bh__probe_get(const char *compiler_dir, const char *cache_dir, bh__probe_use use,
                         uint32_t compiler, bh_error *error);
const bh__probe_entry *bh__probe_find(const bh__probe *probe, uint32_t compiler);
void bh__probe_release(bh__probe *probe);

/* ---- running bulkhead-compiler (compiler.c) ---- */

/* How another thread ends a run. Under bh__compile_lock. */
typedef struct bh__run_control {
    bool abandoned;
    bool running;
    bh__spawned process;
} bh__run_control;

/* With the lock held. */
void bh__run_abandon(bh__run_control *control);

/* Runs the program for one job. The answer lives in `arena`; `out_log`, for free(), gets all that
 * was said, of failures too. BH_E_CANCELLED: abandoned. */
bh_status bh__compiler_run(const char *program, const bh__compile_job *job,
                           bh__run_control *control, bh__arena *arena, bh__compile_answer *answer,
                           char **out_log, bh_error *error);

/* ---- the cache in memory (cache_memory.c), with the lock held ---- */

/* Retained; NULL: none. */
bh__product *bh__memory_cache_get(const uint64_t hash[2], const void *key, size_t key_bytes);
void bh__memory_cache_put(bh__product *product);
void bh__memory_cache_drop(const bh__product *product);
void bh__memory_cache_clear(void);

/* ---- the cache on disk ---- */

/* cache_entry.c: a product as a file's contents, and back. NULL: damaged, or no memory. */
bool bh__entry_pack(const bh__product *product, bh__pack *out);
typedef enum bh__entry_state { BH__ENTRY_GOOD, BH__ENTRY_OTHER_KEY, BH__ENTRY_BAD } bh__entry_state;
/* `key` NULL: whatever it is. */
bh__entry_state bh__entry_unpack(const uint8_t *data, size_t bytes, const void *key,
                                 size_t key_bytes, bh__product **out);

/* cache_folder.c: where it is, and whether it can be used. */
typedef struct bh__folder {
    int fd; /* -1: there is none, and `why` says why */
    char path[4096];
    char why[256];
} bh__folder;

/* `make`: creates it. Closed with bh__folder_close. */
void bh__folder_open(const char *dir, bool make, bh__folder *out);
void bh__folder_close(bh__folder *folder);
uint64_t bh__cache_limit(uint64_t given);
#define BH__ENTRY_NAME 40
void bh__entry_name(const uint64_t hash[2], char out[BH__ENTRY_NAME]);
bool bh__is_entry_name(const char *name);
/* The contents of a file of the folder, malloc'd, if it is a private file of ours. BAD: it is
 * there, and is not to be trusted. */
typedef enum bh__file_state { BH__FILE_READ, BH__FILE_NONE, BH__FILE_BAD } bh__file_state;
bh__file_state bh__folder_read(const bh__folder *folder, const char *name, uint8_t **out,
                               size_t *out_bytes, struct stat *out_info);
/* Writes it under a temporary name and renames. 0 or an errno. */
int bh__folder_write(const bh__folder *folder, const char *name, const void *data, size_t bytes);

/* quiet.c: around writes to files, against the signal of a limit on their size. */
typedef struct bh__quiet {
    sigset_t signal, before;
    bool was_pending;
} bh__quiet;
void bh__quiet_begin(bh__quiet *quiet);
void bh__quiet_end(const bh__quiet *quiet);

/* cache_counts.c: hits and misses of all processes. */
void bh__cache_counts_add(const char *dir); /* what this one has not added yet */
void bh__cache_counts_get(const bh__folder *folder, uint64_t *out_hits, uint64_t *out_misses);
void bh__cache_counts_clear(const bh__folder *folder);

/* cache_disk.c */
bh__product *bh__disk_get(const char *dir, const uint64_t hash[2], const void *key,
                          size_t key_bytes);
void bh__disk_put(const char *dir, uint64_t limit, const bh__product *product);
/* Marks the file as used now. */
void bh__disk_touch(const char *dir, const bh__product *product);

/* cache_evict.c */
/* Removes the least recently used until what is there fits, and what killed processes left behind.
 * `added`: bytes that were written just now. */
void bh__cache_trim(const bh__folder *folder, uint64_t limit, uint64_t added);

/* cache.c: what was counted in this process. */
typedef struct bh__cache_counts {
    _Atomic uint64_t memory_hits, disk_hits, misses, joined, dropped, evicted, compiles;
} bh__cache_counts;
extern bh__cache_counts bh__cache_counted;
/* Why the last entry could not be kept; "": it could. */
void bh__cache_note(const char *why);
void bh__cache_noted(char *out, size_t size);

/* ---- requests under way (flight.c) ---- */

void bh__compile_lock(void);
void bh__compile_unlock(void);

typedef struct bh__outcome {
    bh__product *product; /* Retained; NULL: error */
    uint32_t cache;       /* BH_CACHE_MISS ... */
    bh_error error;
    char *log; /* Owned: what the compiler said of a failure */
} bh__outcome;

void bh__outcome_free(bh__outcome *outcome);
/* Looks, joins or compiles, and waits. */
bh_status bh__flight_fly(bh__compile_request *request, bh__outcome *out);
/* The same in the background, with the ticket of an announced module to be answered. Called with
 * the device's lock held. Takes over the request, which is on the heap, also on failure. */
bh_status bh__flight_send(bh__compile_request *request, bh__device *device, bh__module *module);

/* ---- what compilers said (logs.c) ---- */

void bh__log_keep_last(const char *text);
void bh__log_keep_ticket(bh_ticket ticket, const char *text);

#endif
