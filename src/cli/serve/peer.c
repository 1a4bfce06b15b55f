/* SPDX-License-Identifier: Apache-2.0 */
/* Who is at the other end of a connection. Everybody who has an account on this machine can connect
 * to its loopback address; the system's table of connections says which user it is. */
#include "cli/serve/serve.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_v6(const bh__address *address) {
    return address->any.sa_family == AF_INET6;
}

bool bh__address_is_local(const bh__address *address) {
    if (is_v6(address)) return IN6_IS_ADDR_LOOPBACK(&address->v6.sin6_addr);
    return ntohl(address->v4.sin_addr.s_addr) >> 24 == 127;
}

uint16_t bh__address_port(const bh__address *address) {
    return ntohs(is_v6(address) ? address->v6.sin6_port : address->v4.sin_port);
}

void bh__address_text(const bh__address *address, char out[64]) {
    char text[INET6_ADDRSTRLEN] = "?";
    const void *from =
        is_v6(address) ? (const void *)&address->v6.sin6_addr : (const void *)&address->v4.sin_addr;
    inet_ntop(address->any.sa_family, from, text, sizeof text);
    snprintf(out, 64, is_v6(address) ? "[%s]" : "%s", text);
}

static bool parse_port(const char *text, uint16_t *out) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    unsigned long port = strtoul(text, &end, 10);
    *out = (uint16_t)port;
    return *end == '\0' && port <= 65535;
}

bool bh__address_parse(const char *text, bh__address *out) {
    char host[64];
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0;
    uint16_t number;
    memset(out, 0, sizeof *out);
    if (!parse_port(port, &number) || length >= sizeof host) return false;
    memcpy(host, text, length);
    host[length] = '\0';
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(number);
        return inet_pton(AF_INET6, host + 1, &out->v6.sin6_addr) == 1;
    }
    const char *name = !colon || strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    out->v4.sin_family = AF_INET;
    out->v4.sin_port = htons(number);
    return inet_pton(AF_INET, name, &out->v4.sin_addr) == 1;
}

/* "0100007F:1F90": each word of the address as this machine stores it, and the port. */
static void as_in_table(const bh__address *address, char out[48]) {
    const uint8_t *bytes = is_v6(address) ? (const uint8_t *)&address->v6.sin6_addr
                                          : (const uint8_t *)&address->v4.sin_addr;
    size_t used = 0;
    for (size_t i = 0; i < (is_v6(address) ? 4u : 1u); i++) {
        uint32_t word;
        memcpy(&word, bytes + i * 4, sizeof word);
        used += (size_t)snprintf(out + used, 48 - used, "%08X", word);
    }
    snprintf(out + used, 48 - used, ":%04X", bh__address_port(address));
}

bool bh__peer_in_table(FILE *table, const bh__address *peer, const bh__address *own, uid_t user) {
    char here[48], there[48], line[512];
    as_in_table(peer, here);
    as_in_table(own, there);
    while (fgets(line, sizeof line, table)) {
        char from[48], to[48];
        unsigned long owner;
        /* sl local rem st tx:rx tr:when retrnsmt uid. 01: established; a socket that its process
         * has closed would be shown as root's. */
        if (sscanf(line, " %*[0-9]: %47s %47s 01 %*s %*s %*s %lu", from, to, &owner) == 3 &&
            strcmp(from, here) == 0 && strcmp(to, there) == 0)
            return owner == user;
    }
    return false;
}

bool bh__peer_is_own(const bh__address *peer, const bh__address *own) {
    if (!bh__address_is_local(peer)) return false;
    FILE *table = fopen(is_v6(peer) ? "/proc/net/tcp6" : "/proc/net/tcp", "re");
    bool found = table && bh__peer_in_table(table, peer, own, geteuid());
    if (table) fclose(table);
    return found;
}
