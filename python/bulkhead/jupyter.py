# SPDX-License-Identifier: Apache-2.0
"""The cell magic ``%%cuda`` for IPython and Jupyter.

    %load_ext bulkhead.jupyter

    %%cuda kernel --grid 4 --block 256 --args "2.0, x, y, n"
    extern "C" __global__ void kernel(float a, const float *x, float *y, int n) { ... }

The cell is compiled and becomes the variable ``cuda`` (a module). With a kernel's name and
arguments it is launched, and a table shows its times. ``--args`` are Python expressions. NumPy
arrays among them are copied to the device and back. A fault is shown as a table, with the findings
of the checker on the CPU device. ``--device`` chooses the device, ``--repeat`` launches several
times.
"""

from __future__ import annotations

import argparse
import html
import shlex

import bulkhead

from . import _core


class _Table:
    """Rows of two cells, as text and as HTML."""

    def __init__(self, title, rows):
        self.title, self.rows = title, rows

    def __repr__(self):
        width = max((len(str(name)) for name, _ in self.rows), default=0)
        lines = [self.title] + [f"  {name!s:<{width}}  {value}" for name, value in self.rows]
        return "\n".join(lines)

    def _repr_html_(self):
        rows = "".join(
            f"<tr><th style='text-align:left'>{html.escape(str(name))}</th>"
            f"<td style='text-align:left'><code>{html.escape(str(value))}</code></td></tr>"
            for name, value in self.rows
        )
        return f"<table><caption>{html.escape(self.title)}</caption>{rows}</table>"


class _Quiet(argparse.ArgumentParser):
    def error(self, message):
        raise bulkhead._errors.refused(f"%%cuda: {message}", "%%cuda --help")


def _parser():
    parser = _Quiet(prog="%%cuda", description="Compiles CUDA C++ and launches a kernel of it.")
    parser.add_argument("kernel", nargs="?", help="the kernel to launch; none: compile only")
    parser.add_argument("--args", default="", help="its arguments, as Python expressions")
    parser.add_argument("--grid", default="1", help="blocks: a Python expression")
    parser.add_argument("--block", default="256", help="threads of a block: a Python expression")
    parser.add_argument("--threads", help="as many blocks as so many threads need, not --grid")
    parser.add_argument("--device", help='"cpu", "cuda": kept open for the next cells')
    parser.add_argument("--repeat", type=int, default=1, help="launches; times are of the fastest")
    parser.add_argument("--deadline", type=float, default=None, help="seconds for each launch")
    return parser


_devices: dict[str, bulkhead.Device] = {}


def device(name: str | None = None) -> bulkhead.Device:
    """The device that cells of this session use; opened with the checker on the CPU."""
    name = name or next(iter(_devices), "auto")
    if name not in _devices or not _devices[name].is_open:
        made = bulkhead.open(name, check=name == "cpu")
        if name == "auto" and made.kind == "cpu":
            made.close()
            made = bulkhead.open("cpu", check=True)
        _devices[name] = made
    return _devices[name]


def _time(nanoseconds):
    return f"{nanoseconds / 1e3:.1f} us" if nanoseconds < 1e6 else f"{nanoseconds / 1e6:.2f} ms"


def _fault(error, where) -> _Table:
    rows = [
        ("error", type(error).__name__),
        ("kernel", error.kernel),
        ("message", error.message),
        ("fix", error.fix),
        ("certain", "yes" if error.certain else "no"),
    ]
    try:
        for finding in where.findings():
            rows.append((finding["kind"], finding["message"]))
    except bulkhead.Error:
        pass  # no loss, or none that the checker saw
    return _Table("The launch failed", [row for row in rows if row[1]])


class _Copies:
    """NumPy arrays among the arguments: on the device for the launch, copied back after it."""

    def __init__(self, where, values):
        self.pairs = []
        self.values = []
        for value in values:
            if type(value).__module__ == "numpy" and getattr(value, "ndim", 0):
                there = where.array(value)
                self.pairs.append((value, there))
                value = there
            self.values.append(value)

    def back(self):
        for host, there in self.pairs:
            if host.flags.writeable:
                host[...] = there.numpy()


def run_cell(line: str, cell: str, namespace: dict):
    """What ``%%cuda`` does; returns the table."""
    options = _parser().parse_args(shlex.split(line))
    where = device(options.device)
    module = namespace["cuda"] = where.compile(cell)
    compiled = module.compiled() or {}
    kept = compiled.get("cache") in (_core.BH_CACHE_MEMORY, _core.BH_CACHE_DISK)
    rows = [
        ("device", where.info()["name"]),
        ("compiler", compiled.get("compiler", "")),
        ("compile", "from the cache" if kept else _time(compiled.get("compile_ns", 0))),
    ]
    if not options.kernel:
        return _Table("Compiled: " + ", ".join(module.kernels()), rows)
    kernel = module[options.kernel]

    def value(text):
        return eval(text, namespace)  # the user's own expression, as in any cell

    copies = _Copies(where, value(f"({options.args},)") if options.args.strip() else ())
    block = value(options.block)
    launcher = (
        kernel.forall(value(options.threads), block)
        if options.threads
        else kernel[value(options.grid), block]
    )
    times = []
    try:
        for _ in range(max(1, options.repeat)):
            ticket = launcher(*copies.values, timed=True, deadline=options.deadline)
            ticket.wait()
            times.append(ticket.times())
    except (bulkhead.FaultError, bulkhead.DeadlineError, bulkhead.LostError) as error:
        return _fault(error, where)
    where.sync()
    copies.back()
    best = min(times, key=lambda each: each["device_ns"])
    rows += [
        ("grid", launcher.grid),
        ("block", launcher.block),
        ("launches", len(times)),
        ("queued", _time(best["queued_ns"])),
        ("on the device", _time(best["device_ns"])),
    ]
    return _Table(f"{options.kernel}: completed", rows)


def load_ipython_extension(shell):
    """``%load_ext bulkhead.jupyter``"""

    def cuda(line, cell):
        """Compiles the cell as CUDA C++ and launches a kernel of it: %%cuda --help"""
        try:
            return run_cell(line, cell, shell.user_ns)
        except SystemExit:  # --help
            return None
        except bulkhead.CompileError as error:
            print(error.log or error.message)
            return _Table(
                "The source was not compiled", [("message", error.message), ("fix", error.fix)]
            )

    shell.register_magic_function(cuda, "cell", "cuda")


def unload_ipython_extension(shell):
    """``%unload_ext bulkhead.jupyter``: closes the devices."""
    while _devices:
        _devices.popitem()[1].close()
