# SPDX-License-Identifier: Apache-2.0
"""Kernels: arguments, shapes, compiling, the decorator, sequences."""

import ctypes
import struct
import sys

import numpy as np
import pytest
from conftest import HEAD, PTX, SAXPY

import bulkhead
from bulkhead import In, InOut, Out


def test_a_launch(dev, ptx):
    n = 1000
    saxpy = ptx.kernel("saxpy", "float a, const float *x, float *y, unsigned n")
    x, y = dev.array(np.arange(n, dtype="float32")), dev.full(n, 1, "float32")
    ticket = saxpy[(n + 255) // 256, 256](2.0, x, y, n)
    ticket.wait()
    assert ticket.done and ticket.error is None
    assert np.array_equal(y.numpy(), 2 * np.arange(n) + 1)
    saxpy.forall(n)(1, x, y, np.uint16(n)).wait()
    assert np.array_equal(y.numpy(), 3 * np.arange(n) + 1)
    saxpy.forall(n, block=32)(np.float32(-3), In(x), InOut(y), n).wait(timeout=10)
    assert (y.numpy() == 1).all()


def test_shapes(dev, add):
    x = dev.zeros(6, "int32")
    for key in [(6, 1), (1, 6), ((6,), (1,)), ((2, 1, 1), (3, 1, 1)), (1, 6, 128), (1, 6, 0, 1)]:
        try:
            add[key](x, 1, 6).wait()
        except bulkhead.LaunchError as error:
            assert len(key) == 4 and "cluster" in error.reason
            add[1, 6](x, 1, 6).wait()
    assert x.tolist() == [6] * 6
    launcher = add[(3, 2), 8]
    assert launcher.grid == (3, 2, 1) and launcher.block == (8, 1, 1) and launcher.kernel is add
    for wrong in [3, (3,), (1, 2, 3, 4, 5), ("a", 1), ((1, 2, 3, 4), 1), (1.5, 1), ((), 1)]:
        with pytest.raises(TypeError):
            add[wrong]
    for wrong in [(-1, 1), (2**32, 1)]:
        with pytest.raises(bulkhead.InvalidError):
            add[wrong]
    for wrong in [(0, 1), (1, 0)]:
        with pytest.raises(bulkhead.LaunchError) as caught:
            add[wrong](x, 1, 6)
        assert caught.value.reason == "zero_dimension"
    with pytest.raises(bulkhead.LaunchError) as caught:
        add[1, 100000](x, 1, 6)
    assert caught.value.requested == 100000 or caught.value.reason == "block_axis"
    answer = add[1, 2048].preflight()
    assert isinstance(answer["error"], bulkhead.LaunchError) and answer["fits_block"][0] <= 1024
    with pytest.raises(TypeError, match="how many threads"):
        add(x, 1, 6)


def test_arguments_are_checked(dev, add):
    x = dev.zeros(4, "int32")
    f = dev.zeros(4, "float32")
    wrong = [
        ((x, 1), "takes 3 arguments"),
        ((x, 1, 4, 5), "takes 3 arguments"),
        ((f, 1, 4), "elements of i32"),
        ((x, 1.5, 4), "float"),
        ((x, "1", 4), "str"),
        ((x, 2**31, 4), "cannot hold"),
        ((x, -(2**31) - 1, 4), "cannot hold"),
        ((x, 1, -1), "cannot hold"),
        ((x, 1, 2**32), "cannot hold"),
        ((x, 1, 2**80), "cannot hold"),
        ((np.zeros(4, "int32"), 1, 4), "numpy"),
        ((1234, 1, 4), "int"),
        ((x, x, 4), "Array"),
        ((x, None, 4), "None"),
    ]
    for arguments, text in wrong:
        with pytest.raises(bulkhead.InvalidError, match=text) as caught:
            add[1, 4](*arguments)
        assert caught.value.kernel == "add" and caught.value.fix
    with pytest.raises(TypeError, match="dead_line"):
        add[1, 4](x, 1, 4, dead_line=3)
    add[1, 4](x, -(2**31), 4).wait()
    assert x.tolist() == [-(2**31)] * 4
    with pytest.raises(TypeError):
        In(np.zeros(3))


def test_access(dev, ptx):
    saxpy = ptx.kernel("saxpy", "float a, const float *x, out float *y, unsigned n")
    x, y = dev.zeros(4), dev.zeros(4)
    with pytest.raises(bulkhead.InvalidError, match="only reads"):
        saxpy[1, 4](1.0, Out(x), y, 4)
    with pytest.raises(bulkhead.FaultError, match="read-only") as caught:
        saxpy[1, 4](1.0, x, In(y), 4).wait()
    assert caught.value.kernel == "saxpy"
    assert not x.suspect


def test_counts(dev, ptx):
    saxpy = ptx.kernel("saxpy", "float a, const float x[n], float y[n], unsigned n")
    with pytest.raises(bulkhead.LaunchError) as caught:
        saxpy[1, 4](1.0, dev.zeros(3), dev.zeros(4), 4)
    error = caught.value
    assert error.reason == "buffer_small" and (error.requested, error.limit) == (16, 12)
    saxpy[1, 4](1.0, dev.zeros(4), dev.zeros(4), 4).wait()


def test_every_form_of_number(dev, ptx):
    out = dev.zeros(4, "uint64")
    keep = ptx.kernel(
        "keep",
        "void *out, unsigned long long wide, double real, __half half, short small, bool flag, "
        "float2 pair",
    )
    keep[1, 1](out, 2**64 - 1, 2.5, 1.5, -2, True, np.complex64(1 + 2j)).wait()
    wide, real, half, small, flag, x, y = struct.unpack("<QdehBxxxff", out.tobytes())
    assert (wide, real, half, small, flag, x, y) == (2**64 - 1, 2.5, 1.5, -2, 1, 1, 2)
    plain = ptx["keep"]  # what PTX says: bytes of the half and the pair
    plain[1, 1](out, 5, 1, np.float16(0.5), 7, 1, struct.pack("<ff", 3, 4)).wait()
    wide, real, half, small, flag, x, y = struct.unpack("<QdehBxxxff", out.tobytes())
    assert (wide, real, half, small, flag, x, y) == (5, 1, 0.5, 7, 1, 3, 4)
    plain[1, 1](out, -1, 1, b"\0\0", -1, 255, bytearray(8)).wait()
    for index, wrong in [(2, "x"), (3, 1.5), (3, b"123"), (4, 70000), (5, 256), (6, 1j), (6, b"1")]:
        values = [out, 5, 1.0, np.float16(0.5), 7, 1, bytes(8)]
        values[index] = wrong
        with pytest.raises(bulkhead.InvalidError):
            plain[1, 1](*values)
    with pytest.raises(bulkhead.InvalidError):
        keep[1, 1](out, 1, 2.5, 1e6, -2, True, bytes(8))  # no half
    with pytest.raises(bulkhead.InvalidError):
        keep[1, 1](out, -1, 2.5, 1, -2, True, bytes(8))


def test_a_null_pointer(dev, ptx):
    with pytest.raises(bulkhead.FaultError):
        ptx["crash"][1, 1](None).wait()


def test_options(dev, add):
    x = dev.zeros(8, "int32")
    first = add[1, 8](x, 1, 8, timed=True, idempotent=True)
    first.wait()
    assert first.times()["timed"] == 1 and first.times()["device_ns"] > 0
    with dev.lane() as lane:
        other = add[1, 8](x, 1, 8, after=[first])
        assert other.id[0] != first.id[0]
        lane.sync(10)
        with dev.lane(), lane:
            again = add[1, 8](x, 1, 8)
        assert again.id[0] == other.id[0]
    third = add[1, 8](x, 1, 8, after=other, also=[x, In(x)], deadline=10)
    assert third.id[0] == first.id[0]
    bulkhead.wait_all([first, other, again, third])
    assert x.tolist() == [4] * 8
    assert len({first, other, first}) == 2 and first == first and first != other
    for wrong in ({"lane": 3}, {"after": 3}, {"after": [3]}, {"also": [3]}, {"deadline": "x"}):
        with pytest.raises(TypeError):
            add[1, 8](x, 1, 8, **wrong)
    with pytest.raises(ValueError):
        add[1, 8](x, 1, 8, deadline=-1)
    with pytest.raises(bulkhead.InvalidError):
        with lane:
            pass


def test_modules(dev, ptx):
    assert ptx.kernels() == ["add", "saxpy", "crash", "endless", "keep"]
    assert ptx["add"] is ptx["add"] and ptx["add"].name == "add" and ptx["add"].module is ptx
    assert ptx["saxpy"].parameters[0] == ".f32 a"
    assert ptx["add"].info()["param_count"] == 3 and ptx["add"].occupancy(64)["max_threads"] >= 64
    assert ptx.compiled() is None and ptx.image() is None
    with pytest.raises(LookupError):
        ptx["nothing"]
    for wrong in (
        "int *x, int value",
        "int *x, int value, double n",
        "int (*x)(int), int v, int n",
    ):
        with pytest.raises(bulkhead.InvalidError):
            ptx.kernel("add", wrong)
    with pytest.raises(bulkhead.LoadError):
        dev.load("this is .version no PTX\n")
    with pytest.raises(bulkhead.NotFoundError):
        dev.load("/no/such/file.ptx")
    kept = ptx["add"]
    ptx.release()
    with pytest.raises(bulkhead.InvalidError):
        kept[1, 1](dev.zeros(1, "int32"), 1, 1)
    with pytest.raises(bulkhead.InvalidError):
        ptx["add"]


def test_variables(dev):
    module = dev.load(
        HEAD + ".visible .global .align 4 .u32 counter = 5;\n.visible .entry nothing() { ret; }\n"
    )
    assert module.read("counter") == struct.pack("<I", 5)
    module.write("counter", np.array([9], "uint32"))
    assert module.read("counter") == struct.pack("<I", 9)
    module["nothing"][1, 1]().wait()


def test_a_full_queue(dev, add):
    x = dev.zeros(1, "int32")
    launch = add[1, 1]
    for _ in range(5000):
        ticket = launch(x, 1, 1)
    ticket.wait()
    assert x.item() == 5000


def test_many_parameters(dev):
    count = 40
    names = ", ".join(f".param .u32 p{i}" for i in range(count))
    loads = "\n".join(f"ld.param.u32 %v, [p{i}]; add.u32 %t, %t, %v;" for i in range(count))
    module = dev.load(
        HEAD + f".visible .entry total(.param .u64 out, {names}) {{\n"
        ".reg .b64 %o; .reg .b32 %v, %t;\nmov.u32 %t, 0;\n"
        + loads
        + "ld.param.u64 %o, [out]; st.global.u32 [%o], %t; ret; }\n"
    )
    out = dev.zeros(1, "uint32")
    module["total"][1, 1](out, *range(count)).wait()
    assert out.item() == sum(range(count))


def test_references_are_balanced(dev, add):
    x, value = dev.zeros(1, "int32"), 123456
    launch = add[1, 1]
    launch(x, value, 1).wait()
    before = [sys.getrefcount(each) for each in (x, value, add, dev, launch)]
    for _ in range(100):
        launch(x, value, 1).wait()
        add[1, 1](x, value, 1)
        with pytest.raises(bulkhead.InvalidError):
            launch(x, 1.5, 1)
    dev.sync()
    after = [sys.getrefcount(each) for each in (x, value, add, dev, launch)]
    assert all(abs(a - b) <= 2 for a, b in zip(before, after)), (before, after)


def test_prepared(dev, add):
    x = dev.zeros(4, "int32")
    with bulkhead.prepare(add[1, 4], x, 1, 4) as step:
        for _ in range(2000):  # more than the queue holds
            step()
        step({1: 10}).wait()
        assert x.tolist() == [2010] * 4
        for wrong in ({7: 1}, {1: 1.5}, {1: 2**40}):
            with pytest.raises(bulkhead.InvalidError):
                step(wrong)
    with pytest.raises(bulkhead.InvalidError):
        step()


def test_sequences(dev, add):
    x, y, z = (dev.zeros(4, "int32") for _ in range(3))
    with dev.sequence("three steps") as seq:
        first = seq.launch(add[1, 4], x, 5, 4)
        seq.copy(y, x)
        seq.fill(z, 7)
    seq.submit(repeat=2).wait()
    assert (x.tolist(), y.tolist(), z.tolist()) == ([10] * 4, [10] * 4, [7] * 4)
    seq.set(first, 1, -10)
    seq.submit().wait()
    assert y.tolist() == [0] * 4
    other = dev.full(4, 100, "int32")
    seq.bind(x, other)
    seq.submit(deadline=10, idempotent=False).wait()
    assert y.tolist() == [90] * 4 and x.tolist() == [0] * 4
    with pytest.raises(bulkhead.InvalidError):
        seq.set(first + 1, 0, 1)
    with pytest.raises(bulkhead.InvalidError):
        seq.set(first, 9, 1)
    with pytest.raises(bulkhead.InvalidError):
        seq.copy(y, dev.zeros(5, "int32"))
    seq.release()
    with pytest.raises(bulkhead.InvalidError):
        seq.submit()


# ---- with a compiler


def test_compiled(dev, compiler):
    module = dev.compile(SAXPY)
    saxpy = module["saxpy"]
    assert list(saxpy.parameters) == [
        "float a",
        "const float *__restrict__ x",
        "float *y",
        "unsigned int n",
    ]
    x, y = dev.array(np.arange(8, dtype="float32")), dev.zeros(8)
    saxpy.forall(8)(2, x, y, 8).wait()
    assert y.tolist() == [2.0 * i for i in range(8)]
    with pytest.raises(bulkhead.InvalidError, match="elements of f32"):
        saxpy.forall(8)(2.0, x.view("int32"), y, 8)
    assert module.compiled()["compiler"]
    with pytest.raises(bulkhead.CompileError) as caught:
        dev.compile("__global__ void bad() { nonsense }", name="bad.cu")
    assert "bad.cu" in caught.value.log and "nonsense" in caught.value.log


def test_names_of_cpp(dev, compiler):
    module = dev.compile(
        """
        template <typename T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= (T)N; }
        __global__ void plain(const int *from, int *to) { *to = *from + OFFSET; }
        namespace inner { __global__ void deep(int *to) { *to = 3; } }
        """,
        names=["scale<float, 3>"],
        defines={"OFFSET": 4},
    )
    x = dev.full(4, 2.0)
    module["scale<float, 3>"][1, 4](x).wait()
    assert x.tolist() == [6.0] * 4
    a, b = dev.full(1, 1, "int32"), dev.zeros(1, "int32")
    module["plain"][1, 1](a, b).wait()
    assert b.item() == 5
    module["deep"][1, 1](b).wait()
    assert b.item() == 3


twice_source = """extern "C" __global__ void twice(int *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= 2;
}"""


def test_the_decorator(dev, compiler, tmp_path):
    def twice():
        pass

    twice.__doc__ = twice_source
    double = bulkhead.kernel(twice)
    x = dev.full(3, 5, "int32")
    double[1, 3](x, 3).wait()
    double.forall(3)(InOut(x), 3).wait()
    assert x.tolist() == [20] * 3
    assert double.on(dev) is double.on(dev)
    path = tmp_path / "kernels.cu"
    path.write_text(twice_source)
    filed = bulkhead.kernel(file=str(path), name="twice")(lambda x, n: None)
    filed.forall(3)(x, 3).wait()
    assert x.tolist() == [40] * 3
    with pytest.raises(bulkhead.InvalidError, match="array"):
        double[1, 1](3)
    with pytest.raises(TypeError):
        double(x)
    with pytest.raises(bulkhead.InvalidError, match="__global__"):
        bulkhead.kernel(lambda: None)


def test_printing(device_name, compiler, capfd):
    said = []
    with bulkhead.open(device_name, print=said.append) as device:
        device.compile('extern "C" __global__ void say(int n) { printf("n is %d\\n", n); }')["say"][
            1, 2
        ](7).wait()
        device.sync()
    assert "".join(said) == "n is 7\nn is 7\n"


def test_numbers_that_do_not_fit(dev, add, device_name):
    x = dev.zeros(4, "int32")
    with dev.sequence() as steps:
        steps.launch(add[1, 4], x, 1, 4)
    for repeat in (0, -1, 2**32 + 1):
        with pytest.raises(bulkhead.InvalidError, match="repeat="):
            steps.submit(repeat=repeat)
    steps.submit(repeat=3, deadline=0).wait()
    assert x.tolist() == [3] * 4
    for wrong in (
        {"queue_length": 2**32 + 64},
        {"standbys": -1},
        {"restart_limit": -1},
        {"memory_limit": -1},
        {"deadline": -1},
        {"close_timeout": float("nan")},
    ):
        with pytest.raises(bulkhead.InvalidError, match="Fix:"):
            bulkhead.open(device_name, **wrong)
    with pytest.raises(bulkhead.InvalidError, match="limit=-1"):
        dev.set_memory_limit(-1)
    with pytest.raises(bulkhead.InvalidError, match="max_registers=-1"):
        dev.compile("", max_registers=-1)
    for call in (
        lambda: steps.set(0, -1, 5),
        lambda: dev.empty(4, align=-1),
        lambda: add.module.write("name", b"1", offset=-1),
        lambda: add[1, 4](x, 1, 4, priority=2**32),
    ):
        with pytest.raises(bulkhead.InvalidError, match="from 0 to |no priority"):
            call()
    with bulkhead.open(device_name, standby=False, deadline=0) as device:  # 0: none
        device.load(PTX)["add"][1, 4](device.zeros(4, "int32"), 1, 4).wait()


def test_what_arguments_point_to_is_kept(dev):
    """The bytes of a struct, until the launch returns."""
    ptx = (
        ".version 7.0\n.target sm_70\n.address_size 64\n"
        ".visible .entry copy(.param .u64 .ptr .global .align 4 x, .param .align 4 .b8 s[64],"
        " .param .u32 n)\n"
        "{ .reg .b64 %x; .reg .b32 %v; ld.param.u64 %x, [x]; ld.param.u32 %v, [s+60];"
        " st.global.u32 [%x], %v; ret; }"
    )
    copy, x = dev.load(ptx)["copy"], dev.zeros(1, "int32")

    class Struct(ctypes.Structure):
        _fields_ = [("rest", ctypes.c_int * 15), ("last", ctypes.c_int)]

    for value in (np.full(16, 7, "int32"), Struct((0,) * 15, 7), bytearray(b"\7\0\0\0" * 16)):
        copy[1, 1](x, value, 0).wait()
        assert x.item() == 7

    class Late:  # changes what an argument before it points to
        def __index__(self):
            value[:] = bytes(64)
            return 0

    copy[1, 1](x, value, Late()).wait()
    assert x.item() == 7 and not any(value)
    prepared = bulkhead.prepare(copy[1, 1], x, b"\5\0\0\0" * 16, 0)
    prepared().wait()
    assert x.item() == 5
    with prepared:
        prepared({1: np.full(16, 9, "int32")}).wait()
    assert x.item() == 9
    with pytest.raises(bulkhead.InvalidError, match="64 bytes"):
        copy[1, 1](x, b"1234", 0)


def test_kinds_of_image(dev, ptx):
    with pytest.raises(bulkhead.InvalidError, match="'x' is no kind"):
        ptx.image("x")
