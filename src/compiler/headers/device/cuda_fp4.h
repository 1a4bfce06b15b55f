/* SPDX-License-Identifier: Apache-2.0 */
#error "cuda_fp4.h is not supported by clang's device headers: compile with NVRTC"
