/* SPDX-License-Identifier: Apache-2.0 */
/* Loss reports, in memory and in files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "client/core/handles.h"
#include "client/core/sized.h"
#include "client/queue/doubt.h"
#include "client/queue/walk.h"
#include "client/workers/report.h"

enum { REQUESTS = 8, ARGUMENTS = 32, SUSPECTS = 32, VALUE_BYTES = 16, FILES_KEPT = 100 };

/* A range of memory, described by values: the memory may be freed before the report is read. */
typedef struct memory_note {
    char tag[BH_TAG_BYTES];
    uint64_t bytes, offset, length, address;
    bh_type type;
    bool host;
} memory_note;

typedef struct argument_note {
    bool is_buffer; /* or an object over a buffer */
    /* A texture, surface or tensor map. */
    uint32_t object;   /* BH__OBJECT_...; 0: none */
    uint64_t handle;   /* 0: it was released */
    uint32_t image[3]; /* texels of its image; 0: it is over a buffer */
    uint32_t access, bytes;
    uint8_t value[VALUE_BYTES];
    memory_note memory;
} argument_note;

typedef struct request_note {
    char name[512];
    uint32_t param_count, argument_count; /* how many it has, and how many are recorded */
    argument_note arguments[ARGUMENTS];
} request_note;

typedef struct lane_note {
    uint32_t index;
    uint64_t submitted, taken, done;
} lane_note;

struct bh__loss_report {
    bh_loss loss;
    struct timespec time;
    char device_name[128], kind[16];
    int worker_pid;
    bh_error error; /* from the driver, or about the worker */
    uint64_t address;
    uint32_t access_bytes;
    uint32_t lane_count, request_count, request_total, suspect_count;
    uint32_t finding_count;
    bh_finding *findings; /* Owned */
    char *state;          /* Owned, or NULL: of the thread that faulted */
    lane_note lanes[BH__MAX_LANES];
    request_note requests[REQUESTS];
    memory_note suspects[SUSPECTS];
};

static void free_report(bh__loss_report *report) {
    if (!report) return;
    free(report->findings);
    free(report->state);
    free(report);
}

/* ---- recording, with the device locked ---- */

static void note_memory(const bh__memory *memory, uint64_t offset, uint64_t length,
                        memory_note *out) {
    *out = (memory_note){.bytes = memory->bytes,
                         .offset = offset,
                         .length = length,
                         .address = memory->address + offset,
                         .type = memory->first.type,
                         .host = memory->host != NULL};
    if (memory->tag) snprintf(out->tag, sizeof out->tag, "%s", memory->tag->name);
}

/* Returns 0 for an object that was released. */
static uint64_t handle_of(const bh__device *device, uint64_t number) {
    const bh__table *tables[] = {&device->handles.textures, &device->handles.surfaces,
                                 &device->handles.tensor_maps};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        uint32_t cursor = 0;
        for (const bh__object *object; (object = bh__table_next(tables[i], &cursor));)
            if (object->record.number == number) return object->id;
    }
    return 0;
}

static void note_use(const bh__use *use, argument_note *out) {
    out->is_buffer = true;
    out->access = use->access & (BH_ACCESS_IN | BH_ACCESS_OUT);
    note_memory(use->memory, use->offset, use->bytes, &out->memory);
}

static void note_object(const bh__device *device, const bh__kernel *kernel, const bh__use *use,
                        const bh__launch_object *record, request_note *out) {
    uint32_t index = 0;
    while (index < out->argument_count && kernel->params[index].offset != record->offset) index++;
    if (index == out->argument_count) return;
    argument_note *argument = &out->arguments[index];
    note_use(use, argument);
    argument->object = record->kind;
    argument->handle = handle_of(device, record->number);
    if (record->image) {
        argument->image[0] = record->shape.width;
        argument->image[1] = record->shape.height;
        argument->image[2] = record->shape.depth;
    }
}

/* The textures, surfaces and tensor maps of a launch: their records end its payload, with their
 * number, and their uses end its list of uses. */
static void note_objects(bh__device *device, bh__lane *lane, const bh__shadow *shadow,
                         size_t params, request_note *out) {
    uint32_t length = device->queue.length;
    const bh__launch_body *body = &bh__ring_request(lane->ring, length, shadow->start)->u.launch;
    uint64_t count;
    if (!(body->flags & BH__LAUNCH_OBJECTS)) return;
    size_t end = params + body->param_bytes - sizeof count;
    bh__payload_read(lane->ring, length, shadow->start, end, &count, sizeof count);
    for (uint32_t i = 0; i < count; i++) {
        bh__launch_object record;
        bh__payload_read(lane->ring, length, shadow->start, end - (count - i) * sizeof record,
                         &record, sizeof record);
        const bh__use *use =
            bh__use_at(device, lane, shadow, shadow->use_count - (uint32_t)count + i);
        note_object(device, shadow->kernel, use, &record, out);
    }
}

/* Copies the arguments of a launch from the ring. */
static void note_arguments(bh__device *device, bh__lane *lane, const bh__shadow *shadow,
                           request_note *out) {
    const bh__kernel *kernel = shadow->kernel;
    uint32_t length = device->queue.length;
    const bh__request *request = bh__ring_request(lane->ring, length, shadow->start);
    size_t params = request->dependency_count * sizeof(bh__dependency);
    out->param_count = kernel->shape.param_count;
    out->argument_count = out->param_count < ARGUMENTS ? out->param_count : ARGUMENTS;
    for (uint32_t i = 0; i < out->argument_count; i++) {
        const bh__blob_param *param = &kernel->params[i];
        argument_note *argument = &out->arguments[i];
        argument->bytes = param->bytes;
        bh__payload_read(lane->ring, length, shadow->start, params + param->offset, argument->value,
                         param->bytes < VALUE_BYTES ? param->bytes : VALUE_BYTES);
    }
    for (uint32_t i = 0; i < shadow->use_count; i++) {
        const bh__use *use = bh__use_at(device, lane, shadow, i);
        if (use->argument == 0 || use->argument > out->argument_count) continue;
        note_use(use, &out->arguments[use->argument - 1]);
    }
    note_objects(device, lane, shadow, params, out);
}

typedef struct noting {
    const bh__judgement *judgement;
    bh__loss_report *report;
} noting;

static void note_request(void *context, bh__lane *lane, bh__shadow *shadow) {
    noting *self = context;
    bh__loss_report *report = self->report;
    if (shadow->resolved || !bh__is_to_blame(self->judgement, lane, shadow)) return;
    if (report->request_total++ >= REQUESTS) return;
    request_note *note = &report->requests[report->request_count++];
    memset(note, 0, sizeof *note);
    bh__describe_blamed(self->judgement, lane->index, shadow, note->name, sizeof note->name);
    if (shadow->kernel) note_arguments(self->judgement->device, lane, shadow, note);
}

bh__loss_report *bh__loss_report_begin(const bh__judgement *self) {
    bh__device *device = self->device;
    /* No work runs meanwhile, so time matters: notes are cleared when used, since most are not. */
    bh__loss_report *report = malloc(sizeof *report);
    if (!report) {
        bh__findings_drop(device); /* they belong to this loss, not to the next */
        return NULL;
    }
    memset(report, 0, offsetof(bh__loss_report, lanes));
    clock_gettime(CLOCK_REALTIME, &report->time);
    memcpy(report->device_name, device->info.name, sizeof report->device_name);
    memcpy(report->kind, device->kind, sizeof report->kind);
    report->worker_pid = (int)device->workers.active->process.program.pid;
    report->error = self->cause->error;
    report->address = self->cause->address;
    report->access_bytes = self->cause->bytes;
    for (uint32_t i = 0; i < device->queue.lane_limit; i++) {
        bh__lane *lane = &device->lanes[i];
        if (!lane->exists) continue;
        report->lanes[report->lane_count++] =
            (lane_note){i, atomic_load(&lane->tail), self->taken[i], lane->floor};
    }
    bh__requests_walk(device, note_request, &(noting){self, report});
    report->finding_count = bh__findings_give(self, &report->findings);
    report->state = bh__fault_state_give(device);
    return report;
}

void bh__loss_report_judged(const bh__judgement *self, bh__loss_report *report) {
    bh__device *device = self->device;
    if (!report) return;
    for (const bh__memory *memory = device->queue.doubted; memory; memory = memory->next_doubted) {
        if (memory->references == 0) continue;
        if (report->suspect_count == SUSPECTS) break;
        uint64_t from = UINT64_MAX, to = 0;
        for (uint32_t i = 0; i < memory->doubt_count; i++) {
            const bh__doubt *doubt = &memory->doubt[i];
            if (doubt->offset < from) from = doubt->offset;
            if (doubt->offset + doubt->bytes > to) to = doubt->offset + doubt->bytes;
        }
        if (memory->doubt_whole) {
            from = 0;
            to = memory->bytes;
        }
        note_memory(memory, from, to - from, &report->suspects[report->suspect_count++]);
    }
    report->loss = *self->summary;
    pthread_mutex_lock(&device->notes_lock);
    bh__loss_report **place = &device->workers.notes.reports[self->loss % BH__REPORTS_KEPT],
                    *old = *place;
    *place = report;
    pthread_mutex_unlock(&device->notes_lock);
    free_report(old);
}

void bh__loss_reports_free(bh__device *device) {
    for (uint32_t i = 0; i < BH__REPORTS_KEPT; i++) {
        free_report(device->workers.notes.reports[i]);
        device->workers.notes.reports[i] = NULL;
    }
    bh__findings_drop(device);
    free(device->workers.notes.report_dir);
    device->workers.notes.report_dir = NULL;
}

/* ---- text ---- */

static const char *kind_name(uint32_t kind) {
    static const char *const names[] = {
        "unknown",        "a fault",       "a deadline",           "a lost worker",
        "a stuck worker", "out of memory", "a broken installation"};
    return kind < sizeof names / sizeof *names ? names[kind] : names[0];
}

static void put_memory(FILE *out, const memory_note *memory) {
    if (memory->host) {
        fprintf(out, "host memory of %llu bytes", (unsigned long long)memory->bytes);
    } else {
        fprintf(out, "buffer of %s, %llu bytes", bh_type_name(memory->type),
                (unsigned long long)memory->bytes);
        if (memory->tag[0]) fprintf(out, ", tag \"%s\"", memory->tag);
    }
}

static void put_value(FILE *out, const argument_note *argument) {
    uint32_t shown = argument->bytes < VALUE_BYTES ? argument->bytes : VALUE_BYTES;
    uint64_t whole = 0;
    fprintf(out, "%u byte%s:", argument->bytes, argument->bytes == 1 ? "" : "s");
    for (uint32_t i = 0; i < shown; i++) fprintf(out, " %02x", argument->value[i]);
    if (shown < argument->bytes) fprintf(out, " ...");
    if (argument->bytes > sizeof whole) return;
    memcpy(&whole, argument->value, argument->bytes);
    fprintf(out, " = %llu", (unsigned long long)whole);
    float single;
    memcpy(&single, argument->value, sizeof single);
    if (argument->bytes == sizeof single) fprintf(out, ", as f32 %g", (double)single);
}

/* "texture 0x..., image of 16 x 4 x 1 texels, " */
static void put_object(FILE *out, const argument_note *argument) {
    static const char *const names[] = {[BH__OBJECT_TEXTURE] = "texture",
                                        [BH__OBJECT_SURFACE] = "surface",
                                        [BH__OBJECT_LINEAR] = "texture",
                                        [BH__OBJECT_ROWS] = "texture",
                                        [BH__OBJECT_TENSOR] = "tensor map"};
    if (!argument->object) return;
    fprintf(out, "%s ", names[argument->object]);
    if (argument->handle)
        fprintf(out, "0x%llx, ", (unsigned long long)argument->handle);
    else
        fprintf(out, "that was released, ");
    if (argument->image[0])
        fprintf(out, "image of %u x %u x %u texels, ", argument->image[0], argument->image[1],
                argument->image[2]);
}

static void put_argument(FILE *out, uint32_t index, const argument_note *argument) {
    static const char *const accesses[] = {"", "in", "out", "inout"};
    fprintf(out, "    argument %u: ", index);
    if (!argument->is_buffer) {
        put_value(out, argument);
    } else {
        const memory_note *memory = &argument->memory;
        fprintf(out, "%s, ", accesses[argument->access & 3]);
        put_object(out, argument);
        put_memory(out, memory);
        fprintf(out, ", bytes %llu to %llu of it, at 0x%llx", (unsigned long long)memory->offset,
                (unsigned long long)(memory->offset + memory->length),
                (unsigned long long)memory->address);
    }
    fputc('\n', out);
}

static void put_request(FILE *out, const request_note *request) {
    fprintf(out, "  %s\n", request->name);
    for (uint32_t i = 0; i < request->argument_count; i++)
        put_argument(out, i, &request->arguments[i]);
    if (request->argument_count < request->param_count)
        fprintf(out, "    and %u more arguments\n", request->param_count - request->argument_count);
}

static void put_head(FILE *out, const bh__loss_report *report) {
    const bh_loss *loss = &report->loss;
    struct tm when;
    char day[32];
    gmtime_r(&report->time.tv_sec, &when);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &when);
    fprintf(out, "loss %llu: %s (%s)\n", (unsigned long long)loss->number, kind_name(loss->kind),
            bh_status_name(loss->cause));
    fprintf(out, "time: %s.%03ldZ\n", day, report->time.tv_nsec / 1000000);
    fprintf(out, "device: %s, %s\n", report->kind, report->device_name);
    fprintf(out, "worker: process %d of generation %llu\n", report->worker_pid,
            (unsigned long long)loss->generation);
    fprintf(out, "what happened: %s\n", loss->message);
    fprintf(out, "reported by the device: %s\n", report->error.message);
    if (report->error.device_code || report->error.device_name[0])
        fprintf(out, "device code: %d %s\n", (int)report->error.device_code,
                report->error.device_name);
    if (report->access_bytes)
        fprintf(out, "address: 0x%llx, %u bytes\n", (unsigned long long)report->address,
                report->access_bytes);
    fprintf(out, "fix: %s\n", report->error.fix);
    if (loss->kernel[0])
        fprintf(out, "kernel: %s (%s)\n", loss->kernel,
                loss->certain ? "certain" : "one of several");
}

static void put_findings(FILE *out, const bh__loss_report *report) {
    if (report->finding_count) fprintf(out, "found by checks: %u\n", report->finding_count);
    for (uint32_t i = 0; i < report->finding_count; i++) {
        const bh_finding *finding = &report->findings[i];
        fprintf(out, "  %s, %llu time%s: %s\n", finding->kind, (unsigned long long)finding->count,
                finding->count == 1 ? "" : "s", finding->message);
    }
}

static void put_state(FILE *out, const bh__loss_report *report) {
    if (!report->state) return;
    fprintf(out, "state of the thread:\n");
    for (const char *line = report->state; *line;) {
        int length = (int)strcspn(line, "\n");
        fprintf(out, "  %.*s\n", length, line);
        line += length + (line[length] == '\n');
    }
}

static void put_outcome(FILE *out, const bh_loss *loss) {
    fprintf(out,
            "work: %u failed, %u lost, %u stale, %u sent again\n"
            "suspect buffers: %u\n",
            loss->failed, loss->lost, loss->stale, loss->resent, loss->suspect_buffers);
}

static void put_end(FILE *out, const bh_loss *loss) {
    if (loss->stopped)
        fprintf(out, "then: the device stopped\n");
    else if (loss->takeover_ns)
        fprintf(out, "then: %s after %llu us\n",
                loss->from_standby ? "a standby took over" : "a worker was started and took over",
                (unsigned long long)(loss->takeover_ns / 1000));
    else
        fprintf(out, "then: the next worker is starting\n");
}

static void put_report(FILE *out, const bh__loss_report *report) {
    put_head(out, report);
    put_findings(out, report);
    put_state(out, report);
    fprintf(out, "to blame: %s\n", report->request_total ? "" : "no request");
    for (uint32_t i = 0; i < report->request_count; i++) put_request(out, &report->requests[i]);
    if (report->request_count < report->request_total)
        fprintf(out, "  and %u more\n", report->request_total - report->request_count);
    fprintf(out, "lanes (in queue slots):\n");
    for (uint32_t i = 0; i < report->lane_count; i++) {
        const lane_note *lane = &report->lanes[i];
        fprintf(out, "  lane %u: submitted %llu, taken %llu, done %llu\n", lane->index,
                (unsigned long long)lane->submitted, (unsigned long long)lane->taken,
                (unsigned long long)lane->done);
    }
    put_outcome(out, &report->loss);
    for (uint32_t i = 0; i < report->suspect_count; i++) {
        const memory_note *memory = &report->suspects[i];
        fprintf(out, "  ");
        put_memory(out, memory);
        fprintf(out, ": bytes %llu to %llu\n", (unsigned long long)memory->offset,
                (unsigned long long)(memory->offset + memory->length));
    }
    if (report->suspect_count < report->loss.suspect_buffers)
        fprintf(out, "  and %u more\n", report->loss.suspect_buffers - report->suspect_count);
    put_end(out, &report->loss);
}

/* The caller frees the text. Returns NULL if host memory is exhausted. */
static char *make_text(const bh__loss_report *report, size_t *length) {
    char *text = NULL;
    FILE *out = open_memstream(&text, length);
    if (!out) return NULL;
    put_report(out, report);
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    if (!failed) return text;
    free(text);
    return NULL;
}

/* ---- files ---- */

#define FILE_PREFIX "bulkhead-loss-"

static int is_report(const struct dirent *entry) {
    return strncmp(entry->d_name, FILE_PREFIX, strlen(FILE_PREFIX)) == 0 &&
           strstr(entry->d_name, ".txt") != NULL;
}

/* Names begin with the time, so the oldest sort first. */
static void delete_oldest(int folder, const char *path) {
    struct dirent **names;
    int count = scandir(path, &names, is_report, alphasort);
    for (int i = 0; i < count; i++) {
        if (i < count - FILES_KEPT) (void)unlinkat(folder, names[i]->d_name, 0);
        free(names[i]);
    }
    if (count >= 0) free(names);
}

static bool write_all(int fd, const char *text, size_t length) {
    while (length > 0) {
        ssize_t done = write(fd, text, length);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return false;
        text += done;
        length -= (size_t)done;
    }
    return true;
}

/* Others may be able to write to the folder: an existing file or link is not followed. Reports
 * contain the program's data, so the file is private. */
static int create_file(int folder, const char *name) {
    return openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
}

static void write_file(const bh__device *device, const bh__loss_report *report) {
    char name[128], draft[160], why[128];
    struct tm when;
    char day[32];
    gmtime_r(&report->time.tv_sec, &when);
    strftime(day, sizeof day, "%Y%m%dT%H%M%S", &when);
    snprintf(name, sizeof name, FILE_PREFIX "%s.%06ld-%ld-%u-%llu.txt", day,
             report->time.tv_nsec / 1000, (long)getpid(), device->slot,
             (unsigned long long)report->loss.number);
    snprintf(draft, sizeof draft, ".%s.part", name);
    size_t length = 0;
    char *text = make_text(report, &length);
    int folder =
        text ? open(device->workers.notes.report_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int fd = folder >= 0 ? create_file(folder, draft) : -1;
    bool done = fd >= 0 && write_all(fd, text, length);
    if (fd >= 0) done &= close(fd) == 0;
    done = done && renameat(folder, draft, folder, name) == 0;
    if (!done) {
        bh__log_warning(
            "the report of loss %llu cannot be written to %s: %s. Fix: check the folder and its "
            "free space",
            (unsigned long long)report->loss.number, device->workers.notes.report_dir,
            bh__errno_text(text ? errno : ENOMEM, why, sizeof why));
        if (fd >= 0) (void)unlinkat(folder, draft, 0);
    } else {
        delete_oldest(folder, device->workers.notes.report_dir);
    }
    if (folder >= 0) close(folder);
    free(text);
}

void bh__loss_report_finish(bh__device *device) {
    const bh_loss *loss = &device->workers.loss;
    pthread_mutex_lock(&device->notes_lock);
    bh__loss_report *report = device->workers.notes.reports[loss->number % BH__REPORTS_KEPT];
    if (report && report->loss.number == loss->number)
        report->loss = *loss;
    else
        report = NULL;
    pthread_mutex_unlock(&device->notes_lock);
    if (report && device->workers.notes.report_dir) write_file(device, report);
}

/* ---- the public calls ---- */

/* Called with notes_lock held. `loss` 0: the latest. */
static const bh__loss_report *find_report(const bh__device *device, uint64_t loss) {
    const bh__loss_report *found = NULL;
    for (uint32_t i = 0; i < BH__REPORTS_KEPT; i++) {
        const bh__loss_report *report = device->workers.notes.reports[i];
        if (!report || (loss && report->loss.number != loss)) continue;
        if (!found || report->loss.number > found->loss.number) found = report;
    }
    return found;
}

static bool copy_state(const bh__loss_report *report, char **out) {
    *out = report->state ? strdup(report->state) : NULL;
    return *out || !report->state;
}

static bool copy_findings(const bh__loss_report *report, bh_finding **out) {
    *out = report->finding_count ? malloc(report->finding_count * sizeof **out) : NULL;
    if (*out) memcpy(*out, report->findings, report->finding_count * sizeof **out);
    return *out || !report->finding_count;
}

/* Returns a copy, because the report of the most recent loss may still change, or NULL if there is
 * no such report or host memory is exhausted. */
static bh__loss_report *copy_report(bh__device *device, uint64_t loss, bool *out_found) {
    bh__loss_report *copy = malloc(sizeof *copy);
    bool whole = false;
    pthread_mutex_lock(&device->notes_lock);
    const bh__loss_report *found = find_report(device, loss);
    *out_found = found != NULL;
    if (found && copy) {
        memcpy(copy, found, sizeof *copy);
        copy->state = NULL;
        whole = copy_findings(found, &copy->findings) && copy_state(found, &copy->state);
    }
    pthread_mutex_unlock(&device->notes_lock);
    if (whole) return copy;
    if (found && copy) {
        free_report(copy);
    } else {
        free(copy);
    }
    return NULL;
}

static bh_status refuse_loss(uint64_t loss) {
    if (!loss)
        return bh__refuse(BH_E_NOT_FOUND,
                          "call it after a loss; bh_device_list_losses has the losses",
                          "the device has lost no worker");
    return bh__refuse(BH_E_NOT_FOUND,
                      "pass the number of a loss that was reported to a watcher, or 0",
                      "there is no report of loss %llu; only the last %d are kept",
                      (unsigned long long)loss, BH__REPORTS_KEPT);
}

/* Copies a text to the program and frees it. */
static bh_status give_text(char *whole, size_t made, char *text, size_t capacity, size_t *length) {
    bh_status status = bh__text_fits(made, capacity, length);
    if (status == BH_OK && capacity) memcpy(text, whole, made + 1);
    free(whole);
    return status;
}

bh_status bh_device_get_report(bh_device handle, uint64_t loss, char *text, size_t capacity,
                               size_t *length) {
    if (bh__text_check(text, capacity, length) != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    bool found;
    bh__loss_report *report = copy_report(device, loss, &found);
    bh__ticket_leave(device);
    if (!found) return refuse_loss(loss);
    size_t made = 0;
    char *whole = report ? make_text(report, &made) : NULL;
    free_report(report);
    if (!whole)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the report of loss %llu", (unsigned long long)loss);
    return give_text(whole, made, text, capacity, length);
}

bh_status bh_device_get_fault_state(bh_device handle, uint64_t loss, char *text, size_t capacity,
                                    size_t *length) {
    if (bh__text_check(text, capacity, length) != BH_OK) return BH_E_INVALID;
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    pthread_mutex_lock(&device->notes_lock);
    const bh__loss_report *report = find_report(device, loss);
    char *state = report ? strdup(report->state ? report->state : "") : NULL;
    pthread_mutex_unlock(&device->notes_lock);
    bh__ticket_leave(device);
    if (!report) return refuse_loss(loss);
    if (!state)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the state at loss %llu", (unsigned long long)loss);
    return give_text(state, strlen(state), text, capacity, length);
}

size_t bh__losses_copy(bh__device *device, bh_loss out[BH__REPORTS_KEPT]) {
    size_t count = 0;
    pthread_mutex_lock(&device->notes_lock);
    uint64_t newest = device->workers.notes.health.losses;
    for (uint64_t number = newest; number && newest - number < BH__REPORTS_KEPT; number--) {
        const bh__loss_report *report = device->workers.notes.reports[number % BH__REPORTS_KEPT];
        if (report && report->loss.number == number) out[count++] = report->loss;
    }
    pthread_mutex_unlock(&device->notes_lock);
    return count;
}

bh_status bh_device_list_losses(bh_device handle, bh_loss *entries, size_t entry_size,
                                size_t capacity, size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_loss") != BH_OK)
        return BH_E_INVALID;
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    bh_loss losses[BH__REPORTS_KEPT];
    size_t found = bh__losses_copy(device, losses);
    bh__ticket_leave(device);
    bh__list_give(entries, entry_size, capacity, count, losses, sizeof *losses, found);
    return BH_OK;
}

bh_status bh_device_list_findings(bh_device handle, uint64_t loss, bh_finding *entries,
                                  size_t entry_size, size_t capacity, size_t *count) {
    if (bh__list_check(entries, entry_size, capacity, count, "bh_finding") != BH_OK)
        return BH_E_INVALID;
    bh__device *device = bh__device_enter(handle.id);
    if (!device) return bh__last()->status;
    bh_finding *findings = NULL;
    pthread_mutex_lock(&device->notes_lock);
    const bh__loss_report *report = find_report(device, loss);
    size_t total = report ? report->finding_count : 0;
    bool copied = report && copy_findings(report, &findings);
    pthread_mutex_unlock(&device->notes_lock);
    bh__ticket_leave(device);
    if (!report) return refuse_loss(loss);
    if (!copied)
        return bh__refuse(BH_E_NO_HOST_MEMORY, "free host memory",
                          "no host memory for the %zu findings of loss %llu", total,
                          (unsigned long long)loss);
    bh__list_give(entries, entry_size, capacity, count, findings, sizeof *findings, total);
    free(findings);
    return BH_OK;
}
