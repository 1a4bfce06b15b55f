# SPDX-License-Identifier: Apache-2.0
"""What the tests share: kernels in PTX, which need no compiler, and a device for each test."""

import pytest

import bulkhead

HEAD = ".version 7.0\n.target sm_70\n.address_size 64\n"
INDEX = """
    .reg .pred %p;
    .reg .b32 %i, %n, %b, %s;
    mov.u32 %i, %tid.x;
    mov.u32 %b, %ctaid.x;
    mov.u32 %s, %ntid.x;
    mad.lo.u32 %i, %b, %s, %i;
"""
PTX = (
    HEAD
    + """
.visible .entry add(.param .u64 x, .param .u32 value, .param .u32 n)
{"""
    + INDEX
    + """
    .reg .b64 %a, %o;
    .reg .b32 %v, %w;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %a, [x];
    ld.param.u32 %w, [value];
    mul.wide.u32 %o, %i, 4;
    add.u64 %a, %a, %o;
    ld.global.u32 %v, [%a];
    add.u32 %v, %v, %w;
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry saxpy(.param .f32 a, .param .u64 .ptr .global .align 4 x,
                      .param .u64 .ptr .global .align 4 y, .param .u32 n)
{"""
    + INDEX
    + """
    .reg .b64 %x, %y, %o;
    .reg .f32 %a, %f, %g;
    ld.param.u32 %n, [n];
    setp.ge.u32 %p, %i, %n;
    @%p ret;
    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.f32 %a, [a];
    mul.wide.u32 %o, %i, 4;
    add.u64 %x, %x, %o;
    add.u64 %y, %y, %o;
    ld.global.f32 %f, [%x];
    ld.global.f32 %g, [%y];
    fma.rn.f32 %g, %a, %f, %g;
    st.global.f32 [%y], %g;
    ret;
}
.visible .entry crash(.param .u64 .ptr .global .align 4 x)
{
    .reg .b64 %a;
    .reg .b32 %v;
    ld.param.u64 %a, [x];
    mov.u32 %v, 7;
    st.global.u32 [%a], %v;
    mov.u64 %a, 16;
    st.global.u32 [%a], %v;
    ret;
}
.visible .entry endless(.param .u64 .ptr .global .align 4 x)
{
    .reg .b64 %a;
    .reg .b32 %v;
    .reg .pred %p;
    ld.param.u64 %a, [x];
again:
    ld.volatile.global.u32 %v, [%a];
    setp.ne.u32 %p, %v, 12345;
    @%p bra again;
    ret;
}
.visible .entry keep(.param .u64 .ptr .global .align 8 out, .param .u64 wide, .param .f64 real,
                     .param .align 2 .b8 half[2], .param .u16 small, .param .u8 flag,
                     .param .align 8 .b8 pair[8])
{
    .reg .b64 %o, %w;
    .reg .f64 %r;
    .reg .b32 %x, %y;
    .reg .b16 %h, %s, %f;
    ld.param.u64 %o, [out];
    ld.param.u64 %w, [wide];
    st.global.u64 [%o], %w;
    ld.param.f64 %r, [real];
    st.global.f64 [%o+8], %r;
    ld.param.b16 %h, [half];
    st.global.b16 [%o+16], %h;
    ld.param.u16 %s, [small];
    st.global.u16 [%o+18], %s;
    ld.param.u8 %f, [flag];
    st.global.u8 [%o+20], %f;
    ld.param.b32 %x, [pair];
    ld.param.b32 %y, [pair+4];
    st.global.b32 [%o+24], %x;
    st.global.b32 [%o+28], %y;
    ret;
}
"""
)
SAXPY = """
extern "C" __global__ void saxpy(float a, const float *__restrict__ x, float *y, unsigned int n) {
    unsigned int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}
"""


def pytest_configure(config):
    chosen = config.getoption("--bulkhead-device")
    config._device_name = chosen[0] if chosen else "cpu"


@pytest.fixture(scope="session")
def device_name(request):
    return request.config._device_name


@pytest.fixture
def dev(device_name):
    device = bulkhead.open(device_name)
    yield device
    device._close(False)


@pytest.fixture
def ptx(dev):
    return dev.load(PTX)


@pytest.fixture
def add(ptx):
    return ptx.kernel("add", "int *x, int value, unsigned n")


@pytest.fixture
def compiler():
    if not any(each["usable"] and each["compiler"] for each in bulkhead.compilers()):
        pytest.skip("there is no compiler for CUDA C++: neither NVRTC nor clang 16")
