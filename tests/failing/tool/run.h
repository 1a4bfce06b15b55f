/* SPDX-License-Identifier: Apache-2.0 */
/* One run: a scenario in a process of its own, with one call, or one and all after it, failing. */
#ifndef TESTS_FAILING_RUN_H
#define TESTS_FAILING_RUN_H

#include <sys/types.h>

#include "page.h"
#include "world.h"

typedef struct plan {
    const scenario *scenario;
    failing_process process;
    failing_class calls;
    uint32_t mode;
    uint64_t n;
} plan;

typedef enum outcome { RUN_GOOD, RUN_DEFECT } outcome;

/* Where a run is carried out; its output goes to a file. */
typedef struct slot {
    pid_t pid; /* 0: free */
    plan plan;
    uint64_t begun;
    failing_page *page;
    int page_fd;
    char folder[200];
    char output[256];
} slot;

void slot_make(slot *s, unsigned number);
void slot_start(slot *s, const plan *p);
/* Waits for it, and ends it where it hangs. */
outcome slot_end(slot *s);
void slot_remove(slot *s);
/* The command that repeats it, on one line. */
void plan_print(const plan *p);

extern const char *const process_names[PROCESS_KINDS];
extern const char *const class_names[CALLS_CLASSES];

#endif
