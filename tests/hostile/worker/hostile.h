/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker that serves like the CPU device's, and then turns on the application. What it does is
 * written down as hostilities: small, named, each hooked in where it does its harm. A worker is
 * given a few of them, and a moment to begin at, by its seed.
 *
 *   BULKHEAD_HOSTILE_SEED     which hostilities, and when
 *   BULKHEAD_HOSTILE_WORKERS  how many of the first workers may be hostile; the others are honest
 *   BULKHEAD_HOSTILE_FROM     how many before them are honest; none unless it is set
 *   BULKHEAD_HOSTILE_LOG      a file to which each worker adds a line: its pid and its
 *                             hostilities. One with ".peace" behind that name makes all that start
 *                             from then on honest
 *   BULKHEAD_HOSTILE_ONLY     the one hostility to use, at once, in each hostile worker
 */
#ifndef TESTS_HOSTILE_WORKER_HOSTILE_H
#define TESTS_HOSTILE_WORKER_HOSTILE_H

#include "../chance.h"
#include "base/futex.h"
#include "wire/message.h"
#include "worker/worker.h"

typedef struct hostility {
    const char *name;
    /* In place of serving. What returns from it exits. */
    void (*boot)(void);
    /* What the worker says its device is. */
    void (*describe)(bh__device_facts *info, uint64_t *granularity);
    /* In place of sending a message. Returns as bh__message_send. */
    int (*send)(const bh__message *message, const int *fds, uint32_t fd_count);
    /* In place of receiving one. What returns from it hears that the application is gone. */
    void (*receive)(void);
    /* In place of executing; true: it has, with *status. */
    bool (*execute)(const bh__work *work, bh_status *status, bh_error *error);
    /* What a module is said to hold: spoils the bytes of the description. */
    void (*describe_module)(uint8_t *blob, uint64_t bytes);
    /* Native code for a module has come. */
    void (*native)(void);
    /* A descriptor in place of one that goes with an answer; -1: none. */
    int (*descriptor)(uint64_t bytes);
    /* In place of waking who sleeps on a word of the control block. */
    void (*wake)(void);
    /* From a thread of its own, again and again. */
    void (*strike)(void);
    /* Costs the application its longest time-outs: only by name, or one in many. */
    bool slow;
} hostility;

enum { FILES = 64 };

/* A file that the application handed to this worker. */
typedef struct given_file {
    int fd;
    uint64_t bytes;
    uint8_t *memory; /* mapped to be written; NULL: it cannot be */
} given_file;

typedef struct worker_state {
    chance chance;
    _Atomic bool awake; /* the moment has come */
    uint32_t orders_before, awake_after_ms;
    const bh__device_services *services;
    bh__device_ops *ops;
    given_file files[FILES];
    _Atomic uint32_t file_count;
    _Atomic uint32_t last_serial; /* of the orders received */
    _Atomic int bell_fd; /* a duplicate of it, and the number that the worker itself uses */
    _Atomic int bell_number;
} worker_state;

extern worker_state hostile;

/* ---- table.c ---- */

/* Chooses by the seed; writes their names to `names`. False: an honest worker. */
bool choose(uint64_t seed, const char *only, char *names, size_t bytes);
/* One of those chosen that has the hook at this offset in a hostility, if it is to be used now. */
const hostility *pick_hook(size_t offset);
#define PICK(hook) pick_hook(offsetof(hostility, hook))

/* ---- numbers.c ---- */

uint32_t below(uint32_t limit);
bool one_in(uint32_t n);
/* Numbers that code gets wrong: 0, all ones, powers of two, small ones, any. */
uint64_t odd_number(void);
void fill_random(void *memory, size_t bytes);
void nap_us(uint32_t most);

/* ---- files.c ---- */

/* Keeps a file of a message; the one that is a pipe is the bell. */
void file_note(int fd);
/* Descriptors of every kind. The caller closes them. */
int odd_descriptor(void);
int memory_file(uint64_t bytes, unsigned seals);

/* ---- the real ones, behind the linker's --wrap ---- */

int __real_bh__message_send(int socket, const bh__message *message, const int *fds,
                            uint32_t fd_count);
int __real_bh__message_receive(int socket, bh__message *message);

int __real_bh__futex_wake(_Atomic(uint32_t) *word, int count, bh__futex_scope scope);

/* ---- the table's parts ---- */

extern const hostility scribbles[], talks[], lies[], ends[];
extern const size_t scribble_count, talk_count, lie_count, end_count;

#endif
