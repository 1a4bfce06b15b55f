/* SPDX-License-Identifier: Apache-2.0 */
/* What the buffers of a soak hold, and which of their bytes may be half written, worked out from
 * the answers of tickets in the order of submission, and compared with what the device says. */
#include <stdio.h>
#include <string.h>

#include "soak.h"

static bool doubts(const soak_block *block, uint32_t first, uint32_t count) {
    return memchr(block->doubt + first, 1, count) != NULL;
}

static bool reads_doubt(const soak_op *op) {
    switch (op->kind) {
    case SOAK_BLEND: /* is given all of it */
        return doubts(op->source, 0, op->source->words);
    case SOAK_COPY:
    case SOAK_READ_HOST:
        return doubts(op->source, op->source_first, op->count);
    case SOAK_WORK:
    case SOAK_BAD:
        return doubts(op->target, op->first, op->count);
    default:
        return false;
    }
}

static bool touches_unknown(const soak_op *op) {
    return (op->target && op->target->unknown) || (op->source && op->source->unknown);
}

static void doubt_target(soak_op *op) {
    if (op->target) memset(op->target->doubt + op->first, 1, op->count);
}

static void complete(soak_op *op, const uint32_t *read) {
    soak_block *to = op->target, *from = op->source;
    for (uint32_t i = 0; i < op->count; i++) {
        uint32_t at = op->first + i, there = op->source_first + i;
        switch (op->kind) {
        case SOAK_WRITE:
        case SOAK_WRITE_HOST:
            to->value[at] = soak_word(op->seed, i);
            break;
        case SOAK_FILL:
            to->value[at] = op->seed;
            break;
        case SOAK_COPY:
            to->value[at] = from->value[there];
            break;
        case SOAK_BLEND:
            to->value[at] = soak_blend_word(from->value[there], op->seed);
            break;
        case SOAK_WORK:
            to->value[at] = soak_work_word(to->value[at], op->seed, op->rounds);
            break;
        case SOAK_READ_HOST:
            if (read && read[i] != from->value[there]) {
                soak_report(SOAK_WRONG_BYTES, "a read got 0x%08x, not 0x%08x, in word %u of %u",
                            read[i], from->value[there], i, op->count);
                return;
            }
            break;
        default:
            break;
        }
    }
    if (to) memset(to->doubt + op->first, 0, op->count);
}

void soak_model_apply(soak_op *op, const uint32_t *read) {
    bh_status status = op->status;
    bool blind = touches_unknown(op), reads = !blind && reads_doubt(op);
    switch (status) {
    case BH_OK:
        if (op->kind == SOAK_BAD) soak_report(SOAK_ODD, "%s ended well", op->name);
        if (reads && op->submitted)
            soak_report(SOAK_DOUBT_LOST, "%s of %u words read bytes in doubt and ended well",
                        op->name, op->count);
        complete(op, blind ? NULL : read);
        break;
    case BH_E_CANCELLED: /* did not begin */
        break;
    case BH_E_STALE:
        if (!reads && !blind)
            soak_report(SOAK_UNEXPLAINED, "%s of %u words answered BH_E_STALE (%s)", op->name,
                        op->count, op->submitted ? "ticket" : "call");
        if (op->submitted && !op->waits) doubt_target(op);
        if (op->waits && op->target) op->target->unknown = true; /* refused, or queued and failed */
        break;
    case BH_E_FAULT:
    case BH_E_DEADLINE:
    case BH_E_LOST:
        if (op->submitted && !op->waits)
            doubt_target(op);
        else if (op->target)
            op->target->unknown = true;
        break;
    default:
        if (op->target) op->target->unknown = true;
    }
}

/* The range that covers all doubt, in words. */
static void hull(const soak_block *block, uint32_t *first, uint32_t *end) {
    *first = *end = 0;
    const uint8_t *found = memchr(block->doubt, 1, block->words);
    if (!found) return;
    *first = (uint32_t)(found - block->doubt);
    const uint8_t *last = memrchr(block->doubt, 1, block->words);
    *end = (uint32_t)(last - block->doubt) + 1;
}

static bool compare(soak_block *block, uint32_t *scratch, uint32_t from, uint32_t to) {
    if (from >= to) return true;
    bh_status status = bh_buffer_read(block->buffer, from * 4ull, scratch, (to - from) * 4ull);
    if (status == BH_E_STALE)
        soak_report(SOAK_UNEXPLAINED, "words %u to %u cannot be read: BH_E_STALE", from, to);
    if (status != BH_OK) return status == BH_E_STALE || status == BH_E_LOST;
    for (uint32_t i = from; i < to; i++) {
        if (scratch[i - from] == block->value[i]) continue;
        soak_report(SOAK_WRONG_BYTES, "word %u of %u is 0x%08x, not 0x%08x", i, block->words,
                    scratch[i - from], block->value[i]);
        block->unknown = true;
        return true;
    }
    return true;
}

bool soak_model_check(soak_block *block, uint32_t *scratch) {
    if (block->unknown) return true;
    bh_buffer_info info = BH_INIT(info);
    if (bh_buffer_get_info(block->buffer, &info) != BH_OK) return false;
    uint32_t first, end;
    hull(block, &first, &end);
    uint32_t says_first = (uint32_t)(info.suspect_offset / 4);
    uint32_t says_end = (uint32_t)((info.suspect_offset + info.suspect_bytes) / 4);
    if (!info.suspect) says_first = says_end = 0;
    if (first != end && (says_first > first || says_end < end)) {
        soak_report(SOAK_DOUBT_LOST,
                    "words %u to %u of %u are in doubt, and the device says %u to %u", first, end,
                    block->words, says_first, says_end);
        block->unknown = true;
    } else if (says_first != first || says_end != end) {
        soak_report(SOAK_UNEXPLAINED,
                    "words %u to %u of %u are in doubt, and the device says %u to %u", first, end,
                    block->words, says_first, says_end);
        block->unknown = true;
    }
    if (block->unknown) return true;
    if (first == end) return compare(block, scratch, 0, block->words);
    return compare(block, scratch, 0, first) && compare(block, scratch, end, block->words);
}
