# SPDX-License-Identifier: Apache-2.0
"""@bulkhead.kernel: CUDA source in a docstring or in a file, compiled when it is used."""

from __future__ import annotations

import os
import sys
import threading

from . import _core
from ._errors import refused


class SourceKernel:
    """A kernel from source, for every device: compiled for a device at its first launch there.

    The device is the one that the arrays among the arguments belong to.
    """

    def __init__(self, name: str, source, options: dict, doc: str | None = None):
        self.__name__ = name
        self.__doc__ = doc
        self._source = source  # a text, or a path
        self._options = options
        self._lock = threading.Lock()

    def on(self, device):
        """The kernel on a device, compiled if it was not yet."""
        kernels = device.__dict__.setdefault("_source_kernels", {})
        kernel = kernels.get(self)
        if kernel is not None:
            return kernel
        with self._lock:
            if self not in kernels:
                compile_it = (
                    device.compile_file if isinstance(self._source, os.PathLike) else device.compile
                )
                kernels[self] = compile_it(self._source, **self._options)[self.__name__]
            return kernels[self]

    def __getitem__(self, shape):
        return lambda *arguments, **options: self._launch(
            lambda kernel: kernel[shape], arguments, options
        )

    def forall(self, threads: int, block: int = 256, shared: int = 0):
        return lambda *arguments, **options: self._launch(
            lambda kernel: kernel.forall(threads, block, shared), arguments, options
        )

    def _launch(self, launcher, arguments, options):
        for each in arguments:
            if isinstance(each, _core.Access):
                each = each.array
            if isinstance(each, _core.Buffer):
                return launcher(self.on(each.device))(*arguments, **options)
        raise refused(
            f'no argument of kernel "{self.__name__}" is an array, so that its device is not known',
            f"say which: {self.__name__}.on(device)[grid, block](...)",
        )

    def __call__(self, *arguments, **options):
        raise TypeError(f"say how many threads run it: {self.__name__}[grid, block](...)")

    def __repr__(self) -> str:
        return f"<bulkhead.kernel {self.__name__}>"


def kernel(function=None, *, file=None, name: str | None = None, **options):
    """Makes a kernel of a function whose docstring is CUDA C++; the function's body is not used.

    >>> @bulkhead.kernel
    ... def twice(x, n):
    ...     '''
    ...     extern "C" __global__ void twice(float *x, int n) {
    ...         int i = blockIdx.x * blockDim.x + threadIdx.x;
    ...         if (i < n) x[i] *= 2;
    ...     }
    ...     '''
    >>> twice.forall(x.size)(x, x.size).wait()

    With ``file="kernels.cu"`` the source is in a file, relative to the one where this stands;
    `name` is the kernel's name if it is not the function's. Other keywords are those of
    ``dev.compile()``.
    """
    caller = sys._getframe(1).f_globals.get("__file__")

    def make(function):
        title = name or function.__name__
        if file is not None:
            folder = os.path.dirname(os.path.abspath(caller)) if caller else os.getcwd()
            from pathlib import Path

            return SourceKernel(title, Path(folder, file), options, function.__doc__)
        if not function.__doc__ or "__global__" not in function.__doc__:
            raise refused(
                f"the docstring of {function.__name__}() has no __global__ function",
                "write the CUDA C++ source there, or use @bulkhead.kernel(file=...)",
            )
        return SourceKernel(title, function.__doc__, options, function.__doc__)

    return make if function is None else make(function)
