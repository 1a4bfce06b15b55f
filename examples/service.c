/* SPDX-License-Identifier: Apache-2.0 */
/* A service that runs jobs it cannot vouch for: some crash, some never end, the others must not
 * suffer. usage: service [DEVICE] */
#include <bulkhead.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* out[0] = 1 + 2 + ... + n. For n = 13 it traps; n = 0 takes it 2^64 rounds. */
static const char ptx[] =
    ".version 7.0\n"
    ".target sm_70\n"
    ".address_size 64\n"
    ".visible .entry work(.param .u64 .ptr .global .align 8 out, .param .u64 n)\n"
    "{\n"
    "    .reg .pred %p;\n"
    "    .reg .b64 %to, %n, %sum;\n"
    "    ld.param.u64 %n, [n];\n"
    "    setp.eq.u64 %p, %n, 13;\n"
    "    @%p trap;\n"
    "    mov.u64 %sum, 0;\n"
    "AGAIN:\n"
    "    add.u64 %sum, %sum, %n;\n"
    "    sub.u64 %n, %n, 1;\n"
    "    setp.ne.u64 %p, %n, 0;\n"
    "    @%p bra AGAIN;\n"
    "    ld.param.u64 %to, [out];\n"
    "    st.global.u64 [%to], %sum;\n"
    "    ret;\n"
    "}\n";

typedef struct job {
    uint64_t n;
    bh_status expected;
    bh_buffer out;
    bh_ticket ticket;
} job;

enum { JOBS = 8 };

static void must(bh_status status, const char *what) {
    if (status == BH_OK) return;
    bh_error why;
    bh_last_error(&why);
    fprintf(stderr, "error: %s: %s: %s\nFix: %s\n", what, bh_status_name(status), why.message,
            why.fix);
    exit(1);
}

/* Runs on the library's dispatcher thread, after each takeover. */
static void on_loss(void *context, const bh_event *event) {
    const bh_loss *loss = event->loss;
    (void)context;
    printf("worker %d lost (%s), %s took over %.0f us later\n", (int)loss->generation,
           bh_status_name(loss->cause), loss->from_standby ? "the standby" : "a new one",
           (double)loss->takeover_ns / 1e3);
}

static void submit(bh_kernel work, job *it) {
    bh_launch_options options = BH_INIT(options);
    options.deadline_ns = 3000000000; /* of running; time in the queue does not count */
    must(bh_launch(work, BH_GRID(1, 1), BH_ARGS(BH_OUT(it->out), it->n), &options, &it->ticket),
         "submit");
}

/* What became of a job, submitted again as often as that makes sense. */
static bh_status finish(bh_kernel work, job *it) {
    for (;;) {
        bh_status status = bh_wait(it->ticket, BH_FOREVER);
        switch (status) {
        case BH_E_LOST: /* ran beside another job that took the worker down */
            submit(work, it);
            break;
        case BH_E_FAULT: /* its own doing: not again */
        case BH_E_DEADLINE:
        case BH_OK:
            return status;
        default: /* BH_E_STOPPED: too many losses; anything else is not expected here */
            must(status, "run a job");
        }
    }
}

int main(int argc, char **argv) {
    static const uint64_t sizes[JOBS] = {10, 1000, 13, 100, 0, 5000, 13, 77};
    bh_device_options options = BH_INIT(options);
    options.device = argc > 1 ? argv[1] : "auto";
    bh_device gpu;
    bh_module mod;
    bh_kernel work;
    must(bh_device_open(&options, &gpu), "open");
    bh_watch_options losses = BH_INIT(losses);
    losses.kinds = BH_EVENT_LOSS;
    bh_watch watch; /* until the device is closed */
    must(bh_watch_open(gpu, &losses, on_loss, NULL, &watch), "watch");
    must(bh_module_load(gpu, ptx, strlen(ptx), &mod), "load");
    must(bh_kernel_get(mod, "work", &work), "get the kernel");

    /* All jobs are queued at once: those behind a bad one run on its worker's successor. */
    job jobs[JOBS];
    for (int i = 0; i < JOBS; i++) {
        jobs[i].n = sizes[i];
        jobs[i].expected = sizes[i] == 13 ? BH_E_FAULT : sizes[i] == 0 ? BH_E_DEADLINE : BH_OK;
        must(bh_buffer_alloc(gpu, BH_U64, 1, NULL, &jobs[i].out), "allocate");
        submit(work, &jobs[i]);
    }
    int wrong = 0;
    for (int i = 0; i < JOBS; i++) {
        bh_status status = finish(work, &jobs[i]);
        uint64_t sum = 0, n = jobs[i].n;
        if (status == BH_OK) must(bh_buffer_read(jobs[i].out, 0, &sum, sizeof sum), "read");
        int right = status == jobs[i].expected && (status != BH_OK || sum == n * (n + 1) / 2);
        printf("%s job %d, n = %lu: %s\n", right ? "ok    " : "FAILED", i, (unsigned long)n,
               bh_status_name(status));
        wrong += !right;
    }
    must(bh_device_close(gpu), "close"); /* every callback has run when this returns */
    return wrong != 0;
}
