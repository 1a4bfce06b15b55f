/* SPDX-License-Identifier: Apache-2.0 */
/* Writing over all that this worker can write: its area, files that it was given, memory of
 * buffers. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/futex.h"
#include "hostile.h"

static bh__area *area(void) {
    return hostile.services->area;
}

static bh__lane_area *some_lane(void) {
    return &area()->lane[one_in(8) ? below(BH__MAX_LANES) : below(5)];
}

/* Close to what stands there, which is the most credible, or anything. */
static void spoil(_Atomic uint64_t *word) {
    uint64_t near = atomic_load(word) + below(9) - 4;
    atomic_store(word, one_in(2) ? near : odd_number());
}

static void notify(uint32_t type) {
    static bh__message message;
    message.type = type;
    __real_bh__message_send(BH__WORKER_SOCKET, &message, NULL, 0);
}

static void claims(void) {
    spoil(&some_lane()->claim);
}

static void claim_flags(void) {
    bh__lane_area *lane = some_lane();
    for (uint32_t i = 0, n = 1 + below(2000); i < n; i++) {
        if (one_in(2))
            atomic_fetch_and(&lane->claim, ~(uint64_t)3);
        else
            atomic_fetch_or(&lane->claim, one_in(2) ? BH__FROZEN : BH__PAUSED);
    }
}

static void dones(void) {
    spoil(&some_lane()->done);
}

/* As fast as can be, between two believable values. */
static void done_flickers(void) {
    bh__lane_area *lane = some_lane();
    uint64_t low = atomic_load(&lane->done);
    for (uint32_t i = 0, n = below(200000); i < n; i++) atomic_store(&lane->done, low + (i & 3));
    atomic_store(&lane->done, low);
}

/* All that was taken is said to be done, and nothing of it was. */
static void done_ahead(void) {
    bh__lane_area *lane = some_lane();
    atomic_store(&lane->done, bh__claim_position(atomic_load(&lane->claim)));
}

static void groups(void) {
    bh__lane_area *lane = some_lane();
    bh__group *group = &lane->groups[below(BH__GROUPS)];
    uint64_t done = atomic_load(&lane->done);
    atomic_store(&group->begin, one_in(2) ? done : odd_number());
    atomic_store(&group->end, one_in(2) ? done + below(50) : odd_number());
}

static void steps(void) {
    bh__lane_area *lane = some_lane();
    spoil(&lane->step);
    spoil(&lane->pulse);
}

static void handing(void) {
    spoil(&some_lane()->handing);
}

static void asleep(void) {
    atomic_store(&some_lane()->asleep, (uint32_t)odd_number());
}

/* Sleepers wake again and again. */
static void wakes(void) {
    for (uint32_t i = 0, n = below(3000); i < n; i++) {
        bh__lane_area *lane = &area()->lane[i & 3];
        atomic_fetch_add(&lane->wake, 1 + (one_in(50) ? (uint32_t)odd_number() : 0));
        bh__futex_wake(&lane->wake, BH__FUTEX_ALL, BH__FUTEX_SHARED);
    }
}

/* The word never stands still: who sleeps on it never does. */
static void wakes_for_ever(void) {
    for (uint32_t i = 0; i < 100000000; i++)
        for (int lane = 0; lane < 4; lane++) atomic_fetch_add(&area()->lane[lane].wake, 1);
}

static void pongs(void) {
    atomic_store(&area()->pong, (uint32_t)odd_number());
}

static void spoil_report(bh__report *report) {
    if (one_in(4)) {
        fill_random(report, sizeof *report);
        return;
    }
    memset(report, (int)below(256), sizeof *report);
    report->lane = one_in(4) ? (uint32_t)odd_number() : below(5);
    uint64_t done = atomic_load(&area()->lane[report->lane % BH__MAX_LANES].done);
    report->sequence = one_in(3) ? odd_number() : done + below(12) - 2;
    report->status = one_in(2) ? (bh_status)below(24) : (bh_status)odd_number();
    report->step = (uint32_t)odd_number();
    report->bytes = (uint32_t)odd_number();
    report->address = odd_number();
}

static void faults(void) {
    spoil_report(&area()->fault);
    atomic_store(&area()->fault_state, one_in(3) ? (uint32_t)odd_number() : BH__FAULT_SET);
    if (one_in(2)) notify(BH__MSG_FAULT);
}

static void reports(void) {
    uint32_t made = atomic_load(&area()->reports_made);
    for (uint32_t i = 0, n = 1 + below(BH__REPORTS); i < n; i++)
        spoil_report(&area()->reports[(made + i) % BH__REPORTS]);
    atomic_store(&area()->reports_made, one_in(3) ? (uint32_t)odd_number() : made + 1 + below(70));
    if (one_in(3)) atomic_store(&area()->reports_taken, (uint32_t)odd_number());
    notify(BH__MSG_REPORT);
}

static void counts(void) {
    _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)&some_lane()->counts;
    for (uint32_t i = 0; i < 20; i++)
        atomic_store(&words[below(sizeof(bh__lane_counts) / 8)], odd_number());
}

static void times(void) {
    _Atomic uint64_t *words =
        (_Atomic uint64_t *)(void *)((uint8_t *)area() + bh__area_head_bytes());
    for (uint32_t i = 0; i < 50; i++) atomic_store(&words[below(4 * 64)], odd_number());
}

/* Times of timed requests. The sequence numbers stay as they are mostly, so that the rest is
 * read. */
static void timed(void) {
    enum { QUEUE_LENGTH = 64 }; /* of the devices that the driver opens */
    for (uint32_t i = 0; i < 500; i++) {
        bh__timed *one = bh__area_timed(area(), QUEUE_LENGTH, below(5), below(64));
        if (one_in(8)) spoil(&one->sequence);
        spoil(&one->taken);
        spoil(&one->begun);
        spoil(&one->device_ns);
    }
}

static void area_words(void) {
    _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)area();
    for (uint32_t i = 0, n = 1 + below(200); i < n; i++)
        atomic_store(&words[below(sizeof(bh__area) / 8)], odd_number());
}

static void area_pages(void) {
    uint8_t *page = (uint8_t *)area() + (size_t)below(sizeof(bh__area) / 4096) * 4096;
    if (one_in(2))
        memset(page, one_in(2) ? 0 : 0xff, 4096);
    else
        fill_random(page, 4096);
}

static void area_whole(void) {
    memset(area(), one_in(3) ? 0 : (int)below(256), sizeof(bh__area));
}

/* Images, sequences, host memory, the front: as far as they can be written. */
static void given_memory(void) {
    uint32_t count = atomic_load(&hostile.file_count);
    if (count == 0) return;
    const given_file *file = &hostile.files[below(count)];
    if (!file->memory) return;
    for (uint32_t i = 0, n = below(4000); i < n; i++)
        file->memory[chance_next(&hostile.chance) % file->bytes] = (uint8_t)odd_number();
}

static void given_files(void) {
    uint32_t count = atomic_load(&hostile.file_count);
    if (count == 0) return;
    const given_file *file = &hostile.files[below(count)];
    char noise[512];
    fill_random(noise, sizeof noise);
    ssize_t ignored = 0;
    switch (below(5)) {
    case 0:
        ignored = ftruncate(file->fd, (off_t)below(4096));
        break;
    case 1:
        ignored = ftruncate(file->fd, (off_t)1 << below(40));
        break;
    case 2:
        fallocate(file->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)file->bytes);
        break;
    case 3:
        fcntl(file->fd, F_ADD_SEALS, 1u << below(5));
        break;
    default:
        ignored = pwrite(file->fd, noise, sizeof noise, (off_t)below(8192));
    }
    (void)ignored;
}

/* The pipe by which the application's dispatcher is told. */
static void bell_rings(void) {
    uint64_t count = one_in(2) ? 1 : UINT64_MAX - 1;
    for (uint32_t i = 0, n = below(3000); i < n; i++) {
        ssize_t ignored = write(atomic_load(&hostile.bell_fd), &count, sizeof count);
        (void)ignored;
    }
}

/* File flags are shared by all who have the file: their reads and writes would wait. */
static void bell_blocks(void) {
    int fd = atomic_load(&hostile.bell_fd);
    uint64_t count = UINT64_MAX - 1;
    fcntl(fd, F_SETFL, 0);
    for (uint32_t i = 0, n = below(3000); i < n; i++) {
        fcntl(fd, F_SETFL, O_NONBLOCK);
        ssize_t ignored = one_in(2) ? read(fd, &count, sizeof count) : 0;
        count = UINT64_MAX - 1;
        if (one_in(2)) ignored = write(fd, &count, sizeof count);
        (void)ignored;
        fcntl(fd, F_SETFL, 0);
    }
}

/* What the worker itself rings from now on is heard by nobody. */
static void bell_silent(void) {
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (nothing >= 0) dup2(nothing, atomic_load(&hostile.bell_number));
    close(nothing);
}

static void wakes_nobody(void) {
}

const hostility scribbles[] = {
    {.name = "claims", .strike = claims},
    {.name = "claim_flags", .strike = claim_flags},
    {.name = "dones", .strike = dones},
    {.name = "done_flickers", .strike = done_flickers},
    {.name = "done_ahead", .strike = done_ahead},
    {.name = "groups", .strike = groups},
    {.name = "steps", .strike = steps},
    {.name = "handing", .strike = handing},
    {.name = "asleep", .strike = asleep},
    {.name = "wakes", .strike = wakes},
    {.name = "wakes_for_ever", .strike = wakes_for_ever},
    {.name = "pongs", .strike = pongs},
    {.name = "faults", .strike = faults},
    {.name = "reports", .strike = reports},
    {.name = "counts", .strike = counts},
    {.name = "times", .strike = times},
    {.name = "timed", .strike = timed},
    {.name = "area_words", .strike = area_words},
    {.name = "area_pages", .strike = area_pages},
    {.name = "area_whole", .strike = area_whole},
    {.name = "given_memory", .strike = given_memory},
    {.name = "given_files", .strike = given_files},
    {.name = "bell_rings", .strike = bell_rings},
    {.name = "bell_blocks", .strike = bell_blocks},
    {.name = "bell_silent", .strike = bell_silent},
    {.name = "wakes_nobody", .wake = wakes_nobody},
};
const size_t scribble_count = sizeof scribbles / sizeof *scribbles;
