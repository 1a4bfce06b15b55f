/* SPDX-License-Identifier: Apache-2.0 */
/* A profiler's library as NVTX loads it: writes what it is told, a line each, to the file that
 * PROFILER_FILE names. PROFILER_MODE has it take part of the functions, or misbehave. */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void (*function)(void);

/* As NVTX lays them out; written down here once more, so that a slip in one place shows. */
struct callbacks {
    size_t size;
    int (*get_module)(int module, function ***table, unsigned *slots);
};
struct version {
    size_t size;
    uint32_t version, reserved;
    void (*set)(uint32_t version);
};
struct attributes {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type;
    int32_t reserved;
    uint64_t payload;
    int32_t message_type;
    union {
        const char *ascii;
        const void *other;
    } message;
};

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id));

static char domain_made;

/* One write for each line, so that lines of several threads and processes stay whole. */
__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
    char line[512];
    int length = snprintf(line, sizeof line, "%d %d ", (int)getpid(), (int)gettid());
    va_list list;
    va_start(list, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, list);
    va_end(list);
    if (length > (int)sizeof line - 2) length = sizeof line - 2;
    line[length++] = '\n';
    const char *path = getenv("PROFILER_FILE");
    int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0) return;
    ssize_t written = write(fd, line, (size_t)length);
    (void)written;
    close(fd);
}

static int push(const char *text) {
    say("push %s", text);
    return 0;
}

static int pop(void) {
    say("pop");
    return 0;
}

static void name_thread(uint32_t id, const char *name) {
    say("thread %u %s", id, name);
}

static void *domain_create(const char *name) {
    say("domain %s", name);
    return &domain_made;
}

static int domain_push(void *domain, const struct attributes *what) {
    if (domain != &domain_made || what->version != 3 || what->size != sizeof *what ||
        what->message_type != 1)
        say("bad push");
    else
        say("push %s", what->message.ascii);
    return 0;
}

static int domain_pop(void *domain) {
    say(domain == &domain_made ? "pop" : "bad pop");
    return 0;
}

static void put(function **table, unsigned slots, unsigned slot, function it) {
    if (slot >= slots || !table[slot]) {
        say("bad slot %u of %u", slot, slots);
        return;
    }
    *table[slot] = it;
}

/* What is there and what is not. */
static void look_round(const void *(*get_table)(uint32_t id), const struct callbacks *callbacks) {
    static const unsigned sizes[] = {0, 16, 9, 15, 7, 16, 7};
    const struct version *version = get_table(3);
    function **table;
    unsigned slots;
    for (int module = 1; module < 7; module++) {
        bool there = callbacks->get_module(module, &table, &slots) == 1 && slots == sizes[module] &&
                     !table[0] && !table[slots];
        for (unsigned i = 1; there && i < slots; i++) there = table[i] != NULL;
        if (!there) say("bad module %d", module);
    }
    if (get_table(0) || get_table(2) || get_table(77) || callbacks->get_module(0, &table, &slots) ||
        callbacks->get_module(7, &table, &slots) || callbacks->get_module(-1, NULL, NULL))
        say("bad answer to a question about what does not exist");
    if (!version || version->size < sizeof *version || version->version != 3)
        say("bad version");
    else
        version->set(3);
}

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t id)) {
    const char *mode = getenv("PROFILER_MODE");
    if (!mode) mode = "all";
    say("init %s", mode);
    if (strcmp(mode, "refuse") == 0) return 0;
    const struct callbacks *callbacks = get_table(1);
    function **core, **core2;
    unsigned core_slots, core2_slots;
    if (!callbacks || callbacks->size < sizeof *callbacks ||
        !callbacks->get_module(1, &core, &core_slots) ||
        !callbacks->get_module(5, &core2, &core2_slots)) {
        say("bad tables");
        return 0;
    }
    look_round(get_table, callbacks);
    put(core, core_slots, 14, (function)name_thread);
    if (strcmp(mode, "names") == 0) return 1;
    put(core, core_slots, 9, (function)push);
    if (strcmp(mode, "push") == 0) return 1;
    put(core, core_slots, 11, (function)pop);
    if (strcmp(mode, "core") == 0) return 1;
    put(core2, core2_slots, 4, (function)domain_push);
    put(core2, core2_slots, 5, (function)domain_pop);
    put(core2, core2_slots, 12, (function)domain_create);
    return 1;
}

__attribute__((destructor)) static void end(void) {
    say("end");
    const char *mode = getenv("PROFILER_MODE");
    while (mode && strcmp(mode, "hang") == 0) pause();
}
