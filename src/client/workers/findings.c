/* SPDX-License-Identifier: Apache-2.0 */
/* What the checks of a worker found, and the state of the thread that faulted: taken from its
 * messages, kept with the report of the loss. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain_text.h"
#include "client/memory/memory.h"
#include "client/workers/report.h"

/* A worker may send anything. */
static void clean_place(bh_finding_place *place) {
    BH__PLAIN(place->file);
    place->access &= BH_ACCESS_IN | BH_ACCESS_OUT;
    place->reserved = 0;
}

static void clean(bh_finding *finding) {
    finding->size = sizeof *finding;
    BH__PLAIN(finding->kind);
    BH__PLAIN(finding->kernel);
    BH__PLAIN(finding->message);
    BH__PLAIN(finding->fix);
    finding->global = finding->global != 0;
    finding->reserved = 0;
    clean_place(&finding->here);
    clean_place(&finding->other);
}

bool bh__findings_take(bh__device *device, const bh__message *message) {
    uint32_t count = message->data_bytes / (uint32_t)sizeof(bh_finding);
    uint32_t before = device->workers.finding_count;
    if (!bh__checked(device) || count * sizeof(bh_finding) != message->data_bytes ||
        count > BH__MAX_FINDINGS - before)
        return false;
    bh_finding *all =
        realloc(device->workers.findings, BH__MAX_FINDINGS * sizeof *device->workers.findings);
    if (!all) return true; /* the loss is reported without them */
    memcpy(&all[before], message->data, message->data_bytes);
    for (uint32_t i = before; i < before + count; i++) clean(&all[i]);
    device->workers.findings = all;
    device->workers.finding_count = before + count;
    return true;
}

/* "...; that is at byte 8 of argument 1, a buffer of f32[100]" */
static void describe(const bh__judgement *self, bh_finding *finding) {
    bh_error error = {0};
    if (!finding->global) return;
    snprintf(error.message, sizeof error.message, "%s", finding->message);
    bh__blame_describe(self, finding->address, finding->bytes, &error);
    memcpy(finding->message, error.message, sizeof finding->message);
}

uint32_t bh__findings_give(const bh__judgement *self, bh_finding **out) {
    bh__workers_room *room = &self->device->workers;
    uint32_t count = room->finding_count;
    *out = room->findings;
    room->findings = NULL;
    room->finding_count = 0;
    for (uint32_t i = 0; i < count; i++) describe(self, &(*out)[i]);
    return count;
}

/* A worker may send anything: what is not printable becomes '?'. */
bool bh__fault_state_take(bh__device *device, const bh__message *message) {
    if (device->workers.fault_state) return false; /* once for each fault */
    char *text = malloc((size_t)message->data_bytes + 1);
    if (!text) return true; /* the loss is reported without it */
    for (uint32_t i = 0; i < message->data_bytes; i++) {
        char c = (char)message->data[i];
        text[i] = (char)(c == '\n' || (c >= ' ' && c <= '~') ? c : '?');
    }
    text[message->data_bytes] = '\0';
    device->workers.fault_state = text;
    return true;
}

char *bh__fault_state_give(bh__device *device) {
    char *text = device->workers.fault_state;
    device->workers.fault_state = NULL;
    return text;
}

void bh__findings_drop(bh__device *device) {
    free(bh__fault_state_give(device));
    free(device->workers.findings);
    device->workers.findings = NULL;
    device->workers.finding_count = 0;
}
