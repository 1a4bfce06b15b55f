/* SPDX-License-Identifier: Apache-2.0 */
/* The output of kernels, queued for the program's watchers. A kernel can print faster than a
 * watcher reads, so the queue is bounded. Text beyond the bound is dropped, and a notice says how
 * much. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/callback/callback.h"

enum { BLOCK_BYTES = 16 * 1024 };

/* ---- called with dispatch_lock held ---- */

static bool begins_line(const bh__printed *printed) {
    return printed->last == '\0' || printed->last == '\n';
}

static void drop(bh__printed *printed, const char *text, size_t bytes) {
    if (bytes == 0) return;
    printed->missing += bytes;
    atomic_fetch_add(&printed->dropped, bytes);
    printed->torn = text[bytes - 1] != '\n';
}

/* Returns the free bytes in the last block of text. A block is for the watchers that exist when it
 * begins: text after another one was opened begins a new block. */
static size_t last_room(const bh__device *device) {
    const bh__event *last = device->callback.events_last;
    bool fits =
        last && last->kind == BH_EVENT_PRINT && last->last_watch == device->callback.last_watch_id;
    return fits ? last->text_room - last->text_bytes : 0;
}

static size_t put_last(bh__device *device, const char *text, size_t bytes) {
    size_t room = last_room(device), written = bytes < room ? bytes : room;
    if (written == 0) return 0;
    bh__event *last = device->callback.events_last;
    memcpy(last->text + last->text_bytes, text, written);
    last->text_bytes += written;
    device->callback.printed.last = text[written - 1];
    return written;
}

static bool add_block(bh__device *device, size_t bytes) {
    bh__printed *printed = &device->callback.printed;
    uint64_t left = printed->limit > printed->held ? printed->limit - printed->held : 0;
    size_t room = left < BLOCK_BYTES ? (size_t)left : BLOCK_BYTES;
    if (room < bytes) room = bytes;
    bh__event *event = malloc(sizeof *event + room);
    if (!event) return false;
    event->kind = BH_EVENT_PRINT;
    event->text_bytes = 0;
    event->text_room = room;
    bh__event_append(device, event);
    printed->held += room;
    return true;
}

/* Returns the number of bytes appended: fewer than `bytes` if there is no host memory. */
static size_t append(bh__device *device, const char *text, size_t bytes) {
    size_t written = put_last(device, text, bytes);
    if (written < bytes && add_block(device, bytes - written))
        written += put_last(device, text + written, bytes - written);
    return written;
}

/* After text was dropped, half of the limit must be free before more is queued. This makes one long
 * gap instead of many short ones. */
static bool may_resume(const bh__printed *printed) {
    return !printed->missing || printed->held <= printed->limit / 2;
}

/* Returns how many bytes at the start of `text` are dropped. After a gap, text resumes at the start
 * of a line, unless the queue is empty. */
static size_t bytes_to_skip(const bh__printed *printed, const char *text, size_t bytes) {
    if (!may_resume(printed)) return bytes;
    if (!printed->torn) return 0;
    const char *end = memchr(text, '\n', bytes);
    if (end) return (size_t)(end + 1 - text);
    return printed->held ? bytes : 0;
}

/* Returns how many bytes fit. The text is cut at the end of a line; if not even one line fits,
 * within the line if the queue is empty, else before it. */
static size_t bytes_that_fit(const bh__device *device, const char *text, size_t bytes) {
    const bh__printed *printed = &device->callback.printed;
    uint64_t left = printed->limit > printed->held ? printed->limit - printed->held : 0;
    if (bytes <= last_room(device) + left) return bytes;
    size_t room = last_room(device) + (size_t)left;
    const char *end = memrchr(text, '\n', room);
    if (end) return (size_t)(end + 1 - text);
    return printed->held ? 0 : room;
}

static size_t take_notice(bh__printed *printed, char out[BH__NOTICE_BYTES]) {
    if (!printed->missing) return 0;
    int length =
        snprintf(out, BH__NOTICE_BYTES,
                 "%sbulkhead: %llu bytes of kernel output were dropped here: the queue for "
                 "the callback exceeded print_limit, %llu bytes\n",
                 begins_line(printed) ? "" : "\n", (unsigned long long)printed->missing,
                 (unsigned long long)printed->limit);
    printed->missing = 0;
    printed->last = '\n';
    return (size_t)length;
}

static void take_text(bh__device *device, const char *text, size_t bytes) {
    bh__printed *printed = &device->callback.printed;
    size_t skip = bytes_to_skip(printed, text, bytes);
    drop(printed, text, skip);
    if (skip == bytes) return;
    char notice[BH__NOTICE_BYTES];
    size_t length = take_notice(printed, notice);
    if (length) append(device, notice, length);
    printed->torn = false;
    size_t written = append(device, text + skip, bytes_that_fit(device, text + skip, bytes - skip));
    drop(printed, text + skip + written, bytes - skip - written);
}

/* ---- called without it ---- */

void bh__dispatch_text(bh__device *device, const void *text, size_t bytes) {
    pthread_mutex_lock(&device->dispatch_lock);
    bool wanted = bytes && bh__is_wanted(device, BH_EVENT_PRINT) &&
                  device->callback.state == BH__DISPATCHER_RUNNING;
    if (wanted) take_text(device, text, bytes);
    pthread_mutex_unlock(&device->dispatch_lock);
    if (wanted) bh__dispatcher_poke(device);
}

void bh__printed_delivered(bh__device *device, const bh__event *event) {
    pthread_mutex_lock(&device->dispatch_lock);
    device->callback.printed.held -= event->text_room;
    pthread_mutex_unlock(&device->dispatch_lock);
}

size_t bh__printed_notice(bh__device *device, char out[BH__NOTICE_BYTES]) {
    pthread_mutex_lock(&device->dispatch_lock);
    size_t length = device->callback.events ? 0 : take_notice(&device->callback.printed, out);
    pthread_mutex_unlock(&device->dispatch_lock);
    return length;
}

void bh__printed_reset(bh__printed *printed) {
    printed->missing = 0;
    printed->torn = false;
    printed->last = '\0';
}
