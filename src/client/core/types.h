/* SPDX-License-Identifier: Apache-2.0 */
/* Forward declarations of the client's types. The rooms' state.h files define them. */
#ifndef BH_CLIENT_CORE_TYPES_H
#define BH_CLIENT_CORE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bulkhead.h"

typedef struct bh__buffer bh__buffer;
typedef struct bh__call bh__call;
typedef struct bh__callback bh__callback;
typedef struct bh__device bh__device;
typedef struct bh__driver_managed bh__driver_managed;
typedef struct bh__event bh__event;
typedef struct bh__failure bh__failure;
typedef struct bh__verdicts bh__verdicts;
typedef struct bh__image bh__image;
typedef struct bh__job bh__job;
typedef struct bh__kernel bh__kernel;
typedef struct bh__lane bh__lane;
typedef struct bh__lease bh__lease;
typedef struct bh__managed bh__managed;
typedef struct bh__memory bh__memory;
typedef struct bh__module bh__module;
typedef struct bh__object bh__object;
typedef struct bh__order bh__order;
typedef struct bh__prepared bh__prepared;
typedef struct bh__product bh__product;
typedef struct bh__sequence bh__sequence;
typedef struct bh__shadow bh__shadow;
typedef struct bh__dedicated bh__dedicated;
typedef struct bh__submission bh__submission;
typedef struct bh__tag bh__tag;
typedef struct bh__trace bh__trace;
typedef struct bh__use bh__use;
typedef struct bh__watcher bh__watcher;
typedef struct bh__worker bh__worker;

#endif
