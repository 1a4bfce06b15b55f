/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker has not received yet may be released meanwhile: its descriptor stays valid until it
 * was sent. */
#include <signal.h>
#include <sys/mman.h>

#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/transfers.h"

enum { BUFFERS = 6, LARGE_WORDS = (8 << 20) / 4, LARGER_WORDS = (64 << 20) / 4, NUMBERS = 64 };

static void *alloc_larger(void *context) {
    const rig *r = context;
    bh_buffer buffer;
    CHECK_OK(bh_buffer_alloc(r->device, BH_U32, LARGER_WORDS, NULL, &buffer));
    CHECK_OK(bh_buffer_release(buffer));
    return NULL;
}

/* The standby is behind: of several chunks it has been told of two. The others are given back, by a
 * call that does not wait for the active worker, which is busy. Then the standby goes on. */
TEST(a_standby_that_is_behind_is_told_of_chunks_that_are_gone) {
    rig r = rig_open(0);
    wait_standby(r.device);
    bh_health before = health_of(r.device);
    kill(before.standby_pids[0], SIGSTOP);
    bh_buffer buffers[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) buffers[i] = words_alloc(r.device, LARGE_WORDS);
    for (int i = 0; i < BUFFERS; i++) CHECK_OK(bh_buffer_release(buffers[i]));
    kill(before.worker_pid, SIGSTOP);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, alloc_larger, &r) == 0);
    sleep_ms(100);
    /* If the numbers are free, other files get them. */
    int numbers[NUMBERS];
    for (int i = 0; i < NUMBERS; i++) numbers[i] = memfd_create("another", MFD_CLOEXEC);
    kill(before.standby_pids[0], SIGCONT);
    sleep_ms(200);
    CHECK_EQ(health_of(r.device).standby_pids[0], before.standby_pids[0]);
    kill(before.worker_pid, SIGCONT);
    pthread_join(thread, NULL);
    for (int i = 0; i < NUMBERS; i++) close(numbers[i]);
    wait_standby(r.device);
    CHECK_EQ(health_of(r.device).standby_pids[0], before.standby_pids[0]);

    bh_buffer kept = words_counting(r.device, LARGE_WORDS, 7);
    kill_worker(r.device, SIGKILL);
    CHECK_EQ(health_of(r.device).worker_pid, before.standby_pids[0]);
    CHECK(words_count(kept, LARGE_WORDS, 7));
    check_device_works(&r);
    CHECK_OK(bh_device_close(r.device));
}

/* The same with everything that has a descriptor: nothing of it may cost the standby its life, and
 * no descriptor may be left over. */
TEST(a_standby_that_is_behind_is_told_of_all_that_is_gone) {
    rig r = rig_open(0);
    wait_standby(r.device);
    check_device_works(&r);
    unsigned open_before = 0;
    for (int round = 0; round < 3; round++) {
        bh_health before = health_of(r.device);
        kill(before.standby_pids[0], SIGSTOP);
        for (int i = 0; i < 8; i++) {
            void *memory;
            bh_buffer shared;
            bh_sequence sequence;
            CHECK_OK(bh_host_alloc(r.device, 8192, &memory));
            CHECK_OK(alloc_shareable(r.device, BH_U32, 100, &shared));
            bh_module module = load_module(r.device, ptx_factor);
            CHECK_OK(bh_sequence_begin(r.device, NULL, &sequence));
            CHECK_OK(record_fill(sequence, shared, 0, 400, &(uint32_t){3}, 4, NULL));
            CHECK_OK(bh_sequence_finish(sequence));
            CHECK_OK(bh_sequence_release(sequence));
            CHECK_OK(bh_module_release(module));
            CHECK_OK(bh_buffer_release(shared));
            CHECK_OK(bh_host_free(r.device, memory));
        }
        kill(before.standby_pids[0], SIGCONT);
        wait_standby(r.device);
        CHECK_EQ(health_of(r.device).standby_pids[0], before.standby_pids[0]);
        if (round == 0) open_before = open_descriptors();
        if (round == 2) CHECK_EQ(open_descriptors(), open_before);
    }
    CHECK_OK(bh_device_close(r.device));
}
