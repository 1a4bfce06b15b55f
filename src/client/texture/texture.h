/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images, and textures and surfaces over images and buffers: docs/textures.md. All functions are
 * called with the lock held.
 */
#ifndef BH_CLIENT_TEXTURE_TEXTURE_H
#define BH_CLIENT_TEXTURE_TEXTURE_H

#include "client/core/device.h"

/* Fills in how a channel of this type is stored. False: textures do not have it. */
bool bh__channel_of(bh_type type, bh__image_shape *out);
/* Frees the records of all images, textures and surfaces. The device is being freed. */
void bh__textures_free(bh__device *device);

#endif
