# SPDX-License-Identifier: Apache-2.0
"""Devices and lanes."""

from __future__ import annotations

import os
import sys
import warnings
from operator import index

from . import _array, _core, _dtypes
from ._array import Array
from ._errors import Error, Status, refused
from ._kernel import Module

_EXECUTORS = {
    None: _core.BH_EXECUTE_DEFAULT,
    "interp": _core.BH_EXECUTE_INTERPRETER,
    "jit": _core.BH_EXECUTE_JIT,
    "auto": _core.BH_EXECUTE_AUTO,
}
_SANDBOX = {None: _core.BH_SANDBOX_DEFAULT, False: _core.BH_SANDBOX_OFF, True: _core.BH_SANDBOX_ON}
_COMPILERS = {
    "auto": _core.BH_COMPILER_AUTO,
    "nvrtc": _core.BH_COMPILER_NVRTC,
    "clang": _core.BH_COMPILER_CLANG,
}
_STATES = {
    _core.BH_HEALTH_OK: "ok",
    _core.BH_HEALTH_DEGRADED: "degraded",
    _core.BH_HEALTH_REPLACING: "replacing",
    _core.BH_HEALTH_STOPPED: "stopped",
    _core.BH_HEALTH_CLOSING: "closing",
}
_LOSSES = {
    _core.BH_LOSS_FAULT: "fault",
    _core.BH_LOSS_DEADLINE: "deadline",
    _core.BH_LOSS_LOST: "lost",
    _core.BH_LOSS_STUCK: "stuck",
    _core.BH_LOSS_NO_MEMORY: "no memory",
    _core.BH_LOSS_BROKEN: "broken",
}
_EVENTS = {
    "loss": _core.BH_EVENT_LOSS,
    "health": _core.BH_EVENT_HEALTH,
    "print": _core.BH_EVENT_PRINT,
}


def _ns(name: str, seconds, zero: int = 0) -> int:
    """Seconds as the nanoseconds of an option; None: the default, and 0: `zero`."""
    if seconds is None:
        return 0
    if not seconds >= 0:
        raise refused(f"{name}={seconds!r} is no time", "pass seconds from 0 on, or None")
    if seconds == 0:
        return zero
    return max(1, int(seconds * 1e9)) if seconds < 1.8e10 else 2**64 - 1


def _number(name: str, value, least: int = 0, most: int = 2**32 - 1) -> int:
    """An integer option of the library, whose integers are not as wide as Python's."""
    number = index(value)
    if not least <= number <= most:
        raise refused(f"{name}={value!r} is not from {least} to {most}", "pass a number that fits")
    return number


def _print(text: str) -> None:
    stream = sys.stdout
    if stream is not None:
        stream.write(text)
        stream.flush()


def named(kind: str, fields: dict) -> dict:
    """Numbers of a struct with their names where they have some."""
    if kind == "health":
        fields["state"] = _STATES.get(fields["state"], fields["state"])
    elif kind == "loss":
        fields["kind"] = _LOSSES.get(fields["kind"], fields["kind"])
        fields["cause"] = _core.status_name(fields["cause"])
    return fields


class Lane(_core.Lane):
    """A queue: its work runs in order, lanes run concurrently. Made by ``dev.lane()``.

    >>> with dev.lane():
    ...     first[grid, block](x)       # on this lane
    >>> second[grid, block](y)          # on the device's own lane

    A ``with`` block makes the lane current for this thread or asyncio task and releases it at its
    end, or at the end of the last of several blocks; its work still runs. Work of several lanes on
    the same array is kept in order.
    """

    def __enter__(self) -> Lane:
        self._enter()
        return self

    def __exit__(self, *exception) -> None:
        self._leave()

    def sync(self, timeout: float | None = None) -> None:
        """Waits until the work submitted to the lane has results."""
        self._sync(timeout)

    def release(self) -> None:
        """Gives the lane back. Submitted work still runs."""
        self._release()

    def __reduce_ex__(self, protocol):
        raise TypeError("a lane cannot be pickled. Fix: open one in the other process")


class Watch:
    """Calls a function for events of a device until it is closed."""

    def __init__(self, device, kind: str, function):
        if kind not in _EVENTS:
            raise refused(f"{kind!r} is no event", 'use "loss", "health" or "print"')

        def called(what, data):
            function(named(what, data) if isinstance(data, dict) else data)

        self._device = device
        self._handle = _core.watch_open(device, _EVENTS[kind], called)

    def close(self) -> None:
        """When this returns, the function is not running and never runs again."""
        handle, self._handle = self._handle, 0
        if handle:
            _core.watch_release(self._device, handle)

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *exception) -> None:
        self.close()


class Device(_core.Device):
    """A GPU, or the CPU, with a worker process that runs kernels. Made by ``bulkhead.open()``.

    >>> with bulkhead.open("auto") as dev:
    ...     x = dev.array([1.0, 2.0, 3.0], dtype="float32")
    ...     double = dev.compile(source)["twice"]
    ...     double.forall(3)(x, 3).wait()
    ...     print(x.numpy())

    When a kernel faults or hangs, its worker is replaced, arrays stay where they are, and the next
    call works.
    """

    # ---- arrays

    def array(
        self, source, dtype=None, *, tag: str | None = None, align: int = 0, **kinds
    ) -> Array:
        """A new array with a copy of `source`: a NumPy array, a list, a number, a buffer.

        With ``shareable=True`` other processes and libraries can map its memory.
        """
        return _array.from_host(self, source, dtype, _array.allocation_flags(**kinds), tag, align)

    def empty(
        self, shape, dtype="float32", *, tag: str | None = None, align: int = 0, **kinds
    ) -> Array:
        """A new array with undefined contents. See ``array()`` for the keywords."""
        return Array._allocate(self, shape, dtype, _array.allocation_flags(**kinds), tag, align)

    def zeros(
        self, shape, dtype="float32", *, tag: str | None = None, align: int = 0, **kinds
    ) -> Array:
        """A new array of zeros."""
        flags = _array.allocation_flags(zero=True, **kinds)
        return Array._allocate(self, shape, dtype, flags, tag, align)

    def full(self, shape, value, dtype="float32", **options) -> Array:
        """A new array with this value in all elements."""
        made = self.empty(shape, dtype, **options)
        made.fill(value)
        return made

    def managed(
        self, shape, dtype="float32", *, transparent: bool = True, tag: str | None = None
    ) -> Array:
        """A new array that this process sees, too, at the same address as kernels.

        >>> x = dev.managed(1000, "float32")
        >>> x.host[:] = 1           # a NumPy array on the memory
        >>> kernel.forall(1000)(x).wait()
        >>> x.host[0]

        With ``transparent=False`` the process sees it inside ``with x.map() as host``.
        """
        flags = _array.allocation_flags(managed=True, transparent=transparent)
        return Array._allocate(self, shape, dtype, flags, tag)

    def from_dlpack(self, source) -> Array:
        """A new array with a copy of a tensor of PyTorch, CuPy or anything with DLPack."""
        try:
            capsule = source.__dlpack__(max_version=(1, 0))
        except TypeError:
            capsule = source.__dlpack__()
        handle, shape, code, bits = _core.dlpack_import(self, capsule)
        made = Array._adopt(self, handle)
        kind = _dtypes.of_type(made._type)
        if code == _core.BH_DL_BOOL:
            kind = _dtypes.bool_
        return made._set(kind, shape)

    def from_export(self, memory: int, page: int, token: bytes, shape=None, dtype=None) -> Array:
        """The array that ``array.export()`` described, also in another process: the same memory."""
        made = Array._adopt(self, _core.share_import(self, memory, page, token))
        kind = _dtypes.of_type(made._type)
        made._set(kind, (made.nbytes // kind.itemsize,))
        if dtype is not None:
            made = made.view(dtype)
        return made if shape is None else made.reshape(shape)

    # ---- code

    def compile(
        self,
        source: str,
        *,
        names=(),
        name: str | None = None,
        defines=(),
        include_paths=(),
        headers=None,
        standard: int = 0,
        arch: str | None = None,
        compiler: str = "auto",
        max_registers: int = 0,
        fast_math: bool = False,
        flush_denormals: bool = False,
        line_info: bool = False,
        debug: bool = False,
        cache: bool = True,
        cache_dir: str | None = None,
        extra=(),
        timeout: float | None = None,
    ) -> Module:
        """Compiles CUDA C++ and loads it. CompileError has the compiler's output in ``log``.

        Kernels are found by the names they have in the source; of a template, pass the instances in
        ``names``:

        >>> module = dev.compile(source, names=["scale<float, 3>"])
        >>> module["scale<float, 3>"]

        ``defines`` is a dict or a list of "NAME=VALUE", ``headers`` a dict of texts by name.
        """
        if isinstance(defines, dict):
            defines = [key if value is None else f"{key}={value}" for key, value in defines.items()]
        flags = sum(
            bit
            for bit, wanted in (
                (_core.BH_COMPILE_FAST_MATH, fast_math),
                (_core.BH_COMPILE_FLUSH_DENORMALS, flush_denormals),
                (_core.BH_COMPILE_LINE_INFO, line_info),
                (_core.BH_COMPILE_DEBUG, debug),
                (_core.BH_COMPILE_NO_CACHE, not cache),
            )
            if wanted
        )
        if compiler not in _COMPILERS:
            raise refused(f"there is no compiler {compiler!r}", 'use "auto", "nvrtc" or "clang"')
        headers = dict(headers or {})
        handle = _core.module_compile(
            self,
            source,
            flags,
            _COMPILERS[compiler],
            _core.BH_OUTPUT_AUTO,
            arch,
            name,
            _number("standard", standard),
            _number("max_registers", max_registers),
            list(defines),
            [os.fspath(path) for path in include_paths],
            list(headers),
            list(headers.values()),
            list(names),
            list(extra),
            _ns("timeout", timeout),
            cache_dir,
        )
        return Module(self, handle, source=source)

    def compile_file(self, path, **options) -> Module:
        """Compiles a file of CUDA C++: as ``compile()``."""
        path = os.path.abspath(os.fspath(path))
        with open_file(path, encoding="utf-8") as file:
            return self.compile(file.read(), name=options.pop("name", path), **options)

    def load(self, image) -> Module:
        """Loads PTX, a cubin or a fatbin: as text, as bytes, or the file of that name.

        >>> dev.load("saxpy.ptx")["saxpy"]
        """
        if isinstance(image, os.PathLike) or (
            isinstance(image, str) and "\n" not in image and ".version" not in image
        ):
            path = os.fspath(image)
            try:
                with open_file(path, "rb") as file:
                    image = file.read()
            except OSError as problem:
                raise refused(
                    f"cannot read {path!r}: {problem.strerror}",
                    "pass a file that exists, or the PTX itself",
                    Status.NOT_FOUND,
                ) from None
        data = image.encode() if isinstance(image, str) else bytes(image)
        return Module(self, _core.module_load(self, data), image=data)

    # ---- lanes, sequences, waiting

    def lane(self, priority: int = 0) -> Lane:
        """Opens a lane; ``with dev.lane():`` makes it current."""
        return Lane(self, priority)

    def sequence(self, name: str | None = None):
        """Records work that is submitted as one, many times: see Sequence."""
        from ._sequence import Sequence

        return Sequence(self, name)

    def sync(self, timeout: float | None = None) -> None:
        """Waits until everything submitted so far has a result, whatever that is."""
        self._sync(timeout)

    # ---- what it tells of itself

    @property
    def kind(self) -> str:
        """ "cpu" or "cuda"."""
        return self.info()["kind"]

    def info(self) -> dict:
        """Name, driver, memory and so on: ``bh_device_info`` as a dict."""
        if self._known is None:
            self._known = self._info()
        return dict(self._known)

    _known: dict | None = None

    def limits(self) -> dict:
        """Numbers of the hardware: ``bh_device_limits`` as a dict."""
        return self._limits()

    def health(self) -> dict:
        """State, generation of the worker, losses: ``bh_health`` as a dict. Never waits."""
        return named("health", self._health())

    def memory(self) -> dict:
        """What is allocated: ``bh_memory_info`` as a dict."""
        return self._memory()

    def memory_tags(self) -> list[dict]:
        """The same by tag."""
        return self._tags()

    def set_memory_limit(self, limit: int, tag: str | None = None) -> None:
        """The most bytes of arrays with this tag, without one of the device; 0: no limit."""
        self._set_limit(tag, _number("limit", limit, most=2**64 - 1))

    def trim(self, keep: int = 0) -> int:
        """Gives unused memory back to the device; returns how many bytes."""
        return self._trim(_number("keep", keep, most=2**64 - 1))

    def losses(self) -> list[dict]:
        """The latest losses of workers, newest first."""
        return [named("loss", loss) for loss in self._losses()]

    _seen: frozenset = frozenset()

    def _saw(self, generation: int) -> None:
        self._seen = self._seen | {generation}

    def unseen_failures(self) -> list[dict]:
        """The latest losses that kernels caused and no ticket has told of: of launches that were
        not waited for."""
        return [
            loss
            for loss in self.losses()
            if loss["kind"] in ("fault", "deadline") and loss["generation"] not in self._seen
        ]

    def report(self, loss: int = 0) -> str:
        """What is known of a loss, as text; 0: the latest."""
        return self._report(loss)

    def fault_state(self, loss: int = 0) -> str:
        """The state of the thread that faulted, as text; CPU device."""
        return self._fault_state(loss)

    def findings(self, loss: int = 0) -> list[dict]:
        """What the checker found (``check=True``) in the launch of a loss."""
        return self._findings(loss)

    def wait_standby(self, timeout: float | None = None) -> None:
        """Waits until all standbys are ready."""
        self._wait_standby(timeout)

    def eventfd(self) -> int:
        """The descriptor that becomes readable when work armed by ``await`` completes."""
        return self._eventfd()

    def watch(self, kind: str, function) -> Watch:
        """Calls ``function`` for each "loss", "health" (a dict) or "print" (a text) from now on.

        It runs on a thread of the library and must not wait for work. An exception in it goes to
        ``sys.unraisablehook``.
        """
        return Watch(self, kind, function)

    # ---- ends

    def _close(self, wait: bool) -> None:
        super()._close(wait)
        aio = sys.modules.get("bulkhead._aio")
        if aio is not None:
            aio.closed(self)

    def close(self) -> None:
        """Lets work finish for ``close_timeout``, cancels the rest, frees everything."""
        self._close(True)

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind, *rest) -> None:
        # after Ctrl-C nobody wants to wait for the kernel that was interrupted
        try:
            self._close(kind is None or issubclass(kind, Exception))
        except BufferError as problem:
            if kind is None:
                raise
            # the exception that ends the block is the one to see
            self._leave()
            warnings.warn(
                f"{problem}. The device closes with the last of them", ResourceWarning, stacklevel=2
            )

    def __repr__(self) -> str:
        if not self.is_open:
            return "<bulkhead.Device, closed>"
        known = self.info()
        return f"<bulkhead.Device {known['kind']}: {known['name']}>"

    def __reduce_ex__(self, protocol):
        raise TypeError("a device cannot be pickled. Fix: open one in the other process")


open_file = open


def open(
    device: str = "auto",
    *,
    check: bool = False,
    guard: bool = False,  # noqa: A001
    deadline: float | None = None,
    executor: str | None = None,
    standby: bool = True,
    standbys: int = 0,
    restart_limit: int = 0,
    restart_window: float | None = None,
    quarantine_after: int = 0,
    memory_limit: int = 0,
    queue_length: int = 0,
    close_timeout: float | None = None,
    stuck_timeout: float | None = None,
    wait_spin: float | None = None,
    worker_spin: float | None = None,
    report_dir: str | os.PathLike | None = None,
    sandbox: bool | None = None,
    worker_dir: str | os.PathLike | None = None,
    core_dumps: bool = False,
    print=_print,
) -> Device:  # noqa: A002
    """Opens a device: starts a worker process for it, and a standby.

    >>> dev = bulkhead.open()               # a GPU if there is one, otherwise the CPU
    >>> dev = bulkhead.open("cpu", check=True)
    >>> dev = bulkhead.open("cuda:1", deadline=2.0)

    Parameters
    ----------
    device : "auto", "cpu", "cuda", "cuda:1", or a list "cuda,cpu": the first that can be used.
    check : check every memory access of kernels; CPU device.
    guard : unmapped memory behind each array: overruns fault, on every device.
    deadline : seconds that a kernel may run, None or 0: as long as it likes; a launch may say
        otherwise.
    executor : who runs kernels on the CPU device: "interp", "jit" or "auto".
    standby, standbys : whether a standby worker is kept, and how many.
    restart_limit, restart_window : when a device stops.
    quarantine_after : when a kernel is refused.
    print : called with what kernels print; None drops it. The default writes to sys.stdout.
    """
    if executor not in _EXECUTORS:
        raise refused(f"there is no executor {executor!r}", 'use "interp", "jit" or "auto"')
    if sandbox not in (None, False, True):
        raise refused(f"sandbox={sandbox!r} is no choice", "use True, False or None")
    flags = sum(
        bit
        for bit, wanted in (
            (_core.BH_DEVICE_CHECK, check),
            (_core.BH_DEVICE_GUARD, guard),
            (_core.BH_DEVICE_NO_STANDBY, not standby),
            (_core.BH_DEVICE_CORE_DUMPS, core_dumps),
        )
        if wanted
    )
    made = Device(
        device,
        flags=flags,
        worker_dir=None if worker_dir is None else os.fspath(worker_dir),
        restart_window_ns=_ns("restart_window", restart_window),
        restart_limit=_number("restart_limit", restart_limit),
        quarantine_after=_number("quarantine_after", quarantine_after),
        deadline_ns=_ns("deadline", deadline),
        wait_spin_ns=_ns("wait_spin", wait_spin, zero=1),  # 0: they do not spin
        worker_spin_ns=_ns("worker_spin", worker_spin, zero=1),
        close_timeout_ns=_ns("close_timeout", close_timeout, zero=1),
        memory_limit=_number("memory_limit", memory_limit, most=2**64 - 1),
        queue_length=_number("queue_length", queue_length),
        standbys=_number("standbys", standbys),
        stuck_timeout_ns=_ns("stuck_timeout", stuck_timeout),
        report_dir=None if report_dir is None else os.fspath(report_dir),
        sandbox=_SANDBOX[sandbox],
        executor=_EXECUTORS[executor],
    )
    if print is not None:
        _core.watch_open(made, _core.BH_EVENT_PRINT, lambda kind, text: print(text))
    return made


def devices() -> list[dict]:
    """The devices of this machine, as dicts: "device" is the name for ``open()``, "error" why one
    cannot be used. Opens each in turn."""
    return [{"device": name, "error": error, **info} for name, info, error in _core.list_devices()]


def compilers() -> list[dict]:
    """The compilers for CUDA C++ that were found."""
    return _core.list_compilers()


def wait_all(tickets, timeout: float | None = None) -> None:
    """Waits for all of them, and raises the first error in the order given."""
    _core.wait_all(tickets, timeout)


def set_log(function, level: str = "warning") -> None:
    """Calls ``function(level, text)`` for messages of the library; None: no more.

    It may run on any thread and must not wait for work.
    """
    names = {
        "error": _core.BH_LOG_ERROR,
        "warning": _core.BH_LOG_WARNING,
        "info": _core.BH_LOG_INFO,
        "debug": _core.BH_LOG_DEBUG,
    }
    if level not in names:
        raise refused(f"{level!r} is no level", 'use "error", "warning", "info" or "debug"')
    if function is None:
        _core.set_log(None, names[level])
        return
    texts = {number: name for name, number in names.items()}
    _core.set_log(lambda number, text: function(texts.get(number, str(number)), text), names[level])


__all__ = [
    "Device",
    "Lane",
    "Watch",
    "open",
    "devices",
    "compilers",
    "wait_all",
    "set_log",
    "Error",
]
