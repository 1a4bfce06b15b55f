# SPDX-License-Identifier: Apache-2.0
"""`await ticket`: asyncio waits on the device's eventfd, without a thread.

A device has one eventfd, and several loops may wait for its tickets. Whichever loop reads it looks
at all tickets of the device and wakes the loops they belong to. A loop watches a descriptor of its
own: the device's is closed with the device, and its number may then be another device's.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref

_lock = threading.Lock()


class _Waiting:
    """What waits for a device."""

    def __init__(self):
        self.entries: list = []  # (loop, future, ticket)
        self.watched: dict = {}  # {loop: its descriptor}


_devices: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


def _settle(future):
    if not future.done():
        future.set_result(None)


def _ready(device, fd):
    try:
        os.read(fd, 8)
    except BlockingIOError:
        pass
    _look(device)


def _look(device):
    with _lock:
        waiting = _devices.get(device)
        if waiting is None:
            return
        done = [
            entry
            for entry in waiting.entries
            if not device.is_open or entry[2].done or entry[1].cancelled() or entry[0].is_closed()
        ]
        waiting.entries = [entry for entry in waiting.entries if entry not in done]
        idle = set(waiting.watched) - {entry[0] for entry in waiting.entries}
    for loop, future, _ in done:
        _tell(loop, _settle, future)
    for loop in idle:
        if not _tell(loop, _unwatch, loop, device):
            _unwatch(loop, device)


def _tell(loop, function, *arguments):
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:  # the loop is closed
        return False
    return True


def _unwatch(loop, device):
    with _lock:
        waiting = _devices.get(device)
        if waiting is None or any(entry[0] is loop for entry in waiting.entries):
            return
        fd = waiting.watched.pop(loop, None)
    if fd is not None:
        if not loop.is_closed():
            loop.remove_reader(fd)
        os.close(fd)


def closed(device):
    """The device was closed: nothing of it becomes ready any more, and all its work has ended."""
    _look(device)


async def _wait(ticket):
    if not ticket.done:
        device, loop = ticket.device, asyncio.get_running_loop()
        future = loop.create_future()
        fd = None
        with _lock:
            waiting = _devices.setdefault(device, _Waiting())
            if loop not in waiting.watched:
                fd = waiting.watched[loop] = os.dup(device.eventfd())
            waiting.entries.append((loop, future, ticket))
        if fd is not None:
            loop.add_reader(fd, _ready, device, fd)
        if not ticket._notify() or ticket.done:
            loop.call_soon(_look, device)
        try:
            await future
        except asyncio.CancelledError:
            _look(device)
            raise
    ticket.wait(0 if ticket.device.is_open else 10)  # a close that others began is short


def wait(ticket):
    """The iterator of ``await ticket``."""
    return _wait(ticket).__await__()
