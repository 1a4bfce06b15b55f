/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that must never change, what was found to be wrong, and chance. */
#include <stdarg.h>
#include <stdio.h>

#include "soak.h"

_Atomic uint64_t soak_verdicts[SOAK_STATUSES];
_Atomic uint64_t soak_asked_again;
static _Atomic size_t reported[SOAK_FAULTS];

static const char *const fault_names[SOAK_FAULTS] = {
    "wrong bytes",           "an answer changed", "doubt was lost",
    "doubt without a cause", "an odd answer",     "callbacks",
};

void soak_report(soak_fault fault, const char *format, ...) {
    enum { PRINTED = 12 };
    if (atomic_fetch_add(&reported[fault], 1) >= PRINTED) return;
    char text[768];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    fprintf(stderr, "wrong: %s: %s\n", fault_names[fault], text);
}

size_t soak_reported(soak_fault fault) {
    return atomic_load(&reported[fault]);
}

uint64_t soak_next(soak_random *self) {
    uint64_t x = self->state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

uint32_t soak_below(soak_random *self, uint32_t limit) {
    return (uint32_t)(soak_next(self) >> 32) % limit;
}

bool soak_chance(soak_random *self, uint32_t one_in) {
    return soak_below(self, one_in) == 0;
}

uint32_t soak_word(uint32_t seed, uint64_t index) {
    uint32_t x = seed ^ (uint32_t)index * 2654435761u;
    x = (x ^ x >> 15) * 0x85ebca6bu;
    return x ^ x >> 13;
}

void soak_answers_add(soak_answers *self, soak_random *random, bh_ticket ticket, bh_status status) {
    size_t at = self->count < SOAK_ANSWERS ? self->count++ : soak_below(random, SOAK_ANSWERS);
    self->list[at].ticket = ticket;
    self->list[at].status = status;
    if (status >= 0 && status < SOAK_STATUSES) atomic_fetch_add(&soak_verdicts[status], 1);
}

static void ask(const soak_answers *self, size_t at, uint32_t way) {
    static const char *const ways[] = {"bh_wait 0", "bh_wait", "bh_ticket_error"};
    bh_ticket ticket = self->list[at].ticket;
    bh_error error;
    bh_status answer = way == 0   ? bh_wait(ticket, 0)
                       : way == 1 ? bh_wait(ticket, 1)
                                  : bh_ticket_error(ticket, &error);
    atomic_fetch_add(&soak_asked_again, 1);
    if (answer != self->list[at].status)
        soak_report(SOAK_CHANGED, "ticket {%llx, %llu} had answered %s, and %s says %s",
                    (unsigned long long)ticket.lane, (unsigned long long)ticket.sequence,
                    bh_status_name(self->list[at].status), ways[way], bh_status_name(answer));
    else if (way == 2 && answer != BH_OK && error.status != answer)
        soak_report(SOAK_CHANGED, "ticket {%llx, %llu} answers %s, and its error says %s",
                    (unsigned long long)ticket.lane, (unsigned long long)ticket.sequence,
                    bh_status_name(answer), bh_status_name(error.status));
}

void soak_answers_ask(const soak_answers *self, soak_random *random) {
    if (self->count == 0) return;
    ask(self, soak_below(random, (uint32_t)self->count), soak_below(random, 3));
}

void soak_answers_ask_all(const soak_answers *self, soak_random *random) {
    for (size_t i = 0; i < self->count; i++) ask(self, i, soak_below(random, 3));
}

/* ---- the board ---- */

enum { BOARD = 64 };

static struct {
    pthread_mutex_t lock;
    bh_ticket ticket; /* lane 0: none */
    bh_status status; /* BH_E_BUSY: nobody knows yet */
} board[BOARD] = {[0 ... BOARD - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER}};

void soak_board_show(soak_random *random, bh_ticket ticket) {
    uint32_t at = soak_below(random, BOARD);
    pthread_mutex_lock(&board[at].lock);
    board[at].ticket = ticket;
    board[at].status = BH_E_BUSY;
    pthread_mutex_unlock(&board[at].lock);
}

/* An answer that is not final says nothing if it was asked for before the final one was known. */
static void board_compare(uint32_t at, bh_ticket ticket, bh_status answer, const char *who) {
    if (answer == BH_E_BUSY || answer == BH_E_TIMEOUT) return;
    pthread_mutex_lock(&board[at].lock);
    bh_status known = board[at].status;
    if (board[at].ticket.lane == ticket.lane && board[at].ticket.sequence == ticket.sequence) {
        if (known == BH_E_BUSY)
            board[at].status = answer;
        else if (known != answer)
            soak_report(SOAK_CHANGED, "ticket {%llx, %llu} had answered %s, and %s got %s",
                        (unsigned long long)ticket.lane, (unsigned long long)ticket.sequence,
                        bh_status_name(known), who, bh_status_name(answer));
    }
    pthread_mutex_unlock(&board[at].lock);
}

void soak_board_ask(soak_random *random) {
    uint32_t at = soak_below(random, BOARD);
    pthread_mutex_lock(&board[at].lock);
    bh_ticket ticket = board[at].ticket;
    bh_status known = board[at].status;
    pthread_mutex_unlock(&board[at].lock);
    if (!ticket.lane) return;
    bh_status answer = soak_chance(random, 2) ? bh_wait(ticket, 0) : bh_wait(ticket, 1000000);
    if (known != BH_E_BUSY && (answer == BH_E_BUSY || answer == BH_E_TIMEOUT))
        soak_report(SOAK_CHANGED, "ticket {%llx, %llu} had answered %s, and now %s",
                    (unsigned long long)ticket.lane, (unsigned long long)ticket.sequence,
                    bh_status_name(known), bh_status_name(answer));
    board_compare(at, ticket, answer, "another thread");
}

void soak_board_learned(bh_ticket ticket, bh_status status) {
    for (uint32_t i = 0; i < BOARD; i++) board_compare(i, ticket, status, "its owner");
}
