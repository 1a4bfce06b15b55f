# SPDX-License-Identifier: Apache-2.0
"""Memory without a copy: the buffer protocol, DLPack, managed arrays, other processes."""

import ctypes
import gc
import os
import socket
import struct
import threading
from contextlib import nullcontext as nothing

import numpy as np
import pytest

import bulkhead


@pytest.fixture
def on_cpu(device_name):
    if device_name != "cpu":
        pytest.skip("the process sees memory of the CPU device")


@pytest.mark.parametrize(
    "name", ["bool", "int8", "uint64", "float16", "float64", "complex64", "complex128"]
)
def test_the_buffer_protocol(dev, on_cpu, name):
    made = dev.array((np.arange(12) % 2).astype(name).reshape(3, 4), shareable=True)
    seen = np.asarray(made)
    assert seen.dtype == name and seen.shape == (3, 4) and not seen.flags.owndata
    seen[1, 2] = 1
    assert made.numpy()[1, 2] == 1
    made.fill(0)
    assert not np.asarray(made).any() and not seen.any()
    part = np.asarray(made[1:])
    part[:] = 1
    assert seen.sum() == 8
    view = memoryview(made)
    assert view.shape == (3, 4) and view.strides == made.strides and not view.readonly
    assert view.nbytes == made.nbytes == len(bytes(view))


def test_a_kernel_and_the_process_see_the_same(dev, on_cpu, add):
    made = dev.zeros(8, "int32", shareable=True)
    seen = made.host
    add[1, 8](made, 3, 8)
    assert made.host.tolist() == [3] * 8  # waits for the launch
    seen[:] = 10
    add[1, 8](made, 3, 8).wait()
    assert seen.tolist() == [13] * 8


def test_suspect_memory_is_not_shown(dev, on_cpu, ptx):
    made = dev.zeros(4, "int32", shareable=True)
    with pytest.raises(bulkhead.FaultError):
        ptx["crash"][1, 1](made).wait()
    with pytest.raises(bulkhead.StaleError, match="half written"):
        memoryview(made)
    made.accept()
    assert memoryview(made).shape == (4,)


def test_memory_outlives_array_and_device(device_name, on_cpu):
    device = bulkhead.open(device_name, standby=False)
    seen = np.asarray(device.full(4, 7, "int32", shareable=True))
    gc.collect()
    assert seen.tolist() == [7] * 4
    device.close()
    seen += 1
    assert seen.tolist() == [8] * 4


def test_dlpack(dev, on_cpu):
    made = dev.array(np.arange(6, dtype="float32").reshape(2, 3), shareable=True)
    assert made.__dlpack_device__() == (1, 0)
    seen = np.from_dlpack(made)
    assert np.array_equal(seen, np.arange(6).reshape(2, 3)) and seen.dtype == "float32"
    made[0] = 9
    assert seen[0].tolist() == [9] * 3  # no copy
    assert np.array_equal(np.from_dlpack(made[1:]), [[3, 4, 5]])
    for version in (None, (0, 8), (1, 0), (1, 1)):
        capsule = made.__dlpack__(max_version=version)
        assert ("versioned" in repr(capsule)) == (version is not None and version[0] >= 1)
        del capsule  # nobody took it
    cells = dev.array(np.array([1 + 2j, 3j], "complex64"), shareable=True)
    assert np.from_dlpack(cells).tolist() == [1 + 2j, 3j]
    kept = np.from_dlpack(dev.full(3, 4, "int64", shareable=True))
    gc.collect()
    assert kept.tolist() == [4] * 3
    for wrong in ({"copy": True}, {"dl_device": (2, 0)}):
        with pytest.raises(BufferError):
            made.__dlpack__(**wrong)


def test_dlpack_import(dev):
    host = np.arange(6, dtype="int16").reshape(2, 3)
    made = dev.from_dlpack(host)
    assert np.array_equal(made.numpy(), host) and made.dtype == "int16"
    host[:] = 0
    assert made.numpy().any()
    if np.lib.NumpyVersion(np.__version__) >= "1.25.0":  # before, it exports no bool
        assert dev.from_dlpack(np.array([True, False])).tolist() == [True, False]
    with pytest.raises(bulkhead.UnsupportedError):
        dev.from_dlpack(np.arange(6).reshape(2, 3).T)


def test_what_is_not_shareable_says_so(dev):
    made = dev.zeros(4)
    for call in (made.__dlpack__, made.__dlpack_device__, lambda: memoryview(made)):
        with pytest.raises(BufferError, match="shareable=True"):
            call()
    assert not hasattr(made, "__cuda_array_interface__")
    with pytest.raises(bulkhead.UnsupportedError):
        made.export()


def test_cuda_array_interface(dev, device_name):
    if not device_name.startswith("cuda"):
        pytest.skip("not a GPU")
    made = dev.array(np.arange(6, dtype="float32").reshape(2, 3), shareable=True)
    interface = made.__cuda_array_interface__
    assert interface["shape"] == (2, 3) and interface["typestr"] == "<f4" and interface["data"][0]
    assert made.__dlpack_device__()[0] == 2
    try:
        import cupy
    except ImportError:
        pytest.skip("CuPy is not here")
    seen = cupy.asarray(made)
    seen += 1
    cupy.cuda.Device().synchronize()
    assert made.numpy().sum() == 21


def test_managed(dev, add):
    made = dev.managed((2, 5), "int32")
    made.host[:] = 5
    made.prefetch().wait()
    add.forall(10)(made, 1, 10).wait()
    assert made.host.tolist() == [[6] * 5] * 2
    made.host[0] = 0
    add.forall(10)(made, 1, 10).wait()
    assert made.numpy().tolist() == [[1] * 5, [7] * 5] and made.host is not made.host


def test_mapped(dev, add):
    made = dev.managed(4, "int32", transparent=False)
    with made.map("w") as host:
        host[:] = [1, 2, 3, 4]
        with pytest.raises(bulkhead.BusyError):
            add[1, 4](made, 1, 4)
    add[1, 4](made, 1, 4).wait()
    with made.map("r") as host:
        assert host.tolist() == [2, 3, 4, 5] and not host.flags.writeable
    with made.map() as host:
        host += 1
    assert made.tolist() == [3, 4, 5, 6]
    with pytest.raises(BufferError, match="map"):
        memoryview(made)
    with pytest.raises(bulkhead.InvalidError):
        with made.map("rx"):
            pass


def test_a_device_stays_open_under_its_views(dev):
    host = dev.managed(4, "int32").host
    with pytest.raises(BufferError, match="1 views"):
        dev.close()
    assert dev.is_open
    host[:] = 3
    del host
    dev.close()
    assert not dev.is_open


def test_another_device(dev, device_name):
    made = dev.array(np.arange(4, dtype="float32"), shareable=True)
    memory, page, token = made.export()
    with bulkhead.open(device_name, standby=False) as other:
        there = other.from_export(memory, page, token, shape=(2, 2))
        os.close(memory), os.close(page)
        there.fill(5).wait()
        assert made.tolist() == [5] * 4 and there.dtype == "float32"
        with pytest.raises(bulkhead.InvalidError):
            other.from_export(0, 1, token)
        with pytest.raises(bulkhead.InvalidError):
            other.from_export(0, 1, b"short")


def test_another_process(dev, device_name):
    """Started by exec: a forked child cannot use the library."""
    import subprocess
    import sys

    made = dev.zeros(4, "int32", shareable=True)
    memory, page, token = made.export()
    here, there = socket.socketpair()
    code = f"""
import os, socket, bulkhead
end = socket.socket(fileno={there.fileno()})
token, fds, _, _ = socket.recv_fds(end, 4096, 2)
with bulkhead.open({device_name!r}, standby=False) as device:
    device.from_export(*fds, token).copy_from(bytes(range(16)))
"""
    child = subprocess.Popen([sys.executable, "-c", code], pass_fds=[there.fileno()])
    socket.send_fds(here, [token], [memory, page])
    assert child.wait(30) == 0
    assert made.tobytes() == bytes(range(16))
    for each in (here, there):
        each.close()
    os.close(memory), os.close(page)
    assert struct.unpack("<i", made[:1].tobytes()) == (0x03020100,)


def test_an_array_stays_under_its_views(dev):
    made = dev.managed(4, "int32")
    host = made.host
    for end in (made.release, lambda: made.__exit__(None, None, None)):
        with pytest.raises(BufferError, match="1 views.*Fix:"):
            end()
    host[:] = 3  # the memory is still there
    assert made.tolist() == [3] * 4
    with pytest.raises(KeyError):  # not replaced by the BufferError
        with made:
            raise KeyError
    del host
    made.release()
    with pytest.raises(BufferError, match="released"):
        memoryview(made)
    made = dev.managed(4, "int32", transparent=False)
    with made.map() as host:
        host[:] = 4
    assert not host.flags.writeable
    with pytest.raises(ValueError):
        host[0] = 5
    with pytest.raises(BufferError, match="views"):
        made.release()
    del host
    made.release()


def test_a_view_that_begins_while_the_device_closes(dev, ptx):
    """The close waits for a kernel; another thread asks for a view meanwhile."""
    made, word = dev.managed(4, "int32"), dev.zeros(1, "int32")
    ptx["endless"][1, 1](word, deadline=0.5)
    views = []
    timer = threading.Timer(0.2, lambda: views.append(made.host))
    timer.start()
    with pytest.raises(BufferError, match="1 views"):
        dev.close()
    timer.join()
    views[0][:] = 3
    assert dev.is_open and made.tolist() == [3] * 4
    views.clear()


def test_an_exception_is_not_replaced_by_that_of_a_view(device_name):
    with pytest.warns(ResourceWarning, match="1 views"):
        with pytest.raises(KeyError):
            with bulkhead.open(device_name, standby=False) as device:
                host = device.managed(4, "int32").host
                raise KeyError
    host[:] = 3
    assert device.is_open
    del host
    assert not device.is_open  # closed with the last view


def test_formats_of_the_buffer_protocol(dev, on_cpu):
    kind = np.dtype([("a", "f4"), ("b", "i8")])
    made = dev.array(np.array([(1.5, 2), (3.5, 4)], kind), shareable=True)
    assert np.asarray(made).dtype == kind and np.asarray(made)["b"].tolist() == [2, 4]
    assert made.host.dtype == kind
    wide = dev.managed((2, 2), "bfloat16")
    wide.fill(1.5).wait()
    with pytest.raises(BufferError, match="format"):
        memoryview(wide)
    without = pytest.raises((bulkhead.UnsupportedError, TypeError))
    with nothing() if has_ml_dtypes() else without:
        assert np.asarray(wide).dtype != "uint16"
    assert np.frombuffer(wide.view("uint16"), "uint16").tolist() == [0x3FC0] * 4
    with bulkhead.open("cpu", standby=False) as other:
        there = other.array(wide)
        assert there.dtype == "bfloat16" and there.tobytes() == wide.tobytes()


def has_ml_dtypes():
    try:
        import ml_dtypes  # noqa: F401
    except ImportError:
        return False
    return True


def test_orders_of_the_buffer_protocol(dev, on_cpu):
    """PyBUF_F_CONTIGUOUS is refused where the order of Fortran is another one."""
    get, release = ctypes.pythonapi.PyObject_GetBuffer, ctypes.pythonapi.PyBuffer_Release
    view = ctypes.create_string_buffer(256)
    order = 0x40 | 0x10 | 0x08
    with pytest.raises(BufferError, match="Fortran"):
        get(ctypes.py_object(dev.zeros((2, 3), shareable=True)), view, order)
    for shape in ((6,), (1, 6)):
        assert get(ctypes.py_object(dev.zeros(shape, shareable=True)), view, order) == 0
        release(view)


def test_dlpack_of_complex_numbers(dev):
    host = np.array([[1 + 2j, 3j], [0, -1]])
    for name in ("complex64", "complex128"):
        made = dev.from_dlpack(host.astype(name))
        assert made.dtype == name and np.array_equal(made.numpy(), host)
    assert made.view("float64").shape == (2, 4) and made[1].tolist() == [0, -1]
