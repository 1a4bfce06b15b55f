/* SPDX-License-Identifier: Apache-2.0 */
/* The interpreter's decoded program and its state: instructions, warps, blocks, addresses. */
#ifndef BH_PTX_RUN_EXEC_H
#define BH_PTX_RUN_EXEC_H

#include "ptx/ir.h"

/*
 * Addresses. A generic address below 2^52 is an address of this process: global or constant memory.
 * Above that are windows, in a range that no machine maps, for shared, local and parameter memory
 * and for code. An address in one of these state spaces is the offset in its window.
 *
 * An address in shared memory has the block's rank in its cluster above the offset in that block's
 * memory, so it means the same in all blocks of the cluster. .shared::cta addresses may do without
 * the rank: they are always in the block's own memory.
 */
#define BH__PTX_WINDOW_SHIFT 52
#define BH__PTX_WINDOW(n)    ((uint64_t)(n) << BH__PTX_WINDOW_SHIFT)
#define BH__PTX_RANK_SHIFT   24 /* a block has less shared memory than 2^24 bytes */
#define BH__PTX_RANK_MASK    (((uint64_t)1 << BH__PTX_RANK_SHIFT) - 1)
enum { WINDOW_GLOBAL, WINDOW_SHARED, WINDOW_LOCAL, WINDOW_PARAM, WINDOW_CODE };

#define LANES        32
#define FULL_MASK    UINT32_MAX
#define HEADER_BYTES 64 /* of a frame header, before the rows */

typedef struct bh__check_block bh__check_block;
typedef struct bh__check_shadow bh__check_shadow;
typedef struct bh__ptx_code bh__ptx_code;

/* Executes one instruction for the lanes in `mask`, which is never empty. False: a fault. */
typedef bool bh__ptx_handler(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);

typedef enum bh__ptx_code_kind {
    CODE_RUN,  /* run(), then the next instruction */
    CODE_SYNC, /* the same, once all lanes of the member mask in row `e` have converged */
    CODE_BRA,
    CODE_BRX,
    CODE_CALL,
    CODE_RET,
    CODE_EXIT,
    CODE_BAR,
    CODE_CLUSTER, /* barrier.cluster */
    CODE_POLL,    /* run(); other warps go first if a lane's predicate in row `d` is false */
    CODE_SLEEP
} bh__ptx_code_kind;

/*
 * Rows are byte offsets: of a register's 32 lanes in the frame, or, with the sign bit set, of a
 * constant's 32 copies. Values up to 32 bits have rows of 128 bytes, 64-bit values rows of 256; a
 * predicate is one 32-bit word, a bit for each lane. 128-bit values have a row for each half.
 */
struct bh__ptx_code {
    bh__ptx_handler *run;
    const void *extra; /* further data of the handler */
    uint64_t imm;
    int32_t d, d2, a, b, c, e;
    int32_t guard; /* row of a predicate, or NO_ROW */
    uint32_t guard_flip;
    uint32_t target;                   /* index in module->code */
    uint8_t kind, bytes, count, flags; /* count of CODE_SYNC: EXCHANGE_... */
};
_Static_assert(sizeof(bh__ptx_code) == 64, "instructions are found by a shift");

#define NO_ROW    INT32_MAX
#define HIGH_HALF (8 * LANES) /* from the row of a 128-bit value to that of its upper half */
#define CONST_ROW INT32_MIN   /* the sign bit: the row is in module->constants */

enum { /* flags */
       FLAG_SIGNED = 1,
       FLAG_WIDE_D = 2, /* destination rows hold 64-bit values */
       FLAG_WIDE_A = 4, /* source rows hold 64-bit values */
       FLAG_ADDRESS32 = 8,
       FLAG_INVERT = 16,
       FLAG_FTZ = 32,
       FLAG_SAT = 64,
       FLAG_RELU = 128
};

enum { /* An operation of CODE_SYNC has sources a, b, c and results d, d2. Without this, lanes can
          only execute it together if all of them are at the same instruction. */
       EXCHANGE_ROWS = 1,
       EXCHANGE_PREDICATE = 2,   /* a is a predicate */
       EXCHANGE_TO_PREDICATE = 4 /* d is a predicate; d2 always is */
};

typedef struct bh__ptx_frame { /* the header of a frame in a warp's register file */
    uint32_t size, return_pc, return_base, stack;
    uint32_t depth;
    uint32_t lanes; /* lanes that entered it and have neither returned nor exited */
    uint32_t next;  /* in the list of free frames */
    const bh__ptx_function *function;
    const bh__ptx_code *call;
} bh__ptx_frame;
_Static_assert(sizeof(bh__ptx_frame) <= HEADER_BYTES, "rows start after the header");

typedef struct bh__ptx_warp {
    uint8_t *regs;
    size_t regs_capacity;
    uint8_t *local;
    uint32_t local_stride; /* bytes of one lane */
    uint32_t index;
    uint32_t top;        /* end of the frames allocated so far */
    uint32_t free_frame; /* first free frame, or 0 */
    uint32_t live;       /* lanes that have not exited */
    uint32_t at_barrier;
    uint32_t at_sync; /* waiting for other lanes of the warp, at their pc, with their `members` */
    uint32_t carry;   /* the condition code, a bit for each lane */
    /* The barrier of the cluster. */
    uint32_t at_cluster;      /* waiting there */
    uint32_t cluster_arrived; /* arrived since it last completed */
    uint32_t cluster_pending; /* arrived and not yet waited */
    bool favour;              /* run the lanes that have waited longest next */
    uint64_t turn;
    uint64_t last_turn[LANES];
    uint32_t pc[LANES], base[LANES], depth[LANES], members[LANES];
    uint8_t barrier[LANES];
    uint32_t undefined;       /* with checks: rows of registers with undefined bits */
    bh__check_shadow *shadow; /* which ones; NULL: there were none yet */
} bh__ptx_warp;

typedef struct bh__ptx_barrier {
    uint32_t arrived, expected; /* expected 0: all threads that have not exited */
    uint32_t count;             /* bar.red: threads with a true predicate */
    bool all, any;
    bool reduces; /* threads wait for the result of a bar.red */
} bh__ptx_barrier;

#define BARRIERS 16

struct bh__ptx_cluster {
    bh__ptx_block *blocks[BH__PTX_MAX_CLUSTER]; /* Owned, except by a cluster inside of a block */
    uint32_t count, capacity;
    uint32_t live;    /* threads that have not exited */
    uint32_t missing; /* of these, have not arrived at the cluster's barrier */
};

struct bh__ptx_exec {
    uint8_t *bases[2]; /* the frame; the constants, never written */
    bh__ptx_warp *warp;
    bh__ptx_block *block;
    const bh__ptx_module *module;
    const bh__ptx_grid *grid;
    uint8_t *shared;
    uint32_t shared_base; /* where the window of this block's shared memory starts: its rank */
    uint32_t shared_bytes, dynamic_base, reserved_base;
    const bh__ptx_function *frame_function; /* that the lanes execute */
    uint32_t stack;                         /* where this frame's local memory starts */
    uint32_t local_end;                     /* and ends, with what alloca has added */
    /* the range of the last access to global memory */
    uint64_t range_base, range_size;
    bool range_writable;
    bh__ptx_fault *fault;
    const bh__ptx_code *code; /* the instruction being executed */
    bh__ptx_check *check;     /* NULL: not checked */
    bh__ptx_tracing *tracing; /* NULL: the block is not followed */
};

/* Native code: the ranges of the last accesses to global memory, by what their addresses begin
 * with. */
#define SITE_RANGES 32
typedef struct bh__ptx_site_range {
    uint64_t base, size;
    bool writable;
} bh__ptx_site_range;

struct bh__ptx_block {
    bh__ptx_exec x;
    const bh__ptx_image *image;
    bh__ptx_warp *warps;
    uint32_t warp_count, warp_capacity;
    uint32_t threads, live_threads;
    uint32_t next_warp;
    bool native;  /* runs in native code alone: block_native.c */
    bool started; /* of such a block: its warps have left the kernel's first instruction */
    uint32_t id[3], dims[3];
    bh__ptx_cluster *cluster; /* `alone`, or one of several blocks */
    bh__ptx_cluster alone;
    uint32_t rank; /* in the cluster */
    bh__ptx_barrier barriers[BARRIERS];
    uint8_t *shared;
    size_t shared_capacity;
    uint32_t *tid[3];
    size_t tid_capacity;
    bool done;
    bh__check_block *check; /* created when first needed */
    bh__ptx_site_range site_ranges[SITE_RANGES];
    const bh__ptx_grid *ranges_of; /* the grid that they are of, and its number */
    uint64_t ranges_of_id;
};

struct bh__ptx_image {
    const bh__ptx_module *module;
    uint8_t **variables;   /* by index */
    bh__ptx_range *ranges; /* sorted by base */
    size_t range_count;
    void *memory;
    size_t memory_bytes;
};

/* Types that may alias rows. */
typedef uint32_t __attribute__((may_alias)) bh__u32;
typedef uint64_t __attribute__((may_alias)) bh__u64;
typedef int32_t __attribute__((may_alias)) bh__s32;
typedef int64_t __attribute__((may_alias)) bh__s64;
typedef float __attribute__((may_alias)) bh__f32;
typedef double __attribute__((may_alias)) bh__f64;

static inline void *bh__row(const bh__ptx_exec *x, int32_t row) {
    return x->bases[(uint32_t)row >> 31] + (row & INT32_MAX);
}

#if defined(__clang__)
#define ITERATIONS_INDEPENDENT /* clang checks for overlap at run time */
#else
#define ITERATIONS_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Before a function with loops over lanes: one version of it for vectors of 32 bytes too, chosen
 * when the program starts. No result depends on it. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__OPTIMIZE__) && !defined(__clang__) &&   \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define WIDE_VECTORS __attribute__((target_clones("default", "avx2")))
#else
#define WIDE_VECTORS
#endif

/* Runs `body` for every lane of `mask`, with the lane's number in `l`. */
#define FOR_LANES(mask, ...)                                                                       \
    do {                                                                                           \
        if ((mask) == FULL_MASK) {                                                                 \
            ITERATIONS_INDEPENDENT                                                                 \
            for (unsigned l = 0; l < LANES; l++) {                                                 \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (uint32_t m_ = (mask); m_ != 0; m_ &= m_ - 1) {                                    \
                unsigned l = (unsigned)__builtin_ctz(m_);                                          \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    } while (0)

/* As above, in order of lanes; also for bodies that are too large to be compiled twice. */
#define FOR_LANES_IN_ORDER(mask)                                                                   \
    for (uint32_t m_ = (mask), l = 0; m_ != 0 && ((l = (unsigned)__builtin_ctz(m_)), 1);           \
         m_ &= m_ - 1)

/* Sets the bits of `mask` in the predicate at `row`. */
static inline void bh__set_predicate(const bh__ptx_exec *x, int32_t row, uint32_t bits,
                                     uint32_t mask) {
    bh__u32 *p = bh__row(x, row);
    *p = (*p & ~mask) | (bits & mask);
}

/* Returns the lanes of `mask` whose member mask equals that of the first lane. */
static inline uint32_t bh__ptx_same_members(const bh__ptx_exec *x, const bh__ptx_code *i,
                                            uint32_t mask) {
    if (i->e < 0) {
        return mask; /* a constant */
    }
    const bh__u32 *members = bh__row(x, i->e);
    uint32_t wanted = members[__builtin_ctz(mask)], same = 0;
    FOR_LANES_IN_ORDER(mask) {
        same |= (uint32_t)(members[l] == wanted) << l;
    }
    return same;
}

/* Orders all memory accesses. ThreadSanitizer does not support fences, so it gets an atomic. */
static inline void bh__fence(void) {
#if defined(__SANITIZE_THREAD__)
    static int word;
    __atomic_fetch_add(&word, 1, __ATOMIC_SEQ_CST);
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/*
 * Native code of a kernel runs all lanes of a warp that can run, which are at the same instruction,
 * until something has to be decided. The registers are in the frame before and after it. It lets
 * lanes diverge and converge by itself, in the interpreter's order. When it returns, `mask` are the
 * lanes at `pc`; other lanes have their pc in the warp, or have exited.
 */
struct bh__ptx_group_state {
    uint32_t mask, pc;
    uint32_t exited;
    uint32_t rows; /* how the registers are in the frame: ROWS_... */
    uint32_t rest; /* warps behind this one that may run too, if the rows are compact */
    int64_t left;  /* instructions until others run; may become negative */
};

/*
 * While a block runs in native code alone (block_native.c), the frame has only what is alive, and
 * of a register which the code knows to grow evenly from lane to lane only the first lane's value.
 */
#define NATIVE_SLICE 65536 /* instructions before the scheduler takes over */
enum {
    ROWS_WHOLE,   /* all lanes' values, which the code checks */
    ROWS_COMPACT, /* at the kernel's first instruction: none; all are zero */
    ROWS_EXPAND   /* compact, and to be made whole: nothing is executed */
};

typedef enum bh__ptx_compiled_end {
    COMPILED_NOT,   /* nothing was executed: these lanes are to be interpreted from here */
    COMPILED_STEP,  /* the instruction at `pc` is to be interpreted next */
    COMPILED_EXIT,  /* all lanes have exited */
    COMPILED_SLICE, /* `left` is used up */
    COMPILED_WARPS, /* this warp has exited, or waits at barrier 0 with compact rows and its pc
                       behind it; so have warps before it. Only if the rows were compact */
    COMPILED_FAULT
} bh__ptx_compiled_end;

/* lower.c: state and helpers for the lowering of instructions to code. */
typedef struct bh__ptx_lowering {
    bh__ptx_module *module;
    bh__ptx_function *function;
    const bh__ptx_insn *insn;
    bh_error *error;
    bh_status status;
    uint32_t *code_of; /* instruction index to code index */
    uint32_t *buckets; /* of the constants */
    uint32_t bucket_count, constant_count;
    size_t constant_capacity;
    uint32_t rows; /* end of the frame so far */
    int32_t sinks[4];
} bh__ptx_lowering;

bool bh__ptx_lower_fail(bh__ptx_lowering *low, bh_status status, const char *fix,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
int32_t bh__ptx_constant(bh__ptx_lowering *low, uint64_t value, unsigned bytes);
int32_t bh__ptx_new_row(bh__ptx_lowering *low, unsigned bytes); /* 0: predicate */
int32_t bh__ptx_row_in(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type);
int32_t bh__ptx_row_out(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type);
bool bh__ptx_emit(bh__ptx_lowering *low, const bh__ptx_code *code, bool guarded);
bool bh__ptx_lower_plain(bh__ptx_lowering *low, bh__ptx_code *code);
bool bh__ptx_row_wide(const bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_type type);

/* The units: each selects the handler of an instruction. False: the form is not supported. */
bool bh__ptx_pick_int(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_bits(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_video(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_float(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_math(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_half(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_cmp(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_cvt(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_pick_fp8(const bh__ptx_insn *insn, bh__ptx_code *code);
/* exec/half.c: the smaller or the larger of two halves. */
uint16_t bh__ptx_half_min(bool brain, uint16_t a, uint16_t b, bool max);
bh__ptx_handler *bh__ptx_fast_cvt(const bh__ptx_insn *insn); /* or NULL */
bool bh__ptx_pick_warp(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_lower_move(bh__ptx_lowering *low);
bool bh__ptx_lower_memory(bh__ptx_lowering *low);
bool bh__ptx_lower_atomic(bh__ptx_lowering *low);
bool bh__ptx_lower_control(bh__ptx_lowering *low);
bool bh__ptx_lower_stack(bh__ptx_lowering *low);
bool bh__ptx_lower_hint(bh__ptx_lowering *low);
bool bh__ptx_lower_multimem(bh__ptx_lowering *low);
bool bh__ptx_lower_matrix(bh__ptx_lowering *low);
bool bh__ptx_lower_mbarrier(bh__ptx_lowering *low);
bool bh__ptx_lower_async(bh__ptx_lowering *low);
bool bh__ptx_pick_cluster(const bh__ptx_insn *insn, bh__ptx_code *code);
bool bh__ptx_lower_texture(bh__ptx_lowering *low);

/* exec/special.c, exec/move.c */
bh__ptx_handler bh__ptx_run_sreg, bh__ptx_run_sreg16, bh__ptx_run_address, bh__ptx_run_not_pred;

/* The address of one lane: a register and an offset. */
static inline uint64_t bh__ptx_address_at(const bh__ptx_exec *x, const bh__ptx_code *i, int32_t row,
                                          uint64_t offset, unsigned l) {
    if (i->flags & FLAG_ADDRESS32) {
        return (uint32_t)(((const bh__u32 *)bh__row(x, row))[l] + (uint32_t)offset);
    }
    return ((const bh__u64 *)bh__row(x, row))[l] + offset;
}

/* address.c: checks the lanes' addresses and gives pointers. False: a fault was recorded. */
bool bh__ptx_resolve(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, bh__ptx_space space,
                     int32_t address_row, uint64_t offset, unsigned bytes, bool write,
                     uint8_t *out[LANES]);
/* The access of a whole warp in global, constant, generic or shared space at i->a and i->imm, as
 * one: the lanes' values follow each other, or, in a load, all lanes have one address (*same).
 * NULL: it is not like that, or may not be made; no fault is recorded. */
uint8_t *bh__ptx_resolve_warp(bh__ptx_exec *x, const bh__ptx_code *i, bh__ptx_space space,
                              unsigned bytes, bool write, bool *same);
/* One lane; `bytes` is any number. The fault, if it is outside of its space, is recorded. */
uint8_t *bh__ptx_resolve_lane(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address,
                              uint32_t bytes, uint32_t align, bool write);
uint8_t *bh__ptx_at(bh__ptx_exec *x, unsigned lane, uint64_t address, uint64_t bytes, bool write,
                    uint64_t *left); /* generic; NULL: not mapped. *left: bytes to the end */
const bh__ptx_range *bh__ptx_range_at(const bh__ptx_exec *x, uint64_t address); /* or NULL */
/* Converts an address in `space` to a generic one. False: it is outside of that space. */
bool bh__ptx_generic(const bh__ptx_exec *x, bh__ptx_space space, uint64_t address, uint64_t *out);
const char *bh__ptx_space_name(bh__ptx_space space);

/* exec/memory.c */
typedef struct bh__ptx_lowered_address { /* the row of an address and the offset to add to it */
    int32_t row;
    bool is32;
    uint64_t offset;
} bh__ptx_lowered_address;
bool bh__ptx_lower_place(bh__ptx_lowering *low, const bh__ptx_operand *o,
                         bh__ptx_lowered_address *out);
bool bh__ptx_lower_address(bh__ptx_lowering *low, const bh__ptx_operand *o, bh__ptx_code *code);
uint32_t bh__ptx_access_flags(const bh__ptx_insn *insn); /* ACCESS_... of check.h */

/* call.c */
typedef struct bh__ptx_slot {
    int32_t row;     /* a register or constant, or NO_ROW */
    uint32_t offset; /* without a row: of a .param variable in the caller's frame */
    uint32_t bytes;  /* 0: a predicate */
    bool reference;  /* the address is passed: the parameter has no size */
} bh__ptx_slot;

typedef struct bh__ptx_call {
    const bh__ptx_function *callee; /* NULL: the address is in row a */
    bh__ptx_slot *args, *results;
    uint32_t arg_count, result_count;
} bh__ptx_call;

bool bh__ptx_lower_call(bh__ptx_lowering *low);
/* Enters a function with the lanes of `mask` that call the same one. Returns them; 0: a fault. */
uint32_t bh__ptx_call_enter(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, uint32_t pc);
void bh__ptx_call_leave(bh__ptx_exec *x, uint32_t mask);
void bh__ptx_call_abandon(bh__ptx_warp *warp,
                          uint32_t mask); /* lanes that exited inside functions */
/* Copies the registers of lanes in different frames of one function into a frame of all of them.
 * Returns 0 if there is no room. The register file may move. */
uint32_t bh__ptx_call_gather(bh__ptx_warp *warp, uint32_t mask);
/* Copies them back and frees that frame. */
void bh__ptx_call_scatter(bh__ptx_warp *warp, uint32_t base, uint32_t mask);
uint64_t bh__ptx_call_argument(const bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane);
void bh__ptx_call_result(bh__ptx_exec *x, const bh__ptx_slot *slot, unsigned lane, uint64_t value);
bool bh__ptx_local_room(bh__ptx_warp *warp, uint32_t bytes);
bool bh__ptx_regs_room(bh__ptx_warp *warp, size_t bytes);

/* exec/stack.c: the end of what any lane has allocated in this frame, or `top`. */
uint32_t bh__ptx_stack_top(const bh__ptx_warp *warp, uint32_t base, uint32_t top);

/* barrier.c */
enum { BAR_SYNC, BAR_ARRIVE, BAR_RED };
typedef enum bh__ptx_bar_result { BAR_WAIT, BAR_GO_ON, BAR_FAULT } bh__ptx_bar_result;
/* Lanes arrive at one barrier. Their pc must already be past the instruction. */
bh__ptx_bar_result bh__ptx_barrier_arrive(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
/* Returns the lanes of `mask` that name the same barrier as the first lane. */
uint32_t bh__ptx_barrier_same(const bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
void bh__ptx_barrier_exit(bh__ptx_block *block); /* after threads have exited */

/* sync.c. Lanes reach an instruction of CODE_SYNC at `pc`; it sets their pc. False: a fault. */
bool bh__ptx_sync_run(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask, uint32_t pc);
bool bh__ptx_sync_exit(bh__ptx_exec *x); /* after lanes of x->warp have exited */

/* block.c: no thread can run and not all have exited; they wait for what cannot happen. Records a
 * fault that says for what. */
bh__ptx_outcome bh__ptx_block_deadlock(bh__ptx_block *block);

/* cluster.c: the barrier of a cluster */
enum { CLUSTER_ARRIVE, CLUSTER_WAIT };
bool bh__ptx_cluster_barrier(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
void bh__ptx_cluster_exit(bh__ptx_exec *x, uint32_t lanes); /* lanes that exit */
void bh__ptx_cluster_alone(bh__ptx_block *block);           /* a block without others */

/* exec/mbarrier.c: what happens to an mbarrier object. False: a fault was recorded. */
bool bh__mbarrier_arrive(bh__ptx_exec *x, unsigned lane, uint8_t *object, uint32_t count);
bool bh__mbarrier_complete(bh__ptx_exec *x, unsigned lane, uint8_t *object, uint32_t bytes);
bool bh__mbarrier_valid(bh__ptx_exec *x, unsigned lane, const uint8_t *object);
/* An operand that is the address of one, in a space of shared memory. NULL: a fault. */
uint8_t *bh__mbarrier_at(bh__ptx_exec *x, unsigned lane, bh__ptx_space space, uint64_t address);

/* exec/atomic.c: atomic updates for other instructions. False: PTX has no such operation. */
bool bh__ptx_pick_update(const bh__ptx_insn *insn, bh__ptx_code *code);
uint64_t bh__ptx_update(const bh__ptx_code *i, uint8_t *p, uint64_t b, uint64_t c);

/* block_native.c: blocks that run in native code until something needs the scheduler. */
bool bh__ptx_block_takes_native(const bh__ptx_block *block, const bh__ptx_function *function);
bool bh__ptx_block_native_begin(bh__ptx_block *block, const bh__ptx_function *function);
/* The next block of the same launch, if the last one needed no scheduler. */
bool bh__ptx_block_native_again(bh__ptx_block *block, const bh__ptx_grid *grid);
/* Returns with block->native false if the scheduler is to go on. */
bh__ptx_outcome bh__ptx_block_native_step(bh__ptx_block *block, uint64_t *budget);
/* block.c: memory for a warp that begins; what the scheduler knows of it. */
bool bh__ptx_warp_room(bh__ptx_block *block, uint32_t index, const bh__ptx_function *function);
void bh__ptx_warp_begin(bh__ptx_block *block, uint32_t index, const bh__ptx_function *function);
void bh__ptx_warp_zero(bh__ptx_warp *warp, const bh__ptx_function *function); /* its registers */
void bh__ptx_warp_zero_local(bh__ptx_warp *warp, uint32_t bytes);

/* warp.c */
void bh__ptx_bind(bh__ptx_exec *x, bh__ptx_warp *warp, uint32_t base);
typedef enum bh__ptx_turn { TURN_RAN, TURN_BLOCKED, TURN_FAULT, TURN_STOP } bh__ptx_turn;
bh__ptx_turn bh__ptx_warp_run(bh__ptx_exec *x, bh__ptx_warp *warp, uint64_t *budget);

/* heap.c. An address of 0: the heap is full; false: the address is of no block in use. */
uint64_t bh__ptx_heap_take(bh__ptx_heap *heap, uint64_t bytes);
bool bh__ptx_heap_give(bh__ptx_heap *heap, uint64_t address);
const bh__ptx_range *bh__ptx_heap_range(const bh__ptx_heap *heap);
bool bh__ptx_run_malloc(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
bool bh__ptx_run_free(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);

/* print.c */
bool bh__ptx_run_vprintf(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);
bool bh__ptx_run_assertfail(bh__ptx_exec *x, const bh__ptx_code *i, uint32_t mask);

/* check/sync.c, check/shadow.c */
void bh__check_block_free(bh__check_block *check);
void bh__check_shadow_free(bh__check_shadow *shadow);
/* A frame is not used any more. */
void bh__check_forget_registers(bh__ptx_warp *warp, uint32_t base, uint32_t size);

/* fault.c. All return false, so that a handler can return the result. */
bool bh__ptx_fault_access(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane, uint64_t address,
                          unsigned bytes, bool write, const char *space);
bool bh__ptx_fault_other(bh__ptx_exec *x, bh__ptx_fault_kind kind, unsigned lane,
                         const char *format, ...) __attribute__((format(printf, 4, 5)));
/* "PTX line 12 (kernel.cu:7): `st.global.f32 ...`"; `quoted` 0: without the instruction */
void bh__ptx_site_text(const bh__ptx_module *module, uint32_t code, unsigned quoted, char *out,
                       size_t size);

#endif
