# SPDX-License-Identifier: Apache-2.0
"""What is read of a kernel's parameters in CUDA sources, declared signatures and PTX."""

import pytest

from bulkhead import _core, _signature

IN, OUT, INOUT = _core.BH_ACCESS_IN, _core.BH_ACCESS_OUT, _core.BH_ACCESS_INOUT


def brief(parameters):
    """(form, bytes) of numbers, (access, element) of pointers."""
    return [(each[1], each[2]) if each[0] == "p" else (each[0], each[3]) for each in parameters]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("", []),
        ("void", []),
        ("float a", [("f", 4)]),
        (
            "unsigned n, unsigned long long m, long k, size_t s",
            [("u", 4), ("u", 8), ("i", 8), ("u", 8)],
        ),
        (
            "int unsigned n, long int m, short s, signed char c, char d",
            [("u", 4), ("i", 8), ("i", 2), ("i", 1), ("i", 1)],
        ),
        ("const float *x", [(IN, _core.BH_F32)]),
        (
            "float const * __restrict__ x, float *__restrict__ y",
            [(IN, _core.BH_F32), (INOUT, _core.BH_F32)],
        ),
        ("float * const x", [(INOUT, _core.BH_F32)]),
        ("const volatile uint8_t* x", [(IN, _core.BH_U8)]),
        (
            "double x[], const double y[16], out double *z",
            [(INOUT, _core.BH_F64), (IN, _core.BH_F64), (OUT, _core.BH_F64)],
        ),
        ("float **rows, void *any, const Particle *p", [(INOUT, 0), (INOUT, 0), (IN, 0)]),
        (
            "float2 *z, __half h, const __nv_bfloat16 *b",
            [(INOUT, _core.BH_F32), ("f", 2), (IN, _core.BH_BF16)],
        ),
        ("std::uint32_t n, bool flag, int m = 3", [("u", 4), ("b", 1), ("i", 4)]),
        ("const int, unsigned", [("i", 4), ("u", 4)]),
        (
            "const float **rows, float *const *columns, const int *cells[], int *const last[4]",
            [(INOUT, 0), (IN, 0), (INOUT, 0), (IN, 0)],
        ),
        ("const float x[4]", [(IN, _core.BH_F32)]),
        ("Matrix m", [("?", 0)]),
        ("const float (*x)[4]", None),
        ("int &n", None),
        ("std::array<float, 4> x", None),
    ],
)
def test_parameter_lists(text, expected):
    read = _signature.parse_parameters(text)
    assert (read if read is None else brief(read)) == expected


def test_counts():
    read = _signature.parse_parameters("const float x[n], double y[n], unsigned n, int z[k]")
    assert [(each[4], each[5]) for each in read] == [(2, 4), (2, 8), (-1, 0), (-1, 4)]


def test_sources():
    found = _signature.from_source("""
        // __global__ void comment(int x);
        #define MACRO __global__ void macro(int x)
        const char *text = "__global__ void string(int x)";
        extern "C" __global__ void first(float a, const float *x /* in */, int n) {}
        static __global__ __launch_bounds__(256, 2) void second(double *x,
                                                               unsigned n) {}
        template <typename T> __global__ void third(T *x, T value) {}
        extern "C" { __global__ void __launch_bounds__(64) fourth() {} }
        __global__ void over(int x) {}
        __global__ void over(float x) {}
    """)
    assert set(found) == {"first", "second", "third", "fourth", "over"}
    assert brief(found["first"]) == [("f", 4), (IN, _core.BH_F32), ("i", 4)]
    assert brief(found["second"]) == [(INOUT, _core.BH_F64), ("u", 4)]
    assert brief(found["third"]) == [(INOUT, 0), ("?", 0)]
    assert found["fourth"] == [] and found["over"] is None


def test_ptx():
    found = _signature.from_ptx("""
        .visible .entry _Z1kPKfi(.param .u64 _Z1kPKfi_param_0, // a comment, with a comma
            .param .u64 .ptr .global .align 4 p1, .param .f32 p2, .param .align 4 .b8 p3[12],
            .param .b32 p4, .param .s32 p5)
        .maxntid 128, 1, 1
        { ret; }
        .entry nothing() { ret; }
        .entry bare { ret; }
    """)
    forms = [(each[0], each[3]) for each in found["_Z1kPKfi"]]
    assert forms == [("w", 8), ("p", 8), ("f", 4), ("s", 12), ("a", 4), ("n", 4)]
    assert found["nothing"] == [] and found["bare"] == []


@pytest.mark.parametrize(
    "mangled, name",
    [
        ("saxpy", "saxpy"),
        ("_Z5saxpyfPKfPfj", "saxpy"),
        ("_ZN2ns5saxpyEf", "saxpy"),
        ("_ZN2ns5inner4deepEf", "deep"),
        ("_ZL6statici", "static"),
        ("_Z", "_Z"),
        ("_ZN", "_ZN"),
    ],
)
def test_names(mangled, name):
    assert _signature.simple_name(mangled) == name


def test_what_does_not_agree_with_the_image_is_not_used():
    known = _signature.parse_parameters("float a, long n, Matrix m")
    settled = _signature.settle(known, [(4, 0), (4, 0), (64, 0)])
    assert [(each[0], each[3]) for each in settled] == [("f", 4), ("a", 4), ("s", 64)]
    settled = _signature.settle(None, [(8, 1), (8, 0), (3, 0)])
    assert [(each[0], each[3]) for each in settled] == [("p", 8), ("a", 8), ("s", 3)]
