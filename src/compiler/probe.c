/* SPDX-License-Identifier: Apache-2.0 */
/* Finds compilers: NVRTC and nvJitLink in the loader's path, the toolkit's folder and Python's
 * packages; clang in PATH. */
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"
#include "compiler/compile.h"

typedef struct search {
    bh__arena *arena;
    size_t name_count;
    const char *const *names;  /* of the library, newest first, NULL after them */
    const char *const *wheels; /* its folders below Python's site-packages */
    const char *entry;         /* a symbol that it must have */
    bh__library *out;
    char *reason; /* why the first one that exists could not be loaded */
} search;

static const char *const nvrtc_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2",
                                          "libnvrtc.so", NULL};
static const char *const nvrtc_wheels[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", NULL};
static const char *const jitlink_names[] = {"libnvJitLink.so.13", "libnvJitLink.so.12",
                                            "libnvJitLink.so", NULL};
static const char *const jitlink_wheels[] = {"nvidia/cu13/lib", "nvidia/nvjitlink/lib", NULL};

static bool take(search *h, const char *name, const char *where) {
    void *handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *reason = dlerror();
        if (strchr(name, '/') != NULL && access(name, F_OK) == 0 && h->reason == NULL)
            h->reason = bh__text_format(h->arena, "%s", reason ? reason : "no reason given");
        return false;
    }
    void *symbol = dlsym(handle, h->entry);
    Dl_info info;
    char real[PATH_MAX];
    if (symbol == NULL || dladdr(symbol, &info) == 0 || realpath(info.dli_fname, real) == NULL) {
        if (h->reason == NULL)
            h->reason = bh__text_format(h->arena, "%s has no %s", name, h->entry);
        dlclose(handle);
        return false;
    }
    h->out->handle = handle;
    h->out->path = bh__text_format(h->arena, "%s", real);
    h->out->why = bh__text_format(h->arena, "found %s", where);
    return true;
}

static bool look_in(search *h, const char *folder, const char *where) {
    char path[PATH_MAX];
    for (size_t i = 0; h->names[i] != NULL; i++) {
        int length = snprintf(path, sizeof path, "%s/%s", folder, h->names[i]);
        if (length > 0 && length < (int)sizeof path && access(path, F_OK) == 0 &&
            take(h, path, where))
            return true;
    }
    return false;
}

static bool look_in_toolkit(search *h, const char *root, const char *where) {
    static const char *const parts[] = {"lib64", "lib", "targets/x86_64-linux/lib",
                                        "targets/sbsa-linux/lib", "targets/aarch64-linux/lib"};
    char folder[PATH_MAX];
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        int length = snprintf(folder, sizeof folder, "%s/%s", root, parts[i]);
        if (length > 0 && length < (int)sizeof folder && look_in(h, folder, where)) return true;
    }
    return false;
}

/* Below a Python's folder: lib/python3.X/site-packages, and Debian's dist-packages. */
static bool look_in_python(search *h, const char *root, const char *where) {
    static const char *const places[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages",
                                         "lib/python3/dist-packages", "site-packages"};
    char pattern[PATH_MAX];
    bool found = false;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        for (size_t w = 0; h->wheels[w] != NULL && !found; w++) {
            int length =
                snprintf(pattern, sizeof pattern, "%s/%s/%s", root, places[p], h->wheels[w]);
            glob_t hits;
            if (length < 0 || length >= (int)sizeof pattern) continue;
            if (glob(pattern, 0, NULL, &hits) == 0) {
                /* Sorted by name: the newest Python is the last. */
                for (size_t i = hits.gl_pathc; i > 0 && !found; i--)
                    found = look_in(h, hits.gl_pathv[i - 1], where);
                globfree(&hits);
            }
        }
    }
    return found;
}

static bool look_below(search *h, const char *pattern, const char *where,
                       bool (*look)(search *, const char *, const char *)) {
    glob_t hits;
    bool found = false;
    if (glob(pattern, 0, NULL, &hits) != 0) return false;
    for (size_t i = hits.gl_pathc; i > 0 && !found; i--)
        found = look(h, hits.gl_pathv[i - 1], where);
    globfree(&hits);
    return found;
}

static bool look_in_homes(search *h) {
    const char *home = bh__environment("HOME");
    char pattern[PATH_MAX];
    if (home == NULL || home[0] != '/') return false;
    static const char *const pythons[] = {".local", ".pyenv/versions/*", "miniconda3", "anaconda3",
                                          "miniforge3"};
    for (size_t i = 0; i < sizeof pythons / sizeof *pythons; i++) {
        int length = snprintf(pattern, sizeof pattern, "%s/%s", home, pythons[i]);
        if (length > 0 && length < (int)sizeof pattern &&
            look_below(h, pattern, "in a Python of this user's", look_in_python))
            return true;
    }
    return false;
}

static bool look_everywhere(search *h) {
    static const char *const toolkits[] = {"CUDA_HOME", "CUDA_PATH"};
    static const char *const pythons[] = {"VIRTUAL_ENV", "CONDA_PREFIX"};
    for (size_t i = 0; h->names[i] != NULL; i++) {
        if (take(h, h->names[i], "in the loader's path")) return true;
    }
    for (size_t i = 0; i < 2; i++) {
        const char *root = bh__environment(toolkits[i]);
        if (root != NULL && root[0] == '/' && look_in_toolkit(h, root, "in the toolkit's folder"))
            return true;
    }
    if (look_in_toolkit(h, "/usr/local/cuda", "in the toolkit's folder")) return true;
    if (look_below(h, "/usr/local/cuda-*", "in the toolkit's folder", look_in_toolkit)) return true;
    for (size_t i = 0; i < 2; i++) {
        const char *root = bh__environment(pythons[i]);
        if (root != NULL && root[0] == '/' && look_in_python(h, root, "in the active Python"))
            return true;
        /* Conda's own packages of the toolkit. */
        if (root != NULL && root[0] == '/' && look_in_toolkit(h, root, "in the active Python"))
            return true;
    }
    return look_in_python(h, "/usr/local", "in a Python of the system") ||
           look_in_python(h, "/usr", "in a Python of the system") || look_in_homes(h) ||
           look_in_python(h, "/opt/conda", "in a Python of the system");
}

static void open_library(search *h, const char *path) {
    bool found = path[0] != 0 ? take(h, path, "where the job says") : look_everywhere(h);
    if (found) return;
    h->out->handle = NULL;
    h->out->path = (char *)path;
    if (h->reason != NULL)
        h->out->why = bh__text_format(h->arena, "cannot be loaded: %s", h->reason);
    else if (path[0] != 0)
        h->out->why = bh__text_format(h->arena, "%s does not exist", path);
    else
        h->out->why = bh__text_format(
            h->arena,
            "no %s in the loader's path, CUDA_HOME, /usr/local/cuda* or Python's packages",
            h->names[h->name_count - 1]);
}

void bh__library_open_nvrtc(bh__arena *arena, const char *path, bh__library *out) {
    search h = {arena,
                sizeof nvrtc_names / sizeof *nvrtc_names - 1,
                nvrtc_names,
                nvrtc_wheels,
                "nvrtcVersion",
                out,
                NULL};
    open_library(&h, path);
}

void bh__library_open_jitlink(bh__arena *arena, const char *path, bh__library *out) {
    search h = {arena,
                sizeof jitlink_names / sizeof *jitlink_names - 1,
                jitlink_names,
                jitlink_wheels,
                "nvJitLinkVersion",
                out,
                NULL};
    open_library(&h, path);
}

/* ---- clang ---- */

char *bh__clang_version(bh__arena *arena, const char *path) {
    const char *argv[] = {path, "--version", NULL};
    bh__child_end end;
    if (!bh__child_run(arena, argv, -1, &end) || end.exit_code != 0) return NULL;
    const char *at = strstr(bh__chars(end.output), "clang version ");
    if (at == NULL) return NULL;
    at += strlen("clang version ");
    size_t length = strspn(at, "0123456789.");
    return length > 0 ? bh__arena_copy(arena, at, length) : NULL;
}

/* The first `name` in PATH that can be executed, in `out`. */
static bool find_in_path(const char *name, char *out, size_t size) {
    const char *path = bh__environment("PATH");
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *at != 0;) {
        size_t length = strcspn(at, ":");
        if (length > 0 && at[0] == '/') {
            int written = snprintf(out, size, "%.*s/%s", (int)length, at, name);
            if (written > 0 && written < (int)size && access(out, X_OK) == 0) return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

char *bh__clang_find(bh__arena *arena, char **out_version, char **out_why) {
    char path[PATH_MAX], name[32];
    char *old = NULL;
    *out_version = *out_why = NULL;
    /* clang-NN, from a version that is newer than any today down to the oldest, then the plain
     * name. */
    for (int major = 39; major >= BH__CLANG_MIN_VERSION - 1; major--) {
        snprintf(name, sizeof name, "clang-%d", major);
        if (major < BH__CLANG_MIN_VERSION) snprintf(name, sizeof name, "clang");
        if (!find_in_path(name, path, sizeof path)) continue;
        char *version = bh__clang_version(arena, path);
        if (version == NULL) continue;
        if (atoi(version) >= BH__CLANG_MIN_VERSION) {
            *out_version = bh__text_format(arena, "clang %s", version);
            *out_why = bh__text_format(arena, "found in PATH");
            return bh__text_format(arena, "%s", path);
        }
        old = bh__text_format(arena, "%s is clang %s; %d or later is required", path, version,
                              BH__CLANG_MIN_VERSION);
    }
    *out_why =
        old ? old : bh__text_format(arena, "no clang-%d or later in PATH", BH__CLANG_MIN_VERSION);
    return bh__text_format(arena, "%s", "");
}

/* ---- the answer to a probe ---- */

static void fill_found(bh__compiler_found *out, uint32_t compiler, bool usable, const char *path,
                       const char *version, const char *why) {
    *out = (bh__compiler_found){compiler, usable, bh__bytes_of(path), bh__bytes_of(version),
                                bh__bytes_of(why)};
}

bh_status bh__compile_probe(bh__compile *c) {
    bh__compiler_found *found = bh__arena_alloc(c->arena, 3, sizeof *found);
    if (found == NULL) return bh__compile_no_memory(c);
    bh__library library;
    int major = 0, minor = 0;
    memset(&library, 0, sizeof library);
    bh__library_open_nvrtc(c->arena, "", &library);
    bool usable = library.handle && bh__nvrtc_version(&library, &major, &minor) == BH_OK;
    bool old = usable && (major < 11 || (major == 11 && minor < 8));
    char *version = usable ? bh__text_format(c->arena, "nvrtc %d.%d", major, minor) : NULL;
    if (old)
        library.why = bh__text_format(c->arena, "NVRTC %d.%d at %s; 11.8 or later is required",
                                      major, minor, library.path);
    fill_found(&found[0], BH_COMPILER_NVRTC, usable && !old, library.path, version, library.why);

    char *why;
    char *path = bh__clang_find(c->arena, &version, &why);
    if (path == NULL) return bh__compile_no_memory(c);
    fill_found(&found[1], BH_COMPILER_CLANG, path[0] != 0, path, version, why);

    unsigned link_major = 0, link_minor = 0;
    memset(&library, 0, sizeof library);
    bh__library_open_jitlink(c->arena, "", &library);
    usable = library.handle && bh__jitlink_version(&library, &link_major, &link_minor) == BH_OK;
    version = usable ? bh__text_format(c->arena, "nvJitLink %u.%u", link_major, link_minor) : NULL;
    fill_found(&found[2], BH__COMPILER_NVJITLINK, usable, library.path, version, library.why);
    c->answer->found = found;
    c->answer->found_count = 3;
    return BH_OK;
}
