/* SPDX-License-Identifier: Apache-2.0 */
/* Every call, with all arguments good but one: a handle that is zero, made up, closed or of another
 * kind, a pointer that is NULL. The call is refused with a reason, writes nothing through its other
 * pointers, and does no harm. */
#include "../support/buffers.h"
#include "../support/managed.h"
#include "../support/support.h"
#include "../support/transfers.h"

/* ---- one argument in turn ---- */

enum damage { ZERO, MADE_UP, CLOSED, OTHER_KIND, DAMAGES };

/* What the calls are given. */
static struct {
    bh_device device;
    bh_lane lane;
    bh_module module;
    bh_kernel kernel;
    bh_buffer buffer, other, shared, managed;
    bh_sequence recording, ready;
    bh_prepared prepared;
    bh_binary binary;
    bh_host_pool pool;
    bh_watch watch;
    bh_ticket ticket;
    void *host, *piece, *managed_memory;
    uint32_t word;
    bh_transfer rows;
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    bh_arg dispatch[2];
    bh_change change;
} good;

/* Handles of what was there and is closed. */
static struct {
    bh_device device;
    bh_lane lane;
    bh_module module;
    bh_kernel kernel;
    bh_buffer buffer;
    bh_sequence sequence;
    bh_prepared prepared;
    bh_binary binary;
    bh_host_pool pool;
    bh_watch watch;
} closed;

/* What the calls fill in. */
static struct {
    bh_device device;
    bh_lane lane;
    bh_module module;
    bh_kernel kernel;
    bh_buffer buffer;
    bh_sequence sequence;
    bh_prepared prepared;
    bh_binary binary;
    bh_host_pool pool;
    bh_watch watch;
    bh_ticket ticket;
    void *pointer;
    const char *text;
    uint64_t number;
    uint32_t count;
    size_t length;
    int fd, fds[BH_SHARE_FDS];
    uint8_t bytes[64];
    char line[BH_LINE_BYTES];
    bh_error error;
    bh_share_token token;
    bh_device_info device_info;
    bh_health device_health;
    bh_buffer_info buffer_info;
    bh_memory_info memory_info;
    bh_memory_entry entry;
    bh_memory_tag tag;
    bh_host_pool_info pool_info;
    bh_share_info share_info;
    bh_managed_info managed_info;
    bh_binary_info binary_info;
    const void *image;
    size_t image_bytes;
    bh_cache_info cache_info;
    bh_kernel_info kernel_info;
    bh_param_info param_info;
    bh_preflight preflight;
    bh_occupancy occupancy;
    bh_lane_counters lane_counts;
    bh_device_counters counters;
} out, before;

static void out_reset(void) {
    memset(&out, 0x5a, sizeof out);
#define SIZED(field) out.field.size = sizeof out.field
    SIZED(device_info);
    SIZED(device_health);
    SIZED(buffer_info);
    SIZED(memory_info);
    SIZED(pool_info);
    SIZED(share_info);
    SIZED(managed_info);
    SIZED(binary_info);
    SIZED(cache_info);
    SIZED(kernel_info);
    SIZED(param_info);
    SIZED(preflight);
    SIZED(occupancy);
    SIZED(lane_counts);
    SIZED(counters);
#undef SIZED
    memcpy(&before, &out, sizeof out);
}

static unsigned seen, target; /* arguments of this call so far; which one is damaged, from 1 on */
static enum damage damage;    /* how, if it is a handle */

static uint64_t handle(uint64_t sound, uint64_t gone, bool zero_is_good) {
    const uint64_t made_up = UINT64_C(0xdeadbeef00c0ffee);
    if (++seen != target) return sound;
    switch (damage) {
    case ZERO:
        return zero_is_good ? made_up : 0;
    case MADE_UP:
        return made_up;
    case CLOSED:
        return gone;
    default:
        return sound == good.device.id ? good.buffer.id : good.device.id;
    }
}

static void *pointer(const void *sound) {
    union {
        const void *given;
        void *same;
    } it = {sound};
    return ++seen == target ? NULL : it.same;
}

#define D       ((bh_device){handle(good.device.id, closed.device.id, false)})
#define L       ((bh_lane){handle(good.lane.id, closed.lane.id, true)})
#define LANE    ((bh_lane){handle(good.lane.id, closed.lane.id, false)})
#define M       ((bh_module){handle(good.module.id, closed.module.id, false)})
#define K       ((bh_kernel){handle(good.kernel.id, closed.kernel.id, false)})
#define B       ((bh_buffer){handle(good.buffer.id, closed.buffer.id, false)})
#define OTHER   ((bh_buffer){handle(good.other.id, closed.buffer.id, false)})
#define SHARED  ((bh_buffer){handle(good.shared.id, closed.buffer.id, false)})
#define MANAGED ((bh_buffer){handle(good.managed.id, closed.buffer.id, false)})
#define S       ((bh_sequence){handle(good.recording.id, closed.sequence.id, false)})
#define READY   ((bh_sequence){handle(good.ready.id, closed.sequence.id, false)})
#define Q       ((bh_prepared){handle(good.prepared.id, closed.prepared.id, false)})
#define X       ((bh_binary){handle(good.binary.id, closed.binary.id, false)})
#define POOL    ((bh_host_pool){handle(good.pool.id, closed.pool.id, false)})
#define WATCH   ((bh_watch){handle(good.watch.id, closed.watch.id, false)})
#define T       ((bh_ticket){handle(good.ticket.lane, closed.lane.id, false), good.ticket.sequence})
/* A pointer that must not be NULL. */
#define P(sound) pointer(sound)

static bh_args args_with(bh_buffer buffer) {
    static bh_arg list[2];
    list[0] = BH_INOUT(buffer);
    list[1] = bh_arg_value(&(uint32_t){4}, 4);
    return (bh_args){list, 2};
}

static const bh_launch_options *options_on(bh_lane lane) {
    static bh_launch_options options;
    options = on_lane(lane, 0);
    return &options;
}

static const bh_launch_options *options_also(bh_buffer buffer) {
    static bh_launch_options options;
    static bh_use use;
    use = (bh_use){buffer, BH_ACCESS_IN, 0};
    options = (bh_launch_options)BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    return &options;
}

static void done(void *context, bh_ticket ticket, bh_status status) {
    (void)context, (void)ticket, (void)status;
    CHECK(!"called back by a call that was refused");
}
static void told(void *context, const bh_event *event) {
    (void)context, (void)event;
}
/* The same for functions. */
#define F(sound) (++seen == target ? NULL : (sound))

#define SHAPE ((bh_shape){{1, 1, 1}, {4, 1, 1}, {0, 0, 0}, 0})

/* How many arguments can be damaged, and the call. */
#define CALLS(_)                                                                                   \
    _(1, bh_device_open(NULL, P(&out.device)))                                                     \
    _(1, bh_device_close(D))                                                                       \
    _(2, bh_device_get_info(D, P(&out.device_info)))                                               \
    _(1, bh_device_list(NULL, 0, 0, P(&out.length)))                                               \
    _(2, bh_device_get_health(D, P(&out.device_health)))                                           \
    _(1, bh_device_sync(D, LONG_NS))                                                               \
    _(1, bh_device_wait_standby(D, LONG_NS))                                                       \
    _(2, bh_device_eventfd(D, P(&out.fd)))                                                         \
    _(3, bh_watch_open(D, NULL, F(told), NULL, P(&out.watch)))                                     \
    _(1, bh_watch_release(WATCH))                                                                  \
    _(2, bh_lane_open(D, NULL, P(&out.lane)))                                                      \
    _(2, bh_lane_open(D, NULL, P(&out.lane)))                                                      \
    _(1, bh_lane_release(LANE))                                                                    \
    _(1, bh_lane_sync(L, LONG_NS))                                                                 \
    _(2, bh_buffer_alloc(D, BH_U32, 4, NULL, P(&out.buffer)))                                      \
    _(1, bh_buffer_retain(B))                                                                      \
    _(1, bh_buffer_release(B))                                                                     \
    _(2, bh_buffer_view(B, 0, 0, 1, P(&out.buffer)))                                               \
    _(2, bh_buffer_get_info(B, P(&out.buffer_info)))                                               \
    _(2, bh_buffer_write(B, 0, P(&good.word), 4))                                                  \
    _(2, bh_buffer_read(B, 0, P(out.bytes), 4))                                                    \
    _(2, bh_buffer_copy(B, 0, OTHER, 0, 4))                                                        \
    _(2, bh_buffer_fill(B, 0, 4, P(&good.word), 4))                                                \
    _(3, bh_submit_write(L, B, 0, P(&good.word), 4, &out.ticket))                                  \
    _(3, bh_submit_read(L, B, 0, P(good.host), 4, &out.ticket))                                    \
    _(3, bh_submit_copy(L, B, 0, OTHER, 0, 4, &out.ticket))                                        \
    _(3, bh_submit_fill(L, B, 0, 4, P(&good.word), 4, &out.ticket))                                \
    _(1, bh_buffer_accept(B))                                                                      \
    _(2, bh_host_alloc(D, 64, P(&out.pointer)))                                                    \
    _(2, bh_host_free(D, P(good.host)))                                                            \
    _(2, bh_buffer_alloc(D, BH_U32, 4, NULL, P(&out.buffer)))                                      \
    _(2, bh_buffer_view(B, BH_U8, 0, BH_WHOLE, P(&out.buffer)))                                    \
    _(2, bh_memory_get_info(D, P(&out.memory_info)))                                               \
    _(1, bh_memory_reset_peak(D))                                                                  \
    _(1, bh_memory_set_limit(D, "tag", 0))                                                         \
    _(1, bh_memory_trim(D, UINT64_MAX, &out.number))                                               \
    _(3, bh_memory_list(D, P(&out.entry), sizeof out.entry, 1, P(&out.length)))                    \
    _(3, bh_memory_list_tags(D, P(&out.tag), sizeof out.tag, 1, P(&out.length)))                   \
    _(3, submit_copy_rows(L, B, OTHER, &good.rows, &out.ticket))                                   \
    _(3, submit_write_rows(L, B, P(&good.word), &good.rows, &out.ticket))                          \
    _(3, submit_read_rows(L, P(good.host), B, &good.rows, &out.ticket))                            \
    _(2, copy_rows(B, OTHER, &good.rows))                                                          \
    _(2, write_rows(B, P(&good.word), &good.rows))                                                 \
    _(2, read_rows(P(out.bytes), B, &good.rows))                                                   \
    _(3, submit_fill_rows(L, B, &good.rows, P(&good.word), 4, &out.ticket))                        \
    _(2, fill_rows(B, &good.rows, P(&good.word), 4))                                               \
    _(1, bh_submit(P(&good.rows.request), NULL, &out.ticket))                                      \
    _(2, bh_host_pool_open(D, NULL, P(&out.pool)))                                                 \
    _(2, bh_host_pool_take(POOL, 64, 0, P(&out.pointer)))                                          \
    _(2, bh_host_pool_give(POOL, P(good.piece)))                                                   \
    _(2, bh_host_pool_get_info(POOL, P(&out.pool_info)))                                           \
    _(1, bh_host_pool_release(POOL))                                                               \
    _(2, alloc_shareable(D, BH_U32, 4, P(&out.buffer)))                                            \
    _(3, bh_buffer_export(SHARED, P(out.fds), P(&out.token)))                                      \
    _(1, bh_buffer_revoke(SHARED))                                                                 \
    _(4, bh_buffer_import(D, P(good.fds), P(&good.token), NULL, P(&out.buffer)))                   \
    _(3, bh_share_map(P(good.fds), P(&good.token), P(&out.pointer)))                               \
    _(1, bh_share_unmap(P(good.host)))                                                             \
    _(3, bh_share_get_info(P(good.fds), P(&good.token), P(&out.share_info)))                       \
    _(2, alloc_managed(D, BH_U32, 4, 0, P(&out.buffer), &out.pointer))                             \
    _(1, bh_managed_map(MANAGED, 0, 4, BH_MAP_READ, &out.pointer))                                 \
    _(1, bh_managed_unmap(P(good.managed_memory), 4))                                              \
    _(2, prefetch_on(L, MANAGED, 0, 4, BH_TO_DEVICE, &out.ticket))                                 \
    _(1, bh_managed_advise(MANAGED, 0, 4, BH_ADVISE_PREFER_DEVICE))                                \
    _(2, bh_managed_attach(MANAGED, BH_ATTACH_LANE, L))                                            \
    _(2, bh_managed_get_info(MANAGED, P(&out.managed_info)))                                       \
    _(3, bh_module_load(D, P(ptx_basic), strlen(ptx_basic), P(&out.module)))                       \
    _(3, bh_module_load_file(D, P("/dev/null"), P(&out.module)))                                   \
    _(3, bh_submit_load(D, P(ptx_basic), strlen(ptx_basic), P(&out.module), &out.ticket))          \
    _(1, bh_module_release(M))                                                                     \
    _(3, bh_module_global_write(M, P("counter"), 0, P(&good.word), 4))                             \
    _(3, bh_module_global_read(M, P("counter"), 0, P(out.bytes), 4))                               \
    _(3, bh_module_global_size(M, P("counter"), P(&out.number)))                                   \
    _(1, bh_module_accept(M))                                                                      \
    _(3, bh_module_compile(D, P("int a;"), NULL, P(&out.module)))                                  \
    _(3, bh_submit_compile(D, P("int a;"), NULL, P(&out.module), &out.ticket))                     \
    _(2, bh_compile(P("int a;"), NULL, P(&out.binary)))                                            \
    _(2, bh_link(P(&good.binary), 1, NULL, P(&out.binary)))                                        \
    _(2, bh_binary_from(P(ptx_basic), strlen(ptx_basic), P(&out.binary)))                          \
    _(1, bh_binary_release(X))                                                                     \
    _(3, bh_module_load_binary(D, X, P(&out.module)))                                              \
    _(2, bh_module_get_binary(M, P(&out.binary)))                                                  \
    _(2, bh_binary_get_info(X, P(&out.binary_info)))                                               \
    _(3, bh_binary_get_image(X, BH_OUTPUT_PTX, P(&out.image), P(&out.image_bytes)))                \
    _(3, bh_binary_lowered(X, P("a<1>"), P(&out.text)))                                            \
    _(3, bh_kernel_get(M, P("bump"), P(&out.kernel)))                                              \
    _(3, bh_module_list_kernels(M, P(&out.kernel), 1, P(&out.length)))                             \
    _(2, bh_kernel_get_info(K, P(&out.kernel_info)))                                               \
    _(2, bh_kernel_get_param(K, 0, P(&out.param_info)))                                            \
    _(1, bh_kernel_pardon(K))                                                                      \
    _(2, bh_launch(K, SHAPE, args_with(B), NULL, &out.ticket))                                     \
    _(1, bh_launch(good.kernel, SHAPE, ((bh_args){P(args_with(good.buffer).list), 2}), NULL,       \
                   &out.ticket))                                                                   \
    _(3, bh_launch(K, SHAPE, args_with(B), options_on(L), &out.ticket))                            \
    _(3, bh_launch(K, SHAPE, args_with(B), options_also(OTHER), &out.ticket))                      \
    _(2, bh_launch_preflight(K, SHAPE, NULL, NULL, P(&out.preflight)))                             \
    _(2, bh_kernel_get_occupancy(K, SHAPE, P(&out.occupancy)))                                     \
    _(1, bh_preflight_line(NULL, P(out.line), sizeof out.line))                                    \
    _(3, bh_prepare(K, SHAPE, args_with(B), NULL, P(&out.prepared)))                               \
    _(1, bh_prepare(good.kernel, SHAPE, args_with(good.buffer), options_on(L), &out.prepared))     \
    _(2, launch_changed(Q, 0, BH_INOUT(B)))                                                        \
    _(1, bh_prepared_launch(Q, NULL, 0, &out.ticket))                                              \
    _(2, bh_prepared_launch(Q, P(&good.change), 1, &out.ticket))                                   \
    _(1, bh_prepared_release(Q))                                                                   \
    _(2, bh_sequence_begin(D, NULL, P(&out.sequence)))                                             \
    _(3, bh_sequence_launch(S, K, SHAPE, args_with(B), NULL, &out.count))                          \
    _(3, record_copy(S, B, 0, OTHER, 0, 4, &out.count))                                            \
    _(3, record_fill(S, B, 0, 4, P(&good.word), 4, &out.count))                                    \
    _(3, record_write(S, B, 0, P(good.host), 4, &out.count))                                       \
    _(3, record_read(S, B, 0, P(good.host), 4, &out.count))                                        \
    _(2, bh_sequence_add(S, P(&good.rows.request), &out.count))                                    \
    _(1, bh_sequence_finish(S))                                                                    \
    _(3, bh_sequence_bind(READY, B, OTHER))                                                        \
    _(1, bh_sequence_set(READY, 0, 0, bh_arg_value(&good.word, 4)))                                \
    _(1, bh_sequence_submit(READY, NULL, &out.ticket))                                             \
    _(1, bh_sequence_release(READY))                                                               \
    _(2, bh_dispatch(K, SHAPE, (bh_args){P(good.dispatch), 2}, NULL))                              \
    _(1, bh_dispatch_batch(P(out.bytes), sizeof(bh_dispatch_item), 1, NULL))                       \
    _(1, bh_wait(T, LONG_NS))                                                                      \
    _(1, bh_wait_all(P(&good.ticket), 1, LONG_NS))                                                 \
    _(1, bh_wait(T, 0))                                                                            \
    _(2, bh_ticket_error(T, P(&out.error)))                                                        \
    _(1, bh_cancel(T))                                                                             \
    _(2, bh_on_done(T, F(done), NULL))                                                             \
    _(1, bh_notify(T))                                                                             \
    _(3, bh_lane_get_counters(D, L, P(&out.lane_counts)))                                          \
    _(2, bh_device_get_counters(D, P(&out.counters)))                                              \
    _(1, bh_prometheus(NULL, 0, out.line, sizeof out.line, P(&out.length)))                        \
    _(2, bh_trace_start(D, P("/nowhere/trace")))                                                   \
    _(1, bh_trace_stop(D))

static const struct {
    unsigned count;
    const char *text;
} calls[] = {
#define ENTRY(count, call) {count, #call},
    CALLS(ENTRY)
#undef ENTRY
};
enum { COUNT = sizeof calls / sizeof *calls };

static bh_status make_call(unsigned index) {
    unsigned at = 0;
#define MAKE(count, call)                                                                          \
    if (at++ == index) return call;
    CALLS(MAKE)
#undef MAKE
    return BH_OK;
}

/* ---- a world of good arguments ---- */

static void make_good(rig *r) {
    *r = rig_open(0);
    good.device = r->device;
    good.lane = open_lane(r->device);
    good.module = load_module(r->device, ptx_globals);
    good.kernel = rig_kernel(r, "add_one");
    good.buffer = words_filled(r->device, 16, 7);
    good.other = words_filled(r->device, 16, 8);
    good.rows = bh_transfer_fill(good.buffer, 0, 4, &good.word, 4);
    REQUIRE_OK(alloc_shareable(r->device, BH_U32, 16, &good.shared));
    REQUIRE_OK(bh_buffer_export(good.shared, good.fds, &good.token));
    REQUIRE_OK(alloc_managed(r->device, BH_U32, 16, 0, &good.managed, &good.managed_memory));
    REQUIRE_OK(bh_host_alloc(r->device, 4096, &good.host));
    REQUIRE_OK(bh_host_pool_open(r->device, NULL, &good.pool));
    REQUIRE_OK(bh_host_pool_take(good.pool, 64, 0, &good.piece));
    good.watch = watch_for(r->device, 0, told, NULL);
    REQUIRE_OK(bh_binary_from(ptx_basic, strlen(ptx_basic), &good.binary));
    REQUIRE_OK(bh_sequence_begin(r->device, NULL, &good.recording));
    REQUIRE_OK(bh_sequence_begin(r->device, NULL, &good.ready));
    REQUIRE_OK(record_fill(good.ready, good.buffer, 0, 64, &(uint32_t){7}, 4, NULL));
    REQUIRE_OK(bh_sequence_finish(good.ready));
    REQUIRE_OK(bh_prepare(good.kernel, SHAPE, args_with(good.buffer), NULL, &good.prepared));
    REQUIRE_OK(bh_submit_fill(good.lane, good.other, 0, 64, &(uint32_t){8}, 4, &good.ticket));
    static uint32_t words[4], count = 4;
    good.dispatch[0] = BH_HOST_INOUT(words, sizeof words);
    good.dispatch[1] = BH_VALUE(&count, 4);
    good.change = (bh_change){.index = 1, .arg = bh_arg_value(&count, 4)};
}

static void make_closed(void) {
    rig r = rig_open(BH_DEVICE_NO_STANDBY);
    closed.device = r.device;
    REQUIRE_OK(bh_device_close(r.device));
    closed.lane = open_lane(good.device);
    REQUIRE_OK(bh_lane_release(closed.lane));
    closed.module = load_module(good.device, ptx_basic);
    closed.kernel = get_kernel(closed.module, "iota");
    REQUIRE_OK(bh_prepare(closed.kernel, SHAPE, BH_ARGS(BH_OUT(good.buffer), 0u, 4u), NULL,
                          &closed.prepared));
    REQUIRE_OK(bh_prepared_release(closed.prepared));
    REQUIRE_OK(bh_module_release(closed.module));
    closed.buffer = words_alloc(good.device, 16);
    REQUIRE_OK(bh_buffer_release(closed.buffer));
    REQUIRE_OK(bh_sequence_begin(good.device, NULL, &closed.sequence));
    REQUIRE_OK(bh_sequence_release(closed.sequence));
    REQUIRE_OK(bh_binary_from(ptx_basic, strlen(ptx_basic), &closed.binary));
    REQUIRE_OK(bh_binary_release(closed.binary));
    REQUIRE_OK(bh_host_pool_open(good.device, NULL, &closed.pool));
    REQUIRE_OK(bh_host_pool_release(closed.pool));
    closed.watch = watch_for(good.device, 0, told, NULL);
    REQUIRE_OK(bh_watch_release(closed.watch));
}

/* Where `out` differs from what it was, from 1 on. bh_ticket_error fills in its error in any
 * case. */
static size_t changed(void) {
    out.error = before.error;
    const uint8_t *now = (const uint8_t *)&out, *was = (const uint8_t *)&before;
    for (size_t i = 0; i < sizeof out; i++)
        if (now[i] != was[i]) return i + 1;
    return 0;
}

TEST_TIMEOUT(one_bad_argument_is_refused_and_does_no_harm, 90) {
    rig r;
    make_good(&r);
    make_closed();
    REQUIRE_OK(bh_wait(good.ticket, LONG_NS));
    for (unsigned i = 0; i < COUNT; i++) {
        for (target = 1; target <= calls[i].count; target++) {
            for (damage = 0; damage < DAMAGES; damage++) {
                char what[300];
                snprintf(what, sizeof what, "%s with argument %u damaged in way %d", calls[i].text,
                         target, (int)damage);
                out_reset();
                seen = 0;
                bh_status status = make_call(i);
                check_refused(status, -1, what, __FILE__, __LINE__);
                if (seen != calls[i].count || changed() || status == BH_E_INTERNAL)
                    printf("%s: %u arguments seen, status %d, output changed at %zu\n", what, seen,
                           (int)status, changed());
                CHECK_EQ(seen, calls[i].count);
                CHECK_EQ(changed(), 0);
                CHECK(status != BH_E_INTERNAL);
            }
        }
    }
    CHECK(words_are(good.buffer, 16, 7));
    CHECK(words_are(good.other, 16, 8));
    CHECK_OK(bh_host_pool_give(good.pool, good.piece));
    CHECK_OK(bh_host_free(r.device, good.host));
    check_device_works(&r);
    CHECK_EQ(health_of(r.device).losses, 0);
    CHECK_OK(bh_device_close(r.device));
    for (int i = 0; i < BH_SHARE_FDS; i++) close(good.fds[i]);
}
