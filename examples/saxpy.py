#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""saxpy from Python: the library's exported functions through ctypes, structs laid out by hand.

usage: saxpy.py [DEVICE]

The library is found as libbulkhead.so.0, or where BULKHEAD_LIBRARY says.
"""
import ctypes as c
import os
import struct
import sys

BH_OK = 0
BH_F32 = 11
BH_ACCESS_IN, BH_ACCESS_INOUT = 1, 3
BH_ARG_VALUE, BH_ARG_BUFFER = 1, 3
BH_FOREVER = 2**64 - 1


class Handle(c.Structure):  # bh_device, bh_module, bh_kernel, bh_buffer, bh_lane
    _fields_ = [("id", c.c_uint64)]


class Ticket(c.Structure):
    _fields_ = [("lane", c.c_uint64), ("sequence", c.c_uint64)]


class Error(c.Structure):
    _fields_ = [
        ("status", c.c_int32),
        ("device_code", c.c_int32),
        ("device_name", c.c_char * 64),
        ("message", c.c_char * 512),
        ("fix", c.c_char * 256),
        ("kernel", c.c_char * 128),
        ("ticket", Ticket),
        ("generation", c.c_uint64),
        ("certain", c.c_uint32),
        ("reason", c.c_uint32),
        ("requested", c.c_uint64),
        ("limit", c.c_uint64),
        ("reserved", c.c_uint8 * 8),
    ]


class DeviceOptions(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("flags", c.c_uint32),
        ("device", c.c_char_p),
        ("worker_dir", c.c_char_p),
        ("restart_window_ns", c.c_uint64),
        ("restart_limit", c.c_uint32),
        ("quarantine_after", c.c_uint32),
        ("deadline_ns", c.c_uint64),
        ("wait_spin_ns", c.c_uint64),
        ("worker_spin_ns", c.c_uint64),
        ("close_timeout_ns", c.c_uint64),
        ("memory_limit", c.c_uint64),
        ("queue_length", c.c_uint32),
        ("reserved", c.c_uint32),
    ]


class Dim(c.Structure):
    _fields_ = [("x", c.c_uint32), ("y", c.c_uint32), ("z", c.c_uint32)]


class Shape(c.Structure):
    _fields_ = [("grid", Dim), ("block", Dim), ("cluster", Dim), ("shared_bytes", c.c_uint32)]


class ArgBuffer(c.Structure):
    _fields_ = [("handle", Handle), ("at_least", c.c_uint64)]


class ArgUnion(c.Union):
    _fields_ = [("value", c.c_uint8 * 16), ("data", c.c_void_p), ("buffer", ArgBuffer)]


class Arg(c.Structure):
    _fields_ = [("kind", c.c_uint16), ("access", c.c_uint16), ("size", c.c_uint32), ("u", ArgUnion)]


class Args(c.Structure):
    _fields_ = [("list", c.POINTER(Arg)), ("count", c.c_size_t)]


bh = c.CDLL(os.environ.get("BULKHEAD_LIBRARY", "libbulkhead.so.0"))
for name, *types in [
    ("bh_last_error", c.POINTER(Error)),
    ("bh_device_open", c.POINTER(DeviceOptions), c.POINTER(Handle)),
    ("bh_device_close", Handle),
    ("bh_module_load", Handle, c.c_char_p, c.c_size_t, c.POINTER(Handle)),
    ("bh_kernel_get", Handle, c.c_char_p, c.POINTER(Handle)),
    ("bh_buffer_alloc", Handle, c.c_uint32, c.c_uint64, c.c_void_p, c.POINTER(Handle)),
    ("bh_buffer_write", Handle, c.c_uint64, c.c_void_p, c.c_uint64),
    ("bh_buffer_read", Handle, c.c_uint64, c.c_void_p, c.c_uint64),
    ("bh_launch", Handle, Shape, Args, c.c_void_p, c.POINTER(Ticket)),
    ("bh_wait", Ticket, c.c_uint64),
]:
    getattr(bh, name).argtypes = types
    getattr(bh, name).restype = c.c_int32


def must(status):
    """Raises what the library says about a call that failed."""
    if status != BH_OK:
        error = Error()
        bh.bh_last_error(c.byref(error))
        raise RuntimeError(f"{error.message.decode()}\nFix: {error.fix.decode()}")


def make(function, *arguments):
    """Calls a function whose last parameter is a handle to be filled in."""
    handle = Handle()
    must(function(*arguments, c.byref(handle)))
    return handle


def value(form, number):
    """A scalar argument: its bytes, as the kernel's parameter has them."""
    data = struct.pack(form, number)
    arg = Arg(kind=BH_ARG_VALUE, size=len(data))
    c.memmove(arg.u.value, data, len(data))
    return arg


def buffer(handle, access):
    arg = Arg(kind=BH_ARG_BUFFER, access=access)
    arg.u.buffer.handle = handle
    return arg


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "auto"
    n = 10000
    x = (c.c_float * n)(*range(n))
    y = (c.c_float * n)(*[1.0] * n)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "saxpy.ptx"), "rb") as file:
        ptx = file.read()

    options = DeviceOptions(size=c.sizeof(DeviceOptions), device=name.encode())
    device = make(bh.bh_device_open, c.byref(options))
    module = make(bh.bh_module_load, device, ptx, len(ptx))
    kernel = make(bh.bh_kernel_get, module, b"saxpy")
    device_x = make(bh.bh_buffer_alloc, device, BH_F32, n, None)
    device_y = make(bh.bh_buffer_alloc, device, BH_F32, n, None)
    must(bh.bh_buffer_write(device_x, 0, x, c.sizeof(x)))
    must(bh.bh_buffer_write(device_y, 0, y, c.sizeof(y)))

    arguments = (Arg * 4)(
        value("f", 2.0),
        buffer(device_x, BH_ACCESS_IN),
        buffer(device_y, BH_ACCESS_INOUT),
        value("I", n),
    )
    shape = Shape(grid=Dim((n + 255) // 256, 1, 1), block=Dim(256, 1, 1))
    ticket = Ticket()
    must(bh.bh_launch(kernel, shape, Args(arguments, len(arguments)), None, c.byref(ticket)))
    must(bh.bh_wait(ticket, BH_FOREVER))

    must(bh.bh_buffer_read(device_y, 0, y, c.sizeof(y)))
    must(bh.bh_device_close(device))
    wrong = sum(y[i] != 2.0 * i + 1.0 for i in range(n))
    print(f"saxpy from Python: y[{n - 1}] = {y[n - 1]:g}, {wrong} of {n} elements wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
