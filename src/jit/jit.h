/* SPDX-License-Identifier: Apache-2.0 */
/* Native code for kernels, made with LLVM: what libbulkhead-jit.so gives to bulkhead-compiler,
 * which loads it with dlopen, so that nothing else needs LLVM. */
#ifndef BH_JIT_JIT_H
#define BH_JIT_JIT_H

#include "ptx/run/exec.h"

#define BH__JIT_LIBRARY "libbulkhead-jit.so"
#define BH__JIT_SYMBOL  "bh__jit_library"

enum {
    BH__JIT_VERSION = 3, /* of this interface; compiler and library are built together */
    BH__JIT_NOTE = 128   /* bytes of a text */
};

/* Limits, so that no kernel keeps the compiler busy for long: what is larger is not taken. */
enum {
    BH__JIT_MAX_CODE = 3000,      /* instructions of a kernel */
    BH__JIT_MAX_ROWS = 1500,      /* registers */
    BH__JIT_MAX_SIZE = 30000,     /* LLVM instructions made of it */
    BH__JIT_MAX_MOVES = 20000,    /* registers that are alive where blocks begin, added up */
    BH__JIT_MAX_STACK = 256 << 10 /* bytes: half of what a lane's thread has */
};

/* What the code is made for, besides the kernel. */
typedef struct bh__jit_request {
    const bh__ptx_module *module;
    const bh__ptx_function *function;
    /* Lanes that follow each other have %tid.x that do, in groups of so many: 32, or all of a row
     * of 16 or of 8 threads. 0: no such groups. */
    uint32_t row;
    /* Handlers of instructions that are not written by the program: operands of others. */
    bh__ptx_handler *run_sreg, *run_address, *run_not;
} bh__jit_request;

/* Code without addresses: it runs wherever it is put, whole, at a multiple of 64. It finds handlers
 * and instructions through the module that runs, which must be made of the same PTX. */
typedef struct bh__jit_result {
    uint8_t *image;      /* Owned by the caller: free(). NULL: not taken, and `note` says why */
    size_t bytes, entry; /* of the image; where the function (bh__ptx_compiled) begins in it */
    uint32_t native, handled; /* instructions: as native code; by the interpreter's handlers */
    uint64_t nanoseconds;     /* that making it took */
    char note[BH__JIT_NOTE];  /* the instruction that is handled most often, or why not taken */
} bh__jit_result;

typedef struct bh__jit_interface {
    uint32_t version;
    /* Prepares the library. False: `why` says what is missing. `name`: "LLVM 19.1.7". */
    bool (*open)(char *name, size_t name_size, char *why, size_t size);
    /* One call at a time. LLVM may end the process instead of returning. */
    void (*compile)(const bh__jit_request *request, bh__jit_result *out);
} bh__jit_interface;

#endif
