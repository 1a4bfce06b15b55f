/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for a worker program and misbehaves while booting, as BULKHEAD_TEST_IMPOSTOR says. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "wire/message.h"

enum { SOCKET = 3 };

static bh__message message;

static void answer_ready(uint64_t magic, uint32_t version) {
    memset(&message, 0, sizeof message);
    message.type = BH__MSG_READY;
    message.u.ready.magic = magic;
    message.u.ready.version = version;
    message.u.ready.pid = (int32_t)getpid();
    message.u.ready.chunk_granularity = 4096;
    send(SOCKET, &message, offsetof(bh__message, fds), MSG_NOSIGNAL);
}

int main(void) {
    const char *how = getenv("BULKHEAD_TEST_IMPOSTOR");
    if (how == NULL) {
        fprintf(stderr, "not a worker\n");
        return 9;
    }
    if (strcmp(how, "hang") == 0)
        for (;;) pause();
    if (strcmp(how, "die") == 0) raise(SIGABRT);
    if (strcmp(how, "close") == 0) {
        close(SOCKET);
        for (;;) pause();
    }
    if (recv(SOCKET, &message, sizeof message, 0) < (ssize_t)offsetof(bh__message, fds)) return 8;
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
