/* SPDX-License-Identifier: Apache-2.0 */
/* Orders: messages to workers over their sockets. The active worker executes an order first. When
 * it has succeeded, the order is sent to the standbys too, and to every worker that is started
 * later. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/futex.h"
#include "base/log.h"
#include "base/shadow.h"
#include "client/core/fork.h"
#include "client/jobs/jobs.h"
#include "client/managed/managed.h"
#include "client/memory/memory.h"
#include "client/module/module.h"
#include "client/module/product.h"
#include "client/queue/queue.h"
#include "client/sequence/sequence.h"
#include "client/transfer/transfer.h"
#include "client/workers/internal.h"
#include "wire/share.h"

/* MAX_OUTSTANDING orders always fit a socket's buffer, so that sending never blocks. */
enum { MAX_OUTSTANDING = 2, GLOBAL_PIECE = 32 * 1024 };

/* The descriptor must still be open when the order is sent, even if its owner closes it before. */
static bh__order *hold_fd(bh__order *order) {
    order->next = NULL;
    order->fd = bh__fd_hold(order->fd);
    return order;
}

static bh__order *order_new(const bh__order *from) {
    bh__order *order = malloc(sizeof *order);
    if (!order) return NULL;
    *order = *from;
    order->job = NULL;
    return hold_fd(order);
}

/* The order is part of the job: orders that free memory can be sent when memory is exhausted. */
bh__order *bh__order_of(bh__job *job) {
    job->order.job = job;
    return hold_fd(&job->order);
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
        [BH__MSG_DEBUG] = "DEBUG",
        [BH__MSG_MODULE_NATIVE] = "MODULE_NATIVE",
    };
    bool known = type < sizeof names / sizeof *names && names[type];
    return known ? names[type] : "unknown";
}

void bh__order_delete(bh__order *order) {
    bh__fd_close(order->fd);
    free(order->data);
    order->data = NULL;
    if (!order->job) free(order);
}

void bh__order_finish(bh__device *device, bh__order *order) {
    bh__job *job = order->job;
    bh__order_delete(order);
    bh__job_finish(device, job);
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

/* A worker that misses an order because memory is exhausted is marked unfit and replaced. */
static void queue_order(bh__worker *worker, const bh__order *what) {
    bh__order *order = order_new(what);
    if (order) {
        bh__order_append(worker, order);
    } else {
        bh__worker_unfit(worker, "no memory for an order", ENOMEM);
    }
}

void bh__orders_brief(bh__device *device, bh__worker *worker) {
    bh__lock_take(&device->lock);
    for (uint32_t i = 0; i < device->memory.chunk_count; i++) {
        queue_order(worker, &(bh__order){.type = BH__MSG_CHUNK_MAP,
                                         .chunk = device->memory.chunks[i].chunk,
                                         .fd = device->memory.chunks[i].fd});
    }
    bh__driver_managed_brief(device, worker, queue_order);
    for (uint32_t i = 0; i < device->transfer.host_count; i++) {
        queue_order(worker, &(bh__order){.type = BH__MSG_HOST_MAP,
                                         .host = device->transfer.hosts[i].region,
                                         .fd = device->transfer.hosts[i].fd});
    }
    for (const bh__module *module = device->module.list; module; module = module->next) {
        if (!module->loaded) continue;
        queue_order(worker,
                    &(bh__order){.type = BH__MSG_MODULE_LOAD,
                                 .module = {.id = module->number, .bytes = module->image_bytes},
                                 .fd = module->image_fd});
        for (const bh__native_part *part = module->natives; part; part = part->next)
            queue_order(worker, &(bh__order){.type = BH__MSG_MODULE_NATIVE,
                                             .module = {.id = module->number, .bytes = part->bytes},
                                             .fd = part->fd});
    }
    bh__sequences_brief(device, worker, queue_order);
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        if (device->lanes[i].exists)
            queue_order(worker, &(bh__order){.type = BH__MSG_LANE_OPEN,
                                             .lane = {i, device->lanes[i].priority},
                                             .fd = -1});
    }
    bh__lock_give(&device->lock);
}

static void queue_variable(bh__worker *worker, const bh__module *module, uint32_t index) {
    const bh__variable *variable = &module->variables[index];
    for (uint32_t i = 0; i < variable->written_count; i++) {
        bh__span span = variable->written[i];
        while (span.bytes) {
            uint64_t piece = span.bytes < GLOBAL_PIECE ? span.bytes : GLOBAL_PIECE;
            uint8_t *data = malloc(piece);
            if (data) memcpy(data, variable->value + span.offset, piece);
            if (!data) bh__worker_unfit(worker, "no memory for a variable's value", ENOMEM);
            queue_order(worker, &(bh__order){.type = BH__MSG_GLOBAL_SET,
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
    for (const bh__module *module = device->module.list; module; module = module->next) {
        for (uint32_t i = 0; module->loaded && i < module->variable_count; i++)
            queue_variable(worker, module, i);
    }
    bh__lock_give(&device->lock);
    queue_order(worker, &(bh__order){.type = BH__MSG_GO, .fd = -1});
}

/* ---- sending ---- */

/* Sets the reason why the worker is replaced, in place of what it wrote to standard error. */
__attribute__((format(printf, 2, 3))) static void set_error(bh__worker *worker, const char *format,
                                                            ...) {
    va_list list;
    va_start(list, format);
    int length = vsnprintf(worker->errors, sizeof worker->errors, format, list);
    va_end(list);
    size_t max = sizeof worker->errors - 1;
    worker->errors_length = length < 0 ? 0 : (size_t)length < max ? (size_t)length : max;
}

static int send_order(bh__device *device, bh__worker *worker, bh__order *order) {
    bh__message *message = device->workers.outgoing;
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
    /* The application may have closed the descriptor and reused its number. */
    if (order->fd >= 0 && !bh__fd_is_ours(order->fd)) return -EBADF;
    return bh__message_send(worker->socket, message, &order->fd, order->fd >= 0 ? 1 : 0);
}

/* A lane that the active worker is about to open starts with an empty queue. */
static void init_lane_words(bh__device *device, bh__worker *worker, uint32_t index) {
    if (worker != device->workers.active) return;
    bh__lane_area *words = &bh__worker_area(device, worker)->lane[index];
    uint64_t tail = atomic_load(&device->lanes[index].tail);
    atomic_store(&words->claim, bh__claim_word(tail));
    atomic_store(&words->done, tail);
}

bh__pump_result bh__orders_pump(bh__device *device, bh__worker *worker) {
    while (worker->waiting && !worker->unfit && worker->state != BH__WORKER_BOOTING) {
        bool go = worker->waiting->type == BH__MSG_GO;
        if (worker->outstanding >= (go ? 1 : MAX_OUTSTANDING)) break;
        if (go && worker->state != BH__WORKER_ACTIVE) return BH__PUMP_GO;
        bh__order *order = take_first(&worker->waiting, &worker->waiting_last);
        if (order->type == BH__MSG_LANE_OPEN && order->job)
            init_lane_words(device, worker, order->lane.index);
        int failed = send_order(device, worker, order);
        if (!failed)
            bh__log_debug("order %u (%s) sent to worker %d", order->serial,
                          bh__order_name(order->type), (int)worker->process.program.pid);
        if (go) {
            bh__order_delete(order);
        } else {
            if (!worker->sent) worker->order_since = device->workers.watch.clock;
            worker->outstanding++;
            append(&worker->sent, &worker->sent_last, order);
        }
        if (failed == -EAGAIN) {
            set_error(worker,
                      "its socket is full although it answered earlier orders; order %u cannot be "
                      "sent",
                      worker->next_serial);
            return BH__PUMP_UNFIT;
        }
        if (failed && failed != -EPIPE && failed != -ECONNRESET)
            bh__worker_unfit(worker, "a message to the worker cannot be sent", -failed);
    }
    return worker->unfit ? BH__PUMP_UNFIT : BH__PUMP_SENT;
}

/* ---- answers ---- */

/* Takes ownership of `fd` if it succeeds. */
static bool add_chunk(bh__device *device, const bh__order *order, int fd) {
    if (fd < 0) return false;
    if (device->memory.chunk_count == device->memory.chunk_capacity) {
        uint32_t capacity = device->memory.chunk_capacity ? device->memory.chunk_capacity * 2 : 16;
        bh__chunk_entry *chunks = realloc(device->memory.chunks, capacity * sizeof *chunks);
        if (!chunks) return false;
        device->memory.chunks = chunks;
        device->memory.chunk_capacity = capacity;
    }
    bh__chunk_entry *entry = &device->memory.chunks[device->memory.chunk_count];
    *entry = (bh__chunk_entry){.chunk = order->chunk, .fd = fd};
    if (bh__checked(device) && !bh__check_map(entry)) return false;
    device->memory.chunk_count++;
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

static void cancel_queued_of(bh__worker *worker, uint32_t type, uint32_t id) {
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

/* A standby need not map or load what has just been unmapped or unloaded: drops such orders that
 * were not sent yet. */
static void cancel_queued(bh__device *device, uint32_t type, uint32_t id) {
    for (uint32_t i = 0; i < BH__AREAS; i++) {
        if (bh__is_standby(device, &device->workers.workers[i]))
            cancel_queued_of(&device->workers.workers[i], type, id);
    }
}

/* Reverts an order that the worker executed and the library could not commit. */
static void send_undo(bh__worker *worker, const bh__order *order) {
    bh__order unmake = {.fd = -1};
    if (order->type == BH__MSG_CHUNK_CREATE || order->type == BH__MSG_CHUNK_MAP) {
        unmake.type = BH__MSG_CHUNK_UNMAP;
        unmake.chunk = order->chunk;
    } else if (order->type == BH__MSG_HOST_MAP) {
        unmake.type = BH__MSG_HOST_UNMAP;
        unmake.host = order->host;
    } else if (order->type == BH__MSG_MODULE_LOAD) {
        unmake.type = BH__MSG_MODULE_UNLOAD;
        unmake.module = order->module;
    } else {
        return;
    }
    queue_order(worker, &unmake);
}

/* The active worker has executed the order: makes its effect part of the device's state, and queues
 * the order for the standbys. Called with the lock held. */
static void commit(bh__device *device, bh__worker *worker, bh__order *order, bh__message *message,
                   bh__job *job) {
    bool committed = !message->fds_refused;
    errno = 0; /* distinguishes exhausted memory from an invalid answer */
    bh__order next = *order;
    next.data = NULL;
    if (committed) switch (order->type) {
        case BH__MSG_CHUNK_CREATE:
            if (order->chunk.flags & BH__CHUNK_DRIVER) {
                committed = bh__driver_managed_made(device, order, worker->area, message);
                next.chunk.flags &= ~(uint32_t)BH__CHUNK_MEASURED;
                break;
            }
            next.fd = bh__fd_keep(message->fds[0]);
            message->fd_count = 0;
            next.type = BH__MSG_CHUNK_MAP;
            committed = add_chunk(device, order, next.fd);
            if (!committed) bh__fd_close(next.fd);
            break;
        case BH__MSG_CHUNK_MAP: /* shared by another device or process */
            committed = add_chunk(device, order, order->fd);
            break;
        case BH__MSG_CHUNK_UNMAP:
            cancel_queued(device, BH__MSG_CHUNK_MAP, order->chunk.id);
            break;
        case BH__MSG_HOST_UNMAP:
            cancel_queued(device, BH__MSG_HOST_MAP, order->host.id);
            break;
        case BH__MSG_MODULE_UNLOAD:
            cancel_queued(device, BH__MSG_MODULE_LOAD, order->module.id);
            cancel_queued(device, BH__MSG_MODULE_NATIVE, order->module.id);
            break;
        case BH__MSG_HOST_MAP:
            committed = bh__host_note(device, &order->host, order->fd, job->host);
            break;
        case BH__MSG_LANE_OPEN: {
            uint32_t index = order->lane.index;
            bh__lane *lane = &device->lanes[index];
            lane->exists = true;
            lane->floor = lane->retired = lane->claimed = atomic_load(&lane->tail);
            if (device->queue.lane_limit <= index) device->queue.lane_limit = index + 1;
            break;
        }
        case BH__MSG_FIT: /* a query: standbys do not need it */
            memcpy(&job->fit, message->data, sizeof job->fit);
            break;
        case BH__MSG_MODULE_LOAD:
            committed = bh__module_parse(job->module, message->fds[0]);
            job->module->loaded = committed && bh__module_charge(device, job->module, &job->error);
            if (committed && !job->module->loaded) {
                send_undo(worker, order);
                return;
            }
            break;
        case BH__MSG_ADVISE:
            committed = bh__driver_managed_advised(device, &order->advice);
            break;
        case BH__MSG_SEQUENCE_DEFINE:
            bh__sequence_commit(job->sequence);
            break;
        default:
            break;
        }
    int number = message->fds_refused ? EMFILE : errno;
    if (!committed) send_undo(worker, order);
    if (!committed && (number == ENOMEM || number == EMFILE || number == ENFILE)) {
        bh__fail(&job->error, BH_E_NO_HOST_MEMORY, bh__errno_fix(number, "free memory"),
                 "no host memory for the worker's answer to order %u (%s)", order->serial,
                 bh__order_name(order->type));
        return;
    }
    if (!committed && number == EIO) {
        bh__fail(&job->error, BH_E_IO, "try again, and check the system's log",
                 "the worker's answer to order %u (%s) cannot be read: input/output error",
                 order->serial, bh__order_name(order->type));
        return;
    }
    if (!committed) {
        bh__fail(&job->error, BH_E_INTERNAL, "report this with the program that shows it",
                 "the worker's answer to order %u (%s) is invalid", order->serial,
                 bh__order_name(order->type));
        return;
    }
    bool refused = order->type == BH__MSG_MODULE_NATIVE && job->error.message[0];
    bool only_this_worker = order->type == BH__MSG_FIT || order->type == BH__MSG_DEBUG || refused;
    for (uint32_t i = 0; !only_this_worker && i < BH__AREAS; i++) {
        bh__worker *other = &device->workers.workers[i];
        if (bh__is_standby(device, other) && other->state == BH__WORKER_STANDBY)
            queue_order(other, &next);
    }
}

static bool may_fail(uint32_t type) {
    return type == BH__MSG_CHUNK_UNMAP || type == BH__MSG_HOST_UNMAP ||
           type == BH__MSG_MODULE_UNLOAD || type == BH__MSG_SEQUENCE_DROP ||
           type == BH__MSG_MODULE_NATIVE; /* the kernel is interpreted */
}

/* Memory that is not opaque is a file that successors of this worker map too. If the file were
 * smaller than requested, or could shrink, accessing it would kill them. With checks the
 * application maps a part of it, so there it must be such a file whatever the worker states. */
static bool is_valid_chunk(const bh__device *device, const bh__worker *worker,
                           const bh__chunk *chunk, int fd) {
    if ((worker->traits & BH__TRAIT_OPAQUE_MEMORY) && !bh__checked(device)) return true;
    uint64_t bytes = bh__checked(device) ? bh__checked_chunk_bytes(chunk->bytes) : chunk->bytes;
    return bh__share_is_steady(fd, bytes) && bh__share_is_writable(fd);
}

/* Returns true if the answer has the data and descriptors that this order requires. */
static bool is_valid_answer(const bh__device *device, const bh__worker *worker,
                            const bh__order *order, const bh__message *message) {
    if (message->u.error.status != BH_OK || message->fds_refused) return true;
    switch (order->type) {
    case BH__MSG_CHUNK_CREATE:
        return order->chunk.flags & BH__CHUNK_DRIVER
                   ? message->data_bytes == sizeof(uint64_t)
                   : message->fd_count == 1 &&
                         is_valid_chunk(device, worker, &order->chunk, message->fds[0]);
    case BH__MSG_MODULE_LOAD:
        return message->fd_count == 1;
    case BH__MSG_FIT:
        return message->data_bytes == sizeof(bh__fit);
    default:
        return true;
    }
}

/* Returns false for an answer that no order waits for, that is out of order, or that is invalid:
 * the worker is defective. */
static bool accept_answer(const bh__device *device, bh__worker *worker,
                          const bh__message *message) {
    const bh__order *order = worker->sent;
    if (!order)
        set_error(worker, "it answered order %u, and no order was outstanding", message->serial);
    else if (order->serial != message->serial)
        set_error(worker, "it answered order %u, and order %u (%s) was next", message->serial,
                  order->serial, bh__order_name(order->type));
    else if (!is_valid_answer(device, worker, order, message))
        set_error(worker, "its answer to order %u (%s) is invalid: %u bytes, %u descriptors",
                  order->serial, bh__order_name(order->type), message->data_bytes,
                  message->fd_count);
    else
        return true;
    return false;
}

/* What is logged of a loaded module: copied with the lock held, logged without it. */
typedef struct loaded_line {
    uint32_t number, kernels, variables;
    int worker;
    uint64_t bytes;
    char name[64];
} loaded_line;

static bool describe_loaded(const bh__worker *worker, const bh__order *order, loaded_line *out) {
    if (order->type != BH__MSG_MODULE_LOAD || !bh__log_wants(BH_LOG_INFO)) return false;
    const bh__module *module = order->job->module;
    *out = (loaded_line){.number = module->number,
                         .kernels = module->kernel_count,
                         .variables = module->variable_count,
                         .worker = (int)worker->process.program.pid,
                         .bytes = module->image_bytes};
    const char *name = module->product ? module->product->name : NULL;
    if (name) snprintf(out->name, sizeof out->name, " \"%.50s\"", name);
    return module->loaded;
}

static void log_loaded(const loaded_line *line) {
    bh__log_info("module %u%s loaded by worker %d: %llu bytes, %u kernels, %u variables",
                 line->number, line->name, line->worker, (unsigned long long)line->bytes,
                 line->kernels, line->variables);
}

bool bh__orders_acknowledge(bh__device *device, bh__worker *worker, bh__message *message) {
    /* Checked first: the order stays queued, for the successor of a defective worker. */
    if (!accept_answer(device, worker, message)) return false;
    bh__order *order = take_first(&worker->sent, &worker->sent_last);
    worker->outstanding--;
    worker->order_since = device->workers.watch.clock;
    bh_error *error = &message->u.error;
    bh__error_of_worker(error);
    bool executed = error->status == BH_OK || may_fail(order->type);
    if (order->job) {
        bh__job *job = order->job;
        loaded_line line;
        bool loaded = false;
        job->error = *error;
        if (executed) {
            job->error.status = BH_OK;
            bh__lock_take(&device->lock);
            commit(device, worker, order, message, job);
            loaded = describe_loaded(worker, order, &line);
            bh__lock_give(&device->lock);
        }
        if (loaded) log_loaded(&line);
        bh__order_finish(device, order);
        return true;
    }
    if (executed && order->type == BH__MSG_CHUNK_CREATE) {
        bh__lock_take(&device->lock);
        executed = bh__driver_managed_made(device, order, worker->area, message);
        bh__lock_give(&device->lock);
    } else if (executed && order->type == BH__MSG_MODULE_LOAD && message->fd_count == 1) {
        executed = bh__description_check(device, order->module.id, message->fds[0]);
    } else if (order->type == BH__MSG_ADVISE) {
        executed = true; /* advice may be refused */
    } else if (!executed) {
        memcpy(worker->errors, error->message, sizeof worker->errors - 1);
        worker->unfit_status = error->status;
    }
    bh__order_delete(order);
    return executed;
}

/* A module may itself kill the workers that load it, and the caller should not wait for many stuck
 * workers in a row. Other orders are unlikely to be the cause, so they are retried more often. */
static uint32_t max_attempts(uint32_t type, bh__order_blame blame) {
    bool suspicious = type == BH__MSG_MODULE_LOAD || type == BH__MSG_MODULE_NATIVE ||
                      type == BH__MSG_SEQUENCE_DEFINE;
    return suspicious || blame == BH__BLAME_OVERDUE ? 3 : 16;
}

/* The lost worker may already have made the chunk: its successor makes it at another address. */
static void move_chunk(bh__device *device, bh__order *order) {
    bh__chunk *chunk = &order->chunk;
    if (chunk->flags & BH__CHUNK_DRIVER) return;
    bh__lock_take(&device->lock);
    if (chunk->bytes <= device->memory.addresses.limit - device->memory.addresses.next) {
        chunk->address = device->memory.addresses.base + device->memory.addresses.next;
        chunk->read_only_address =
            device->memory.addresses.read_only_base + device->memory.addresses.next;
        device->memory.addresses.next += chunk->bytes;
    }
    bh__lock_give(&device->lock);
}

static bool has_given_up(const bh__worker *worker, const bh__order *order, bh__order_blame blame) {
    if (blame == BH__BLAME_NONE || (blame == BH__BLAME_OVERDUE && order != worker->sent))
        return false;
    return ++order->job->attempts >= max_attempts(order->type, blame);
}

/* Uses the fix of the last loss. */
static void give_up(bh__device *device, bh__order *order, bh__order_blame blame,
                    const bh_error *why) {
    bh__job *job = order->job;
    bool known = blame == BH__BLAME_SENT && why && why->message[0];
    bh__fail(&job->error, order->type == BH__MSG_MODULE_LOAD ? BH_E_LOAD : BH_E_LOST,
             known && why->fix[0] ? why->fix : "report this with the module that causes it",
             "%u workers in a row were lost while executing this order (%s)%s%.300s", job->attempts,
             bh__order_name(order->type),
             blame == BH__BLAME_OVERDUE ? "; the last one timed out"
             : known                    ? "; of the last one: "
                                        : "",
             known ? why->message : "");
    bh__order_finish(device, order);
}

void bh__orders_recover(bh__device *device, bh__worker *worker, bh__order_blame blame,
                        const bh_error *why, bh__order **backlog) {
    bh__order *keep = NULL, *keep_last = NULL;
    for (int sent = 1; sent >= 0; sent--) {
        bh__order *order = sent ? worker->sent : worker->waiting;
        while (order) {
            bh__order *next = order->next;
            bh__job *job = order->job;
            if (!job) {
                bh__order_delete(order);
            } else if (sent && has_given_up(worker, order, blame)) {
                give_up(device, order, blame, why);
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
