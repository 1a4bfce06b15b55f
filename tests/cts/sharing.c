/* SPDX-License-Identifier: Apache-2.0 */
/* Sharing buffers: between compartments and processes, with and without a compartment, and what is
 * refused. */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "../support/buffers.h"
#include "../support/support.h"

enum { WORDS = 1000 };

typedef struct share {
    int fds[BH_SHARE_FDS];
    bh_share_token token;
} share;

static share share_of(bh_buffer buffer) {
    share s;
    REQUIRE_OK(bh_buffer_export(buffer, s.fds, &s.token));
    return s;
}

static void share_close(const share *s) {
    close(s->fds[0]);
    close(s->fds[1]);
}

static bh_buffer shareable(bh_device device, uint64_t count, uint32_t first) {
    bh_buffer buffer;
    REQUIRE_OK(alloc_shareable(device, BH_U32, count, &buffer));
    uint32_t *words = malloc(count * sizeof *words);
    for (uint64_t i = 0; i < count; i++) words[i] = first + (uint32_t)i;
    REQUIRE_OK(bh_buffer_write(buffer, 0, words, count * sizeof *words));
    free(words);
    return buffer;
}

static bh_buffer import(bh_device device, const share *s) {
    bh_buffer buffer;
    REQUIRE_OK(bh_buffer_import(device, s->fds, &s->token, NULL, &buffer));
    return buffer;
}

TEST(two_compartments_see_the_same_bytes) {
    rig a = rig_open(0), b = rig_open(0);
    bh_buffer here = shareable(a.device, WORDS, 5);
    share s = share_of(here);
    bh_buffer there = import(b.device, &s);
    CHECK(words_count(there, WORDS, 5));
    CHECK_OK(run_now(rig_kernel(&b, "add_one"), BH_GRID(WORDS, 64),
                     BH_ARGS(BH_INOUT(there), (uint32_t)WORDS)));
    CHECK(words_count(here, WORDS, 6));
    CHECK_OK(run_now(rig_kernel(&a, "add_one"), BH_GRID(WORDS, 64),
                     BH_ARGS(BH_INOUT(here), (uint32_t)WORDS)));
    CHECK(words_count(there, WORDS, 7));
    bh_buffer_info info = BH_INIT(info);
    CHECK_OK(bh_buffer_get_info(there, &info));
    CHECK_EQ(info.type, BH_U32);
    CHECK_EQ(info.count, WORDS);
    CHECK_EQ(info.device.id, b.device.id);
    CHECK_EQ(info.address % 256, 0);
    /* Inputs of an opened buffer are as read-only as others. */
    bh_buffer out = words_alloc(b.device, 1);
    CHECK_STATUS(
        run_now(rig_kernel(&b, "write_input"), BH_GRID(1, 1), BH_ARGS(BH_IN(there), BH_OUT(out))),
        BH_E_FAULT);
    CHECK(words_count(there, WORDS, 7));
    CHECK(words_count(here, WORDS, 7));
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
    CHECK(words_count(there, WORDS, 7));
    CHECK_OK(bh_device_close(b.device));
}

static bool zero_behind_the_end(const char *text, size_t size) {
    for (size_t i = strnlen(text, size); i < size; i++) {
        if (text[i]) return false;
    }
    return true;
}

/* A token goes to other processes: what this one had in its memory before does not go with it. */
TEST(a_token_holds_nothing_but_what_it_says) {
    test_soil_stack();
    rig r = rig_open(0);
    bh_buffer buffer = shareable(r.device, WORDS, 0);
    share s = share_of(buffer);
    CHECK(zero_behind_the_end(s.token.kind, sizeof s.token.kind));
    CHECK(zero_behind_the_end(s.token.uuid, sizeof s.token.uuid));
    CHECK_EQ(s.token.reserved, 0);
    share_close(&s);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_view_and_an_opened_buffer_can_be_passed_on) {
    rig a = rig_open(0), b = rig_open(0), c = rig_open(0);
    bh_buffer whole = shareable(a.device, WORDS, 0), view;
    REQUIRE_OK(bh_buffer_view(whole, 0, 100, 50, &view));
    share s = share_of(view);
    CHECK_EQ(s.token.count, 50);
    bh_buffer second = import(b.device, &s);
    CHECK(words_count(second, 50, 100));
    share t = share_of(second);
    bh_buffer third = import(c.device, &t);
    CHECK(words_count(third, 50, 100));
    word_write(third, 0, 77);
    CHECK_EQ(word_read(whole, 100), 77);
    CHECK_REFUSED(bh_buffer_revoke(second), BH_E_INVALID);
    REQUIRE_OK(bh_buffer_release(view));
    REQUIRE_OK(bh_buffer_release(whole));
    share none;
    CHECK_REFUSED(bh_buffer_export(second, none.fds, &none.token), BH_E_STALE);
    CHECK_EQ(word_read(third, 0), 77);
    share_close(&s);
    share_close(&t);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
    CHECK_OK(bh_device_close(c.device));
}

TEST(the_importer_outlives_losses_on_both_sides) {
    rig a = rig_open(BH_DEVICE_NO_RESTART_LIMIT), b = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer here = shareable(a.device, WORDS, 9);
    share s = share_of(here);
    bh_buffer there = import(b.device, &s);
    uint64_t address = address_of(there);
    for (int i = 0; i < 3; i++) {
        kill_worker(a.device, SIGKILL);
        kill_worker(b.device, SIGKILL);
        CHECK(words_count(here, WORDS, 9));
        CHECK(words_count(there, WORDS, 9));
    }
    CHECK_EQ(address_of(there), address);
    wait_standby(b.device);
    kill_worker(b.device, SIGKILL); /* by the standby, which has it mapped */
    CHECK(words_count(there, WORDS, 9));
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

TEST(doubt_stays_on_its_side_and_is_counted) {
    rig a = rig_open(BH_DEVICE_NO_RESTART_LIMIT), b = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    bh_buffer here = shareable(a.device, WORDS, 0);
    share s = share_of(here);
    bh_buffer there = import(b.device, &s);
    bh_share_info info = BH_INIT(info);
    REQUIRE_OK(bh_share_get_info(s.fds, &s.token, &info));
    CHECK_EQ(info.doubts, 0);
    CHECK_EQ(info.stale, 0);
    CHECK_EQ(info.generation, 1);
    CHECK_EQ(info.bytes, WORDS * 4);
    bh_shape shape = BH_GRID(32, 32);
    CHECK_STATUS(
        run_now(rig_kernel(&b, "write_then_poke"), shape, BH_ARGS(BH_INOUT(there), 32u, NOWHERE)),
        BH_E_FAULT);
    CHECK(is_suspect(there));
    CHECK(!is_suspect(here));
    REQUIRE_OK(bh_share_get_info(s.fds, &s.token, &info));
    CHECK_EQ(info.doubts, 0);
    CHECK_STATUS(
        run_now(rig_kernel(&a, "write_then_poke"), shape, BH_ARGS(BH_INOUT(here), 32u, NOWHERE)),
        BH_E_FAULT);
    CHECK(is_suspect(here));
    REQUIRE_OK(bh_share_get_info(s.fds, &s.token, &info));
    CHECK_GE(info.doubts, 1);
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

/* ---- stale ---- */

TEST(tokens_go_stale) {
    rig a = rig_open(0), b = rig_open(0);
    bh_buffer here = shareable(a.device, WORDS, 1), none;
    share first = share_of(here);
    bh_buffer there = import(b.device, &first);
    CHECK_OK(bh_buffer_revoke(here));
    CHECK_REFUSED(bh_buffer_import(b.device, first.fds, &first.token, NULL, &none), BH_E_STALE);
    share second = share_of(here);
    CHECK_EQ(second.token.generation, 2);
    /* The descriptors are the same: only the token tells. */
    CHECK_REFUSED(bh_buffer_import(b.device, second.fds, &first.token, NULL, &none), BH_E_STALE);
    bh_buffer again = import(b.device, &second);
    CHECK(words_count(again, WORDS, 1));
    CHECK(words_count(there, WORDS, 1));
    REQUIRE_OK(bh_buffer_release(here));
    CHECK_REFUSED(bh_buffer_import(b.device, second.fds, &second.token, NULL, &none), BH_E_STALE);
    bh_share_info info = BH_INIT(info);
    CHECK_OK(bh_share_get_info(second.fds, &second.token, &info));
    CHECK_EQ(info.stale, 1);
    /* Nothing that is made there now lies in the memory that was given away. */
    for (int i = 0; i < 8; i++) CHECK(words_are(words_filled(a.device, 1 << 16, 0), 1 << 16, 0));
    bh_buffer next = shareable(a.device, WORDS, 500);
    CHECK(words_count(there, WORDS, 1));
    CHECK(words_count(next, WORDS, 500));
    share_close(&first);
    share_close(&second);
    CHECK_OK(bh_device_close(a.device));
    CHECK(words_count(again, WORDS, 1));
    CHECK_OK(bh_device_close(b.device));
}

TEST(closing_the_device_makes_tokens_stale) {
    rig a = rig_open(0), b = rig_open(0);
    share s = share_of(shareable(a.device, WORDS, 1));
    bh_buffer none;
    CHECK_OK(bh_device_close(a.device));
    CHECK_REFUSED(bh_buffer_import(b.device, s.fds, &s.token, NULL, &none), BH_E_STALE);
    share_close(&s);
    CHECK_OK(bh_device_close(b.device));
}

/* ---- refused ---- */

TEST(no_changed_byte_of_a_token_is_accepted) {
    rig a = rig_open(0);
    share s = share_of(shareable(a.device, WORDS, 0));
    for (size_t i = 0; i < sizeof s.token; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bh_share_token forged = s.token;
            ((uint8_t *)&forged)[i] ^= (uint8_t)(1 << bit);
            bh_share_info info = BH_INIT(info);
            bh_status status = bh_share_get_info(s.fds, &forged, &info);
            if (status != BH_E_INVALID) FAIL("byte %zu, bit %d: %d", i, bit, status);
            bh_buffer none;
            if (bit == 0)
                CHECK_REFUSED(bh_buffer_import(a.device, s.fds, &forged, NULL, &none),
                              BH_E_INVALID);
        }
    }
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
}

TEST(other_descriptors_are_refused) {
    rig a = rig_open(0), b = rig_open(0);
    bh_buffer one = shareable(a.device, WORDS, 0), two = shareable(a.device, WORDS, 1), none;
    share s = share_of(one), t = share_of(two);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), pipes[2];
    int file = memfd_create("file", MFD_CLOEXEC | MFD_ALLOW_SEALING); /* not sealed */
    int small = memfd_create("small", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    REQUIRE(pipe2(pipes, O_CLOEXEC) == 0);
    REQUIRE(ftruncate(file, (off_t)s.token.chunk_bytes) == 0);
    REQUIRE(ftruncate(small, 4096) == 0);
    REQUIRE(fcntl(small, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    int wrong[][2] = {
        {t.fds[0], s.fds[1]}, /* memory of the same size of another buffer */
        {s.fds[0], t.fds[1]}, {s.fds[1], s.fds[0]}, {s.fds[0], s.fds[0]}, {s.fds[1], s.fds[1]},
        {null, s.fds[1]},     {s.fds[0], null},     {pipes[0], s.fds[1]}, {s.fds[0], pipes[0]},
        {file, s.fds[1]},     {small, s.fds[1]},    {s.fds[0], small},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        bh_status status = bh_buffer_import(b.device, wrong[i], &s.token, NULL, &none);
        /* A GPU's driver has words of its own for what is none of its memory. */
        bool refused = is_cpu(b.device) ? status == BH_E_INVALID : status != BH_OK;
        if (!refused) FAIL("pair %zu: %d", i, status);
        void *memory;
        CHECK_REFUSED_ANY(bh_share_map(wrong[i], &s.token, &memory));
    }
    int closed[][2] = {{-1, s.fds[1]}, {s.fds[0], -1}, {999999, s.fds[1]}, {s.fds[0], 999999}};
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++)
        CHECK_REFUSED(bh_buffer_import(b.device, closed[i], &s.token, NULL, &none), BH_E_INVALID);
    CHECK(words_count(import(b.device, &s), WORDS, 0));
    check_device_works(&b);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

TEST(an_imported_buffer_has_a_tag) {
    rig a = rig_open(0), b = rig_open(0);
    bh_buffer here = shareable(a.device, WORDS, 1), there;
    share s = share_of(here);
    bh_buffer_options options = BH_INIT(options);
    options.tag = "frames";
    REQUIRE_OK(bh_buffer_import(b.device, s.fds, &s.token, &options, &there));
    CHECK(words_count(there, WORDS, 1));
    bh_memory_tag tags[4];
    size_t count = 0, found = 0;
    CHECK_OK(bh_memory_list_tags(b.device, tags, sizeof *tags, 4, &count));
    for (size_t i = 0; i < count && i < 4; i++) {
        if (strcmp(tags[i].tag, "frames") != 0) continue;
        found++;
        CHECK_EQ(tags[i].bytes, WORDS * sizeof(uint32_t));
    }
    CHECK_EQ(found, 1);
    bh_buffer_info info = BH_INIT(info);
    CHECK_OK(bh_buffer_get_info(there, &info));
    CHECK_EQ(info.flags, BH_BUFFER_SHAREABLE);
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

TEST(bad_arguments_are_refused) {
    rig a = rig_open(0);
    bh_buffer here = shareable(a.device, WORDS, 0), plain = words_filled(a.device, 10, 1), none;
    share s = share_of(here), t;
    bh_share_info info = BH_INIT(info);
    void *memory;
    int local = 0;
    CHECK_REFUSED(alloc_shareable(a.device, 99, 1, &none), BH_E_INVALID);
    CHECK_REFUSED(alloc_shareable(a.device, BH_U32, 1, NULL), BH_E_INVALID);
    CHECK_REFUSED(alloc_shareable(a.device, BH_U64, UINT64_MAX / 4, &none), BH_E_NO_MEMORY);
    CHECK_REFUSED(alloc_shareable(a.device, BH_U8, UINT64_MAX - 64, &none), BH_E_NO_MEMORY);
    CHECK_REFUSED(alloc_shareable((bh_device){here.id}, BH_U32, 1, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_export(plain, t.fds, &t.token), BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_buffer_revoke(plain), BH_E_UNSUPPORTED);
    CHECK_REFUSED(bh_buffer_export(here, NULL, &t.token), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_export(here, t.fds, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_export((bh_buffer){0}, t.fds, &t.token), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_import(a.device, NULL, &s.token, NULL, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_import(a.device, s.fds, NULL, NULL, &none), BH_E_INVALID);
    bh_buffer_options zeros = BH_INIT(zeros), aligned = BH_INIT(aligned);
    zeros.flags = BH_BUFFER_ZERO;
    CHECK_REFUSED(bh_buffer_import(a.device, s.fds, &s.token, &zeros, &none), BH_E_INVALID);
    aligned.align = 512;
    CHECK_REFUSED(bh_buffer_import(a.device, s.fds, &s.token, &aligned, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_import(a.device, s.fds, &s.token, NULL, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_import((bh_device){0}, s.fds, &s.token, NULL, &none), BH_E_INVALID);
    CHECK_REFUSED(bh_share_get_info(s.fds, &s.token, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_share_get_info(NULL, &s.token, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_share_get_info(s.fds, NULL, &info), BH_E_INVALID);
    CHECK_REFUSED(bh_share_map(s.fds, &s.token, NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_share_map(NULL, &s.token, &memory), BH_E_INVALID);
    CHECK_REFUSED(bh_share_unmap(NULL), BH_E_INVALID);
    CHECK_REFUSED(bh_share_unmap(&local), BH_E_INVALID);
    REQUIRE_OK(bh_buffer_release(here));
    CHECK_REFUSED(bh_buffer_export(here, t.fds, &t.token), BH_E_INVALID);
    share_close(&s);
    CHECK_OK(bh_device_close(a.device));
}

TEST(limits_and_addresses_hold) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.memory_limit = 64 << 20;
    rig a = rig_open_with(&options);
    bh_buffer none;
    CHECK_REFUSED(alloc_shareable(a.device, BH_U8, 65 << 20, &none), BH_E_NO_MEMORY);
    for (int i = 0; i < 200; i++) { /* 8 GiB in all, through 64 MiB */
        bh_buffer buffer;
        REQUIRE_OK(alloc_shareable(a.device, BH_U8, 40 << 20, &buffer));
        CHECK_REFUSED(alloc_shareable(a.device, BH_U8, 40 << 20, &none), BH_E_NO_MEMORY);
        REQUIRE_OK(bh_buffer_release(buffer));
    }
    /* What the pool holds and does not use gives way. */
    bh_buffer pooled, own;
    REQUIRE_OK(bh_buffer_alloc(a.device, BH_U8, 40 << 20, NULL, &pooled));
    CHECK_REFUSED(alloc_shareable(a.device, BH_U8, 40 << 20, &own), BH_E_NO_MEMORY);
    REQUIRE_OK(bh_buffer_release(pooled));
    REQUIRE_OK(alloc_shareable(a.device, BH_U8, 40 << 20, &own));
    CHECK_REFUSED(bh_buffer_alloc(a.device, BH_U8, 40 << 20, NULL, &pooled), BH_E_NO_MEMORY);
    CHECK_OK(bh_device_close(a.device));
}

/* Workers are told things in order: once this is done, so is all that came before. */
static void let_orders_pass(bh_device device) {
    void *memory;
    REQUIRE_OK(bh_host_alloc(device, 4096, &memory));
    REQUIRE_OK(bh_host_free(device, memory));
}

TEST(no_descriptor_is_left) {
    rig a = rig_open(BH_DEVICE_NO_STANDBY), b = rig_open(BH_DEVICE_NO_STANDBY);
    unsigned before = 0;
    for (int i = 0; i < 40; i++) {
        bh_buffer here = shareable(a.device, WORDS, 0), none;
        share s = share_of(here);
        bh_buffer there = import(b.device, &s);
        share forged = s;
        forged.token.check ^= 1;
        CHECK_REFUSED(bh_buffer_import(b.device, forged.fds, &forged.token, NULL, &none),
                      BH_E_INVALID);
        CHECK(words_count(there, WORDS, 0));
        REQUIRE_OK(bh_buffer_release(there));
        REQUIRE_OK(bh_buffer_release(here));
        share_close(&s);
        let_orders_pass(a.device);
        let_orders_pass(b.device);
        if (i == 5) before = open_descriptors();
    }
    CHECK_EQ(open_descriptors(), before);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}

/* ---- without a compartment ---- */

TEST(mapped_without_a_compartment) {
    rig a = rig_open(0);
    share s = share_of(shareable(a.device, WORDS, 3));
    void *memory;
    if (!is_cpu(a.device)) {
        CHECK_REFUSED(bh_share_map(s.fds, &s.token, &memory), BH_E_UNSUPPORTED);
        return;
    }
    REQUIRE_OK(bh_share_map(s.fds, &s.token, &memory));
    uint32_t *words = memory;
    for (uint32_t i = 0; i < WORDS; i++) CHECK_EQ(words[i], 3 + i);
    words[7] = 70;
    bh_buffer again = import(a.device, &s); /* also where it comes from */
    CHECK_EQ(word_read(again, 7), 70);
    CHECK_OK(bh_device_close(a.device));
    CHECK_EQ(words[7], 70);
    CHECK_EQ(words[999], 1002);
    void *other;
    CHECK_REFUSED(bh_share_map(s.fds, &s.token, &other), BH_E_STALE);
    CHECK_OK(bh_share_unmap(memory));
    CHECK_REFUSED(bh_share_unmap(memory), BH_E_INVALID);
    share_close(&s);
}

TEST(a_device_with_checks_exports_and_does_not_import) {
    rig plain = rig_open(0);
    if (has_queues(plain.device)) SKIP("checks are for the CPU device without queues");
    bh_device_options options = device_options(BH_DEVICE_CHECK | BH_DEVICE_NO_RESTART_LIMIT);
    options.quarantine_after = 1000;
    rig checked = rig_open_with(&options);
    bh_kernel iota = rig_kernel(&checked, "iota");
    bh_buffer here = shareable(checked.device, 10, 2), none;
    share s = share_of(here);
    bh_buffer there = import(plain.device, &s);
    CHECK(words_count(there, 10, 2));
    CHECK_OK(run_now(iota, BH_GRID(10, 32), BH_ARGS(BH_OUT(here), 5u, 10u)));
    CHECK(words_count(there, 10, 5));
    CHECK_REFUSED(bh_buffer_import(checked.device, s.fds, &s.token, NULL, &none), BH_E_UNSUPPORTED);
    /* It is checked as others are. */
    bh_ticket ticket = submit(iota, BH_GRID(11, 32), BH_ARGS(BH_OUT(here), 5u, 11u), NULL);
    bh_error error;
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_STR_CONTAINS(error.message,
                       "starts 0 bytes past the end of argument 0, a buffer of u32[10]");
    REQUIRE_OK(bh_buffer_release(here));
    bh_buffer other = shareable(checked.device, 10, 0);
    uint64_t address = address_of(other);
    REQUIRE_OK(bh_buffer_release(other));
    ticket = submit(rig_kernel(&checked, "poke"), BH_GRID(1, 1), BH_ARGS(address, 1u), NULL);
    CHECK_STATUS(bh_wait(ticket, LONG_NS), BH_E_FAULT);
    CHECK_STATUS(bh_ticket_error(ticket, &error), BH_E_FAULT);
    CHECK_STR_CONTAINS(error.message, "at byte 0 of a released buffer of u32[10]");
    CHECK_REFUSED(bh_buffer_import(plain.device, s.fds, &s.token, NULL, &none), BH_E_STALE);
    for (int i = 0; i < 400; i++) /* what is kept from reuse goes in the end */
        REQUIRE_OK(bh_buffer_release(shareable(checked.device, 10, 0)));
    CHECK(words_count(there, 10, 5));
    share_close(&s);
    CHECK_OK(bh_device_close(checked.device));
    CHECK_OK(bh_device_close(plain.device));
}

/* ---- two processes ---- */

static void share_send(int socket, const share *s) {
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof s->fds)];
    } control;
    struct iovec data = {(void *)&s->token, sizeof s->token};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    control.head = (struct cmsghdr){
        .cmsg_len = CMSG_LEN(sizeof s->fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    memcpy(CMSG_DATA(&control.head), s->fds, sizeof s->fds);
    if (sendmsg(socket, &message, 0) != (ssize_t)sizeof s->token) _exit(90);
}

static share share_receive(int socket) {
    share s;
    union {
        struct cmsghdr head;
        char room[CMSG_SPACE(sizeof s.fds)];
    } control;
    struct iovec data = {&s.token, sizeof s.token};
    struct msghdr message = {.msg_iov = &data,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof s.token) _exit(91);
    memcpy(s.fds, CMSG_DATA(&control.head), sizeof s.fds);
    return s;
}

static void say(int socket) {
    if (write(socket, "x", 1) != 1) _exit(92);
}

static void hear(int socket) {
    char c;
    if (read(socket, &c, 1) != 1) _exit(93);
}

/* Starts `body` in a process of its own, before this one has used the library. */
static pid_t start(void (*body)(int socket), int *out) {
    int pair[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        close(pair[0]);
        body(pair[1]);
        _exit(0);
    }
    close(pair[1]);
    *out = pair[0];
    return pid;
}

static int end_of(pid_t pid) {
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static void check_and_count(int socket) {
    share s = share_receive(socket);
    rig r = rig_open(0);
    bh_buffer there = import(r.device, &s);
    share_close(&s);
    if (!words_count(there, WORDS, 40)) _exit(1);
    if (run_now(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 64),
                BH_ARGS(BH_INOUT(there), (uint32_t)WORDS)) != BH_OK)
        _exit(2);
    say(socket);
    hear(socket); /* the other side has released it */
    bh_buffer none;
    if (!words_count(there, WORDS, 41)) _exit(3);
    s = share_receive(socket);
    if (bh_buffer_import(r.device, s.fds, &s.token, NULL, &none) != BH_E_STALE) _exit(4);
    if (bh_device_close(r.device) != BH_OK) _exit(5);
}

TEST(another_process) {
    int socket;
    pid_t pid = start(check_and_count, &socket);
    rig r = rig_open(0);
    bh_buffer here = shareable(r.device, WORDS, 40);
    share s = share_of(here);
    share_send(socket, &s);
    hear(socket);
    CHECK(words_count(here, WORDS, 41));
    REQUIRE_OK(bh_buffer_release(here));
    say(socket);
    share_send(socket, &s);
    CHECK_EQ(end_of(pid), 0);
    CHECK_OK(bh_device_close(r.device));
}

/* Imports, writes while it runs, and never ends by itself. */
static void import_for_ever(int socket) {
    share s = share_receive(socket);
    rig r = rig_open(0);
    bh_buffer there = import(r.device, &s);
    word_write(there, 1, 1234);
    say(socket);
    for (;;) pause();
}

TEST(the_importer_is_killed) {
    int socket;
    pid_t pid = start(import_for_ever, &socket);
    rig r = rig_open(0);
    bh_buffer here = shareable(r.device, WORDS, 0);
    share s = share_of(here);
    share_send(socket, &s);
    hear(socket);
    REQUIRE(kill(pid, SIGKILL) == 0);
    CHECK_EQ(end_of(pid), 128 + SIGKILL);
    CHECK_EQ(word_read(here, 1), 1234);
    CHECK_EQ(word_read(here, 999), 999);
    CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(WORDS, 64),
                     BH_ARGS(BH_INOUT(here), (uint32_t)WORDS)));
    CHECK_EQ(word_read(here, 1), 1235);
    bh_buffer again = import(r.device, &s); /* the token is as good as before */
    CHECK_EQ(word_read(again, 1), 1235);
    CHECK_OK(bh_device_close(r.device));
}

static void export_for_ever(int socket) {
    rig r = rig_open(0);
    share s = share_of(shareable(r.device, WORDS, 60));
    share_send(socket, &s);
    for (;;) pause();
}

TEST(the_exporter_is_killed) {
    int socket;
    pid_t pid = start(export_for_ever, &socket);
    share s = share_receive(socket);
    rig r = rig_open(0);
    bh_buffer there = import(r.device, &s);
    REQUIRE(kill(pid, SIGKILL) == 0);
    CHECK_EQ(end_of(pid), 128 + SIGKILL);
    CHECK(words_count(there, WORDS, 60));
    kill_worker(r.device, SIGKILL);
    CHECK(words_count(there, WORDS, 60));
    /* It did not withdraw the token, and the descriptors keep the memory. */
    bh_buffer again = import(r.device, &s);
    word_write(again, 0, 1);
    CHECK_EQ(word_read(there, 0), 1);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- many at once ---- */

typedef struct crowd {
    bh_device a, b;
} crowd;

static void share_again_and_again(void *context, unsigned index) {
    crowd *c = context;
    for (unsigned i = 0; i < 10; i++) {
        uint32_t first = index * 1000 + i;
        bh_buffer here = shareable(c->a, 300, first);
        share s = share_of(here);
        bh_buffer there = import(c->b, &s);
        if (i % 2) REQUIRE_OK(bh_buffer_release(here));
        CHECK(words_count(there, 300, first));
        if (i % 2 == 0) REQUIRE_OK(bh_buffer_release(here));
        REQUIRE_OK(bh_buffer_release(there));
        share_close(&s);
    }
}

TEST_TIMEOUT(many_threads_share, 60) {
    rig a = rig_open(0), b = rig_open(0);
    crowd c = {a.device, b.device};
    run_threads(8, share_again_and_again, &c);
    wait_standby(a.device);
    wait_standby(b.device);
    CHECK_EQ(memory_of(a.device).buffers, 0);
    CHECK_EQ(memory_of(b.device).bytes_buffers, 0);
    check_device_works(&a);
    check_device_works(&b);
    CHECK_OK(bh_device_close(a.device));
    CHECK_OK(bh_device_close(b.device));
}
