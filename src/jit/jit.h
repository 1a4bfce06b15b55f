/* SPDX-License-Identifier: Apache-2.0 */
/* Native code for kernels, made with LLVM: what libbulkhead-jit.so gives to the CPU worker. The
 * worker loads it with dlopen, so that nothing else needs LLVM. */
#ifndef BH_JIT_JIT_H
#define BH_JIT_JIT_H

#include "ptx/exec.h"

#define BH__JIT_LIBRARY "libbulkhead-jit.so"
#define BH__JIT_SYMBOL  "bh__jit_library"

enum {
    BH__JIT_VERSION = 1, /* of this interface; worker and library are built together */
    BH__JIT_NOTE = 128   /* bytes of a text */
};

/* Limits, so that no kernel keeps the compiler busy for long: what is larger is not taken. */
enum {
    BH__JIT_MAX_CODE = 3000,  /* instructions of a kernel */
    BH__JIT_MAX_ROWS = 1500,  /* registers */
    BH__JIT_MAX_SIZE = 30000, /* LLVM instructions made of it */
    BH__JIT_MAX_MOVES = 20000 /* registers that are alive where blocks begin, added up */
};

/* What the code is made for, besides the kernel. */
typedef struct bh__jit_request {
    const bh__ptx_module *module;
    const bh__ptx_function *function;
    /* The threads of every warp differ in %tid.x alone, by one from lane to lane. */
    bool flat;
    /* Handlers of instructions that are not written by the program: operands of others. */
    bh__ptx_handler *run_sreg, *run_address, *run_not;
} bh__jit_request;

typedef struct bh__jit_result {
    bh__ptx_compiled *code;   /* NULL: not taken, and `note` says why */
    uint32_t native, handled; /* instructions: as native code; by the interpreter's handlers */
    uint64_t nanoseconds;     /* that making it took */
    char note[BH__JIT_NOTE];  /* the instruction that is handled most often, or why not taken */
} bh__jit_result;

typedef struct bh__jit_interface {
    uint32_t version;
    /*
     * Prepares the library: must be called before the worker gives up its rights. `memory` is
     * readable, writable and executable; code is put there and stays until the process ends.
     * False: `why` says what is missing.
     */
    bool (*open)(void *memory, size_t bytes, char *why, size_t size);
    /* One call at a time. */
    void (*compile)(const bh__jit_request *request, bh__jit_result *out);
} bh__jit_interface;

#endif
