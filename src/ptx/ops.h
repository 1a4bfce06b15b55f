/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of PTX types, modifiers and operations, included by every pass. */
#ifndef BH_PTX_OPS_H
#define BH_PTX_OPS_H

/* X(id, name, bytes, class): class P predicate, B bits, U unsigned, S signed, F float */
#define BH__PTX_TYPES(X)                                                                           \
    X(PRED, "pred", 0, 'P')                                                                        \
    X(B8, "b8", 1, 'B')                                                                            \
    X(B16, "b16", 2, 'B')                                                                          \
    X(B32, "b32", 4, 'B')                                                                          \
    X(B64, "b64", 8, 'B')                                                                          \
    X(B128, "b128", 16, 'B')                                                                       \
    X(U8, "u8", 1, 'U')                                                                            \
    X(U16, "u16", 2, 'U')                                                                          \
    X(U32, "u32", 4, 'U')                                                                          \
    X(U64, "u64", 8, 'U')                                                                          \
    X(S8, "s8", 1, 'S')                                                                            \
    X(S16, "s16", 2, 'S')                                                                          \
    X(S32, "s32", 4, 'S')                                                                          \
    X(S64, "s64", 8, 'S')                                                                          \
    X(F16, "f16", 2, 'F')                                                                          \
    X(BF16, "bf16", 2, 'F')                                                                        \
    X(F16X2, "f16x2", 4, 'F')                                                                      \
    X(BF16X2, "bf16x2", 4, 'F')                                                                    \
    X(E4M3X2, "e4m3x2", 2, 'F')                                                                    \
    X(E5M2X2, "e5m2x2", 2, 'F')                                                                    \
    X(TF32, "tf32", 4, 'F')                                                                        \
    X(F32, "f32", 4, 'F')                                                                          \
    X(F64, "f64", 8, 'F')                                                                          \
    X(U16X2, "u16x2", 4, 'U')                                                                      \
    X(S16X2, "s16x2", 4, 'S')                                                                      \
    X(U4, "u4", 1, 'U')                                                                            \
    X(S4, "s4", 1, 'S')                                                                            \
    X(U2, "u2", 1, 'U')                                                                            \
    X(S2, "s2", 1, 'S')                                                                            \
    X(E4M3, "e4m3", 1, 'F')                                                                        \
    X(E5M2, "e5m2", 1, 'F')                                                                        \
    X(B1, "b1", 1, 'B')

/*
 * X(id, name, group): an instruction may have at most one modifier of a group, except group 0.
 * A modifier that is not in an operation's set below is an error; it is never ignored.
 * Those that only a few operations have are in a second list, so that a set fits an integer.
 */
#define BH__PTX_MODS(X)                                                                            \
    X(RN, "rn", 1)                                                                                 \
    X(RZ, "rz", 1)                                                                                 \
    X(RM, "rm", 1)                                                                                 \
    X(RP, "rp", 1)                                                                                 \
    X(RNI, "rni", 1)                                                                               \
    X(RZI, "rzi", 1)                                                                               \
    X(RMI, "rmi", 1)                                                                               \
    X(RPI, "rpi", 1)                                                                               \
    X(RNA, "rna", 1)                                                                               \
    X(APPROX, "approx", 1)                                                                         \
    X(FULL, "full", 1)                                                                             \
    X(FTZ, "ftz", 0)                                                                               \
    X(SAT, "sat", 0)                                                                               \
    X(SATFINITE, "satfinite", 0)                                                                   \
    X(RELU, "relu", 0)                                                                             \
    X(NOFTZ, "noftz", 0)                                                                           \
    X(CC, "cc", 0)                                                                                 \
    X(WIDE, "wide", 2)                                                                             \
    X(LO, "lo", 2)                                                                                 \
    X(HI, "hi", 2)                                                                                 \
    X(EQ, "eq", 2)                                                                                 \
    X(NE, "ne", 2)                                                                                 \
    X(LT, "lt", 2)                                                                                 \
    X(LE, "le", 2)                                                                                 \
    X(GT, "gt", 2)                                                                                 \
    X(GE, "ge", 2)                                                                                 \
    X(LS, "ls", 2)                                                                                 \
    X(HS, "hs", 2)                                                                                 \
    X(EQU, "equ", 2)                                                                               \
    X(NEU, "neu", 2)                                                                               \
    X(LTU, "ltu", 2)                                                                               \
    X(LEU, "leu", 2)                                                                               \
    X(GTU, "gtu", 2)                                                                               \
    X(GEU, "geu", 2)                                                                               \
    X(NUM, "num", 2)                                                                               \
    X(ISNAN, "nan", 2)                                                                             \
    X(AND, "and", 3)                                                                               \
    X(OR, "or", 3)                                                                                 \
    X(XOR, "xor", 3)                                                                               \
    X(ADD, "add", 3)                                                                               \
    X(INC, "inc", 3)                                                                               \
    X(DEC, "dec", 3)                                                                               \
    X(MIN, "min", 3)                                                                               \
    X(MAX, "max", 3)                                                                               \
    X(CAS, "cas", 3)                                                                               \
    X(EXCH, "exch", 3)                                                                             \
    X(POPC, "popc", 3)                                                                             \
    X(GLOBAL, "global", 4)                                                                         \
    X(SHARED, "shared", 4)                                                                         \
    X(LOCAL, "local", 4)                                                                           \
    X(PARAM, "param", 4)                                                                           \
    X(CONST, "const", 4)                                                                           \
    X(TO, "to", 0)                                                                                 \
    X(V2, "v2", 5)                                                                                 \
    X(V4, "v4", 5)                                                                                 \
    X(V8, "v8", 5)                                                                                 \
    X(WEAK, "weak", 6)                                                                             \
    X(VOLATILE, "volatile", 6)                                                                     \
    X(RELAXED, "relaxed", 6)                                                                       \
    X(ACQUIRE, "acquire", 6)                                                                       \
    X(RELEASE, "release", 6)                                                                       \
    X(ACQ_REL, "acq_rel", 6)                                                                       \
    X(SC, "sc", 6)                                                                                 \
    X(MMIO, "mmio", 0)                                                                             \
    X(CTA, "cta", 7)                                                                               \
    X(CLUSTER, "cluster", 7)                                                                       \
    X(GPU, "gpu", 7)                                                                               \
    X(SYS, "sys", 7)                                                                               \
    X(GL, "gl", 7)                                                                                 \
    X(CA, "ca", 8)                                                                                 \
    X(CG, "cg", 8)                                                                                 \
    X(CS, "cs", 8)                                                                                 \
    X(LU, "lu", 8)                                                                                 \
    X(CV, "cv", 8)                                                                                 \
    X(WB, "wb", 8)                                                                                 \
    X(WT, "wt", 8)                                                                                 \
    X(NC, "nc", 0)                                                                                 \
    X(HINT, "L2::evict_normal", 0)                                                                 \
    X(POLICY, "L2::cache_hint", 0)                                                                 \
    X(L1, "L1", 9)                                                                                 \
    X(L2, "L2", 9)                                                                                 \
    X(UNI, "uni", 10)                                                                              \
    X(ALL, "all", 10)                                                                              \
    X(ANY, "any", 10)                                                                              \
    X(BALLOT, "ballot", 10)                                                                        \
    X(UP, "up", 10)                                                                                \
    X(DOWN, "down", 10)                                                                            \
    X(BFLY, "bfly", 10)                                                                            \
    X(IDX, "idx", 10)                                                                              \
    X(SYNC, "sync", 11)                                                                            \
    X(ARRIVE, "arrive", 11)                                                                        \
    X(RED, "red", 11)                                                                              \
    X(ALIGNED, "aligned", 0)                                                                       \
    X(WARP, "warp", 0)                                                                             \
    X(F4E, "f4e", 12)                                                                              \
    X(B4E, "b4e", 12)                                                                              \
    X(RC8, "rc8", 12)                                                                              \
    X(ECL, "ecl", 12)                                                                              \
    X(ECR, "ecr", 12)                                                                              \
    X(RC16, "rc16", 12)                                                                            \
    X(L, "l", 13)                                                                                  \
    X(R, "r", 13)                                                                                  \
    X(WRAP, "wrap", 14)                                                                            \
    X(CLAMP, "clamp", 14)                                                                          \
    X(SHIFTAMT, "shiftamt", 0)                                                                     \
    X(FINITE, "finite", 15)                                                                        \
    X(INFINITE, "infinite", 15)                                                                    \
    X(NUMBER, "number", 15)                                                                        \
    X(NOTANUMBER, "notanumber", 15)                                                                \
    X(NORMAL, "normal", 15)                                                                        \
    X(SUBNORMAL, "subnormal", 15)                                                                  \
    X(NAN, "NaN", 0)                                                                               \
    X(XORSIGN, "xorsign", 0)                                                                       \
    X(ABS, "abs", 0)                                                                               \
    X(PROXY, "proxy", 0)                                                                           \
    X(PACK, "pack", 0)                                                                             \
    X(ASYNC, "async", 0)                                                                           \
    X(SHR7, "shr7", 17)                                                                            \
    X(SHR15, "shr15", 17)                                                                          \
    X(PO, "po", 0)

#define BH__PTX_MORE_MODS(X)                                                                       \
    X(COMMIT_GROUP, "commit_group", 16)                                                            \
    X(WAIT_GROUP, "wait_group", 16)                                                                \
    X(WAIT_ALL, "wait_all", 16)                                                                    \
    X(FRACTIONAL, "fractional", 20)                                                                \
    X(RANGE, "range", 20)                                                                          \
    X(CONVERT, "cvt", 20)                                                                          \
    X(TENSORMAP, "tensormap", 0)                                                                   \
    X(MASK, "mask", 0)                                                                             \
    X(LD_REDUCE, "ld_reduce", 11)                                                                  \
    X(MULTI_STORE, "st", 11)                                                                       \
    X(ACC_F32, "acc::f32", 0)                                                                      \
    X(SPARSE, "sp", 18)                                                                            \
    X(ORDERED, "sp::ordered_metadata", 18)                                                         \
    X(X1, "x1", 19)                                                                                \
    X(X2, "x2", 19)                                                                                \
    X(X4, "x4", 19)                                                                                \
    X(TRANS, "trans", 0)                                                                           \
    X(LOAD, "load", 16)                                                                            \
    X(STORE, "store", 16)                                                                          \
    X(MULTIPLY, "mma", 16)                                                                         \
    X(MMA_ASYNC, "mma_async", 16)                                                                  \
    X(FENCE, "fence", 16)                                                                          \
    X(A, "a", 13)                                                                                  \
    X(B, "b", 13)                                                                                  \
    X(C, "c", 13)                                                                                  \
    X(D, "d", 13)                                                                                  \
    X(SHARED_CLUSTER, "shared::cluster", 4)                                                        \
    X(WAIT, "wait", 11)                                                                            \
    X(INIT, "init", 11)                                                                            \
    X(INVAL, "inval", 11)                                                                          \
    X(ARRIVE_DROP, "arrive_drop", 11)                                                              \
    X(COMPLETE_TX, "complete_tx", 11)                                                              \
    X(TEST_WAIT, "test_wait", 11)                                                                  \
    X(TRY_WAIT, "try_wait", 11)                                                                    \
    X(PENDING_COUNT, "pending_count", 11)                                                          \
    X(EXPECT_TX, "expect_tx", 0)                                                                   \
    X(NO_COMPLETE, "noComplete", 0)                                                                \
    X(PARITY, "parity", 0)                                                                         \
    X(MBARRIER, "mbarrier", 0)                                                                     \
    X(NOINC, "noinc", 0)                                                                           \
    X(BULK, "bulk", 0)                                                                             \
    X(REDUCE, "reduce", 0)                                                                         \
    X(PREFETCH, "prefetch", 0)                                                                     \
    X(COMPLETE_BYTES, "mbarrier::complete_tx::bytes", 18)                                          \
    X(BULK_GROUP, "bulk_group", 18)                                                                \
    X(MULTICAST, "multicast::cluster", 0)                                                          \
    X(READ, "read", 0)                                                                             \
    X(LAUNCH_DEPENDENTS, "launch_dependents", 11)                                                  \
    X(GEOM_1D, "1d", 21)                                                                           \
    X(GEOM_2D, "2d", 21)                                                                           \
    X(GEOM_3D, "3d", 21)                                                                           \
    X(GEOM_A1D, "a1d", 21)                                                                         \
    X(GEOM_A2D, "a2d", 21)                                                                         \
    X(GEOM_CUBE, "cube", 21)                                                                       \
    X(GEOM_ACUBE, "acube", 21)                                                                     \
    X(BASE, "base", 22)                                                                            \
    X(LEVEL, "level", 22)                                                                          \
    X(GRAD, "grad", 22)                                                                            \
    X(G, "g", 13)                                                                                  \
    X(P, "p", 13)                                                                                  \
    X(TRAP, "trap", 14)                                                                            \
    X(ZERO, "zero", 14)                                                                            \
    X(WIDTH, "width", 23)                                                                          \
    X(HEIGHT, "height", 23)                                                                        \
    X(DEPTH, "depth", 23)                                                                          \
    X(CHANNEL_DATA_TYPE, "channel_data_type", 23)                                                  \
    X(CHANNEL_ORDER, "channel_order", 23)                                                          \
    X(NORMALIZED_COORDS, "normalized_coords", 23)                                                  \
    X(ARRAY_SIZE, "array_size", 23)                                                                \
    X(NUM_MIPMAP_LEVELS, "num_mipmap_levels", 23)                                                  \
    X(GEOM_4D, "4d", 21)                                                                           \
    X(GEOM_5D, "5d", 21)                                                                           \
    X(TENSOR, "tensor", 0)                                                                         \
    X(TILE, "tile", 24)                                                                            \
    X(IM2COL, "im2col", 24)                                                                        \
    X(IM2COL_NO_OFFS, "im2col_no_offs", 24)                                                        \
    X(REPLACE, "replace", 16)                                                                      \
    X(CP_FENCEPROXY, "cp_fenceproxy", 16)                                                          \
    X(B1024, "b1024", 0)                                                                           \
    X(GLOBAL_ADDRESS, "global_address", 25)                                                        \
    X(RANK, "rank", 25)                                                                            \
    X(BOX_DIM, "box_dim", 25)                                                                      \
    X(GLOBAL_DIM, "global_dim", 25)                                                                \
    X(GLOBAL_STRIDE, "global_stride", 25)                                                          \
    X(ELEMENT_STRIDE, "element_stride", 25)                                                        \
    X(ELEMTYPE, "elemtype", 25)                                                                    \
    X(INTERLEAVE_LAYOUT, "interleave_layout", 25)                                                  \
    X(SWIZZLE_MODE, "swizzle_mode", 25)                                                            \
    X(FILL_MODE, "fill_mode", 25)

/* Other spellings of modifiers above. X(name, id) */
#define BH__PTX_MOD_ALIASES(X)                                                                     \
    X("shared::cta", SHARED)                                                                       \
    X("param::entry", PARAM)                                                                       \
    X("param::func", PARAM)                                                                        \
    X("L1::evict_normal", HINT)                                                                    \
    X("L1::evict_unchanged", HINT)                                                                 \
    X("L1::evict_first", HINT)                                                                     \
    X("L1::evict_last", HINT)                                                                      \
    X("L1::no_allocate", HINT)                                                                     \
    X("L2::evict_first", HINT)                                                                     \
    X("L2::evict_unchanged", HINT)                                                                 \
    X("L2::evict_last", HINT)                                                                      \
    X("L2::64B", HINT)                                                                             \
    X("L2::128B", HINT)                                                                            \
    X("L2::256B", HINT)                                                                            \
    X("alias", PROXY)                                                                              \
    X("mbarrier_init", PROXY)                                                                      \
    X("tensormap::generic", PROXY)                                                                 \
    X("async::generic", PROXY)                                                                     \
    X("sync_restrict::shared::cta", PROXY)                                                         \
    X("sync_restrict::shared::cluster", PROXY)

/* Sets of modifiers, for the table below. */
#define S_NONE   0
#define S_ROUND  (M(RN) | M(RZ) | M(RM) | M(RP))
#define S_ROUNDI (M(RNI) | M(RZI) | M(RMI) | M(RPI))
#define S_LOHI   (M(LO) | M(HI))
#define S_CMPI   (M(EQ) | M(NE) | M(LT) | M(LE) | M(GT) | M(GE) | M(LO) | M(LS) | M(HI) | M(HS))
#define S_CMPF                                                                                     \
    (M(EQ) | M(NE) | M(LT) | M(LE) | M(GT) | M(GE) | M(EQU) | M(NEU) | M(LTU) | M(LEU) | M(GTU) |  \
     M(GEU) | M(NUM) | M(ISNAN))
#define S_BOOL    (M(AND) | M(OR) | M(XOR))
#define S_SPACE   (M(GLOBAL) | M(SHARED) | M(LOCAL) | M(PARAM) | M(CONST))
#define S_VEC     (M(V2) | M(V4) | M(V8))
#define S_SCOPE   (M(CTA) | M(CLUSTER) | M(GPU) | M(SYS))
#define S_SEM     (M(WEAK) | M(VOLATILE) | M(RELAXED) | M(MMIO))
#define S_LDCACHE (M(CA) | M(CG) | M(CS) | M(LU) | M(CV) | M(NC) | M(HINT) | M(POLICY))
#define S_STCACHE (M(WB) | M(CG) | M(CS) | M(WT) | M(HINT) | M(POLICY))
#define S_ATOMOP                                                                                   \
    (M(AND) | M(OR) | M(XOR) | M(ADD) | M(INC) | M(DEC) | M(MIN) | M(MAX) | M(CAS) | M(EXCH))
#define S_ATOM                                                                                     \
    (M(GLOBAL) | M(SHARED) | M(RELAXED) | M(ACQUIRE) | M(RELEASE) | M(ACQ_REL) | S_SCOPE |         \
     M(NOFTZ) | M(POLICY) | S_ATOMOP)
#define S_MULTI                                                                                    \
    (M(GLOBAL) | M(WEAK) | M(RELAXED) | S_SCOPE | S_VEC | S_BOOL | M(ADD) | M(MIN) | M(MAX))
#define S_VIDEO    (M(SAT) | M(ADD) | M(MIN) | M(MAX))
#define S_HALF     (M(RN) | M(FTZ) | M(SAT) | M(RELU))
#define S_PRMT     (M(F4E) | M(B4E) | M(RC8) | M(ECL) | M(ECR) | M(RC16))
#define S_BITMMA   (M(XOR) | M(AND) | M(POPC))
#define S_TESTP    (M(FINITE) | M(INFINITE) | M(NUMBER) | M(NOTANUMBER) | M(NORMAL) | M(SUBNORMAL))
#define S2_SURFACE (M2(GEOM_1D) | M2(GEOM_2D) | M2(GEOM_3D) | M2(GEOM_A1D) | M2(GEOM_A2D))
#define S2_QUERY                                                                                   \
    (M2(WIDTH) | M2(HEIGHT) | M2(DEPTH) | M2(CHANNEL_DATA_TYPE) | M2(CHANNEL_ORDER) |              \
     M2(ARRAY_SIZE))

#define S2_TENSOR                                                                                  \
    (M2(TENSOR) | M2(GEOM_1D) | M2(GEOM_2D) | M2(GEOM_3D) | M2(GEOM_4D) | M2(GEOM_5D) | M2(TILE) | \
     M2(IM2COL) | M2(IM2COL_NO_OFFS))
#define S2_FIELD                                                                                   \
    (M2(GLOBAL_ADDRESS) | M2(RANK) | M2(BOX_DIM) | M2(GLOBAL_DIM) | M2(GLOBAL_STRIDE) |            \
     M2(ELEMENT_STRIDE) | M2(ELEMTYPE) | M2(INTERLEAVE_LAYOUT) | M2(SWIZZLE_MODE) | M2(FILL_MODE))

/* Sets of types. */
#define G_INT16  (T(U16) | T(S16))
#define G_INT32  (T(U32) | T(S32))
#define G_INT64  (T(U64) | T(S64))
#define G_INT    (G_INT16 | G_INT32 | G_INT64)
#define G_SINT   (T(S16) | T(S32) | T(S64))
#define G_BITS   (T(B16) | T(B32) | T(B64))
#define G_PACKED (T(U16X2) | T(S16X2))
#define G_FLOAT  (T(F32) | T(F64))
#define G_HALF   (T(F16) | T(BF16) | T(F16X2) | T(BF16X2))
#define G_MEM    (T(B8) | T(U8) | T(S8) | G_BITS | T(B128) | G_INT | G_FLOAT)
#define G_REDUCE (T(B32) | T(B64) | G_INT32 | G_INT64)
#define G_FP8    (T(E4M3X2) | T(E5M2X2))
#define G_PACKS  (G_INT16 | T(U8) | T(S8) | T(U4) | T(S4) | T(U2) | T(S2))
#define G_MULTI                                                                                    \
    (T(B32) | T(B64) | G_INT32 | G_INT64 | G_FLOAT | T(F16) | T(BF16) | T(F16X2) | T(BF16X2))
#define G_CVT (T(U8) | T(S8) | G_INT | T(F16) | T(BF16) | G_FLOAT)

/*
 * X(id, mnemonic, operands, first type, second type, modifiers, unit)
 *
 * One mnemonic may have several rows that differ in their types. Operands, destinations first
 * and marked '=':
 *   t  of the first type          y  of the second type        w  twice as wide with .wide, else t
 *   u  32-bit integer             q  64-bit integer            i  integer constant
 *   p  predicate                  P  predicate or p|q          r  as t, register may be wider
 *   R  as y, register may be wider                             v  as r, or a vector with .vN
 *   D  as t, may be d|p           E  as u, may be d|p          m  address in brackets
 *   V  as t, or a vector with .vN
 *   a  32- or 64-bit integer      *  the unit checks the rest by itself
 *   c  as t, with .cas only       k  cache policy, a 64-bit integer, with .L2::cache_hint only
 * A '?' after a letter: may be left out.
 */
#define BH__PTX_OPS(X)                                                                             \
    X(ADD, "add", "=t t t", G_INT | G_PACKED, 0, M(SAT) | M(CC), INT)                              \
    X(ADDC, "addc", "=t t t", G_INT32 | G_INT64, 0, M(CC), INT)                                    \
    X(SUB, "sub", "=t t t", G_INT | G_PACKED, 0, M(SAT) | M(CC), INT)                              \
    X(SUBC, "subc", "=t t t", G_INT32 | G_INT64, 0, M(CC), INT)                                    \
    X(MUL, "mul", "=w t t", G_INT, 0, S_LOHI | M(WIDE), INT)                                       \
    X(MAD, "mad", "=w t t w", G_INT, 0, S_LOHI | M(WIDE) | M(SAT) | M(CC), INT)                    \
    X(MADC, "madc", "=t t t t", G_INT32 | G_INT64, 0, S_LOHI | M(CC), INT)                         \
    X(MUL24, "mul24", "=t t t", G_INT32, 0, S_LOHI, INT)                                           \
    X(MAD24, "mad24", "=t t t t", G_INT32, 0, S_LOHI | M(SAT), INT)                                \
    X(SAD, "sad", "=t t t t", G_INT, 0, S_NONE, INT)                                               \
    X(DIV, "div", "=t t t", G_INT, 0, S_NONE, INT)                                                 \
    X(REM, "rem", "=t t t", G_INT, 0, S_NONE, INT)                                                 \
    X(ABS, "abs", "=t t", G_SINT, 0, S_NONE, INT)                                                  \
    X(NEG, "neg", "=t t", G_SINT, 0, S_NONE, INT)                                                  \
    X(MIN, "min", "=t t t", G_INT | G_PACKED, 0, M(RELU), INT)                                     \
    X(MAX, "max", "=t t t", G_INT | G_PACKED, 0, M(RELU), INT)                                     \
    X(POPC, "popc", "=u t", T(B32) | T(B64), 0, S_NONE, BITS)                                      \
    X(CLZ, "clz", "=u t", T(B32) | T(B64), 0, S_NONE, BITS)                                        \
    X(BREV, "brev", "=t t", T(B32) | T(B64), 0, S_NONE, BITS)                                      \
    X(BFIND, "bfind", "=u t", G_INT32 | G_INT64, 0, M(SHIFTAMT), BITS)                             \
    X(FNS, "fns", "=t t t t", T(B32), 0, S_NONE, BITS)                                             \
    X(BFE, "bfe", "=t t u u", G_INT32 | G_INT64, 0, S_NONE, BITS)                                  \
    X(BFI, "bfi", "=t t t u u", T(B32) | T(B64), 0, S_NONE, BITS)                                  \
    X(BMSK, "bmsk", "=u u u", T(B32), 0, M(CLAMP) | M(WRAP), BITS)                                 \
    X(SZEXT, "szext", "=t t u", G_INT32, 0, M(CLAMP) | M(WRAP), BITS)                              \
    X(DP4A, "dp4a", "=u u u u", G_INT32, G_INT32, S_NONE, BITS)                                    \
    X(DP2A, "dp2a", "=u u u u", G_INT32, G_INT32, S_LOHI, BITS)                                    \
    X(AND, "and", "=t t t", T(PRED) | G_BITS, 0, S_NONE, BITS)                                     \
    X(OR, "or", "=t t t", T(PRED) | G_BITS, 0, S_NONE, BITS)                                       \
    X(XOR, "xor", "=t t t", T(PRED) | G_BITS, 0, S_NONE, BITS)                                     \
    X(NOT, "not", "=t t", T(PRED) | G_BITS, 0, S_NONE, BITS)                                       \
    X(CNOT, "cnot", "=t t", G_BITS, 0, S_NONE, BITS)                                               \
    X(SHL, "shl", "=t t u", G_BITS, 0, S_NONE, BITS)                                               \
    X(SHR, "shr", "=t t u", G_BITS | G_INT, 0, S_NONE, BITS)                                       \
    X(SHF, "shf", "=t t t u", T(B32), 0, M(L) | M(R) | M(WRAP) | M(CLAMP), BITS)                   \
    X(LOP3, "lop3", "=D t t t i p?", T(B32), 0, M(AND) | M(OR), BITS)                              \
    X(PRMT, "prmt", "=t t t t", T(B32), 0, S_PRMT, BITS)                                           \
    X(VADD, "vadd", "=u u u u?", G_INT32, G_INT32, S_VIDEO, VIDEO)                                 \
    X(VSUB, "vsub", "=u u u u?", G_INT32, G_INT32, S_VIDEO, VIDEO)                                 \
    X(VABSDIFF, "vabsdiff", "=u u u u?", G_INT32, G_INT32, S_VIDEO, VIDEO)                         \
    X(VMIN, "vmin", "=u u u u?", G_INT32, G_INT32, S_VIDEO, VIDEO)                                 \
    X(VMAX, "vmax", "=u u u u?", G_INT32, G_INT32, S_VIDEO, VIDEO)                                 \
    X(VSHL, "vshl", "=u u u u?", G_INT32, G_INT32, S_VIDEO | M(CLAMP) | M(WRAP), VIDEO)            \
    X(VSHR, "vshr", "=u u u u?", G_INT32, G_INT32, S_VIDEO | M(CLAMP) | M(WRAP), VIDEO)            \
    X(VMAD, "vmad", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(PO) | M(SHR7) | M(SHR15), VIDEO)     \
    X(VSET, "vset", "=u u u u?", G_INT32, G_INT32, S_CMPI | M(ADD) | M(MIN) | M(MAX), VIDEO)       \
    X(VADD2, "vadd2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VSUB2, "vsub2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VAVRG2, "vavrg2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                     \
    X(VABSDIFF2, "vabsdiff2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)               \
    X(VMIN2, "vmin2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VMAX2, "vmax2", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VSET2, "vset2", "=u u u u?", G_INT32, G_INT32, S_CMPI | M(ADD), VIDEO)                       \
    X(VADD4, "vadd4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VSUB4, "vsub4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VAVRG4, "vavrg4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                     \
    X(VABSDIFF4, "vabsdiff4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)               \
    X(VMIN4, "vmin4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VMAX4, "vmax4", "=u u u u?", G_INT32, G_INT32, M(SAT) | M(ADD), VIDEO)                       \
    X(VSET4, "vset4", "=u u u u?", G_INT32, G_INT32, S_CMPI | M(ADD), VIDEO)                       \
    X(ADDF, "add", "=t t t", G_FLOAT, 0, S_ROUND | M(FTZ) | M(SAT), FLOAT)                         \
    X(SUBF, "sub", "=t t t", G_FLOAT, 0, S_ROUND | M(FTZ) | M(SAT), FLOAT)                         \
    X(MULF, "mul", "=t t t", G_FLOAT, 0, S_ROUND | M(FTZ) | M(SAT), FLOAT)                         \
    X(FMAF, "fma", "=t t t t", G_FLOAT, 0, S_ROUND | M(FTZ) | M(SAT), FLOAT)                       \
    X(MADF, "mad", "=t t t t", G_FLOAT, 0, S_ROUND | M(FTZ) | M(SAT), FLOAT)                       \
    X(DIVF, "div", "=t t t", G_FLOAT, 0, S_ROUND | M(APPROX) | M(FULL) | M(FTZ), FLOAT)            \
    X(RCP, "rcp", "=t t", G_FLOAT, 0, S_ROUND | M(APPROX) | M(FTZ), FLOAT)                         \
    X(SQRT, "sqrt", "=t t", G_FLOAT, 0, S_ROUND | M(APPROX) | M(FTZ), FLOAT)                       \
    X(RSQRT, "rsqrt", "=t t", G_FLOAT, 0, M(APPROX) | M(FTZ), MATH)                                \
    X(SIN, "sin", "=t t", T(F32), 0, M(APPROX) | M(FTZ), MATH)                                     \
    X(COS, "cos", "=t t", T(F32), 0, M(APPROX) | M(FTZ), MATH)                                     \
    X(LG2, "lg2", "=t t", T(F32), 0, M(APPROX) | M(FTZ), MATH)                                     \
    X(EX2, "ex2", "=t t", T(F32), 0, M(APPROX) | M(FTZ), MATH)                                     \
    X(TANH, "tanh", "=t t", T(F32), 0, M(APPROX), MATH)                                            \
    X(ABSF, "abs", "=t t", G_FLOAT, 0, M(FTZ), MATH)                                               \
    X(NEGF, "neg", "=t t", G_FLOAT, 0, M(FTZ), MATH)                                               \
    X(MINF, "min", "=t t t", G_FLOAT, 0, M(FTZ) | M(NAN) | M(XORSIGN) | M(ABS), MATH)              \
    X(MAXF, "max", "=t t t", G_FLOAT, 0, M(FTZ) | M(NAN) | M(XORSIGN) | M(ABS), MATH)              \
    X(COPYSIGN, "copysign", "=t t t", G_FLOAT, 0, S_NONE, MATH)                                    \
    X(TESTP, "testp", "=p t", G_FLOAT, 0, S_TESTP, MATH)                                           \
    X(ADDH, "add", "=t t t", G_HALF, 0, S_HALF, HALF)                                              \
    X(SUBH, "sub", "=t t t", G_HALF, 0, S_HALF, HALF)                                              \
    X(MULH, "mul", "=t t t", G_HALF, 0, S_HALF, HALF)                                              \
    X(FMAH, "fma", "=t t t t", G_HALF, 0, S_HALF, HALF)                                            \
    X(ABSH, "abs", "=t t", G_HALF, 0, M(FTZ), HALF)                                                \
    X(NEGH, "neg", "=t t", G_HALF, 0, M(FTZ), HALF)                                                \
    X(MINH, "min", "=t t t", G_HALF, 0, M(FTZ) | M(NAN) | M(XORSIGN) | M(ABS), HALF)               \
    X(MAXH, "max", "=t t t", G_HALF, 0, M(FTZ) | M(NAN) | M(XORSIGN) | M(ABS), HALF)               \
    X(EX2H, "ex2", "=t t", G_HALF, 0, M(APPROX) | M(FTZ), HALF)                                    \
    X(TANHH, "tanh", "=t t", G_HALF, 0, M(APPROX), HALF)                                           \
    X(SETP, "setp", "=P t t p?", G_BITS | G_INT, 0, S_CMPI | S_BOOL, CMP)                          \
    X(SETPF, "setp", "=P t t p?", G_FLOAT | G_HALF, 0, S_CMPF | S_BOOL | M(FTZ), CMP)              \
    X(SET, "set", "=t y y p?", G_INT32 | T(F32), G_BITS | G_INT, S_CMPI | S_BOOL, CMP)             \
    X(SETF, "set", "=t y y p?", G_INT32 | T(F32), G_FLOAT, S_CMPF | S_BOOL | M(FTZ), CMP)          \
    X(SETH, "set", "=t y y p?",                                                                    \
      T(U16) | T(S16) | G_INT32 | T(F16) | T(BF16) | T(F16X2) | T(BF16X2), G_HALF,                 \
      S_CMPF | S_BOOL | M(FTZ), CMP)                                                               \
    X(SELP, "selp", "=t t t p", G_BITS | G_INT | G_FLOAT, 0, S_NONE, CMP)                          \
    X(SLCT, "slct", "=t t t y", G_BITS | G_INT | G_FLOAT, T(S32) | T(F32), M(FTZ), CMP)            \
    X(CVT, "cvt", "=r R", G_CVT, G_CVT,                                                            \
      S_ROUND | S_ROUNDI | M(FTZ) | M(SAT) | M(RELU) | M(SATFINITE), CVT)                          \
    X(CVT2, "cvt", "=t y y", T(F16X2) | T(BF16X2), T(F32), M(RN) | M(RZ) | M(RELU) | M(SATFINITE), \
      CVT)                                                                                         \
    X(CVTF8, "cvt", "=t y y", G_FP8, T(F32), M(RN) | M(SATFINITE) | M(RELU), CVT)                  \
    X(CVTH8, "cvt", "=t y", G_FP8, T(F16X2), M(RN) | M(SATFINITE) | M(RELU), CVT)                  \
    X(CVT8H, "cvt", "=t y", T(F16X2), G_FP8, M(RN) | M(RELU), CVT)                                 \
    X(CVTTF, "cvt", "=u y", T(TF32), T(F32), M(RNA) | M(RN) | M(RZ) | M(RELU) | M(SATFINITE), CVT) \
    X(CVTPACK, "cvt", "=u y y u?", G_PACKS, T(S32), M(PACK) | M(SAT), CVT)                         \
    X(MOV, "mov", "*", T(PRED) | G_BITS | T(B128) | G_INT | G_FLOAT, 0, S_VEC, MOVE)               \
    X(CVTA, "cvta", "*", T(U32) | T(U64), 0, S_SPACE | M(TO), MOVE)                                \
    X(ISSPACEP, "isspacep", "=p a", 0, 0, S_SPACE, MOVE)                                           \
    X(LD, "ld", "=v m q?", G_MEM, 0, S_SPACE | S_VEC | S_SEM | M(ACQUIRE) | S_SCOPE | S_LDCACHE,   \
      MEM)                                                                                         \
    X(LDU, "ldu", "=v m", G_MEM, 0, M(GLOBAL) | S_VEC, MEM)                                        \
    X(ST, "st", "m v q?", G_MEM, 0, S_SPACE | S_VEC | S_SEM | M(RELEASE) | S_SCOPE | S_STCACHE,    \
      MEM)                                                                                         \
    X(PREFETCH, "prefetch", "m", 0, 0,                                                             \
      M(GLOBAL) | M(LOCAL) | M(CONST) | M(PARAM) | M(L1) | M(L2) | M(HINT), MEM)                   \
    X(PREFETCHU, "prefetchu", "m", 0, 0, M(L1), MEM)                                               \
    X(CP, "cp", "*", 0, 0, M(ASYNC) | M(CA) | M(CG) | M(SHARED) | M(GLOBAL) | M(HINT) | M(POLICY), \
      ASYNC)                                                                                       \
    X(CPARRIVE, "cp", "*", T(B64), 0, M(ASYNC) | M(SHARED) | M(ARRIVE), ASYNC)                     \
    X(CPBULK, "cp", "*", 0, 0, M(ASYNC) | M(SHARED) | M(GLOBAL) | M(L2) | M(HINT) | M(POLICY),     \
      ASYNC)                                                                                       \
    X(CPREDUCE, "cp", "*", G_REDUCE | T(F16) | T(BF16) | G_FLOAT, 0,                               \
      M(ASYNC) | M(SHARED) | M(GLOBAL) | M(POLICY) | M(NOFTZ) | S_ATOMOP, ASYNC)                   \
    X(CPTENSOR, "cp", "*", 0, 0,                                                                   \
      M(ASYNC) | M(SHARED) | M(GLOBAL) | M(L2) | M(HINT) | M(POLICY) | S_ATOMOP, ASYNC)            \
    X(TENSORMAP, "tensormap", "*", T(B32) | T(B64), 0, M(GLOBAL) | M(SHARED), ASYNC)               \
    X(TENSORCOPY, "tensormap", "*", 0, 0,                                                          \
      M(GLOBAL) | M(SHARED) | M(PROXY) | M(RELEASE) | S_SCOPE | M(SYNC) | M(ALIGNED), ASYNC)       \
    X(STASYNC, "st", "*", G_REDUCE | G_FLOAT, 0, M(ASYNC) | M(WEAK) | S_VEC, ASYNC)                \
    X(MBARRIER, "mbarrier", "*", T(B64), 0,                                                        \
      M(SHARED) | M(ARRIVE) | M(RELAXED) | M(ACQUIRE) | M(RELEASE) | M(CTA) | M(CLUSTER),          \
      MBARRIER)                                                                                    \
    X(MAPA, "mapa", "=t t u", T(U32) | T(U64), 0, S_NONE, CLUSTER)                                 \
    X(GETCTARANK, "getctarank", "=u t", T(U32) | T(U64), 0, S_NONE, CLUSTER)                       \
    X(ATOM, "atom", "=V m V c k",                                                                  \
      G_BITS | T(B128) | G_INT32 | G_INT64 | G_FLOAT | T(F16) | T(BF16) | T(F16X2) | T(BF16X2), 0, \
      S_ATOM | S_VEC, ATOM)                                                                        \
    X(RED, "red", "m V k",                                                                         \
      T(B32) | T(B64) | G_INT32 | G_INT64 | G_FLOAT | T(F16) | T(BF16) | T(F16X2) | T(BF16X2), 0,  \
      S_ATOM | S_VEC, ATOM)                                                                        \
    X(REDASYNC, "red", "*", G_REDUCE, 0, M(ASYNC) | M(RELAXED) | M(CLUSTER) | S_ATOMOP, ASYNC)     \
    X(TEX, "tex", "*", T(U32) | T(S32) | T(F32) | T(F16) | T(F16X2), T(S32) | T(F32),              \
      M(V2) | M(V4), TEXTURE)                                                                      \
    X(TLD4, "tld4", "*", T(U32) | T(S32) | T(F32), T(F32), M(V4) | M(R), TEXTURE)                  \
    X(TXQ, "txq", "*", T(B32), 0, S_NONE, TEXTURE)                                                 \
    X(SUQ, "suq", "*", T(B32), 0, S_NONE, TEXTURE)                                                 \
    X(SULD, "suld", "*", T(B8) | G_BITS, 0,                                                        \
      M(V2) | M(V4) | M(CA) | M(CG) | M(CS) | M(CV) | M(CLAMP), TEXTURE)                           \
    X(SUST, "sust", "*", T(B8) | G_BITS, 0,                                                        \
      M(V2) | M(V4) | M(WB) | M(CG) | M(CS) | M(WT) | M(CLAMP), TEXTURE)                           \
    X(SURED, "sured", "*", G_INT32 | G_INT64 | T(B32) | T(B64), 0,                                 \
      M(ADD) | M(MIN) | M(MAX) | M(AND) | M(OR) | M(CLAMP), TEXTURE)                               \
    X(MEMBAR, "membar", "", 0, 0, M(CTA) | M(GL) | M(SYS) | M(PROXY), MEM)                         \
    X(FENCE, "fence", "*", 0, 0,                                                                   \
      M(SC) | M(ACQ_REL) | M(ACQUIRE) | M(RELEASE) | S_SCOPE | M(PROXY) | M(ASYNC) | M(GLOBAL) |   \
          M(SHARED),                                                                               \
      MEM)                                                                                         \
    X(VOTE, "vote", "=t p u?", T(PRED) | T(B32), 0,                                                \
      M(ALL) | M(ANY) | M(UNI) | M(BALLOT) | M(SYNC), WARP)                                        \
    X(SHFL, "shfl", "=D t t t u?", T(B32), 0, M(UP) | M(DOWN) | M(BFLY) | M(IDX) | M(SYNC), WARP)  \
    X(MATCH, "match", "=E t u", T(B32) | T(B64), 0, M(ANY) | M(ALL) | M(SYNC), WARP)               \
    X(REDUX, "redux", "=u u u", G_INT32 | T(B32), 0, M(SYNC) | M(ADD) | M(MIN) | M(MAX) | S_BOOL,  \
      WARP)                                                                                        \
    X(ELECT, "elect", "=E u", 0, 0, M(SYNC), WARP)                                                 \
    X(ACTIVEMASK, "activemask", "=t", T(B32), 0, S_NONE, WARP)                                     \
    X(MMA, "mma", "*", 0, 0, M(SYNC) | M(ALIGNED) | S_ROUND | M(SATFINITE) | S_BITMMA, MATRIX)     \
    X(WMMA, "wmma", "*", 0, 0,                                                                     \
      M(SYNC) | M(ALIGNED) | S_ROUND | M(SATFINITE) | S_BITMMA | M(GLOBAL) | M(SHARED), MATRIX)    \
    X(WGMMA, "wgmma", "*", 0, 0, M(SYNC) | M(ALIGNED) | M(SATFINITE) | S_BITMMA, MATRIX)           \
    X(LDMATRIX, "ldmatrix", "*", 0, 0, M(SYNC) | M(ALIGNED) | M(SHARED), MATRIX)                   \
    X(STMATRIX, "stmatrix", "*", 0, 0, M(SYNC) | M(ALIGNED) | M(SHARED), MATRIX)                   \
    X(MOVMATRIX, "movmatrix", "*", 0, 0, M(SYNC) | M(ALIGNED), MATRIX)                             \
    X(BAR, "bar", "*", T(U32) | T(PRED), 0,                                                        \
      M(SYNC) | M(ARRIVE) | M(RED) | M(WARP) | M(CTA) | M(POPC) | M(AND) | M(OR), CONTROL)         \
    X(BARRIER, "barrier", "*", T(U32) | T(PRED), 0,                                                \
      M(SYNC) | M(ARRIVE) | M(RED) | M(ALIGNED) | M(CTA) | M(POPC) | M(AND) | M(OR) | M(CLUSTER) | \
          M(RELEASE) | M(RELAXED) | M(ACQUIRE),                                                    \
      CONTROL)                                                                                     \
    X(GRIDDEP, "griddepcontrol", "", 0, 0, S_NONE, CONTROL)                                        \
    X(BRA, "bra", "*", 0, 0, M(UNI), CONTROL)                                                      \
    X(BRX, "brx", "*", 0, 0, M(IDX) | M(UNI), CONTROL)                                             \
    X(CALL, "call", "*", 0, 0, M(UNI), CONTROL)                                                    \
    X(RET, "ret", "", 0, 0, M(UNI), CONTROL)                                                       \
    X(EXIT, "exit", "", 0, 0, S_NONE, CONTROL)                                                     \
    X(TRAP, "trap", "", 0, 0, S_NONE, CONTROL)                                                     \
    X(BRKPT, "brkpt", "", 0, 0, S_NONE, CONTROL)                                                   \
    X(NANOSLEEP, "nanosleep", "t", T(U32), 0, S_NONE, CONTROL)                                     \
    X(STACKSAVE, "stacksave", "=t", T(U32) | T(U64), 0, S_NONE, STACK)                             \
    X(STACKRESTORE, "stackrestore", "t", T(U32) | T(U64), 0, S_NONE, STACK)                        \
    X(ALLOCA, "alloca", "=t t i?", T(U32) | T(U64), 0, S_NONE, STACK)                              \
    X(CREATEPOLICY, "createpolicy", "*", T(B64), 0, M(HINT) | M(GLOBAL) | M(L2), HINT)             \
    X(APPLYPRIORITY, "applypriority", "m i", 0, 0, M(GLOBAL) | M(HINT), HINT)                      \
    X(DISCARD, "discard", "m i", 0, 0, M(GLOBAL) | M(L2), HINT)                                    \
    X(SETMAXNREG, "setmaxnreg", "i", T(U32), 0, M(INC) | M(DEC) | M(SYNC) | M(ALIGNED), HINT)      \
    X(PMEVENT, "pmevent", "i", 0, 0, S_NONE, HINT)                                                 \
    X(MULTILOAD, "multimem", "=V m", G_MULTI, 0, S_MULTI | M(ACQUIRE), MULTIMEM)                   \
    X(MULTISTORE, "multimem", "m V", G_MULTI, 0, S_MULTI | M(RELEASE), MULTIMEM)                   \
    X(MULTIRED, "multimem", "m V", G_MULTI, 0, S_MULTI | M(RED) | M(RELEASE), MULTIMEM)

/* X(id, modifiers): what an operation may have of the second list of modifiers. */
#define S_CPGROUP (M2(COMMIT_GROUP) | M2(WAIT_GROUP))
#define BH__PTX_OPS_MORE(X)                                                                        \
    X(PREFETCH, M2(TENSORMAP))                                                                     \
    X(CREATEPOLICY, M2(FRACTIONAL) | M2(RANGE) | M2(CONVERT))                                      \
    X(PMEVENT, M2(MASK))                                                                           \
    X(MULTILOAD, M2(LD_REDUCE) | M2(ACC_F32))                                                      \
    X(MULTISTORE, M2(MULTI_STORE))                                                                 \
    X(MMA, M2(SPARSE) | M2(ORDERED))                                                               \
    X(WMMA, M2(LOAD) | M2(STORE) | M2(MULTIPLY) | M2(A) | M2(B) | M2(C) | M2(D))                   \
    X(WGMMA, M2(SPARSE) | M2(FENCE) | M2(COMMIT_GROUP) | M2(WAIT_GROUP) | M2(MMA_ASYNC))           \
    X(LDMATRIX, M2(X1) | M2(X2) | M2(X4) | M2(TRANS))                                              \
    X(STMATRIX, M2(X1) | M2(X2) | M2(X4) | M2(TRANS))                                              \
    X(MOVMATRIX, M2(TRANS))                                                                        \
    X(CP, S_CPGROUP | M2(WAIT_ALL))                                                                \
    X(CPARRIVE, M2(MBARRIER) | M2(NOINC))                                                          \
    X(CPBULK, S_CPGROUP | M2(BULK) | M2(SHARED_CLUSTER) | M2(COMPLETE_BYTES) | M2(BULK_GROUP) |    \
                  M2(MULTICAST) | M2(READ) | M2(PREFETCH))                                         \
    X(CPREDUCE, M2(REDUCE) | M2(BULK) | M2(SHARED_CLUSTER) | M2(COMPLETE_BYTES) | M2(BULK_GROUP))  \
    X(CPTENSOR, S2_TENSOR | M2(BULK) | M2(SHARED_CLUSTER) | M2(COMPLETE_BYTES) | M2(BULK_GROUP) |  \
                    M2(MULTICAST) | M2(PREFETCH) | M2(REDUCE))                                     \
    X(TENSORMAP, M2(REPLACE) | M2(TILE) | M2(B1024) | S2_FIELD)                                    \
    X(TENSORCOPY, M2(CP_FENCEPROXY))                                                               \
    X(STASYNC, M2(SHARED_CLUSTER) | M2(COMPLETE_BYTES))                                            \
    X(REDASYNC, M2(SHARED_CLUSTER) | M2(COMPLETE_BYTES))                                           \
    X(MBARRIER, M2(SHARED_CLUSTER) | M2(INIT) | M2(INVAL) | M2(ARRIVE_DROP) | M2(COMPLETE_TX) |    \
                    M2(TEST_WAIT) | M2(TRY_WAIT) | M2(PENDING_COUNT) | M2(EXPECT_TX) |             \
                    M2(NO_COMPLETE) | M2(PARITY))                                                  \
    X(MAPA, M2(SHARED_CLUSTER))                                                                    \
    X(GETCTARANK, M2(SHARED_CLUSTER))                                                              \
    X(CVTA, M2(SHARED_CLUSTER))                                                                    \
    X(ISSPACEP, M2(SHARED_CLUSTER))                                                                \
    X(LD, M2(SHARED_CLUSTER))                                                                      \
    X(ST, M2(SHARED_CLUSTER))                                                                      \
    X(ATOM, M2(SHARED_CLUSTER))                                                                    \
    X(RED, M2(SHARED_CLUSTER))                                                                     \
    X(FENCE, M2(SHARED_CLUSTER))                                                                   \
    X(BARRIER, M2(WAIT))                                                                           \
    X(GRIDDEP, M2(LAUNCH_DEPENDENTS) | M2(WAIT))                                                   \
    X(TEX, S2_SURFACE | M2(GEOM_CUBE) | M2(GEOM_ACUBE) | M2(BASE) | M2(LEVEL) | M2(GRAD))          \
    X(TLD4, M2(GEOM_2D) | M2(GEOM_A2D) | M2(GEOM_CUBE) | M2(GEOM_ACUBE) | M2(G) | M2(B) | M2(A))   \
    X(TXQ, S2_QUERY | M2(LEVEL) | M2(NORMALIZED_COORDS) | M2(NUM_MIPMAP_LEVELS))                   \
    X(SUQ, S2_QUERY)                                                                               \
    X(SULD, S2_SURFACE | M2(B) | M2(TRAP) | M2(ZERO))                                              \
    X(SUST, S2_SURFACE | M2(B) | M2(P) | M2(TRAP) | M2(ZERO))                                      \
    X(SURED, M2(GEOM_1D) | M2(GEOM_2D) | M2(GEOM_3D) | M2(B) | M2(P) | M2(TRAP) | M2(ZERO))

/* X(mnemonic): PTX instructions that are not supported. Unknown names give another error. */
#define BH__PTX_REFUSED(X) X("istypep")

/* X(word): what only GPUs after sm_90a have: instructions, types and modifiers. */
#define BH__PTX_NEWER(X)                                                                           \
    X("tcgen05")                                                                                   \
    X("clusterlaunchcontrol")                                                                      \
    X("f32x2")                                                                                     \
    X("e2m1x2")                                                                                    \
    X("e2m1x4")                                                                                    \
    X("e2m3x2")                                                                                    \
    X("e2m3x4")                                                                                    \
    X("e3m2x2")                                                                                    \
    X("e3m2x4")                                                                                    \
    X("e4m3x4")                                                                                    \
    X("e5m2x4")                                                                                    \
    X("ue8m0x2")                                                                                   \
    X("ue4m3x2")                                                                                   \
    X("e2m1")                                                                                      \
    X("e2m3")                                                                                      \
    X("e3m2")                                                                                      \
    X("ue8m0")                                                                                     \
    X("ue4m3")                                                                                     \
    X("u8x4")                                                                                      \
    X("s8x4")                                                                                      \
    X("rs")                                                                                        \
    X("b8x16")                                                                                     \
    X("b6x16_p32")                                                                                 \
    X("b4x16_p64")                                                                                 \
    X("tile::gather4")                                                                             \
    X("tile::scatter4")                                                                            \
    X("im2col::w")                                                                                 \
    X("im2col::w::128")                                                                            \
    X("swizzle_atomicity")                                                                         \
    X("cta_group::1")                                                                              \
    X("cta_group::2")                                                                              \
    X("scale::n2::ue8m0")

#endif
