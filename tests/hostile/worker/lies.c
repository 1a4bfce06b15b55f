/* SPDX-License-Identifier: Apache-2.0 */
/* Lies: about the device, about modules, about memory that was made, about work that was done. */
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile.h"

/* ---- the device ---- */

static void info_of_nothing(bh__device_facts *info, uint64_t *granularity) {
    (void)granularity;
    memset(info, 0, sizeof *info);
}

static void info_of_everything(bh__device_facts *info, uint64_t *granularity) {
    (void)granularity;
    memset(info, 0xff, sizeof *info); /* no text ends */
    info->no_standby[0] = 0;
}

static void info_by_chance(bh__device_facts *info, uint64_t *granularity) {
    uint32_t *words = (uint32_t *)(void *)info;
    (void)granularity;
    for (uint32_t i = 0, n = 1 + below(20); i < n; i++)
        words[below(sizeof *info / sizeof *words)] = (uint32_t)odd_number();
}

static void info_without_standby(bh__device_facts *info, uint64_t *granularity) {
    (void)granularity;
    memset(info->no_standby, 'n', sizeof info->no_standby);
}

static void odd_granularity(bh__device_facts *info, uint64_t *granularity) {
    (void)info;
    *granularity = odd_number();
}

static void huge_granularity(bh__device_facts *info, uint64_t *granularity) {
    (void)info;
    *granularity = UINT64_C(1) << (16 + below(48));
}

static void small_granularity(bh__device_facts *info, uint64_t *granularity) {
    (void)info;
    *granularity = 4096;
}

static void large_granularity(bh__device_facts *info, uint64_t *granularity) {
    (void)info;
    *granularity = 64 << 20;
}

/* A trait relaxes a check. Plain memory and plain processes have none. */
static void other_traits(bh__device_facts *info, uint64_t *granularity) {
    (void)info;
    (void)granularity;
    hostile.ops->traits = 1u << below(one_in(2) ? 4 : 32);
}

/* ---- modules ---- */

static void blob_bytes(uint8_t *blob, uint64_t bytes) {
    for (uint32_t i = 0, n = 1 + below(20); i < n; i++)
        blob[chance_next(&hostile.chance) % bytes] = (uint8_t)odd_number();
}

static void blob_counts(uint8_t *blob, uint64_t bytes) {
    bh__module_blob *head = (bh__module_blob *)(void *)blob;
    (void)bytes;
    if (one_in(2))
        head->kernel_count = (uint32_t)odd_number();
    else
        head->variable_count = (uint32_t)odd_number();
}

static void blob_offsets(uint8_t *blob, uint64_t bytes) {
    bh__module_blob *head = (bh__module_blob *)(void *)blob;
    uint64_t *which[] = {&head->kernels_offset, &head->variables_offset, &head->total_bytes};
    *which[below(3)] = one_in(2) ? odd_number() : bytes - below(100);
}

static void blob_names(uint8_t *blob, uint64_t bytes) {
    memset(blob + bytes - 1 - below(40), 'n', 1);
    blob[bytes - 1] = 'n';
}

static void blob_kernels(uint8_t *blob, uint64_t bytes) {
    const bh__module_blob *head = (const bh__module_blob *)(void *)blob;
    if (head->kernel_count == 0) return;
    bh__blob_kernel *kernels = (bh__blob_kernel *)(void *)(blob + head->kernels_offset);
    uint32_t *words = (uint32_t *)(void *)&kernels[below(head->kernel_count)];
    (void)bytes;
    words[below(sizeof *kernels / 4)] = (uint32_t)odd_number();
}

/* Sound in itself: the first two parameters of each kernel, where they are of one size, change
 * places. */
static void blob_swapped(uint8_t *blob, uint64_t bytes) {
    const bh__module_blob *head = (const bh__module_blob *)(void *)blob;
    const bh__blob_kernel *kernels = (bh__blob_kernel *)(void *)(blob + head->kernels_offset);
    (void)bytes;
    for (uint32_t i = 0; i < head->kernel_count; i++) {
        bh__blob_param *params = (bh__blob_param *)(void *)(blob + kernels[i].params_offset);
        if (kernels[i].param_count < 2 || params[0].bytes != params[1].bytes) continue;
        uint32_t offset = params[0].offset;
        params[0].offset = params[1].offset;
        params[1].offset = offset;
    }
}

static void blob_variables(uint8_t *blob, uint64_t bytes) {
    const bh__module_blob *head = (const bh__module_blob *)(void *)blob;
    (void)bytes;
    for (uint32_t i = 0; i < head->variable_count; i++) {
        bh__blob_variable *all = (bh__blob_variable *)(void *)(blob + head->variables_offset);
        all[i].bytes = one_in(2) ? UINT64_C(1) << 63 : odd_number();
    }
}

/* ---- memory ---- */

static int chunk_too_small(uint64_t bytes) {
    return memory_file(below(2) ? 0 : bytes / 2, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
}

static int chunk_unsealed(uint64_t bytes) {
    return memory_file(bytes, 0);
}

static int chunk_sealed(uint64_t bytes) {
    return memory_file(bytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

static int chunk_odd(uint64_t bytes) {
    (void)bytes;
    return odd_descriptor();
}

static int blob_huge(uint64_t bytes) {
    (void)bytes;
    return memory_file(UINT64_C(1) << 30, 0);
}

/* A megabyte of kernels that have one name and the same parameters: all the rest of it. */
static int blob_repeated(uint64_t bytes) {
    enum { BLOB = 1 << 20, KERNELS = 1000 };
    uint64_t rest = sizeof(bh__module_blob) + KERNELS * sizeof(bh__blob_kernel);
    bh__module_blob head = {.magic = BH__BLOB_MAGIC,
                            .kernel_count = KERNELS,
                            .kernels_offset = sizeof head,
                            .variables_offset = sizeof head,
                            .total_bytes = BLOB};
    bh__blob_kernel kernel = {.name_offset = BLOB - 8,
                              .params_offset = (rest + 7) & ~UINT64_C(7),
                              .param_count =
                                  (uint32_t)((BLOB - rest - 8) / sizeof(bh__blob_param))};
    int file = memory_file(BLOB, 0);
    uint8_t *blob = mmap(NULL, BLOB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    (void)bytes;
    if (blob == MAP_FAILED) _exit(1);
    memcpy(blob, &head, sizeof head);
    for (uint64_t i = 0; i < KERNELS; i++)
        memcpy(blob + sizeof head + i * sizeof kernel, &kernel, sizeof kernel);
    munmap(blob, BLOB);
    return file;
}

/* ---- work ---- */

static bool done_nothing(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    (void)error;
    *status = BH_OK;
    return one_in(2);
}

/* Texts end: here it is the worker's own code that reads them. */
static void garble(bh_error *error, char with) {
    memset(error, with, sizeof *error);
    error->message[sizeof error->message - 1] = error->fix[sizeof error->fix - 1] = 0;
    error->device_name[sizeof error->device_name - 1] = error->kernel[sizeof error->kernel - 1] = 0;
}

static bool refused_by_chance(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    if (!one_in(4)) return false;
    garble(error, one_in(2) ? 'r' : 0x1b);
    *status = error->status = one_in(3) ? (bh_status)odd_number() : (bh_status)(1 + below(24));
    return *status != BH_OK;
}

static bool speaks_to_terminals(const bh__work *work, bh_status *status, bh_error *error) {
    if (work->op != BH__OP_LAUNCH) return false;
    garble(error, 0x1b);
    *status = error->status = BH_E_LAUNCH;
    return true;
}

/* An order to a terminal in each two bytes, so that one is read in parts, wherever that is. */
static bool speaks_in_parts(const bh__work *work, bh_status *status, bh_error *error) {
    char text[3001];
    if (work->op != BH__OP_LAUNCH) return false;
    for (size_t i = 0; i < sizeof text; i++) text[i] = i % 2 ? '\x9b' : '\xc2';
    ssize_t ignored = write(2, text, sizeof text);
    (void)ignored;
    memset(error, 0, sizeof *error);
    memcpy(error->message, "a fault", 8);
    *status = error->status = BH_E_FAULT;
    return true;
}

static bool fault_by_chance(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    garble(error, one_in(2) ? 'f' : 0x1b);
    *status = BH_E_FAULT;
    error->status = one_in(8) ? BH_E_STOPPED : BH_E_FAULT;
    return one_in(8);
}

static bool slow_by_chance(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    (void)status;
    (void)error;
    if (one_in(10)) nap_us(300000);
    return false;
}

static bool never_done(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    (void)status;
    (void)error;
    while (one_in(20)) pause();
    return false;
}

static bool crash_at_work(const bh__work *work, bh_status *status, bh_error *error) {
    (void)work;
    (void)status;
    (void)error;
    if (one_in(20)) raise(one_in(2) ? SIGSEGV : SIGKILL);
    return false;
}

const hostility lies[] = {
    {.name = "info_of_nothing", .describe = info_of_nothing},
    {.name = "info_of_everything", .describe = info_of_everything},
    {.name = "info_by_chance", .describe = info_by_chance},
    {.name = "info_without_standby", .describe = info_without_standby},
    {.name = "other_traits", .describe = other_traits},
    {.name = "odd_granularity", .describe = odd_granularity},
    {.name = "huge_granularity", .describe = huge_granularity},
    {.name = "small_granularity", .describe = small_granularity},
    {.name = "large_granularity", .describe = large_granularity},
    {.name = "blob_bytes", .describe_module = blob_bytes},
    {.name = "blob_counts", .describe_module = blob_counts},
    {.name = "blob_offsets", .describe_module = blob_offsets},
    {.name = "blob_swapped", .describe_module = blob_swapped},
    {.name = "blob_names", .describe_module = blob_names},
    {.name = "blob_kernels", .describe_module = blob_kernels},
    {.name = "blob_variables", .describe_module = blob_variables},
    {.name = "chunk_too_small", .descriptor = chunk_too_small},
    {.name = "chunk_unsealed", .descriptor = chunk_unsealed},
    {.name = "chunk_sealed", .descriptor = chunk_sealed},
    {.name = "chunk_odd", .descriptor = chunk_odd},
    {.name = "blob_huge", .descriptor = blob_huge},
    {.name = "done_nothing", .execute = done_nothing},
    {.name = "refused_by_chance", .execute = refused_by_chance},
    {.name = "speaks_to_terminals", .execute = speaks_to_terminals},
    {.name = "fault_by_chance", .execute = fault_by_chance},
    {.name = "slow_by_chance", .execute = slow_by_chance},
    {.name = "never_done", .execute = never_done},
    {.name = "crash_at_work", .execute = crash_at_work},
    {.name = "blob_repeated", .descriptor = blob_repeated},
    {.name = "speaks_in_parts", .execute = speaks_in_parts},
};
const size_t lie_count = sizeof lies / sizeof *lies;
