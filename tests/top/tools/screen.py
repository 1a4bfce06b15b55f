# SPDX-License-Identifier: Apache-2.0
"""Uses `bulkhead top` on a terminal as a person does."""

import os
import re
import signal
import subprocess
import sys

from terminal import Terminal

bulkhead, busy = sys.argv[1:3]


def check(holds, what, terminal):
    if not holds:
        raise SystemExit("%s\n%s" % (what, terminal.text()))


def quit_cleanly(t):
    t.type("q")
    status = t.end()
    check(status == 0, "exit status %d" % status, t)
    check(not t.unknown, "unknown sequences: %s" % t.unknown, t)
    check(b"\x1b[?1049l" in t.raw or b"\x1b[?47l" in t.raw, "the screen was not given back", t)


environment = {"TERM": "xterm", "LC_ALL": "C.UTF-8"}
empty = Terminal([bulkhead, "top"], environment=environment)
empty.wait_for("No device of this user is open")
quit_cleanly(empty)

programs = [subprocess.Popen([busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
for program in programs:
    assert program.stdout.readline() == b"ready\n"

t = Terminal([bulkhead, "top", "-i", "0.2", "-s", "pid"], rows=30, columns=130, environment=environment)
t.wait_for(r"2 devices  by pid")
t.wait_for(r"^ +%d busy +cpu +\d+ +2 +1 " % programs[0].pid)
t.wait_for(r" busy .* [\d.]+k? +\d+% +260 KiB +ok.*[▁-█]")
check(t.colors, "no colours", t)
first = min(program.pid for program in programs)
check(t.text().index("%d busy" % first) < t.text().index("%d busy" % max(p.pid for p in programs)), "order", t)

t.type("\x1bOB\r")  # down, enter
t.wait_for(r"process %d, compartment 0" % max(p.pid for p in programs))
t.wait_for(r"^ +\d+ +\d+ +\S.* iota$")
t.wait_for(r"^ +256 KiB +1 .* weights$")
t.wait_for(r"trap")
t.wait_for(r"LANE +REQUESTS")
t.type("\x1b")
t.wait_for(r"PROGRAM +DEVICE")
t.type("m")
t.wait_for(r"by memory")
t.type("h")
t.wait_for(r"sort by the next column")
t.type(" ")
t.wait_for(r"PROGRAM +DEVICE")
t.type(" ")
t.wait_for(r"\(paused\)")
t.type(" ")
for rows, columns in ((12, 60), (3, 20), (1, 1), (50, 200)):
    t.resize(rows, columns)
    t.read(0.15)
t.wait_for(r"2 devices")
check(max(len(line) for line in t.text().split("\n")) > 120, "not as wide as the terminal", t)

programs[0].stdin.close()
check(programs[0].wait() == 0, "busy failed", t)
t.wait_for(r"1 device ")
os.kill(programs[1].pid, signal.SIGKILL)
programs[1].wait()
t.wait_for(r"No device of this user is open")
quit_cleanly(t)

plain = Terminal([bulkhead, "top"], environment=dict(environment, NO_COLOR="1", LC_ALL="C"))
plain.wait_for("bulkhead top")
plain.type("\x03")
check(plain.end() == 0, "ctrl-c", plain)
check(not plain.colors, "colours with NO_COLOR", plain)

# ncurses keeps what it allocated before it refuses.
leaky = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
wrong = Terminal([bulkhead, "top"], environment=dict(environment, TERM="no-such-terminal", ASAN_OPTIONS=leaky))
check(wrong.end() == 1, "an unknown terminal", wrong)
check("Fix: set TERM" in wrong.text(), "no Fix", wrong)
