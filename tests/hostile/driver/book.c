/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of tickets: whatever was answered once is answered for ever. */
#include <pthread.h>

#include "driver.h"

enum { PAGES = 4096 };

typedef struct entry {
    bh_ticket ticket;
    bh_status status;
} entry;

static entry book[PAGES];
static uint32_t count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_final(bh_status status) {
    return status != BH_E_BUSY && status != BH_E_TIMEOUT;
}

static entry *find(bh_ticket ticket) {
    for (uint32_t i = 0; i < count; i++)
        if (book[i].ticket.lane == ticket.lane && book[i].ticket.sequence == ticket.sequence)
            return &book[i];
    return NULL;
}

static void compare(const entry *noted, bh_status status) {
    if (status == noted->status) return;
    problem("ticket {0x%llx, %llu} answered %s, and later %s",
            (unsigned long long)noted->ticket.lane, (unsigned long long)noted->ticket.sequence,
            bh_status_name(noted->status), bh_status_name(status));
}

void book_note(bh_ticket ticket, bh_status status) {
    if (!is_final(status)) return;
    pthread_mutex_lock(&lock);
    entry *noted = find(ticket);
    if (noted)
        compare(noted, status);
    else if (count < PAGES)
        book[count++] = (entry){ticket, status};
    pthread_mutex_unlock(&lock);
}

/* Callbacks may note answers meanwhile. */
static bool page(uint32_t number, entry *out) {
    pthread_mutex_lock(&lock);
    bool there = number < count;
    if (there) *out = book[number];
    pthread_mutex_unlock(&lock);
    return there;
}

void book_check(void) {
    entry noted;
    for (uint32_t i = 0; page(i, &noted); i++) compare(&noted, AT_ONCE(bh_wait(noted.ticket, 0)));
}

void book_clear(void) {
    pthread_mutex_lock(&lock);
    count = 0;
    pthread_mutex_unlock(&lock);
}
