# SPDX-License-Identifier: Apache-2.0
"""Work that is checked once and submitted many times: prepared launches and sequences."""

from __future__ import annotations

from operator import index

from . import _core
from ._array import Array
from ._errors import refused


class Prepared:
    """One launch, checked and packed once; calling it launches.

    >>> step = bulkhead.prepare(saxpy[grid, block], 2.0, x, y, n)
    >>> step()
    >>> step({0: 3.0})          # with another first argument, from now on

    It keeps its arrays alive.
    """

    def __init__(self, launcher: _core.Launcher, *arguments, **options):
        self._launcher = launcher
        self._handle = _core.prepare(launcher, arguments, options)

    def __call__(self, changes: dict | None = None) -> _core.Ticket:
        if not self._handle:
            raise refused("the prepared launch was released", "prepare it again")
        return _core.prepared_launch(self._handle, self._launcher, changes)

    def release(self) -> None:
        """Queued launches are not affected."""
        handle, self._handle = self._handle, 0
        if handle:
            _core.prepared_release(handle)

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *exception) -> None:
        self.release()

    def __del__(self):
        if getattr(self, "_handle", 0) and _core is not None:
            self.release()

    def __reduce_ex__(self, protocol):
        raise TypeError("a prepared launch cannot be pickled. Fix: prepare it in the other process")


def prepare(launcher: _core.Launcher, *arguments, **options) -> Prepared:
    """A prepared launch: see Prepared."""
    return Prepared(launcher, *arguments, **options)


class Sequence:
    """Launches, copies and fills that are submitted as one. On a GPU it is one graph.

    >>> with dev.sequence("two steps") as seq:
    ...     first = seq.launch(scale[grid, block], 2.0, x, n)
    ...     seq.launch(total[grid, block], x, sums, n)
    >>> seq.submit().wait()
    >>> seq.set(first, 0, 3.0)          # another number from the next submission on
    >>> seq.bind(x, other)              # `other` wherever x was recorded

    The ``with`` block records; it is ready to be submitted at its end.
    """

    def __init__(self, device, name: str | None = None):
        self.device = device
        self._launchers: dict[int, _core.Launcher] = {}
        self._recorded: dict[int, int] = {}
        self._handle = _core.sequence_begin(device, name)

    def launch(self, launcher: _core.Launcher, *arguments, **options) -> int:
        """Records a launch; returns the number of the step, for ``set()``."""
        step = _core.sequence_launch(self._need(), launcher, arguments, options)
        self._launchers[step] = launcher
        return step

    def copy(self, target: Array, source: Array) -> int:
        """Records a copy of all of `source` to `target`."""
        if target.nbytes != source.nbytes:
            raise refused(
                f"cannot copy {source.nbytes} bytes to {target.nbytes}",
                "use arrays of the same size",
            )
        return _core.sequence_copy(self._need(), target, source)

    def fill(self, target: Array, value) -> int:
        """Records a fill of all elements."""
        return _core.sequence_fill(self._need(), target, target.dtype.pack(value))

    def finish(self) -> Sequence:
        """Ends recording."""
        _core.sequence_finish(self._need())
        return self

    def set(self, step: int, argument: int, value) -> None:
        """Changes a number of a recorded launch, for later submissions."""
        if step not in self._launchers:
            raise refused(f"step {step} is not a launch", "use what launch() returned")
        _core.sequence_set(self._need(), step, self._launchers[step], argument, value)

    def bind(self, recorded: Array, array: Array) -> None:
        """Uses `array` from now on wherever `recorded` was recorded."""
        _core.sequence_bind(self._need(), recorded._handle, array)

    def submit(
        self,
        *,
        repeat: int = 1,
        deadline: float | None = None,
        idempotent: bool = False,
        after=None,
    ) -> _core.Ticket:
        """Submits all of it to the current lane, so that its steps run `repeat` times."""
        if not 1 <= index(repeat) < 2**32:
            raise refused(f"repeat={repeat!r} is not from 1 to {2**32 - 1}", "submit it once: 1")
        return _core.sequence_submit(self._need(), self.device, repeat, deadline, idempotent, after)

    def _need(self) -> int:
        if not self._handle:
            raise refused("the sequence was released", "record it again")
        return self._handle

    def release(self) -> None:
        """Submitted work still runs."""
        handle, self._handle = self._handle, 0
        if handle:
            _core.sequence_release(handle)

    def __enter__(self) -> Sequence:
        return self

    def __exit__(self, kind, *rest) -> None:
        if kind is None:
            self.finish()
        else:
            self.release()

    def __del__(self):
        if getattr(self, "_handle", 0) and _core is not None:
            self.release()

    def __reduce_ex__(self, protocol):
        raise TypeError("a sequence cannot be pickled. Fix: record it in the other process")
