/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of boxes of tensors, compared element by element with a slow reference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptx/half.h"
#include "ptx/tensor/map.h"
#include "support/kernel.h"
#include "test.h"

enum { SHARED_BYTES = 16384, TENSOR_BYTES = 1 << 16, ROUNDS = 400, PATTERN = 0xee };

static struct {
    _Alignas(1024) uint8_t map[BH__TENSOR_MAP_BYTES];
    int32_t at[5];
    uint16_t offsets[4];
    uint32_t bytes; /* at 156 */
    uint8_t pad[1024 - 160];
    uint8_t shared[SHARED_BYTES];
    uint8_t tensor[TENSOR_BYTES];
} m;

/* Copies m.shared to shared memory, executes `body` in the first thread, and copies it back. */
#define TENSOR_KERNEL                                                                              \
    ".version 8.6\n.target sm_90a\n.address_size 64\n"                                             \
    ".visible .entry k(.param .u64 p)\n{\n"                                                        \
    ".reg .pred %%p<8>, %%done; .reg .b16 %%h<4>; .reg .b32 %%r<12>, %%t, %%s, %%bar, %%i;\n"      \
    ".reg .b32 %%c<6>, %%w<4>; .reg .b64 %%rd<8>, %%out, %%map, %%from;\n"                         \
    ".shared .align 1024 .b8 s[16384]; .shared .align 8 .b64 bar;\n"                               \
    "ld.param.u64 %%out, [p]; mov.u32 %%t, %%tid.x; mov.u32 %%s, s; mov.u32 %%bar, bar;\n"         \
    "mov.b64 %%map, %%out;\n"                                                                      \
    "shl.b32 %%i, %%t, 4;\n"                                                                       \
    "FILL: cvt.u64.u32 %%from, %%i; add.u64 %%from, %%from, %%out; add.u32 %%r1, %%s, %%i;\n"      \
    "ld.global.v4.b32 {%%w0, %%w1, %%w2, %%w3}, [%%from+1024];\n"                                  \
    "st.shared.v4.b32 [%%r1], {%%w0, %%w1, %%w2, %%w3};\n"                                         \
    "add.u32 %%i, %%i, 512; setp.lt.u32 %%p1, %%i, 16384; @%%p1 bra FILL;\n"                       \
    "fence.proxy.async.shared::cta; bar.sync 0;\n"                                                 \
    "setp.ne.u32 %%p2, %%t, 0; @%%p2 bra JOIN;\n"                                                  \
    "ld.global.b32 %%c0, [%%out+128]; ld.global.b32 %%c1, [%%out+132];\n"                          \
    "ld.global.b32 %%c2, [%%out+136]; ld.global.b32 %%c3, [%%out+140];\n"                          \
    "ld.global.b32 %%c4, [%%out+144]; ld.global.b16 %%h0, [%%out+148];\n"                          \
    "ld.global.b16 %%h1, [%%out+150]; ld.global.b16 %%h2, [%%out+152];\n"                          \
    "ld.global.b32 %%r2, [%%out+156];\n%s\n"                                                       \
    "JOIN: bar.sync 0; shl.b32 %%i, %%t, 4;\n"                                                     \
    "BACK: cvt.u64.u32 %%from, %%i; add.u64 %%from, %%from, %%out; add.u32 %%r1, %%s, %%i;\n"      \
    "ld.shared.v4.b32 {%%w0, %%w1, %%w2, %%w3}, [%%r1];\n"                                         \
    "st.global.v4.b32 [%%from+1024], {%%w0, %%w1, %%w2, %%w3};\n"                                  \
    "add.u32 %%i, %%i, 512; setp.lt.u32 %%p1, %%i, 16384; @%%p1 bra BACK;\nret;\n}\n"

#define LOAD                                                                                       \
    "mbarrier.init.shared.b64 [%%bar], 1; fence.mbarrier_init.release.cluster;\n"                  \
    "mbarrier.arrive.expect_tx.shared.b64 _, [%%bar], %%r2;\n"                                     \
    "cp.async.bulk.tensor.%ud.shared::cluster.global.%s.mbarrier::complete_tx::bytes\n"            \
    " [%%s], [%%map, {%s}], [%%bar]%s;\n"                                                          \
    "WAIT: mbarrier.try_wait.parity.shared.b64 %%done, [%%bar], 0; @!%%done bra WAIT;"

#define STORE                                                                                      \
    "cp.%s.bulk.tensor.%ud.global.shared::cta%s.%s.bulk_group [%%map, {%s}], [%%s];\n"             \
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;"

static const char *const coordinates[] = {
    "", "%c0", "%c0, %c1", "%c0, %c1, %c2", "%c0, %c1, %c2, %c3", "%c0, %c1, %c2, %c3, %c4"};

static bh__ptx_outcome run_body(const char *body, bh__ptx_fault *fault) {
    static char text[8192];
    kernel k;
    snprintf(text, sizeof text, TENSOR_KERNEL, body);
    if (kernel_open(&k, text, 32, &m, sizeof m) != BH_OK) {
        FAIL("%s", k.error.message);
        return BH__PTX_STOPPED;
    }
    bh__ptx_outcome outcome = kernel_run(&k);
    *fault = k.fault;
    kernel_close(&k);
    return outcome;
}

static bh__ptx_outcome run_load(unsigned rank, bool im2col, bh__ptx_fault *fault) {
    static const char *const offsets[] = {"", ", {%h0}", ", {%h0, %h1}", ", {%h0, %h1, %h2}"};
    char body[1024];
    snprintf(body, sizeof body, LOAD, rank, im2col ? "im2col" : "tile", coordinates[rank],
             im2col ? offsets[rank - 2] : "");
    return run_body(body, fault);
}

static bh__ptx_outcome run_store(unsigned rank, bool im2col, const char *reduction,
                                 bh__ptx_fault *fault) {
    char body[1024];
    snprintf(body, sizeof body, STORE, *reduction ? "reduce.async" : "async", rank, reduction,
             im2col ? "im2col_no_offs" : "tile", coordinates[rank]);
    return run_body(body, fault);
}

/* ---- the reference ---- */

static uint32_t size_of(const bh__tensor *t) {
    static const uint32_t sizes[] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return sizes[t->type];
}

/* Where each 16 bytes of eight rows of 128 bytes are in shared memory, as PTX's tables have it. */
static const char swizzles[4][8][9] = {{"01234567", "01234567", "01234567", "01234567", "01234567",
                                        "01234567", "01234567", "01234567"},
                                       {"01234567", "10325476", "01234567", "10325476", "01234567",
                                        "10325476", "01234567", "10325476"},
                                       {"01234567", "10325476", "23016745", "32107654", "01234567",
                                        "10325476", "23016745", "32107654"},
                                       {"01234567", "10325476", "23016745", "32107654", "45670123",
                                        "54761032", "67452301", "76543210"}};

/* Rows that are shorter than the swizzle is wide begin where one of that width would. */
static size_t pitch_of(const bh__tensor *t) {
    static const size_t widths[] = {0, 32, 64, 128};
    size_t row = (t->im2col ? t->channels : t->box[0]) * size_of(t);
    return row < widths[t->swizzle] ? widths[t->swizzle] : row;
}

static size_t place(const bh__tensor *t, size_t at) {
    size_t bytes = (t->im2col ? t->channels : t->box[0]) * size_of(t);
    at = at / bytes * pitch_of(t) + at % bytes;
    const char *row = swizzles[t->swizzle][at / 128 % 8];
    return at / 128 * 128 + (size_t)(strchr(row, '0' + (int)(at / 16 % 8)) - row) * 16 + at % 16;
}

/* The coordinates of element `e` of the box. False: there are fewer. */
static bool element(const bh__tensor *t, size_t e, int64_t at[5]) {
    if (!t->im2col) {
        for (unsigned d = 0; d < t->rank; d++) {
            uint32_t step = d == 0 ? 1 : t->steps[d], count = (t->box[d] + step - 1) / step;
            at[d] = m.at[d] + (int64_t)(e % count * step);
            e /= count;
        }
        return e == 0;
    }
    at[0] = m.at[0] + (int64_t)(e % t->channels);
    size_t pixel = e / t->channels;
    if (pixel >= t->pixels) return false;
    for (unsigned d = 1; d < t->rank; d++) at[d] = m.at[d];
    for (; pixel > 0; pixel--) { /* like an odometer */
        unsigned d = 1;
        for (; d + 1 < t->rank; d++) {
            at[d] += t->steps[d];
            if (at[d] < (int64_t)t->dims[d] + t->upper[d - 1]) break;
            at[d] = t->lower[d - 1];
        }
        if (d + 1 == t->rank) at[d]++;
    }
    for (unsigned d = 1; d + 1 < t->rank; d++) at[d] += m.offsets[d - 1];
    return true;
}

/* Where the element is in m.tensor; NOWHERE: outside of the tensor. */
#define NOWHERE SIZE_MAX
static size_t find(const bh__tensor *t, const int64_t at[5]) {
    size_t where = 0;
    for (unsigned d = 0; d < t->rank; d++) {
        if (at[d] < 0 || at[d] >= (int64_t)t->dims[d]) return NOWHERE;
        where += (size_t)at[d] * (d == 0 ? size_of(t) : t->strides[d - 1]);
    }
    return where;
}

/* ---- random tensors ---- */

static uint32_t seed;

static uint32_t below(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void make_im2col(bh__tensor *t) {
    static const int32_t limits[] = {0, 0, 0, 3, 3, 2};
    t->im2col = 1;
    t->pixels = 1 + below(20);
    t->channels = t->box[0];
    for (unsigned d = 1; d + 1 < t->rank; d++) {
        int32_t limit = limits[t->rank];
        t->lower[d - 1] = (int32_t)below(2 * (uint32_t)limit) - limit;
        t->upper[d - 1] = (int32_t)below(2 * (uint32_t)limit) - limit;
        while (t->lower[d - 1] > (int64_t)t->dims[d] - 1 + t->upper[d - 1]) t->lower[d - 1]--;
    }
}

/* One that fits m.tensor, and whose box fits shared memory. */
static bh__tensor make(bool im2col) {
    bh__tensor t;
    uint64_t bytes, box;
    do {
        t = (bh__tensor){.address = (uint64_t)(uintptr_t)m.tensor,
                         .rank = (uint8_t)(im2col ? 3 + below(3) : 1 + below(5)),
                         .type = (uint8_t)below(BH__TENSOR_TYPES),
                         .swizzle = (uint8_t)below(4),
                         .promotion = (uint8_t)below(4)};
        uint64_t stride = 0;
        box = 1;
        for (unsigned d = 0; d < t.rank; d++) {
            t.dims[d] = 1 + below(d == 0 ? 40 : 8);
            t.box[d] = 1 + below(6);
            t.steps[d] = 1 + (below(3) == 0 ? below(8) : 0);
            if (d == 0) {
                t.box[0] = 16 / size_of(&t) * (1 + below(8));
                stride = (t.dims[0] * size_of(&t) + 15) / 16 * 16;
            } else {
                t.strides[d - 1] = stride + 16 * below(3);
                stride = t.strides[d - 1] * t.dims[d];
            }
            box *= t.box[d];
        }
        t.nan_fill = t.type >= BH__TENSOR_F16 && below(2) == 1;
        if (im2col) make_im2col(&t);
        if (im2col) box = (uint64_t)t.channels * t.pixels;
    } while (!bh__tensor_bytes(&t, &bytes) || bytes > TENSOR_BYTES ||
             box / t.box[0] * pitch_of(&t) + 1024 > SHARED_BYTES || bh__tensor_wrong(&t) != NULL);
    return t;
}

/* Where the box begins, in the first dimension at a multiple of 16 bytes; im2col: between the
 * corners. */
static void choose_coordinates(const bh__tensor *t, bool inside) {
    memset(m.at, 0, sizeof m.at);
    memset(m.offsets, 0, sizeof m.offsets);
    for (unsigned d = 0; d < t->rank; d++) {
        uint32_t spare = inside ? 0 : 4;
        m.at[d] = (int32_t)below((uint32_t)t->dims[d] + 2 * spare) - (int32_t)spare;
        if (d == 0) m.at[0] &= -(16 / (int32_t)size_of(t));
        if (t->im2col && d > 0 && d + 1 < t->rank) {
            int32_t low = t->lower[d - 1], high = (int32_t)t->dims[d] - 1 + t->upper[d - 1];
            m.at[d] = low + (int32_t)below((uint32_t)(high - low + 1));
            m.offsets[d - 1] = (uint16_t)(inside ? 0 : below(4));
        }
    }
}

static void fill_random(void) {
    for (size_t n = 0; n < sizeof m.tensor; n++) m.tensor[n] = (uint8_t)below(256);
}

static size_t count_bytes(const bh__tensor *t) {
    int64_t at[5];
    size_t e = 0;
    while (element(t, e, at)) e++;
    return e * size_of(t);
}

/* ---- loads ---- */

static void convert(const bh__tensor *t, uint8_t *p) {
    uint32_t v;
    if (t->type < BH__TENSOR_F32_FTZ) return;
    memcpy(&v, p, 4);
    float f = bh__float_of_bits(v);
    bool finite = (v >> 23 & 255) != 255;
    if (t->type == BH__TENSOR_F32_FTZ) return;
    if (t->type == BH__TENSOR_TF32_FTZ && (v >> 23 & 255) == 0) v &= 0x80000000;
    if (finite) {
        uint32_t low = v & ~0x1fffu, high = low + 0x2000, rest = v - low;
        v = rest > 0x1000 || (rest == 0x1000 && (low & 0x2000)) ? high : low;
    } else {
        v = f == f ? v : (v & ~0x1fffu) | 0x400000;
    }
    memcpy(p, &v, 4);
}

static void expect_load(const bh__tensor *t, uint8_t *out) {
    int64_t at[5];
    uint32_t size = size_of(t);
    memset(out, PATTERN, SHARED_BYTES);
    for (size_t e = 0; element(t, e, at); e++) {
        size_t from = find(t, at);
        uint8_t value[8] = {0};
        if (from != NOWHERE) {
            memcpy(value, m.tensor + from, size);
            convert(t, value);
        } else if (t->nan_fill) {
            for (uint32_t i = 0; i < size; i += 2) memcpy(value + i, "\xf7\x7f", 2);
        }
        memcpy(out + place(t, e * size), value, size);
    }
}

static void test_loads(bool im2col, uint32_t first) {
    static uint8_t wanted[SHARED_BYTES];
    for (uint32_t n = 0; n < ROUNDS; n++) {
        seed = first + n;
        bh__tensor t = make(im2col);
        bh__ptx_fault fault;
        choose_coordinates(&t, false);
        fill_random();
        memset(m.shared, PATTERN, sizeof m.shared);
        bh__tensor_map_write(&t, m.map);
        m.bytes = (uint32_t)count_bytes(&t);
        expect_load(&t, wanted);
        if (run_load(t.rank, im2col, &fault) != BH__PTX_DONE) {
            FAIL("seed %u: %s", first + n, fault.text);
        } else if (memcmp(m.shared, wanted, sizeof wanted) != 0) {
            FAIL("seed %u: rank %u, type %u, swizzle %u", first + n, t.rank, t.type, t.swizzle);
        }
    }
}

TEST(boxes_are_loaded) {
    test_loads(false, 1);
}

TEST(pixels_are_loaded) {
    test_loads(true, 100000);
}

/* ---- stores and reductions ---- */

typedef uint64_t combine(uint8_t type, uint64_t old, uint64_t value);

static uint64_t take_new(uint8_t type, uint64_t old, uint64_t value) {
    (void)type, (void)old;
    return value;
}

static uint64_t sum(uint8_t type, uint64_t old, uint64_t value) {
    (void)type;
    return old + value;
}

static uint64_t smaller(uint8_t type, uint64_t old, uint64_t value) {
    bool less = type == BH__TENSOR_I32   ? (int32_t)value < (int32_t)old
                : type == BH__TENSOR_I64 ? (int64_t)value < (int64_t)old
                                         : value < old;
    return less ? value : old;
}

static uint64_t increment(uint8_t type, uint64_t old, uint64_t value) {
    (void)type;
    return old >= value ? 0 : old + 1;
}

static uint64_t exclusive(uint8_t type, uint64_t old, uint64_t value) {
    (void)type;
    return old ^ value;
}

static void expect_store(const bh__tensor *t, combine *f, uint8_t *out) {
    int64_t at[5];
    for (size_t e = 0; element(t, e, at); e++) {
        size_t to = find(t, at);
        uint64_t old = 0, value = 0;
        if (to == NOWHERE) continue;
        memcpy(&old, out + to, size_of(t));
        memcpy(&value, m.shared + place(t, e * size_of(t)), size_of(t));
        value = f(t->type, old, value);
        memcpy(out + to, &value, size_of(t));
    }
}

static void test_stores(bool im2col, const char *reduction, combine *f, uint32_t types,
                        uint32_t first) {
    static uint8_t wanted[TENSOR_BYTES];
    for (uint32_t n = 0, done = 0; done < ROUNDS / 4; n++) {
        seed = first + n;
        bh__tensor t = make(im2col);
        bh__ptx_fault fault;
        if (!(types >> t.type & 1)) continue;
        done++;
        choose_coordinates(&t, im2col);
        fill_random();
        for (size_t i = 0; i < sizeof m.shared; i++) m.shared[i] = (uint8_t)below(256);
        bh__tensor_map_write(&t, m.map);
        memcpy(wanted, m.tensor, sizeof wanted);
        expect_store(&t, f, wanted);
        if (run_store(t.rank, im2col, reduction, &fault) != BH__PTX_DONE) {
            FAIL("seed %u: %s", first + n, fault.text);
        } else if (memcmp(m.tensor, wanted, sizeof wanted) != 0) {
            FAIL("seed %u: rank %u, type %u, swizzle %u", first + n, t.rank, t.type, t.swizzle);
        }
    }
}

#define ONE(type)   (1u << BH__TENSOR_##type)
#define INTEGERS_32 (ONE(U32) | ONE(I32))
#define INTEGERS    (INTEGERS_32 | ONE(U64) | ONE(I64))

TEST(boxes_are_stored) {
    test_stores(false, "", take_new, UINT32_MAX, 200000);
}

TEST(pixels_are_stored) {
    test_stores(true, "", take_new, UINT32_MAX, 300000);
}

TEST(boxes_are_reduced) {
    test_stores(false, ".add", sum, INTEGERS_32 | ONE(U64), 400000);
    test_stores(false, ".min", smaller, INTEGERS, 500000);
    test_stores(false, ".inc", increment, ONE(U32), 600000);
    test_stores(false, ".xor", exclusive, INTEGERS, 700000);
    test_stores(true, ".add", sum, INTEGERS_32, 800000);
}

TEST(floats_are_added) {
    bh__tensor t = {.address = (uint64_t)(uintptr_t)m.tensor,
                    .rank = 1,
                    .type = BH__TENSOR_F32,
                    .dims = {4},
                    .box = {8},
                    .steps = {1}};
    float *to = (float *)(void *)m.tensor, *from = (float *)(void *)m.shared;
    bh__ptx_fault fault;
    memset(m.at, 0, sizeof m.at);
    for (int n = 0; n < 8; n++) to[n] = 10, from[n] = (float)n + 0.5f;
    bh__tensor_map_write(&t, m.map);
    REQUIRE_EQ(run_store(1, false, ".add", &fault), BH__PTX_DONE);
    CHECK_EQ(bh__bits_of_float(to[3]), bh__bits_of_float(13.5f));
    CHECK_EQ(bh__bits_of_float(to[4]), bh__bits_of_float(10)); /* outside */
}

/* ---- clusters ---- */

/* Both blocks get the box; each writes what it got. */
TEST(a_box_goes_to_all_blocks_of_a_mask) {
    static const char text[] =
        ".version 8.6\n.target sm_90a\n.address_size 64\n"
        ".visible .entry k(.param .u64 p)\n{\n"
        ".reg .pred %p<8>, %done; .reg .b32 %r<12>, %s, %bar, %rank; .reg .b64 %rd<8>, %out;\n"
        ".reg .b16 %h1; .shared .align 1024 .b8 s[1024]; .shared .align 8 .b64 bar;\n"
        "ld.param.u64 %out, [p]; mov.u32 %s, s; mov.u32 %bar, bar;\n"
        "mov.u32 %rank, %cluster_ctarank; mov.b16 %h1, 3;\n"
        "mbarrier.init.shared.b64 [%bar], 1; fence.mbarrier_init.release.cluster;\n"
        "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 128;\n"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n"
        "setp.ne.u32 %p1, %rank, 1; @%p1 bra WAIT;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        ".multicast::cluster [%s], [%out, {4, 1}], [%bar], %h1;\n"
        "WAIT: mbarrier.try_wait.parity.shared.b64 %done, [%bar], 0; @!%done bra WAIT;\n"
        "mul.wide.u32 %rd1, %rank, 4; add.u64 %rd1, %rd1, %out;\n"
        "ld.shared.b32 %r1, [%s+100]; st.global.b32 [%rd1+1024], %r1;\n"
        "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\nret;\n}\n";
    bh__tensor t = {.address = (uint64_t)(uintptr_t)m.tensor,
                    .rank = 2,
                    .type = BH__TENSOR_U32,
                    .dims = {64, 8},
                    .strides = {256},
                    .box = {8, 4},
                    .steps = {1, 1}};
    kernel k;
    uint32_t got[2], wanted;
    fill_random();
    bh__tensor_map_write(&t, m.map);
    REQUIRE_EQ(kernel_open(&k, text, 1, &m, sizeof m), BH_OK);
    k.grid.grid[0] = k.grid.cluster[0] = 2;
    k.grid.cluster[1] = k.grid.cluster[2] = 1;
    if (kernel_run(&k) != BH__PTX_DONE) FAIL("%s", k.fault.text);
    kernel_close(&k);
    memcpy(got, m.shared, sizeof got);
    memcpy(&wanted, m.tensor + (1 + 3) * 256 + (4 + 1) * 4, sizeof wanted); /* word 25 */
    CHECK_EQ(got[0], wanted);
    CHECK_EQ(got[1], wanted);
}

/* ---- what is refused ---- */

static bh__tensor simple(void) {
    return (bh__tensor){.address = (uint64_t)(uintptr_t)m.tensor,
                        .rank = 2,
                        .type = BH__TENSOR_U32,
                        .dims = {64, 8},
                        .strides = {256},
                        .box = {8, 4},
                        .steps = {1, 1}};
}

static void faults_with(const bh__tensor *t, bool write, const char *what) {
    bh__ptx_fault fault;
    memset(m.at, 0, sizeof m.at);
    bh__tensor_map_write(t, m.map);
    m.bytes = 128;
    bh__ptx_outcome outcome =
        write ? run_store(2, false, ".add", &fault) : run_load(2, false, &fault);
    CHECK_EQ(outcome, BH__PTX_FAULTED);
    if (strstr(fault.text, what) == NULL) FAIL("\"%s\" is not in: %s", what, fault.text);
}

TEST(maps_are_checked_when_they_are_used) {
    bh__tensor t = simple();
    t.rank = 3;
    t.dims[2] = t.box[2] = t.steps[2] = 1;
    t.strides[1] = 4096;
    faults_with(&t, false, "a tensor of 3 dimensions is copied as one of 2");
    t = simple();
    t.box[0] = 300;
    faults_with(&t, false, "a box that is not 1 to 256");
    t = simple();
    t.steps[1] = 0;
    faults_with(&t, false, "a step that is not 1 to 8");
    t = simple();
    t.swizzle = BH__SWIZZLE_32 + 100;
    faults_with(&t, false, "an unknown swizzle");
    t = simple();
    t.type = BH__TENSOR_U8;
    t.box[0] = 16;
    faults_with(&t, true, "cannot be reduced");
}

TEST(a_box_fits_shared_memory) {
    bh__tensor t = simple();
    bh__ptx_fault fault;
    t.rank = 5;
    for (int d = 0; d < 5; d++) t.dims[d] = t.box[d] = 256, t.steps[d] = 1;
    bh__tensor_map_write(&t, m.map);
    CHECK_EQ(run_load(5, false, &fault), BH__PTX_FAULTED);
    CHECK(strstr(fault.text, "bytes of shared memory") != NULL);
    CHECK_EQ(run_store(5, false, "", &fault), BH__PTX_FAULTED);
    t = simple();
    t.box[0] = t.box[1] = 128; /* 64 KiB */
    faults_with(&t, false, "a box of 65536 bytes");
}

TEST(memory_outside_of_buffers_is_not_reached) {
    bh__tensor t = simple();
    t.address += (uint64_t)1 << 32;
    faults_with(&t, false, "0x");
    t = simple();
    t.dims[0] = (uint64_t)1 << 32;
    t.dims[1] = (uint64_t)1 << 32;
    t.strides[0] = ((uint64_t)1 << 40) - 16;
    bh__tensor_map_write(&t, m.map);
    bh__ptx_fault fault;
    m.bytes = 128;
    for (int n = 0; n < 2; n++) {
        m.at[0] = n == 0 ? INT32_MAX - 3 : 0;
        m.at[1] = n == 1 ? INT32_MAX - 3 : 0;
        CHECK_EQ(run_load(2, false, &fault), BH__PTX_FAULTED);
        CHECK_EQ(fault.kind, BH__PTX_FAULT_ADDRESS);
    }
}

TEST(other_bytes_are_not_a_map) {
    bh__tensor t = simple();
    bh__ptx_fault fault;
    bh__tensor_map_write(&t, m.map);
    for (unsigned bit = 0; bit < 8 * sizeof m.map; bit++) {
        m.map[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK(bh__tensor_map_read(m.map, &t) != NULL);
        m.map[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    CHECK(bh__tensor_map_read(m.map, &t) == NULL);
    memset(m.map, 0, sizeof m.map);
    CHECK_EQ(run_load(2, false, &fault), BH__PTX_FAULTED);
    CHECK(strstr(fault.text, "are not a tensor map") != NULL);
}

/* ---- tensormap ---- */

static bool replaced(const char *body, bh__tensor *out) {
    bh__ptx_fault fault;
    bh__tensor t = simple();
    bh__tensor_map_write(&t, m.map);
    if (run_body(body, &fault) != BH__PTX_DONE) {
        FAIL("%s", fault.text);
        return false;
    }
    return bh__tensor_map_read(m.map, out) == NULL;
}

TEST(fields_are_replaced) {
    bh__tensor t;
    REQUIRE(replaced("mov.b32 %r3, 7; mov.b64 %rd1, 0x100020;"
                     "tensormap.replace.tile.global_address.global.b1024.b64 [%map], %rd1;"
                     "tensormap.replace.tile.rank.b1024.b32 [%map], 2;"
                     "tensormap.replace.tile.box_dim.global.b1024.b32 [%map], 2, %r3;"
                     "tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 4, %r3;"
                     "tensormap.replace.tile.global_stride.global.b1024.b64 [%map], 3, %rd1;"
                     "tensormap.replace.tile.element_stride.global.b1024.b32 [%map], 1, 5;"
                     "tensormap.replace.tile.elemtype.global.b1024.b32 [%map], 9;"
                     "tensormap.replace.tile.interleave_layout.global.b1024.b32 [%map], 1;"
                     "tensormap.replace.tile.swizzle_mode.global.b1024.b32 [%map], 3;"
                     "tensormap.replace.tile.fill_mode.global.b1024.b32 [%map], 1;",
                     &t));
    CHECK_EQ(t.address, 0x100020);
    CHECK_EQ(t.rank, 3);
    CHECK_EQ(t.box[2], 7);
    CHECK_EQ(t.dims[4], 7);
    CHECK_EQ(t.strides[3], 0x100020);
    CHECK_EQ(t.steps[1], 5);
    CHECK_EQ(t.type, BH__TENSOR_F64);
    CHECK_EQ(t.interleave, BH__INTERLEAVE_16);
    CHECK_EQ(t.swizzle, BH__SWIZZLE_128);
    CHECK_EQ(t.nan_fill, 1);
    CHECK_EQ(t.box[0], 8);
}

/* As CUTLASS does it: a copy in shared memory is changed, and then put where it is used. */
TEST(a_map_is_changed_in_shared_memory) {
    bh__tensor t;
    memset(m.shared, 0, sizeof m.shared);
    t = simple();
    t.box[1] = 3;
    bh__tensor_map_write(&t, m.shared);
    REQUIRE(replaced("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 0, 12;"
                     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu"
                     ".sync.aligned [%map], [%s], 128;"
                     "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;"
                     "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%map, {0, 0}];",
                     &t));
    CHECK_EQ(t.box[0], 12);
    CHECK_EQ(t.box[1], 3);
}

/* ---- forms ---- */

TEST(forms_that_ptx_does_not_have) {
    static const char *const forms[] = {
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map, "
        "{%c0}], [%bar];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%s], [%map], "
        "[%bar];",
        "cp.async.bulk.tensor.2d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], "
        "[%map, {%c0, %c1}], [%bar];",
        "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%s], "
        "[%map, {%c0, %c1, %c2}], [%bar];",
        "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%s], [%map, {%c0, %c1}], [%bar], %h0;",
        "cp.reduce.async.bulk.tensor.1d.global.shared::cta.exch.tile.bulk_group [%map, {%c0}], "
        "[%s];",
        "cp.reduce.async.bulk.tensor.3d.global.shared::cta.xor.im2col.bulk_group [%map, {%c0, %c0, "
        "%c0}], [%s];",
        "cp.async.bulk.tensor.1d.global.shared::cta.add.tile.bulk_group [%map, {%c0}], [%s];",
        "cp.async.bulk.tensor.global.shared::cta.bulk_group [%map, {%c0}], [%s];",
        "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%s], 5, %r1;",
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%s], 13;",
        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%s], %r1;",
        "tensormap.replace.tile.rank.shared::cta.b1024.b64 [%s], %rd1;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        "[%map], [%s], 64;"};
    for (size_t n = 0; n < sizeof forms / sizeof *forms; n++) {
        static char text[8192];
        bh_error error;
        int length = snprintf(text, sizeof text, TENSOR_KERNEL, forms[n]);
        if (load_error(text, (size_t)length, &error) != BH_E_LOAD) FAIL("loads: %s", forms[n]);
    }
}
