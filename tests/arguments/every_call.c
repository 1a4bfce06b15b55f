/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bad arguments for every function of the public headers, as generate.py finds them there: each
 * argument in turn is given each kind of bad value, then all of them at random.
 *
 * Calls are made in a child process. One that crashes or hangs there is printed as C, and another
 * child goes on behind it. With BULKHEAD_ARGUMENT_ROUNDS all single bad values are tried, and that
 * many calls with random ones for each function; without it some of both, evenly spread.
 * BULKHEAD_TEST_SEED says which random ones.
 *
 * Where opening a device is slow, as on GPUs, devices are used longer, and of the calls that use up
 * an object one in a few is made.
 */
#include <dirent.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../support/support.h"
#include "support/call.h"

enum { HANG_S = 20, MAX_CRASHES = 20, SHORT_EACH = 14, SHORT_ROUNDS = 10 };
/* A world that takes so long to open is slow: of the calls that use up an object or a device, one
 * in so many is made. */
enum { SLOW_MS = 1500, SLOW_OBJECT = 4, SLOW_DEVICE = 16 };

/* Shared with the child. */
typedef struct progress {
    _Atomic(uint64_t) number; /* of the call that is being made, from 1 on */
    _Atomic(bool) done;
    _Atomic(uint64_t) patience; /* ns that a call may take, with all that is opened for it */
    char text[TEXT_BYTES];
} progress;

static progress *shared;
static bool slow; /* to open */

/* ---- what a call must keep to ---- */

/* These answer with what became of a ticket, for which there is no message of the call's own, or
 * are asked for just that. */
static bool tells_of_others(const function *what) {
    static const char *const names[] = {"bh_wait", "bh_wait_all", "bh_ticket_error",
                                        "bh_last_error", "bh_cuda_last_error"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(what->name, names[i]) == 0) return true;
    return false;
}

static bool of_cuda(const function *what) {
    return strncmp(what->name, "bh_cuda_", 8) == 0 || strncmp(what->name, "bh_dlpack_", 10) == 0;
}

static void check_error(const call *it, bh_status status) {
    bh_error why = {0};
    bh_status last = of_cuda(it->function) ? bh_cuda_last_error(&why) : bh_last_error(&why);
    if (tells_of_others(it->function)) return;
    if (last != status || !*why.message || !*why.fix)
        FAIL("%s returned %s; the error is %s, \"%s\", Fix: \"%s\"", it->text,
             bh_status_name(status), bh_status_name(last), why.message, why.fix);
    if (status == BH_E_INTERNAL) FAIL("%s: %s", it->text, why.message);
    for (const char *at = why.message; *at; at++)
        if ((unsigned char)*at < ' ' && *at != '\n' && *at != '\t') {
            FAIL("%s: the message has a control character: %s", it->text, why.message);
            break;
        }
}

/* A length is told also where the text does not fit, and items say what became of them. */
static bool may_tell(const call *it, unsigned argument) {
    const char *name = it->function->slots[argument].name;
    return strcmp(name, "length") == 0 || strcmp(name, "count") == 0 ||
           strcmp(name, "items") == 0 || tells_of_others(it->function);
}

static void check_outputs(const call *it) {
    for (unsigned i = 0; i < it->function->count; i++)
        if (!may_tell(it, i) && !call_untouched(it, i))
            FAIL("%s failed and wrote to argument %u, %s", it->text, i + 1,
                 it->function->slots[i].name);
}

static void close_both(const int *fds) {
    for (int i = 0; fds && i < BH_SHARE_FDS; i++) close(fds[i]);
}

/* Gives up what the call has made: handles, descriptors, and no more than a few other things. */
static void release_made(const call *it) {
    for (unsigned i = 0; i < it->function->count; i++) {
        const slot *of = &it->function->slots[i];
        const layout *its = of->sort == OUT_STRUCT ? of->extra : NULL;
        void *out;
        memcpy(&out, it->values[i], sizeof out);
        if (strcmp(of->name, "out_fds") == 0) close_both(out);
        bool handle = its && its->count == 1 && strcmp(its->slots->name, "id") == 0;
        if (handle && out && !world_release(its->name, out))
            FAIL("%s: what it made, a %s, cannot be released", it->text, its->name);
    }
}

static bool has_word(const function *what, const char *const *words) {
    for (; *words; words++)
        if (strstr(what->name, *words)) return true;
    return false;
}

/* Whether what was good may be gone after a call: an object; the device, or its state. */
static bool uses_object(const function *what) {
    static const char *const words[] = {"release", "unload", "free",   "give",
                                        "unmap",   "finish", "revoke", NULL};
    return has_word(what, words);
}

static bool uses_device(const function *what) {
    static const char *const words[] = {"close", "memory_set_limit", "trace", "attach", NULL};
    return has_word(what, words);
}

static void open_anew(void) {
    world_close();
    world_open();
}

/* After calls that leave the other device as it was. */
static void begin_anew(void) {
    if (slow)
        world_reopen();
    else
        open_anew();
}

static void renew_after(const function *what) {
    static unsigned others;
    bool objects = uses_object(what), device = uses_device(what);
    if (!objects && !device && ++others % 500) return; /* memory, steps and watchers add up */
    if (strstr(what->name, "close"))
        begin_anew();
    else if (device)
        open_anew();
    else if (slow)
        world_renew();
    else
        begin_anew();
}

static void make_call(const function *what, const unsigned *variant) {
    static call it;
    call_make(&it, what, variant);
    memcpy(shared->text, it.text, sizeof shared->text);
    bh_buffer_retain((bh_buffer){0}); /* an error that is not this call's */
    bh_status status = what->call(it.pointers);
    if (status < BH_OK || status > BH_E_INTERNAL) FAIL("%s returned %d", it.text, status);
    if (status != BH_OK) {
        check_error(&it, status);
        check_outputs(&it);
        return;
    }
    release_made(&it);
    renew_after(what);
}

/* A scalar may be an address, and an input something that the kernel writes: such launches are
 * taken, and fault. */
static bool may_fault(const function *what) {
    static const char *const layouts[] = {"bh_args", "bh_arg", "bh_change", "bh_dispatch_options"};
    for (unsigned i = 0; i < what->count; i++) {
        const slot *of = &what->slots[i];
        const layout *its = of->sort == STRUCT || of->sort == IN_STRUCT ? of->extra : NULL;
        for (size_t k = 0; its && k < sizeof layouts / sizeof *layouts; k++)
            if (strcmp(its->name, layouts[k]) == 0) return true;
    }
    return false;
}

static void check_world(const function *what) {
    char why[300];
    if (world_sound(may_fault(what), why, sizeof why)) return;
    FAIL("after the calls of %s: %s", what->name, why);
    begin_anew();
}

/* ---- all calls, in an order that is always the same ---- */

typedef struct sequence {
    uint64_t number, first; /* the call that is next; the first to be made */
    uint64_t seed;
    unsigned rounds;
    bool brief;
} sequence;

static void make_next(sequence *self, const function *what, const unsigned *variant) {
    if (++self->number < self->first) return;
    bool good = true;
    for (unsigned i = 0; i < what->count; i++) good = good && variant[i] == 0;
    unsigned one_in = uses_device(what) ? SLOW_DEVICE : uses_object(what) ? SLOW_OBJECT : 1;
    if (slow && self->brief && !good && self->number % one_in) return;
    atomic_store(&shared->number, self->number);
    make_call(what, variant);
}

/* One in how many bad values of a parameter is tried: all, where there are few. */
static unsigned stride_of(const sequence *self, unsigned all) {
    return self->brief ? all / SHORT_EACH + 1 : 1;
}

static void make_each(sequence *self, const function *what) {
    unsigned variant[MAX_ARGUMENTS] = {0};
    make_next(self, what, variant);
    for (unsigned i = 0; i < what->count; i++) {
        unsigned all = variants(&what->slots[i]);
        unsigned stride = stride_of(self, all);
        for (variant[i] = 1; variant[i] < all; variant[i] += stride) make_next(self, what, variant);
        variant[i] = 0;
    }
}

/* Each call has numbers of its own, so that one alone can be made again. */
static void make_random(sequence *self, const function *what) {
    for (unsigned round = 0; round < self->rounds; round++) {
        rng random = {self->seed + self->number * UINT64_C(0x9e3779b97f4a7c15)};
        unsigned variant[MAX_ARGUMENTS] = {0};
        for (unsigned i = 0; i < what->count; i++)
            if (rng_below(&random, 2)) variant[i] = rng_below(&random, variants(&what->slots[i]));
        make_next(self, what, variant);
    }
}

static void list_descriptors(unsigned before) {
    FAIL("%u descriptors are open where there were %u", open_descriptors(), before);
    for (int fd = 0; fd < 1024; fd++) {
        char name[64], what[256] = "";
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        if (readlink(name, what, sizeof what - 1) > 0) printf("    %d is %s\n", fd, what);
    }
}

static void make_all(sequence *self) {
    uint64_t begun = now_ns();
    world_open(); /* the library keeps a few things for good */
    uint64_t took = now_ns() - begun;
    slow = took > SLOW_MS * MS * test_time_scale();
    atomic_store(&shared->patience, HANG_S * 1000 * MS * test_time_scale() + 4 * took);
    world_close();
    unsigned descriptors = open_descriptors();
    world_open();
    for (unsigned i = 0; i < function_count; i++) {
        uint64_t before = self->number;
        make_each(self, &functions[i]);
        make_random(self, &functions[i]);
        if (self->number >= self->first && before != self->number) check_world(&functions[i]);
        if (may_fault(&functions[i])) begin_anew();
    }
    bool driver = world_has_driver(); /* in this process too, where it keeps descriptors */
    world_close();
    if (!driver && open_descriptors() != descriptors) list_descriptors(descriptors);
}

/* ---- the child, and who watches it ---- */

static void run_child(uint64_t first, uint64_t seed) {
    int before = test_failures();
    const char *rounds = getenv("BULKHEAD_ARGUMENT_ROUNDS");
    sequence all = {.first = first,
                    .seed = seed,
                    .rounds = rounds ? (unsigned)strtoul(rounds, NULL, 10) : SHORT_ROUNDS,
                    .brief = !rounds};
    make_all(&all);
    if (first == 1) printf("%llu calls\n", (unsigned long long)all.number);
    atomic_store(&shared->done, true);
    fflush(stdout);
    _exit(test_failures() != before);
}

/* Waits for its end; kills it where one call lasts too long. */
static int watch_child(pid_t child, bool *hung) {
    int end = 0;
    uint64_t seen = 0, since = now_ns();
    while (waitpid(child, &end, WNOHANG) == 0) {
        uint64_t number = atomic_load(&shared->number);
        if (number != seen) since = now_ns();
        seen = number;
        *hung = now_ns() - since > atomic_load(&shared->patience);
        if (*hung) kill(child, SIGKILL);
        sleep_ms(5);
    }
    return end;
}

/* Returns the call to go on with; 0: all are made. */
static uint64_t run_some(uint64_t first, uint64_t seed) {
    fflush(stdout);
    atomic_store(&shared->number, 0);
    atomic_store(&shared->patience, 6 * HANG_S * 1000 * MS * test_time_scale());
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) run_child(first, seed);
    bool hung = false;
    int end = watch_child(child, &hung);
    if (atomic_load(&shared->done)) {
        CHECK(WIFEXITED(end) && WEXITSTATUS(end) == 0);
        return 0;
    }
    FAIL("call %llu %s (%d): %s", (unsigned long long)atomic_load(&shared->number),
         hung ? "did not return" : "ended the process", WIFSIGNALED(end) ? WTERMSIG(end) : end,
         shared->text);
    return atomic_load(&shared->number) + 1;
}

/* Nothing is read or written but here, and no compiler is found. */
static void go_apart(void) {
    REQUIRE(chdir(test_tmp_dir()) == 0);
    setenv("BULKHEAD_CACHE_DIR", test_tmp_dir(), 1);
    setenv("PATH", "/nowhere", 1);
}

#ifdef NO_PYTHON
const function functions[1];
const unsigned function_count;
const char *const unknown_functions[1];
#endif

static void need_table(void) {
#ifdef NO_PYTHON
    SKIP("python3, which reads the headers, was not here when this was built");
#endif
}

TEST(every_function_of_the_headers_is_known) {
    need_table();
    for (const char *const *why = unknown_functions; *why; why++)
        FAIL("%s. Fix: teach tests/arguments/generate.py", *why);
    CHECK_GE(function_count, 130);
}

TEST_TIMEOUT(no_argument_does_harm, 240) {
    need_table();
    go_apart();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(shared != MAP_FAILED);
    uint64_t seed = rng_seeded(1).state;
    int crashes = 0;
    for (uint64_t next = 1; (next = run_some(next, seed)) != 0;)
        if (++crashes == MAX_CRASHES) {
            FAIL("%d crashes: no more are looked for", crashes);
            break;
        }
}
