# SPDX-License-Identifier: Apache-2.0
"""Asks `bulkhead serve` as browsers, Prometheus and attackers do."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time

bulkhead, busy, folder = sys.argv[1:4]
failures = []


def check(holds, what):
    if not holds:
        failures.append(what)
        print(what)


class Server:
    def __init__(self, *options, listen="0"):
        self.process = subprocess.Popen([bulkhead, "serve", "-l", listen, *options], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self.first = self.process.stdout.readline()
        found = re.match(r"http://([\d.]+):(\d+)/", self.first)
        if not found:
            raise SystemExit("no address: %r %r" % (self.first, self.process.stderr.read()))
        self.port = int(found.group(2))
        self.second = self.process.stdout.readline()
        found = re.search(r"token ([0-9a-f]{32})$", self.second.strip())
        self.token = found.group(1) if found else ""

    def connect(self, address="127.0.0.1"):
        s = socket.create_connection((address, self.port), timeout=10)
        return s

    def raw(self, text, address="127.0.0.1"):
        with self.connect(address) as s:
            s.sendall(text if isinstance(text, bytes) else text.encode())
            answer = b""
            while True:
                try:
                    some = s.recv(65536)
                except ConnectionResetError:
                    break
                if not some:
                    break
                answer += some
        return answer

    def get(self, path, host=None, method="GET", more="", address="127.0.0.1"):
        host = host or "localhost:%d" % self.port
        answer = self.raw("%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (method, path, host, more), address)
        head, _, body = answer.partition(b"\r\n\r\n")
        status = int(head.split(b" ")[1]) if head else 0
        return status, head.decode(), body

    def end(self):
        self.process.terminate()
        check(self.process.wait(10) == 0, "the server's exit status")
        check(self.process.stderr.read() == "", "it wrote errors")


program = subprocess.Popen([busy, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
assert program.stdout.readline() == b"ready\n"
with open(folder + "/.secret.json", "w") as f:
    f.write("secret")
os.symlink("/etc/passwd", folder + "/link.json")
os.mkfifo(folder + "/pipe.json")
with open(folder + "/<img src=x onerror=alert(1)>.json", "w") as f:
    f.write("[]")

server = Server("--traces", folder, "--reports", folder)

# ---- what is there ----
status, head, body = server.get("/")
check(status == 200 and b"<!doctype html>" in body, "the page")
for line in ("Content-Security-Policy: default-src 'none'", "X-Content-Type-Options: nosniff", "X-Frame-Options: DENY"):
    check(line in head, "no " + line)
check(not re.search(rb'(src|href)="(?!data:)', body) and b"http://www.w3.org/2000/svg" in body
      and body.count(b"http") == 1, "the page names other places")
status, head, body = server.get("/json")
state = json.loads(body)
mine = [d for d in state["devices"] if d["pid"] == program.pid]
check(len(mine) == 1 and mine[0]["losses"] == 1 and mine[0]["kernels"][0]["name"] == "iota", "/json")
check(mine[0]["memory"]["tags"][0]["tag"] == "weights", "tags")
status, head, body = server.get("/json", method="HEAD")
check(status == 200 and body == b"" and "Content-Length: 0" not in head, "HEAD")
status, head, body = server.get("/metrics")
text = body.decode()
check("text/plain; version=0.0.4" in head, "type of /metrics")
check(re.search(r'^bulkhead_losses_total\{device="cpu:0",compartment="0",pid="%d",program="busy"\} 1$' % program.pid,
                text, re.M), "/metrics")
check(len(re.findall(r"^# TYPE (\S+)", text, re.M)) == len(set(re.findall(r"^# TYPE (\S+)", text, re.M))), "families twice")
samples = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
check(len(samples) == len(set(samples)), "series twice")

reports = json.loads(server.get("/reports")[2])
check(len(reports) == 1, "reports: %s" % reports)
check(b"trap_now" in server.get("/report?name=" + reports[0]["name"])[2], "a report")
traces = [t["name"] for t in json.loads(server.get("/traces")[2])]
check(sorted(traces) == ["<img src=x onerror=alert(1)>.json", "busy.json"], "traces: %s" % traces)
check(b"iota" in server.get("/trace?name=busy.json")[2], "a trace")

# ---- what is not ----
for path in ("/trace?name=link.json", "/trace?name=pipe.json", "/trace?name=.secret.json", "/trace?name=none.json",
             "/trace?name=../busy.json", "/trace?name=..%2Fbusy.json", "/trace?name=/etc/passwd", "/trace",
             "/report?name=busy.json", "/report?name=/etc/passwd", "/etc/passwd", "/../etc/passwd", "/x"):
    check(server.get(path)[0] == 404, path)
check(server.get("/trace?name=a%00b.json")[0] == 400, "a zero byte")
for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"):
    check(server.get("/", method=method)[0] == 405, method)
for host in ("evil.example", "evil.example:%d" % server.port, "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1"):
    check(server.get("/json", host=host)[0] == 421, host)
for raw in (b"\0" * 100 + b"\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", b"GET /" + b"a" * 9000):
    answer = server.raw(raw)
    check(answer.startswith(b"HTTP/1.1 4"), "%r: %r" % (raw[:20], answer[:40]))
check(server.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\nGET /json HTTP/1.1\r\nHost: localhost\r\n\r\n").count(b"HTTP/1.1 ") == 1,
      "a second request in the same connection")

# ---- those who hold connections ----
held = [server.connect() for _ in range(31)]
for s in held[:10]:
    s.sendall(b"GET / HT")
start = time.monotonic()
check(server.get("/json")[0] == 200 and time.monotonic() - start < 2, "31 silent connections stop the others")
for s in held[:10]:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
for s in held:
    s.close()
for _ in range(300):
    server.connect().close()
check(server.get("/json")[0] == 200, "after 300 connections")
check(os.stat("/proc/%d/fd" % server.process.pid) and len(os.listdir("/proc/%d/fd" % server.process.pid)) < 30, "descriptors")
with server.connect() as s:
    s.sendall(b"GET /json HTTP/1.1\r\nHost: loc")
    time.sleep(0.05)
    s.sendall(b"alhost\r\n\r\n")
    check(s.recv(100).startswith(b"HTTP/1.1 200"), "a request in pieces")



class Pump(threading.Thread):
    """Sends a bad request, and then whatever the server takes."""

    def __init__(self):
        super().__init__()
        self.lasted = 0
        self.answer = b""
        self.stop = False
        self.s = server.connect()
        self.start()

    def run(self):
        try:
            self.s.sendall(b"GET / HTTP/9.9\r\n\r\n")
            start = time.monotonic()
            while not self.stop:
                self.s.sendall(b"x" * 500000)
                self.lasted = time.monotonic() - start
            self.s.shutdown(socket.SHUT_WR)
            while some := self.s.recv(65536):
                self.answer += some
        except OSError as error:
            self.answer += str(error).encode()
        self.s.close()


pumps = [Pump() for _ in range(3)]
time.sleep(0.2)
slowest = 0
for _ in range(10):
    start = time.monotonic()
    check(server.get("/metrics")[0] == 200, "while others pump")
    slowest = max(slowest, time.monotonic() - start)
    time.sleep(0.05)
for pump in pumps:
    pump.stop = True
for pump in pumps:
    pump.join(20)
    check(not pump.is_alive() and pump.lasted > 0.3, "one who pumps is sent away after %.2f s" % pump.lasted)
    check(re.match(rb"HTTP/1.1 505 (.|\r|\n)*\r\n\r\nthe request was refused\n$", pump.answer),
          "one who pumps gets %r" % pump.answer[:200])
check(slowest < 2, "an answer took %.1f s while others pump" % slowest)

# One that has its answer and never closes.
stays = server.connect()
stays.sendall(b"GET / HTTP/9.9\r\n\r\n")
stays_since = time.monotonic()

# ---- other users ----
if os.geteuid() == 0:
    def as_other(path, more=""):
        child = subprocess.run([sys.executable, "-c", """
import os, socket, sys
assert socket.socket and "ascii".encode("ascii")
os.setresuid(12345, 12345, 12345)
s = socket.socket()
s.connect(("127.0.0.1", int(sys.argv[1])))
s.sendall(("GET %s HTTP/1.1\\r\\nHost: localhost\\r\\n%s\\r\\n" % (sys.argv[2], sys.argv[3])).encode())
print(s.recv(100).split(b" ")[1].decode())
""", str(server.port), path, more], capture_output=True, text=True)
        return child.stdout.strip() or child.stderr
    check(as_other("/json") == "401", "another user without a token: " + as_other("/json"))
    check(as_other("/json?token=" + server.token) == "200", "with the token")
    check(as_other("/json?token=" + server.token[:-1] + "0" * (server.token[-1] != "0") + "1" * (server.token[-1] == "0")) == "401", "with a wrong one")
    check(as_other("/json", "Authorization: Bearer %s\r\n" % server.token) == "200", "with the token as a header")

# ---- a folder of many files ----
many = folder + "/many"
os.mkdir(many)
for i in range(3500):
    path = "%s/%d.json" % (many, i * 7919 % 3500)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    os.utime(path, (0, 1000000 + i * 7919 % 3500))
crowded = Server("--traces", many)
names = [t["name"] for t in json.loads(crowded.get("/traces")[2])]
check(names == ["%d.json" % i for i in range(3499, 2499, -1)], "not the newest 1000: %s ..." % names[:5])
crowded.end()

while time.monotonic() < stays_since + 20:
    try:
        stays.send(b"x")
    except OSError:
        break
    time.sleep(0.05)
check(time.monotonic() - stays_since < 20, "one that never closes is never sent away")
server.end()

token_file = folder + "/token"
with open(token_file, "w") as f:
    f.write("0123456789abcdef0123\n")
os.chmod(token_file, 0o644)
refused = subprocess.run([bulkhead, "serve", "-l", "0", "--token-file", token_file], capture_output=True, text=True)
check(refused.returncode == 1 and "others may read the token" in refused.stderr and "Fix: " in refused.stderr, "a token for all")
os.chmod(token_file, 0o600)
everywhere = Server("--token-file", token_file, "--host", "gpu.example", listen="0.0.0.0:0")
check("0123456789" not in everywhere.second, "the token of a file is printed")
check(everywhere.get("/json", host="GPU.example:1")[0] == 200, "--host")
check(everywhere.get("/json", host="other.example")[0] == 421, "a name that was not given")
taken = subprocess.run([bulkhead, "serve", "-l", str(everywhere.port)], capture_output=True, text=True)
check(taken.returncode == 1 and "Fix: choose another port" in taken.stderr, "a port that is taken: " + taken.stderr)
everywhere.end()

program.stdin.close()
check(program.wait(10) == 0, "busy")
sys.exit(1 if failures else 0)
