/* SPDX-License-Identifier: Apache-2.0 */
/* Devices whose workers try to get out of the sandbox when asked. */
#ifndef TESTS_SANDBOX_TRIAL_H
#define TESTS_SANDBOX_TRIAL_H

#include "attempts.h"
#include "bulkhead.h"

typedef struct trial {
    bh_device device;
    bh_kernel kernel;
    bh_device_info info;
} trial;

/* Options for a device with such workers, which never stops nor quarantines. */
bh_device_options trial_options(uint32_t sandbox);
/* Skips the test where the device under test is another. */
trial trial_open(const bh_device_options *options);
/* The errno, SUCCEEDS, or FATAL; bh_last_error has what was said. */
int trial_run(const trial *t, enum attempt attempt, enum where where);

/* Skips the test where system calls cannot be filtered. */
void require_filters(void);
/* And where a sanitizer needs more than the list of what is allowed. */
void require_sandbox(void);

#endif
