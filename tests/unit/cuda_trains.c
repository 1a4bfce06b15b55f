/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of launches and the modules they name, on a driver of the tests' own that remembers what
 * every chain was ever given, finishes work later, and says when a rule is broken. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/state.h"
#include "test.h"

enum { MAX_MODULES = 4096, MAX_NODES = 64, LANES = 6 };

/* ---- the driver ---- */

typedef struct module {
    _Atomic bool unloaded;
} module;

typedef struct graph {
    const module *launches[MAX_NODES]; /* of kernel nodes, by place */
    uint32_t count;
} graph;

typedef struct chain {
    const module *ever[MAX_MODULES];
    uint32_t ever_count;
    _Atomic bool in_flight;
    _Atomic uint64_t *word; /* of its last write */
    uint64_t value;
    uint64_t due_ns;
    struct chain *next;
} chain;

static struct {
    pthread_mutex_t lock;
    module modules[MAX_MODULES];
    uint32_t module_count;
    _Atomic uint32_t made, ended, launched, broken_sets, broken_launches, broken_ends;
    _Atomic uint32_t delay_ns;
    chain *flying;
    pthread_t thread;
    _Atomic bool over;
} cuda = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What is queued ends some time later. */
static void *finish_work(void *unused) {
    (void)unused;
    while (!atomic_load(&cuda.over)) {
        pthread_mutex_lock(&cuda.lock);
        uint64_t now = clock_ns();
        for (chain **at = &cuda.flying; *at;) {
            chain *it = *at;
            if (it->due_ns > now) {
                at = &it->next;
                continue;
            }
            *at = it->next;
            atomic_store(&it->in_flight, false);
            atomic_store(it->word, it->value);
        }
        pthread_mutex_unlock(&cuda.lock);
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
    return NULL;
}

static int module_load(bh__cu_module *out, const void *image, unsigned count, int *options,
                       void **values) {
    (void)image, (void)count, (void)options, (void)values;
    REQUIRE(cuda.module_count < MAX_MODULES);
    *out = (bh__cu_module)(void *)&cuda.modules[cuda.module_count++];
    return BH__CU_OK;
}

static int module_unload(bh__cu_module it) {
    atomic_store(&((module *)(void *)it)->unloaded, true);
    return BH__CU_OK;
}

/* A function is known by its module alone. */
static int module_function(bh__cu_function *out, bh__cu_module it, const char *name) {
    (void)name;
    *out = (bh__cu_function)(void *)it;
    return BH__CU_OK;
}

static int function_attribute(int *out, int attribute, bh__cu_function function) {
    (void)attribute, (void)function;
    *out = 32;
    return BH__CU_OK;
}

static int function_set_attribute(bh__cu_function function, int attribute, int value) {
    (void)function, (void)attribute, (void)value;
    return BH__CU_OK;
}

static int graph_create(bh__cu_graph *out, unsigned flags) {
    *out = (bh__cu_graph)calloc(1, sizeof(graph));
    return *out ? (int)flags : BH__CU_OUT_OF_MEMORY;
}

static int graph_destroy(bh__cu_graph it) {
    free((void *)it);
    return BH__CU_OK;
}

/* A node is its place, from 1 on. */
static int graph_add_kernel(bh__cu_node *out, bh__cu_graph to, const bh__cu_node *after,
                            size_t count, const bh__cu_kernel_node *what) {
    (void)after, (void)count;
    graph *it = (graph *)(void *)to;
    REQUIRE(it->count < MAX_NODES);
    it->launches[it->count++] = (const module *)(const void *)what->function;
    *out = (bh__cu_node)(uintptr_t)it->count;
    return BH__CU_OK;
}

static int graph_add_memory(bh__cu_node *out, bh__cu_graph to, const bh__cu_node *after,
                            size_t count, const bh__cu_memory_node *what) {
    (void)after, (void)count, (void)what;
    graph *it = (graph *)(void *)to;
    REQUIRE(it->count < MAX_NODES);
    it->launches[it->count++] = NULL;
    *out = (bh__cu_node)(uintptr_t)it->count;
    return BH__CU_OK;
}

static void note(chain *it, const module *which) {
    for (uint32_t i = 0; i < it->ever_count; i++)
        if (it->ever[i] == which) return;
    REQUIRE(it->ever_count < MAX_MODULES);
    it->ever[it->ever_count++] = which;
}

static bool names_unloaded(const chain *it) {
    for (uint32_t i = 0; i < it->ever_count; i++)
        if (atomic_load(&it->ever[i]->unloaded)) return true;
    return false;
}

static int graph_instantiate(bh__cu_graph_exec *out, bh__cu_graph from, unsigned long long flags) {
    const graph *of = (const graph *)(void *)from;
    chain *it = calloc(1, sizeof *it);
    REQUIRE(it != NULL && flags == 0);
    for (uint32_t i = 0; i < of->count; i++)
        if (of->launches[i]) note(it, of->launches[i]);
    atomic_fetch_add(&cuda.made, 1);
    *out = (bh__cu_graph_exec)(void *)it;
    return BH__CU_OK;
}

static int graph_exec_destroy(bh__cu_graph_exec which) {
    chain *it = (chain *)(void *)which;
    if (atomic_load(&it->in_flight)) atomic_fetch_add(&cuda.broken_ends, 1);
    atomic_fetch_add(&cuda.ended, 1);
    free(it);
    return BH__CU_OK;
}

static int graph_set_kernel(bh__cu_graph_exec which, bh__cu_node node,
                            const bh__cu_kernel_node *what) {
    (void)node;
    chain *it = (chain *)(void *)which;
    if (names_unloaded(it)) atomic_fetch_add(&cuda.broken_sets, 1);
    note(it, (const module *)(const void *)what->function);
    return BH__CU_OK;
}

static int graph_set_memory(bh__cu_graph_exec which, bh__cu_node node,
                            const bh__cu_memory_node *what) {
    (void)node;
    chain *it = (chain *)(void *)which;
    it->word = (_Atomic uint64_t *)(uintptr_t)what->operations[0].address;
    it->value = what->operations[0].value;
    return BH__CU_OK;
}

static int graph_launch(bh__cu_graph_exec which, bh__cu_stream stream) {
    (void)stream;
    chain *it = (chain *)(void *)which;
    if (names_unloaded(it)) atomic_fetch_add(&cuda.broken_launches, 1);
    atomic_fetch_add(&cuda.launched, 1);
    pthread_mutex_lock(&cuda.lock);
    atomic_store(&it->in_flight, true);
    it->due_ns = clock_ns() + atomic_load(&cuda.delay_ns);
    it->next = cuda.flying;
    cuda.flying = it;
    pthread_mutex_unlock(&cuda.lock);
    return BH__CU_OK;
}

static int graph_upload(bh__cu_graph_exec which, bh__cu_stream stream) {
    (void)which, (void)stream;
    return BH__CU_OK;
}

static int stream_create(bh__cu_stream *out, unsigned flags, int priority) {
    (void)flags, (void)priority;
    *out = (bh__cu_stream)(uintptr_t)8;
    return BH__CU_OK;
}

static int stream_destroy(bh__cu_stream stream) {
    (void)stream;
    return BH__CU_OK;
}

static int event_create(bh__cu_event *out, unsigned flags) {
    (void)flags;
    *out = (bh__cu_event)(uintptr_t)8;
    return BH__CU_OK;
}

static int event_destroy(bh__cu_event event) {
    (void)event;
    return BH__CU_OK;
}

static int context_enter(bh__cu_context context) {
    (void)context;
    return BH__CU_OK;
}

/* ---- a device on it ---- */

static const bh__driver driver = {.number = 13000,
                                  .module_load = module_load,
                                  .module_unload = module_unload,
                                  .module_function = module_function,
                                  .function_attribute = function_attribute,
                                  .function_set_attribute = function_set_attribute,
                                  .graph_create = graph_create,
                                  .graph_destroy = graph_destroy,
                                  .graph_add_kernel = graph_add_kernel,
                                  .graph_add_memory = graph_add_memory,
                                  .graph_instantiate = graph_instantiate,
                                  .graph_exec_destroy = graph_exec_destroy,
                                  .graph_set_kernel = graph_set_kernel,
                                  .graph_set_memory = graph_set_memory,
                                  .graph_launch = graph_launch,
                                  .graph_upload = graph_upload,
                                  .stream_create = stream_create,
                                  .stream_destroy = stream_destroy,
                                  .event_create = event_create,
                                  .event_destroy = event_destroy,
                                  .context_enter = context_enter};

typedef struct lane {
    bh__device_lane *context;
    uint32_t index;
    uint64_t sequence;
} lane;

typedef struct bench {
    _Atomic bool killed;
    bh__device_services services;
    bh__device_instance *device;
    lane lanes[LANES];
} bench;

static void bench_open(bench *b) {
    bh_error error;
    memset(b, 0, sizeof *b);
    b->device = calloc(1, sizeof *b->device);
    bh__area *area =
        mmap(NULL, sizeof *area, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(b->device != NULL && area != MAP_FAILED);
    b->services =
        (bh__device_services){.killed = &b->killed, .area = area, .area_bytes = sizeof *area};
    b->device->cu = driver;
    b->device->services = &b->services;
    b->device->area = (bh__cu_address)(uintptr_t)area;
    b->device->info.max_param_bytes = BH__MAX_PARAM_BYTES;
    pthread_rwlock_init(&b->device->tables, NULL);
    for (uint32_t i = 0; i < LANES; i++) {
        lane *it = &b->lanes[i];
        bh__lane_message which = {.index = i};
        it->index = i;
        REQUIRE_EQ(bh__cuda_device.lane_open(b->device, &which, &error, &it->context), BH_OK);
        REQUIRE_EQ(bh__cuda_device.lane_begin(it->context, 0, &error), BH_OK);
    }
    REQUIRE_EQ(pthread_create(&cuda.thread, NULL, finish_work, NULL), 0);
}

static void lane_wait(const bench *b, const lane *it) {
    while (atomic_load(&b->services.area->lane[it->index].done) != it->sequence)
        nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
}

static void bench_close(bench *b) {
    for (uint32_t i = 0; i < LANES; i++) {
        lane_wait(b, &b->lanes[i]);
        bh__cuda_device.lane_close(b->lanes[i].context);
    }
    bh__cuda_sequences_free(b->device);
    bh__cuda_unload_all(b->device);
    atomic_store(&cuda.over, true);
    pthread_join(cuda.thread, NULL);
    CHECK_EQ(atomic_load(&cuda.made), atomic_load(&cuda.ended));
    CHECK_EQ(atomic_load(&cuda.broken_sets), 0);
    CHECK_EQ(atomic_load(&cuda.broken_launches), 0);
    CHECK_EQ(atomic_load(&cuda.broken_ends), 0);
    pthread_rwlock_destroy(&b->device->tables);
    munmap(b->services.area, sizeof *b->services.area);
    free(b->device);
}

static const char image[] = ".version 7.0\n.target sm_70\n.address_size 64\n"
                            ".visible .entry k()\n{\n    ret;\n}\n";

static void load(bench *b, uint32_t id) {
    bh_error error;
    int blob = -1;
    REQUIRE_EQ(bh__cuda_device.module_load(b->device, id, image, sizeof image - 1, &error, &blob),
               BH_OK);
    close(blob);
}

static void unload(bench *b, uint32_t id) {
    bh_error error;
    REQUIRE_EQ(bh__cuda_device.module_unload(b->device, id, &error), BH_OK);
}

/* Sends one launch, or a train of launches from these modules in turn. */
static void send(const bench *b, lane *it, uint32_t count, const uint32_t *modules,
                 uint32_t module_count) {
    bh__work works[BH__TRAIN];
    bh_error error;
    lane_wait(b, it); /* two of them in flight would share one record here */
    for (uint32_t i = 0; i < count; i++)
        works[i] = (bh__work){.op = BH__OP_LAUNCH,
                              .lane = it->index,
                              .sequence = ++it->sequence,
                              .u.launch = {.module = modules[i % module_count],
                                           .grid = {1, 1, 1},
                                           .block = {1, 1, 1}}};
    REQUIRE_EQ(bh__cuda_device.enqueue_train(it->context, works, count, &error), BH_OK);
}

/* ---- the tests ---- */

TEST(no_chain_outlives_a_module_that_it_ever_named) {
    bench b;
    bench_open(&b);
    load(&b, 1);
    for (uint32_t id = 2; id < 200; id++) {
        uint32_t both[] = {1, id}, stays = 1;
        load(&b, id);
        send(&b, &b.lanes[0], 1, &id, 1);
        send(&b, &b.lanes[0], BH__TRAIN, both, 2);
        send(&b, &b.lanes[0], 1, &stays, 1); /* its place no longer names the module */
        lane_wait(&b, &b.lanes[0]);
        unload(&b, id);
        CHECK(atomic_load(&cuda.modules[id - 1].unloaded));
    }
    bench_close(&b);
}

TEST(chains_that_never_named_it_stay_as_they_are) {
    bench b;
    bench_open(&b);
    uint32_t resident = 1, passing = 2, other = 3;
    for (uint32_t id = 1; id <= 3; id++) load(&b, id);
    send(&b, &b.lanes[0], 1, &resident, 1);
    send(&b, &b.lanes[1], 1, &passing, 1);
    send(&b, &b.lanes[1], BH__TRAIN, &resident, 1);
    for (uint32_t i = 0; i < 2; i++) lane_wait(&b, &b.lanes[i]);
    CHECK_EQ(atomic_load(&cuda.made), 3);
    unload(&b, passing);
    CHECK_EQ(atomic_load(&cuda.ended), 1);
    send(&b, &b.lanes[0], 1, &other, 1);
    send(&b, &b.lanes[1], BH__TRAIN, &other, 1);
    CHECK_EQ(atomic_load(&cuda.made), 3);
    send(&b, &b.lanes[1], 1, &other, 1); /* this one alone is made anew, once */
    send(&b, &b.lanes[1], 1, &resident, 1);
    CHECK_EQ(atomic_load(&cuda.made), 4);
    bench_close(&b);
}

/* A module that is given up while other lanes are at work is unloaded later, and no chain is taken
 * apart under way. */
TEST(a_chain_in_flight_is_not_taken_apart) {
    bench b;
    bench_open(&b);
    uint32_t first = 1, second = 2;
    load(&b, first);
    load(&b, second);
    send(&b, &b.lanes[0], 1, &first, 1);
    send(&b, &b.lanes[1], 1, &first, 1);
    lane_wait(&b, &b.lanes[0]);
    lane_wait(&b, &b.lanes[1]);
    atomic_store(&cuda.delay_ns, 100000000);
    send(&b, &b.lanes[1], 1, &second, 1); /* in the place where the first one was */
    unload(&b, first);
    CHECK_EQ(atomic_load(&cuda.ended), 0);
    CHECK(!atomic_load(&cuda.modules[0].unloaded));
    atomic_store(&cuda.delay_ns, 0);
    lane_wait(&b, &b.lanes[1]);
    load(&b, 3);
    unload(&b, 3); /* at a quiet moment: what was given up goes now */
    CHECK(atomic_load(&cuda.modules[0].unloaded));
    CHECK_EQ(atomic_load(&cuda.ended), 2);
    send(&b, &b.lanes[0], 1, &second, 1);
    bench_close(&b);
}

/* A sequence's graph and its module, both given up while the device is at work: the graph goes
 * first. */
TEST(a_sequence_goes_before_its_module) {
    bench b;
    bench_open(&b);
    bh_error error;
    uint32_t resident = 1;
    load(&b, resident);
    load(&b, 2);
    bh__launch_body body = {.module = 2, .grid = {1, 1, 1}, .block = {1, 1, 1}};
    union {
        bh__sequence_step steps[2];
        uint8_t whole[512]; /* a multiple of 64, as they come */
    } version = {.steps = {{.op = BH__OP_LAUNCH, .u.launch = body},
                           {.op = BH__OP_LAUNCH, .u.launch = body}}};
    bh__sequence_image of = {.step_count = 2, .bytes = sizeof version, .steps = version.steps};
    void *made = NULL;
    REQUIRE_EQ(bh__cuda_device.sequence_define(b.device, &of, &error, &made), BH_OK);
    CHECK_EQ(atomic_load(&cuda.made), 1);
    atomic_store(&cuda.delay_ns, 50000000);
    send(&b, &b.lanes[0], 1, &resident, 1);
    bh__cuda_device.sequence_drop(b.device, made);
    unload(&b, 2);
    CHECK_EQ(atomic_load(&cuda.ended), 0);
    CHECK(!atomic_load(&cuda.modules[1].unloaded));
    lane_wait(&b, &b.lanes[0]);
    bh__cuda_free_retired(b.device);
    CHECK(atomic_load(&cuda.modules[1].unloaded));
    CHECK_EQ(atomic_load(&cuda.ended), 1);
    bench_close(&b);
}

/* Lanes that send all the time while modules come and go. */
typedef struct sender {
    bench *b;
    lane *lane;
    pthread_t thread;
    pthread_mutex_t lock; /* held while a module may be named: the application sees to that */
    _Atomic uint32_t module;
    _Atomic bool over;
} sender;

static void *send_on(void *argument) {
    sender *self = argument;
    for (uint32_t round = 0; !atomic_load(&self->over); round++) {
        pthread_mutex_lock(&self->lock);
        uint32_t modules[] = {1, atomic_load(&self->module)};
        send(self->b, self->lane, round % 3 ? 1 : BH__TRAIN, &modules[round % 2],
             round % 2 ? 1 : 2);
        lane_wait(self->b, self->lane);
        pthread_mutex_unlock(&self->lock);
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    return NULL;
}

TEST(modules_come_and_go_under_lanes_at_work) {
    bench b;
    bench_open(&b);
    load(&b, 1);
    sender senders[LANES];
    memset(senders, 0, sizeof senders);
    for (uint32_t i = 0; i < LANES; i++) {
        senders[i].b = &b;
        senders[i].lane = &b.lanes[i];
        atomic_store(&senders[i].module, 1);
        pthread_mutex_init(&senders[i].lock, NULL);
        REQUIRE_EQ(pthread_create(&senders[i].thread, NULL, send_on, &senders[i]), 0);
    }
    uint32_t id = 2;
    for (uint64_t end = clock_ns() + 1500000000; clock_ns() < end && id < 2000; id++) {
        load(&b, id);
        for (uint32_t i = id % 2; i < LANES; i += 1 + id % 3) atomic_store(&senders[i].module, id);
        nanosleep(&(struct timespec){.tv_nsec = 300000}, NULL);
        for (uint32_t i = 0; i < LANES; i++) {
            pthread_mutex_lock(&senders[i].lock);
            atomic_store(&senders[i].module, 1);
            pthread_mutex_unlock(&senders[i].lock);
        }
        unload(&b, id);
    }
    for (uint32_t i = 0; i < LANES; i++) {
        atomic_store(&senders[i].over, true);
        pthread_join(senders[i].thread, NULL);
        pthread_mutex_destroy(&senders[i].lock);
    }
    uint32_t gone = 0;
    for (uint32_t i = 0; i < cuda.module_count; i++) gone += atomic_load(&cuda.modules[i].unloaded);
    printf("%u modules, %u unloaded, %u trains, %u chains\n", id - 1, gone,
           atomic_load(&cuda.launched), atomic_load(&cuda.made));
    CHECK_GT(id, 20);
    CHECK_GT(gone, 10);
    bench_close(&b);
}

/* ---- parameters ---- */

TEST(more_parameters_than_the_device_takes_never_reach_the_driver) {
    bench b;
    bench_open(&b);
    static const uint32_t limits[] = {BH__MAX_PARAM_BYTES, BH__SMALL_PARAM_BYTES};
    for (uint32_t i = 0; i < 2; i++) {
        b.device->info.max_param_bytes = limits[i];
        for (uint32_t more = 0; more < 2; more++) {
            char text[256], message[128];
            bh_error error;
            int blob = -1;
            uint32_t before = cuda.module_count;
            snprintf(text, sizeof text,
                     ".version 8.1\n.target sm_70\n.address_size 64\n"
                     ".visible .entry k(.param .align 4 .b8 data[%u])\n{\n    ret;\n}\n",
                     limits[i] + more);
            bh_status status =
                bh__cuda_device.module_load(b.device, 1 + i, text, strlen(text), &error, &blob);
            CHECK_EQ(status, more ? BH_E_UNSUPPORTED : BH_OK);
            CHECK_EQ(cuda.module_count, before + !more);
            if (!more) {
                close(blob);
                unload(&b, 1 + i);
                continue;
            }
            snprintf(message, sizeof message,
                     "has %u bytes of parameters; this device takes at most %u", limits[i] + 1,
                     limits[i]);
            CHECK_STR_CONTAINS(error.message, message);
            CHECK_STR_CONTAINS(error.fix, i ? "CUDA 12.1" : "buffer");
        }
    }
    bench_close(&b);
}
