/* SPDX-License-Identifier: Apache-2.0 */
/* What a scenario works with: a device, and calls that are looked at. */
#ifndef TESTS_FAILING_WORLD_H
#define TESTS_FAILING_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "bulkhead.h"
#include "kernels.h"

#define MS UINT64_C(1000000)
/* Longer than any call may take that says no limit of its own. What hangs hangs for ever, and
 * machines that run tests are busy: there is no need to be strict. */
#define PATIENCE_NS (30000 * MS)
/* How long calls that take a limit may wait; they return soon after. */
#define WAIT_NS (w->deaf ? 1000 * MS : 15000 * MS)

typedef struct world {
    bool clean;       /* nothing is made to fail: every call must succeed */
    bool deaf;        /* nobody can be woken: waits may end with BH_E_TIMEOUT */
    bool defect;      /* found so far */
    unsigned pass;    /* how often the scenario began */
    int64_t kept;     /* blocks that the library may keep for good: the history of failures */
    uint64_t begun;   /* the call that is being made */
    char folder[200]; /* of this run alone */
    bool open;
    bh_device device;
    bh_module module; /* ptx_basic */
} world;

/* Makes a call: whether it succeeded. One that does not must say why, and what to do; none may take
 * longer than PATIENCE_NS. */
#define TRY(w, call) (call_begin(w), call_end((w), (call), #call, __LINE__, BH_OK))
/* The same where another status is right as well. */
#define TRY_OR(w, other, call) (call_begin(w), call_end((w), (call), #call, __LINE__, (other)))
/* What must hold however calls end. */
#define HOLDS(w, condition) holds((w), (condition), #condition, __LINE__)

void call_begin(world *w);
bool call_end(world *w, bh_status status, const char *text, int line, bh_status other);
void holds(world *w, bool condition, const char *text, int line);
void defect(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

bh_device_options world_options(const world *w);
/* Opens the device and loads ptx_basic. Must succeed. */
void world_open(world *w);
void world_close(world *w);
bh_kernel world_kernel(world *w, const char *name);
/* A buffer of u32; zero where there is none. */
bh_buffer words(world *w, uint64_t count);
void let_go(world *w, bh_buffer buffer);
/* A kernel runs, writes and is read back. */
bool world_works(world *w);

typedef struct scenario {
    const char *name;
    /* Prepares for `act`, which is what calls fail in. Both leave nothing behind but the device. */
    void (*prepare)(world *w);
    void (*act)(world *w);
    void (*tidy)(world *w); /* after the device is closed */
    bool compiles; /* with a real compiler, so that the compiler's process has calls to fail */
} scenario;

extern const scenario scenarios[];
extern const unsigned scenario_count;
void act_compile(world *w);
void act_compile_real(world *w);
void act_native(world *w);
void act_images(world *w);
void act_tensors(world *w);
void act_findings(world *w);
void act_follow(world *w);
void prepare_compile(world *w);
void prepare_native(world *w);
void open_native(world *w);
void act_native_real(world *w);
void prepare_checks(world *w);
void tidy_compile(world *w);

#endif
