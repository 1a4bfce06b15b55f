#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the Python package costs beside the C library: launches, round trips, transfers, the import.

usage: python.py [DEVICE]

Prints `name value unit`. Each figure in Python has the same of the C library after it, measured in
the same run by a loop in C on the same device, and their ratio. The package is installed, or
PYTHONPATH is build/python.
"""

import subprocess
import sys
import time

import bulkhead
from bulkhead import _core

SOURCE = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry put(.param .u64 .ptr .global .align 4 out, .param .u32 index, .param .u32 value,
                    .param .u32 salt)
{
    .reg .b64 %out, %offset;
    .reg .b32 %index, %value, %salt;
    ld.param.u64 %out, [out];
    ld.param.u32 %index, [index];
    ld.param.u32 %value, [value];
    ld.param.u32 %salt, [salt];
    xor.b32 %value, %value, %salt;
    mul.wide.u32 %offset, %index, 4;
    add.u64 %out, %out, %offset;
    st.global.u32 [%out], %value;
    ret;
}
"""
SIGNATURE = "unsigned *out, unsigned index, unsigned value, unsigned salt"
BATCH = 896  # the queue has 1024 places: no launch waits for room
ROUNDS = 60
GIB = 1 << 30


def figure(name, value, unit):
    print(f"{name} {value:.4g} {unit}", flush=True)


def compare(name, python, c, unit):
    figure(f"python.{name}", python, unit)
    figure(f"python.{name}.c_library", c, unit)
    figure(f"python.{name}.ratio", python / c, "ratio")


def median(values):
    return sorted(values)[len(values) // 2]


def launches(put, words):
    launch = put[1, 1]
    in_python, with_shape, in_c = [], [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for i in range(BATCH):
            ticket = launch(words, i, i, 7)
        in_python.append((time.perf_counter_ns() - begin) / BATCH)
        ticket.wait()
        begin = time.perf_counter_ns()
        for i in range(BATCH):
            ticket = put[1, 1](words, i, i, 7)
        with_shape.append((time.perf_counter_ns() - begin) / BATCH)
        ticket.wait()
        in_c.append(_core.measure(launch, (words, 1, 2, 3), BATCH, False))
    compare("launch", median(in_python), median(in_c), "ns")
    figure("python.launch.with_shape", median(with_shape), "ns")


def round_trips(name, put, words, rounds):
    launch = put[1, 1]
    in_python, in_c = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter_ns()
        for i in range(rounds):
            launch(words, i, i, 7).wait()
        in_python.append((time.perf_counter_ns() - begin) / rounds)
        in_c.append(_core.measure(launch, (words, 1, 2, 3), rounds, True))
    compare(name, median(in_python) / 1e3, median(in_c) / 1e3, "us")


def transfers(device):
    import numpy

    host = numpy.ones(GIB // 4, "float32")
    array = device.empty(host.shape, "float32")
    back = numpy.zeros_like(host)  # its pages exist
    array.copy_from(host)
    array.numpy(out=back)
    writes, reads, c_writes, c_reads = [], [], [], []
    for _ in range(3):
        c_writes.append(_core.measure_transfer(array, host, True))
        begin = time.perf_counter_ns()
        array.copy_from(host)
        writes.append(time.perf_counter_ns() - begin)
        c_reads.append(_core.measure_transfer(array, back, False))
        begin = time.perf_counter_ns()
        array.numpy(out=back)
        reads.append(time.perf_counter_ns() - begin)
    if back[-1] != 1:
        sys.exit("what was read is not what was written")
    compare("write_1_gib", min(writes) / 1e6, min(c_writes) / 1e6, "ms")
    compare("read_1_gib", min(reads) / 1e6, min(c_reads) / 1e6, "ms")


def imports():
    code = "import time; t = time.perf_counter(); import bulkhead; print(time.perf_counter() - t)"
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(9)
    ]
    figure("python.import", median(times) * 1e3, "ms")


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "auto"
    imports()
    with bulkhead.open(name, wait_spin=10, worker_spin=10) as device:
        print(f"# {device}")
        put = device.load(SOURCE).kernel("put", SIGNATURE)
        words = device.zeros(BATCH, "uint32")
        launches(put, words)
        round_trips("round_trip.awake", put, words, 300)
    with bulkhead.open(name) as device:
        put = device.load(SOURCE).kernel("put", SIGNATURE)
        words = device.zeros(BATCH, "uint32")
        round_trips("round_trip", put, words, 100)
        try:
            import numpy  # noqa: F401
        except ImportError:
            print("# no transfers: NumPy is not here")
        else:
            transfers(device)


main()
