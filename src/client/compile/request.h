/* SPDX-License-Identifier: Apache-2.0 */
/* A compile or link request: checked options, the compiler chosen for it, and its cache key. */
#ifndef BH_CLIENT_COMPILE_REQUEST_H
#define BH_CLIENT_COMPILE_REQUEST_H

#include "client/compile/pack.h"
#include "client/compile/probe.h"
#include "client/module/product.h"
#include "wire/compile.h"

/* Texts are borrowed from the caller until bh__request_own copies them. */
typedef struct bh__compile_request {
    bh__arena arena;
    bh__compile_job job;
    uint32_t wanted; /* BH_COMPILER_AUTO ... */
    bool links_ptx;  /* a link of parts that are all PTX, to PTX or to PTX and a cubin */
    bool for_cubin;  /* the result is for a device that loads cubins */
    const char *compiler_dir;
    const char *cache_dir; /* NULL: the default */
    uint64_t cache_limit;
    bool cached;
    /* Native code (native_request.c): */
    const char *worker_path; /* of the worker that will run it */
    int image_fd;            /* Owned if holds_image: the PTX */
    bool holds_image;
    uint64_t image_bytes;
    /* Set by bh__request_resolve. */
    bh__probe *probe;     /* Retained. Owns `program` and `compiler`. */
    const char *program;  /* path of bulkhead-compiler */
    const char *compiler; /* name and version */
    char why[192];        /* why this compiler was chosen */
    char arch[16];
    bh__texts expressions; /* links: the name expressions of all parts */
    bh__pack key;
    uint64_t hash[2]; /* of the key */
} bh__compile_request;

/* What a compile must know of the device that its result is for. */
typedef struct bh__compile_target {
    bh__device_facts info;
    uint32_t traits; /* BH__TRAIT_... */
} bh__compile_target;

/* sm_80, sm_90a, sm_100f, compute_90. */
bool bh__is_arch(const char *text);
/* Checks the source and the options. `target` is the device that the result is for, or NULL. Sets
 * the thread's error on failure. */
bh_status bh__request_compile(bh__compile_request *request, const char *source,
                              const bh_compile_options *options, const bh__compile_target *target);
bh_status bh__request_link(bh__compile_request *request, bh__product *const *parts, size_t count,
                           const bh_compile_options *options);
/* Native code of kernels of a module on the CPU device. False: no host memory; free the request. */
bool bh__request_native(bh__compile_request *request, int image_fd, uint64_t image_bytes,
                        const char *worker_path, uint32_t kernel, uint32_t shapes);
/* bh__request_resolve for such a request. */
bh_status bh__native_resolve(bh__compile_request *request, bh_error *error);
/* Chooses the compiler and makes the key. */
bh_status bh__request_resolve(bh__compile_request *request, bh_error *error);
/* Copies everything that the request borrows. Returns false if host memory is exhausted. */
bool bh__request_own(bh__compile_request *request);
void bh__request_free(bh__compile_request *request);

#endif
