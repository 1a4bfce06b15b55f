/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules: loading and unloading, lookup of kernels, variables, and name expressions. product.h has
 * products of compiles.
 */
#ifndef BH_CLIENT_MODULE_MODULE_H
#define BH_CLIENT_MODULE_MODULE_H

#include "client/core/device.h"

/* ---- module.c ---- */

/* Creates a module without an image. It has a handle and a pending ticket. NULL: the thread's error
 * is set. With the lock held. */
bh__module *bh__module_announce(bh__device *device);
/* With the lock held: copies the image, or the PTX beside it if the device loads no cubins, and
 * orders the load. False: not done, *error is set. */
bool bh__module_send(bh__device *device, bh__module *module, const void *image, size_t bytes,
                     bh_error *error);
/* Resolves the module's ticket, once. An error drops the module. Without the lock. */
void bh__module_resolve(bh__device *device, bh__module *module, const bh_error *error);
/* The same in two parts: the first with the lock held, the second after it was released. */
void bh__module_resolve_locked(bh__device *device, bh__module *module, const bh_error *error);
void bh__module_wake(bh__device *device);
/* bh__module_announce and bh__module_send. `product`: the compile that it comes from, or NULL. */
bh_status bh__module_submit(bh_device device, const void *image, size_t bytes, bh__product *product,
                            uint32_t cache, bh_module *out, bh_ticket *ticket);
/* Locks the device of a module and finds the module, which must be loaded. NULL: nothing is locked
 * and the thread's error is set. */
bh__module *bh__module_lock(bh_module handle, bool running, bh__device **out);
/* Reads the worker's description of the module. False: it is not valid. */
bool bh__module_parse(bh__module *module, int blob_fd);
/* Charges its variables to the device's memory limit. False: they do not fit and *error is set.
 * With the lock held. */
bool bh__module_charge(bh__device *device, bh__module *module, bh_error *error);
/* Returns true if kernels may have changed variables of the module, so that their values are lost
 * with the worker. */
bool bh__module_keeps_state(const bh__module *module);
/* Returns true if a launch with this stamp would run without values that kernels wrote before. */
bool bh__module_lacks_state(const bh__module *module, uint64_t stamp);
/* Saves the values of writes of variables that have completed, for the next worker. */
void bh__variables_settle(bh__device *device);
/* Removes the module from the device and frees it. With the lock held. */
void bh__module_drop(bh__device *device, bh__module *module);
void bh__module_delete(bh__module *module);
/* Unloads modules whose handle is closed and that nothing uses. With the lock held. */
void bh__modules_sweep(bh__device *device);
/* The kernel may run again after faults. With the lock held. */
static inline void bh__kernel_pardon(bh__kernel *kernel) {
    kernel->quarantined = false;
    kernel->faults = kernel->score = 0;
}
/* Ends a use that was counted in `pins`. With the lock held; the module stays until that is
 * released. */
void bh__module_unpin(bh__device *device, bh__module *module);

/* Fills in *error for a module that two workers describe differently. */
bh_status bh__refuse_disputed(const bh__module *module, bh_error *error);

/* ---- description.c: what another worker says that the module holds ---- */

typedef enum bh__description {
    BH__DESCRIPTION_SAME,
    BH__DESCRIPTION_DIFFERS,
    BH__DESCRIPTION_UNREADABLE
} bh__description;
/* With the lock held. */
bh__description bh__module_compare(const bh__module *module, int blob_fd);

/* ---- names.c: name expressions ---- */

/* Allocates room for `count` pairs. Must come first. False: no host memory. */
bool bh__names_reserve(bh__names *names, size_t count);
bool bh__names_add(bh__names *names, const char *expression, const char *lowered);
void bh__names_free(bh__names *names);
/* White space counts only where it separates two words. NULL: not found. *out_other is another
 * thing that it means in another part of a link, or NULL. */
const bh__name *bh__names_find(const bh__names *names, const char *expression,
                               const bh__name **out_other);
bh_status bh__names_refuse_two(const char *expression, const char *one, const char *other);
bool bh__expressions_equal(const char *a, const char *b);
/* Returns true if the name is not a plain name. A plain name has only letters, digits, _ and $. */
bool bh__name_is_expression(const char *name);

/* ---- kernel_times.c: called with the device locked ---- */

enum { BH__KERNEL_TOTALS = 128 };

/* The launches of a kernel on the active worker. */
typedef struct bh__kernel_total {
    uint64_t key; /* bh__kernel_key */
    uint64_t launches, ns;
} bh__kernel_total;

/* Adds up what the active worker has counted on all lanes. Returns the number of kernels, at most
 * `room`. */
uint32_t bh__kernel_totals(bh__device *device, bh__kernel_total *out, uint32_t room);
/* The launches of a kernel whose time is known, and that time, on all workers so far. */
void bh__kernel_total_add(const bh__kernel *kernel, const bh__kernel_total *list, uint32_t count,
                          uint64_t *timed, uint64_t *ns);
/* The worker is lost: keeps what it counted. */
void bh__kernels_settle(bh__device *device);

#endif
