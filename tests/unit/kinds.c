/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of devices: their names, and whether the machine has an NVIDIA GPU, by its PCI devices. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "client/process/kinds.h"
#include "test.h"

static void write_file(const char *folder, const char *device, const char *file, const char *text) {
    char path[800];
    snprintf(path, sizeof path, "%s/%s", folder, device);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, device, file);
    FILE *out = fopen(path, "w");
    REQUIRE(out != NULL);
    fputs(text, out);
    fclose(out);
}

TEST(a_gpu_without_a_driver_is_seen) {
    char folder[600];
    snprintf(folder, sizeof folder, "%s/pci", test_tmp_dir());
    CHECK(!bh__pci_has_nvidia(folder)); /* there is no such folder */
    REQUIRE(mkdir(folder, 0700) == 0);
    CHECK(!bh__pci_has_nvidia(folder));
    write_file(folder, "0000:00:02.0", "vendor", "0x8086\n"); /* somebody else's graphics */
    write_file(folder, "0000:00:02.0", "class", "0x030000\n");
    write_file(folder, "0000:3b:00.1", "vendor", "0x10de\n"); /* the sound of a GPU */
    write_file(folder, "0000:3b:00.1", "class", "0x040300\n");
    write_file(folder, "0000:3c:00.0", "vendor", "");
    CHECK(!bh__pci_has_nvidia(folder));
    write_file(folder, "0000:3b:00.0", "vendor", "0x10de\n");
    CHECK(!bh__pci_has_nvidia(folder)); /* of no class */
    write_file(folder, "0000:3b:00.0", "class", "0x030200\n");
    CHECK(bh__pci_has_nvidia(folder));
}

static void check_name(const char *name, const char *expected, uint32_t number) {
    char kind[16] = "", again[32];
    uint32_t index = 77;
    CHECK_EQ(bh__device_name_parse(name, kind, &index), BH_OK);
    CHECK_STR_EQ(kind, expected);
    CHECK_EQ(index, number);
    bh__device_name_write(kind, index, again, sizeof again);
    if (strchr(name, ':') || strcmp(name, "cpu") == 0) CHECK_STR_EQ(again, name);
}

TEST(names_of_devices_are_split_and_written) {
    check_name("cpu", "cpu", 0);
    check_name("cuda", "cuda", 0);
    check_name("cuda:0", "cuda", 0);
    check_name("cuda:1023", "cuda", 1023);
    static const char *const wrong[] = {"cpu:0",   "cpu:",    "cuda:", "cuda:-1", "cuda:1024",
                                        "cuda:1x", "cuda: 1", "cud",   "cudas",   "CPU",
                                        ":",       ":1",      "autos"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char kind[16];
        uint32_t index;
        CHECK_EQ(bh__device_name_parse(wrong[i], kind, &index), BH_E_INVALID);
    }
}
