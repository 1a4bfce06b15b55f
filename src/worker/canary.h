/* SPDX-License-Identifier: Apache-2.0 */
/* The canary: shows the application at once that this process is dying. */
#ifndef BH_WORKER_CANARY_H
#define BH_WORKER_CANARY_H

/* Starts it. Returns the read end of a pipe whose write end closes as soon as the process begins to
 * die; -1: not supported here. */
int bh__canary_start(void);

#endif
