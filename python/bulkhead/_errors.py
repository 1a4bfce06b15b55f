# SPDX-License-Identifier: Apache-2.0
"""Errors of the library as exceptions, one class for each status."""

from __future__ import annotations

import builtins
import enum

from . import _core


class Status(enum.IntEnum):
    """The result of a call or of work: ``bh_status`` of the C library."""

    OK = _core.BH_OK
    INVALID = _core.BH_E_INVALID
    NOT_FOUND = _core.BH_E_NOT_FOUND
    UNSUPPORTED = _core.BH_E_UNSUPPORTED
    NO_DEVICE = _core.BH_E_NO_DEVICE
    NO_MEMORY = _core.BH_E_NO_MEMORY
    NO_HOST_MEMORY = _core.BH_E_NO_HOST_MEMORY
    COMPILE = _core.BH_E_COMPILE
    LOAD = _core.BH_E_LOAD
    LAUNCH = _core.BH_E_LAUNCH
    RESIDENCY = _core.BH_E_RESIDENCY
    FAULT = _core.BH_E_FAULT
    DEADLINE = _core.BH_E_DEADLINE
    LOST = _core.BH_E_LOST
    STALE = _core.BH_E_STALE
    QUARANTINED = _core.BH_E_QUARANTINED
    STOPPED = _core.BH_E_STOPPED
    BUSY = _core.BH_E_BUSY
    CANCELLED = _core.BH_E_CANCELLED
    TIMEOUT = _core.BH_E_TIMEOUT
    IO = _core.BH_E_IO
    INTERNAL = _core.BH_E_INTERNAL


class Error(Exception):
    """What all errors of Bulkhead have in common.

    >>> try:
    ...     kernel[grid, block](x).wait()
    ... except bulkhead.FaultError as error:
    ...     print(error.kernel, error.message, error.fix)

    Attributes
    ----------
    status : Status
    message : str
        What was wrong, with the numbers.
    fix : str
        What to do about it; "" if there is nothing to say.
    kernel : str
        The kernel concerned; "": none.
    certain : bool
        True: this work is the cause. False: one of several possible causes.
    device_code, device_name : int, str
        The device driver's own code, and its name: "ILLEGAL_ADDRESS".
    generation : int
        Of the worker that was lost; 0: none was.
    reason : str
        Of a refused launch: "kernel_threads" and so on; "": none.
    requested, limit : int
        Of a refused launch: the two numbers that conflict; 0: none.
    ticket : tuple or None
        The numbers of the work concerned, as ``Ticket.id``.
    log : str
        Of a CompileError: all that the compiler printed.
    """

    status: Status
    message: str
    fix: str
    kernel: str
    certain: bool
    device_code: int
    device_name: str
    generation: int
    reason: str
    requested: int
    limit: int
    ticket: tuple[int, int] | None
    log: str = ""

    def __str__(self) -> str:
        text = f"{self.message}\nFix: {self.fix}" if self.fix else self.message
        return f"{text}\n{self.log}" if self.log else text

    def __reduce__(self):
        state = dict(self.__dict__)
        return _rebuild, (type(self), self.message, state)


def _rebuild(kind, message, state):
    error = kind(message)
    error.__dict__.update(state)
    return error


class InvalidError(Error, ValueError):
    """An argument is wrong."""


class NotFoundError(Error, LookupError):
    """There is no such kernel, variable or file."""


class UnsupportedError(Error):
    """Valid, and not supported on this device or system."""


class NoDeviceError(Error):
    """There is no such device, or it cannot be used."""


class NoMemoryError(Error, MemoryError):
    """Out of memory, of the device or of the host."""


class CompileError(Error):
    """The source has errors; ``log`` has them all."""


class LoadError(Error):
    """A module image was refused."""


class LaunchError(Error, ValueError):
    """A launch was refused: ``reason``, ``requested`` and ``limit`` say why."""


class FaultError(Error):
    """The kernel faulted. Its worker was replaced; the device can be used."""


class DeadlineError(Error):
    """The kernel exceeded its deadline. Its worker was replaced; the device can be used."""


class LostError(Error):
    """The work was in flight on a lost worker and did not cause the loss: submit it again."""


class StaleError(Error):
    """Needs data that a lost worker may have left half written: write it anew or accept it."""


class QuarantinedError(Error):
    """This kernel faulted too often: ``kernel.pardon()`` lets it run again."""


class StoppedError(Error):
    """The device has stopped or was closed, or this process was forked from the one that has it."""


class BusyError(Error):
    """Not now: something else uses what the call needs."""


class CancelledError(Error):
    """The work was cancelled."""


class TimeoutError(Error, builtins.TimeoutError):  # noqa: A001 the name that users look for
    """It did not complete in time."""


class IoError(Error):
    """A file or another resource of the system failed."""


class InternalError(Error):
    """A defect of Bulkhead."""


_KINDS = {
    Status.INVALID: InvalidError,
    Status.NOT_FOUND: NotFoundError,
    Status.UNSUPPORTED: UnsupportedError,
    Status.NO_DEVICE: NoDeviceError,
    Status.NO_MEMORY: NoMemoryError,
    Status.NO_HOST_MEMORY: NoMemoryError,
    Status.COMPILE: CompileError,
    Status.LOAD: LoadError,
    Status.LAUNCH: LaunchError,
    Status.RESIDENCY: LaunchError,
    Status.FAULT: FaultError,
    Status.DEADLINE: DeadlineError,
    Status.LOST: LostError,
    Status.STALE: StaleError,
    Status.QUARANTINED: QuarantinedError,
    Status.STOPPED: StoppedError,
    Status.BUSY: BusyError,
    Status.CANCELLED: CancelledError,
    Status.TIMEOUT: TimeoutError,
    Status.IO: IoError,
    Status.INTERNAL: InternalError,
}


# What messages of the library call by its C name, as it is called here.
_NAMES = {
    "bh_buffer_accept": "array.accept()",
    "bh_module_accept": "module.accept()",
    "bh_kernel_pardon": "kernel.pardon()",
    "bh_sequence_finish": "sequence.finish()",
    "bh_buffer_export": "array.export()",
    "bh_managed_unmap": "leaving `with array.map()`",
    "bh_device_get_health": "device.health()",
    "bh_device_limits": "device.limits()",
    "bh_launch_preflight": "kernel[grid, block].preflight()",
    "bh_compile_options.expressions": "names=[...]",
    "bh_compile_options.compiler": "compiler=",
    "bh_compile_options.arch": "arch=",
    "bh_compile_options.headers": "headers=",
    "bh_compile_options.timeout_ns": "timeout=",
    "BH_BUFFER_SHAREABLE": "shareable=True",
    "BH_DEVICE_CHECK": "check=True",
    "BH_INOUT": "InOut",
    "BH_OUT": "Out",
    "BH_IN": "In",
}


def _translate(text: str) -> str:
    if "bh_" not in text and "BH_" not in text:
        return text
    import re

    def name(match):
        return _NAMES.get(match[0], match[0])

    return re.sub(r"\b(?:bh_[a-z_]+(?:\.[a-z_]+)?|BH_[A-Z_]+)(?!\w)", name, text)


def make(
    status,
    message,
    fix="",
    kernel="",
    certain=False,
    device_code=0,
    device_name="",
    generation=0,
    reason="",
    requested=0,
    limit=0,
    ticket=None,
):
    """The exception for an error of the library. The extension calls it."""
    message, fix = _translate(message), _translate(fix)
    error = _KINDS.get(status, Error)(message)
    error.status = Status(status) if status in _KINDS else status
    error.message = message
    error.fix = fix
    error.kernel = kernel
    error.certain = certain
    error.device_code = device_code
    error.device_name = device_name
    error.generation = generation
    error.reason = reason
    error.requested = requested
    error.limit = limit
    error.ticket = ticket
    if status == Status.COMPILE:
        error.log = _core.compile_log()
    return error


def refused(message, fix, kind=Status.INVALID):
    """An error of the package's own."""
    return make(kind, message, fix)
