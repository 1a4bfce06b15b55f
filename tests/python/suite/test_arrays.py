# SPDX-License-Identifier: Apache-2.0
"""Arrays: dtypes, views, transfers, what is refused."""

import array
import ctypes
import gc
import pickle
import struct

import numpy as np
import pytest

import bulkhead

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_there_and_back(dev, name):
    host = (np.arange(24) % 7).astype(name).reshape(2, 3, 4)
    made = dev.array(host)
    assert made.dtype == host.dtype and made.dtype == name and made.shape == host.shape
    assert made.strides == host.strides and made.nbytes == host.nbytes
    back = made.numpy()
    assert back.dtype == host.dtype and np.array_equal(back, host)
    filled = dev.full(5, host.flat[3].item(), name)
    assert np.array_equal(filled.numpy(), np.full(5, host.flat[3]))
    assert np.dtype(made.dtype) == host.dtype and hash(made.dtype) == hash(bulkhead.dtype(name))


def test_dtypes_by_other_names():
    assert bulkhead.dtype(float) == "float64" and bulkhead.dtype("f32") == np.float32
    assert bulkhead.dtype(np.int16) == "i16" and bulkhead.dtype(np.dtype("<u8")) == "uint64"
    assert bulkhead.float32 != bulkhead.float64 and bulkhead.float32 != 3
    for wrong in ("float99", object, "datetime64[s]"):
        with pytest.raises((TypeError, ValueError)):
            bulkhead.dtype(wrong)
    with pytest.raises(bulkhead.InvalidError, match="byte order"):
        bulkhead.dtype(">f4")


def test_bfloat16(dev):
    made = dev.full(2, 1.5, "bfloat16")
    assert made.tobytes() == struct.pack("<HH", 0x3FC0, 0x3FC0)
    assert made.view("uint16").tolist() == [0x3FC0, 0x3FC0]
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(bulkhead.UnsupportedError, match="ml_dtypes"):
            made.numpy()
    else:
        assert made.numpy().dtype == ml_dtypes.bfloat16


def test_structured_dtype(dev):
    kind = np.dtype([("a", "f4"), ("b", "i8")])
    host = np.array([(1.5, 2), (3.5, 4)], kind)
    made = dev.array(host)
    assert np.array_equal(made.numpy(), host) and made.numpy().dtype == kind
    made[1] = np.array((7.0, 8), kind)
    assert made.numpy()[1] == np.array((7.0, 8), kind)


def test_odd_sources(dev):
    big = np.arange(6, dtype=">i4").reshape(2, 3)
    assert dev.array(big).numpy().tolist() == big.tolist()
    transposed = np.arange(12, dtype="float32").reshape(3, 4).T
    assert np.array_equal(dev.array(transposed).numpy(), transposed)
    assert np.array_equal(dev.array(transposed[::2, ::-1]).numpy(), transposed[::2, ::-1])
    assert dev.array([[1, 2], [3, 4]], dtype="uint8").tolist() == [[1, 2], [3, 4]]
    assert dev.array(array.array("d", [1, 2])).dtype == "float64"
    for wrong in (["x"], object(), np.array([None])):
        with pytest.raises((TypeError, ValueError, bulkhead.Error)):
            dev.array(wrong)


def test_without_elements_and_without_dimensions(dev):
    empty = dev.empty((0, 3), "float64")
    assert empty.numpy().shape == (0, 3) and empty.tobytes() == b"" and len(empty) == 0
    empty.copy_from(np.zeros((0, 3)))
    empty.fill(1)
    assert dev.array(np.zeros((3, 0))).reshape(0, 5).shape == (0, 5)
    point = dev.array(3.5)
    assert point.shape == () and float(point) == 3.5 and point.numpy().shape == ()
    point[...] = 2
    assert point.item() == 2 and bool(point) and int(point) == 2
    with pytest.raises(TypeError):
        len(point)


def test_views_share_memory(dev):
    host = np.arange(24, dtype="int32").reshape(4, 3, 2)
    made = dev.array(host)
    for key in [
        0,
        -1,
        (1, 2),
        (1, 2, 1),
        slice(1, 3),
        (2, slice(1, 3)),
        (slice(1, 2), slice(0, 2)),
        Ellipsis,
        (Ellipsis,),
        slice(3, 1),
        (0, Ellipsis),
        (slice(2, 3), 1, slice(0, 1)),
        (slice(0, 4), slice(0, 3)),
        slice(0, 4, 4),
        (1, 1, slice(None, None, None)),
    ]:
        part = made[key]
        assert part.shape == host[key].shape and np.array_equal(part.numpy(), host[key]), key
    made[1:3] = 7
    host[1:3] = 7
    made[0, 1] = np.array([5, 6], "int32")
    host[0, 1] = [5, 6]
    made[3] = made[0]
    host[3] = host[0]
    assert np.array_equal(made.numpy(), host)
    assert made[1].address == made.address + 24
    assert [row.shape for row in made] == [(3, 2)] * 4


@pytest.mark.parametrize(
    "key",
    [
        (slice(None), 1),
        slice(None, None, 2),
        slice(None, None, -1),
        (slice(None), slice(0, 2)),
        (Ellipsis, 0),
    ],
)
def test_slices_with_gaps_are_refused(dev, key):
    made = dev.zeros((4, 3), "int32")
    with pytest.raises(bulkhead.UnsupportedError, match="one address") as caught:
        made[key]
    assert "Fix:" in str(caught.value) and caught.value.fix


@pytest.mark.parametrize("key", [[0, 1], np.array([True]), None, 1.5, (0, 0, 0), 4, -5, True])
def test_wrong_indices(dev, key):
    with pytest.raises((TypeError, IndexError)):
        dev.zeros((4, 3), "int32")[key]


def test_reshape_and_view(dev):
    made = dev.array(np.arange(12, dtype="int32"))
    assert np.array_equal(made.reshape(3, -1).numpy(), np.arange(12).reshape(3, 4))
    assert made.reshape((2, 6)).ravel().shape == (12,)
    assert np.array_equal(made.view("uint8").numpy(), np.arange(12, dtype="int32").view("uint8"))
    assert made.view("int64").shape == (6,)
    assert made.view("complex64").view("int32").tolist() == list(range(12))
    for wrong in ((5,), (-1, 5), (-1, -1), (-2, -6)):
        with pytest.raises(bulkhead.InvalidError):
            made.reshape(*wrong)
    with pytest.raises(bulkhead.InvalidError):
        made[:3].view("int64")
    with pytest.raises(bulkhead.InvalidError):
        made[1:3].view("int64")  # not aligned


def test_copies(dev):
    made = dev.array(np.arange(6, dtype="float32"))
    other = made.copy()
    made.fill(0)
    assert other.tolist() == [0, 1, 2, 3, 4, 5]
    made.copy_from(other)
    assert made.tolist() == other.tolist()
    ticket = made.copy_from(other, wait=False)
    ticket.wait()
    made.copy_from(b"\0" * 24)
    assert not made.numpy().any()
    made.copy_from(3)
    assert made.tolist() == [3] * 6
    out = np.empty(6, "float32")
    assert made.numpy(out=out) is out and out[0] == 3
    for wrong in (np.zeros(7, "float32"), b"1234", dev.zeros(5), np.zeros(6, "complex64")):
        with pytest.raises((ValueError, bulkhead.Error)):
            made.copy_from(wrong)
    with pytest.raises(bulkhead.InvalidError):
        made.numpy(out=np.empty(5, "float32"))
    with pytest.raises(bulkhead.InvalidError):
        dev.full(3, 300, "uint8")


def test_as_numpy_sees_it(dev):
    made = dev.array(np.arange(3, dtype="float32"))
    host = np.asarray(made)
    host[0] = 9
    assert made.tolist() == [0, 1, 2]  # a copy
    assert np.asarray(made, dtype="int64").tolist() == [0, 1, 2]
    with pytest.raises(BufferError, match="shareable"):
        memoryview(made)
    assert (np.add(made, 1) == [1, 2, 3]).all()


def test_a_large_array_in_pieces(dev):
    host = np.random.default_rng(1).integers(0, 255, 3_000_001, dtype="uint8")
    made = dev.empty(host.shape, "uint8")
    made.copy_from(host)
    assert np.array_equal(made.numpy(), host)


def test_copies_between_devices(dev, device_name):
    with bulkhead.open(device_name, standby=False) as other:
        made = dev.array(np.arange(5, dtype="int64"))
        there = other.zeros(5, "int64")
        there.copy_from(made)
        assert there.tolist() == [0, 1, 2, 3, 4]
        assert other.array(made).tolist() == [0, 1, 2, 3, 4]


def test_lifetime(dev):
    made = dev.array(np.arange(8, dtype="int32"))
    part = made[2:4]
    del made
    gc.collect()
    assert part.tolist() == [2, 3]
    before = dev.memory()["buffers"]
    with dev.zeros(4) as short:
        assert dev.memory()["buffers"] == before + 1
    assert dev.memory()["buffers"] == before
    with pytest.raises(bulkhead.InvalidError):
        short.numpy()
    del part
    assert dev.memory()["buffers"] == before - 1


def test_garbage_is_collected_when_memory_is_short(dev):
    dev.set_memory_limit(64 << 20)
    gc.collect()
    gc.disable()
    try:
        for _ in range(10):  # 200 MiB in all
            cycle = [dev.empty(20 << 20, "uint8")]
            cycle.append(cycle)
            del cycle
    finally:
        gc.enable()


def test_refused_sizes(dev):
    for shape, dtype in ((-1, "f32"), ((2, -3), "f32"), (2**62, "f64"), ((2**40, 2**40), "u8")):
        with pytest.raises((bulkhead.InvalidError, bulkhead.NoMemoryError)):
            dev.empty(shape, dtype)
    with pytest.raises(MemoryError):
        dev.empty(2**45, "u8")
    with pytest.raises(TypeError):
        dev.empty(3, "f32", sharable=True)
    with pytest.raises(TypeError):
        bulkhead.Array(dev, 11, 10, 0)


def test_tags(dev):
    weights = dev.empty(1000, tag="weights")
    assert any(
        each["tag"] == "weights" and each["bytes"] == weights.nbytes for each in dev.memory_tags()
    )
    dev.set_memory_limit(5000, tag="weights")
    with pytest.raises(bulkhead.NoMemoryError):
        dev.empty(1000, tag="weights")


def test_pickling_is_refused(dev, add):
    for each in (
        dev,
        dev.zeros(3),
        add,
        add.module,
        add[1, 1],
        add[1, 1](dev.zeros(1, "i32"), 1, 1),
    ):
        with pytest.raises(TypeError, match="pickle"):
            pickle.dumps(each)


def test_formats_that_are_converted(dev):
    made = dev.zeros(4, "float64")
    made.copy_from(np.arange(4, dtype=">f8"))
    assert made.tolist() == [0, 1, 2, 3]
    made.copy_from((ctypes.c_int * 4)(5, 6, 7, 8))
    assert made.tolist() == [5, 6, 7, 8]
    assert bulkhead.float64 != None  # noqa: E711
    assert not bulkhead.float64 == None  # noqa: E711


def test_structured_elements_are_filled_by_field(dev):
    kind = np.dtype([("a", "f4"), ("b", "i8")])
    made = dev.full(3, 5, kind)
    assert made.numpy().tolist() == [(5.0, 5)] * 3
    made[0] = 6
    made[1:].fill((1.5, 2))
    assert made.numpy().tolist() == [(6.0, 6), (1.5, 2), (1.5, 2)]
    with pytest.raises(bulkhead.InvalidError, match="65536"):
        dev.zeros(1, np.dtype([("a", "f4", 20000)])).fill(1)


def test_bytes_are_uint8(dev):
    for source in (b"\x01\xff", bytearray(b"\x01\xff"), memoryview(b"\x01\xff")):
        made = dev.array(source)
        assert made.dtype == "uint8" and made.tolist() == [1, 255]
        assert dev.array(source, "int16").tolist() == [1, 255]
    assert dev.array(b"").shape == (0,)


def test_wrong_kinds_of_arguments_say_so(dev):
    with pytest.raises(TypeError, match="index a copy"):
        dev.zeros(4)[np.array([0, 2])]
    assert dev.array([1, 2, 3])[np.int64(1)].item() == 2
    for shape in (1e6, (2, 3.0), "3", None):
        with pytest.raises(TypeError, match="shape is an integer.*Fix:"):
            dev.zeros(shape)
    with pytest.raises(bulkhead.InvalidError, match="sandbox='off'.*"):
        bulkhead.open("cpu", sandbox="off")
