#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Bulkhead buffer in NumPy, CuPy and PyTorch without a copy, by way of DLPack.

usage: interop.py [DEVICE]

On the CPU device the libraries see it in host memory, on a GPU in their own CUDA context. What is
not installed is left out. The libraries are found as libbulkhead.so.0 and libbulkhead-cuda.so.0,
or where BULKHEAD_LIBRARY and BULKHEAD_CUDA_LIBRARY say.
"""
import ctypes as c
import os
import sys
import time

BH_F32 = 11
BH_BUFFER_SHAREABLE = 1 << 12
COUNT = 1 << 26  # 256 MiB


class Handle(c.Structure):  # bh_device, bh_buffer
    _fields_ = [("id", c.c_uint64)]


class Error(c.Structure):
    _fields_ = [
        ("status", c.c_int32), ("device_code", c.c_int32), ("device_name", c.c_char * 64),
        ("message", c.c_char * 512), ("fix", c.c_char * 256), ("kernel", c.c_char * 128),
        ("ticket", c.c_uint64 * 2), ("generation", c.c_uint64), ("certain", c.c_uint32),
        ("reason", c.c_uint32), ("requested", c.c_uint64), ("limit", c.c_uint64),
        ("reserved", c.c_uint8 * 8),
    ]


class DeviceOptions(c.Structure):
    _fields_ = [
        ("size", c.c_uint32), ("flags", c.c_uint32), ("device", c.c_char_p),
        ("worker_dir", c.c_char_p), ("rest", c.c_uint64 * 8),
    ]


class BufferOptions(c.Structure):
    _fields_ = [
        ("size", c.c_uint32), ("flags", c.c_uint32), ("tag", c.c_char_p), ("align", c.c_uint64),
    ]


class Tensor(c.Structure):  # bh_dl_tensor
    _fields_ = [
        ("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32),
        ("ndim", c.c_int32), ("type", c.c_uint32), ("shape", c.c_void_p), ("strides", c.c_void_p),
        ("byte_offset", c.c_uint64),
    ]


class Managed(c.Structure):  # bh_dl_managed
    pass


class Versioned(c.Structure):  # bh_dl_versioned
    pass


Managed._fields_ = [
    ("tensor", Tensor), ("context", c.c_void_p), ("deleter", c.CFUNCTYPE(None, c.POINTER(Managed))),
]
Versioned._fields_ = [
    ("major", c.c_uint32), ("minor", c.c_uint32), ("context", c.c_void_p),
    ("deleter", c.CFUNCTYPE(None, c.POINTER(Versioned))), ("flags", c.c_uint64), ("tensor", Tensor),
]

bh = c.CDLL(os.environ.get("BULKHEAD_LIBRARY", "libbulkhead.so.0"))
bh_cuda = c.CDLL(os.environ.get("BULKHEAD_CUDA_LIBRARY", "libbulkhead-cuda.so.0"))
bh.bh_buffer_alloc.argtypes = [Handle, c.c_uint32, c.c_uint64, c.c_void_p, c.POINTER(Handle)]
bh.bh_buffer_fill.argtypes = [Handle, c.c_uint64, c.c_uint64, c.c_void_p, c.c_uint32]
bh.bh_buffer_read.argtypes = [Handle, c.c_uint64, c.c_void_p, c.c_uint64]
bh.bh_buffer_release.argtypes = [Handle]
bh.bh_device_close.argtypes = [Handle]
for name, kind in (("bh_dlpack_export", Managed), ("bh_dlpack_export_versioned", Versioned)):
    getattr(bh_cuda, name).argtypes = [
        Handle, c.c_void_p, c.c_int32, c.POINTER(c.POINTER(kind))]


def check(status, ask=bh.bh_last_error):
    if status:
        error = Error()
        ask(c.byref(error))
        sys.exit(f"{error.message.decode()}\nFix: {error.fix.decode()}")


# ---- capsules: how Python libraries hand each other DLPack tensors

capsule_new = c.pythonapi.PyCapsule_New
capsule_new.restype = c.py_object
capsule_new.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
capsule_is = c.pythonapi.PyCapsule_IsValid
capsule_is.argtypes = [c.c_void_p, c.c_char_p]
capsule_get = c.pythonapi.PyCapsule_GetPointer
capsule_get.restype = c.c_void_p
capsule_get.argtypes = [c.c_void_p, c.c_char_p]
PLAIN, VERSIONED = b"dltensor", b"dltensor_versioned"  # must outlive the capsules


@c.PYFUNCTYPE(None, c.c_void_p)
def drop_unused(capsule):
    """Nobody took the tensor out of the capsule: whoever does renames it."""
    for label, kind in ((PLAIN, Managed), (VERSIONED, Versioned)):
        if capsule_is(capsule, label):
            tensor = c.cast(capsule_get(capsule, label), c.POINTER(kind))
            tensor.contents.deleter(tensor)


class Shared:
    """A Bulkhead buffer that from_dlpack functions take."""

    def __init__(self, buffer):
        self.buffer = buffer
        self.address = None

    def export(self, versioned):
        kind = Versioned if versioned else Managed
        call = bh_cuda.bh_dlpack_export_versioned if versioned else bh_cuda.bh_dlpack_export
        tensor = c.POINTER(kind)()
        check(call(self.buffer, None, 0, c.byref(tensor)), bh_cuda.bh_cuda_last_error)
        return tensor

    def __dlpack_device__(self):
        tensor = self.export(False)
        place = (tensor.contents.tensor.device_type, tensor.contents.tensor.device_id)
        tensor.contents.deleter(tensor)
        return place

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        versioned = max_version is not None and max_version[0] >= 1
        tensor = self.export(versioned)
        self.address = tensor.contents.tensor.data
        return capsule_new(c.cast(tensor, c.c_void_p), VERSIONED if versioned else PLAIN,
                           c.cast(drop_unused, c.c_void_p))


# ---- what each library does with it

# Each gives: opening, the address, a copy, waiting for all that was begun.

def with_numpy():
    import numpy
    return numpy.from_dlpack, lambda a: a.ctypes.data, lambda a: a.copy(), lambda: None


def with_cupy():
    import cupy
    return (cupy.from_dlpack, lambda a: a.data.ptr, lambda a: a.copy(),
            lambda: cupy.cuda.Device().synchronize())


def with_torch():
    import torch
    wait = torch.cuda.synchronize if torch.cuda.is_available() else lambda: None
    return torch.from_dlpack, lambda a: a.data_ptr(), lambda a: a.clone(), wait


def show(name, library, buffer):
    shared = Shared(buffer)
    open_it, address_of, copy_of, wait = library()
    one = c.c_float(1.0)
    check(bh.bh_buffer_fill(buffer, 0, COUNT * 4, c.byref(one), 4))
    open_it(shared)  # the first one also starts the library
    begin = time.perf_counter()
    array = open_it(shared)
    opened = time.perf_counter() - begin
    assert address_of(array) == shared.address, "it was copied"
    copy_of(array)  # the first one also loads code
    wait()
    begin = time.perf_counter()
    copy = copy_of(array)
    wait()
    copied = time.perf_counter() - begin
    assert float(array[COUNT - 1]) == 1.0, "what was filled here is not seen there"
    array[3] = 42.0
    array[COUNT - 1] = 43.0
    wait()
    read = (c.c_float * 4)()
    check(bh.bh_buffer_read(buffer, 0, read, 16))
    assert list(read) == [1.0, 1.0, 1.0, 42.0], "what was written there is not seen here"
    check(bh.bh_buffer_read(buffer, COUNT * 4 - 16, read, 16))
    assert read[3] == 43.0
    assert float(copy[3]) == 1.0
    print(f"{name}: same memory at {shared.address:#x}, opened in {opened * 1e3:.2f} ms; "
          f"a copy takes {copied * 1e3:.2f} ms")


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "auto"
    options = DeviceOptions(size=c.sizeof(DeviceOptions), device=name.encode())
    device, buffer = Handle(), Handle()
    check(bh.bh_device_open(c.byref(options), c.byref(device)))
    shareable = BufferOptions(size=c.sizeof(BufferOptions), flags=BH_BUFFER_SHAREABLE)
    check(bh.bh_buffer_alloc(device, BH_F32, COUNT, c.byref(shareable), c.byref(buffer)))
    on_host = Shared(buffer).__dlpack_device__()[0] == 1
    tried = [("NumPy", with_numpy)] if on_host else [("CuPy", with_cupy)]
    shown = 0
    for title, library in tried + [("PyTorch", with_torch)]:
        try:
            show(title, library, buffer)
            shown += 1
        except ImportError as reason:
            print(f"skipped {title}: {reason}")
    check(bh.bh_buffer_release(buffer))
    check(bh.bh_device_close(device))
    sys.exit(0 if shown else 77)


main()
