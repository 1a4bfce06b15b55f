/* SPDX-License-Identifier: Apache-2.0 */
/* src/base/futex: sleeping on a word, between threads and between processes. */
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "test.h"

static _Atomic(uint32_t) word;
static _Atomic(uint32_t) awake;

TEST(wait_returns_at_once_if_the_word_differs) {
    atomic_store(&word, 2);
    CHECK(bh__futex_wait(&word, 1, BH__NEVER, BH__FUTEX_PRIVATE));
    CHECK(bh__futex_wait(&word, 1, BH__NEVER, BH__FUTEX_SHARED));
}

TEST(wait_ends_at_its_deadline_and_not_before) {
    uint64_t deadline = bh__deadline_after(30 * BH__NS_PER_MS);
    while (bh__futex_wait(&word, 0, deadline, BH__FUTEX_PRIVATE)) {
    }
    CHECK_GE(bh__now_ns(), deadline);
    CHECK(!bh__futex_wait(&word, 0, 0, BH__FUTEX_PRIVATE));
}

static void *sleeper(void *context) {
    (void)context;
    while (atomic_load(&word) == 0) {
        bh__futex_wait(&word, 0, BH__NEVER, BH__FUTEX_PRIVATE);
    }
    atomic_fetch_add(&awake, 1);
    return NULL;
}

TEST(wake_reaches_all_sleepers) {
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) {
        REQUIRE_EQ(pthread_create(&threads[i], NULL, sleeper, NULL), 0);
    }
    usleep(20000);
    CHECK_EQ(atomic_load(&awake), 0);
    atomic_store(&word, 1);
    bh__futex_wake(&word, BH__FUTEX_ALL, BH__FUTEX_PRIVATE);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(atomic_load(&awake), 4);
    CHECK_EQ(bh__futex_wake(&word, BH__FUTEX_ALL, BH__FUTEX_PRIVATE), 0);
}

TEST(a_process_wakes_another_that_may_only_read) {
    int file = memfd_create("futex", MFD_CLOEXEC);
    REQUIRE(file >= 0 && ftruncate(file, 4096) == 0);
    _Atomic(uint32_t) *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    _Atomic(uint32_t) *seen = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    REQUIRE(shared != MAP_FAILED && seen != MAP_FAILED);
    pid_t child = fork();
    if (child == 0) {
        uint64_t deadline = bh__deadline_after(20 * BH__NS_PER_S);
        while (atomic_load(seen) == 0 && bh__now_ns() < deadline) {
            bh__futex_wait(seen, 0, deadline, BH__FUTEX_SHARED);
        }
        _exit(atomic_load(seen) == 1 ? 0 : 1);
    }
    REQUIRE(child > 0);
    /* Once it sleeps, only the wake-up below can bring it back in time. */
    usleep(20000);
    atomic_store(shared, 1);
    bh__futex_wake(shared, 1, BH__FUTEX_SHARED);
    int status = -1;
    uint64_t start = bh__now_ns();
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_LT(bh__now_ns() - start, 10 * BH__NS_PER_S);
    close(file);
}
