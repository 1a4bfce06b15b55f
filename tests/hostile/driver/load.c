/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of every kind, in an order that the seed gives. What they return is theirs; that they
 * return, and that what they fill in can be read, is checked. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../support/buffers.h"
#include "../../support/kernels.h"
#include "../../support/transfers.h"
#include "driver.h"

enum { BUFFERS = 4, TICKETS = 8, WORDS = 512, BYTES = WORDS * 4, HOST_BYTES = 4096 };

typedef struct work {
    loader *self;
    stage *stage;
    bh_lane lane;
    bh_module module;
    bh_buffer buffers[BUFFERS];
    bh_ticket tickets[TICKETS];
    uint8_t *host; /* from bh_host_alloc; NULL: none */
    uint8_t plain[BYTES];
} work;

static uint32_t below(work *w, uint32_t limit) {
    return chance_below(&w->self->chance, limit);
}

static bh_buffer some_buffer(work *w) {
    return w->buffers[below(w, BUFFERS)];
}

/* A time-out, which is mostly short. */
static uint64_t patience(work *w) {
    return below(w, 30) * DRIVER_MS;
}

/* It ends, and a terminal shows it and does nothing else. */
static void check_text(const char *what, const char *text, size_t bytes) {
    size_t at = 0;
    while (at < bytes && text[at] && ((unsigned char)text[at] >= ' ' || strchr("\n\t", text[at])))
        at++;
    if (at == bytes) problem("the %s does not end", what);
    if (at < bytes && text[at]) problem("the %s has the character 0x%02x", what, text[at]);
}
#define CHECK_TEXT(what, array) check_text((what), (array), sizeof(array))

static void check_error(const bh_error *error) {
    CHECK_TEXT("message of an error", error->message);
    CHECK_TEXT("fix of an error", error->fix);
    CHECK_TEXT("kernel of an error", error->kernel);
    CHECK_TEXT("device's name of an error", error->device_name);
}

static void keep(work *w, bh_status status, bh_ticket ticket) {
    if (status == BH_OK) w->tickets[below(w, TICKETS)] = ticket;
}

/* ---- buffers ---- */

static void renew_buffer(work *w) {
    bh_buffer *buffer = &w->buffers[below(w, BUFFERS)];
    if (buffer->id) IN_THE_END(bh_buffer_release(*buffer));
    buffer->id = 0;
    uint64_t count = below(w, 20) ? WORDS : (uint64_t)WORDS << below(w, 12);
    bool solo = below(w, 8) == 0;
    if (solo)
        IN_THE_END(alloc_shareable(w->stage->device, BH_U32, count, buffer));
    else
        IN_THE_END(bh_buffer_alloc(w->stage->device, BH_U32, count, NULL, buffer));
}

static void write_buffer(work *w) {
    memset(w->plain, (int)below(w, 256), BYTES);
    uint8_t first = w->plain[0];
    IN_THE_END(bh_buffer_write(some_buffer(w), 0, w->plain, BYTES));
    for (size_t i = 0; i < BYTES; i++) {
        if (w->plain[i] == first) continue;
        problem("the source of a write was changed at byte %zu", i);
        break;
    }
}

static void read_buffer(work *w) {
    IN_THE_END(bh_buffer_read(some_buffer(w), 0, w->plain, BYTES));
}

static void copy_buffer(work *w) {
    IN_THE_END(bh_buffer_copy(some_buffer(w), 0, some_buffer(w), 0, BYTES / 2));
}

static void accept_buffer(work *w) {
    bh_buffer_info info = BH_INIT(info);
    AT_ONCE(bh_buffer_get_info(some_buffer(w), &info));
    IN_THE_END(bh_buffer_accept(some_buffer(w)));
}

static void rows(work *w) {
    bh_transfer rows = bh_transfer_init(0, 0);
    rows.width = 16;
    rows.height = 8;
    rows.target_pitch = rows.source_pitch = 64;
    IN_THE_END(write_rows(some_buffer(w), w->plain, &rows));
    IN_THE_END(copy_rows(some_buffer(w), some_buffer(w), &rows));
    IN_THE_END(read_rows(w->plain, some_buffer(w), &rows));
}

static void submit_transfers(work *w) {
    bh_ticket ticket;
    uint32_t value = 7;
    bh_buffer buffer = some_buffer(w);
    keep(w, IN_THE_END(bh_submit_fill(w->lane, buffer, 0, BYTES, &value, 4, &ticket)), ticket);
    keep(w, IN_THE_END(bh_submit_write(w->lane, buffer, 0, w->plain, BYTES, &ticket)), ticket);
    keep(w, IN_THE_END(bh_submit_copy(w->lane, some_buffer(w), 0, buffer, 0, BYTES / 2, &ticket)),
         ticket);
    if (w->host)
        keep(w, IN_THE_END(bh_submit_read(w->lane, buffer, 0, w->host, BYTES, &ticket)), ticket);
}

static void between(work *w) {
    IN_THE_END(bh_buffer_copy(some_buffer(w), 0, w->stage->honest_buffer, 0, 256));
}

static void renew_host(work *w) {
    if (w->host) IN_THE_END(bh_host_free(w->stage->device, w->host));
    void *memory = NULL;
    IN_THE_END(bh_host_alloc(w->stage->device, HOST_BYTES, &memory));
    w->host = memory;
}

static void pool(work *w) {
    bh_host_pool pool = {0};
    void *piece;
    if (IN_THE_END(bh_host_pool_open(w->stage->device, NULL, &pool)) != BH_OK) return;
    if (IN_THE_END(bh_host_pool_take(pool, 1000, DRIVER_MS, &piece)) == BH_OK)
        IN_THE_END(bh_host_pool_give(pool, piece));
    IN_THE_END(bh_host_pool_release(pool));
}

static void share(work *w) {
    int fds[BH_SHARE_FDS];
    bh_share_token token = BH_INIT(token);
    bh_share_info info = BH_INIT(info);
    void *memory;
    if (AT_ONCE(bh_buffer_export(some_buffer(w), fds, &token)) != BH_OK) return;
    AT_ONCE(bh_share_get_info(fds, &token, &info));
    if (AT_ONCE(bh_share_map(fds, &token, &memory)) == BH_OK) {
        memset(memory, 1, 64);
        AT_ONCE(bh_share_unmap(memory));
    }
    for (int i = 0; i < BH_SHARE_FDS; i++) close(fds[i]);
}

static void managed(work *w) {
    bh_buffer buffer;
    void *memory = NULL;
    uint32_t flags = below(w, 3) == 0 ? BH_BUFFER_DRIVER : 0;
    if (IN_THE_END(alloc_managed(w->stage->device, BH_U32, WORDS, flags, &buffer, &memory))) return;
    if (IN_THE_END(bh_managed_map(buffer, 0, BYTES, BH_MAP_WRITE | BH_MAP_DISCARD, &memory)) ==
        BH_OK) {
        memset(memory, 3, BYTES);
        IN_THE_END(bh_managed_unmap(memory, BYTES));
    }
    bh_ticket ticket;
    bh_submit_options there = BH_INIT(there);
    there.lane = w->lane;
    keep(w, IN_THE_END(bh_managed_prefetch(buffer, 0, BYTES, BH_TO_DEVICE, &there, &ticket)),
         ticket);
    if (IN_THE_END(bh_managed_map(buffer, 0, BYTES, BH_MAP_READ, &memory)) == BH_OK)
        IN_THE_END(bh_managed_unmap(memory, BYTES));
    IN_THE_END(bh_buffer_release(buffer));
}

static void memory(work *w) {
    bh_memory_info info = BH_INIT(info);
    bh_memory_entry entries[100];
    size_t seen;
    uint64_t freed;
    AT_ONCE(bh_memory_get_info(w->stage->device, &info));
    AT_ONCE(bh_memory_list(w->stage->device, entries, sizeof *entries, 100, &seen));
    IN_THE_END(bh_memory_trim(w->stage->device, 0, &freed));
}

/* ---- modules and kernels ---- */

static void renew_module(work *w) {
    if (w->module.id) IN_THE_END(bh_module_release(w->module));
    w->module.id = 0;
    IN_THE_END(bh_module_load(w->stage->device, ptx_basic, strlen(ptx_basic), &w->module));
}

static void variables(work *w) {
    bh_module module;
    uint64_t size;
    uint32_t value = 3;
    if (IN_THE_END(bh_module_load(w->stage->device, ptx_globals, strlen(ptx_globals), &module)))
        return;
    AT_ONCE(bh_module_global_size(module, "table", &size));
    IN_THE_END(bh_module_global_write(module, "table", 4, &value, 4));
    IN_THE_END(bh_module_global_read(module, "table", 0, &value, 4));
    IN_THE_END(bh_module_global_read(module, "counter", 0, &value, 4));
    IN_THE_END(bh_module_release(module));
}

static bool kernel(work *w, const char *name, bh_kernel *out) {
    return AT_ONCE(bh_kernel_get(w->module, name, out)) == BH_OK;
}

static void questions(work *w) {
    bh_kernel found;
    bh_kernel_info info = BH_INIT(info);
    bh_preflight flight = BH_INIT(flight);
    char line[BH_LINE_BYTES];
    if (!kernel(w, "sum_shared", &found)) return;
    if (AT_ONCE(bh_kernel_get_info(found, &info)) == BH_OK) {
        CHECK_TEXT("note on an executor", info.executor_note);
        if (info.executor > BH_EXECUTOR_JIT) problem("executor %u", info.executor);
    }
    IN_THE_END(bh_launch_preflight(found, BH_GRID(256, 64), NULL, NULL, &flight));
    AT_ONCE(bh_preflight_line(&flight, line, sizeof line));
}

static void count_callback(void *context, bh_ticket ticket, bh_status status) {
    stage *where = context;
    book_note(ticket, status);
    atomic_fetch_add(&where->callbacks_run, 1);
}

static void launch(work *w) {
    bh_launch_options options = BH_INIT(options);
    bh_kernel churn;
    bh_ticket ticket;
    if (!kernel(w, "churn", &churn)) return;
    options.lane = w->lane;
    options.flags = below(w, 2) ? BH_SUBMIT_NO_BLOCK : BH_SUBMIT_IDEMPOTENT;
    if (below(w, 2)) options.flags |= BH_SUBMIT_TIMED;
    for (uint32_t i = 0, n = 1 + below(w, 12); i < n; i++) {
        bh_status status = IN_THE_END(bh_launch(
            churn, BH_GRID(64, 64), BH_ARGS(BH_INOUT(some_buffer(w)), 1u, 64u), &options, &ticket));
        keep(w, status, ticket);
        if (status == BH_OK && below(w, 3) == 0 &&
            AT_ONCE(bh_on_done(ticket, count_callback, w->stage)) == BH_OK)
            atomic_fetch_add(&w->stage->callbacks_wanted, 1);
    }
}

static void launch_that_faults(work *w) {
    bh_kernel poke;
    bh_ticket ticket;
    if (!kernel(w, "poke", &poke)) return;
    keep(w, IN_THE_END(bh_launch(poke, BH_GRID(1, 1), BH_ARGS(UINT64_C(8), 1u), NULL, &ticket)),
         ticket);
}

static void launch_that_prints(work *w) {
    bh_module module;
    bh_kernel say;
    bh_ticket ticket;
    if (IN_THE_END(bh_module_load(w->stage->device, ptx_printf, strlen(ptx_printf), &module)))
        return;
    if (AT_ONCE(bh_kernel_get(module, "say_many", &say)) == BH_OK)
        keep(w, IN_THE_END(bh_launch(say, BH_GRID(32, 32), BH_ARGS(32u), NULL, &ticket)), ticket);
    IN_THE_END(bh_module_release(module));
}

static void prepared(work *w) {
    bh_kernel iota;
    bh_prepared prepared;
    bh_ticket ticket;
    if (!kernel(w, "iota", &iota)) return;
    if (IN_THE_END(bh_prepare(iota, BH_GRID(64, 64), BH_ARGS(BH_OUT(some_buffer(w)), 5u, 64u), NULL,
                              &prepared)) != BH_OK)
        return;
    for (int i = 0; i < 3; i++)
        keep(w, IN_THE_END(bh_prepared_launch(prepared, NULL, 0, &ticket)), ticket);
    IN_THE_END(bh_prepared_release(prepared));
}

static void sequence(work *w) {
    bh_sequence sequence;
    bh_submit_options options = BH_INIT(options);
    bh_kernel churn;
    bh_ticket ticket;
    uint32_t value = 9;
    options.lane = w->lane;
    options.repeat = 1 + below(w, 3);
    if (!kernel(w, "churn", &churn) ||
        IN_THE_END(bh_sequence_begin(w->stage->device, NULL, &sequence)) != BH_OK)
        return;
    bh_buffer buffer = some_buffer(w);
    IN_THE_END(bh_sequence_launch(sequence, churn, BH_GRID(64, 64),
                                  BH_ARGS(BH_INOUT(buffer), 1u, 64u), NULL, NULL));
    IN_THE_END(record_fill(sequence, buffer, 256, 256, &value, 4, NULL));
    IN_THE_END(bh_sequence_finish(sequence));
    for (int i = 0; i < 3; i++) {
        keep(w, IN_THE_END(bh_sequence_submit(sequence, &options, &ticket)), ticket);
        AT_ONCE(bh_sequence_set(sequence, 0, 1, BH_ARG((uint32_t)i)));
    }
    IN_THE_END(bh_sequence_release(sequence));
}

static void dispatch(work *w) {
    bh_kernel churn;
    uint32_t k = 3, n = 64;
    if (!kernel(w, "churn", &churn)) return;
    IN_THE_END(
        bh_dispatch(churn, BH_GRID(64, 64), BH_ARGS(BH_HOST_INOUT(w->plain, 256), k, n), NULL));
}

/* ---- tickets and lanes ---- */

static void ask(work *w) {
    bh_error error;
    bh_ticket ticket = w->tickets[below(w, TICKETS)];
    if (ticket.lane == 0) return;
    uint64_t timeout = patience(w);
    book_note(ticket, WITHIN(timeout, bh_wait(ticket, timeout)));
    book_note(ticket, AT_ONCE(bh_wait(ticket, 0)));
    memset(&error, 'e', sizeof error);
    book_note(ticket, AT_ONCE(bh_ticket_error(ticket, &error)));
    check_error(&error);
    bh_ticket_info info = BH_INIT(info);
    if (AT_ONCE(bh_ticket_get_info(ticket, &info)) != BH_OK) return;
    book_note(ticket, info.status);
    uint64_t most = 600 * DRIVER_S; /* longer than a run */
    if (info.timed > 1 || info.queued_ns > most || info.waiting_ns > most || info.device_ns > most)
        problem("impossible times of a ticket: timed %u, %llu, %llu, %llu ns", info.timed,
                (unsigned long long)info.queued_ns, (unsigned long long)info.waiting_ns,
                (unsigned long long)info.device_ns);
}

static void ask_all(work *w) {
    uint64_t timeout = patience(w);
    WITHIN(timeout, bh_wait_all(w->tickets, TICKETS, timeout));
}

static void cancel(work *w) {
    bh_ticket ticket = w->tickets[below(w, TICKETS)];
    if (ticket.lane && AT_ONCE(bh_cancel(ticket)) == BH_OK) book_note(ticket, BH_E_CANCELLED);
}

static void renew_lane(work *w) {
    if (w->lane.id) IN_THE_END(bh_lane_release(w->lane));
    w->lane.id = 0;
    IN_THE_END(bh_lane_open(w->stage->device, NULL, &w->lane));
}

static void synchronise(work *w) {
    uint64_t timeout = patience(w);
    WITHIN(timeout, bh_lane_sync(w->lane, timeout));
    WITHIN(timeout, bh_device_sync(w->stage->device, timeout));
    if (below(w, 8) == 0) WITHIN(timeout, bh_device_wait_standby(w->stage->device, timeout));
}

/* ---- looking ---- */

static void look(work *w) {
    bh_device device = w->stage->device;
    bh_health health = BH_INIT(health);
    bh_device_counters counters = BH_INIT(counters);
    bh_lane_counters lane = BH_INIT(lane);
    bh_device_info info = BH_INIT(info);
    AT_ONCE(bh_device_get_health(device, &health));
    AT_ONCE(bh_device_get_counters(device, &counters));
    AT_ONCE(bh_lane_get_counters(device, w->lane, &lane));
    if (AT_ONCE(bh_device_get_info(device, &info)) != BH_OK) return;
    CHECK_TEXT("name of a device", info.name);
    CHECK_TEXT("reason for no standby", info.no_standby);
}

static void read_reports(work *w) {
    static _Thread_local char text[65536];
    size_t length;
    AT_ONCE(bh_device_get_report(w->stage->device, 0, text, sizeof text, &length));
    if (AT_ONCE(bh_device_get_fault_state(w->stage->device, 0, text, sizeof text, &length)) ==
        BH_OK)
        CHECK_TEXT("state of a thread", text);
}

static void read_findings(work *w) {
    static _Thread_local bh_finding list[128];
    size_t count = 0;
    if (AT_ONCE(bh_device_list_findings(w->stage->device, 0, list, sizeof *list, 128, &count)))
        return;
    if (count > 128) problem("%zu findings", count);
    for (size_t i = 0; i < count && i < 128; i++) {
        CHECK_TEXT("kind of a finding", list[i].kind);
        CHECK_TEXT("kernel of a finding", list[i].kernel);
        CHECK_TEXT("message of a finding", list[i].message);
        CHECK_TEXT("fix of a finding", list[i].fix);
        CHECK_TEXT("file of a finding", list[i].here.file);
        CHECK_TEXT("other file of a finding", list[i].other.file);
    }
}

static void follow(work *w) {
    bh_kernel churn;
    bh_debug_options options = BH_INIT(options);
    options.flags = below(w, 2) ? BH_DEBUG_TRACE : 0;
    options.threads = "0,3";
    options.text_limit = 4096;
    if (!kernel(w, "churn", &churn)) return;
    IN_THE_END(bh_kernel_debug(churn, &options));
    launch(w);
    IN_THE_END(bh_kernel_debug(churn, NULL));
}

static void images(work *w) {
    bh_image image;
    bh_texture texture;
    bh_tensor_map map;
    bh_image_shape shape = BH_INIT(shape);
    shape.type = BH_U32;
    shape.channels = 1;
    shape.width = shape.height = 16;
    bh_tensor_shape tensor = BH_INIT(tensor);
    tensor.type = BH_U32;
    tensor.rank = 1;
    tensor.dimensions[0] = tensor.box[0] = 16;
    if (AT_ONCE(bh_tensor_map_create(some_buffer(w), &tensor, &map)) == BH_OK)
        AT_ONCE(bh_tensor_map_release(map));
    if (IN_THE_END(bh_image_alloc(w->stage->device, &shape, &image))) return;
    IN_THE_END(bh_image_write(image, NULL, w->plain, 0, 0));
    if (AT_ONCE(bh_texture_create(image, NULL, &texture)) == BH_OK)
        AT_ONCE(bh_texture_release(texture));
    IN_THE_END(bh_image_read(image, NULL, w->plain, 0, 0));
    IN_THE_END(bh_image_release(image));
}

static void trace(work *w) {
    char path[600];
    snprintf(path, sizeof path, "%s/trace-%u", w->stage->folder, w->self->index);
    if (AT_ONCE(bh_trace_start(w->stage->device, path)) != BH_OK) return;
    launch(w);
    IN_THE_END(bh_trace_stop(w->stage->device));
}

/* ---- all of them ---- */

typedef void action(work *w);

static action *const actions[] = {
    renew_buffer,
    write_buffer,
    read_buffer,
    copy_buffer,
    accept_buffer,
    rows,
    submit_transfers,
    between,
    renew_host,
    pool,
    share,
    managed,
    memory,
    renew_module,
    variables,
    questions,
    launch,
    launch,
    launch,
    launch_that_faults,
    launch_that_prints,
    prepared,
    sequence,
    dispatch,
    ask,
    ask,
    ask_all,
    cancel,
    renew_lane,
    synchronise,
    look,
    read_reports,
    read_findings,
    follow,
    images,
    trace,
};

void *load_main(void *argument) {
    loader *self = argument;
    work *w = calloc(1, sizeof *w);
    w->self = self;
    w->stage = self->stage;
    renew_module(w);
    renew_lane(w);
    for (int i = 0; i < BUFFERS; i++) renew_buffer(w);
    renew_host(w);
    while (!atomic_load(&self->stage->over)) {
        actions[below(w, sizeof actions / sizeof *actions)](w);
        nanosleep(&(struct timespec){.tv_nsec = (long)below(w, 300000)}, NULL);
    }
    free(w);
    return NULL;
}
