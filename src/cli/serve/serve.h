/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `bulkhead serve` share. Nothing that a client sends is executed, and no path of
 * a client's is opened: it can only choose from lists. */
#ifndef BH_CLI_SERVE_SERVE_H
#define BH_CLI_SERVE_SERVE_H

#include "cli/cli.h"
#include "cli/top/top.h"

#include <netinet/in.h>

/* ---- request.c ---- */

enum { BH__REQUEST_MAX = 8192 };

typedef struct bh__request {
    bool head;       /* HEAD: the answer has no body */
    char path[64];   /* "/json" */
    char name[256];  /* the parameter name=, decoded; "": none */
    char token[128]; /* of "Authorization: Bearer", or the parameter token= */
    char host[256];  /* of the Host line, without a port, in small letters; "": none */
} bh__request;

/* Reads the head of a request. Returns 0: it is not complete yet; 200; or the status with which it
 * is refused. The text may be anything. */
int bh__request_read(const char *text, size_t length, bh__request *out);

/* ---- peer.c ---- */

typedef union bh__address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} bh__address;

bool bh__address_is_local(const bh__address *address);
/* "127.0.0.1:8080", "[::1]:0", "8080", "localhost:8080". */
bool bh__address_parse(const char *text, bh__address *out);
uint16_t bh__address_port(const bh__address *address);
/* "127.0.0.1", "[::1]". */
void bh__address_text(const bh__address *address, char out[64]);
/* True if the other end of a connection is a process of this user on this machine. */
bool bh__peer_is_own(const bh__address *peer, const bh__address *own);
/* Reads the table of connections that the system shows; a text so that it can be tested. */
bool bh__peer_in_table(FILE *table, const bh__address *peer, const bh__address *own, uid_t user);

/* ---- content.c ---- */

/* An answer. */
typedef struct bh__content {
    int status;
    const char *type;
    char *body; /* Owned. */
    size_t length;
} bh__content;

typedef struct bh__site {
    bh__view view;
    uint64_t looked_ns; /* when the devices were looked at last */
    uint64_t interval_ns;
    const char *traces, *reports; /* folders; NULL: none */
} bh__site;

/* Makes the answer to a request that is allowed. */
void bh__content_make(bh__site *site, const bh__request *request, bh__content *out);
void bh__content_text(bh__content *out, int status, const char *text);

/* The page (page.html). */
extern const char bh__page_html[], bh__page_html_end[];

#endif
