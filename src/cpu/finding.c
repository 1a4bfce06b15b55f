/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of faults and findings, with their names, and findings for the application. */
#include <stdio.h>
#include <string.h>

#include "cpu/cpu.h"

static const bh__cpu_fault_kind kinds[] = {
    [BH__PTX_FAULT_ADDRESS] = {BH__CPU_ILLEGAL_ADDRESS, "ILLEGAL_ADDRESS",
                               "check the kernel's indices against the sizes of its buffers, and "
                               "that every pointer it follows is one of a live buffer"},
    [BH__PTX_FAULT_READ_ONLY] = {BH__CPU_ILLEGAL_ADDRESS, "ILLEGAL_ADDRESS",
                                 "pass the buffer with BH_OUT or BH_INOUT if the kernel writes it"},
    [BH__PTX_FAULT_MISALIGNED] = {716, "MISALIGNED_ADDRESS",
                                  "align the address to the size of the access"},
    [BH__PTX_FAULT_TRAP] = {719, "LAUNCH_FAILED", "see why the kernel executes a trap"},
    [BH__PTX_FAULT_ASSERT] = {710, "ASSERT", "see why the assertion in the kernel does not hold"},
    [BH__PTX_FAULT_BARRIER] = {719, "LAUNCH_FAILED",
                               "let all threads of the block reach the same barriers"},
    [BH__PTX_FAULT_STACK] = {714, "HARDWARE_STACK_ERROR",
                             "nest calls less deep, or use a loop in place of recursion"},
    [BH__PTX_FAULT_BAD_CALL] = {718, "INVALID_PC",
                                "call only addresses of functions of the same module"},
    [BH__PTX_FAULT_HEAP] = {719, "LAUNCH_FAILED",
                            "free what malloc returned in a kernel of the same device, once"},
    [BH__PTX_FAULT_MBARRIER] = {719, "LAUNCH_FAILED",
                                "initialise the mbarrier before it is used, and let arrivals and "
                                "bytes match the counts it was given"},
    [BH__PTX_FAULT_COPY] = {719, "LAUNCH_FAILED",
                            "keep sizes and addresses of bulk copies multiples of 16 bytes, in the "
                            "memory that the instruction names"},
    [BH__PTX_FAULT_TENSOR] = {719, "LAUNCH_FAILED",
                              "make tensor maps with bh_tensor_map_create, pass them with "
                              "BH_TENSOR_IN and its like, and copy as the map describes"},
    [BH__PTX_FAULT_BOUNDS] = {BH__CPU_ILLEGAL_ADDRESS, "CHECK_OUT_OF_BOUNDS",
                              "check the kernel's indices against the sizes of what it accesses"},
    [BH__PTX_FAULT_FREED] = {BH__CPU_ILLEGAL_ADDRESS, "CHECK_USE_AFTER_FREE",
                             "release a buffer only when no kernel is given its address any more"},
    [BH__PTX_FAULT_UNINITIALISED] = {719, "CHECK_UNINITIALISED",
                                     "write the buffer first, with bh_buffer_fill if with nothing "
                                     "else"},
    [BH__PTX_FAULT_RACE] = {719, "CHECK_RACE",
                            "put a barrier between the two, or make both atomic; between blocks, a "
                            "__threadfence and an atomic flag, or a launch for each"},
    [BH__PTX_FAULT_DIVERGED] = {719, "CHECK_BARRIER",
                                "let all threads of a warp reach the same __syncthreads together"},
    [BH__PTX_FAULT_SHUFFLE] = {719, "CHECK_SHUFFLE",
                               "name every lane that is read in the member mask, and let all of "
                               "them execute the shuffle"},
    [BH__PTX_FAULT_COPYING] = {719, "CHECK_ASYNC_COPY",
                               "wait for the copy (cp.async.wait_group, __pipeline_wait_prior), "
                               "then for the other threads' at a barrier"},
};

const bh__cpu_fault_kind *bh__cpu_fault_kind_of(bh__ptx_fault_kind kind, bool checked) {
    static const bh__cpu_fault_kind barrier = {
        719, "CHECK_BARRIER", "let all threads of the block reach the same barriers"};
    if (checked && kind == BH__PTX_FAULT_BARRIER) return &barrier;
    return (size_t)kind < sizeof kinds / sizeof *kinds ? &kinds[kind] : &kinds[BH__PTX_FAULT_TRAP];
}

static void set_place(const bh__ptx_finding_place *from, bh_finding_place *to) {
    to->line = from->line;
    to->source_line = from->source_line;
    to->access = (from->read ? BH_ACCESS_IN : 0u) | (from->write ? BH_ACCESS_OUT : 0u);
    memcpy(to->block, from->block, sizeof to->block);
    memcpy(to->thread, from->thread, sizeof to->thread);
    snprintf(to->file, sizeof to->file, "%s", from->file);
}

static void set_finding(const bh__cpu_job *job, const bh__ptx_finding *from, bh_finding *to) {
    const bh__cpu_fault_kind *kind = bh__cpu_fault_kind_of(from->fault.kind, true);
    memset(to, 0, sizeof *to);
    to->size = sizeof *to;
    to->bytes = from->fault.size;
    to->address = from->fault.address;
    to->global = from->fault.global;
    to->count = from->count;
    set_place(&from->here, &to->here);
    set_place(&from->other, &to->other);
    snprintf(to->kind, sizeof to->kind, "%s", kind->name);
    snprintf(to->kernel, sizeof to->kernel, "%.127s", job->grid.kernel->name);
    snprintf(to->message, sizeof to->message, "%s", from->fault.text);
    snprintf(to->fix, sizeof to->fix, "%s", kind->fix);
}

uint32_t bh__cpu_findings(const bh__device_lane *lane, uint32_t first, bh_finding *out,
                          uint32_t capacity) {
    uint32_t count = 0, filled = 0;
    const bh__ptx_finding *list = lane->check ? bh__ptx_check_findings(lane->check, &count) : NULL;
    for (; first < count && filled < capacity; first++)
        set_finding(&lane->job, &list[first], &out[filled++]);
    return filled;
}
