# SPDX-License-Identifier: Apache-2.0
"""A small terminal: what a program on a pty has drawn, as lines of text."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time


class Terminal:
    """Runs a command on a pty and keeps its screen."""

    def __init__(self, command, rows=24, columns=100, environment=None):
        self.rows, self.columns = rows, columns
        self.clear()
        self.row = self.column = 0
        self.pending = ""
        self.raw = b""
        self.colors = False
        self.unknown = set()
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            self_environment = dict(os.environ, **(environment or {}))
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(command[0], command, self_environment)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def clear(self):
        self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        self.clear()
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def type(self, text):
        os.write(self.fd, text.encode())

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)

    # ---- what the program writes ----

    def read(self, seconds):
        """Takes what comes within this time. False: the program has ended."""
        end = time.monotonic() + seconds
        while True:
            left = end - time.monotonic()
            if left <= 0:
                return True
            if not select.select([self.fd], [], [], left)[0]:
                return True
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.raw += data
            self.feed(self.decoder.decode(data))

    def wait_for(self, pattern, seconds=10):
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text(), re.M):
            alive = self.read(0.05)
            if not alive or time.monotonic() > end:
                raise SystemExit("not on the screen: %s\n%s\n%s" % (pattern, self.text(), "" if alive else "ended"))

    def end(self, seconds=10):
        """Waits until the program ends; returns its exit status, or 128 + the signal."""
        stop = time.monotonic() + seconds
        while self.read(0.05) and time.monotonic() < stop:
            pass
        while time.monotonic() < stop:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status) & 255
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        raise SystemExit("the program does not end\n" + self.text())

    def feed(self, text):
        text, self.pending = self.pending + text, ""
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self.put(text[at])
                at += 1
                continue
            found = re.compile(r"\x1b(\[([?>]?)([0-9;]*)([@-~])|[()].|[=>78cDEMH])").match(text, at)
            if not found:
                self.pending = text[at:]
                if len(self.pending) > 64:
                    raise SystemExit("unknown sequence %r" % self.pending[:20])
                return
            if found.group(4):
                self.control(found.group(2), found.group(3), found.group(4))
            at = found.end()

    def put(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.row = min(self.row + 1, self.rows - 1)
        elif c == "\b":
            self.column = max(self.column - 1, 0)
        elif c >= " ":
            if self.row < self.rows and self.column < self.columns:
                self.cells[self.row][self.column] = c
            self.last = c
            self.column += 1

    def control(self, private, numbers, what):
        values = [int(n) if n else 0 for n in numbers.split(";")] if numbers else [0]
        one = values[0] or 1
        line = self.cells[min(self.row, self.rows - 1)]
        if private or what in "rhltn":
            return
        if what == "m":
            self.colors |= any(30 <= v <= 37 for v in values)
        elif what in "Hf":
            self.row = one - 1
            self.column = (values[1] if len(values) > 1 and values[1] else 1) - 1
        elif what == "A":
            self.row -= one
        elif what == "B":
            self.row += one
        elif what == "C":
            self.column += one
        elif what == "D":
            self.column -= one
        elif what == "G":
            self.column = one - 1
        elif what == "d":
            self.row = one - 1
        elif what == "J":
            if values[0] == 2:
                self.clear()
            else:
                line[self.column:] = [" "] * len(line[self.column:])
                for other in range(self.row + 1, self.rows):
                    self.cells[other] = [" "] * self.columns
        elif what == "K":
            if values[0] == 1:
                line[: self.column + 1] = [" "] * len(line[: self.column + 1])
            else:
                line[self.column :] = [" "] * len(line[self.column :])
        elif what == "X":
            line[self.column : self.column + one] = [" "] * len(line[self.column : self.column + one])
        elif what == "P":
            del line[self.column : self.column + one]
            line += [" "] * (self.columns - len(line))
        elif what == "@":
            line[self.column : self.column] = [" "] * one
            del line[self.columns :]
        elif what == "b":
            for _ in range(one):
                self.put(self.last)
        elif what in "LM":
            for _ in range(one):
                if what == "L":
                    self.cells.insert(self.row, [" "] * self.columns)
                    self.cells.pop()
                else:
                    self.cells.pop(self.row)
                    self.cells.append([" "] * self.columns)
        else:
            self.unknown.add(what)
