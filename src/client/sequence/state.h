/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the sequences of a device. steps.h has the record of one. */
#ifndef BH_CLIENT_SEQUENCE_STATE_H
#define BH_CLIENT_SEQUENCE_STATE_H

#include "client/core/types.h"

/* The device's part. */
typedef struct bh__sequence_room {
    bh__sequence *list;
    uint32_t next_number;
} bh__sequence_room;

#endif
