/* SPDX-License-Identifier: Apache-2.0 */
/* Watches: each is told what happens after it is opened, once and in order. Once released, it is
 * not running and never runs again. */
#include <signal.h>

#include "../support/support.h"

enum { STATES = 64 };

typedef struct listener {
    _Atomic(int) begun, ended;
    unsigned linger_ms;
    bool releases_itself;
    bh_watch watch;
    bh_status released, again;
    _Atomic(int) kinds; /* of all events */
    uint32_t states[STATES];
    uint32_t lanes[STATES], losses_in_window[STATES];
    _Atomic(int) state_count;
} listener;

static void note_kind(listener *self, const bh_event *event) {
    atomic_fetch_or(&self->kinds, (int)event->kind);
    CHECK_EQ(event->size, sizeof *event);
    CHECK_EQ(event->loss != NULL, event->kind == BH_EVENT_LOSS);
    CHECK_EQ(event->health != NULL, event->kind == BH_EVENT_HEALTH);
    CHECK_EQ(event->pressure != NULL, event->kind == BH_EVENT_PRESSURE);
    CHECK_EQ(event->text != NULL, event->kind == BH_EVENT_PRINT);
    int at = atomic_load(&self->state_count);
    if (!event->health || at == STATES) return;
    CHECK_EQ(event->health->size, sizeof *event->health);
    self->states[at] = event->health->state;
    self->lanes[at] = event->health->lanes;
    self->losses_in_window[at] = event->health->losses_in_window;
    atomic_store(&self->state_count, at + 1);
}

static void listen(void *context, const bh_event *event) {
    listener *self = context;
    atomic_fetch_add(&self->begun, 1);
    note_kind(self, event);
    if (self->linger_ms) sleep_ms(self->linger_ms);
    if (self->releases_itself) {
        self->released = bh_watch_release(self->watch);
        self->again = bh_watch_release(self->watch);
    }
    atomic_fetch_add(&self->ended, 1);
}

static void open_watch(bh_device device, uint32_t kinds, listener *self) {
    self->watch = watch_for(device, kinds, listen, self);
}

static void wait_for(_Atomic(int) *counter, int count) {
    uint64_t limit = now_ns() + LONG_NS;
    while (atomic_load(counter) < count) {
        REQUIRE(now_ns() < limit);
        sleep_ms(1);
    }
}

TEST(a_released_watch_is_not_called_again) {
    rig r = rig_open(0);
    listener first = {0}, second = {0}, third = {0};
    open_watch(r.device, BH_EVENT_LOSS, &first);
    open_watch(r.device, BH_EVENT_LOSS, &second);
    open_watch(r.device, BH_EVENT_LOSS, &third);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(bh_watch_release(second.watch));
    CHECK_REFUSED(bh_watch_release(second.watch), BH_E_INVALID);
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

TEST(sync_waits_until_a_loss_is_reported) {
    listener watcher = {0};
    rig r = rig_open(0);
    open_watch(r.device, BH_EVENT_LOSS, &watcher);
    REQUIRE_OK(bh_log_set(log_slowly, NULL, BH_LOG_WARNING));
    kill_worker(r.device, SIGKILL);
    wait_generation(r.device, 2);
    CHECK_STATUS(bh_device_sync(r.device, 1), BH_E_TIMEOUT);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&watcher.ended), 1);
    CHECK_OK(bh_log_set(NULL, NULL, 0));
    CHECK_OK(bh_device_close(r.device));
}

TEST(stale_and_forged_watches_are_refused) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener first = {0}, second = {0};
    open_watch(r.device, 0, &first);
    CHECK_REFUSED(bh_watch_release((bh_watch){0}), BH_E_INVALID);
    CHECK_REFUSED(bh_watch_release((bh_watch){first.watch.id ^ 1}), BH_E_INVALID);
    CHECK_REFUSED(bh_watch_release((bh_watch){r.device.id}), BH_E_INVALID);
    CHECK_OK(bh_watch_release(first.watch));
    open_watch(r.device, 0, &second); /* in the same place */
    CHECK_REFUSED(bh_watch_release(first.watch), BH_E_INVALID);
    CHECK_OK(bh_device_close(r.device));
    CHECK_REFUSED(bh_watch_release(second.watch), BH_E_INVALID);
    rig other = rig_open(BH_DEVICE_NO_STANDBY);
    listener third = {0};
    open_watch(other.device, 0, &third);
    CHECK_REFUSED(bh_watch_release(second.watch), BH_E_INVALID);
    CHECK_OK(bh_watch_release(third.watch));
    CHECK_OK(bh_device_close(other.device));
}

TEST(releasing_waits_for_a_watcher_that_runs) {
    rig r = rig_open(0);
    listener slow = {.linger_ms = 300};
    open_watch(r.device, BH_EVENT_LOSS, &slow);
    kill_worker(r.device, SIGKILL);
    wait_for(&slow.begun, 1);
    CHECK_OK(bh_watch_release(slow.watch));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_watcher_can_release_itself) {
    rig r = rig_open(0);
    listener once = {.releases_itself = true}, other = {0};
    open_watch(r.device, BH_EVENT_LOSS, &once);
    open_watch(r.device, BH_EVENT_LOSS, &other);
    kill_worker(r.device, SIGKILL);
    kill_worker(r.device, SIGKILL);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_OK(once.released);
    CHECK_EQ(once.again, BH_E_INVALID);
    CHECK_EQ(atomic_load(&once.ended), 1);
    CHECK_EQ(atomic_load(&other.ended), 2);
    CHECK_OK(bh_device_close(r.device));
}

TEST(a_watch_of_pressure_can_be_released) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener slow = {.linger_ms = 300}, other = {0};
    bh_watch_options options = BH_INIT(options);
    options.kinds = BH_EVENT_PRESSURE;
    options.pressure_threshold = 4096;
    REQUIRE_OK(bh_watch_open(r.device, &options, listen, &slow, &slow.watch));
    bh_buffer x = words_alloc(r.device, 4096);
    wait_for(&slow.begun, 1);
    CHECK_OK(bh_watch_release(slow.watch));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    REQUIRE_OK(bh_watch_open(r.device, &options, listen, &other, &other.watch));
    CHECK_OK(bh_buffer_release(x));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_EQ(atomic_load(&other.ended), 2); /* above, and below again */
    CHECK_EQ(atomic_load(&other.kinds), BH_EVENT_PRESSURE);
    CHECK_OK(bh_device_close(r.device));
}

TEST(no_text_comes_after_its_watch_is_released) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener slow = {.linger_ms = 300};
    bh_module module = load_module(r.device, ptx_printf);
    bh_kernel say = get_kernel(module, "say");
    open_watch(r.device, BH_EVENT_PRINT, &slow);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    wait_for(&slow.begun, 1);
    CHECK_OK(bh_watch_release(slow.watch));
    CHECK_EQ(atomic_load(&slow.ended), 1);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&slow.begun), 1);
    CHECK_OK(bh_device_close(r.device));
}

/* ---- kinds ---- */

TEST(a_watch_of_all_kinds_gets_each) {
    bh_device_options options = device_options(0);
    options.memory_limit = 64u << 20;
    rig r = rig_open_with(&options);
    listener all = {0}, some = {0};
    REQUIRE_OK(bh_watch_open(r.device, NULL, listen, &all, &all.watch));
    open_watch(r.device, BH_EVENT_HEALTH | BH_EVENT_PRINT, &some);
    bh_kernel say = get_kernel(load_module(r.device, ptx_printf), "say");
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    bh_buffer x;
    CHECK_REFUSED(bh_buffer_alloc(r.device, BH_U8, 65u << 20, NULL, &x), BH_E_NO_MEMORY);
    kill_worker(r.device, SIGKILL);
    wait_generation(r.device, 2);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&all.kinds),
             BH_EVENT_LOSS | BH_EVENT_HEALTH | BH_EVENT_PRESSURE | BH_EVENT_PRINT);
    CHECK_EQ(atomic_load(&some.kinds), BH_EVENT_HEALTH | BH_EVENT_PRINT);
    CHECK_OK(bh_device_close(r.device));
}

TEST(two_watches_get_the_same_text) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    listener first = {.linger_ms = 200}, late = {0}; /* the second text waits in the queue */
    bh_kernel say = get_kernel(load_module(r.device, ptx_printf), "say");
    open_watch(r.device, BH_EVENT_PRINT, &first);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(1u, 2u)));
    wait_for(&first.begun, 1);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(3u, 4u)));
    open_watch(r.device, BH_EVENT_PRINT, &late);
    CHECK_OK(run_now(say, BH_GRID(1, 1), BH_ARGS(5u, 6u)));
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_GE(atomic_load(&first.ended), 2);
    CHECK_EQ(atomic_load(&late.ended), 1); /* nothing of before */
    CHECK_OK(bh_device_close(r.device));
}

/* ---- health ---- */

/* Each is told once, and so is another than the one before. */
static void check_states(const listener *from, uint32_t first) {
    int count = atomic_load(&from->state_count);
    for (int i = 0; i < count; i++) CHECK(from->states[i] != (i ? from->states[i - 1] : first));
}

static void wait_state(const listener *from, uint32_t state) {
    uint64_t limit = now_ns() + LONG_NS;
    for (int count;; sleep_ms(1)) {
        count = atomic_load(&from->state_count);
        if (count && from->states[count - 1] == state) return;
        REQUIRE(now_ns() < limit);
    }
}

TEST(health_is_reported_through_a_takeover) {
    bh_device_options options = device_options(0);
    options.restart_limit = 2; /* a loss counts for half a minute, however slowly workers start */
    rig r = rig_open_with(&options);
    (void)open_lane(r.device);
    wait_standby(r.device);
    listener health = {0};
    open_watch(r.device, BH_EVENT_HEALTH, &health);
    kill_worker(r.device, SIGKILL);
    wait_state(&health, BH_HEALTH_OK);
    check_states(&health, BH_HEALTH_OK);
    REQUIRE(atomic_load(&health.state_count) >= 3);
    CHECK_EQ(health.states[0], BH_HEALTH_REPLACING);
    CHECK_EQ(health.states[1], BH_HEALTH_DEGRADED);
    CHECK_EQ(health.states[2], BH_HEALTH_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(health.lanes[i], 2);
        CHECK_EQ(health.losses_in_window[i], i > 0); /* the loss is judged after the first */
    }
    int before = atomic_load(&health.state_count);
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&health.state_count), before); /* closing is not told */
}

TEST(health_reports_that_a_standby_has_ended) {
    rig r = rig_open(0);
    wait_standby(r.device);
    listener health = {0};
    open_watch(r.device, BH_EVENT_HEALTH, &health);
    REQUIRE(kill(health_of(r.device).standby_pids[0], SIGKILL) == 0);
    wait_for(&health.state_count, 2);
    CHECK_EQ(health.states[0], BH_HEALTH_DEGRADED);
    CHECK_EQ(health.states[1], BH_HEALTH_OK);
    check_states(&health, BH_HEALTH_OK);
    CHECK_OK(bh_device_close(r.device));
}

TEST(orders_to_a_standby_do_not_change_the_health) {
    rig r = rig_open(0);
    wait_standby(r.device);
    listener health = {0};
    open_watch(r.device, BH_EVENT_HEALTH, &health);
    for (int i = 0; i < 10; i++) {
        load_module(r.device, ptx_basic); /* the standby loads it too */
        (void)words_alloc(r.device, 2u << 20);
        bh_health now = BH_INIT(now);
        REQUIRE_OK(bh_device_get_health(r.device, &now));
        CHECK_EQ(now.state, BH_HEALTH_OK);
    }
    wait_standby(r.device);
    CHECK_OK(bh_device_sync(r.device, LONG_NS));
    CHECK_EQ(atomic_load(&health.state_count), 0);
    CHECK_OK(bh_device_close(r.device));
}

TEST(health_tells_that_a_device_stops) {
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.restart_limit = 1;
    rig r = rig_open_with(&options);
    listener health = {0}, late = {0};
    open_watch(r.device, BH_EVENT_HEALTH, &health);
    kill_worker(r.device, SIGKILL);
    wait_for(&health.state_count, 2);
    CHECK_EQ(health.states[0], BH_HEALTH_REPLACING);
    CHECK_EQ(health.states[1], BH_HEALTH_OK); /* no standby was wanted */
    REQUIRE(kill(health_of(r.device).worker_pid, SIGKILL) == 0);
    wait_for(&health.state_count, 4);
    CHECK_EQ(health.states[2], BH_HEALTH_REPLACING);
    CHECK_EQ(health.states[3], BH_HEALTH_STOPPED);
    open_watch(r.device, BH_EVENT_HEALTH, &late); /* a stopped device can be watched */
    CHECK_OK(bh_watch_release(health.watch));
    CHECK_OK(bh_device_close(r.device));
    CHECK_EQ(atomic_load(&health.state_count), 4);
    CHECK_EQ(atomic_load(&late.state_count), 0);
}

/* ---- all at once ---- */

/* Watches come and go while losses are told. */
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
        open_watch(self->device, 0, mine);
        if (index % 2) sleep_ms(1);
        REQUIRE_OK(bh_watch_release(mine->watch));
        int ended = atomic_load(&mine->ended);
        CHECK_EQ(atomic_load(&mine->begun), ended);
        free(mine);
    }
}

TEST_TIMEOUT(watches_open_and_close_while_losses_are_reported, 60) {
    rig r = rig_open(BH_DEVICE_NO_RESTART_LIMIT);
    churn self = {.device = r.device};
    run_threads(4, come_and_go, &self);
    CHECK_OK(bh_device_close(r.device));
}

/* Several threads release the same watch while it is called again and again. */
typedef struct race {
    listener *target;
    _Atomic(int) ok, refused;
} race;

static void release_same(void *context, unsigned index) {
    race *self = context;
    (void)index;
    bh_status status = bh_watch_release(self->target->watch);
    if (status == BH_OK)
        CHECK_EQ(atomic_load(&self->target->begun), atomic_load(&self->target->ended));
    atomic_fetch_add(status == BH_OK ? &self->ok : &self->refused, 1);
}

static void print_flood(bh_device device) {
    CHECK_OK(run_now(get_kernel(load_module(device, ptx_printf), "say_many"), BH_GRID(20000, 64),
                     BH_ARGS(20000u)));
}

TEST(one_of_many_threads_releases_a_watch_in_a_flood_of_text) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    for (int round = 0; round < 5; round++) {
        listener heard = {0};
        race self = {.target = &heard};
        open_watch(r.device, BH_EVENT_PRINT, &heard);
        print_flood(r.device);
        wait_for(&heard.begun, 1);
        run_threads(4, release_same, &self);
        CHECK_EQ(atomic_load(&self.ok), 1);
        CHECK_EQ(atomic_load(&self.refused), 3);
    }
    CHECK_OK(bh_device_close(r.device));
}

/* A watcher whose memory is reused as soon as its release returns, under a flood. */
typedef struct turnover {
    bh_device device;
    _Atomic(int) over;
} turnover;

static void print_or_watch(void *context, unsigned index) {
    turnover *self = context;
    if (index == 0) {
        for (int i = 0; i < 5; i++) print_flood(self->device);
        atomic_store(&self->over, 1);
    }
    while (!atomic_load(&self->over)) {
        listener *mine = calloc(1, sizeof *mine);
        open_watch(self->device, BH_EVENT_PRINT, mine);
        if (index == 1) sleep_ms(2);
        CHECK_OK(bh_watch_release(mine->watch));
        CHECK_EQ(atomic_load(&mine->begun), atomic_load(&mine->ended));
        memset(mine, 0xff, sizeof *mine);
        free(mine);
    }
}

TEST(watches_come_and_go_in_a_flood_of_text) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    turnover self = {.device = r.device};
    run_threads(3, print_or_watch, &self);
    CHECK_OK(bh_device_close(r.device));
}

/* Releasing against close: one way or the other, nothing runs afterwards. */
typedef struct parting {
    bh_device device;
    listener *last;
} parting;

static void release_or_close(void *context, unsigned index) {
    parting *self = context;
    if (index == 0) {
        CHECK_OK(bh_device_close(self->device));
        return;
    }
    bh_status status = bh_watch_release(self->last->watch);
    if (status != BH_OK) CHECK_EQ(status, BH_E_INVALID); /* closed already */
    int begun = atomic_load(&self->last->begun);
    if (status == BH_OK) CHECK_EQ(begun, atomic_load(&self->last->ended));
}

TEST_TIMEOUT(releasing_against_close, 60) {
    for (int round = 0; round < 10; round++) {
        rig r = rig_open(BH_DEVICE_NO_STANDBY);
        listener last = {.linger_ms = (unsigned)round % 3 * 5};
        open_watch(r.device, 0, &last);
        kill_worker(r.device, SIGKILL);
        if (round % 2) wait_for(&last.begun, 1);
        parting self = {r.device, &last};
        run_threads(2, release_or_close, &self);
        int begun = atomic_load(&last.begun);
        CHECK_EQ(begun, atomic_load(&last.ended));
        sleep_ms(5);
        CHECK_EQ(atomic_load(&last.begun), begun);
    }
}
