/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for a worker program and misbehaves, as BULKHEAD_TEST_IMPOSTOR says. With
 * BULKHEAD_TEST_IMPOSTORS only as many do as there are files impostor-0, impostor-1 and so on in
 * the folder named there, each of which is used up; later ones become the program `real` in it. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/futex.h"
#include "wire/message.h"
#include "wire/share.h"

enum { SOCKET = 3 };

static bh__message message;

static void answer_ready(uint64_t magic, uint32_t version) {
    memset(&message, 0, sizeof message);
    message.type = BH__MSG_READY;
    message.u.ready.magic = magic;
    message.u.ready.version = version;
    message.u.ready.pid = (int32_t)getpid();
    message.u.ready.chunk_granularity = 65536;
    message.u.ready.info.memory_total = UINT64_C(1) << 30;
    message.u.ready.info.max_lanes = BH__MAX_LANES;
    send(SOCKET, &message, offsetof(bh__message, fds), MSG_NOSIGNAL);
}

/* True: this one is to misbehave. */
static bool is_impostor(void) {
    const char *folder = getenv("BULKHEAD_TEST_IMPOSTORS");
    char path[700];
    for (int i = 0; folder && i < 32; i++) {
        snprintf(path, sizeof path, "%s/impostor-%d", folder, i);
        if (unlink(path) == 0) return true;
    }
    return folder == NULL;
}

static void become_real(void) {
    char path[700];
    snprintf(path, sizeof path, "%s/real", getenv("BULKHEAD_TEST_IMPOSTORS"));
    execl(path, path, (char *)NULL);
}

static bh__front *front;
static bh__area *area;
static uint32_t area_index;

static void *answer_pings(void *unused) {
    for (;;) {
        uint32_t ping = atomic_load(&front->ping[area_index]);
        atomic_store(&area->pong, ping);
        bh__futex_wait(&front->ping[area_index], ping, BH__NEVER, BH__FUTEX_SHARED);
    }
    return unused;
}

static bool start_pulse(void) {
    pthread_t thread;
    area_index = message.u.boot.area;
    front = bh__share_map(message.fds[0], 0, message.u.boot.front_bytes, false);
    if (!front) return false;
    area = bh__share_map(message.fds[1], 0, front->area_bytes, true);
    return area && pthread_create(&thread, NULL, answer_pings, NULL) == 0;
}

static void acknowledge_with(uint32_t serial, int fd) {
    static bh__message answer;
    memset(&answer, 0, sizeof answer);
    answer.type = BH__MSG_ACK;
    answer.serial = serial;
    bh__message_send(SOCKET, &answer, &fd, fd >= 0);
}

static void acknowledge(uint32_t serial) {
    acknowledge_with(serial, -1);
}

/* Memory that is not what was asked for, and that may shrink. */
static void make_short_chunk(uint32_t serial) {
    int fd = memfd_create("short", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ftruncate(fd, 4096) == 0) acknowledge_with(serial, fd);
    close(fd);
}

/* 150 MB of text. */
static void print_much(void) {
    static bh__message text = {.type = BH__MSG_PRINT, .data_bytes = BH__MESSAGE_BYTES};
    memset(text.data, 'x', sizeof text.data);
    for (int i = 0; i < 3000; i++) bh__message_send(SOCKET, &text, NULL, 0);
}

/* Answers each order that comes in and leaves it where it is. */
static void answer_unheard(uint32_t last) {
    int waiting = 0;
    for (int answered = 0;; usleep(100)) {
        ioctl(SOCKET, FIONREAD, &waiting);
        while (answered < waiting / (int)offsetof(bh__message, fds))
            acknowledge(last + (uint32_t)++answered);
    }
}

/* Lives and is told what there is; once it is the active worker it does not do what it is told. */
static void serve(const char *how) {
    bool active = false;
    while (bh__message_receive(SOCKET, &message) == 0) {
        bh__message_close_fds(&message);
        if (message.type == BH__MSG_GO) {
            active = true;
            while (strcmp(how, "flood") == 0) fputs("the worker has much to say\n", stderr);
            if (strcmp(how, "print") == 0) print_much();
            if (strcmp(how, "unheard") == 0) answer_unheard(message.serial);
            continue;
        }
        if (active && strcmp(how, "deaf") == 0) continue;
        if (active && strcmp(how, "chunk") == 0 && message.type == BH__MSG_CHUNK_CREATE) {
            make_short_chunk(message.serial);
            continue;
        }
        bool wrong = active && strcmp(how, "serial") == 0;
        acknowledge(wrong ? message.serial + 5 : message.serial);
        if (active && strcmp(how, "twice") == 0) acknowledge(message.serial);
    }
}

int main(void) {
    const char *how = getenv("BULKHEAD_TEST_IMPOSTOR");
    if (how == NULL) {
        fprintf(stderr, "not a worker\n");
        return 9;
    }
    if (!is_impostor()) become_real();
    if (strcmp(how, "hang") == 0)
        for (;;) pause();
    if (strcmp(how, "die") == 0) raise(SIGABRT);
    if (strcmp(how, "close") == 0) {
        close(SOCKET);
        for (;;) pause();
    }
    if (bh__message_receive(SOCKET, &message) != 0) return 8;
    uint64_t magic = message.u.boot.magic;
    uint32_t version = message.u.boot.version;
    if (strcmp(how, "version") == 0) answer_ready(magic, version + 1);
    if (strcmp(how, "magic") == 0) answer_ready(~magic, version);
    if (strcmp(how, "noise") == 0) {
        char noise[1000];
        memset(noise, 0xa5, sizeof noise);
        for (int i = 0; i < 5; i++) send(SOCKET, noise, sizeof noise, MSG_NOSIGNAL);
    }
    if (strcmp(how, "ready") == 0) {
        answer_ready(magic, version);
        return 0; /* promised and gone */
    }
    bool lives = strcmp(how, "deaf") == 0 || strcmp(how, "serial") == 0 ||
                 strcmp(how, "twice") == 0 || strcmp(how, "flood") == 0 ||
                 strcmp(how, "chunk") == 0 || strcmp(how, "print") == 0 ||
                 strcmp(how, "unheard") == 0;
    if (lives && start_pulse()) {
        answer_ready(magic, version);
        serve(how);
        return 0;
    }
    if (strcmp(how, "silent") == 0) answer_ready(magic, version);
    if (strcmp(how, "refuse") == 0) {
        memset(&message, 0, sizeof message);
        message.type = BH__MSG_REFUSED;
        message.u.error.status = BH_E_NO_DEVICE;
        snprintf(message.u.error.message, sizeof message.u.error.message,
                 "the flux is not capacitated");
        snprintf(message.u.error.fix, sizeof message.u.error.fix, "capacitate it");
        send(SOCKET, &message, offsetof(bh__message, fds), MSG_NOSIGNAL);
        return 1;
    }
    for (;;) pause();
}
