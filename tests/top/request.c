/* SPDX-License-Identifier: Apache-2.0 */
/* The request reader of `bulkhead serve`, addresses, and whose a connection is. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../harness/test.h"
#include "cli/serve/serve.h"

static int read_request(const char *text, bh__request *out) {
    return bh__request_read(text, strlen(text), out);
}

#define HOST "Host: localhost:8077\r\n"

TEST(good_requests_are_taken) {
    bh__request r;
    CHECK_EQ(read_request("GET / HTTP/1.1\r\n" HOST "\r\n", &r), 200);
    CHECK_STR_EQ(r.path, "/");
    CHECK_STR_EQ(r.host, "localhost");
    CHECK(!r.head);
    CHECK_EQ(read_request("HEAD /json HTTP/1.0\r\nhOST: [::1]:99\r\n\r\n", &r), 200);
    CHECK(r.head);
    CHECK_STR_EQ(r.host, "[::1]");
    CHECK_EQ(
        read_request("GET /trace?x=1&name=a%20b+%2B%2F.json&token=t HTTP/1.1\r\n" HOST "\r\n", &r),
        200);
    CHECK_STR_EQ(r.path, "/trace");
    CHECK_STR_EQ(r.name, "a b +/.json");
    CHECK_STR_EQ(r.token, "t");
    CHECK_EQ(read_request("GET / HTTP/1.1\r\n" HOST "Authorization: bearer abc\r\n\r\n", &r), 200);
    CHECK_STR_EQ(r.token, "abc");
    CHECK_EQ(read_request("GET / HTTP/1.1\r\nHost: EXAMPLE.org\r\n\r\n", &r), 200);
    CHECK_STR_EQ(r.host, "example.org");
}

TEST(bad_requests_are_refused_with_what_they_are) {
    static const struct {
        int status;
        const char *text;
    } cases[] = {
        {400, "\r\n\r\n"},
        {400, "GET\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1 \r\n" HOST "\r\n"},
        {400, "GET /\x80 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /#a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET http://a/ HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET * HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / http/1.1\r\n" HOST "\r\n"},
        {505, "GET / HTTP/2.0\r\n" HOST "\r\n"},
        {405, "POST / HTTP/1.1\r\n" HOST "\r\n"},
        {405, "get / HTTP/1.1\r\n" HOST "\r\n"},
        {405, "CONNECT a:80 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST HOST "\r\n"},
        {400, "GET / HTTP/1.1\r\nHost:\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:80:80\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: [::1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a:x\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost : a\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST " folded\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "no colon\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST ": no name\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\x01\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "A: b\nB: c\r\n\r\n"},
        {413, "GET / HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nabcde"},
        {413, "GET / HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"},
        {400, "GET /?name=%00 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /?name=%0a HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /?name=%4 HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /?name=%zz HTTP/1.1\r\n" HOST "\r\n"},
        {400, "GET /?name=a&name=b HTTP/1.1\r\n" HOST "\r\n"},
        {404, "GET /aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa HTTP/1.1"
              "\r\n" HOST "\r\n"},
        {0, "GET / HTTP/1.1\r\n" HOST},
        {0, "GET / HTTP/1.1\n" HOST "\n\n"},
        {0, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bh__request r;
        int status = read_request(cases[i].text, &r);
        if (status != cases[i].status)
            FAIL("%d, not %d: %s", status, cases[i].status, cases[i].text);
    }
}

TEST(long_requests_are_refused) {
    char text[BH__REQUEST_MAX + 100] = "GET / HTTP/1.1\r\n" HOST "A: ";
    bh__request r;
    memset(text + strlen(text), 'x', sizeof text - strlen(text));
    CHECK_EQ(bh__request_read(text, BH__REQUEST_MAX - 1, &r), 0);
    CHECK_EQ(bh__request_read(text, BH__REQUEST_MAX, &r), 431);
    size_t used = (size_t)sprintf(text, "GET / HTTP/1.1\r\n" HOST);
    for (int i = 0; i < 70; i++) used += (size_t)sprintf(text + used, "A: b\r\n");
    used += (size_t)sprintf(text + used, "\r\n");
    CHECK_EQ(bh__request_read(text, used, &r), 431);
}

TEST(addresses_are_taken_as_they_are_written) {
    bh__address a;
    char text[64];
    CHECK(bh__address_parse("8080", &a) && bh__address_is_local(&a));
    CHECK_EQ(bh__address_port(&a), 8080);
    CHECK(bh__address_parse("localhost:0", &a) && bh__address_is_local(&a));
    CHECK(bh__address_parse("0.0.0.0:80", &a) && !bh__address_is_local(&a));
    CHECK(bh__address_parse("[::1]:81", &a) && bh__address_is_local(&a));
    bh__address_text(&a, text);
    CHECK_STR_EQ(text, "[::1]");
    static const char *const wrong[] = {"",        "a",      "a:80",       "1.2.3:80", "127.0.0.1",
                                        "[::1]",   "::1:80", "1:65536",    "80x",      "-1",
                                        "[::1:80", ":80",    "127.0.0.1:", "[]:80",    "[::g]:80"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (bh__address_parse(wrong[i], &a)) FAIL("\"%s\" was taken", wrong[i]);
}

/* Both ends of a connection that this process makes with itself. */
TEST(a_connection_of_this_user_is_recognised) {
    bh__address own, peer;
    socklen_t size = sizeof own, peer_size = sizeof peer;
    REQUIRE(bh__address_parse("127.0.0.1:0", &own));
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(bind(listener, &own.any, sizeof own.v4) == 0 && listen(listener, 1) == 0);
    REQUIRE(getsockname(listener, &own.any, &size) == 0);
    REQUIRE(connect(client, &own.any, sizeof own.v4) == 0);
    int server = accept(listener, &peer.any, &peer_size);
    REQUIRE(server >= 0);
    CHECK(bh__peer_is_own(&peer, &own));
    FILE *table = fopen("/proc/net/tcp", "r");
    CHECK(!bh__peer_in_table(table, &peer, &own, geteuid() + 1));
    rewind(table);
    CHECK(!bh__peer_in_table(table, &own, &own, geteuid()));
    fclose(table);
    close(server), close(client), close(listener);
}
