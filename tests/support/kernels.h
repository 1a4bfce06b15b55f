/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels the tests run: PTX 7.0 for sm_70, written by hand, one string per module. */
#ifndef TESTS_SUPPORT_KERNELS_H
#define TESTS_SUPPORT_KERNELS_H

#include <stdint.h>

/*
 * ptx_basic: kernels of a module without variables.
 *
 *   saxpy(f32 a, in f32 x, inout f32 y, u32 n)         y = a * x + y
 *   iota(out u32 p, u32 base, u32 n)                   p[i] = base + i
 *   store_word(out u32 p, u32 value)                   p[0] = value
 *   add_one(inout u32 p, u32 n)                        p[i] += 1
 *   copy_words(in u32 a, out u32 b, u32 n)             b[i] = a[i]
 *   mix(out u32 p, in u32 a, in u32 b, u32 k, u32 n)   p[i] = mix_word(a[i], b[i], k)
 *   churn(inout u32 p, u32 k, u32 n)                   p[i] = churn_word(p[i], k)
 *   gate(u64 flag, out u32 p, u32 value)               flag[1] = 1, waits for flag[0], p[0] = value
 *   spin(out u32 p, u32 seed, u32 rounds)              p[i] = spin_word(seed + i, rounds)
 *   gather(in u64 table, out u32 p, u32 n)             p[i] = *(u32 *)table[i]
 *   scatter(in u64 table, u32 value, u32 n)            *(u32 *)table[i] = value + i
 *   scalars(u8, u16, u32, u64, f32, f64, out u64 p)    p[0..5] = their bits
 *   by_struct(struct sample s, out u64 p)              p[0..3] = its fields
 *   geometry(out u32 p)                                12 words per thread
 *   null_or(u64 pointer, out u32 p)                    p[0] = pointer == 0
 *   sum_shared / sum_dynamic(in u32 a, out u32 sums)   one sum per block, block of at most 256
 *   shared_size(out u32 p)                             p[0] = %dynamic_smem_size
 *
 * and the ones that go wrong:
 *
 *   poke(u64 address, u32 value)                       *(u32 *)address = value
 *   write_input(u32 *a, out u32 b)                     a[0] = 1, b[0] = 1
 *   write_then_poke(inout u32 p, u32 n, u64 address)   p[i] = ~p[i] in each thread, then poke
 *   trap_now()
 *   misaligned(u32 *p)                                 stores a word at p + 1
 *   endless(u64 flag, u32 *p)                          flag[1] = 1, counts in p[0], never ends
 *   wait_then_poke(u64 flag, inout u32 p, u64 address) flag[1] = 1, waits for flag[0] != 0,
 *                                                      p[0] += 1, then poke
 *
 * `flag` is the address of a buffer that the launch does not declare, so that others may read and
 * write it while the kernel runs.
 */
extern const char ptx_basic[];

/* counter (no initialiser), table = {10, 20, 30, 40}, constant scale = 7.
 *   bump(out u32 p)         p[0] = ++counter
 *   show(out u32 p)         p[0] = counter, p[1..4] = table, p[5] = scale
 *   set_table(u32 value)    table[0] = value */
extern const char ptx_globals[];

/* Only `factor`, a variable no kernel writes: scale_by(inout u32 p, u32 n)  p[i] *= factor */
extern const char ptx_factor[];

/* say(u32 a, u32 b) prints "a=%u b=%u\n"; say_many(u32 n) prints "line %u\n" from each of n
 * threads. */
extern const char ptx_printf[];

/* must_be(u32 value, u32 expected) asserts that they are equal. */
extern const char ptx_assert[];

/*
 * Textures and surfaces. a: n float4 of coordinates, b: n float4 of results.
 *   fetch_1d / fetch_2d / fetch_3d / fetch_cube(texture t, in a, out b, u32 n)   x, y, z of a
 *   fetch_a1d / fetch_a2d                                                        w: a layer, u32
 *   fetch_level                                                                  2-D; z: the level
 *   fetch_texel                                                                  1-D; x: an integer
 *   gather_2d, size_2d
 *   surface_add(surface s, u32 w, u32 add)       adds to each u32: a block for each row, w threads
 *   surface_add_poke(surface s, u32 w, u32 add, u64 address)   the same, then poke
 */
extern const char ptx_textures[];

/*
 * Tensor maps over u32 of two dimensions, with a box of 16 x 4: a block of 64 threads for each box.
 *   tile_add(map m, u32 add)                    adds to each element
 *   tile_add_poke(map m, u32 add, u64 address)  the same, then poke
 *   tile_read(map m, out b)                     b: the boxes, one after the other
 * Of any type; b: 4 KiB of shared memory, 0xee before the box is loaded; one block of 64 threads.
 *   tensor_dump(map m, out b, u32 bytes, s32 x, s32 y)   two dimensions; bytes: of the box
 *   tensor_dump_pixels(map m, out b, u32 bytes, s32 w, s32 h, u16 w_offset, u16 h_offset)
 */
extern const char ptx_tensors[];

/* What the kernels above compute, for comparison. */
static inline uint32_t mix_word(uint32_t a, uint32_t b, uint32_t k) {
    return (a * 1664525u + b) ^ k;
}
static inline uint32_t churn_word(uint32_t p, uint32_t k) {
    return p * 22695477u + k;
}
static inline uint32_t spin_word(uint32_t x, uint32_t rounds) {
    for (uint32_t i = 0; i < rounds; i++) x = x * 1664525u + 1013904223u;
    return x;
}

struct sample {
    uint32_t word;
    uint64_t wide;
    float real;
    uint8_t byte;
};

/* Writes a kernel `big` with `count` parameters of 8 bytes and one pointer: p[0] = their sum. The
 * caller frees it. */
char *ptx_many_params(unsigned count);
/* Writes a kernel `block` with a parameter of `bytes` bytes and one pointer: p[0] = the sum of its
 * words. */
char *ptx_block_param(unsigned bytes);

#endif
