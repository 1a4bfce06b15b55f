/* SPDX-License-Identifier: Apache-2.0 */
/* What most tests need: an open device with kernels, buffers of words, gates that hold a lane. */
#ifndef TESTS_SUPPORT_SUPPORT_H
#define TESTS_SUPPORT_SUPPORT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "../harness/test.h"
#include "bulkhead.h"
#include "kernels.h"

/* Long enough for anything that ends at all. */
#define LONG_NS UINT64_C(25000000000)
#define MS      UINT64_C(1000000)

/* Addresses where no device has memory. */
#define NOWHERE     UINT64_C(8)
#define NOWHERE_FAR UINT64_C(0x500000000000)

/* Options for the device under test. */
bh_device_options device_options(uint32_t flags);
bh_device open_device(void);
bh_device open_device_with(const bh_device_options *options);
bool is_cpu(bh_device device);
/* Work is queued ahead and a fault comes without the request that did it: a GPU, or the CPU device
 * behind the queues of tests/queued/. With BULKHEAD_TEST_QUEUES set, no other device is opened. */
bool has_queues(bh_device device);
/* More launches than a lane of such a device is ever given ahead. */
enum { BEYOND_QUEUES = 160 };

bh_module load_module(bh_device device, const char *ptx);
bh_kernel get_kernel(bh_module module, const char *name);
bh_lane open_lane(bh_device device);
bh_sequence sequence_open(bh_device device, const char *name); /* to be recorded */

/* A device with ptx_basic loaded. */
typedef struct rig {
    bh_device device;
    bh_module module;
} rig;

rig rig_open(uint32_t flags);
rig rig_open_with(const bh_device_options *options);
bh_kernel rig_kernel(const rig *r, const char *name);

/* Buffers of u32. Failing calls end the test. */
bh_buffer words_alloc(bh_device device, uint64_t count);
bh_buffer words_filled(bh_device device, uint64_t count, uint32_t value);
bh_buffer words_counting(bh_device device, uint64_t count, uint32_t first);
uint32_t word_read(bh_buffer buffer, uint64_t index);
void word_write(bh_buffer buffer, uint64_t index, uint32_t value);
/* Whether all words have the value, or count up from it; says where the first wrong one is. */
bool words_are(bh_buffer buffer, uint64_t count, uint32_t value);
bool words_count(bh_buffer buffer, uint64_t count, uint32_t first);
uint64_t address_of(bh_buffer buffer);

/* Submits and waits: the status of the call, or what became of the work. */
/* Launches once more, with another argument from now on. */
bh_status launch_changed(bh_prepared prepared, uint32_t index, bh_arg arg);
bh_status run_with(bh_kernel kernel, bh_shape shape, bh_args args,
                   const bh_launch_options *options);
bh_status run_now(bh_kernel kernel, bh_shape shape, bh_args args);
/* A launch that must be accepted. */
bh_ticket submit(bh_kernel kernel, bh_shape shape, bh_args args, const bh_launch_options *options);
bh_launch_options on_lane(bh_lane lane, uint32_t flags);

/* The device does what it should: a kernel runs, writes and is read back. */
void check_device_works(const rig *r);

/* A kernel that holds a lane until it is opened. The lane must not be the device's own, which
 * carries the reads and writes of the gate. */
typedef struct gate {
    bh_buffer flag;
    bh_buffer mark; /* gets `value` when the gate opens */
    uint32_t value;
    bh_ticket ticket;
} gate;

gate gate_close(const rig *r, bh_lane lane, uint32_t flags);
/* Returns once the kernel that announces itself at `flag` is running. */
void flag_wait_begun(bh_buffer flag);
void flag_raise(bh_buffer flag);
bh_buffer flag_alloc(bh_device device);
void gate_open(const gate *g);

bh_health health_of(bh_device device);
bh_device_limits limits_of(bh_device device);
/* Has a worker that takes work, with or without a standby. */
bool is_running(bh_device device);
/* With its figures compared with each other. */
bh_memory_info memory_of(bh_device device);
/* Waits until the device runs with this generation or a later one. */
void wait_generation(bh_device device, uint64_t generation);
void wait_standby(bh_device device);
/* Waits until a worker runs: one that was lost has been replaced. */
void wait_worker(bh_device device);
bool is_suspect(bh_buffer buffer);

/* What a watcher was told. */
enum { LOSS_LOG = 64 };
typedef struct loss_log {
    _Atomic(int) count;
    bh_loss losses[LOSS_LOG];
} loss_log;
/* Registers a watcher that fills `log`. */
bh_device_counters counters_of(bh_device device);
/* The sums over all lanes. */
bh_lane_counters lanes_of(bh_device device);
/* A watch of these kinds; it can be left to the device's close. */
bh_watch watch_for(bh_device device, uint32_t kinds, bh_event_fn *told, void *context);
void loss_log_start(bh_device device, loss_log *log);
bool loss_log_wait(loss_log *log, int count);

/* A signal that a crashing program dies of. Sanitizers report the usual ones, so they get
 * another. */
int crash_signal(void);

/* Kills the worker and waits for the device to go on with the next one. */
void kill_worker(bh_device device, int signal);

/* Numbers that look random and are the same every time. BULKHEAD_TEST_SEED replaces the seed. */
typedef struct rng {
    uint64_t state;
} rng;
rng rng_seeded(uint64_t seed);
uint32_t rng_next(rng *r);
uint32_t rng_below(rng *r, uint32_t limit);

/* Such bytes, for free(). */
uint8_t *noise_bytes(size_t size, uint32_t seed);

uint64_t now_ns(void);
void sleep_ms(unsigned ms);

/* Processes. */
bool process_exists(pid_t pid); /* and is no zombie */
bool wait_process_gone(pid_t pid, unsigned ms);
/* Descriptors this process has open. */
unsigned open_descriptors(void);

/* Runs `body` in `count` threads at once and joins them; each gets its index. */
void run_threads(unsigned count, void (*body)(void *context, unsigned index), void *context);

/* Checks that a call fails with this status and leaves a message and advice. */
#define CHECK_REFUSED(call, expected) check_refused((call), (expected), #call, __FILE__, __LINE__)
void check_refused(bh_status status, bh_status expected, const char *text, const char *file,
                   int line);
/* The same for any status but BH_OK. */
#define CHECK_REFUSED_ANY(call) check_refused((call), -1, #call, __FILE__, __LINE__)

/* Kills the device's worker at random moments until it is told to stop. A thread's body. */
struct killer {
    bh_device device;
    _Atomic(int) stop;
    uint64_t seed;
    int kills;
};
void *kill_now_and_then(void *killer);

#endif
