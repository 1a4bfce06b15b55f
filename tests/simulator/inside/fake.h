/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that computes next to nothing and watches everything: requests take random time, write
 * their bytes piece by piece, and tell the simulator's oracle of each. Its kernels are a fixed set;
 * any image that begins with FAKE_IMAGE is a module with all of them. One that begins with
 * FAKE_VARIABLE also has the variable "var", and so has FAKE_CONSTANT, where no kernel writes it.
 */
#ifndef FAKE_H
#define FAKE_H

#include "worker/device.h"

#define FAKE_IMAGE    "fake module"
#define FAKE_VARIABLE "fake module with a variable"
#define FAKE_CONSTANT "fake module with a constant"

/* Kernels, all of one thread; `n` counts 32-bit words. */
enum {
    FAKE_STORE,   /* (out, n, v): each word becomes v */
    FAKE_ADD,     /* (inout, n, v): v is added to each */
    FAKE_COPY,    /* (in, out, n) */
    FAKE_FAULT,   /* (out, n, v): stores half of it, then faults */
    FAKE_ENDLESS, /* (out, n, v): stores half of it and never ends */
    FAKE_REFUSED, /* (out, n, v): the device refuses it */
    FAKE_CRASH,   /* (out, n, v): stores half of it and takes its process along */
    FAKE_GET,     /* (out, n): stores the variable in each */
    FAKE_SET,     /* (v): sets the variable */
    FAKE_KERNELS
};

extern const bh__device_ops fake_device;
extern const bh__device_ops fake_queued_device; /* with queues of its own */

/* Does one request, on whichever thread; see device.h's execute. */
bh_status fake_execute(bh__device_instance *device, uint32_t lane, const bh__work *work,
                       bh_error *error);
bool fake_killed(const bh__device_instance *device);
bh__area *fake_area(const bh__device_instance *device);

#endif
