# SPDX-License-Identifier: Apache-2.0
"""`await ticket`: asyncio waits on the device's eventfd, without a thread.

A device has one eventfd, and several loops may wait for its tickets. Whichever loop reads it looks
at all tickets of the device and wakes the loops they belong to.
"""

from __future__ import annotations

import asyncio
import os
import threading
import weakref

_lock = threading.Lock()
_waiting: weakref.WeakKeyDictionary = (
    weakref.WeakKeyDictionary()
)  # device: [(loop, future, ticket)]


def _settle(future):
    if not future.done():
        future.set_result(None)


def _ready(device, fd):
    try:
        os.read(fd, 8)
    except BlockingIOError:
        pass
    _look(device, fd)


def _look(device, fd):
    with _lock:
        entries = _waiting.get(device, [])
        done = [entry for entry in entries if entry[2].done or entry[1].cancelled()]
        rest = [entry for entry in entries if entry not in done]
        _waiting[device] = rest
        loops = {entry[0] for entry in done} - {entry[0] for entry in rest}
    for loop, future, _ in done:
        if not loop.is_closed():
            loop.call_soon_threadsafe(_settle, future)
    for loop in loops:
        if not loop.is_closed():
            loop.call_soon_threadsafe(_unwatch, loop, device, fd)


def _unwatch(loop, device, fd):
    with _lock:
        if any(entry[0] is loop for entry in _waiting.get(device, [])):
            return
    loop.remove_reader(fd)


async def _wait(ticket):
    if not ticket.done:
        device, loop = ticket.device, asyncio.get_running_loop()
        fd, future = device.eventfd(), loop.create_future()
        with _lock:
            _waiting.setdefault(device, []).append((loop, future, ticket))
        loop.add_reader(fd, _ready, device, fd)
        if not ticket._notify() or ticket.done:
            loop.call_soon(_look, device, fd)
        try:
            await future
        except asyncio.CancelledError:
            _look(device, fd)
            raise
    ticket.wait(0)


def wait(ticket):
    """The iterator of ``await ticket``."""
    return _wait(ticket).__await__()
