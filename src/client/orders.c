/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: what workers are told over their sockets. The active worker carries an order out first;
 * when it has, the order becomes part of what every other worker is told. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "client/supervisor.h"
#include "client/trace.h"

/* Few enough that they always fit a socket's buffer, so that sending never blocks. */
enum { MOST_OUTSTANDING = 2, GLOBAL_PIECE = 32 * 1024 };

bh__order *bh__order_new(const bh__order *from) {
    bh__order *order = malloc(sizeof *order);
    if (!order) return NULL;
    *order = *from;
    order->next = NULL;
    /* What it is sent with must be there when it is sent, whatever becomes of it meanwhile. */
    order->fd = bh__fd_hold(from->fd);
    return order;
}

const char *bh__order_name(uint32_t type) {
    static const char *const names[] = {
        [BH__MSG_BOOT] = "BOOT",
        [BH__MSG_GO] = "GO",
        [BH__MSG_LANE_OPEN] = "LANE_OPEN",
        [BH__MSG_CHUNK_CREATE] = "CHUNK_CREATE",
        [BH__MSG_CHUNK_MAP] = "CHUNK_MAP",
        [BH__MSG_CHUNK_UNMAP] = "CHUNK_UNMAP",
        [BH__MSG_HOST_MAP] = "HOST_MAP",
        [BH__MSG_HOST_UNMAP] = "HOST_UNMAP",
        [BH__MSG_MODULE_LOAD] = "MODULE_LOAD",
        [BH__MSG_MODULE_UNLOAD] = "MODULE_UNLOAD",
        [BH__MSG_GLOBAL_SET] = "GLOBAL_SET",
        [BH__MSG_FIT] = "FIT",
        [BH__MSG_SEQUENCE_DEFINE] = "SEQUENCE_DEFINE",
        [BH__MSG_SEQUENCE_DROP] = "SEQUENCE_DROP",
        [BH__MSG_ADVISE] = "ADVISE",
    };
    bool known = type < sizeof names / sizeof *names && names[type];
    return known ? names[type] : "an order";
}

void bh__order_delete(bh__order *order) {
    bh__fd_close(order->fd);
    free(order->data);
    free(order);
}

static void append(bh__order **first, bh__order **last, bh__order *order) {
    order->next = NULL;
    if (*last) {
        (*last)->next = order;
    } else {
        *first = order;
    }
    *last = order;
}

static bh__order *take_first(bh__order **first, bh__order **last) {
    bh__order *order = *first;
    if (order) {
        *first = order->next;
        if (!*first) *last = NULL;
    }
    return order;
}

void bh__order_append(bh__worker *worker, bh__order *order) {
    append(&worker->waiting, &worker->waiting_last, order);
}

/* For want of memory a worker cannot be brought up to date: it is marked unfit and replaced. */
static void tell(bh__worker *worker, const bh__order *what) {
    bh__order *order = bh__order_new(what);
    if (order) {
        order->job = NULL;
        bh__order_append(worker, order);
    } else {
        worker->unfit = true;
    }
}

void bh__orders_brief(bh__device *device, bh__worker *worker) {
    bh__lock_take(&device->lock);
    for (uint32_t i = 0; i < device->chunk_count; i++) {
        tell(worker, &(bh__order){.type = BH__MSG_CHUNK_MAP,
                                  .chunk = device->chunks[i].chunk,
                                  .fd = device->chunks[i].fd});
    }
    bh__driven_brief(device, worker, tell);
    for (uint32_t i = 0; i < device->host_count; i++) {
        tell(worker, &(bh__order){.type = BH__MSG_HOST_MAP,
                                  .host = device->hosts[i].region,
                                  .fd = device->hosts[i].fd});
    }
    for (const bh__module *module = device->module_list; module; module = module->next) {
        if (!module->loaded) continue;
        tell(worker, &(bh__order){.type = BH__MSG_MODULE_LOAD,
                                  .module = {.id = module->number, .bytes = module->image_bytes},
                                  .fd = module->image_fd});
    }
    bh__sequences_brief(device, worker, tell);
    for (uint32_t i = 0; i < device->lane_limit; i++) {
        if (device->lanes[i].exists)
            tell(worker, &(bh__order){.type = BH__MSG_LANE_OPEN,
                                      .lane = {i, device->lanes[i].priority},
                                      .fd = -1});
    }
    bh__lock_give(&device->lock);
}

static void tell_variable(bh__worker *worker, const bh__module *module, uint32_t index) {
    const bh__variable *variable = &module->variables[index];
    for (uint32_t i = 0; i < variable->written_count; i++) {
        bh__span span = variable->written[i];
        while (span.bytes) {
            uint64_t piece = span.bytes < GLOBAL_PIECE ? span.bytes : GLOBAL_PIECE;
            uint8_t *data = malloc(piece);
            if (data) memcpy(data, variable->value + span.offset, piece);
            worker->unfit |= !data;
            tell(worker, &(bh__order){.type = BH__MSG_GLOBAL_SET,
                                      .module = {.id = module->number,
                                                 .variable = index,
                                                 .offset = span.offset,
                                                 .bytes = piece},
                                      .data = data,
                                      .data_bytes = data ? (uint32_t)piece : 0,
                                      .fd = -1});
            span.offset += piece;
            span.bytes -= piece;
        }
    }
}

void bh__orders_go(bh__device *device, bh__worker *worker) {
    bh__lock_take(&device->lock);
    for (const bh__module *module = device->module_list; module; module = module->next) {
        for (uint32_t i = 0; module->loaded && i < module->variable_count; i++)
            tell_variable(worker, module, i);
    }
    bh__lock_give(&device->lock);
    tell(worker, &(bh__order){.type = BH__MSG_GO, .fd = -1});
}

/* ---- sending ---- */

static int send_order(bh__device *device, bh__worker *worker, bh__order *order) {
    bh__message *message = device->outgoing;
    order->serial = ++worker->next_serial;
    memset(message, 0, offsetof(bh__message, data));
    message->type = order->type;
    message->serial = order->serial;
    switch (order->type) {
    case BH__MSG_CHUNK_CREATE:
    case BH__MSG_CHUNK_MAP:
    case BH__MSG_CHUNK_UNMAP:
        message->u.chunk = order->chunk;
        break;
    case BH__MSG_HOST_MAP:
    case BH__MSG_HOST_UNMAP:
        message->u.host = order->host;
        break;
    case BH__MSG_LANE_OPEN:
        message->u.lane = order->lane;
        break;
    case BH__MSG_ADVISE:
        message->u.advice = order->advice;
        break;
    case BH__MSG_FIT:
        message->u.fit = order->fit;
        break;
    case BH__MSG_SEQUENCE_DEFINE:
    case BH__MSG_SEQUENCE_DROP:
        message->u.sequence = order->sequence;
        break;
    default:
        message->u.module = order->module;
    }
    if (order->data) {
        message->data_bytes = order->data_bytes;
        memcpy(message->data, order->data, order->data_bytes);
    }
    /* The program may have closed it and got its number for a file of its own. */
    if (order->fd >= 0 && !bh__fd_is_ours(order->fd)) return -EBADF;
    return bh__message_send(worker->socket, message, &order->fd, order->fd >= 0 ? 1 : 0);
}

/* A lane that a running worker is about to open starts where its queue is empty. */
static void ready_lane(bh__device *device, bh__worker *worker, uint32_t index) {
    if (worker != device->active) return;
    bh__lane_area *words = &bh__worker_area(device, worker)->lane[index];
    uint64_t tail = atomic_load(&device->lanes[index].tail);
    atomic_store(&words->claim, bh__claim_word(tail));
    atomic_store(&words->done, tail);
}

bool bh__orders_pump(bh__device *device, bh__worker *worker) {
    while (worker->waiting && !worker->unfit && worker->state != BH__WORKER_BOOTING) {
        bool go = worker->waiting->type == BH__MSG_GO;
        if (worker->outstanding >= (go ? 1 : MOST_OUTSTANDING)) break;
        bh__order *order = take_first(&worker->waiting, &worker->waiting_last);
        if (go) bh__worker_goes(device, worker);
        if (order->type == BH__MSG_LANE_OPEN && order->job)
            ready_lane(device, worker, order->lane.index);
        int failed = send_order(device, worker, order);
        if (go) {
            bh__order_delete(order);
        } else {
            if (!worker->sent) worker->order_since = device->watch.clock;
            worker->outstanding++;
            append(&worker->sent, &worker->sent_last, order);
        }
        if (failed && failed != -EPIPE && failed != -ECONNRESET) return false;
    }
    return !worker->unfit;
}

/* ---- what came of it ---- */

/* Takes over `fd`, which is kept, if it succeeds. */
static bool note_chunk(bh__device *device, const bh__order *order, int fd) {
    if (fd < 0) return false;
    if (device->chunk_count == device->chunk_capacity) {
        uint32_t capacity = device->chunk_capacity ? device->chunk_capacity * 2 : 16;
        bh__chunk_entry *chunks = realloc(device->chunks, capacity * sizeof *chunks);
        if (!chunks) return false;
        device->chunks = chunks;
        device->chunk_capacity = capacity;
    }
    bh__chunk_entry *entry = &device->chunks[device->chunk_count];
    *entry = (bh__chunk_entry){.chunk = order->chunk, .fd = fd};
    if (bh__checked(device) && !bh__check_map(entry)) return false;
    device->chunk_count++;
    return true;
}

static uint32_t id_of(const bh__order *order) {
    switch (order->type) {
    case BH__MSG_CHUNK_MAP:
        return order->chunk.id;
    case BH__MSG_HOST_MAP:
        return order->host.id;
    default:
        return order->module.id;
    }
}

static void forget_one(bh__worker *worker, uint32_t type, uint32_t id) {
    worker->waiting_last = NULL;
    for (bh__order **link = &worker->waiting; *link;) {
        bh__order *order = *link;
        if (!order->job && order->type == type && id_of(order) == id) {
            *link = order->next;
            bh__order_delete(order);
        } else {
            worker->waiting_last = order;
            link = &order->next;
        }
    }
}

/* What is gone need not be mapped or loaded first by standbys that were not told of it yet. */
static void forget(bh__device *device, uint32_t type, uint32_t id) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        if (bh__is_standby(device, &device->workers[i]))
            forget_one(&device->workers[i], type, id);
    }
}

/* The active worker has carried the order out: from now on it is part of what the device is. With
 * the lock held. */
static void commit(bh__device *device, bh__worker *worker, bh__order *order, bh__message *message,
                   bh__job *job) {
    bool noted = true;
    errno = 0; /* tells want of memory from nonsense */
    bh__order next = *order;
    next.data = NULL;
    switch (order->type) {
    case BH__MSG_CHUNK_CREATE:
        if (order->chunk.flags & BH__CHUNK_DRIVER) {
            noted = bh__driven_made(device, order, worker->area, message);
            next.chunk.flags &= ~(uint32_t)BH__CHUNK_MEASURED;
            break;
        }
        if (message->fd_count == 1) next.fd = bh__fd_keep(message->fds[0]);
        if (message->fd_count == 1) message->fd_count = 0;
        next.type = BH__MSG_CHUNK_MAP;
        noted = note_chunk(device, order, next.fd);
        if (!noted) bh__fd_close(next.fd);
        break;
    case BH__MSG_CHUNK_MAP: /* made elsewhere */
        noted = note_chunk(device, order, order->fd);
        break;
    case BH__MSG_CHUNK_UNMAP:
        forget(device, BH__MSG_CHUNK_MAP, order->chunk.id);
        break;
    case BH__MSG_HOST_UNMAP:
        forget(device, BH__MSG_HOST_MAP, order->host.id);
        break;
    case BH__MSG_MODULE_UNLOAD:
        forget(device, BH__MSG_MODULE_LOAD, order->module.id);
        break;
    case BH__MSG_HOST_MAP:
        noted = bh__host_note(device, &order->host, order->fd, job->host);
        break;
    case BH__MSG_LANE_OPEN: {
        uint32_t index = order->lane.index;
        bh__lane *lane = &device->lanes[index];
        lane->exists = true;
        lane->floor = lane->retired = atomic_load(&lane->tail);
        if (device->lane_limit <= index) device->lane_limit = index + 1;
        break;
    }
    case BH__MSG_FIT: /* changes nothing that others must be told of */
        noted = message->data_bytes == sizeof job->fit;
        if (noted) memcpy(&job->fit, message->data, sizeof job->fit);
        break;
    case BH__MSG_MODULE_LOAD:
        noted = message->fd_count == 1 && bh__module_parse(job->module, message->fds[0]);
        job->module->loaded = noted;
        break;
    case BH__MSG_ADVISE:
        noted = bh__driven_advised(device, &order->advice);
        break;
    case BH__MSG_SEQUENCE_DEFINE:
        bh__sequence_commit(job->sequence);
        break;
    default:
        break;
    }
    if (!noted && (errno == ENOMEM || errno == EMFILE || errno == ENFILE)) {
        bh__fail(&job->error, BH_E_NO_HOST_MEMORY,
                 "free memory, or raise the limit on open files (ulimit -n)",
                 "no host memory to note what the worker answered to order %u", order->type);
        return;
    }
    if (!noted) {
        bh__fail(&job->error, BH_E_INTERNAL, "report this with the program that shows it",
                 "the worker's answer to order %u makes no sense", order->type);
        return;
    }
    for (uint32_t i = 0; order->type != BH__MSG_FIT && i < BH__AREAS; i++) {
        bh__worker *other = &device->workers[i];
        if (bh__is_standby(device, other) && other->state == BH__WORKER_STANDBY) tell(other, &next);
    }
}

static bool forgiving(uint32_t type) {
    return type == BH__MSG_CHUNK_UNMAP || type == BH__MSG_HOST_UNMAP ||
           type == BH__MSG_MODULE_UNLOAD || type == BH__MSG_SEQUENCE_DROP;
}

/* An answer to nothing, or to another order than the next one: from a worker gone mad. */
static bool refuse_answer(bh__worker *worker, const bh__message *message) {
    int length =
        worker->sent
            ? snprintf(worker->errors, sizeof worker->errors,
                       "it answered order %u where order %u (%s) was to be answered",
                       message->serial, worker->sent->serial, bh__order_name(worker->sent->type))
            : snprintf(worker->errors, sizeof worker->errors,
                       "it answered order %u where there was none to answer", message->serial);
    worker->errors_length = (size_t)length;
    return false;
}

bool bh__orders_acknowledge(bh__device *device, bh__worker *worker, bh__message *message) {
    /* Looked at first: the order of a worker that is mad is left for its successor. */
    if (!worker->sent || worker->sent->serial != message->serial)
        return refuse_answer(worker, message);
    bh__order *order = take_first(&worker->sent, &worker->sent_last);
    worker->outstanding--;
    worker->order_since = device->watch.clock;
    bh_error *error = &message->u.error;
    error->message[sizeof error->message - 1] = error->fix[sizeof error->fix - 1] = 0;
    error->device_name[sizeof error->device_name - 1] = error->kernel[sizeof error->kernel - 1] = 0;
    bool carried_out = error->status == BH_OK || forgiving(order->type);
    if (order->job) {
        bh__job *job = order->job;
        job->error = *error;
        if (carried_out) {
            job->error.status = BH_OK;
            bh__lock_take(&device->lock);
            commit(device, worker, order, message, job);
            bh__lock_give(&device->lock);
        }
        bh__job_finish(device, job);
        carried_out = true;
    } else if (carried_out && order->type == BH__MSG_CHUNK_CREATE) {
        bh__lock_take(&device->lock);
        carried_out = bh__driven_made(device, order, worker->area, message);
        bh__lock_give(&device->lock);
    } else if (order->type == BH__MSG_ADVISE) {
        carried_out = true; /* a worker that does not take it is as good as any */
    } else if (!carried_out) {
        memcpy(worker->errors, error->message, sizeof worker->errors - 1);
        worker->unfit_status = error->status;
    }
    bh__order_delete(order);
    return carried_out;
}

/* A module may be what kills the workers that load it, and whoever asked should not wait for one
 * stuck worker after the other; other orders are just unlucky. */
static uint32_t most_attempts(uint32_t type, bh__order_blame blame) {
    bool suspicious = type == BH__MSG_MODULE_LOAD || type == BH__MSG_SEQUENCE_DEFINE;
    return suspicious || blame == BH__BLAME_OVERDUE ? 3 : 16;
}

/* The lost worker may have made the chunk already: its successor makes another one elsewhere. */
static void move_chunk(bh__device *device, bh__order *order) {
    bh__chunk *chunk = &order->chunk;
    if (chunk->flags & BH__CHUNK_DRIVER) return;
    bh__lock_take(&device->lock);
    if (chunk->bytes <= device->address_limit - device->next_address) {
        chunk->address = device->address_base + device->next_address;
        chunk->read_only_address = device->read_only_base + device->next_address;
        device->next_address += chunk->bytes;
    }
    bh__lock_give(&device->lock);
    order->job->order.chunk = *chunk;
}

static bool has_failed(const bh__worker *worker, const bh__order *order, bh__order_blame blame) {
    if (blame == BH__BLAME_NONE || (blame == BH__BLAME_OVERDUE && order != worker->sent))
        return false;
    return ++order->job->attempts >= most_attempts(order->type, blame);
}

void bh__orders_recover(bh__device *device, bh__worker *worker, bh__order_blame blame,
                        bh__order **backlog) {
    bh__order *keep = NULL, *keep_last = NULL;
    for (int sent = 1; sent >= 0; sent--) {
        bh__order *order = sent ? worker->sent : worker->waiting;
        while (order) {
            bh__order *next = order->next;
            bh__job *job = order->job;
            if (!job) {
                bh__order_delete(order);
            } else if (sent && has_failed(worker, order, blame)) {
                bh__fail(&job->error, order->type == BH__MSG_MODULE_LOAD ? BH_E_LOAD : BH_E_LOST,
                         "report this with the module that shows it",
                         "%u workers in a row were lost while carrying this out (%s)%s",
                         job->attempts, bh__order_name(order->type),
                         blame == BH__BLAME_OVERDUE ? "; the last one did not answer" : "");
                bh__order_delete(order);
                bh__job_finish(device, job);
            } else {
                if (sent && order->type == BH__MSG_CHUNK_CREATE) move_chunk(device, order);
                append(&keep, &keep_last, order);
            }
            order = next;
        }
    }
    worker->sent = worker->sent_last = worker->waiting = worker->waiting_last = NULL;
    worker->outstanding = 0;
    if (keep_last) {
        keep_last->next = *backlog;
        *backlog = keep;
    }
}
