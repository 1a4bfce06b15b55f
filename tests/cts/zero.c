/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers, views, arrays and transfers without elements: nothing to do is no error. */
#include "../support/buffers.h"
#include "../support/support.h"
#include "../support/transfers.h"

static const bh_lane own = {0};

static bh_buffer_info info_of(bh_buffer buffer) {
    bh_buffer_info info = BH_INIT(info);
    REQUIRE_OK(bh_buffer_get_info(buffer, &info));
    return info;
}

/* Every transfer of 0 bytes of this buffer, and some of 1, which it does not have. */
static void transfer_nothing(bh_device device, bh_buffer empty) {
    bh_buffer other = words_filled(device, 4, 9);
    bh_ticket t;
    uint8_t byte = 1;
    CHECK_OK(bh_buffer_write(empty, 0, NULL, 0));
    CHECK_OK(bh_buffer_read(empty, 0, NULL, 0));
    CHECK_OK(bh_buffer_fill(empty, 0, 0, &byte, 1));
    CHECK_OK(bh_buffer_copy(empty, 0, other, 0, 0));
    CHECK_OK(bh_buffer_copy(other, 16, empty, 0, 0));
    CHECK_OK(bh_submit_write(own, empty, 0, &byte, 0, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_submit_read(own, empty, 0, NULL, 0, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_submit_fill(own, empty, 0, 0, "abc", 3, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_submit_copy(own, empty, 0, empty, 0, 0, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_REFUSED(bh_buffer_write(empty, 0, &byte, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_write(empty, 1, &byte, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_read(empty, 0, &byte, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(empty, 0, 1, &byte, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(empty, 0, 0, NULL, 1), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_fill(empty, 0, 0, &byte, 0), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_copy(empty, 0, other, 0, 1), BH_E_INVALID);
    CHECK_EQ(info_of(empty).last_write.lane, 0); /* none of them writes anything */
    CHECK(words_are(other, 4, 9));
    CHECK_OK(bh_buffer_release(other));
}

/* A kernel that is told that there are no words. */
static void launch_on_nothing(const rig *r, bh_buffer empty) {
    bh_kernel copy = rig_kernel(r, "copy_words"), add = rig_kernel(r, "add_one");
    bh_buffer x = words_filled(r->device, 4, 5);
    CHECK_OK(run_now(copy, BH_GRID(1, 32), BH_ARGS(BH_IN(empty), BH_OUT(empty), 0u)));
    CHECK_OK(run_now(copy, BH_GRID(1, 32), BH_ARGS(BH_IN(empty), BH_OUT(x), 0u)));
    CHECK_OK(run_now(add, BH_GRID(1, 32), BH_ARGS(BH_INOUT(empty), 0u)));
    CHECK_OK(run_now(add, BH_GRID(1, 32), BH_ARGS(BH_INOUT_AT_LEAST(empty, 0), 0u)));
    CHECK_REFUSED(run_now(add, BH_GRID(1, 32), BH_ARGS(BH_INOUT_AT_LEAST(empty, 1), 0u)),
                  BH_E_LAUNCH);
    bh_prepared prepared;
    bh_ticket t;
    bh_change change = {.index = 0, .arg = BH_INOUT(empty)};
    REQUIRE_OK(bh_prepare(add, BH_GRID(1, 32), BH_ARGS(BH_INOUT(x), 0u), NULL, &prepared));
    CHECK_OK(bh_prepared_launch(prepared, &change, 1, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK_OK(bh_prepared_release(prepared));
    CHECK(words_are(x, 4, 5));
    CHECK_EQ(info_of(empty).suspect, 0);
    CHECK_OK(bh_buffer_release(x));
}

static void check_empty(const rig *r, bh_buffer empty) {
    bh_buffer_info info = info_of(empty);
    CHECK_EQ(info.count, 0);
    CHECK_EQ(info.bytes, 0);
    CHECK_EQ(info.type, BH_U32);
    CHECK_EQ(info.last_write.lane, 0);
    transfer_nothing(r->device, empty);
    launch_on_nothing(r, empty);
    bh_buffer view;
    REQUIRE_OK(bh_buffer_view(empty, BH_F64, 0, BH_WHOLE, &view));
    CHECK_EQ(info_of(view).count, 0);
    transfer_nothing(r->device, view);
    launch_on_nothing(r, view);
    CHECK_REFUSED(bh_buffer_view(empty, 0, 0, 1, &view), BH_E_INVALID);
    CHECK_REFUSED(bh_buffer_view(empty, 0, 1, 0, &view), BH_E_INVALID);
    CHECK_OK(bh_buffer_release(view));
    CHECK_OK(bh_buffer_accept(empty));
    CHECK_OK(bh_buffer_release(empty));
}

TEST(every_kind_of_buffer_may_be_empty) {
    static const uint32_t flags[] = {0,
                                     BH_BUFFER_ZERO,
                                     BH_BUFFER_SHAREABLE,
                                     BH_BUFFER_MANAGED,
                                     BH_BUFFER_MANAGED | BH_BUFFER_ZERO,
                                     BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT};
    rig r = rig_open(0);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        bh_buffer one, two;
        REQUIRE_OK(alloc_flags(r.device, BH_U32, 0, flags[i], &one));
        REQUIRE_OK(alloc_flags(r.device, BH_U32, 0, flags[i], &two));
        CHECK_NE(one.id, two.id);
        check_empty(&r, one);
        check_empty(&r, two);
    }
    bh_buffer driver; /* prepared launches refuse it */
    REQUIRE_OK(alloc_flags(r.device, BH_U32, 0, BH_BUFFER_DRIVER, &driver));
    CHECK_EQ(info_of(driver).bytes, 0);
    transfer_nothing(r.device, driver);
    CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(1, 32), BH_ARGS(BH_INOUT(driver), 0u)));
    CHECK_OK(bh_buffer_release(driver));
    bh_memory_info memory = BH_INIT(memory);
    REQUIRE_OK(bh_memory_get_info(r.device, &memory));
    CHECK_EQ(memory.bytes_buffers, 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(the_modes_for_debugging_take_empty_buffers) {
    static const uint32_t modes[] = {BH_DEVICE_GUARD, BH_DEVICE_CHECK};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        bh_device_options options = device_options(modes[i]);
        bh_device device;
        bh_status status = bh_device_open(&options, &device);
        if (status == BH_E_UNSUPPORTED) continue; /* BH_DEVICE_CHECK is for the CPU device */
        REQUIRE_OK(status);
        rig r = {device, load_module(device, ptx_basic)};
        for (uint32_t k = 0; k < 3; k++) {
            bh_buffer empty;
            REQUIRE_OK(alloc_flags(device, BH_U32, 0, k == 2 ? BH_BUFFER_SHAREABLE : 0, &empty));
            check_empty(&r, empty);
        }
        /* What a kernel writes there belongs to nothing. */
        bh_buffer empty;
        bh_ticket t;
        REQUIRE_OK(bh_buffer_alloc(device, BH_U32, 0, NULL, &empty));
        REQUIRE_OK(bh_launch(rig_kernel(&r, "store_word"), BH_GRID(1, 1),
                             BH_ARGS(BH_OUT(empty), 1u), NULL, &t));
        CHECK_STATUS(bh_wait(t, LONG_NS), BH_E_FAULT);
        CHECK_EQ(info_of(empty).suspect, 0);
        CHECK_OK(bh_device_close(device));
    }
}

TEST(an_empty_view_in_the_middle_has_no_effect) {
    rig r = rig_open(0);
    bh_lane a = open_lane(r.device), b = open_lane(r.device);
    bh_launch_options on_a = on_lane(a, 0), on_b = on_lane(b, 0);
    bh_buffer x = words_filled(r.device, 64, 3), middle;
    REQUIRE_OK(bh_buffer_view(x, 0, 32, 0, &middle));
    gate g = gate_close(&r, a, 0);
    bh_ticket held =
        submit(rig_kernel(&r, "add_one"), BH_GRID(64, 64), BH_ARGS(BH_INOUT(x), 64u), &on_a);
    /* Behind the gate the whole of x is written; a launch on none of it does not wait for that. */
    CHECK_OK(
        run_with(rig_kernel(&r, "add_one"), BH_GRID(1, 32), BH_ARGS(BH_INOUT(middle), 0u), &on_b));
    CHECK_STATUS(bh_wait(held, 0), BH_E_BUSY);
    CHECK_EQ(info_of(x).last_write.sequence, held.sequence);
    gate_open(&g);
    CHECK_OK(bh_wait(held, LONG_NS));
    CHECK(words_are(x, 64, 4));
    bh_buffer m, part;
    void *pointer;
    REQUIRE_OK(alloc_managed(r.device, BH_U32, 1024, 0, &m, NULL));
    REQUIRE_OK(bh_managed_map(m, 0, 4096, BH_MAP_WRITE | BH_MAP_DISCARD, &pointer));
    memset(pointer, 0, 4096);
    REQUIRE_OK(bh_managed_unmap(pointer, 4096));
    REQUIRE_OK(bh_buffer_view(m, 0, 100, 0, &part));
    CHECK_OK(run_now(rig_kernel(&r, "add_one"), BH_GRID(1, 32), BH_ARGS(BH_INOUT(part), 0u)));
    REQUIRE_OK(bh_managed_map(m, 0, 4096, BH_MAP_WRITE, &pointer));
    ((uint32_t *)pointer)[99] = 7; /* the device's copy is not the newest */
    REQUIRE_OK(bh_managed_unmap(pointer, 4096));
    CHECK_EQ(word_read(m, 99), 7);
    CHECK_EQ(word_read(m, 100), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(sequences_may_use_empty_buffers) {
    rig r = rig_open(0);
    bh_kernel add = rig_kernel(&r, "add_one");
    bh_buffer x = words_filled(r.device, 4, 1), one, two;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 0, NULL, &one));
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 0, NULL, &two));
    bh_sequence seq;
    bh_ticket t;
    REQUIRE_OK(bh_sequence_begin(r.device, NULL, &seq));
    REQUIRE_OK(
        bh_sequence_launch(seq, add, BH_GRID(1, 32), BH_ARGS(BH_INOUT(one), 0u), NULL, NULL));
    REQUIRE_OK(bh_sequence_launch(seq, add, BH_GRID(1, 32), BH_ARGS(BH_INOUT(x), 4u), NULL, NULL));
    REQUIRE_OK(bh_sequence_finish(seq));
    REQUIRE_OK(bh_sequence_submit(seq, NULL, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    REQUIRE_OK(bh_sequence_bind(seq, one, two));
    REQUIRE_OK(bh_buffer_release(one));
    REQUIRE_OK(bh_sequence_submit(seq, NULL, &t));
    CHECK_OK(bh_wait(t, LONG_NS));
    CHECK(words_are(x, 4, 3));
    CHECK_OK(bh_device_close(r.device));
}

TEST(empty_managed_buffers_have_properties_and_lanes) {
    bh_device device = open_device();
    static const uint32_t kinds[] = {BH_BUFFER_MANAGED, BH_BUFFER_MANAGED | BH_BUFFER_TRANSPARENT};
    for (int i = 0; i < 2; i++) {
        bh_buffer_options options = BH_INIT(options);
        options.flags = kinds[i];
        bh_buffer x;
        REQUIRE_OK(bh_buffer_alloc(device, BH_U32, 0, &options, &x));
        bh_managed_info info = BH_INIT(info);
        CHECK_OK(bh_managed_get_info(x, &info));
        CHECK_EQ(info_of(x).flags, kinds[i]);
        CHECK_EQ(info.host_newest + info.device_newest, 0u);
        CHECK_OK(bh_managed_attach(x, BH_ATTACH_HOST, (bh_lane){0}));
        CHECK_OK(bh_managed_attach(x, BH_ATTACH_GLOBAL, (bh_lane){0}));
        void *pointer;
        CHECK_REFUSED(bh_managed_map(x, 0, 0, BH_MAP_READ, &pointer), BH_E_INVALID);
        CHECK_OK(bh_buffer_release(x));
    }
    CHECK_OK(bh_device_close(device));
}

TEST(arrays_of_a_dispatch_may_be_empty) {
    rig r = rig_open(0);
    bh_kernel copy = rig_kernel(&r, "copy_words"), add = rig_kernel(&r, "add_one");
    uint32_t none = 0, four = 4, words[4] = {1, 2, 3, 4}, out[4] = {0};
    bh_arg nothing[] = {BH_HOST_IN(NULL, 0), BH_HOST_OUT(NULL, 0), BH_VALUE(&none, 4)};
    CHECK_OK(bh_dispatch(copy, BH_GRID(1, 32), (bh_args){nothing, 3}, NULL));
    bh_arg mixed[] = {BH_HOST_IN(words, 16), BH_HOST_OUT(out, 16), BH_VALUE(&four, 4)};
    bh_arg inout[] = {BH_HOST_INOUT(NULL, 0), BH_VALUE(&none, 4)};
    bh_dispatch_item items[] = {
        {.size = sizeof items[0], .kernel = add, .shape = BH_GRID(1, 32), .args = {inout, 2}},
        {.size = sizeof items[0], .kernel = copy, .shape = BH_GRID(1, 32), .args = {mixed, 3}},
        {.size = sizeof items[0], .kernel = copy, .shape = BH_GRID(1, 32), .args = {nothing, 3}}};
    CHECK_OK(bh_dispatch_batch(items, sizeof items[0], 3, NULL));
    CHECK(memcmp(words, out, sizeof out) == 0);
    bh_arg value[] = {BH_HOST_INOUT(words, 16), BH_VALUE(&four, 0)};
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(1, 32), (bh_args){value, 2}, NULL), BH_E_LAUNCH);
    bh_arg null[] = {BH_HOST_INOUT(NULL, 16), BH_VALUE(&four, 4)};
    CHECK_REFUSED(bh_dispatch(add, BH_GRID(1, 32), (bh_args){null, 2}, NULL), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
}

TEST(an_empty_buffer_can_be_shared) {
    bh_device one = open_device(), two = open_device();
    bh_buffer x, y;
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    REQUIRE_OK(alloc_shareable(one, BH_F32, 0, &x));
    REQUIRE_OK(bh_buffer_export(x, fds, &token));
    REQUIRE_OK(bh_buffer_import(two, fds, &token, NULL, &y));
    CHECK_EQ(info_of(y).bytes, 0);
    CHECK_EQ(info_of(y).type, BH_F32);
    CHECK_OK(bh_buffer_copy(y, 0, x, 0, 0));
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
    CHECK_OK(bh_device_close(one));
    CHECK_OK(bh_device_close(two));
}

TEST(a_zero_in_a_grid_is_still_refused) {
    rig r = rig_open(0);
    bh_buffer empty;
    bh_ticket t;
    REQUIRE_OK(bh_buffer_alloc(r.device, BH_U32, 0, NULL, &empty));
    CHECK_REFUSED(bh_launch(rig_kernel(&r, "add_one"), BH_GRID(0, 32), BH_ARGS(BH_INOUT(empty), 0u),
                            NULL, &t),
                  BH_E_LAUNCH);
    CHECK_OK(bh_device_close(r.device));
}
