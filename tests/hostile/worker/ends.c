/* SPDX-License-Identifier: Apache-2.0 */
/* Ends, and beginnings that come to nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

static bh__message message;

static void live_on(void) {
    for (;;) pause();
}

/* ---- at once ---- */

static void exit_at_once(void) {
    _exit((int)below(256));
}

static void crash_at_once(void) {
    raise(one_in(2) ? SIGABRT : SIGSEGV);
}

static void stop_at_once(void) {
    raise(SIGSTOP);
}

static void close_at_once(void) {
    close(BH__WORKER_SOCKET);
    live_on();
}

static void never_ready(void) {
    live_on();
}

static void ends_without_ready(void) {
    nap_us(300000);
}

/* ---- after a word ---- */

static void hear_boot(void) {
    (void)__real_bh__message_receive(BH__WORKER_SOCKET, &message);
    memset(&message, 0, sizeof message);
}

static void say(uint32_t type) {
    message.type = type;
    (void)__real_bh__message_send(BH__WORKER_SOCKET, &message, NULL, 0);
}

static void say_ready(void) {
    message.u.ready.magic = BH__WIRE_MAGIC;
    message.u.ready.version = BH__WIRE_VERSION;
    message.u.ready.chunk_granularity = 65536;
    message.u.ready.info.memory_total = UINT64_C(1) << 30;
    say(BH__MSG_READY);
}

static void ready_and_nothing(void) {
    hear_boot();
    say_ready();
    live_on();
}

static void ready_twice(void) {
    hear_boot();
    say_ready();
    say_ready();
    live_on();
}

static void ready_and_gone(void) {
    hear_boot();
    say_ready();
}

static void other_version(void) {
    hear_boot();
    message.u.ready.magic = BH__WIRE_MAGIC;
    message.u.ready.version = BH__WIRE_VERSION + 1;
    say(BH__MSG_READY);
    live_on();
}

static void refuses_to_boot(void) {
    hear_boot();
    memset(&message.u.error, 'b', sizeof message.u.error);
    message.u.error.status = (bh_status)odd_number();
    say(BH__MSG_REFUSED);
}

static void answers_before_ready(void) {
    hear_boot();
    for (uint32_t i = 0; i < 10; i++) {
        message.serial = i;
        say(BH__MSG_READY + 1 + below(6));
    }
    live_on();
}

static void noise_at_boot(void) {
    char noise[2000];
    fill_random(noise, sizeof noise);
    send(BH__WORKER_SOCKET, noise, sizeof noise, MSG_NOSIGNAL);
    live_on();
}

/* ---- in the middle of work ---- */

static void exits(void) {
    if (one_in(4)) _exit((int)below(256));
}

static void crashes(void) {
    if (one_in(4)) raise(SIGSEGV);
}

static void stops(void) {
    raise(SIGSTOP);
}

static void hangs_up(void) {
    shutdown(BH__WORKER_SOCKET, one_in(2) ? SHUT_RDWR : SHUT_WR);
}

static void closes_all(void) {
    for (int fd = 0; fd < 100; fd++) close(fd);
}

static void last_words(void) {
    for (int i = 0; i < 200; i++) fputs("assertion \x01\x80 failed %s%n%n\n", stderr);
    raise(SIGABRT);
}

static void exits_at_code(void) {
    _exit(1);
}

static void crashes_at_code(void) {
    raise(SIGSEGV);
}

const hostility ends[] = {
    {.name = "exit_at_once", .boot = exit_at_once},
    {.name = "crash_at_once", .boot = crash_at_once},
    {.name = "stop_at_once", .boot = stop_at_once, .slow = true},
    {.name = "close_at_once", .boot = close_at_once},
    {.name = "never_ready", .boot = never_ready, .slow = true},
    {.name = "ends_without_ready", .boot = ends_without_ready},
    {.name = "ready_and_nothing", .boot = ready_and_nothing},
    {.name = "ready_twice", .boot = ready_twice},
    {.name = "ready_and_gone", .boot = ready_and_gone},
    {.name = "other_version", .boot = other_version},
    {.name = "refuses_to_boot", .boot = refuses_to_boot},
    {.name = "answers_before_ready", .boot = answers_before_ready},
    {.name = "noise_at_boot", .boot = noise_at_boot},
    {.name = "exits", .strike = exits},
    {.name = "crashes", .strike = crashes},
    {.name = "stops", .strike = stops},
    {.name = "hangs_up", .strike = hangs_up},
    {.name = "closes_all", .strike = closes_all},
    {.name = "last_words", .strike = last_words},
    {.name = "exits_at_code", .native = exits_at_code},
    {.name = "crashes_at_code", .native = crashes_at_code},
};
const size_t end_count = sizeof ends / sizeof *ends;
