/* SPDX-License-Identifier: Apache-2.0 */
/* The message with the figures of a device: writing it, and reading one that may be anything. */
#include "figures/figures.h"

#include <string.h>

enum { PROCESS = 1, DEVICE, INFO, HEALTH, COUNTERS, LANE, LOSS, TAG, KERNEL };

typedef struct header {
    uint64_t magic;
    uint64_t bytes; /* of the message, with this header */
} header;

typedef struct section {
    uint32_t kind;
    uint32_t bytes; /* of the struct that follows; a multiple of 8 */
} section;

/* Where sections of a kind lie in bh__figures, and how many there may be. */
typedef struct place {
    uint32_t kind;
    size_t offset, bytes;
    size_t most;
    size_t count; /* the offset of their number; 0: there is exactly one */
} place;

#define ONE(kind, field)                                                                           \
    { kind, offsetof(bh__figures, field), sizeof((bh__figures *)0)->field, 1, 0 }
#define LIST(kind, field, most, count)                                                             \
    {                                                                                              \
        kind, offsetof(bh__figures, field), sizeof((bh__figures *)0)->field[0], most,              \
            offsetof(bh__figures, count)                                                           \
    }

static const place places[] = {
    ONE(PROCESS, process),
    ONE(DEVICE, device),
    ONE(INFO, info),
    ONE(HEALTH, health),
    ONE(COUNTERS, counters),
    LIST(LANE, lanes, BH__FIGURES_LANES, lane_count),
    LIST(LOSS, losses, BH__FIGURES_LOSSES, loss_count),
    LIST(TAG, tags, BH__FIGURES_TAGS, tag_count),
    LIST(KERNEL, kernels, BH__FIGURES_KERNELS, kernel_count),
};
#define PLACES (sizeof places / sizeof *places)

static size_t padded(size_t bytes) {
    return (bytes + 7) & ~(size_t)7;
}

static uint32_t word_at(const void *base, size_t offset) {
    uint32_t word;
    memcpy(&word, (const char *)base + offset, sizeof word);
    return word;
}

/* ---- writing ---- */

size_t bh__figures_pack(const bh__figures *from, void *out, size_t room) {
    size_t used = sizeof(header);
    if (room < used) return 0;
    for (size_t i = 0; i < PLACES; i++) {
        const place *at = &places[i];
        size_t count = at->count ? word_at(from, at->count) : 1;
        for (size_t k = 0; k < count && k < at->most; k++) {
            section head = {at->kind, (uint32_t)padded(at->bytes)};
            if (room - used < sizeof head + head.bytes) return 0;
            uint32_t size = (uint32_t)at->bytes;
            char *to = (char *)out + used;
            memset(to, 0, sizeof head + head.bytes);
            memcpy(to, &head, sizeof head);
            memcpy(to + sizeof head, (const char *)from + at->offset + k * at->bytes, at->bytes);
            memcpy(to + sizeof head, &size, sizeof size);
            used += sizeof head + head.bytes;
        }
    }
    header head = {BH__FIGURES_MAGIC, used};
    memcpy(out, &head, sizeof head);
    return used;
}

/* ---- reading ---- */

/* A list that is full keeps what it has. */
static void take(const place *at, const char *from, uint32_t bytes, bh__figures *out) {
    uint32_t count = at->count ? word_at(out, at->count) : 0;
    if (count >= at->most) return;
    uint32_t size = bytes < at->bytes ? bytes : (uint32_t)at->bytes, own = (uint32_t)at->bytes;
    char *to = (char *)out + at->offset + count * at->bytes;
    memset(to, 0, at->bytes);
    memcpy(to, from, size);
    memcpy(to, &own, sizeof own);
    count++;
    if (at->count) memcpy((char *)out + at->count, &count, sizeof count);
}

#define END(text) ((text)[sizeof(text) - 1] = 0)

static void end_texts(bh__figures *f) {
    END(f->process.program);
    END(f->process.version);
    END(f->device.kind);
    END(f->info.kind);
    END(f->info.name);
    END(f->info.driver);
    END(f->info.arch);
    END(f->info.uuid);
    END(f->info.pci);
    END(f->info.no_standby);
    END(f->info.sandbox_lack);
    END(f->info.passed_over);
    END(f->health.reason);
    for (uint32_t i = 0; i < f->loss_count; i++) {
        END(f->losses[i].kernel);
        END(f->losses[i].message);
    }
    for (uint32_t i = 0; i < f->tag_count; i++) END(f->tags[i].tag);
    for (uint32_t i = 0; i < f->kernel_count; i++) END(f->kernels[i].name);
}

const char *bh__figures_unpack(const void *message, size_t bytes, bh__figures *out) {
    memset(out, 0, sizeof *out);
    header head;
    if (bytes < sizeof head) return "it ends before its header does";
    memcpy(&head, message, sizeof head);
    if (head.magic != BH__FIGURES_MAGIC) return "it does not begin as such a message does";
    if (head.bytes != bytes) return "it is not as long as it says";
    uint32_t seen = 0;
    for (size_t at = sizeof head; at < bytes;) {
        section part;
        if (bytes - at < sizeof part) return "a section's head is cut off";
        memcpy(&part, (const char *)message + at, sizeof part);
        at += sizeof part;
        if (part.bytes < 8 || part.bytes % 8 || part.bytes > bytes - at)
            return "a section's length is impossible";
        for (size_t i = 0; i < PLACES; i++) {
            if (places[i].kind != part.kind) continue;
            take(&places[i], (const char *)message + at, part.bytes, out);
            seen |= 1u << part.kind;
        }
        at += part.bytes;
    }
    end_texts(out);
    uint32_t needed = 1u << PROCESS | 1u << DEVICE | 1u << COUNTERS;
    return (seen & needed) == needed ? NULL : "it lacks the process, the device or its counters";
}
