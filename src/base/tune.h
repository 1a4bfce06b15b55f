/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulator (tests/simulator/, docs/simulator.md) needs of the sources. It replaces
 * functions of the C library when it links. This is for the rest: instructions that measure or pass
 * time, and numbers that decide how often a rare path is taken.
 */
#ifndef BH_BASE_TUNE_H
#define BH_BASE_TUNE_H

#ifdef BH__SIMULATED

/* A number that affects speed only, and the value that the simulator uses. */
#define BH__TUNE(usual, simulated) (simulated)

/* A spinning thread yields; the time stamp counter is the simulated clock. */
void bh__simulated_relax(void);
unsigned long long bh__simulated_ticks(void);

#else
#define BH__TUNE(usual, simulated) (usual)
#endif

#endif
