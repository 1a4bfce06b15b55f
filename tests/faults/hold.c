/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a dead worker could still write is left alone until the worker is gone for good, and
 * nothing else waits for that.
 *
 * A worker stays dead and not gone while somebody traces one of its threads and does not collect
 * it: its pidfd tells only when the last thread is collected. */
#include <dirent.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "../support/support.h"

enum { WORDS = 512, TRIES = 40 };

/* A thread of the process that is not its first; 0: there is none. */
static pid_t some_thread(pid_t process) {
    char path[64];
    DIR *dir = opendir(test_path(path, sizeof path, "/proc/%d/task", (int)process));
    REQUIRE(dir != NULL);
    pid_t found = 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        pid_t thread = (pid_t)atoi(entry->d_name);
        if (thread > 0 && thread != process) found = thread;
    }
    closedir(dir);
    return found;
}

static pid_t hold_on_to(bh_device device) {
    pid_t thread = some_thread(status_of(device).worker_pid);
    if (thread == 0) SKIP("the worker has one thread");
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0)
        SKIP("threads of a worker cannot be traced here: %s", strerror(errno));
    return thread;
}

static void let_go(pid_t thread) {
    int status;
    while (waitpid(thread, &status, __WALL) == thread && WIFSTOPPED(status))
        REQUIRE(ptrace(PTRACE_CONT, thread, NULL, NULL) == 0);
}

/* Whether one of `TRIES` buffers of this size gets the address. */
static bool is_handed_out(bh_device device, uint64_t address) {
    bh_buffer tries[TRIES];
    bool found = false;
    for (int i = 0; i < TRIES; i++) {
        tries[i] = words_alloc(device, WORDS);
        found |= address_of(tries[i]) == address;
    }
    for (int i = 0; i < TRIES; i++) CHECK_OK(bh_buffer_release(tries[i]));
    return found;
}

struct scene {
    rig r;
    bh_buffer intact, touched, freed;
    uint64_t freed_address;
    pid_t held;
};

/* A launch that writes `touched` and, as far as the library knows, `freed`, and then faults; the
 * worker it was the end of is not gone when this returns. */
static void lose_worker(struct scene *s) {
    s->r = rig_open(0);
    s->intact = words_counting(s->r.device, WORDS, 10);
    s->touched = words_filled(s->r.device, WORDS, 1);
    s->freed = words_filled(s->r.device, WORDS, 2);
    s->freed_address = address_of(s->freed);
    wait_standby(s->r.device);
    s->held = hold_on_to(s->r.device);
    bh_use also = {.buffer = s->freed, .access = BH_ACCESS_OUT};
    bh_launch_options options = BH_INIT(options);
    options.also = &also;
    options.also_count = 1;
    bh_ticket ticket = submit(rig_kernel(&s->r, "write_then_poke"), BH_GRID(WORDS, 64),
                              BH_ARGS(BH_INOUT(s->touched), (uint32_t)WORDS, NOWHERE), &options);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    wait_generation(s->r.device, 2);
}

TEST(work_on_what_a_dead_worker_could_write_waits_until_it_is_gone) {
    struct scene s;
    lose_worker(&s);
    bh_launch_options aside = on_lane(open_lane(s.r.device), 0);
    bh_ticket waits = submit(rig_kernel(&s.r, "iota"), BH_GRID(WORDS, 64),
                             BH_ARGS(BH_OUT(s.touched), 100u, (uint32_t)WORDS), &aside);
    /* Everything else goes on meanwhile. */
    for (int i = 0; i < 20; i++) {
        CHECK_OK(run_now(rig_kernel(&s.r, "add_one"), BH_GRID(WORDS, 64),
                         BH_ARGS(BH_INOUT(s.intact), (uint32_t)WORDS)));
        sleep_ms(10);
    }
    CHECK(words_count(s.intact, WORDS, 30));
    check_device_works(&s.r);
    CHECK_STATUS(bh_query(waits), BH_E_BUSY);
    CHECK_STATUS(bh_wait(waits, 50 * MS), BH_E_TIMEOUT);

    let_go(s.held);
    CHECK_OK(bh_wait(waits, LONG_NS));
    CHECK(words_count(s.touched, WORDS, 100));
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(what_a_dead_worker_could_write_is_not_handed_out_until_it_is_gone) {
    struct scene s;
    lose_worker(&s);
    CHECK_OK(bh_buffer_release(s.freed));
    CHECK(!is_handed_out(s.r.device, s.freed_address));
    check_device_works(&s.r);

    let_go(s.held);
    bool handed_out = false;
    for (uint64_t limit = now_ns() + LONG_NS; !handed_out && now_ns() < limit; sleep_ms(5))
        handed_out = is_handed_out(s.r.device, s.freed_address);
    CHECK(handed_out);
    CHECK_OK(bh_device_close(s.r.device));
}

TEST(memory_that_is_released_unwritten_is_handed_out_at_once) {
    struct scene s;
    lose_worker(&s);
    uint64_t address = address_of(s.intact);
    CHECK_OK(bh_buffer_release(s.intact));
    CHECK(is_handed_out(s.r.device, address));
    let_go(s.held);
    CHECK_OK(bh_device_close(s.r.device));
}
