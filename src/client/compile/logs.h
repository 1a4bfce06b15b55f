/* SPDX-License-Identifier: Apache-2.0 */
/* Compiler logs, stored for bh_compile_log. */
#ifndef BH_CLIENT_COMPILE_LOGS_H
#define BH_CLIENT_COMPILE_LOGS_H

#include "client/core/types.h"

/* The calling thread's last log. NULL clears it. */
void bh__compile_log_keep_last(const char *text);
void bh__compile_log_keep_ticket(bh_ticket ticket, const char *text);

#endif
