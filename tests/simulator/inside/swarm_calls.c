/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of random programs: the calls beside buffers and launches. Each step compares at once what
 * the calls say. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "swarm.h"
#include "world.h"

/* ---- shared buffers ---- */

/* One buffer of a program, opened a second time on the same device. */
typedef struct shared {
    program *self;
    bh_buffer here;
    int fds[BH_SHARE_FDS];
    bh_share_token token;
    uint32_t value;
    bool known; /* all its words are `value` */
} shared;

static void check_words(const shared *it, const uint32_t *got, const char *what) {
    for (int i = 0; it->known && i < WORDS; i++)
        if (got[i] != it->value)
            BUG("%s of a shared buffer has %u in word %d and not %u", what, got[i], i, it->value);
}

static void open_again(const shared *it) {
    model *allowed = &it->self->model;
    uint32_t got[WORDS];
    bh_buffer there;
    bh_status status = bh_buffer_import(allowed->device, it->fds, &it->token, NULL, &there);
    if (!model_allows(allowed, status, "bh_buffer_import")) return;
    if (model_allows(allowed, bh_buffer_read(there, 0, got, sizeof got), "bh_buffer_read"))
        check_words(it, got, "another handle");
    (void)model_allows(allowed, bh_buffer_release(there), "bh_buffer_release");
}

static void map_shared(const shared *it) {
    model *allowed = &it->self->model;
    void *memory;
    if (!model_allows(allowed, bh_share_map(it->fds, &it->token, &memory), "bh_share_map")) return;
    check_words(it, memory, "the program's map");
    (void)model_allows(allowed, bh_share_unmap(memory), "bh_share_unmap");
}

static void check_revoked(const shared *it) {
    model *allowed = &it->self->model;
    bh_share_info info = BH_INIT(info);
    bh_buffer there;
    bh_status status = bh_share_get_info(it->fds, &it->token, &info);
    if (model_allows(allowed, status, "bh_share_get_info") && info.stale && !allowed->closing)
        BUG("a token that nobody revoked is stale");
    if (!model_allows(allowed, bh_buffer_revoke(it->here), "bh_buffer_revoke")) return;
    status = bh_share_get_info(it->fds, &it->token, &info);
    if (model_allows(allowed, status, "bh_share_get_info") && !info.stale)
        BUG("a token that was revoked is not stale");
    status = bh_buffer_import(allowed->device, it->fds, &it->token, NULL, &there);
    if (model_allows(allowed, status, "bh_buffer_import")) BUG("a revoked token opens a buffer");
}

void step_share(program *self) {
    if (sim_device.queues || sim_without("share")) return; /* a GPU's memory is no file */
    model *allowed = &self->model;
    shared it = {.self = self, .token = BH_INIT(it.token), .value = next_value(self)};
    bh_buffer_options options = BH_INIT(options);
    options.flags = BH_BUFFER_SHAREABLE;
    bh_status status = bh_buffer_alloc(allowed->device, BH_U32, WORDS, &options, &it.here);
    if (!model_allows(allowed, status, "bh_buffer_alloc")) return;
    status = bh_buffer_fill(it.here, 0, WORDS * 4, &it.value, 4);
    it.known = model_allows(allowed, status, "bh_buffer_fill");
    status = bh_buffer_export(it.here, it.fds, &it.token);
    if (model_allows(allowed, status, "bh_buffer_export")) {
        open_again(&it);
        map_shared(&it);
        check_revoked(&it);
        for (int i = 0; i < BH_SHARE_FDS; i++) close(it.fds[i]);
    }
    (void)model_allows(allowed, bh_buffer_release(it.here), "bh_buffer_release");
}

/* ---- sequences that are changed between their submissions ---- */

static bool submit_sequence(program *self, bh_sequence sequence, model_op *op) {
    bh_submit_options options = BH_INIT(options);
    options.lane = any_lane(self);
    if (sim_chance(2)) options.flags = BH_SUBMIT_IDEMPOTENT;
    bh_status status = bh_sequence_submit(sequence, &options, &op->ticket);
    submitted(self, op, status, "a sequence");
    return status == BH_OK;
}

/* Stores to one buffer, then with another value to another one, and so on. Earlier submissions may
 * still be queued when the sequence changes. */
void step_changed_sequence(program *self) {
    if (sim_without("sequence")) return;
    int targets[2] = {any_buffer(), any_buffer()};
    model_buffer *buffers = self->model.buffers, *first = &buffers[targets[0]];
    if (targets[0] == targets[1] || !has(self, targets[0]) || !has(self, targets[1]) ||
        bytes_of(self, targets[0]) != bytes_of(self, targets[1]))
        return;
    bh_sequence sequence;
    model *allowed = &self->model;
    bh_status status = bh_sequence_begin(allowed->device, NULL, &sequence);
    if (!model_allows(allowed, status, "bh_sequence_begin")) return;
    status = bh_sequence_launch(sequence, self->kernels[FAKE_STORE], BH_GRID(1, 1),
                                BH_ARGS(BH_OUT(first->handle), first->words, 0u), NULL, NULL);
    if (status == BH_OK) status = bh_sequence_finish(sequence);
    int count = 2 + (int)sim_pick(6);
    for (int i = 0; i < count && model_allows(allowed, status, "a changed sequence"); i++) {
        model_op *op = model_op_new(allowed);
        if (!op) break;
        op->target = targets[i % 2];
        op->value = next_value(self);
        status = bh_sequence_set(sequence, 0, 2, BH_ARG(op->value));
        if (status == BH_OK)
            status = bh_sequence_bind(sequence, first->handle, buffers[op->target].handle);
        if (status != BH_OK) model_op_drop(allowed);
        if (status == BH_OK && !submit_sequence(self, sequence, op)) break;
    }
    (void)model_allows(allowed, bh_sequence_release(sequence), "bh_sequence_release");
}

/* ---- many dispatches at once ---- */

void step_batch(program *self) {
    enum { ITEMS = 3 };
    if (sim_without("dispatch")) return;
    uint32_t out[ITEMS][WORDS], value = next_value(self);
    bh_arg arguments[ITEMS][3];
    bh_dispatch_item items[ITEMS];
    memset(out, 0, sizeof out);
    for (uint32_t i = 0; i < ITEMS; i++) {
        arguments[i][0] = BH_HOST_OUT(out[i], sizeof out[i]);
        arguments[i][1] = BH_ARG((uint32_t)WORDS);
        arguments[i][2] = BH_ARG(value + i);
        items[i] = (bh_dispatch_item){.size = sizeof items[i],
                                      .kernel = self->kernels[FAKE_STORE],
                                      .shape = BH_GRID(1, 1),
                                      .args = {arguments[i], 3}};
    }
    bh_dispatch_options options = BH_INIT(options);
    options.retries = (uint32_t)sim_pick(4);
    bh_status status = bh_dispatch_batch(items, sizeof *items, ITEMS, &options), first = BH_OK;
    (void)model_allows(&self->model, status, "bh_dispatch_batch");
    for (uint32_t i = 0; i < ITEMS; i++) {
        if (first == BH_OK) first = items[i].status;
        for (int k = 0; items[i].status == BH_OK && status == BH_OK && k < WORDS; k++)
            if (out[i][k] != value + i)
                BUG("item %u of a batch has %u in word %d and not %u", i, out[i][k], k, value + i);
    }
    if (status == BH_OK && first != BH_OK)
        BUG("a batch is BH_OK and an item is %s", bh_status_name(first));
}

/* ---- modules ---- */

static bool loaded_in_the_background(program *self, bh_module *out) {
    static const char image[] = FAKE_IMAGE;
    bh_ticket ticket;
    bh_status status = bh_submit_load(self->model.device, image, sizeof image, out, &ticket);
    if (!model_allows(&self->model, status, "bh_submit_load")) return false;
    if (sim_chance(4)) (void)bh_cancel(ticket);
    status = bh_wait(ticket, 60 * S);
    if (status == BH_E_TIMEOUT) sim_fail(SIM_HANG, "a load has no answer after 60 s");
    bh_status again = bh_wait(ticket, 0);
    if (again != status)
        BUG("a load said %s, then %s", bh_status_name(status), bh_status_name(again));
    if (status == BH_E_CANCELLED || !model_allows(&self->model, status, "a load")) {
        (void)bh_module_release(*out);
        return false;
    }
    return true;
}

void step_background_load(program *self) {
    if (sim_without("module")) return;
    bh_module loaded;
    if (!loaded_in_the_background(self, &loaded)) return;
    model *allowed = &self->model;
    bh_kernel store;
    int index = any_buffer();
    bh_status status = bh_kernel_get(loaded, "store", &store);
    model_op *op = model_allows(allowed, status, "bh_kernel_get") && has(self, index)
                       ? model_op_new(allowed)
                       : NULL;
    if (op) {
        const model_buffer *target = &allowed->buffers[index];
        op->target = index;
        op->value = next_value(self);
        submitted(self, op,
                  bh_launch(store, BH_GRID(1, 1),
                            BH_ARGS(BH_OUT(target->handle), target->words, op->value), NULL,
                            &op->ticket),
                  "bh_launch");
    }
    (void)model_allows(allowed, bh_module_release(loaded), "bh_module_release");
}

/* A kernel sets the variable, so a loss makes the module stale; then it is accepted. */
void step_variable_kernel(program *self) {
    if (!self->variable.id || sim_without("variable")) return;
    model *allowed = &self->model;
    bh_kernel set;
    uint32_t value = next_value(self);
    bh_ticket ticket;
    if (sim_chance(3)) {
        (void)model_allows(allowed, bh_module_accept(self->variable), "bh_module_accept");
        self->variable_known = false;
        return;
    }
    if (!model_allows(allowed, bh_kernel_get(self->variable, "set", &set), "bh_kernel_get")) return;
    self->variable_known = false;
    bh_status status = bh_launch(set, BH_GRID(1, 1), BH_ARGS(value), NULL, &ticket);
    if (!model_allows(allowed, status, "bh_launch")) return;
    status = bh_wait(ticket, 60 * S);
    if (status == BH_E_TIMEOUT) sim_fail(SIM_HANG, "a launch has no answer after 60 s");
    self->variable_known = model_allows(allowed, status, "a launch that sets a variable");
    self->variable_value = value;
}

/* ---- managed buffers: who may use them, and when bytes move ---- */

void step_advise(program *self) {
    static const uint32_t advice[] = {0, BH_ADVISE_PREFER_DEVICE, BH_ADVISE_PREFER_HOST};
    int index = any_buffer();
    const model_buffer *buffer = &self->model.buffers[index];
    if (!has(self, index) || !buffer->host || sim_without("advise")) return;
    (void)model_allows(
        &self->model,
        bh_managed_advise(buffer->handle, 0, bytes_of(self, index), advice[sim_pick(3)]),
        "bh_managed_advise");
    bh_managed_info info = BH_INIT(info);
    if (!model_allows(&self->model, bh_managed_get_info(buffer->handle, &info),
                      "bh_managed_get_info"))
        return;
    if (info.host_newest + info.device_newest + info.on_both == 0)
        BUG("a managed buffer has bytes nowhere");
}

/* Nobody else may use the buffer meanwhile; its own thread only does so on that lane. */
void step_attach(program *self) {
    int index = any_buffer();
    const model_buffer *buffer = &self->model.buffers[index];
    bh_lane lane = self->lanes[sim_pick(PROGRAM_LANES)];
    if (!has(self, index) || !buffer->host || !lane.id || sim_without("attach")) return;
    bh_status status = bh_managed_attach(buffer->handle, BH_ATTACH_LANE, lane);
    if (!model_allows(&self->model, status, "bh_managed_attach")) return;
    bh_launch_options options = BH_INIT(options);
    bh_ticket ticket;
    status = bh_launch(self->kernels[FAKE_STORE], BH_GRID(1, 1),
                       BH_ARGS(BH_OUT(buffer->handle), buffer->words, 1u), &options, &ticket);
    if (status == BH_OK) BUG("a launch on another lane uses a buffer that is attached to one");
    model_op *op = model_op_new(&self->model);
    if (op) {
        op->target = index;
        op->value = next_value(self);
        options.lane = lane;
        submitted(self, op,
                  bh_launch(self->kernels[FAKE_STORE], BH_GRID(1, 1),
                            BH_ARGS(BH_OUT(buffer->handle), buffer->words, op->value), &options,
                            &op->ticket),
                  "bh_launch");
    }
    (void)model_allows(&self->model,
                       bh_managed_attach(buffer->handle, BH_ATTACH_GLOBAL, (bh_lane){0}),
                       "bh_managed_attach");
}

/* ---- watches ---- */

static void told(void *context, const bh_event *event) {
    watch_state *it = context;
    if (atomic_load(&it->released)) BUG("a watch that was released is told of something");
    if (event->kind == BH_EVENT_LOSS) {
        uint64_t last = atomic_exchange(&it->loss, event->loss->number);
        if (last >= event->loss->number)
            BUG("a watch is told of loss %llu after loss %llu",
                (unsigned long long)event->loss->number, (unsigned long long)last);
    }
    if (event->kind == BH_EVENT_HEALTH) {
        uint32_t last = atomic_exchange(&it->state, event->health->state);
        if (last == event->health->state) BUG("a watch is told twice of health %u", last);
        if (last == BH_HEALTH_STOPPED) BUG("a device that has stopped has health %u", last);
        if (event->health->state != BH_HEALTH_OK && !event->health->reason[0])
            BUG("health %u is told without a reason", event->health->state);
    }
}

void step_watch(program *self) {
    watch_state *it = &self->watched;
    if (sim_without("watch")) return;
    if (it->watch.id) {
        bool released = model_allows(&self->model, bh_watch_release(it->watch), "bh_watch_release");
        atomic_store(&it->released, released);
        it->watch.id = 0;
        return;
    }
    if (self->model.closing && atomic_load(&it->loss)) return; /* the close may tell the old one */
    atomic_store(&it->released, false);
    atomic_store(&it->state, 0);
    atomic_store(&it->loss, 0);
    bh_watch made;
    if (model_allows(&self->model, bh_watch_open(self->model.device, NULL, told, it, &made),
                     "bh_watch_open"))
        it->watch = made;
}

/* ---- the eventfd, and waiting for several ---- */

void step_notify(program *self) {
    int fd;
    /* One program: whoever reads it takes it from the others. */
    if (self->number != 1 || self->model.op_count == 0 || self->model.closing) return;
    const model_op *op = &self->model.ops[sim_pick((unsigned)self->model.op_count)];
    if (op->is_over || op->refused) return;
    bh_status status = bh_device_eventfd(self->model.device, &fd);
    if (!model_allows(&self->model, status, "bh_device_eventfd")) return;
    status = bh_notify(op->ticket);
    if (status == BH_E_STOPPED) return; /* its lane was released and serves others */
    if (!model_allows(&self->model, status, "bh_notify")) return;
    struct pollfd one = {.fd = fd, .events = POLLIN};
    if (poll(&one, 1, 60000) != 1) sim_fail(SIM_HANG, "the eventfd is silent for 60 s");
    if (bh_wait(op->ticket, 0) == BH_E_BUSY) BUG("the eventfd tells of work that is not done");
    uint64_t count;
    (void)!read(fd, &count, sizeof count);
}

void step_wait_all(program *self) {
    bh_ticket tickets[MODEL_OPS];
    size_t count = 0;
    for (int i = 0; i < self->model.op_count; i++) {
        const model_op *op = &self->model.ops[i];
        if (!op->is_over && !op->refused) tickets[count++] = op->ticket;
    }
    if (count == 0) return;
    bh_status status = bh_wait_all(tickets, count, 60 * S), first = BH_OK;
    if (status == BH_E_TIMEOUT) sim_fail(SIM_HANG, "tickets have no answer after 60 s");
    for (size_t i = 0; i < count && first == BH_OK; i++) first = bh_wait(tickets[i], 0);
    if (status != first && first != BH_E_BUSY)
        BUG("bh_wait_all says %s, and the first that failed says %s", bh_status_name(status),
            bh_status_name(first));
}

/* ---- what the device says of itself ---- */

static void check_health(program *self) {
    bh_health now = BH_INIT(now);
    if (!model_allows(&self->model, bh_device_get_health(self->model.device, &now),
                      "bh_device_get_health"))
        return;
    if (now.losses < self->losses)
        BUG("%llu losses after %llu", (unsigned long long)now.losses,
            (unsigned long long)self->losses);
    self->losses = now.losses;
    if (now.state != BH_HEALTH_OK && !now.reason[0]) BUG("health %u has no reason", now.state);
    if (self->stopped && now.state != BH_HEALTH_STOPPED && now.state != BH_HEALTH_CLOSING)
        BUG("a device that has stopped has health %u", now.state);
    self->stopped |= now.state == BH_HEALTH_STOPPED;
    if (now.state == BH_HEALTH_OK && (now.worker_pid == 0 || now.standby_pids[0] == 0) &&
        now.standbys)
        BUG("a device without a worker or a standby is well");
    if (now.standbys_ready > now.standbys) BUG("more standbys than were asked for");
}

static void check_losses(program *self) {
    bh_loss found[BH_LOSS_HISTORY];
    char report[16384];
    size_t count = 0, length = 0;
    bh_device it = self->model.device;
    if (!model_allows(&self->model,
                      bh_device_list_losses(it, found, sizeof *found, BH_LOSS_HISTORY, &count),
                      "bh_device_list_losses"))
        return;
    for (size_t i = 1; i < count && i < BH_LOSS_HISTORY; i++)
        if (found[i].number + 1 != found[i - 1].number) BUG("a loss is missing in the list");
    uint64_t newest = count ? found[0].number : 0;
    bh_status status = bh_device_get_report(it, 0, report, sizeof report, &length);
    if (status == BH_E_NOT_FOUND) {
        if (newest > 1 && !self->model.short_of_memory && !self->model.closing)
            BUG("there is no report of %llu losses", (unsigned long long)newest);
        return;
    }
    if (model_allows(&self->model, status, "bh_device_get_report") && strlen(report) != length)
        BUG("a report of %zu bytes has %zu", length, strlen(report));
}

static void check_lists(program *self) {
    bh_memory_entry entries[4];
    bh_memory_tag tags[4];
    size_t count, kernel_count;
    bh_device it = self->model.device;
    bh_kernel_info kernel = BH_INIT(kernel);
    bh_param_info param = BH_INIT(param);
    bh_device_limits limits = BH_INIT(limits);
    (void)model_allows(&self->model, bh_memory_list(it, entries, sizeof *entries, 4, &count),
                       "bh_memory_list");
    (void)model_allows(&self->model, bh_memory_list_tags(it, tags, sizeof *tags, 4, &count),
                       "bh_memory_list_tags");
    (void)model_allows(&self->model, bh_memory_reset_peak(it), "bh_memory_reset_peak");
    (void)model_allows(&self->model, bh_memory_set_limit(it, NULL, 0), "bh_memory_set_limit");
    (void)model_allows(&self->model, bh_device_get_limits(it, &limits), "bh_device_get_limits");
    (void)model_allows(&self->model, bh_failure_set_limit(sim_chance(2) ? 1 : 65536),
                       "bh_failure_set_limit");
    if (model_allows(&self->model, bh_module_list_kernels(self->module, NULL, 0, &kernel_count),
                     "bh_module_list_kernels") &&
        kernel_count != FAKE_KERNELS)
        BUG("%zu kernels", kernel_count);
    (void)model_allows(&self->model, bh_kernel_get_info(self->kernels[FAKE_ADD], &kernel),
                       "bh_kernel_get_info");
    (void)model_allows(&self->model, bh_kernel_get_param(self->kernels[FAKE_ADD], 0, &param),
                       "bh_kernel_get_param");
    (void)model_allows(&self->model, bh_kernel_pardon(self->kernels[FAKE_FAULT]),
                       "bh_kernel_pardon");
}

void step_ask(program *self) {
    check_health(self);
    check_losses(self);
    check_lists(self);
    if (!sim_chance(4)) return;
    static char page[262144];
    size_t length;
    (void)model_allows(&self->model,
                       bh_prometheus(&self->model.device, 1, page, sizeof page, &length),
                       "bh_prometheus");
    bh_occupancy occupancy = BH_INIT(occupancy);
    (void)model_allows(
        &self->model, bh_kernel_get_occupancy(self->kernels[FAKE_STORE], BH_GRID(1, 1), &occupancy),
        "bh_kernel_get_occupancy");
}
