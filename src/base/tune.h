/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulator (tests/simulator/, docs/simulator.md) needs of the sources. It replaces the C
 * library's functions when it links; this is for the rest: instructions that stand for time, and
 * numbers that decide how often a rare path is taken.
 */
#ifndef BH_BASE_TUNE_H
#define BH_BASE_TUNE_H

#ifdef BH__SIMULATED

/* A number that may be changed without making anything wrong, and what the simulator takes for it. */
#define BH__TUNE(usual, simulated) (simulated)

/* A spinning thread gives way; the counter of time is the simulated clock. */
void bh__simulated_relax(void);
unsigned long long bh__simulated_ticks(void);

#else
#define BH__TUNE(usual, simulated) (usual)
#endif

#endif
