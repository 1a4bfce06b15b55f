/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the machine has an NVIDIA GPU, by its PCI devices. */
#include <stdio.h>
#include <sys/stat.h>

#include "client/process/programs.h"
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
