/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic functions, relaxed as in CUDA, in device, _block and _system scope. */
#ifndef BULKHEAD_ATOMICS_H
#define BULKHEAD_ATOMICS_H

#include "bulkhead_types.h"

/* With clang's builtins the compiler can infer the address space. */
#define __BH_ATOMIC(name, type, cast, builtin)                                                     \
    __BH_DEVICE type name(type *at, type value) {                                                  \
        return (type)__nvvm_atom_##builtin((cast *)at, (cast)value);                               \
    }                                                                                              \
    __BH_DEVICE type name##_block(type *at, type value) {                                          \
        return (type)__nvvm_atom_cta_##builtin((cast *)at, (cast)value);                           \
    }                                                                                              \
    __BH_DEVICE type name##_system(type *at, type value) {                                         \
        return (type)__nvvm_atom_sys_##builtin((cast *)at, (cast)value);                           \
    }
#define __BH_ATOMIC_CAS(type, cast, builtin)                                                       \
    __BH_DEVICE type atomicCAS(type *at, type old, type value) {                                   \
        return (type)__nvvm_atom_##builtin((cast *)at, (cast)old, (cast)value);                    \
    }                                                                                              \
    __BH_DEVICE type atomicCAS_block(type *at, type old, type value) {                             \
        return (type)__nvvm_atom_cta_##builtin((cast *)at, (cast)old, (cast)value);                \
    }                                                                                              \
    __BH_DEVICE type atomicCAS_system(type *at, type old, type value) {                            \
        return (type)__nvvm_atom_sys_##builtin((cast *)at, (cast)old, (cast)value);                \
    }
#define __BH_ATOMIC_SUB(type)                                                                      \
    __BH_DEVICE type atomicSub(type *at, type value) {                                             \
        return atomicAdd(at, (type)(0u - (unsigned)value));                                        \
    }                                                                                              \
    __BH_DEVICE type atomicSub_block(type *at, type value) {                                       \
        return atomicAdd_block(at, (type)(0u - (unsigned)value));                                  \
    }                                                                                              \
    __BH_DEVICE type atomicSub_system(type *at, type value) {                                      \
        return atomicAdd_system(at, (type)(0u - (unsigned)value));                                 \
    }
#define __BH_ATOMIC_BITS(name, operation)                                                          \
    __BH_ATOMIC(name, int, int, operation##_gen_i)                                                 \
    __BH_ATOMIC(name, unsigned, int, operation##_gen_i)                                            \
    __BH_ATOMIC(name, unsigned long long, long long, operation##_gen_ll)                           \
    __BH_ATOMIC(name, long long, long long, operation##_gen_ll)

__BH_ATOMIC(atomicAdd, int, int, add_gen_i)
__BH_ATOMIC(atomicAdd, unsigned, int, add_gen_i)
__BH_ATOMIC(atomicAdd, unsigned long long, long long, add_gen_ll)
__BH_ATOMIC(atomicAdd, float, float, add_gen_f)
__BH_ATOMIC(atomicAdd, double, double, add_gen_d)
__BH_ATOMIC_SUB(int)
__BH_ATOMIC_SUB(unsigned)
__BH_ATOMIC_BITS(atomicExch, xchg)
__BH_ATOMIC_BITS(atomicAnd, and)
__BH_ATOMIC_BITS(atomicOr, or)
__BH_ATOMIC_BITS(atomicXor, xor)
__BH_ATOMIC(atomicMin, int, int, min_gen_i)
__BH_ATOMIC(atomicMin, unsigned, unsigned, min_gen_ui)
__BH_ATOMIC(atomicMin, long long, long long, min_gen_ll)
__BH_ATOMIC(atomicMin, unsigned long long, unsigned long long, min_gen_ull)
__BH_ATOMIC(atomicMax, int, int, max_gen_i)
__BH_ATOMIC(atomicMax, unsigned, unsigned, max_gen_ui)
__BH_ATOMIC(atomicMax, long long, long long, max_gen_ll)
__BH_ATOMIC(atomicMax, unsigned long long, unsigned long long, max_gen_ull)
__BH_ATOMIC(atomicInc, unsigned, unsigned, inc_gen_ui)
__BH_ATOMIC(atomicDec, unsigned, unsigned, dec_gen_ui)
__BH_ATOMIC_CAS(int, int, cas_gen_i)
__BH_ATOMIC_CAS(unsigned, int, cas_gen_i)
__BH_ATOMIC_CAS(long long, long long, cas_gen_ll)
__BH_ATOMIC_CAS(unsigned long long, long long, cas_gen_ll)

#undef __BH_ATOMIC
#undef __BH_ATOMIC_CAS
#undef __BH_ATOMIC_SUB
#undef __BH_ATOMIC_BITS

#define __BH_ATOMIC_REST(suffix, scope)                                                            \
    __BH_DEVICE float atomicExch##suffix(float *at, float value) {                                 \
        return __bh_bits<float>(atomicExch##suffix((unsigned *)at, __bh_bits<unsigned>(value)));   \
    }                                                                                              \
    __BH_DEVICE unsigned short atomicCAS##suffix(unsigned short *at, unsigned short old,           \
                                                 unsigned short value) {                           \
        unsigned short result;                                                                     \
        asm volatile("atom" scope ".cas.b16 %0, [%1], %2, %3;"                                     \
                     : "=h"(result)                                                                \
                     : "l"(at), "h"(old), "h"(value)                                               \
                     : "memory");                                                                  \
        return result;                                                                             \
    }
__BH_ATOMIC_REST(, "")
__BH_ATOMIC_REST(_block, ".cta")
__BH_ATOMIC_REST(_system, ".sys")
#undef __BH_ATOMIC_REST

#endif
