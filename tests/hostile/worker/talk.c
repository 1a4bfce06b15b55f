/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that are malformed, wrong, late, repeated, too many, or none. */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hostile.h"

#define HEAD_BYTES offsetof(bh__message, fds)

enum { MAX_ODD_FDS = 253 }; /* what the kernel takes with one message */

static int send_real(const bh__message *message, const int *fds, uint32_t fd_count) {
    return __real_bh__message_send(BH__WORKER_SOCKET, message, fds, fd_count);
}

/* A packet as it is, with any number of descriptors. */
static void send_raw(const void *packet, size_t bytes, const int *fds, uint32_t fd_count) {
    static _Thread_local union {
        struct cmsghdr head;
        char space[CMSG_SPACE(MAX_ODD_FDS * sizeof(int))];
    } control;
    struct iovec part = {(void *)(uintptr_t)packet, bytes};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd_count) {
        header.msg_control = &control;
        header.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(fd_count * sizeof(int));
        memcpy(CMSG_DATA(&control.head), fds, fd_count * sizeof(int));
    }
    sendmsg(BH__WORKER_SOCKET, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- answers that go wrong on their way ---- */

static int drop(const bh__message *message, const int *fds, uint32_t fd_count) {
    return one_in(2) ? 0 : send_real(message, fds, fd_count);
}

static int late(const bh__message *message, const int *fds, uint32_t fd_count) {
    nap_us(one_in(8) ? 400000 : 5000);
    return send_real(message, fds, fd_count);
}

static int twice(const bh__message *message, const int *fds, uint32_t fd_count) {
    (void)send_real(message, fds, fd_count);
    return send_real(message, fds, fd_count);
}

static int other_serial(const bh__message *message, const int *fds, uint32_t fd_count) {
    bh__message copy = *message;
    copy.serial = one_in(2) ? copy.serial + below(5) - 2 : (uint32_t)odd_number();
    return send_real(&copy, fds, fd_count);
}

static int other_type(const bh__message *message, const int *fds, uint32_t fd_count) {
    bh__message copy = *message;
    copy.type = one_in(2) ? BH__MSG_READY + below(8) : (uint32_t)odd_number();
    return send_real(&copy, fds, fd_count);
}

/* One is held back until the next has gone. */
static int reorder(const bh__message *message, const int *fds, uint32_t fd_count) {
    static bh__message held;
    static bool holds;
    (void)fds;
    if (!holds) {
        held = *message;
        holds = true;
        return 0;
    }
    int result = send_real(message, fds, fd_count);
    holds = false;
    (void)send_real(&held, NULL, 0);
    return result;
}

static int refuse(const bh__message *message, const int *fds, uint32_t fd_count) {
    bh__message copy = *message;
    (void)fds;
    (void)fd_count;
    if (copy.type != BH__MSG_ACK) return send_real(message, fds, fd_count);
    memset(&copy.u.error, (int)below(256), sizeof copy.u.error); /* no text ends */
    copy.u.error.status = one_in(2) ? (bh_status)(1 + below(24)) : (bh_status)odd_number();
    return send_real(&copy, NULL, 0);
}

static int spoil_head(const bh__message *message, const int *fds, uint32_t fd_count) {
    bh__message copy = *message;
    for (uint32_t i = 0, n = 1 + below(12); i < n; i++)
        ((uint8_t *)&copy)[below((uint32_t)HEAD_BYTES)] = (uint8_t)odd_number();
    copy.data_bytes = message->data_bytes;
    return send_real(&copy, fds, fd_count);
}

static int spoil_data(const bh__message *message, const int *fds, uint32_t fd_count) {
    bh__message copy = *message;
    if (one_in(2)) copy.data_bytes = below(BH__MESSAGE_BYTES);
    fill_random(copy.data, copy.data_bytes);
    return send_real(&copy, fds, fd_count);
}

static int cut(const bh__message *message, const int *fds, uint32_t fd_count) {
    send_raw(message, below((uint32_t)HEAD_BYTES), fds, fd_count);
    return 0;
}

static int too_long(const bh__message *message, const int *fds, uint32_t fd_count) {
    static uint8_t packet[3 * BH__MESSAGE_BYTES];
    memcpy(packet, message, HEAD_BYTES);
    send_raw(packet, HEAD_BYTES + 1 + below(2 * BH__MESSAGE_BYTES), fds, fd_count);
    return 0;
}

static int without_fds(const bh__message *message, const int *fds, uint32_t fd_count) {
    (void)fds;
    (void)fd_count;
    return send_real(message, NULL, 0);
}

static int other_fds(const bh__message *message, const int *fds, uint32_t fd_count) {
    int odd[BH__MESSAGE_FDS];
    uint32_t count = 1 + (one_in(2) ? below(BH__MESSAGE_FDS) : 0), made = 0;
    (void)fds;
    (void)fd_count;
    while (made < count && (odd[made] = odd_descriptor()) >= 0) made++;
    int result = send_real(message, odd, made);
    while (made > 0) close(odd[--made]);
    return result;
}

static int too_many_fds(const bh__message *message, const int *fds, uint32_t fd_count) {
    int odd[MAX_ODD_FDS];
    uint32_t count = BH__MESSAGE_FDS + 1 + below(MAX_ODD_FDS - BH__MESSAGE_FDS - 1);
    (void)fds;
    (void)fd_count;
    int one = odd_descriptor();
    if (one < 0) return 0;
    for (uint32_t i = 0; i < count; i++) odd[i] = one;
    send_raw(message, HEAD_BYTES, odd, count);
    close(one);
    return 0;
}

/* A file that is long when it is sent, and short soon after. */
static int shrinking_fd(const bh__message *message, const int *fds, uint32_t fd_count) {
    (void)fds;
    if (fd_count == 0) return send_real(message, fds, 0);
    int file = memory_file(UINT64_C(1) << 22, 0);
    int result = send_real(message, &file, 1);
    nap_us(300);
    int ignored = ftruncate(file, (off_t)below(4096));
    (void)ignored;
    close(file);
    return result;
}

/* ---- unasked ---- */

static bh__message *blank(uint32_t type) {
    static bh__message message;
    memset(&message, 0, HEAD_BYTES);
    message.type = type;
    return &message;
}

static void any_message(void) {
    bh__message *message = blank(0);
    fill_random(message, HEAD_BYTES);
    message->type =
        one_in(3) ? below(20) : BH__MSG_READY + below(BH__MSG_REPLIES_END - BH__MSG_READY);
    message->serial = atomic_load(&hostile.last_serial) + below(4) - 1;
    message->data_bytes = one_in(2) ? 0 : below(BH__MESSAGE_BYTES);
    if (one_in(2)) {
        (void)other_fds(message, NULL, 0);
    } else {
        (void)send_real(message, NULL, 0);
    }
}

static void noise(void) {
    uint8_t packet[3000];
    fill_random(packet, sizeof packet);
    send_raw(packet, below(sizeof packet), NULL, 0);
}

static void empty_packets(void) {
    for (uint32_t i = 0; i < 20; i++) send_raw("", 0, NULL, 0);
}

static void ready_again(void) {
    bh__message *message = blank(BH__MSG_READY);
    message->u.ready.magic = BH__WIRE_MAGIC;
    message->u.ready.version = BH__WIRE_VERSION;
    message->u.ready.chunk_granularity = odd_number();
    (void)other_fds(message, NULL, 0);
}

static void refused_late(void) {
    if (atomic_load(&hostile.last_serial) == 0) return; /* it has only just started */
    bh__message *message = blank(BH__MSG_REFUSED);
    memset(&message->u.error, 'x', sizeof message->u.error);
    (void)send_real(message, NULL, 0);
}

static void faults_without_report(void) {
    (void)send_real(blank(BH__MSG_FAULT), NULL, 0);
}

static void flood(uint32_t type, uint32_t count, uint32_t bytes) {
    bh__message *message = blank(type);
    message->data_bytes = bytes;
    memset(message->data, one_in(2) ? 'f' : 0x1b, bytes);
    for (uint32_t i = 0; i < count; i++)
        if (send_real(message, NULL, 0) != 0) nap_us(100);
}

static void flood_text(void) {
    flood(BH__MSG_PRINT, 200, BH__MESSAGE_BYTES);
}
static void flood_states(void) {
    flood(BH__MSG_STATE, 1 + below(3), below(BH__MESSAGE_BYTES));
}
/* Texts without an end, and with what a terminal obeys. */
static void findings(void) {
    bh__message *message = blank(BH__MSG_FINDING);
    uint32_t count = below(2 + BH__MESSAGE_BYTES / sizeof(bh_finding));
    message->data_bytes = count * (uint32_t)sizeof(bh_finding) + (one_in(8) ? below(100) : 0);
    memset(message->data, one_in(2) ? 0x1b : 0xff, message->data_bytes);
    for (uint32_t i = 1 + below(5); i > 0; i--) (void)send_real(message, NULL, 0);
    if (one_in(4)) (void)send_real(blank(BH__MSG_FAULT), NULL, 0);
}

static void flood_notes(void) {
    flood(BH__MSG_NOTE, 200, 1 + below(BH__MESSAGE_BYTES));
}
static void flood_reports(void) {
    flood(BH__MSG_REPORT, 2000, 0);
}
static void flood_answers(void) {
    flood(BH__MSG_ACK, 50, 0);
}

static void flood_errors(void) {
    char line[4096];
    memset(line, 'e', sizeof line);
    for (int i = 0; i < 500; i++) {
        ssize_t ignored = write(2, line, 1 + below(sizeof line));
        (void)ignored;
    }
}

/* ---- orders that it does not hear ---- */

/* It answers what it only peeked at: nothing ever leaves the socket, which is full some day. */
static void answers_unheard(void) {
    static bh__message order;
    int offset = 0;
    setsockopt(BH__WORKER_SOCKET, SOL_SOCKET, SO_PEEK_OFF, &offset, sizeof offset);
    for (;;) {
        while (recv(BH__WORKER_SOCKET, &order, sizeof order, MSG_PEEK | MSG_DONTWAIT) > 0) {
            if (order.type == BH__MSG_GO) continue; /* is not answered */
            bh__message *answer = blank(BH__MSG_ACK);
            int file = memory_file(1 << 22, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
            answer->serial = order.serial;
            (void)send_real(answer, &file, order.type == BH__MSG_CHUNK_CREATE);
            close(file);
        }
        nap_us(500);
    }
}

static void deaf(void) {
    for (;;) pause();
}

const hostility talks[] = {
    {.name = "drop", .send = drop},
    {.name = "late", .send = late},
    {.name = "twice", .send = twice},
    {.name = "other_serial", .send = other_serial},
    {.name = "other_type", .send = other_type},
    {.name = "reorder", .send = reorder},
    {.name = "refuse", .send = refuse},
    {.name = "spoil_head", .send = spoil_head},
    {.name = "spoil_data", .send = spoil_data},
    {.name = "cut", .send = cut},
    {.name = "too_long", .send = too_long},
    {.name = "without_fds", .send = without_fds},
    {.name = "other_fds", .send = other_fds},
    {.name = "too_many_fds", .send = too_many_fds},
    {.name = "shrinking_fd", .send = shrinking_fd},
    {.name = "any_message", .strike = any_message},
    {.name = "noise", .strike = noise},
    {.name = "empty_packets", .strike = empty_packets},
    {.name = "ready_again", .strike = ready_again},
    {.name = "refused_late", .strike = refused_late},
    {.name = "faults_without_report", .strike = faults_without_report},
    {.name = "flood_text", .strike = flood_text},
    {.name = "flood_states", .strike = flood_states},
    {.name = "findings", .strike = findings},
    {.name = "flood_notes", .strike = flood_notes},
    {.name = "flood_reports", .strike = flood_reports},
    {.name = "flood_answers", .strike = flood_answers},
    {.name = "flood_errors", .strike = flood_errors},
    {.name = "answers_unheard", .receive = answers_unheard},
    {.name = "deaf", .receive = deaf},
};
const size_t talk_count = sizeof talks / sizeof *talks;
