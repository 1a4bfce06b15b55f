/* SPDX-License-Identifier: Apache-2.0 */
/* threadIdx, blockIdx, blockDim, gridDim, warpSize: objects that read special registers. */
#ifndef BULKHEAD_BUILTINS_H
#define BULKHEAD_BUILTINS_H

#include "bulkhead_vectors.h"

#define __BH_MEMBER(member, read)                                                                  \
    __declspec(property(get = read_##member)) unsigned int member;                                 \
    static __inline__ __device__                                                                   \
        __attribute__((always_inline, nodebug)) unsigned int read_##member() {                     \
        return (unsigned int)read();                                                               \
    }
#define __BH_COORDINATES(type, object, registers, result)                                          \
    struct type {                                                                                  \
        __BH_MEMBER(x, registers##_x)                                                              \
        __BH_MEMBER(y, registers##_y)                                                              \
        __BH_MEMBER(z, registers##_z)                                                              \
        __device__ __attribute__((always_inline, nodebug)) operator uint3() const {                \
            return uint3{read_x(), read_y(), read_z()};                                            \
        }                                                                                          \
        __device__ __attribute__((always_inline, nodebug)) operator dim3() const {                 \
            return dim3(read_x(), read_y(), read_z());                                             \
        }                                                                                          \
        constexpr type() = default;                                                                \
        type(const type &) = delete;                                                               \
        void operator=(const type &) const = delete;                                               \
        type *operator&() const = delete;                                                          \
    };                                                                                             \
    static const __device__ __attribute__((unused)) type object;

__BH_COORDINATES(__bh_thread_index, threadIdx, __nvvm_read_ptx_sreg_tid, uint3)
__BH_COORDINATES(__bh_block_index, blockIdx, __nvvm_read_ptx_sreg_ctaid, uint3)
__BH_COORDINATES(__bh_block_shape, blockDim, __nvvm_read_ptx_sreg_ntid, dim3)
__BH_COORDINATES(__bh_grid_shape, gridDim, __nvvm_read_ptx_sreg_nctaid, dim3)

#undef __BH_COORDINATES
#undef __BH_MEMBER

static constexpr int warpSize = 32;

#endif
