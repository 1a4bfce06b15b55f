/* SPDX-License-Identifier: Apache-2.0 */
/* Every call that takes a handle, given handles that are zero, made up, closed, of another kind. */
#include "../support/buffers.h"
#include "../support/support.h"

/* The good arguments of the calls under test. */
static struct {
    bh_device device;
    bh_lane lane;
    bh_module module;
    bh_kernel kernel;
    bh_buffer buffer;
    void *host;
    uint32_t word;
    char path[600]; /* of a file that could be loaded */
} good;

static void watch_nothing(void *context, const bh_event *event) {
    (void)context;
    (void)event;
}

enum kind { DEVICE, LANE, MODULE, KERNEL, BUFFER, KINDS };

#define CALL(name, expression)                                                                     \
    static bh_status call_##name(uint64_t id) {                                                    \
        return expression;                                                                         \
    }

#define D ((bh_device){id})
#define L ((bh_lane){id})
#define M ((bh_module){id})
#define K ((bh_kernel){id})
#define B ((bh_buffer){id})

static bh_device_info device_info = BH_INIT(device_info);
static bh_device_limits device_limits = BH_INIT(device_limits);
static bh_health device_health = BH_INIT(device_health);
static bh_buffer_info buffer_info = BH_INIT(buffer_info);
static bh_kernel_info kernel_info = BH_INIT(kernel_info);
static bh_param_info param_info = BH_INIT(param_info);
static bh_lane out_lane;
static bh_watch out_watch;
static bh_module out_module;
static bh_kernel out_kernel;
static bh_buffer out_buffer;
static void *out_host;
static bh_ticket out_ticket;
static uint64_t out_number;
static size_t out_count;
static int out_fd;

static bh_status launch_on(uint64_t id) {
    bh_launch_options options = on_lane((bh_lane){id}, 0);
    return bh_launch(good.kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(good.buffer), 4u), &options,
                     &out_ticket);
}

static bh_status launch_also(uint64_t id) {
    bh_use use = {{id}, BH_ACCESS_IN, 0};
    bh_launch_options options = BH_INIT(options);
    options.also = &use;
    options.also_count = 1;
    return bh_launch(good.kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(good.buffer), 4u), &options,
                     &out_ticket);
}

CALL(device_close, bh_device_close(D))
CALL(device_query, bh_device_get_info(D, &device_info))
CALL(device_get_limits, bh_device_get_limits(D, &device_limits))
CALL(device_get_health, bh_device_get_health(D, &device_health))
CALL(device_sync, bh_device_sync(D, 0))
CALL(device_wait_standby, bh_device_wait_standby(D, 0))
CALL(device_eventfd, bh_device_eventfd(D, &out_fd))
CALL(watch_open, bh_watch_open(D, NULL, watch_nothing, NULL, &out_watch))
CALL(lane_open, bh_lane_open(D, NULL, &out_lane))
CALL(lane_open_with, bh_lane_open(D, NULL, &out_lane))
CALL(buffer_alloc, bh_buffer_alloc(D, BH_U32, 4, NULL, &out_buffer))
CALL(host_alloc, bh_host_alloc(D, 64, &out_host))
CALL(host_free, bh_host_free(D, good.host))
CALL(module_load, bh_module_load(D, ptx_factor, strlen(ptx_factor), &out_module))
CALL(module_load_file, bh_module_load_file(D, good.path, &out_module))
CALL(submit_load, bh_submit_load(D, ptx_factor, strlen(ptx_factor), &out_module, &out_ticket))

CALL(lane_close, bh_lane_release(L))
CALL(lane_sync, bh_lane_sync(L, 0))
CALL(launch_with_lane, launch_on(id))
CALL(submit_write_lane, bh_submit_write(L, good.buffer, 0, &good.word, 4, &out_ticket))
CALL(submit_read_lane, bh_submit_read(L, good.buffer, 0, good.host, 4, &out_ticket))
CALL(submit_copy_lane, bh_submit_copy(L, good.buffer, 0, good.buffer, 8, 4, &out_ticket))
CALL(submit_fill_lane, bh_submit_fill(L, good.buffer, 0, 4, &good.word, 4, &out_ticket))

CALL(module_unload, bh_module_release(M))
CALL(module_global_write, bh_module_global_write(M, "factor", 0, &good.word, 4))
CALL(module_global_read, bh_module_global_read(M, "factor", 0, &good.word, 4))
CALL(module_global_size, bh_module_global_size(M, "factor", &out_number))
CALL(module_accept, bh_module_accept(M))
CALL(kernel_get, bh_kernel_get(M, "scale_by", &out_kernel))
CALL(module_list_kernels, bh_module_list_kernels(M, &out_kernel, 1, &out_count))

CALL(kernel_query, bh_kernel_get_info(K, &kernel_info))
CALL(kernel_param, bh_kernel_get_param(K, 0, &param_info))
CALL(kernel_pardon, bh_kernel_pardon(K))
CALL(launch, bh_launch(K, BH_GRID(4, 4), BH_ARGS(BH_INOUT(good.buffer), 4u), NULL, &out_ticket))
CALL(launch_with,
     bh_launch(K, BH_GRID(4, 4), BH_ARGS(BH_INOUT(good.buffer), 4u), NULL, &out_ticket))

CALL(buffer_retain, bh_buffer_retain(B))
CALL(buffer_release, bh_buffer_release(B))
CALL(buffer_view, bh_buffer_view(B, 0, 0, 1, &out_buffer))
CALL(buffer_query, bh_buffer_get_info(B, &buffer_info))
CALL(buffer_address, buffer_address(B, &out_number))
CALL(buffer_write, bh_buffer_write(B, 0, &good.word, 4))
CALL(buffer_read, bh_buffer_read(B, 0, &good.word, 4))
CALL(buffer_copy_to, bh_buffer_copy(B, 0, good.buffer, 0, 4))
CALL(buffer_copy_from, bh_buffer_copy(good.buffer, 0, B, 0, 4))
CALL(buffer_fill, bh_buffer_fill(B, 0, 4, &good.word, 4))
CALL(buffer_accept, bh_buffer_accept(B))
CALL(submit_write, bh_submit_write(good.lane, B, 0, &good.word, 4, &out_ticket))
CALL(submit_read, bh_submit_read(good.lane, B, 0, good.host, 4, &out_ticket))
CALL(submit_copy_to, bh_submit_copy(good.lane, B, 0, good.buffer, 0, 4, &out_ticket))
CALL(submit_copy_from, bh_submit_copy(good.lane, good.buffer, 0, B, 0, 4, &out_ticket))
CALL(submit_fill, bh_submit_fill(good.lane, B, 0, 4, &good.word, 4, &out_ticket))
CALL(launch_argument,
     bh_launch(good.kernel, BH_GRID(4, 4), BH_ARGS(BH_INOUT(B), 4u), NULL, &out_ticket))
CALL(launch_input, bh_launch(good.kernel, BH_GRID(4, 4), BH_ARGS(BH_IN(B), 4u), NULL, &out_ticket))
CALL(launch_also, launch_also(id))

static const struct probe {
    enum kind kind;
    bool zero_is_good; /* a zero lane is the device's own */
    const char *name;
    bh_status (*call)(uint64_t id);
} probes[] = {
#define PROBE(kind, name)                                                                          \
    { kind, false, #name, call_##name }
#define PROBE_ZERO(kind, name)                                                                     \
    { kind, true, #name, call_##name }
    PROBE(DEVICE, device_close),
    PROBE(DEVICE, device_query),
    PROBE(DEVICE, device_get_limits),
    PROBE(DEVICE, device_get_health),
    PROBE(DEVICE, device_sync),
    PROBE(DEVICE, device_wait_standby),
    PROBE(DEVICE, device_eventfd),
    PROBE(DEVICE, watch_open),
    PROBE(DEVICE, lane_open),
    PROBE(DEVICE, lane_open_with),
    PROBE(DEVICE, buffer_alloc),
    PROBE(DEVICE, host_alloc),
    PROBE(DEVICE, host_free),
    PROBE(DEVICE, module_load),
    PROBE(DEVICE, module_load_file),
    PROBE(DEVICE, submit_load),
    PROBE(LANE, lane_close),
    PROBE(LANE, lane_sync),
    PROBE_ZERO(LANE, launch_with_lane),
    PROBE_ZERO(LANE, submit_write_lane),
    PROBE_ZERO(LANE, submit_read_lane),
    PROBE_ZERO(LANE, submit_copy_lane),
    PROBE_ZERO(LANE, submit_fill_lane),
    PROBE(MODULE, module_unload),
    PROBE(MODULE, module_global_write),
    PROBE(MODULE, module_global_read),
    PROBE(MODULE, module_global_size),
    PROBE(MODULE, module_accept),
    PROBE(MODULE, kernel_get),
    PROBE(MODULE, module_list_kernels),
    PROBE(KERNEL, kernel_query),
    PROBE(KERNEL, kernel_param),
    PROBE(KERNEL, kernel_pardon),
    PROBE(KERNEL, launch),
    PROBE(KERNEL, launch_with),
    PROBE(BUFFER, buffer_retain),
    PROBE(BUFFER, buffer_release),
    PROBE(BUFFER, buffer_view),
    PROBE(BUFFER, buffer_query),
    PROBE(BUFFER, buffer_address),
    PROBE(BUFFER, buffer_write),
    PROBE(BUFFER, buffer_read),
    PROBE(BUFFER, buffer_copy_to),
    PROBE(BUFFER, buffer_copy_from),
    PROBE(BUFFER, buffer_fill),
    PROBE(BUFFER, buffer_accept),
    PROBE(BUFFER, submit_write),
    PROBE(BUFFER, submit_read),
    PROBE(BUFFER, submit_copy_to),
    PROBE(BUFFER, submit_copy_from),
    PROBE(BUFFER, submit_fill),
    PROBE(BUFFER, launch_argument),
    PROBE(BUFFER, launch_input),
    PROBE(BUFFER, launch_also),
};
enum { PROBES = sizeof probes / sizeof probes[0] };

static void set_up(void) {
    good.device = open_device();
    good.lane = open_lane(good.device);
    good.module = load_module(good.device, ptx_factor);
    good.kernel = get_kernel(good.module, "scale_by");
    good.buffer = words_counting(good.device, 16, 1);
    REQUIRE_OK(bh_host_alloc(good.device, 64, &good.host));
    FILE *file = fopen(test_path(good.path, sizeof good.path, "%s/good.ptx", test_tmp_dir()), "w");
    REQUIRE(file != NULL);
    fputs(ptx_factor, file);
    fclose(file);
}

static void tear_down(void) {
    rig r = {good.device, load_module(good.device, ptx_basic)};
    CHECK(words_count(good.buffer, 16, 1));
    check_device_works(&r);
    CHECK_OK(bh_device_close(good.device));
}

static void check_probe(const struct probe *probe, uint64_t id) {
    bh_ticket before = {71, 72};
    out_ticket = before;
    bh_status status = probe->call(id);
    if (status != BH_E_INVALID)
        FAIL("%s with handle %#llx returned %s", probe->name, (unsigned long long)id,
             bh_status_name(status));
    if (status == BH_OK) return;
    check_refused(status, BH_E_INVALID, probe->name, __FILE__, __LINE__);
    CHECK_MEM_EQ(&out_ticket, &before, sizeof before);
}

TEST(zero_is_no_handle) {
    set_up();
    for (int i = 0; i < PROBES; i++)
        if (!probes[i].zero_is_good) check_probe(&probes[i], 0);
    tear_down();
}

TEST(made_up_handles_are_recognised) {
    set_up();
    rng random = rng_seeded(41);
    for (int i = 0; i < PROBES; i++) {
        for (int k = 0; k < 50; k++) {
            uint64_t id = (uint64_t)rng_next(&random) << 32 | rng_next(&random);
            check_probe(&probes[i], k % 2 ? id : id & 0xffffff);
        }
        check_probe(&probes[i], UINT64_MAX);
        check_probe(&probes[i], 1);
        check_probe(&probes[i], UINT64_C(1) << 32);
        check_probe(&probes[i], UINT64_C(1) << 63);
    }
    tear_down();
}

static uint64_t good_id(enum kind kind) {
    const uint64_t ids[KINDS] = {good.device.id, good.lane.id, good.module.id, good.kernel.id,
                                 good.buffer.id};
    return ids[kind];
}

TEST(handles_with_one_bit_changed_are_recognised) {
    set_up();
    for (int i = 0; i < PROBES; i++)
        for (int bit = 0; bit < 64; bit++)
            check_probe(&probes[i], good_id(probes[i].kind) ^ UINT64_C(1) << bit);
    tear_down();
}

TEST(handles_of_another_kind_are_recognised) {
    set_up();
    for (int i = 0; i < PROBES; i++)
        for (enum kind kind = DEVICE; kind < KINDS; kind++)
            if (kind != probes[i].kind) check_probe(&probes[i], good_id(kind));
    tear_down();
}

TEST(closed_handles_are_recognised_even_after_others_took_their_place) {
    set_up();
    bh_device device = open_device();
    bh_lane lane = open_lane(good.device);
    bh_module module = load_module(good.device, ptx_factor);
    bh_kernel kernel = get_kernel(module, "scale_by");
    bh_buffer buffer = words_alloc(good.device, 16);
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_lane_release(lane));
    CHECK_OK(bh_module_release(module));
    CHECK_OK(bh_buffer_release(buffer));
    const uint64_t closed[KINDS] = {device.id, lane.id, module.id, kernel.id, buffer.id};
    for (int i = 0; i < PROBES; i++) check_probe(&probes[i], closed[probes[i].kind]);
    device = open_device();
    lane = open_lane(good.device);
    module = load_module(good.device, ptx_factor);
    kernel = get_kernel(module, "scale_by");
    buffer = words_alloc(good.device, 16);
    for (int i = 0; i < PROBES; i++) check_probe(&probes[i], closed[probes[i].kind]);
    CHECK_OK(bh_device_close(device));
    CHECK_OK(bh_module_release(module));
    tear_down();
}

TEST(what_belongs_to_another_device_is_refused) {
    set_up();
    bh_device other = open_device();
    bh_lane lane = open_lane(other);
    bh_buffer buffer = words_counting(other, 16, 1);
    for (int i = 0; i < PROBES; i++) {
        const char *name = probes[i].name;
        if (strcmp(name, "launch_with_lane") == 0 || strstr(name, "_lane") != NULL) {
            if (strncmp(name, "submit_", 7) == 0 || strncmp(name, "launch_", 7) == 0)
                check_probe(&probes[i], lane.id);
        } else if (strncmp(name, "submit_", 7) == 0 || strcmp(name, "launch_argument") == 0 ||
                   strcmp(name, "launch_input") == 0 || strcmp(name, "launch_also") == 0) {
            if (probes[i].kind == BUFFER) check_probe(&probes[i], buffer.id);
        }
    }
    CHECK_REFUSED(bh_host_free(other, good.host), BH_E_INVALID);
    CHECK(words_count(buffer, 16, 1));
    CHECK_OK(bh_device_close(other));
    tear_down();
}
