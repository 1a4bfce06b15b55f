/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kinds of devices, the names of devices, and whether the hardware is there. */
#include "client/process/kinds.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/core/error.h"
#include "wire/message.h"

/* ---- the hardware ---- */

/* The number in a file of a PCI device, "0x10de"; 0: there is none. */
static unsigned long pci_number(const char *folder, const char *device, const char *file) {
    char path[512], text[32] = "";
    snprintf(path, sizeof path, "%.200s/%.200s/%s", folder, device, file);
    FILE *opened = fopen(path, "re");
    if (!opened) return 0;
    if (!fgets(text, sizeof text, opened)) text[0] = 0;
    fclose(opened);
    return strtoul(text, NULL, 16);
}

bool bh__pci_has_nvidia(const char *folder) {
    enum { NVIDIA = 0x10de, DISPLAY = 0x03 }; /* vendor; class of graphics and 3D controllers */
    DIR *devices = opendir(folder);
    bool found = false;
    for (struct dirent *entry; devices && !found && (entry = readdir(devices));)
        found = entry->d_name[0] != '.' && pci_number(folder, entry->d_name, "vendor") == NVIDIA &&
                pci_number(folder, entry->d_name, "class") >> 16 == DISPLAY;
    if (devices) closedir(devices);
    return found;
}

static bool has_nvidia(void) {
    return access("/dev/nvidiactl", F_OK) == 0 ||
           access("/proc/driver/nvidia/version", F_OK) == 0 ||
           bh__pci_has_nvidia("/sys/bus/pci/devices");
}

/* ---- the kinds ---- */

/* A GPU's driver is slow to start, more so if several processes start at once. */
const bh__device_kind bh__device_kinds[BH__DEVICE_KINDS] = {
    {.name = "cuda",
     .numbered = true,
     .boot_s = 30,
     .traits = BH__TRAIT_OPAQUE_MEMORY | BH__TRAIT_ORDERS_WAIT | BH__TRAIT_ENDS_SLOWLY |
               BH__TRAIT_LOADS_CUBIN | BH__TRAIT_INTERLEAVES,
     .needs = "NVIDIA device",
     .found = has_nvidia},
    {.name = "cpu", .boot_s = 10, .native = true},
};

const bh__device_kind *bh__device_kind_find(const char *name) {
    for (size_t i = 0; i < BH__DEVICE_KINDS; i++) {
        if (strcmp(name, bh__device_kinds[i].name) == 0) return &bh__device_kinds[i];
    }
    return NULL;
}

bool bh__device_kind_may(const char *name, uint32_t trait) {
    const bh__device_kind *kind = bh__device_kind_find(name);
    return !kind || (kind->traits & trait);
}

/* ---- names ---- */

static const bh__device_kind *choose(void) {
    size_t i = 0;
    while (i < BH__DEVICE_KINDS - 1 && bh__device_kinds[i].found && !bh__device_kinds[i].found())
        i++;
    return &bh__device_kinds[i];
}

/* Finds the kind that the name begins with. The rest is empty or the number of a numbered kind. */
static const bh__device_kind *split(const char *name, uint32_t *out_index) {
    size_t length = strcspn(name, ":");
    for (size_t i = 0; i < BH__DEVICE_KINDS; i++) {
        const bh__device_kind *kind = &bh__device_kinds[i];
        if (strlen(kind->name) != length || strncmp(name, kind->name, length) != 0) continue;
        if (!name[length]) return kind;
        const char *digits = name + length + 1;
        if (!kind->numbered || *digits < '0' || *digits > '9') return NULL;
        char *end;
        unsigned long index = strtoul(digits, &end, 10);
        if (*end || index >= 1024) return NULL;
        *out_index = (uint32_t)index;
        return kind;
    }
    return NULL;
}

bh_status bh__device_name_parse(const char *name, char kind[16], uint32_t *out_index) {
    *out_index = 0;
    bool any = !name || !*name || strcmp(name, "auto") == 0;
    const bh__device_kind *found = any ? choose() : split(name, out_index);
    if (!found)
        return bh__refuse(BH_E_INVALID, "use auto, cpu, cuda, cuda:N, or a list such as cuda,cpu",
                          "\"%.60s\" is not the name of a device", name);
    snprintf(kind, 16, "%s", found->name);
    return BH_OK;
}

void bh__device_name_write(const char *kind, uint32_t index, char *out, size_t bytes) {
    const bh__device_kind *found = bh__device_kind_find(kind);
    if (found && found->numbered)
        snprintf(out, bytes, "%s:%u", kind, index);
    else
        snprintf(out, bytes, "%s", kind);
}
