/* SPDX-License-Identifier: Apache-2.0 */
/* `bulkhead serve`: the open devices as a web page. One thread, a few connections, one request
 * each. */
#include "cli/serve/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CONNECTIONS = 32,
    NAMES = 16,
    TOKEN = 32,
    READ_S = 5,   /* for the whole request */
    WRITE_S = 60, /* for the whole answer */
    DRAIN_S = 5,  /* for the client to close, after the answer */
    DRAIN_READS = 16
};

typedef struct connection {
    int fd; /* -1: none */
    bh__address peer;
    uint64_t deadline;
    char request[BH__REQUEST_MAX + 1];
    size_t read;
    char head[1024];
    size_t head_length, head_sent;
    bh__content content;
    size_t sent, to_send;
    bool draining; /* the whole answer was sent */
} connection;

typedef struct server {
    bh__site site;
    int listener;
    bh__address address;
    char token[128];
    const char *token_file;
    const char *names[NAMES]; /* that Host may have, besides those of this machine's loopback */
    size_t name_count;
    bool quiet;
    connection list[CONNECTIONS];
} server;

/* ---- who may ask ---- */

static bool same_token(const char *a, const char *b) {
    size_t length = strlen(a);
    if (length == 0 || length != strlen(b)) return false;
    unsigned different = 0;
    for (size_t i = 0; i < length; i++) different |= (unsigned char)(a[i] ^ b[i]);
    return different == 0;
}

/* A page of another site can make a browser ask here, under a name of its own. */
static bool knows_host(const server *self, const char *host) {
    char address[64];
    bh__address_text(&self->address, address);
    if (strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
        strcmp(host, "[::1]") == 0 || strcmp(host, address) == 0)
        return true;
    for (size_t i = 0; i < self->name_count; i++)
        if (strcasecmp(host, self->names[i]) == 0) return true;
    return false;
}

/* Asked for a whole request only: the system's table of connections can be long. */
static bool may_ask(const server *self, const connection *one, const bh__request *request) {
    bh__address own = {0};
    socklen_t size = sizeof own;
    return same_token(request->token, self->token) ||
           (getsockname(one->fd, &own.any, &size) == 0 && bh__peer_is_own(&one->peer, &own));
}

/* ---- answers ---- */

static const char *reason_of(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 401:
        return "Unauthorized";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 413:
        return "Content Too Large";
    case 421:
        return "Misdirected Request";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Bad Request";
    }
}

static void begin_answer(connection *one, bool head_only) {
    const bh__content *content = &one->content;
    int length = snprintf(
        one->head, sizeof one->head,
        "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n"
        "%s%sCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        "X-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n"
        "Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src "
        "'unsafe-inline'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'\r\n\r\n",
        content->status, reason_of(content->status), content->type, content->length,
        content->status == 405 ? "Allow: GET, HEAD\r\n" : "",
        content->status == 401 ? "WWW-Authenticate: Bearer\r\n" : "");
    one->head_length = length > 0 ? (size_t)length : 0;
    one->to_send = head_only ? 0 : content->length;
    one->deadline = bh__now_ns() + WRITE_S * UINT64_C(1000000000);
}

static void answer(server *self, connection *one, int status, const bh__request *request) {
    bh__content *out = &one->content;
    if (status == 200 && !knows_host(self, request->host))
        bh__content_text(out, 421,
                         "this name is not one of this server's: start it with --host NAME\n");
    else if (status == 200 && !may_ask(self, one, request))
        bh__content_text(out, 401,
                         "a token is needed: add ?token=TOKEN, which the server printed\n");
    else if (status == 200)
        bh__content_make(&self->site, request, out);
    else
        bh__content_text(out, status, "the request was refused\n");
    begin_answer(one, request->head);
}

/* ---- connections ---- */

static void drop(connection *one) {
    if (one->fd >= 0) close(one->fd);
    free(one->content.body);
    one->content = (bh__content){0};
    one->fd = -1;
}

static void take(server *self) {
    bh__address peer = {0};
    socklen_t size = sizeof peer;
    connection *one = NULL;
    for (size_t i = 0; i < CONNECTIONS && !one; i++)
        if (self->list[i].fd < 0) one = &self->list[i];
    int fd = accept4(self->listener, &peer.any, &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    if (!one) { /* not reached: the listener is not looked at then */
        close(fd);
        return;
    }
    memset(one, 0, sizeof *one);
    one->fd = fd;
    one->peer = peer;
    one->deadline = bh__now_ns() + READ_S * UINT64_C(1000000000);
}

static void read_more(server *self, connection *one) {
    bh__request request;
    ssize_t got = recv(one->fd, one->request + one->read, BH__REQUEST_MAX - one->read, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        drop(one);
        return;
    }
    one->read += (size_t)got;
    int status = bh__request_read(one->request, one->read, &request);
    if (status != 0) answer(self, one, status, &request);
}

/* Closing while bytes of the client are unread would reset the connection, and it could lose the
 * answer. So what it still sends is dropped until it closes or its time is over; a little at a
 * time, because others wait meanwhile. */
static void drain_more(connection *one) {
    char rest[4096];
    for (int i = 0; i < DRAIN_READS; i++) {
        ssize_t got = recv(one->fd, rest, sizeof rest, 0);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) {
            drop(one);
            return;
        }
    }
}

static void write_more(connection *one) {
    while (one->head_sent < one->head_length || one->sent < one->to_send) {
        bool head = one->head_sent < one->head_length;
        const char *from = head ? one->head + one->head_sent : one->content.body + one->sent;
        size_t left = head ? one->head_length - one->head_sent : one->to_send - one->sent;
        ssize_t some = send(one->fd, from, left, MSG_NOSIGNAL);
        if (some < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (some <= 0) {
            drop(one);
            return;
        }
        if (head)
            one->head_sent += (size_t)some;
        else
            one->sent += (size_t)some;
    }
    shutdown(one->fd, SHUT_WR);
    free(one->content.body);
    one->content = (bh__content){0};
    one->draining = true;
    one->deadline = bh__now_ns() + DRAIN_S * UINT64_C(1000000000);
    drain_more(one);
}

static volatile sig_atomic_t ended;

static void end_soon(int number) {
    (void)number;
    ended = 1;
}

static void serve_round(server *self) {
    struct pollfd look[CONNECTIONS + 1];
    connection *of[CONNECTIONS + 1];
    size_t count = 0;
    uint64_t now = bh__now_ns();
    int timeout = -1;
    for (size_t i = 0; i < CONNECTIONS; i++) {
        connection *one = &self->list[i];
        if (one->fd >= 0 && now >= one->deadline) drop(one);
        if (one->fd < 0) continue;
        int left = (int)((one->deadline - now) / 1000000 + 1);
        if (timeout < 0 || left < timeout) timeout = left;
        of[count] = one;
        bool writes = one->head_length && !one->draining;
        look[count++] =
            (struct pollfd){.fd = one->fd, .events = (short)(writes ? POLLOUT : POLLIN)};
    }
    size_t open = count;
    if (open < CONNECTIONS) look[count++] = (struct pollfd){.fd = self->listener, .events = POLLIN};
    if (poll(look, count, timeout) <= 0) return;
    for (size_t i = 0; i < open; i++) {
        if (!look[i].revents) continue;
        if (of[i]->draining)
            drain_more(of[i]);
        else if (of[i]->head_length)
            write_more(of[i]);
        else
            read_more(self, of[i]);
    }
    if (count > open && look[open].revents) take(self);
}

/* ---- the token ---- */

static bool make_token(char out[128]) {
    uint8_t bytes[TOKEN / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + i * 2, 3, "%02x", bytes[i]);
    return true;
}

/* The file's first line. Others must not be able to read it. */
static bh_status read_token(const char *path, char out[128], bh_error *error) {
    bh__bytes file;
    struct stat info;
    if (stat(path, &info) == 0 && (info.st_mode & 077) != 0) {
        bh__report_set(error, BH_E_INVALID, "others may read the token in %.200s (mode %03o)", path,
                       (unsigned)(info.st_mode & 0777));
        return bh__report_fix(error, "chmod 600 the file, and change the token");
    }
    if (bh__file_read(path, &file, error) != BH_OK) return error->status;
    size_t length = strcspn((const char *)file.data, "\r\n");
    bool good = length >= 16 && length < 128;
    for (size_t i = 0; i < length && good; i++) good = file.data[i] > ' ' && file.data[i] <= '~';
    if (good) {
        memcpy(out, file.data, length);
        out[length] = '\0';
    }
    free(file.data);
    if (good) return BH_OK;
    bh__report_set(error, BH_E_INVALID,
                   "the token in %.200s has %zu characters; it must be 16 to 127 without spaces",
                   path, length);
    return bh__report_fix(
        error, "write one: head -c16 /dev/urandom | od -An -tx1 | tr -d ' ' > %.200s", path);
}

/* ---- starting ---- */

static bh_status refuse_socket(const bh__address *address, bh_error *error) {
    char text[64];
    int number = errno;
    bh__address_text(address, text);
    bh__report_set(error, BH_E_IO, "cannot listen on %s:%u: %s", text, bh__address_port(address),
                   strerror(number));
    return bh__report_fix(error, number == EADDRINUSE
                                     ? "choose another port with --listen, 0 for any that is free"
                                     : "use an address of this machine and a port above 1023");
}

static bh_status start_listening(server *self, bh_error *error) {
    int one = 1;
    socklen_t size =
        self->address.any.sa_family == AF_INET6 ? sizeof self->address.v6 : sizeof self->address.v4;
    self->listener =
        socket(self->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->listener < 0) return refuse_socket(&self->address, error);
    setsockopt(self->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(self->listener, &self->address.any, size) != 0 || listen(self->listener, 64) != 0)
        return refuse_socket(&self->address, error);
    size = sizeof self->address;
    getsockname(self->listener, &self->address.any, &size);
    return BH_OK;
}

static void announce(const server *self) {
    char text[64];
    bool local = bh__address_is_local(&self->address);
    bh__address_text(&self->address, text);
    printf("http://%s:%u/%s%s\n", text, bh__address_port(&self->address),
           local ? "" : "?token=", local ? "" : self->token);
    if (self->quiet) {
        fflush(stdout);
        return;
    }
    printf("Metrics for Prometheus are at /metrics. ");
    if (self->token_file)
        printf("Other users and machines need the token in %s.\n", self->token_file);
    else
        printf("Other users and machines need the token %s\n", self->token);
    fflush(stdout);
}

enum { HELP = 1, LISTEN, TOKEN_FILE, HOST, TRACES, REPORTS, INTERVAL, QUIET };

static const bh__option table[] = {
    {'h', "help", NULL, HELP},
    {'l', "listen", "[ADDRESS:]PORT", LISTEN},
    {0, "token-file", "FILE", TOKEN_FILE},
    {0, "host", "NAME", HOST},
    {0, "traces", "FOLDER", TRACES},
    {0, "reports", "FOLDER", REPORTS},
    {'i', "interval", "SECONDS", INTERVAL},
    {'q', "quiet", NULL, QUIET},
};

static bool check_folder(const char *path, bh_error *error) {
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode) && access(path, R_OK | X_OK) == 0)
        return true;
    bh__report_set(error, BH_E_INVALID, "%.300s is not a folder that can be read", path);
    bh__report_fix(error, "name an existing folder");
    return false;
}

static bool take_option(server *self, int id, const char *value, bh_error *error) {
    switch (id) {
    case LISTEN:
        if (bh__address_parse(value, &self->address)) return true;
        bh__report_set(error, BH_E_INVALID, "\"%.60s\" is not an address and a port", value);
        bh__report_fix(error, "write for example --listen 8080, 0.0.0.0:8080 or [::1]:8080");
        return false;
    case TOKEN_FILE:
        self->token_file = value;
        return true;
    case HOST:
        if (self->name_count < NAMES) {
            self->names[self->name_count++] = value;
            return true;
        }
        bh__report_set(error, BH_E_INVALID, "more than %d names with --host", NAMES);
        bh__report_fix(error, "name only those under which this server is reached");
        return false;
    case TRACES:
        self->site.traces = value;
        return check_folder(value, error);
    case REPORTS:
        self->site.reports = value;
        return check_folder(value, error);
    case QUIET:
        self->quiet = true;
        return true;
    case INTERVAL:
        return bh__timeout_parse(value, 0.1, &self->site.interval_ns, error) == BH_OK;
    case BH__OPTIONS_OPERAND:
        bh__report_set(error, BH_E_INVALID,
                       "bulkhead serve takes no arguments, \"%.100s\" was given", value);
        bh__report_fix(error, "remove it; \"bulkhead serve --help\" has more");
        return false;
    default:
        return false;
    }
}

static int run(server *self) {
    bh_error error = {0};
    bool made = make_token(self->token);
    if (!made) {
        bh__report_set(&error, BH_E_IO, "the system gives no random numbers for the token");
        bh__report_fix(&error, "pass --token-file FILE");
    }
    bool ready =
        (self->token_file ? read_token(self->token_file, self->token, &error) == BH_OK : made) &&
        start_listening(self, &error) == BH_OK;
    if (!ready) {
        bh__report_print(&error);
        return BH__EXIT_REFUSED;
    }
    struct sigaction end = {.sa_handler = end_soon};
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGINT, &end, NULL);
    announce(self);
    while (!ended) serve_round(self);
    for (size_t i = 0; i < CONNECTIONS; i++) drop(&self->list[i]);
    close(self->listener);
    return BH__EXIT_DONE;
}

int bh__serve_main(int count, char **list) {
    server *self = calloc(1, sizeof *self);
    bh__options words = {.command = "serve",
                         .table = table,
                         .table_count = sizeof table / sizeof *table,
                         .list = list,
                         .count = count};
    bh_error error;
    if (!self) return BH__EXIT_REFUSED;
    self->site.interval_ns = 1000000000;
    self->listener = -1;
    bh__address_parse("127.0.0.1:8077", &self->address);
    for (size_t i = 0; i < CONNECTIONS; i++) self->list[i].fd = -1;
    int code = -1;
    while (code < 0) {
        const char *value = NULL;
        int id = bh__options_next(&words, &value, &error);
        if (id == HELP) {
            bh__help_print(stdout, "serve");
            code = BH__EXIT_DONE;
        } else if (id == BH__OPTIONS_END) {
            code = run(self);
        } else if (!take_option(self, id, value, &error)) {
            code = bh__report_usage(&error);
        }
    }
    bh__view_free(&self->site.view);
    free(self);
    return code;
}
