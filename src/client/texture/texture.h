/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images, and textures, surfaces and tensor maps over images and buffers: docs/textures.md,
 * docs/tensor-maps.md. All functions but bh__object_release are called with the lock held.
 */
#ifndef BH_CLIENT_TEXTURE_TEXTURE_H
#define BH_CLIENT_TEXTURE_TEXTURE_H

#include "client/core/device.h"

/* Fills in how a channel of this type is stored. False: textures do not have it. */
bool bh__channel_of(bh_type type, bh__image_shape *out);
/* Gives a texture, surface or tensor map, which has been checked, a number and a handle. */
bh_status bh__object_add(bh__device *device, uint32_t kind, const bh__object *from, uint64_t *out);
bh_status bh__object_release(uint64_t handle, uint32_t kind, const char *what);
/* Frees the records of all images, textures, surfaces and tensor maps. The device is being
 * freed. */
void bh__textures_free(bh__device *device);

#endif
