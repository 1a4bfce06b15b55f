/* SPDX-License-Identifier: Apache-2.0 */
/* Complete compiler logs: of this thread's last failure, and of the most recent tickets. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "client/compile/logs.h"
#include "client/core/error.h"
#include "client/core/fork.h"
#include "client/core/sized.h"

enum { TICKETS = 64 };

static struct {
    bh_ticket ticket;
    char *text; /* Owned. */
} kept[TICKETS];
static unsigned next;

static pthread_key_t last_key;
static bool have_key;

__attribute__((constructor)) static void make_key(void) {
    have_key = pthread_key_create(&last_key, free) == 0;
}

void bh__compile_log_keep_last(const char *text) {
    if (!have_key) return;
    free(pthread_getspecific(last_key));
    pthread_setspecific(last_key, text && *text ? strdup(text) : NULL);
}

void bh__compile_log_keep_ticket(bh_ticket ticket, const char *text) {
    char *copy = strdup(text);
    if (!copy) return;
    bh__process_lock_take(BH__LOCK_COMPILE_LOGS);
    char *before = kept[next].text;
    kept[next].ticket = ticket;
    kept[next].text = copy;
    next = (next + 1) % TICKETS;
    bh__process_lock_give(BH__LOCK_COMPILE_LOGS);
    free(before);
}

/* Copies as much as fits, with a NUL. */
static void copy_out(const char *from, char *text, size_t capacity, size_t *length) {
    size_t bytes = strlen(from);
    if (length) *length = bytes;
    if (capacity == 0) return;
    size_t part = bytes < capacity ? bytes : capacity - 1;
    memcpy(text, from, part);
    text[part] = 0;
}

/* Copies the log of a ticket. Returns false if there is none. */
static bool copy_kept(bh_ticket ticket, char *text, size_t capacity, size_t *length) {
    bh__process_lock_take(BH__LOCK_COMPILE_LOGS);
    bool found = false;
    for (unsigned i = 1; i <= TICKETS && !found; i++) {
        unsigned at = (next + TICKETS - i) % TICKETS;
        found = kept[at].text && kept[at].ticket.lane == ticket.lane &&
                kept[at].ticket.sequence == ticket.sequence;
        if (found) copy_out(kept[at].text, text, capacity, length);
    }
    bh__process_lock_give(BH__LOCK_COMPILE_LOGS);
    return found;
}

bh_status bh_compile_log(const bh_ticket *ticket, char *text, size_t capacity, size_t *length) {
    size_t ignored;
    if (!length) length = &ignored;
    if (bh__text_check(text, capacity, length) != BH_OK) return BH_E_INVALID;
    if (!ticket) {
        const char *last = have_key ? pthread_getspecific(last_key) : NULL;
        copy_out(last ? last : "", text, capacity, length);
        return BH_OK;
    }
    if (bh__refuse_forked()) return BH_E_STOPPED;
    if (copy_kept(*ticket, text, capacity, length)) return BH_OK;
    return bh__refuse(BH_E_NOT_FOUND, "read the log soon after the ticket completed",
                      "there is no log of ticket {0x%llx, %llu}: its log was empty, it is not a "
                      "compile, or %d later logs replaced it",
                      (unsigned long long)ticket->lane, (unsigned long long)ticket->sequence,
                      TICKETS);
}
