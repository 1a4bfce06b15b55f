# SPDX-License-Identifier: Apache-2.0
"""The first program: a kernel on arrays, and what happens when one faults.

usage: saxpy.py [DEVICE]
"""

import sys

import numpy as np

import bulkhead

SOURCE = """
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
}

extern "C" __global__ void overrun(float *y) {
    y[1 << 28] = 1;
}
"""


def main():
    with bulkhead.open(sys.argv[1] if len(sys.argv) > 1 else "auto") as dev:
        module = dev.compile(SOURCE)
        saxpy, overrun = module["saxpy"], module["overrun"]
        n = 1000
        x = dev.array(np.arange(n, dtype="float32"))
        y = dev.full(n, 1, "float32")

        saxpy.forall(n)(2.0, x, y, n).wait()
        print("y[999] =", y.numpy()[-1])

        try:
            overrun[1, 1](y).wait()
        except bulkhead.FaultError as error:
            print(f"{error.kernel} faulted: {error.message}")
        print("x is intact:", bool((x.numpy() == np.arange(n)).all()))
        try:
            y.numpy()
        except bulkhead.StaleError:
            print("y may be half written: writing it anew")
            y.fill(1)
        saxpy.forall(n)(2.0, x, y, n).wait()
        print("y[999] =", y.numpy()[-1])


main()
