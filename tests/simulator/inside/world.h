/* SPDX-License-Identifier: Apache-2.0 */
/* What scenarios have in common: a device with the fake kernels, threads, tickets that are
 * watched. */
#ifndef WORLD_H
#define WORLD_H

#include <bulkhead.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "fake.h"
#include "simulator.h"

#define MS 1000000ull
#define S  1000000000ull

enum { WORDS = 16 };

extern bh_device device;
extern bh_module module;
extern bh_module variable_module; /* it has the variable "var" */
extern bh_kernel kernels[FAKE_KERNELS];

/* Fails the run if a call that must succeed does not. */
#define OK(call) world_ok((call), #call, __LINE__)
void world_ok(bh_status status, const char *call, int line);
#define BUG(...) sim_fail(SIM_BUG, __VA_ARGS__)

/* Opens the device with no restart limit, no quarantine and short queues, on top of what is set,
 * and loads the module. */
void world_open(uint32_t flags);
void world_open_with(bh_device_options options);
bh_device_options world_options(uint32_t flags);
void world_load_variable(void);
void world_load_constant(void); /* a variable_module whose kernels do not write "var" */
void world_wait_standby(void);
int world_worker(void); /* its pid; 0: there is none */
int world_standby(void);

bh_buffer world_buffer(uint32_t words, uint32_t value); /* filled */
bh_status world_launch(int kernel, bh_lane lane, bh_buffer target, uint32_t value, uint32_t flags,
                       bh_ticket *out);
/* Where nothing goes wrong no worker may be lost, and nothing takes long: a wake-up that is missed
 * must not hide behind whoever notices that a worker is stuck. */
void world_was_smooth(uint64_t start);
bool world_suspect(bh_buffer buffer);
/* The first word; fails the run if the words differ. */
bh_status world_read(bh_buffer buffer, uint32_t *out);

pthread_t world_thread(void *(*body)(void *), void *argument);
void world_join(pthread_t thread);

/* ---- tickets ---- */

/* From now on the ticket's answer may change from BH_E_BUSY to something, and then never again. */
void ticket_watch(bh_ticket ticket);
/* What `bh_wait` said of it. */
void ticket_said(bh_ticket ticket, bh_status status);
void tickets_ask(void); /* all of them */
/* A thread that asks until tickets_stop. */
void tickets_start(void);
void tickets_stop(void);
bool is_final(bh_status status);

/* A callback on a ticket; callbacks_check, after the device is closed, asks that each one that was
 * taken ran once, and was told what the ticket says. */
void callback_register(bh_ticket ticket);
void callbacks_check(void);

#endif
