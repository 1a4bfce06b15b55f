/* SPDX-License-Identifier: Apache-2.0 */
/* The files and versions of an NVIDIA driver, found without initializing it. */
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool read_line(const char *path, char *out, size_t size) {
    FILE *file = fopen(path, "re");
    bool got = file != NULL && fgets(out, (int)size, file) != NULL;
    if (file != NULL) fclose(file);
    return got;
}

/* Display and 3D controllers of vendor 10de. */
static unsigned count_gpus(void) {
    static const char folder[] = "/sys/bus/pci/devices";
    unsigned count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
        char path[400], text[32];
        snprintf(path, sizeof path, "%s/%s/vendor", folder, entry->d_name);
        if (!read_line(path, text, sizeof text) || strncmp(text, "0x10de", 6) != 0) continue;
        snprintf(path, sizeof path, "%s/%s/class", folder, entry->d_name);
        if (read_line(path, text, sizeof text) && strncmp(text, "0x03", 4) == 0) count++;
    }
    if (dir != NULL) closedir(dir);
    return count;
}

/* Finds the first device file that exists and cannot be opened. */
static void find_denied(char *out, size_t size) {
    DIR *dir = opendir("/dev");
    for (struct dirent *entry; dir != NULL && out[0] == '\0' && (entry = readdir(dir)) != NULL;) {
        const char *name = entry->d_name;
        char path[300];
        bool ours = strcmp(name, "nvidiactl") == 0 || strcmp(name, "nvidia-uvm") == 0 ||
                    (strncmp(name, "nvidia", 6) == 0 && isdigit((unsigned char)name[6]));
        if (!ours) continue;
        snprintf(path, sizeof path, "/dev/%s", name);
        if (access(path, R_OK | W_OK) != 0) snprintf(out, size, "%.60s", path);
    }
    if (dir != NULL) closedir(dir);
}

/* The first word that looks like a version, "580.65.06". */
static void find_module_version(char *out, size_t size) {
    char line[256] = "";
    char *rest = read_line("/proc/driver/nvidia/version", line, sizeof line) ? line : NULL;
    for (char *word; (word = strsep(&rest, " \t\n")) != NULL;) {
        if (!isdigit((unsigned char)word[0]) || strchr(word, '.') == NULL) continue;
        snprintf(out, size, "%s", word);
        return;
    }
}

typedef struct library_info {
    int version;
    char path[512];
} library_info;

/* Runs in a child process, so that side effects of loading the library stay there. */
static void query_library(int to) {
    library_info answer = {0};
    void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (library == NULL) _exit(1);
    void *found = dlsym(library, "cuDriverGetVersion");
    int (*version)(int *) = NULL;
    memcpy(&version, &found, sizeof version);
    if (version == NULL || version(&answer.version) != 0) answer.version = 0;
    struct link_map *map = NULL;
    char real[PATH_MAX];
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 && map != NULL &&
        realpath(map->l_name, real) != NULL)
        snprintf(answer.path, sizeof answer.path, "%.500s", real);
    _exit(write(to, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
}

static bool load_library(library_info *out) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    pid_t child = fork();
    if (child == 0) query_library(ends[1]);
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], out, sizeof *out) : -1;
    close(ends[0]);
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    out->path[sizeof out->path - 1] = '\0';
    return got == (ssize_t)sizeof *out;
}

void bh__nvidia_look(bh__nvidia *out) {
    memset(out, 0, sizeof *out);
    library_info answer = {0};
    out->gpus = count_gpus();
    out->control = access("/dev/nvidiactl", F_OK) == 0;
    out->library = load_library(&answer);
    if (out->library) {
        static const char before[] = "/libcuda.so.";
        out->version = answer.version;
        snprintf(out->library_path, sizeof out->library_path, "%s", answer.path);
        const char *name = strstr(answer.path, before);
        if (name != NULL && strchr(name + sizeof before - 1, '.') != NULL)
            snprintf(out->library_version, sizeof out->library_version, "%.31s",
                     name + sizeof before - 1);
    }
    find_module_version(out->module_version, sizeof out->module_version);
    find_denied(out->denied, sizeof out->denied);
    out->no_memory_file = out->control && access("/dev/nvidia-uvm", F_OK) != 0;
}
