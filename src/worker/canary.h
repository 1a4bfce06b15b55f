/* SPDX-License-Identifier: Apache-2.0 */
/* The canary: tells the application at once that this process is dying. */
#ifndef BH_WORKER_CANARY_H
#define BH_WORKER_CANARY_H

/* Starts it. Returns the end of a pipe that is closed at the other end as soon as the process
 * begins to die; -1: there is none to be had. */
int bh__canary_start(void);

#endif
