/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which compilers are installed. bulkhead-compiler finds out. Its answer, the probe, is stored in
 * memory and in the cache folder, and is valid until something changes that it depends on:
 * environment variables, programs, or the folders that are searched.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/hash.h"
#include "base/siphash.h"
#include "client/compile/cache.h"
#include "client/compile/compiler.h"
#include "client/compile/in_flight.h"
#include "client/compile/inputs.h"
#include "client/compile/probe.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/core/sized.h"
#include "client/module/product.h"
#include "client/process/programs.h"

#define VERIFY_AGAIN_NS     BH__NS_PER_S          /* folders, within one process */
#define TRUST_INCOMPLETE_NS (3600 * BH__NS_PER_S) /* a file that lists unusable compilers */
#define PROBE_TIMEOUT_NS    (30 * BH__NS_PER_S)
#define MAGIC               0x3145424f52504842u

enum { MAX_ENTRIES = 16, MAX_STORED = 8 };

static const char loader_cache[] = "/etc/ld.so.cache";

/* Everything that can change which compilers are found. */
static const char *const variables[] = {"PATH",      "HOME",        "LD_LIBRARY_PATH", "CUDA_HOME",
                                        "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"};
static const char *const searched_folders[] = {"/usr/local",
                                               "/usr/local/cuda/lib64",
                                               "/usr/local/lib",
                                               "/usr/lib",
                                               "/usr/lib/x86_64-linux-gnu",
                                               "/usr/lib/aarch64-linux-gnu",
                                               "/opt",
                                               "/opt/cuda/lib64"};

enum {
    VARIABLES = sizeof variables / sizeof *variables,
    SEARCHED_FOLDERS = sizeof searched_folders / sizeof *searched_folders
};

static pthread_mutex_t probing = PTHREAD_MUTEX_INITIALIZER; /* one thread probes, others wait */
static bh__probe *stored[MAX_STORED];                       /* under bh__compile_lock */
static unsigned next_stored;

const bh__probe_entry *bh__probe_find(const bh__probe *probe, uint32_t compiler) {
    for (size_t i = 0; i < probe->count; i++) {
        if (probe->entries[i].compiler == compiler) return &probe->entries[i];
    }
    return NULL;
}

/* ---- validity ---- */

static const char *value_of(const char *name) {
    const char *value = bh__environment(name);
    return value ? value : "";
}

static bool environment_matches(const char *kept) {
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = value_of(variables[i]);
        size_t length = strlen(value);
        if (strncmp(kept, value, length) != 0 || kept[length] != '\n') return false;
        kept += length + 1;
    }
    return *kept == 0;
}

static const char *environment_text(bh__arena *arena) {
    bh__pack text = {0};
    for (size_t i = 0; i < VARIABLES; i++) {
        const char *value = value_of(variables[i]);
        bh__pack_raw(&text, value, strlen(value));
        bh__pack_raw(&text, "\n", 1);
    }
    char *copy = text.failed ? NULL : bh__arena_copy(arena, (char *)text.data, text.count);
    bh__pack_free(&text);
    return copy;
}

static uint64_t hash_folder(uint64_t sum, const char *path) {
    bh__file_id id;
    bh__file_id_get(path, &id);
    return bh__hash_u64(sum ^ id.inode) ^ bh__hash_u64(id.mtime_ns + 1);
}

/* Installing or removing a compiler changes the folder it is in. */
static uint64_t hash_folders(void) {
    uint64_t sum = 0;
    for (size_t i = 0; i < SEARCHED_FOLDERS; i++) sum = hash_folder(sum, searched_folders[i]);
    for (const char *at = value_of("PATH"); *at;) {
        char folder[1024];
        size_t length = strcspn(at, ":");
        if (length > 0 && length < sizeof folder) {
            memcpy(folder, at, length);
            folder[length] = 0;
            sum = hash_folder(sum, folder);
        }
        at += length + (at[length] == ':');
    }
    return sum;
}

static bool same_file(const char *path, const bh__file_id *id) {
    bh__file_id now;
    bh__file_id_get(path, &now);
    return bh__file_id_equal(&now, id);
}

static bool entry_is_valid(const bh__probe_entry *entry) {
    return !entry || !entry->usable || same_file(entry->path, &entry->id);
}

static bool is_valid(bh__probe *probe, uint32_t compiler) {
    if (compiler == BH_COMPILER_AUTO) {
        const bh__probe_entry *nvrtc = bh__probe_find(probe, BH_COMPILER_NVRTC);
        compiler = nvrtc && nvrtc->usable ? BH_COMPILER_NVRTC : BH_COMPILER_CLANG;
    }
    if (!environment_matches(probe->environment) ||
        !same_file(probe->program, &probe->program_id) ||
        !same_file(loader_cache, &probe->loader_id) ||
        !entry_is_valid(bh__probe_find(probe, compiler)))
        return false;
    uint64_t now = bh__now_ns();
    if (now - atomic_load(&probe->verified_ns) < VERIFY_AGAIN_NS) return true;
    if (hash_folders() != probe->folders) return false;
    atomic_store(&probe->verified_ns, now);
    return true;
}

static const char *folder_key(const char *compiler_dir) {
    if (compiler_dir && *compiler_dir) return compiler_dir;
    const char *named = bh__program_folder();
    return named ? named : "";
}

/* ---- in memory ---- */

void bh__probe_release(bh__probe *probe) {
    if (!probe || atomic_fetch_sub(&probe->references, 1) != 1) return;
    bh__arena_free(&probe->arena);
    free(probe);
}

static bh__probe *find_in_memory(const char *dir, uint32_t compiler) {
    bh__probe *found = NULL;
    bh__compile_lock();
    for (unsigned i = 0; i < MAX_STORED && !found; i++) {
        if (stored[i] && strcmp(stored[i]->dir, dir) == 0) found = stored[i];
    }
    if (found) atomic_fetch_add(&found->references, 1);
    bh__compile_unlock();
    if (!found || is_valid(found, compiler)) return found;
    bh__compile_lock();
    for (unsigned i = 0; i < MAX_STORED; i++) {
        if (stored[i] != found) continue;
        stored[i] = NULL;
        bh__probe_release(found);
    }
    bh__compile_unlock();
    bh__probe_release(found);
    return NULL;
}

static void store_in_memory(bh__probe *probe) {
    atomic_fetch_add(&probe->references, 1);
    bh__compile_lock();
    unsigned place = next_stored++ % MAX_STORED;
    for (unsigned i = 0; i < MAX_STORED; i++) {
        if (stored[i] && strcmp(stored[i]->dir, probe->dir) == 0) place = i;
    }
    bh__probe *before = stored[place];
    stored[place] = probe;
    bh__compile_unlock();
    bh__probe_release(before);
}

/* ---- on disk ---- */

static void file_name(const char *dir, const char *environment, const char *program, char out[40]) {
    /* The hash of one text is the key for the next. */
    const char *const texts[] = {dir, environment, program};
    uint64_t hash[2] = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        uint8_t key[16];
        memcpy(key, hash, sizeof key);
        bh__siphash128(key, texts[i], strlen(texts[i]), hash);
    }
    snprintf(out, 40, "probe-%016llx", (unsigned long long)hash[0]);
}

static void pack(bh__pack *out, const bh__probe *probe) {
    bh__pack_u64(out, MAGIC);
    bh__pack_u64(out, probe->made_ns);
    bh__pack_u64(out, probe->folders);
    bh__pack_text(out, probe->dir);
    bh__pack_text(out, probe->environment);
    bh__pack_text(out, probe->program);
    bh__pack_raw(out, &probe->program_id, sizeof probe->program_id);
    bh__pack_raw(out, &probe->loader_id, sizeof probe->loader_id);
    bh__pack_u64(out, probe->count);
    for (size_t i = 0; i < probe->count; i++) {
        const bh__probe_entry *entry = &probe->entries[i];
        bh__pack_u64(out, entry->compiler);
        bh__pack_u64(out, entry->usable);
        bh__pack_text(out, entry->path);
        bh__pack_text(out, entry->version);
        bh__pack_text(out, entry->why);
        bh__pack_raw(out, &entry->id, sizeof entry->id);
    }
    uint64_t hash[2] = {0};
    if (!out->failed) bh__checksum(out->data, out->count, hash);
    bh__pack_raw(out, hash, sizeof hash);
}

static bool unpack(bh__unpack in, bh__probe *probe) {
    uint64_t hash[2], expected[2];
    if (in.left < sizeof hash) return false;
    in.left -= sizeof hash;
    memcpy(expected, in.data + in.left, sizeof expected);
    bh__checksum(in.data, in.left, hash);
    if (hash[0] != expected[0] || hash[1] != expected[1] || bh__unpack_u64(&in) != MAGIC)
        return false;
    probe->made_ns = bh__unpack_u64(&in);
    probe->folders = bh__unpack_u64(&in);
    probe->dir = bh__unpack_text(&in, &probe->arena);
    probe->environment = bh__unpack_text(&in, &probe->arena);
    probe->program = bh__unpack_text(&in, &probe->arena);
    bh__unpack_raw(&in, &probe->program_id, sizeof probe->program_id);
    bh__unpack_raw(&in, &probe->loader_id, sizeof probe->loader_id);
    probe->count = bh__unpack_count(&in, MAX_ENTRIES);
    probe->entries = bh__arena_alloc(&probe->arena, MAX_ENTRIES, sizeof *probe->entries);
    if (!probe->entries) return false;
    for (size_t i = 0; i < probe->count; i++) {
        bh__probe_entry *entry = &probe->entries[i];
        entry->compiler = (uint32_t)bh__unpack_count(&in, UINT32_MAX);
        entry->usable = bh__unpack_count(&in, 1) != 0;
        entry->path = bh__unpack_text(&in, &probe->arena);
        entry->version = bh__unpack_text(&in, &probe->arena);
        entry->why = bh__unpack_text(&in, &probe->arena);
        bh__unpack_raw(&in, &entry->id, sizeof entry->id);
    }
    return bh__unpack_ended(&in);
}

static bh__probe *probe_new(void) {
    bh__probe *probe = calloc(1, sizeof *probe);
    if (probe) atomic_store(&probe->references, 1);
    return probe;
}

static bool is_complete(const bh__probe *probe) {
    for (size_t i = 0; i < probe->count; i++) {
        if (!probe->entries[i].usable) return false;
    }
    return true;
}

static bh__probe *read_from_disk(const char *cache_dir, const char *dir, const char *program,
                                 uint32_t compiler) {
    bh__folder folder;
    bh__folder_open(cache_dir, false, &folder);
    if (folder.fd < 0) return NULL;
    bh__probe *probe = probe_new();
    const char *environment = probe ? environment_text(&probe->arena) : NULL;
    char name[40];
    uint8_t *data = NULL;
    size_t bytes = 0;
    struct stat info;
    bool good = false;
    if (environment) {
        file_name(dir, environment, program, name);
        good = bh__folder_read(&folder, name, &data, &bytes, &info) == BH__FILE_READ &&
               unpack((bh__unpack){data, bytes, false}, probe) && strcmp(probe->dir, dir) == 0 &&
               strcmp(probe->program, program) == 0 && is_valid(probe, compiler) &&
               (is_complete(probe) || bh__clock_ns() - probe->made_ns < TRUST_INCOMPLETE_NS);
    }
    free(data);
    bh__folder_close(&folder);
    if (good) return probe;
    bh__probe_release(probe);
    return NULL;
}

static void write_to_disk(const char *cache_dir, const bh__probe *probe) {
    bh__folder folder;
    bh__pack file = {0};
    char name[40];
    bh__folder_open(cache_dir, true, &folder);
    if (folder.fd < 0) return;
    pack(&file, probe);
    file_name(probe->dir, probe->environment, probe->program, name);
    if (!file.failed) (void)bh__folder_write(&folder, name, file.data, file.count);
    bh__pack_free(&file);
    bh__folder_close(&folder);
}

/* ---- running bulkhead-compiler ---- */

static const char *copy(bh__arena *arena, bh__bytes text) {
    return bh__arena_copy(arena, (const char *)text.data, text.count);
}

static bool copy_answer(bh__probe *probe, const bh__compile_answer *answer) {
    probe->count = answer->found_count < MAX_ENTRIES ? answer->found_count : MAX_ENTRIES;
    probe->entries = bh__arena_alloc(&probe->arena, MAX_ENTRIES, sizeof *probe->entries);
    if (!probe->entries) return false;
    for (size_t i = 0; i < probe->count; i++) {
        const bh__compiler_found *found = &answer->found[i];
        bh__probe_entry *entry = &probe->entries[i];
        entry->compiler = found->compiler;
        entry->usable = found->usable != 0;
        entry->path = copy(&probe->arena, found->path);
        entry->version = copy(&probe->arena, found->version);
        entry->why = copy(&probe->arena, found->why);
        if (!entry->path || !entry->version || !entry->why) return false;
        bh__file_id_get(entry->path, &entry->id);
    }
    return true;
}

static bh__probe *refuse_memory(bh__probe *probe, bh_error *error) {
    bh__probe_release(probe);
    bh__fail(error, BH_E_NO_HOST_MEMORY, "free host memory",
             "no host memory to look for compilers");
    return NULL;
}

static bh__probe *run_probe(const char *dir, const char *program, bh_error *error) {
    bh__probe *probe = probe_new();
    if (!probe) return refuse_memory(NULL, error);
    probe->dir = bh__arena_copy(&probe->arena, dir, strlen(dir));
    probe->program = bh__arena_copy(&probe->arena, program, strlen(program));
    probe->environment = environment_text(&probe->arena);
    if (!probe->dir || !probe->program || !probe->environment) return refuse_memory(probe, error);
    probe->folders = hash_folders();
    probe->made_ns = bh__clock_ns();
    atomic_store(&probe->verified_ns, bh__now_ns());
    bh__file_id_get(program, &probe->program_id);
    bh__file_id_get(loader_cache, &probe->loader_id);
    bh__compile_job job = {.op = BH__COMPILE_PROBE,
                           .time_limit_ns = PROBE_TIMEOUT_NS,
                           .memory_limit = (uint64_t)8 << 30};
    bh__run_control control = {0};
    bh__arena arena = {0};
    bh__compile_answer answer;
    char *log;
    bh_status status = bh__compiler_run(program, &job, &control, &arena, &answer, &log, error);
    bool taken = status == BH_OK && copy_answer(probe, &answer);
    free(log);
    bh__arena_free(&arena);
    if (taken) return probe;
    if (status == BH_OK) return refuse_memory(probe, error);
    bh__probe_release(probe);
    return NULL;
}

bh__probe *bh__probe_get(const char *compiler_dir, const char *cache_dir, bh__probe_use use,
                         uint32_t compiler, bh_error *error) {
    const char *dir = folder_key(compiler_dir);
    bh__probe *probe = use == BH__PROBE_FRESH ? NULL : find_in_memory(dir, compiler);
    if (probe) return probe;
    char program[4096];
    if (bh__compiler_find(compiler_dir, program, sizeof program, error) != BH_OK) return NULL;
    bh__fork_count(1);
    pthread_mutex_lock(&probing);
    if (use != BH__PROBE_FRESH)
        probe = find_in_memory(dir, compiler); /* stored while this thread waited */
    if (!probe) {
        if (use == BH__PROBE_KNOWN) probe = read_from_disk(cache_dir, dir, program, compiler);
        if (!probe) {
            probe = run_probe(dir, program, error);
            if (probe && use != BH__PROBE_MEMORY) write_to_disk(cache_dir, probe);
        }
        if (probe) store_in_memory(probe);
    }
    pthread_mutex_unlock(&probing);
    bh__fork_count(-1);
    return probe;
}

/* ---- the public call ---- */

bh_status bh_compiler_list(bh_compiler_entry *entries, size_t entry_size, size_t capacity,
                           size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_compiler_entry") != BH_OK)
        return BH_E_INVALID;
    if (bh__refuse_forked()) return BH_E_STOPPED;
    bh_error error;
    bh__probe *probe = bh__probe_get(NULL, NULL, BH__PROBE_FRESH, BH_COMPILER_AUTO, &error);
    if (!probe) return bh__refuse_with(&error);
    for (size_t i = 0; i < probe->count && i < capacity; i++) {
        const bh__probe_entry *found = &probe->entries[i];
        bh_compiler_entry entry = {
            .usable = found->usable,
            .compiler = found->compiler == BH__COMPILER_NVJITLINK ? 0 : found->compiler};
        snprintf(entry.version, sizeof entry.version, "%s", found->version);
        snprintf(entry.path, sizeof entry.path, "%s", found->path);
        snprintf(entry.why, sizeof entry.why, "%s", found->why);
        bh__list_put(entries, entry_size, i, &entry, sizeof entry);
    }
    *count = probe->count;
    bh__probe_release(probe);
    return BH_OK;
}
