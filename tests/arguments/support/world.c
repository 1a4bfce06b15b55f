/* SPDX-License-Identifier: Apache-2.0 */
/* The objects that good arguments name: two devices and all that one can make on them, some of it
 * closed again. */
#include "../../support/buffers.h"
#include "../../support/support.h"
#include "../../support/transfers.h"
#include "support/call.h"

enum { WORDS = 16, MEMORY_LIMIT = 256 << 20 };

typedef struct objects {
    bh_device device;
    bh_lane lane;
    bh_module module, kernels; /* the second has the kernel */
    bh_kernel kernel;
    bh_buffer buffer;
    bh_prepared prepared;
    bh_host_pool pool;
    bh_sequence sequence;
    bh_binary binary;
    bh_watch watch;
    bh_image image;
    bh_texture texture;
    bh_surface surface;
    bh_tensor_map map;
} objects;

static objects good, closed, foreign;
static bh_buffer shared, managed;
static void *host, *piece, *managed_memory;
static int fds[BH_SHARE_FDS];
static bh_share_token token;
static bh_ticket ticket;
static uint32_t lanes_at_first;
static uint64_t buffers_at_first;

/* A module: text, and spaces up to its end. */
static const char *image(void) {
    static char text[IMAGE_BYTES + 1];
    snprintf(text, sizeof text, "%-*s", IMAGE_BYTES,
             ".version 7.0\n.target sm_70\n.address_size 64\n"
             ".visible .entry nothing()\n{\n  ret;\n}\n");
    return text;
}

/* ---- making it ---- */

static const bh_shape one_block = {{1, 1, 1}, {4, 1, 1}, {0, 0, 0}, 0};

static bh_args two_arguments(void) {
    static bh_arg list[2];
    list[0] = BH_INOUT(good.buffer);
    list[1] = bh_arg_value(&(uint32_t){4}, 4);
    return (bh_args){list, 2};
}

/* BULKHEAD_ARGUMENT_OPEN_MS: as if opening a device took so long, as it does on GPUs. */
static bh_device open_limited(void) {
    const char *slow = getenv("BULKHEAD_ARGUMENT_OPEN_MS");
    if (slow) sleep_ms((unsigned)strtoul(slow, NULL, 10));
    bh_device_options options = device_options(BH_DEVICE_NO_STANDBY);
    options.memory_limit = MEMORY_LIMIT;
    return open_device_with(&options);
}

static void make_sequence(bh_device device, bh_buffer buffer, bh_sequence *out) {
    REQUIRE_OK(bh_sequence_begin(device, NULL, out));
    REQUIRE_OK(record_fill(*out, buffer, 0, 64, &(uint32_t){7}, 4, NULL));
}

static void told(void *context, const bh_event *event) {
    (void)context, (void)event;
}

static bh_image_shape small_image(void) {
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.channels = 1;
    shape.width = shape.height = 8;
    shape.flags = BH_IMAGE_SURFACE;
    return shape;
}

static bh_tensor_shape small_tensor(void) {
    bh_tensor_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.rank = 2;
    shape.dimensions[0] = shape.dimensions[1] = 4;
    shape.strides[0] = 16;
    shape.box[0] = shape.box[1] = 4;
    return shape;
}

static void make(objects *out, bh_device device) {
    out->device = device;
    out->lane = open_lane(device);
    out->module = load_module(device, ptx_globals);
    out->buffer = words_filled(device, WORDS, 7);
    make_sequence(device, out->buffer, &out->sequence);
    out->kernels = load_module(device, ptx_basic);
    out->kernel = get_kernel(out->kernels, "add_one");
    REQUIRE_OK(bh_prepare(out->kernel, one_block, BH_ARGS(BH_INOUT(out->buffer), 4u), NULL,
                          &out->prepared));
    REQUIRE_OK(bh_host_pool_open(device, NULL, &out->pool));
    REQUIRE_OK(bh_binary_from(image(), IMAGE_BYTES, &out->binary));
    out->watch = watch_for(device, 0, told, NULL);
    bh_image_shape shape = small_image();
    REQUIRE_OK(bh_image_alloc(device, &shape, &out->image));
    REQUIRE_OK(bh_texture_create(out->image, NULL, &out->texture));
    REQUIRE_OK(bh_surface_create(out->image, 0, &out->surface));
    bh_tensor_shape tensor = small_tensor();
    REQUIRE_OK(bh_tensor_map_create(out->buffer, &tensor, &out->map));
}

static void make_closed_objects(void) {
    make(&closed, good.device);
    REQUIRE_OK(bh_tensor_map_release(closed.map));
    REQUIRE_OK(bh_surface_release(closed.surface));
    REQUIRE_OK(bh_texture_release(closed.texture));
    REQUIRE_OK(bh_image_release(closed.image));
    REQUIRE_OK(bh_watch_release(closed.watch));
    REQUIRE_OK(bh_binary_release(closed.binary));
    REQUIRE_OK(bh_host_pool_release(closed.pool));
    REQUIRE_OK(bh_prepared_release(closed.prepared));
    REQUIRE_OK(bh_sequence_release(closed.sequence));
    REQUIRE_OK(bh_buffer_release(closed.buffer));
    REQUIRE_OK(bh_module_release(closed.module));
    REQUIRE_OK(bh_lane_release(closed.lane));
}

static void make_closed_device(void) {
    closed.device = open_limited();
    bh_module going = load_module(closed.device, ptx_basic);
    closed.kernel = get_kernel(going, "add_one");
    REQUIRE_OK(bh_device_close(closed.device));
}

bool world_has_driver(void) {
    return !is_cpu(good.device);
}

/* What there is one of. */
static void make_rest(void) {
    REQUIRE_OK(alloc_shareable(good.device, BH_U32, WORDS, &shared));
    REQUIRE_OK(bh_buffer_export(shared, fds, &token));
    REQUIRE_OK(alloc_managed(good.device, BH_U32, WORDS, 0, &managed, &managed_memory));
    REQUIRE_OK(bh_host_alloc(good.device, 4096, &host));
    REQUIRE_OK(bh_host_pool_take(good.pool, 64, 0, &piece));
    REQUIRE_OK(bh_submit_fill(good.lane, good.buffer, 0, 64, &(uint32_t){7}, 4, &ticket));
    REQUIRE_OK(bh_wait(ticket, LONG_NS));
    lanes_at_first = health_of(good.device).lanes;
    buffers_at_first = memory_of(good.device).buffers;
    (void)limits_of(good.device); /* opens what the library keeps for good */
}

void world_open(void) {
    make(&good, open_limited());
    make(&foreign, open_limited());
    make_closed_objects();
    make_closed_device();
    make_rest();
}

/* Some of it may be gone. */
static void release_all(const objects *from) {
    (void)bh_tensor_map_release(from->map);
    (void)bh_surface_release(from->surface);
    (void)bh_texture_release(from->texture);
    (void)bh_image_release(from->image);
    (void)bh_watch_release(from->watch);
    (void)bh_binary_release(from->binary);
    (void)bh_prepared_release(from->prepared);
    (void)bh_sequence_release(from->sequence);
    (void)bh_buffer_release(from->buffer);
    (void)bh_module_release(from->module);
    (void)bh_module_release(from->kernels);
    (void)bh_lane_release(from->lane);
}

static bool is_usable(bh_device device) {
    bh_health now = BH_INIT(now);
    return bh_device_get_health(device, &now) == BH_OK && now.state != BH_HEALTH_STOPPED;
}

void world_reopen(void) {
    bh_device closed_device = closed.device;
    bh_kernel closed_kernel = closed.kernel;
    bool usable = is_usable(foreign.device);
    (void)bh_device_close(good.device);
    (void)bh_binary_release(good.binary);
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
    (void)bh_host_pool_release(foreign.pool);
    release_all(&foreign);
    make(&good, open_limited());
    make(&foreign, usable ? foreign.device : open_limited());
    make_closed_objects();
    closed.device = closed_device;
    closed.kernel = closed_kernel;
    make_rest();
}

void world_renew(void) {
    (void)bh_host_pool_give(good.pool, piece);
    (void)bh_host_free(good.device, host);
    (void)bh_managed_unmap(managed_memory, 4 * WORDS);
    (void)bh_buffer_release(managed);
    (void)bh_buffer_release(shared);
    (void)bh_host_pool_release(good.pool);
    (void)bh_host_pool_release(foreign.pool);
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
    release_all(&good);
    release_all(&foreign);
    make(&good, good.device);
    make(&foreign, foreign.device);
    make_rest();
}

void world_close(void) {
    bh_device_close(good.device);
    bh_device_close(foreign.device);
    bh_binary_release(good.binary);
    bh_binary_release(foreign.binary);
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
}

bool world_release(const char *type, const void *made) {
    uint64_t id;
    memcpy(&id, made, sizeof id);
    if (strcmp(type, "bh_device") == 0) return bh_device_close((bh_device){id}) == BH_OK;
    if (strcmp(type, "bh_lane") == 0) return bh_lane_release((bh_lane){id}) == BH_OK;
    if (strcmp(type, "bh_buffer") == 0) return bh_buffer_release((bh_buffer){id}) == BH_OK;
    if (strcmp(type, "bh_prepared") == 0) return bh_prepared_release((bh_prepared){id}) == BH_OK;
    if (strcmp(type, "bh_host_pool") == 0) return bh_host_pool_release((bh_host_pool){id}) == BH_OK;
    if (strcmp(type, "bh_sequence") == 0) return bh_sequence_release((bh_sequence){id}) == BH_OK;
    if (strcmp(type, "bh_watch") == 0) return bh_watch_release((bh_watch){id}) == BH_OK;
    if (strcmp(type, "bh_image") == 0) return bh_image_release((bh_image){id}) == BH_OK;
    if (strcmp(type, "bh_texture") == 0) return bh_texture_release((bh_texture){id}) == BH_OK;
    if (strcmp(type, "bh_surface") == 0) return bh_surface_release((bh_surface){id}) == BH_OK;
    if (strcmp(type, "bh_tensor_map") == 0)
        return bh_tensor_map_release((bh_tensor_map){id}) == BH_OK;
    if (strcmp(type, "bh_binary") == 0) return bh_binary_release((bh_binary){id}) == BH_OK;
    /* One that is being loaded may fail, and its handle is gone. A kernel goes with its module. */
    if (strcmp(type, "bh_module") == 0) (void)bh_module_release((bh_module){id});
    return strcmp(type, "bh_module") == 0 || strcmp(type, "bh_kernel") == 0;
}

/* ---- what good arguments are ---- */

uint64_t world_handle(const char *type, life which) {
    const objects *from = which == GOOD ? &good : which == CLOSED ? &closed : &foreign;
    const struct {
        const char *type;
        uint64_t id;
    } all[] = {{"bh_device", from->device.id},   {"bh_lane", from->lane.id},
               {"bh_module", from->module.id},   {"bh_kernel", from->kernel.id},
               {"bh_buffer", from->buffer.id},   {"bh_prepared", from->prepared.id},
               {"bh_host_pool", from->pool.id},  {"bh_sequence", from->sequence.id},
               {"bh_binary", from->binary.id},   {"bh_watch", from->watch.id},
               {"bh_image", from->image.id},     {"bh_texture", from->texture.id},
               {"bh_surface", from->surface.id}, {"bh_tensor_map", from->map.id}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].type, type) == 0) return all[i].id;
    FAIL("tests/arguments/support/world.c has no %s", type);
    exit(1);
}

static void set(void *out, const void *from, size_t bytes) {
    memcpy(out, from, bytes);
}

void world_struct(const char *type, void *out) {
    static uint32_t words[1 << 16],
        count = 4; /* longer than any length that the library believes */
    static bh_arg args[2];
    args[0] = BH_HOST_INOUT(words, 16);
    args[1] = BH_VALUE(&count, 4);
    bh_args two = two_arguments();
    if (strcmp(type, "bh_args") == 0) set(out, &two, sizeof two);
    if (strcmp(type, "bh_arg") == 0) set(out, two.list, 2 * sizeof *two.list);
    bh_image_shape image_shape = small_image();
    if (strcmp(type, "bh_image_shape") == 0) set(out, &image_shape, sizeof image_shape);
    bh_tensor_shape tensor = small_tensor();
    if (strcmp(type, "bh_tensor_shape") == 0) set(out, &tensor, sizeof tensor);
    if (strcmp(type, "bh_shape") == 0) set(out, &one_block, sizeof one_block);
    if (strcmp(type, "bh_ticket") == 0) set(out, &ticket, sizeof ticket);
    if (strcmp(type, "bh_share_token") == 0) set(out, &token, sizeof token);
    if (strcmp(type, "bh_binary") == 0) set(out, &good.binary, sizeof good.binary);
    if (strcmp(type, "bh_device_entry") == 0) memset(out, 0, sizeof(bh_device_entry));
    if (strcmp(type, "bh_use") == 0)
        set(out, &(bh_use){good.buffer, BH_ACCESS_IN, 0}, sizeof(bh_use));
    if (strcmp(type, "bh_change") == 0)
        set(out, &(bh_change){1, 0, bh_arg_value(&count, 4)}, sizeof(bh_change));
    if (strcmp(type, "bh_transfer") == 0) {
        bh_transfer copy = bh_transfer_copy(good.buffer, 0, good.buffer, 32, 4);
        copy.height = 2;
        set(out, &copy, sizeof copy);
    }
    if (strcmp(type, "bh_dispatch_item") == 0) {
        bh_dispatch_item item = BH_INIT(item);
        item.kernel = good.kernel;
        item.shape = one_block;
        item.args = (bh_args){args, 2};
        set(out, &item, sizeof item);
    }
    if (strcmp(type, "bh_dl_managed") == 0) memset(out, 0, sizeof(bh_dl_managed));
    if (strcmp(type, "bh_dl_versioned") == 0) memset(out, 0, sizeof(bh_dl_versioned));
}

static bool is(const char *text, const char *name) {
    return strcmp(text, name) == 0;
}

void *world_memory(const char *called, const char *parameter) {
    if (is(called, "bh_host_free") || is(called, "bh_submit_read")) return host;
    if (is(called, "bh_host_pool_give")) return piece;
    if (is(called, "bh_managed_unmap")) return managed_memory;
    bool wants_image = is(parameter, "image") || is(called, "bh_binary_from");
    return wants_image ? (void *)(uintptr_t)image() : NULL;
}

const int *world_descriptors(void) {
    return fds;
}

const char *world_text(const char *called, const char *parameter) {
    if (is(parameter, "source")) return "int a;";
    if (is(called, "bh_kernel_get")) return "bump";
    if (strncmp(called, "bh_module_global", 16) == 0) return "counter";
    return is(parameter, "device") ? test_device() : NULL;
}

/* ---- is it as it was? ---- */

bool world_sound(bool may_lose, char *why, size_t size) {
    bh_health now = BH_INIT(now);
    bh_memory_info memory = BH_INIT(memory);
    bh_buffer x;
    uint32_t words[4] = {0};
    /* A GPU tells of a fault up to 0.2 s later. What runs beside the faulty launch is lost. */
    if (may_lose) (void)bh_device_sync(good.device, LONG_NS);
    bh_status status = bh_device_get_health(good.device, &now);
    if (status == BH_OK) status = bh_memory_get_info(good.device, &memory);
    if (status == BH_OK) status = bh_buffer_alloc(good.device, BH_U32, 4, NULL, &x);
    if (status == BH_OK) {
        status =
            run_now(get_kernel(good.kernels, "iota"), BH_GRID(4, 4), BH_ARGS(BH_OUT(x), 5u, 4u));
        if (status == BH_OK) status = bh_buffer_read(x, 0, words, sizeof words);
        bh_buffer_release(x);
    }
    snprintf(why, size,
             "status %d, word %u, %llu losses, %u lanes and %llu buffers where there were %u and "
             "%llu",
             status, words[3], (unsigned long long)now.losses, now.lanes,
             (unsigned long long)memory.buffers, lanes_at_first,
             (unsigned long long)buffers_at_first);
    return status == BH_OK && words[3] == 8 && (may_lose || now.losses == 0) &&
           now.lanes == lanes_at_first && memory.buffers == buffers_at_first;
}
