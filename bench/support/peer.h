/* SPDX-License-Identifier: Apache-2.0 */
/* A peer in a process of its own that measures when it is asked to. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

typedef struct bench_peer {
    pid_t pid;
    FILE *ask, *answers;
} bench_peer;

/* Starts the program of that name beside this one. Its first line is printed; false if that says
 * that it has nothing to measure. */
bool bench_peer_start(bench_peer *peer, const char *program, const char *device);
/* One round of a measurement. Ends the program if the peer cannot. */
double bench_peer_measure(bench_peer *peer, const char *name);
void bench_peer_end(bench_peer *peer);

#endif
