# SPDX-License-Identifier: Apache-2.0
"""CuPy's figure for a kernel that an earlier process compiled: run by bench/compile.c."""
import subprocess
import sys

CODE = r"""
import time, cupy
cupy.cuda.Device(0).use(); cupy.zeros(1); cupy.cuda.runtime.deviceSynchronize()
text = '''extern "C" __global__ void saxpy(float a, const float *x, float *y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i] + y[i];
}'''
begun = time.perf_counter()
cupy.RawKernel(text, "saxpy").compile()
print((time.perf_counter() - begun) * 1e3)
"""


def main():
    try:
        import cupy
        cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # not installed, or no GPU
        print("# skipped: CuPy cannot be used here: %s" % str(error).split("\n")[0])
        return
    times = []
    for _ in range(6):
        done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
        if done.returncode:
            print("# skipped: CuPy: %s" % done.stderr.strip().split("\n")[-1])
            return
        times.append(float(done.stdout))
    print("compile.cupy.new_process %.3f ms" % sorted(times[1:])[2])


main()
