/* SPDX-License-Identifier: Apache-2.0 */
/* The data of images, textures, surfaces and tensor maps. */
#ifndef BH_CLIENT_TEXTURE_STATE_H
#define BH_CLIENT_TEXTURE_STATE_H

#include "client/core/types.h"
#include "wire/texture.h"

struct bh__image {
    uint64_t id;
    uint64_t number;    /* never used again */
    bh_buffer buffer;   /* Owned. */
    bh__memory *memory; /* Retained. */
    bh__image_shape shape;
    bh_type type;
    uint32_t layers, flags; /* as in its bh_image_shape */
    uint32_t height, depth;
};

/* A texture, surface or tensor map. */
struct bh__object {
    uint64_t id;
    bh__memory *memory;       /* Retained. */
    uint64_t offset;          /* of the object's bytes in it */
    bh__launch_object record; /* without the offset of its parameter */
};

/* The device's part. */
typedef struct bh__texture_room {
    uint64_t last_number;
} bh__texture_room;

#endif
