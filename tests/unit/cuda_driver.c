/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA worker makes of a driver's answers: its log, its errors, how a GPU is shared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cuda/state.h"
#include "test.h"

/* ---- the log ---- */

static const char *logged; /* all of it */
static unsigned dumped_from;

static int log_current(unsigned *out, unsigned flags) {
    *out = (unsigned)strlen(logged);
    return (int)flags;
}

static int log_dump(unsigned *from, char *out, size_t *size, unsigned flags) {
    dumped_from = *from;
    size_t length = strlen(logged + *from);
    if (length + 1 > *size) return 1;
    memcpy(out, logged + *from, length + 1);
    *size = length;
    *from += (unsigned)length;
    return (int)flags;
}

TEST(the_log_is_one_line_without_what_comes_before_messages) {
    bh__driver driver = {.log_current = log_current, .log_dump = log_dump};
    char text[128];
    logged = "old news\n";
    bh__driver_log_skip(&driver);
    logged = "old news\n"
             "[22:21:32.099][25642][CUDA][E] the grid is [too] large\n"
             "[22:21:32.099][25642][CUDA][E] Returning 1 (CUDA_ERROR_INVALID_VALUE) from cuX\n"
             "[22:21:32.100][25642][CUDA][W][cuY] and odd\n";
    bh__driver_log_take(&driver, text, sizeof text);
    CHECK_STR_EQ(text, "the grid is [too] large; and odd");
    CHECK_EQ(dumped_from, 9);
    bh__driver_log_take(&driver, text, sizeof text);
    CHECK_STR_EQ(text, "");
}

TEST(a_long_log_is_cut_to_fit) {
    bh__driver driver = {.log_current = log_current, .log_dump = log_dump};
    char text[8];
    logged = "";
    bh__driver_log_skip(&driver);
    logged = "[a][b] one\n[a][b] two\n[a][b] three\n";
    bh__driver_log_take(&driver, text, sizeof text);
    CHECK_STR_EQ(text, "one; tw");
}

TEST(a_driver_without_a_log_has_nothing_to_say) {
    bh__driver driver = {0};
    char text[8] = "before";
    bh__driver_log_skip(&driver);
    bh__driver_log_take(&driver, text, sizeof text);
    CHECK_STR_EQ(text, "");
}

/* ---- errors ---- */

static int error_name(int result, const char **out) {
    *out = result == 214 ? "CUDA_ERROR_ECC_UNCORRECTABLE" : "CUDA_ERROR_OF_SOME_KIND";
    return 0;
}

static int error_string(int result, const char **out) {
    *out = result == 214 ? "uncorrectable ECC error encountered" : "some kind";
    return 0;
}

TEST(damaged_memory_is_distinguished_from_a_fault_of_a_kernel) {
    bh__device_instance *device = calloc(1, sizeof *device);
    bh_error error;
    REQUIRE(device != NULL);
    device->cu.error_name = error_name;
    device->cu.error_string = error_string;
    CHECK_EQ(bh__cuda_fail(device, &error, 214, BH_E_INTERNAL, "", "x"), BH_E_FAULT);
    CHECK_EQ(error.status, BH_E_STOPPED);
    CHECK_EQ(error.device_code, 214);
    CHECK_STR_CONTAINS(error.message, "memory is damaged");
    CHECK_STR_CONTAINS(error.fix, "nvidia-smi -q -d ECC");
    CHECK_STR_CONTAINS(error.fix, "reopen the device");
    static const int faults[] = {226, 700, 710, 715, 716, 719};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        CHECK_EQ(bh__cuda_fail(device, &error, faults[i], BH_E_INTERNAL, "", "x"), BH_E_FAULT);
        CHECK_EQ(error.status, BH_E_FAULT);
        CHECK_EQ(error.device_code, faults[i]);
    }
    CHECK_EQ(bh__cuda_fail(device, &error, 2, BH_E_NO_MEMORY, "f", "no room"), BH_E_NO_MEMORY);
    CHECK_STR_EQ(error.message, "no room: CUDA_ERROR_OF_SOME_KIND (2)");
    free(device);
}

TEST(the_drivers_log_is_in_the_error) {
    bh__device_instance *device = calloc(1, sizeof *device);
    bh_error error;
    REQUIRE(device != NULL);
    device->cu.error_name = error_name;
    device->cu.error_string = error_string;
    device->cu.log_current = log_current;
    device->cu.log_dump = log_dump;
    logged = "";
    bh__driver_log_skip(&device->cu);
    logged = "[t][1][CUDA][E] too many registers\n";
    bh__cuda_fail(device, &error, 701, BH_E_LAUNCH, "f", "kernel \"k\" was not taken");
    CHECK_STR_EQ(error.message, "kernel \"k\" was not taken: CUDA_ERROR_OF_SOME_KIND (701); "
                                "the driver says: too many registers");
    free(device);
}

/* ---- too few descriptors ---- */

/* The driver has other words for it. */
static void check_told(int result, bool told) {
    bh__device_instance *device = calloc(1, sizeof *device);
    bh_error error;
    REQUIRE(device != NULL);
    device->cu.error_name = error_name;
    device->cu.error_string = error_string;
    bh__cuda_fail(device, &error, result, BH_E_NO_DEVICE, "see nvidia-smi", "no context");
    CHECK_EQ(strstr(error.fix, "ulimit -n") != NULL, told);
    CHECK_EQ(strstr(error.message, "; it may lack descriptors: ") != NULL, told);
    if (told) CHECK_STR_CONTAINS(error.message, " of 60 are in use");
    bh__driver_tell_limits(result, &error); /* once is enough */
    const char *first = strstr(error.message, "descriptors");
    CHECK(!first || !strstr(first + 1, "descriptors"));
    free(device);
}

TEST(a_lack_of_descriptors_is_told_with_numbers) {
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = 60;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    static const int unclear[] = {100, 304, 999}, clear[] = {2, 209, 700, 719};
    for (size_t i = 0; i < 3; i++) check_told(unclear[i], true);
    for (size_t i = 0; i < 4; i++) check_told(clear[i], false);
    limit.rlim_cur = before;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (before >= 512)
        for (size_t i = 0; i < 3; i++) check_told(unclear[i], false);
}

/* ---- modes ---- */

static int mode, mps; /* -1: not known to the driver */

static int attribute(int *out, int which, int device) {
    (void)device;
    if (which == BH__CU_MPS && mps < 0) return 1;
    *out = which == BH__CU_COMPUTE_MODE ? mode : which == BH__CU_MPS ? mps : 0;
    return 0;
}

static bh__device_facts info_with(int compute_mode, int with_mps) {
    bh__device_instance *device = calloc(1, sizeof *device);
    REQUIRE(device != NULL);
    device->cu.device_attribute = attribute;
    mode = compute_mode;
    mps = with_mps;
    bh__cuda_modes_fill(device);
    bh__device_facts info = device->info;
    free(device);
    return info;
}

TEST(a_gpu_that_anybody_may_use_has_a_standby) {
    bh__device_facts info = info_with(0, 0);
    CHECK_EQ(info.compute_mode, BH_COMPUTE_DEFAULT);
    CHECK_EQ(info.mps, 0);
    CHECK_STR_EQ(info.no_standby, "");
}

TEST(a_gpu_for_one_process_has_none) {
    bh__device_facts info = info_with(3, 0);
    CHECK_EQ(info.compute_mode, BH_COMPUTE_EXCLUSIVE);
    CHECK_STR_CONTAINS(info.no_standby, "Exclusive_Process");
}

TEST(under_mps_there_is_none_whatever_the_mode) {
    for (int m = 0; m <= 3; m += 3) {
        bh__device_facts info = info_with(m, 1);
        CHECK_EQ(info.mps, 1);
        CHECK_STR_CONTAINS(info.no_standby, "MPS");
        CHECK_STR_CONTAINS(info.no_standby, "a fault in one of them ends all of them");
        CHECK(info.no_standby[sizeof info.no_standby - 1] == '\0');
    }
}

TEST(a_driver_that_cannot_be_asked_about_mps_is_judged_by_the_daemons_pipe) {
    char folder[600], pipe[700];
    test_path(folder, sizeof folder, "%s/mps-XXXXXX", test_tmp_dir());
    REQUIRE(mkdtemp(folder) != NULL);
    setenv("CUDA_MPS_PIPE_DIRECTORY", folder, 1);
    CHECK_EQ(info_with(0, -1).mps, 0);
    test_path(pipe, sizeof pipe, "%s/control", folder);
    REQUIRE(mkfifo(pipe, 0600) == 0);
    CHECK_EQ(info_with(0, -1).mps, 1);
    CHECK_EQ(info_with(0, 0).mps, 0); /* one that can be asked knows better */
}

TEST(a_prohibited_gpu_is_refused) {
    bh__device_instance *device = calloc(1, sizeof *device);
    bh_error error;
    REQUIRE(device != NULL);
    device->cu.device_attribute = attribute;
    mode = 2;
    CHECK_EQ(bh__cuda_modes_check(device, &error), BH_E_NO_DEVICE);
    CHECK_STR_CONTAINS(error.message, "Prohibited");
    CHECK_STR_CONTAINS(error.fix, "nvidia-smi");
    mode = 3;
    CHECK_EQ(bh__cuda_modes_check(device, &error), BH_OK);
    free(device);
}

/* ---- advice about the driver's managed memory ---- */

enum { THIS_DEVICE = 3, SECOND_CALL_FAILS = 1 };

static char advised[200]; /* "what/where " for each call */
static int advise_fails_at;

static int take_advice(bh__cu_address address, size_t bytes, int advice, int device) {
    CHECK_EQ(address, 0x7000 + 64);
    CHECK_EQ(bytes, 128);
    size_t used = strlen(advised);
    snprintf(advised + used, sizeof advised - used, "%d/%s ", advice,
             device == BH__CU_THE_HOST ? "host"
             : device == THIS_DEVICE   ? "device"
                                       : "?");
    return advise_fails_at-- == 0 ? 801 : BH__CU_OK;
}

static bh_status advise_driver(uint32_t advice, uint32_t changed, bh_error *error) {
    bh__device_instance *device = calloc(1, sizeof *device);
    bh__cuda_managed memory = {.id = 9, .address = 0x7000, .bytes = 4096};
    REQUIRE(device != NULL);
    device->cu.managed_advise = take_advice;
    device->cu.error_name = error_name;
    device->cu.error_string = error_string;
    device->ordinal = THIS_DEVICE;
    device->managed = &memory;
    device->managed_count = 1;
    advised[0] = '\0';
    bh__advice_message what = {
        .chunk = 9, .advice = advice, .changed = changed, .offset = 64, .bytes = 128};
    bh_status status = bh__cuda_managed_advise(device, &what, error);
    free(device);
    return status;
}

/* Of the driver's numbers an odd one sets, and the next takes back. */
TEST(advice_becomes_one_call_for_each_kind_that_changes) {
    const uint32_t device = BH_ADVISE_PREFER_DEVICE, host = BH_ADVISE_PREFER_HOST,
                   mostly = BH_ADVISE_READ_MOSTLY, by_device = BH_ADVISE_ACCESSED_BY_DEVICE,
                   by_host = BH_ADVISE_ACCESSED_BY_HOST;
    const struct {
        uint32_t advice, changed;
        const char *calls;
    } cases[] = {{device, device, "3/device "},
                 {host, host, "3/host "},
                 {host, device | host, "3/host "}, /* the last one counts */
                 {0, device, "4/device "},
                 {mostly, mostly, "1/device "},
                 {0, mostly, "2/device "},
                 {by_device, by_device, "5/device "},
                 {0, by_device, "6/device "},
                 {by_host, by_host, "5/host "},
                 {0, by_host, "6/host "},
                 {mostly | by_host, mostly | by_host | by_device, "1/device 6/device 5/host "},
                 {mostly, 0, ""}};
    advise_fails_at = -1;
    bh_error error;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CHECK_EQ(advise_driver(cases[i].advice, cases[i].changed, &error), BH_OK);
        CHECK_STR_EQ(advised, cases[i].calls);
    }
}

TEST(advice_that_the_driver_refuses_is_not_supported) {
    bh_error error;
    advise_fails_at = SECOND_CALL_FAILS;
    CHECK_EQ(advise_driver(BH_ADVISE_PREFER_HOST | BH_ADVISE_READ_MOSTLY,
                           BH_ADVISE_PREFER_HOST | BH_ADVISE_READ_MOSTLY, &error),
             BH_E_UNSUPPORTED);
    CHECK_STR_EQ(advised, "3/host 1/device ");
    CHECK_STR_CONTAINS(error.message, "advice 0x4 about 128 bytes");
}

/* ---- where that memory lies ---- */

static const bh__cu_address driver_address = 0x10300; /* a multiple of 256 */
static size_t allocated_bytes;
static bh__cu_address freed;

static int has_all(int *out, int attribute, int device) {
    (void)attribute, (void)device;
    *out = 1;
    return BH__CU_OK;
}

static int managed_alloc(bh__cu_address *out, size_t bytes, unsigned flags) {
    (void)flags;
    *out = driver_address;
    allocated_bytes = bytes;
    return BH__CU_OK;
}

static int managed_free(bh__cu_address address) {
    freed = address;
    return BH__CU_OK;
}

static int managed_prefetch(bh__cu_address address, size_t bytes, int device,
                            bh__cu_stream stream) {
    (void)address, (void)bytes, (void)device, (void)stream;
    return BH__CU_OK;
}

TEST(managed_memory_has_the_alignment_that_is_asked_for) {
    for (uint64_t align = 1; align <= 65536; align *= 2) {
        bh__device_instance *device = calloc(1, sizeof *device);
        REQUIRE(device != NULL);
        device->cu = (bh__driver){.device_attribute = has_all,
                                  .managed_alloc = managed_alloc,
                                  .managed_free = managed_free,
                                  .managed_prefetch = managed_prefetch,
                                  .managed_advise = take_advice};
        bh__chunk chunk = {.id = 4, .flags = BH__CHUNK_DRIVER, .bytes = 4096, .address = align};
        uint64_t address = 0;
        bh_error error;
        CHECK_EQ(bh__cuda_managed_create(device, &chunk, &error, &address), BH_OK);
        CHECK_EQ(address % align, 0);
        CHECK(address >= driver_address);
        CHECK(address + 4096 <= driver_address + allocated_bytes);
        freed = 0;
        bh__cuda_managed_free_all(device);
        CHECK_EQ(freed, driver_address);
        free(device);
    }
}
