/* SPDX-License-Identifier: Apache-2.0 */
/* A library that can be loaded and knows nothing of NVTX. */
int no_profiler(void);

int no_profiler(void) {
    return 0;
}
