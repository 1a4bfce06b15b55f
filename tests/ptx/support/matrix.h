/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of small whole numbers in the types of matrix instructions, and PTX text, for tests. */
#ifndef BH_TESTS_PTX_MATRIX_H
#define BH_TESTS_PTX_MATRIX_H

#include <stddef.h>
#include <stdint.h>

typedef struct program {
    char text[1 << 17];
    size_t length;
} program;

void add(program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The text of a kernel with this body, between what PTX_KERNEL puts around it. */
void kernel_text(program *p, const char *body);
/* The module with an instruction does not load, and the error says why. */
void check_refused(const char *instruction, const char *why);
/* "{%a0, %a1}" */
void add_registers(program *p, const char *prefix, unsigned count);
/* Declares %prefix<count> and loads it from [%in + 8 * first...], 8 bytes for each register. */
void add_loads(program *p, const char *prefix, const char *type, unsigned count, unsigned first);
void add_stores(program *p, const char *prefix, const char *type, unsigned count, unsigned first);

unsigned type_bits(const char *type);
/* A register's type for elements of a type: b32, f32 or f64. */
const char *register_type(const char *type);

uint64_t next_random(uint64_t *state);
/* A random number that the type has exactly: 0 or 1 of b1, else at most 4. */
int small_number(const char *type, uint64_t *state);
uint64_t number_bits(const char *type, int value);

#endif
