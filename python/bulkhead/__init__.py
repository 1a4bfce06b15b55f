# SPDX-License-Identifier: Apache-2.0
"""Bulkhead: GPU kernels in watertight compartments.

Kernels run in a worker process. One that faults or hangs ends that process, not this one: a standby
takes over, arrays are still there at the same addresses, and the next launch works. Without a GPU
the same PTX and CUDA C++ run on the CPU.

>>> import bulkhead, numpy
>>> dev = bulkhead.open()
>>> saxpy = dev.compile('''
... extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
...     int i = blockIdx.x * blockDim.x + threadIdx.x;
...     if (i < n) y[i] += a * x[i];
... }''')["saxpy"]
>>> x = dev.array(numpy.arange(1000, dtype="float32"))
>>> y = dev.zeros(1000, "float32")
>>> saxpy.forall(1000)(2.0, x, y, 1000).wait()
>>> y.numpy()
"""

import atexit as _atexit

from . import _core
from ._array import Array
from ._core import In, InOut, Launcher, Out, Ticket
from ._decorator import kernel
from ._device import Device, Lane, Watch, compilers, devices, open, set_log, wait_all
from ._dtypes import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from ._errors import (
    BusyError,
    CancelledError,
    CompileError,
    DeadlineError,
    Error,
    FaultError,
    InternalError,
    InvalidError,
    IoError,
    LaunchError,
    LoadError,
    LostError,
    NoDeviceError,
    NoMemoryError,
    NotFoundError,
    QuarantinedError,
    StaleError,
    Status,
    StoppedError,
    TimeoutError,
    UnsupportedError,
)
from ._kernel import Kernel, Module
from ._sequence import Prepared, Sequence, prepare

#: The version of the library.
__version__ = _core.version()

# Threads of open devices call Python: none may be left when the interpreter ends.
_atexit.register(_core.close_all)

__all__ = [
    "Array",
    "BusyError",
    "CancelledError",
    "CompileError",
    "DType",
    "DeadlineError",
    "Device",
    "Error",
    "FaultError",
    "In",
    "InOut",
    "InternalError",
    "InvalidError",
    "IoError",
    "Kernel",
    "Lane",
    "LaunchError",
    "Launcher",
    "LoadError",
    "LostError",
    "Module",
    "NoDeviceError",
    "NoMemoryError",
    "NotFoundError",
    "Out",
    "Prepared",
    "QuarantinedError",
    "Sequence",
    "StaleError",
    "Status",
    "StoppedError",
    "Ticket",
    "TimeoutError",
    "UnsupportedError",
    "Watch",
    "bfloat16",
    "bool_",
    "compilers",
    "complex128",
    "complex64",
    "devices",
    "dtype",
    "float16",
    "float32",
    "float64",
    "int16",
    "int32",
    "int64",
    "int8",
    "kernel",
    "open",
    "prepare",
    "set_log",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "wait_all",
]
