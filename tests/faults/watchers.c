/* SPDX-License-Identifier: Apache-2.0 */
/* Watchers of losses, of memory pressure and of printed text can be removed: afterwards they are not
 * running and never run again. */
#include <signal.h>

#include "../support/support.h"

typedef struct listener {
    bh_device device;
    _Atomic(int) begun, ended;
    unsigned linger_ms;
    bool removes_itself;
    bh_status removed;
} listener;

static void watch_loss(void *context, bh_device device, const bh_loss *loss) {
    listener *self = context;
    (void)loss;
    atomic_fetch_add(&self->begun, 1);
    if (self->linger_ms) sleep_ms(self->linger_ms);
    if (self->removes_itself) self->removed = bh_device_unwatch(device, watch_loss, self);
    atomic_fetch_add(&self->ended, 1);
}

static void watch_pressure(void *context, bh_device device, const bh_pressure *pressure) {
    listener *self = context;
    (void)device;
    (void)pressure;
    atomic_fetch_add(&self->begun, 1);
    if (self->linger_ms) sleep_ms(self->linger_ms);
    atomic_fetch_add(&self->ended, 1);
}

static void watch_text(void *context, const char *text, size_t length) {
    listener *self = context;
    (void)text;
    (void)length;
    atomic_fetch_add(&self->begun, 1);
    if (self->linger_ms) sleep_ms(self->linger_ms);
    atomic_fetch_add(&self->ended, 1);
}

static void wait_begun(listener *self, int count) {
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(&self->begun) < count) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

TEST(a_removed_watcher_is_told_no_more) {
    rig r = rig_open(0);
    listener first = {0}, second = {0}, third = {0};
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &first));
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &second));
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &third));
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(bh_device_unwatch(r.device, watch_loss, &second));
    CHECK_REFUSED(bh_device_unwatch(r.device, watch_loss, &second), BH_E_NOT_FOUND);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&first.ended), 2);
    CHECK_EQ(atomic_load(&second.ended), 1);
    CHECK_EQ(atomic_load(&third.ended), 2);
    CHECK_OK(bh_device_close(r.device));
}

/* The log is told of a loss before watchers are, on the supervisor thread. */
static void log_slowly(void *context, int32_t level, const char *text) {
    (void)context;
    (void)text;
    if (level == BH_LOG_WARNING) sleep_ms(200);
}

TEST(sync_waits_until_a_loss_is_told) {
    listener watcher = {0};
    rig r = rig_open(0);
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &watcher));
    REQUIRE_OK(bh_log_set(log_slowly, NULL, BH_LOG_WARNING));
    kill_worker(r.device, SIGKILL);
    wait_generation(r.device, 2);
    CHECK_STATUS(bh_device_sync(r.device, 1), BH_E_TIMEOUT);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&watcher.ended), 1);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(removing_makes_room_for_another) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener all[17] = {0};
    for (int i = 0; i < 16; i++) REQUIRE_OK(bh_device_watch(r.device, watch_loss, &all[i]));
    CHECK_REFUSED(bh_device_watch(r.device, watch_loss, &all[16]), BH_E_BUSY);
    CHECK_OK(bh_device_unwatch(r.device, watch_loss, &all[3]));
    CHECK_OK(bh_device_watch(r.device, watch_loss, &all[16]));
    for (int i = 0; i < 16; i++) REQUIRE_OK(bh_memory_watch(r.device, 0, watch_pressure, &all[i]));
    CHECK_REFUSED(bh_memory_watch(r.device, 0, watch_pressure, &all[16]), BH_E_BUSY);
    CHECK_OK(bh_memory_unwatch(r.device, watch_pressure, &all[3]));
    CHECK_REFUSED(bh_memory_unwatch(r.device, watch_pressure, &all[3]), BH_E_NOT_FOUND);
    CHECK_OK(bh_memory_watch(r.device, 0, watch_pressure, &all[16]));
    CHECK_OK(bh_device_close(r.device));
}

TEST(removing_waits_for_a_watcher_that_runs) {
    rig r = rig_open(0);
    listener slow = {.linger_ms = 300};
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &slow));
    kill_worker(r.device, SIGKILL);
    wait_begun(&slow, 1);
    CHECK_OK(bh_device_unwatch(r.device, watch_loss, &slow));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_watcher_can_remove_itself) {
    rig r = rig_open(0);
    listener once = {.removes_itself = true}, other = {0};
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &once));
    REQUIRE_OK(bh_device_watch(r.device, watch_loss, &other));
    kill_worker(r.device, SIGKILL);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(once.removed);
    CHECK_EQ(atomic_load(&once.ended), 1);
    CHECK_EQ(atomic_load(&other.ended), 2);
    CHECK_OK(bh_device_close(r.device));
}

/* The listener calls nothing; the device goes on while its removal waits. */
TEST(a_listener_to_pressure_can_be_removed) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener slow = {.linger_ms = 300}, other = {0};
    REQUIRE_OK(bh_memory_watch(r.device, 4096, watch_pressure, &slow));
    bh_buffer x = words_alloc(r.device, 4096);
    wait_begun(&slow, 1);
    CHECK_OK(bh_memory_unwatch(r.device, watch_pressure, &slow));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    REQUIRE_OK(bh_memory_watch(r.device, 4096, watch_pressure, &other));
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_EQ(atomic_load(&other.ended), 2); /* above, and below again */
    CHECK_OK(bh_device_close(r.device));
}

TEST(no_text_comes_after_its_callback_is_removed) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener slow = {.linger_ms = 300};
    bh_module module = load_module(r.device, ptx_printf);
    bh_kernel say = get_kernel(module, "say");
    REQUIRE_OK(bh_device_on_print(r.device, watch_text, &slow));
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    wait_begun(&slow, 1);
    CHECK_OK(bh_device_on_print(r.device, NULL, NULL));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_OK(bh_device_close(r.device));
}

/* Watchers come and go while losses are told. */
typedef struct churn {
    bh_device device;
    _Atomic(int) stop;
} churn;

static void come_and_go(void *context, unsigned index) {
    churn *self = context;
    if (index == 0) {
        for (int i = 0; i < 15; i++) {
            kill_worker(self->device, SIGKILL);
            sleep_ms(2);
        }
        atomic_store(&self->stop, 1);
        return;
    }
    while (!atomic_load(&self->stop)) {
        listener *mine = calloc(1, sizeof *mine);
        REQUIRE_OK(bh_device_watch(self->device, watch_loss, mine));
        if (index % 2) sleep_ms(1);
        REQUIRE_OK(bh_device_unwatch(self->device, watch_loss, mine));
        int ended = atomic_load(&mine->ended);
        CHECK_EQ(atomic_load(&mine->begun), ended);
        free(mine);
    }
}

TEST_TIMEOUT(watchers_come_and_go_while_losses_are_told, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    churn self = {.device = r.device};
    run_threads(4, come_and_go, &self);
    CHECK_OK(bh_device_close(r.device));
}
