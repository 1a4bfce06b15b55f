/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX as a client. A profiler names a library in the environment; the library gets tables of
 * function slots and fills in those that it wants called. */
#include "worker/lane/nvtx.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/environment.h"

#define VARIABLE (sizeof(void *) == 8 ? "NVTX_INJECTION64_PATH" : "NVTX_INJECTION32_PATH")

/* The numbers below are NVTX's. */
enum { API_VERSION = 3 };
enum { TABLE_CALLBACKS = 1, TABLE_VERSION = 3 };
enum { CORE = 1, CUDA, OPENCL, CUDART, CORE2, SYNC, MODULES };
enum { RANGE_PUSH = 9, RANGE_POP = 11, NAME_THREAD = 14 };                /* of CORE */
enum { DOMAIN_RANGE_PUSH = 4, DOMAIN_RANGE_POP = 5, DOMAIN_CREATE = 12 }; /* of CORE2 */
enum { MESSAGE_ASCII = 1 };
enum { MAX_SLOTS = 16 };

typedef void (*function)(void);
typedef struct domain domain;

typedef struct event_attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} event_attributes;
_Static_assert(sizeof(void *) != 8 || sizeof(event_attributes) == 48, "as in NVTX 2 and 3");

typedef struct callbacks_table {
    size_t size;
    int (*get_module)(int module, function ***out_table, unsigned *out_slots);
} callbacks_table;

typedef struct version_table {
    size_t size;
    uint32_t version, reserved;
    void (*set_injection_version)(uint32_t version);
} version_table;

bool bh__nvtx_listens;

/* Process-global, because the library that fills the slots in gets no context. All modules are
 * offered, since a profiler may require them; most are never called. Slot 0 is unused. */
static const unsigned slot_counts[MODULES] = {0, 16, 9, 15, 7, 16, 7};
static function functions[MODULES][MAX_SLOTS];
static function *tables[MODULES][MAX_SLOTS + 1]; /* NULL ends each */

static struct {
    int (*push)(const char *text);
    int (*pop)(void);
    int (*domain_push)(domain *where, const event_attributes *attributes);
    int (*domain_pop)(domain *where);
    domain *(*domain_create)(const char *name);
    void (*name_thread)(uint32_t id, const char *name);
    domain *domain;
} profiler;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char problem[512];

static int get_module(int module, function ***out_table, unsigned *out_slots) {
    if (module <= 0 || module >= MODULES) return 0;
    if (out_table) *out_table = tables[module];
    if (out_slots) *out_slots = slot_counts[module];
    return 1;
}

static void set_injection_version(uint32_t version) {
    (void)version;
}

static const void *get_table(uint32_t id) {
    static const callbacks_table callbacks = {sizeof callbacks, get_module};
    static const version_table version = {sizeof version, API_VERSION, 0, set_injection_version};
    if (id == TABLE_CALLBACKS) return &callbacks;
    return id == TABLE_VERSION ? &version : NULL;
}

static void lay_out_tables(void) {
    for (int module = CORE; module < MODULES; module++) {
        for (unsigned i = 1; i < slot_counts[module]; i++)
            tables[module][i] = &functions[module][i];
    }
}

static void take_functions(void) {
    profiler.push = (int (*)(const char *))functions[CORE][RANGE_PUSH];
    profiler.pop = (int (*)(void))functions[CORE][RANGE_POP];
    profiler.name_thread = (void (*)(uint32_t, const char *))functions[CORE][NAME_THREAD];
    profiler.domain_push =
        (int (*)(domain *, const event_attributes *))functions[CORE2][DOMAIN_RANGE_PUSH];
    profiler.domain_pop = (int (*)(domain *))functions[CORE2][DOMAIN_RANGE_POP];
    profiler.domain_create = (domain * (*)(const char *)) functions[CORE2][DOMAIN_CREATE];
    if (!profiler.domain_push || !profiler.domain_pop || !profiler.domain_create)
        profiler.domain_push = NULL;
    else
        profiler.domain = profiler.domain_create("bulkhead");
    bh__nvtx_listens = profiler.domain_push || (profiler.push && profiler.pop);
}

static void report_problem(const char *path, const char *what) {
    snprintf(
        problem, sizeof problem,
        "no NVTX ranges: %s names %.160s, which %.160s. Fix: unset it, or let the profiler set "
        "it",
        VARIABLE, path, what);
}

static void load(void) {
    const char *path = bh__environment(VARIABLE);
    if (!path) return;
    void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        char what[192];
        const char *why = dlerror();
        snprintf(what, sizeof what, "cannot be loaded: %s", why ? why : "no reason is given");
        report_problem(path, what);
        return;
    }
    int (*initialize)(const void *(*get_table)(uint32_t id));
    void *found = dlsym(library, "InitializeInjectionNvtx2");
    memcpy(&initialize, &found, sizeof found);
    lay_out_tables();
    if (found && initialize(get_table)) {
        take_functions();
        return;
    }
    report_problem(path, found ? "failed to start" : "has no function InitializeInjectionNvtx2");
    dlclose(library);
}

const char *bh__nvtx_begin(void) {
    pthread_once(&once, load);
    return problem[0] ? problem : NULL;
}

void bh__nvtx_name_thread(const char *name) {
    if (profiler.name_thread) profiler.name_thread((uint32_t)gettid(), name);
}

void bh__nvtx_push(const char *text) {
    if (profiler.domain_push) {
        event_attributes attributes = {.version = API_VERSION,
                                       .size = sizeof attributes,
                                       .message_type = MESSAGE_ASCII,
                                       .message = text};
        profiler.domain_push(profiler.domain, &attributes);
    } else {
        profiler.push(text);
    }
}

void bh__nvtx_pop(void) {
    if (profiler.domain_push)
        profiler.domain_pop(profiler.domain);
    else
        profiler.pop();
}
