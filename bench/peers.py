#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a small launch costs with CuPy, cuda.core and PyTorch, measured as bench-compare does.

Each peer runs in a process of its own, one after the other. One that is not installed, or finds no
GPU, is skipped with the reason. Every figure is one line: name value unit.
"""

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time

OUTPUTS = 4  # arrays that launches write to in turn
BATCH = 512  # launches between two waits: no queue is ever full
GROUP = 16  # launches between two readings of the clock
BATCHES = 40
WARM = 200
ROUNDTRIPS = 5000
LAUNCHES = 100000
WORDS = LAUNCHES // OUTPUTS + 1

# What the kernel `put` of bench/support/kernel_source.c does, in CUDA C++.
SOURCE = r"""
extern "C" __global__ void put(unsigned *out, unsigned index, unsigned value, unsigned salt) {
    out[index] = value ^ salt;
}
"""


class Skipped(Exception):
    """This peer cannot be measured here."""


def value_of(number, seed):
    return (number * 2654435761 + seed) & 0xFFFFFFFF


def salt_of(number, seed):
    return (number * 40503 ^ seed << 16) & 0xFFFFFFFF


class Words:
    """What peers that launch `put` have in common: arguments, and checking what was written."""

    def prepare(self, count, seed):
        """The arguments of `count` launches, made before the clock runs."""
        u32 = self.numpy.uint32
        return [
            (
                self.outputs[number % OUTPUTS],
                u32(number // OUTPUTS),
                u32(value_of(number, seed)),
                u32(salt_of(number, seed)),
            )
            for number in range(count)
        ]

    def check(self, count, seed):
        for output in range(OUTPUTS):
            words = self.read(output)
            for number in range(output, count, OUTPUTS):
                expected = value_of(number, seed) ^ salt_of(number, seed)
                if int(words[number // OUTPUTS]) != expected:
                    sys.exit(f"error: wrong result: launch {number} did not leave {expected:#x}")


class CuPy(Words):
    def __init__(self, ordinal):
        import cupy
        import numpy

        self.numpy = numpy
        cupy.cuda.Device(ordinal).use()
        self.version = cupy.__version__
        self.stream = cupy.cuda.Stream(non_blocking=True)
        self.stream.use()
        self.outputs = [cupy.zeros(WORDS, dtype=cupy.uint32) for _ in range(OUTPUTS)]
        kernel = cupy.RawKernel(SOURCE, "put")
        one = (1,)
        self.launch = lambda arguments: kernel(one, one, arguments)
        self.finish = self.stream.synchronize

    def read(self, output):
        return self.outputs[output].get()


class CudaCore(Words):
    def __init__(self, ordinal):
        import numpy

        try:
            import cuda.core as core

            core.launch  # in older versions everything is experimental
        except (ImportError, AttributeError):
            import cuda.core.experimental as core
        from cuda.bindings import driver
        from importlib.metadata import version

        self.numpy, self.driver = numpy, driver
        self.version = version("cuda-core")
        device = core.Device(ordinal)
        device.set_current()
        self.stream = device.create_stream()
        major, minor = device.compute_capability
        options = core.ProgramOptions(std="c++17", arch=f"sm_{major}{minor}")
        program = core.Program(SOURCE, code_type="c++", options=options)
        kernel = program.compile("cubin").get_kernel("put")
        self.outputs = [device.allocate(WORDS * 4, stream=self.stream) for _ in range(OUTPUTS)]
        config = core.LaunchConfig(grid=1, block=1)
        launch, stream = core.launch, self.stream
        self.launch = lambda arguments: launch(stream, config, kernel, *arguments)
        self.finish = self.stream.sync

    def read(self, output):
        words = self.numpy.empty(WORDS, dtype=self.numpy.uint32)
        address = int(self.outputs[output].handle)
        (result,) = self.driver.cuMemcpyDtoH(words.ctypes.data, address, words.nbytes)
        if int(result) != 0:
            sys.exit(f"error: cuMemcpyDtoH: {result}")
        return words


class PyTorch:
    """Adds a number to one of a few tensors with a single element: `add_`."""

    def __init__(self, ordinal):
        import torch

        if not torch.cuda.is_available():
            raise Skipped("PyTorch finds no GPU")
        torch.cuda.set_device(ordinal)
        self.version = torch.__version__
        self.stream = torch.cuda.Stream()
        torch.cuda.set_stream(self.stream)
        self.tensors = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(OUTPUTS)]
        self.totals = [0] * OUTPUTS
        self.launch = lambda arguments: arguments[0].add_(arguments[1])
        self.finish = self.stream.synchronize

    def prepare(self, count, seed):
        arguments = []
        for number in range(count):
            addend = value_of(number, seed) & 0xFFFF
            self.totals[number % OUTPUTS] += addend
            arguments.append((self.tensors[number % OUTPUTS], addend))
        return arguments

    def check(self, count, seed):
        sums = [int(tensor.item()) for tensor in self.tensors]
        if sums != self.totals:
            sys.exit(f"error: wrong result: the sums are {sums}, not {self.totals}")


PEERS = {"cupy": CuPy, "cuda_core": CudaCore, "torch": PyTorch}


def submit_ns(peer):
    now = time.perf_counter_ns
    launch = peer.launch
    samples = []
    arguments = peer.prepare((BATCHES + 1) * BATCH, 1)
    for batch in range(BATCHES + 1):
        first = batch * BATCH
        for group in range(first, first + BATCH, GROUP):
            some = arguments[group : group + GROUP]
            before = now()
            for each in some:
                launch(each)
            after = now()
            if batch > 0:
                samples.append((after - before) / GROUP)
        peer.finish()
    peer.check(len(arguments), 1)
    return statistics.median(samples)


def roundtrip_ns(peer):
    now = time.perf_counter_ns
    launch, finish = peer.launch, peer.finish
    samples = []
    arguments = peer.prepare(WARM + ROUNDTRIPS, 2)
    for each in arguments:
        before = now()
        launch(each)
        finish()
        samples.append(now() - before)
    peer.check(len(arguments), 2)
    return statistics.median(samples[WARM:])


def launches_ns(peer, seed):
    launch = peer.launch
    arguments = peer.prepare(LAUNCHES, seed)
    peer.finish()
    began = time.perf_counter_ns()
    for each in arguments:
        launch(each)
    peer.finish()
    took = time.perf_counter_ns() - began
    peer.check(LAUNCHES, seed)
    return took / LAUNCHES


def measure(name, ordinal):
    try:
        peer = PEERS[name](ordinal)
        peer.launch(peer.prepare(1, 0)[0])  # compiles, where that is put off until then
        peer.finish()
    except ImportError as error:
        print(f"skipped: peers.{name}: not installed ({error})")
        return
    except Exception as error:  # whatever a peer throws where it finds no GPU or no compiler
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"skipped: peers.{name}: {reason}")
        return
    print(f"# {name} {peer.version}")
    gc.disable()
    print(f"peers.{name}.submit {submit_ns(peer):.0f} ns")
    print(f"peers.{name}.roundtrip {roundtrip_ns(peer) / 1e3:.2f} us")
    each = statistics.median(launches_ns(peer, seed) for seed in (3, 4, 5))
    print(f"peers.{name}.launches {1e6 / each:.1f} k/s")


def ordinal_of(device):
    kind, _, number = device.partition(":")
    if kind not in ("cuda", "auto") or (number and not number.isdigit()):
        sys.exit(f"error: {device} is not an NVIDIA device\nFix: use cuda or cuda:N")
    return int(number or 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-d", "--device", default=os.environ.get("BULKHEAD_TEST_DEVICE") or "cuda",
                        help="cuda or cuda:N (default: $BULKHEAD_TEST_DEVICE, else cuda)")
    parser.add_argument("peer", nargs="?", choices=sorted(PEERS), help="measure this one alone")
    given = parser.parse_args()
    if given.device == "cpu":
        print("skipped: the CPU device has no peers")
        return 0
    ordinal = ordinal_of(given.device)
    if given.peer:
        measure(given.peer, ordinal)
        return 0
    print("# peers: a small launch with other libraries, its arguments made beforehand", flush=True)
    failed = 0
    for name in PEERS:
        command = [sys.executable, os.path.abspath(__file__), "-d", given.device, name]
        try:
            status = subprocess.run(command, timeout=120).returncode
        except subprocess.TimeoutExpired:
            status = "no end after 120 s"
        if status != 0:
            print(f"# peers.{name} failed: {status}", flush=True)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
