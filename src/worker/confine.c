/* SPDX-License-Identifier: Apache-2.0 */
/* A worker confines itself: files before its first thread starts, system calls when its device is
 * open. */
#include "worker/confine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "sandbox/sandbox.h"
#include "worker/crash.h"

/* Keeps the first reason: later ones may only follow from it. */
__attribute__((format(printf, 2, 3))) static void note_lack(bh__confinement *self,
                                                            const char *format, ...) {
    if (self->lack[0]) return;
    va_list list;
    va_start(list, format);
    vsnprintf(self->lack, sizeof self->lack, format, list);
    va_end(list);
}

static void note_errno(bh__confinement *self, const char *what, int result) {
    char reason[64];
    note_lack(self, "%s: %s", what, bh__errno_text(-result, reason, sizeof reason));
}

/* compute-sanitizer and Nsight use LD_PRELOAD. */
static bool is_preloaded(void) {
    static const char *const parts[] = {"Injection", "TreeLauncher", "libsanitizer-collection"};
    const char *loaded = bh__environment("LD_PRELOAD");
    for (size_t i = 0; loaded && i < sizeof parts / sizeof *parts; i++) {
        if (strstr(loaded, parts[i])) return true;
    }
    return false;
}

/* What a profiler's library in this process needs is not known. */
static const char *find_injection(void) {
    static const char *const names[] = {"NVTX_INJECTION64_PATH", "CUDA_INJECTION64_PATH",
                                        "NVTX_INJECTION32_PATH", "CUDA_INJECTION32_PATH"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (bh__environment(names[i])) return names[i];
    }
    return is_preloaded() ? "LD_PRELOAD" : NULL;
}

static void find_tools(bh__confinement *self) {
    const char *injection = find_injection(), *tool = bh__sandbox_obstacle();
    self->profiled = injection != NULL;
    self->tool = injection ? injection : tool;
    if (injection)
        note_lack(self, "system calls are not filtered: %s names a profiler's library", injection);
    else if (tool)
        note_lack(self, "system calls are filtered by a list of forbidden ones only: %s", tool);
}

static void confine_files(bh__confinement *self, const bh__device_ops *ops) {
    bh__file_list list = {.count = 0};
    const char *reason = ops->files(&list);
    if (reason) {
        note_lack(self, "files are not confined: %s", reason);
        return;
    }
    int result = bh__sandbox_files(list.paths, list.count);
    if (result == 0)
        self->reached |= BH_CONFINED_FILES;
    else
        note_errno(self, "files are not confined: Landlock is not available", result);
}

void bh__confine_files(bh__confinement *self, const bh__boot *boot, const bh__device_ops *ops) {
    self->asked = boot->sandbox;
    bh__sandbox_limits(boot->flags & BH_DEVICE_CORE_DUMPS);
    if (!ops->profile || self->asked == BH_SANDBOX_OFF) return;
    find_tools(self);
    if (!ops->files || self->tool) return;
    confine_files(self, ops);
}

/* A tool needs calls beyond the list of allowed ones: the list of forbidden calls is used instead.
 */
static bh__sandbox_profile choose(const bh__confinement *self, const bh__device_ops *ops,
                                  const bh__device_facts *info) {
    bh__sandbox_profile profile = self->tool ? BH__SANDBOX_DRIVER : ops->profile;
    bool sockets = profile == BH__SANDBOX_DRIVER && info->mps; /* the way to the MPS server */
    return sockets ? BH__SANDBOX_DRIVER_SOCKETS : profile;
}

static void filter_calls(bh__confinement *self, bh__sandbox_profile profile, bh__area *area) {
    bh__crash_watch_calls(area);
    int result = bh__sandbox_calls(profile);
    if (result != 0) {
        note_errno(self, "system calls are not filtered: seccomp is not available", result);
        return;
    }
    self->reached |= BH_CONFINED_CALLS;
    if (profile == BH__SANDBOX_COMPUTE) self->reached |= BH_CONFINED_LIST;
}

bh_status bh__confine_calls(bh__confinement *self, const bh__device_ops *ops, bh__area *area,
                            bh__device_facts *info, bh_error *error) {
    if (!ops->profile) return BH_OK;
    if (self->asked == BH_SANDBOX_OFF)
        note_lack(self, "it is turned off");
    else if (!self->profiled)
        filter_calls(self, choose(self, ops, info), area);
    info->sandbox = self->reached;
    snprintf(info->sandbox_lack, sizeof info->sandbox_lack, "%s", self->lack);
    if (self->asked != BH_SANDBOX_ON || !self->lack[0]) return BH_OK;
    return bh__fail(
        error, BH_E_UNSUPPORTED,
        "allow seccomp and landlock_* (Linux 5.13 or later), remove what the message names, or "
        "do not require the sandbox: BH_SANDBOX_DEFAULT, BULKHEAD_SANDBOX unset",
        "the sandbox of workers is required (BH_SANDBOX_ON, or BULKHEAD_SANDBOX=on) and "
        "is not complete: %s",
        self->lack);
}
