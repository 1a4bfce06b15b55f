/* SPDX-License-Identifier: Apache-2.0 */
/* The state of one compilation, shared by the files of src/jit/. */
#ifndef BH_JIT_UNIT_H
#define BH_JIT_UNIT_H

#include <llvm-c/Core.h>
#include <stdint.h>

#include "jit/jit.h"

/*
 * Values. A row of the frame is a register's 32 lanes. In the code it is either
 *   affine:  one scalar, lane 0's value; lane l has that plus l times a constant stride, modulo the
 *            row's width. Stride 0: all lanes have the same value.
 *   varying: a vector of 32.
 * Where rows of threads are shorter than a warp, it has `parts`, one for each of them, and an
 * affine value is either the same in all parts, or `parted`: a vector of the values of each part's
 * first lane. A predicate is affine with stride 0 (an i1), or varying (an i32, a bit for each
 * lane).
 */
typedef enum bh__jit_class { CLASS_NONE, CLASS_AFFINE, CLASS_VARYING } bh__jit_class;
enum { KIND_PREDICATE, KIND_WORD, KIND_WIDE };

typedef struct bh__jit_row {
    int32_t row; /* byte offset in the frame */
    uint8_t kind;
    uint8_t class;
    bool parted;
    bool differs; /* divergent control flow makes it vary */
    bool any_nan; /* no reader tells one NaN from another */
    int64_t stride;
    LLVMValueRef slot; /* an alloca; becomes registers of the processor */
} bh__jit_row;

/* How an instruction is made. Everything that is not listed is JIT_HANDLED. */
typedef enum bh__jit_op {
    JIT_HANDLED, /* a call of the interpreter's handler */
    JIT_MOVE,
    JIT_TID,   /* %tid, imm: 0 to 2 */
    JIT_BLOCK, /* %ctaid, %ntid, %nctaid */
    JIT_LANE,  /* %laneid */
    JIT_PARAM,
    JIT_ADDRESS, /* of a variable */
    JIT_NOT_PRED,
    JIT_ADD,
    JIT_SUB,
    JIT_MUL,
    JIT_MAD,
    JIT_MUL_WIDE,
    JIT_MAD_WIDE,
    JIT_MUL_HI,
    JIT_MAD_HI,
    JIT_MIN,
    JIT_MAX,
    JIT_NEG,
    JIT_ABS,
    JIT_AND,
    JIT_OR,
    JIT_XOR,
    JIT_NOT,
    JIT_SHL,
    JIT_SHR,
    JIT_WIDEN,
    JIT_NARROW,
    JIT_RECODE, /* cvt of integers of any width */
    JIT_DIV,
    JIT_REM,
    JIT_POPC,
    JIT_CLZ,
    JIT_BREV,
    JIT_FIND,    /* bfind */
    JIT_EXTRACT, /* bfe */
    JIT_INSERT,  /* bfi */
    JIT_FUNNEL,  /* shf */
    JIT_PERMUTE, /* prmt */
    JIT_LOGIC,   /* lop3 */
    JIT_DOT,     /* dp4a */
    JIT_PACK,    /* mov of several registers to one */
    JIT_UNPACK,  /* and of one to several */
    JIT_HALF,    /* arithmetic on f16 and f16x2 */
    JIT_FROM_HALF,
    JIT_TO_HALF,
    JIT_MEET, /* a barrier of the warp */
    JIT_FENCE,
    JIT_SETP,
    JIT_SELP,
    JIT_FADD,
    JIT_FSUB,
    JIT_FMUL,
    JIT_FDIV,
    JIT_FMA,
    JIT_RCP,
    JIT_SQRT,
    JIT_FNEG,
    JIT_FABS,
    JIT_FMIN,
    JIT_FMAX,
    JIT_RSQRT,
    JIT_EX2,
    JIT_QUOTIENT, /* div.approx */
    JIT_INT_TO_FLOAT,
    JIT_FLOAT_TO_INT,
    JIT_RESIZE,   /* between single and double precision */
    JIT_TO_WHOLE, /* single precision, to an integer in its own format */
    JIT_CLAMP,    /* single precision, to 0 to 1 */
    JIT_LOAD,
    JIT_STORE,
    JIT_ATOMIC,
    JIT_SHFL,
    JIT_VOTE,
    JIT_BRANCH,
    JIT_EXIT,
    JIT_STOP /* the interpreter runs it, and decides what runs next */
} bh__jit_op;

enum { MAX_REFS = 48 };

/* An instruction, and the rows it reads and writes (indices in `rows`). */
typedef struct bh__jit_step {
    const bh__ptx_code *code;
    const bh__ptx_insn *insn; /* NULL: the end of the kernel */
    bh__jit_op op;
    bool sync;    /* CODE_SYNC: native only if all lanes of the warp are there */
    bool uniform; /* JIT_HANDLED: the result is the same in all lanes */
    uint32_t *uses, *defs;
    uint32_t use_count, def_count;
    int32_t guard;  /* index of the row of the guard, or -1 */
    uint32_t range; /* of an access to global memory: which of the block's site_ranges */
} bh__jit_step;

/* A range of global memory as the code has it: allocas. */
typedef struct bh__jit_range {
    LLVMValueRef base, size, writable; /* i64, i64, i8 */
} bh__jit_range;

typedef struct bh__jit_block {
    uint32_t first, end;            /* steps */
    int32_t next[2];                /* blocks that may follow, or -1 */
    bool loops;                     /* a branch backwards leads here */
    uint64_t *live;                 /* rows that are read before they are written, from here on */
    uint64_t *pending;              /* blocks at which other lanes may wait while this one runs */
    uint64_t *keep;                 /* rows that are alive there */
    bool awaited;                   /* in `pending` of a block */
    bool entered;                   /* the interpreter may hand lanes over here */
    LLVMBasicBlockRef full, masked; /* for all 32 lanes, and for some of them */
    LLVMBasicBlockRef masked_end;   /* where the last step of `masked` starts */
    LLVMValueRef waiting;           /* alloca of i32: the lanes that wait here */
} bh__jit_block;

typedef struct bh__jit_unit {
    const bh__jit_request *request;
    bh__jit_result *result;
    bh__arena arena;
    uint32_t first; /* code index of step 0 */
    unsigned parts, part_lanes;
    bh__jit_step *steps;
    uint32_t step_count;
    bh__jit_row *rows;
    uint32_t row_count, row_capacity;
    int32_t *row_at; /* by offset / 4: index in rows, or -1 */
    uint32_t frame_words;
    bh__jit_block *blocks;
    uint32_t block_count;
    int32_t *block_at;    /* by step: the block that begins there, or -1 */
    uint32_t words;       /* of a set of rows */
    uint32_t block_words; /* of a set of blocks */

    /* build.c */
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMBuilderRef b;
    LLVMValueRef function;
    LLVMValueRef x, state, frame; /* pointers */
    LLVMValueRef all, all_lanes;  /* the lanes that have entered: i32, <32 x i1> */
    LLVMValueRef mask;            /* i32: the lanes that run */
    LLVMValueRef lanes;           /* the same as <32 x i1> */
    LLVMValueRef running;         /* alloca of i32: the lanes that run */
    LLVMValueRef warp;            /* ptr */
    LLVMBasicBlockRef next_warp;  /* this one is done */
    LLVMValueRef scratch;         /* alloca: SCRATCH_ROWS rows */
    LLVMValueRef left;            /* alloca of i64 */
    bh__jit_range ranges[SITE_RANGES];
    uint32_t range_count;
    const bh__jit_block *block; /* that is being made */
    bool full;                  /* its version for 32 lanes */
    LLVMTypeRef i1, i8, i16, i32, i64, f32, f64, ptr;
    LLVMTypeRef handler_type;
    uint32_t at; /* the step being made */
    /* Of the step being made: */
    LLVMValueRef active;       /* i32 */
    LLVMValueRef active_lanes; /* <32 x i1> */
    bool guarded;
    LLVMValueRef guard_bit; /* i1 where the guard is the same in all lanes, else NULL */
    bool failed;            /* out of memory */
    bool refused;           /* by LLVM, while it made the code: engine.c */
} bh__jit_unit;

#define ROW_IN(set, n)  ((set)[(n) / 64] >> ((n) % 64) & 1)
#define ROW_PUT(set, n) ((set)[(n) / 64] |= UINT64_C(1) << ((n) % 64))

/* Fills in `note`. Returns false. */
bool bh__jit_refuse(bh__jit_unit *u, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* select.c */
bool bh__jit_is_barrier(const bh__jit_unit *u, const bh__jit_step *s); /* of all threads: 0 */
bh__jit_op bh__jit_select(const bh__jit_request *request, const bh__ptx_code *code,
                          const bh__ptx_insn *insn, bool *uniform);
/* plan.c: steps, rows, blocks, what is alive where. False: not taken. */
bool bh__jit_plan(bh__jit_unit *u);
/* Whether the registers that are alive at once do. After bh__jit_classify. False: not taken. */
bool bh__jit_fits_stack(bh__jit_unit *u);
/* Rows that are alive before a step; `out` has u->words words. */
void bh__jit_live_before(const bh__jit_unit *u, uint32_t step, uint64_t *out);
int32_t bh__jit_row_index(const bh__jit_unit *u, int32_t row);
/* pending.c: at which blocks lanes may wait, as the rows are classified now. Rows that this makes
 * vary are marked; false if there are no more of them, or no memory. */
bool bh__jit_find_pending(bh__jit_unit *u);
/* classify.c */
void bh__jit_classify(bh__jit_unit *u);
/* The class and stride of an operand; a constant is affine with stride 0. */
bh__jit_class bh__jit_class_of(const bh__jit_unit *u, int32_t row, int64_t *stride);
bool bh__jit_is_parted(const bh__jit_unit *u, int32_t row);
/* The value of a row of constants. False: it is a register. */
bool bh__jit_constant(const bh__jit_unit *u, int32_t row, bool wide, uint64_t *out);

/* nans.c: sets any_nan of the rows. */
void bh__jit_find_nans(bh__jit_unit *u);
/* ranges.c */
bool bh__jit_find_ranges(bh__jit_unit *u); /* sets `range` of the steps; false: no memory */
void bh__jit_load_ranges(bh__jit_unit *u); /* where the function begins */
void bh__jit_keep_range(bh__jit_unit *u, uint32_t range); /* the handler has found another one */
bool bh__jit_has_range(const bh__jit_step *s);            /* memory.c */

/* flow.c: between blocks. Each ends the current LLVM block. */
void bh__jit_go_on(bh__jit_unit *u, uint32_t next);
void bh__jit_branch(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_exit(bh__jit_unit *u, const bh__jit_step *s);

/* warps.c */
LLVMValueRef bh__jit_rows_are(bh__jit_unit *u, LLVMIntPredicate how, uint32_t what); /* ROWS_... */
void bh__jit_end_warp(bh__jit_unit *u); /* all lanes have exited. Goes on if the rows are whole */
void bh__jit_wait(bh__jit_unit *u);     /* at a barrier. Goes on if the scheduler is to see it */
void bh__jit_make_next_warp(bh__jit_unit *u, LLVMBasicBlockRef head);

/* build.c: the function, its entries and exits. */
void bh__jit_begin_step(bh__jit_unit *u, const bh__jit_step *s); /* its guard */
LLVMBasicBlockRef bh__jit_new_block(bh__jit_unit *u);
/* To `rare` if `condition`, else to `usual`: rare blocks are out of the way, and pay for
 * registers. */
void bh__jit_rarely(bh__jit_unit *u, LLVMValueRef condition, LLVMBasicBlockRef rare,
                    LLVMBasicBlockRef usual);
LLVMValueRef bh__jit_outcome(bh__jit_unit *u, bh__ptx_compiled_end end);
void bh__jit_set_field(bh__jit_unit *u, LLVMValueRef base, size_t offset, LLVMValueRef v);
bool bh__jit_build(bh__jit_unit *u);
/* Leaves the function: what is alive goes to the frame. Ends the current LLVM block. */
void bh__jit_leave(bh__jit_unit *u, uint32_t step, LLVMValueRef code);
/* Leaves if `condition`, so that the interpreter runs the step that is being made. */
void bh__jit_step_if(bh__jit_unit *u, LLVMValueRef condition);
/* Calls the handler of a step and returns to its caller if it faults. */
void bh__jit_call_handler(bh__jit_unit *u, const bh__jit_step *s);

/* value.c: reading and writing rows. `wide`: 64 bits. Values are integers. */
bool bh__jit_is_uniform(const bh__jit_unit *u, int32_t row); /* stride 0, not parted */
bool bh__jit_is_affine(const bh__jit_unit *u, int32_t row);
LLVMValueRef bh__jit_scalar(bh__jit_unit *u, int32_t row, bool wide); /* lane 0's, or each part's */
/* An operand in the shape that the result in row `like` has. */
LLVMValueRef bh__jit_operand(bh__jit_unit *u, int32_t like, int32_t row, bool wide);
LLVMValueRef bh__jit_vector(bh__jit_unit *u, int32_t row, bool wide);
LLVMValueRef bh__jit_lanes_of(bh__jit_unit *u, int32_t row);    /* a predicate: <32 x i1> */
LLVMValueRef bh__jit_bit_of(bh__jit_unit *u, int32_t row);      /* a uniform predicate: i1 */
void bh__jit_set(bh__jit_unit *u, int32_t row, LLVMValueRef v); /* scalar or vector */
void bh__jit_set_predicate(bh__jit_unit *u, int32_t row, LLVMValueRef v); /* i1 or <32 x i1> */
/* Between the frame and a row's slot: of the lanes that run, or of all that have entered. */
void bh__jit_spill(bh__jit_unit *u, const bh__jit_row *r, bool all);
void bh__jit_reload(bh__jit_unit *u, const bh__jit_row *r);
/* The same in the compact form: see ROWS_COMPACT. */
void bh__jit_pack(bh__jit_unit *u, const bh__jit_row *r);
void bh__jit_unpack(bh__jit_unit *u, const bh__jit_row *r);
/* As bh__jit_reload, and whether the lanes that run have a value of the row's class (i1). */
LLVMValueRef bh__jit_enter_row(bh__jit_unit *u, const bh__jit_row *r);
LLVMValueRef bh__jit_splat(bh__jit_unit *u, LLVMValueRef scalar);
LLVMValueRef bh__jit_splat_to(bh__jit_unit *u, LLVMValueRef scalar, unsigned count);
/* All lanes of an affine value of 64 or 32 bits. */
LLVMValueRef bh__jit_expand(bh__jit_unit *u, LLVMValueRef base, int64_t stride);
LLVMValueRef bh__jit_lane_numbers(bh__jit_unit *u);
LLVMValueRef bh__jit_int(bh__jit_unit *u, LLVMTypeRef type, uint64_t v);
bool bh__jit_is_vector(LLVMValueRef v);
unsigned bh__jit_width(LLVMValueRef v); /* of a vector; 1: a scalar */
LLVMTypeRef bh__jit_slot_type(const bh__jit_unit *u, const bh__jit_row *r);
LLVMTypeRef bh__jit_shaped(LLVMValueRef like, LLVMTypeRef element); /* of the same shape */
LLVMValueRef bh__jit_const_like(bh__jit_unit *u, LLVMValueRef like, uint64_t v);
LLVMValueRef bh__jit_field(bh__jit_unit *u, LLVMValueRef base, size_t offset, LLVMTypeRef type);
LLVMValueRef bh__jit_intrinsic(bh__jit_unit *u, const char *name, LLVMTypeRef *types, unsigned n,
                               LLVMValueRef *args, unsigned count);

/*
 * parts.c: the first or the last lane of a mask, counted from the beginning of its part: i32, in
 * all parts together, or `parted`, <parts x i32>, 0 for a part that has none.
 */
LLVMValueRef bh__jit_edge_lane(bh__jit_unit *u, LLVMValueRef mask, bool parted, bool last);
/* i1: whether a <parts x i1> is true in all parts that have lanes of the mask; a scalar: it
 * itself. */
LLVMValueRef bh__jit_in_parts(bh__jit_unit *u, LLVMValueRef v, LLVMValueRef mask);
LLVMValueRef bh__jit_parts_with(bh__jit_unit *u, LLVMValueRef mask); /* <parts x i1> */
/* Lanes of one part of a vector of 32; the same lanes of all parts: any of them. */
LLVMValueRef bh__jit_part(bh__jit_unit *u, LLVMValueRef v, unsigned part);
LLVMValueRef bh__jit_any_part(bh__jit_unit *u, LLVMValueRef lanes);
LLVMValueRef bh__jit_join_parts(bh__jit_unit *u, LLVMValueRef *parts); /* of part_lanes each */
LLVMValueRef bh__jit_of_part(bh__jit_unit *u, LLVMValueRef v, unsigned part); /* scalar */

/* bits.c: bit fields, permutations, and registers as parts of others. */
LLVMValueRef bh__jit_bits(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_unpack_parts(bh__jit_unit *u, const bh__jit_step *s);

/* arithmetic.c, floating.c, convert.c, memory.c, atomic.c, warp_ops.c. The step's op is one of
 * theirs. */
void bh__jit_integer(bh__jit_unit *u, const bh__jit_step *s);
LLVMValueRef bh__jit_divide(bh__jit_unit *u, const bh__jit_step *s); /* divide.c */
void bh__jit_floating(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_convert(bh__jit_unit *u, const bh__jit_step *s); /* of which one side is a float */
void bh__jit_access(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_atomic(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_shuffle(bh__jit_unit *u, const bh__jit_step *s);
void bh__jit_vote(bh__jit_unit *u, const bh__jit_step *s);

/*
 * each_lane.c: a loop over the lanes of a mask (i32), from the first to the last. The code between
 * begin and end is its body; values that lanes have go through rows of u->scratch.
 */
typedef struct bh__jit_loop {
    LLVMValueRef lane; /* i64 */
    LLVMValueRef mask, left;
    LLVMBasicBlockRef before, body, after;
} bh__jit_loop;
void bh__jit_loop_begin(bh__jit_unit *u, LLVMValueRef mask, bh__jit_loop *out);
void bh__jit_loop_end(bh__jit_unit *u, const bh__jit_loop *loop);
enum { SCRATCH_ROWS = 5 }; /* each has room for 32 values of 64 bits */
LLVMValueRef bh__jit_scratch(bh__jit_unit *u, unsigned row);
/* Where a row has the value of one lane. */
LLVMValueRef bh__jit_scratch_at(bh__jit_unit *u, unsigned row, LLVMTypeRef type, LLVMValueRef lane);

/* engine.c: from the LLVM module to code. */
bool bh__jit_finish(bh__jit_unit *u);

#endif
