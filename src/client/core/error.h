/* SPDX-License-Identifier: Apache-2.0 */
/* The calling thread's error: the error struct that bh_last_error returns. */
#ifndef BH_CLIENT_CORE_ERROR_H
#define BH_CLIENT_CORE_ERROR_H

#include "client/core/types.h"
#include "error/error.h"

bh_error *bh__last(void);
/* Set the calling thread's error and return its status. */
#define bh__refuse(status, fix, ...) bh__fail(bh__last(), (status), (fix), __VA_ARGS__)
bh_status bh__refuse_with(const bh_error *error);

#endif
