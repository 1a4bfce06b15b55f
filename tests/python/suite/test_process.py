# SPDX-License-Identifier: Apache-2.0
"""Signals, threads, asyncio, fork, the end of the interpreter."""

import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import PTX

import bulkhead


@pytest.fixture
def interrupt():
    """interrupt(call): what Ctrl-C soon after its start does; returns the seconds it took."""

    def run(call):
        timer = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
        timer.start()
        begin = time.monotonic()
        try:
            with pytest.raises(KeyboardInterrupt):
                call()
        finally:
            timer.cancel()
        return time.monotonic() - begin

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield run
    signal.signal(signal.SIGINT, before)


def test_ctrl_c(dev, ptx, add, interrupt):
    x = dev.zeros(4, "int32")
    other = dev.zeros(4, "int32")
    dev.sync()
    ticket = ptx["endless"][1, 1](x)
    launch = add[1, 4]

    def fill_the_queue():
        for _ in range(5000):
            launch(x, 1, 4)

    for call in (
        ticket.wait,
        lambda: ticket.wait(100),
        x.numpy,
        other.numpy,
        lambda: other.copy_from(np.ones(4, "int32")),
        lambda: x.copy_from(np.ones(4, "int32")),
        dev.sync,
        fill_the_queue,
        dev.close,
        lambda: bulkhead.wait_all([ticket]),
    ):
        assert interrupt(call) < 3
    begin = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        with dev:
            raise KeyboardInterrupt
    assert time.monotonic() - begin < 5


SLOW = """
template <int K, int A, int B> struct g {
    static const long v = g<K, A - 1, B>::v + g<K, A, B - 1>::v;
};
template <int K, int B> struct g<K, 0, B> { static const long v = B; };
template <int K, int A> struct g<K, A, 0> { static const long v = A; };
extern "C" __global__ void slow(long *x) { *x = SUM; }
""".replace("SUM", " + ".join(f"g<{i}, 80, 80>::v" for i in range(8)))


def test_ctrl_c_ends_a_compile(dev, compiler, interrupt):
    assert interrupt(lambda: dev.compile(SLOW, cache=False)) < 1.9  # the compiler is ended
    quick = dev.compile('extern "C" __global__ void quick() {}')
    assert quick.kernels() == ["quick"]


def test_other_signals_do_not_end_a_wait(dev, ptx):
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    try:
        ticket = ptx["endless"][1, 1](dev.zeros(1, "int32"), deadline=0.4)
        threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGUSR1)).start()
        with pytest.raises(bulkhead.DeadlineError):
            ticket.wait()
        assert seen == [1]
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_threads(dev, add):
    count, rounds = 8, 200
    arrays = [dev.zeros(16, "int32") for _ in range(count)]
    shared = dev.zeros(16, "int32")
    problems = []

    def work(mine):
        try:
            with dev.lane():
                for _ in range(rounds):
                    add[1, 16](mine, 1, 16)
                    add[1, 16](shared, 1, 16).wait()
                    mine[3:5].numpy()
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=work, args=(each,)) for each in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert all((each.numpy() == rounds).all() for each in arrays)
    assert (shared.numpy() == count * rounds).all()


def test_other_threads_run_while_one_waits(dev, ptx):
    ticket = ptx["endless"][1, 1](dev.zeros(1, "int32"), deadline=0.3)
    turns = []
    waiting = threading.Thread(target=lambda: pytest.raises(bulkhead.DeadlineError, ticket.wait))
    waiting.start()
    while waiting.is_alive():
        turns.append(1)
        time.sleep(0.001)
    assert len(turns) > 20


def test_await(dev, ptx, add):
    x = dev.zeros(4, "int32")

    async def one():
        await add[1, 4](x, 1, 4)

    async def all_of_it():
        await asyncio.gather(*(one() for _ in range(200)))
        with pytest.raises(bulkhead.DeadlineError):
            await ptx["endless"][1, 1](dev.zeros(1, "int32"), deadline=0.05)
        ticks = 0
        ticket = ptx["endless"][1, 1](dev.zeros(1, "int32"), deadline=0.2)
        waiting = asyncio.ensure_future(wait_for(ticket))
        while not waiting.done():
            ticks += 1
            await asyncio.sleep(0.005)
        assert await waiting == "deadline" and ticks > 5
        late = ptx["endless"][1, 1](dev.zeros(1, "int32"))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(wait_for(late), 0.05)

    async def wait_for(ticket):
        try:
            await ticket
        except bulkhead.DeadlineError:
            return "deadline"

    asyncio.run(all_of_it())
    dev._close(False)


def test_await_in_two_loops(dev, add):
    arrays = [dev.zeros(4, "int32") for _ in range(2)]
    problems = []

    def loop(x):
        async def run():
            for _ in range(100):
                await add[1, 4](x, 1, 4)

        try:
            asyncio.run(run())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=loop, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not problems and not any(thread.is_alive() for thread in threads)
    assert all(x.tolist() == [100] * 4 for x in arrays)


def test_tasks_have_lanes_of_their_own(dev, add):
    x = dev.zeros(4, "int32")

    async def task(lanes):
        with dev.lane():
            first = add[1, 4](x, 1, 4)
            await asyncio.sleep(0.01)
            second = add[1, 4](x, 1, 4)
            await second
        lanes.append((first.id[0], second.id[0]))

    async def run():
        lanes = []
        await asyncio.gather(task(lanes), task(lanes))
        return lanes

    (a, b), (c, d) = asyncio.run(run())
    assert a == b and c == d and a != c


def test_a_forked_child(dev, add):
    x = dev.zeros(4, "int32")
    child = os.fork()
    if child == 0:
        status = 1
        try:
            refused = 0
            for call in (x.numpy, lambda: add[1, 4](x, 1, 4), lambda: dev.zeros(3), dev.close):
                try:
                    call()
                except bulkhead.StoppedError:
                    refused += 1
            status = 0 if refused == 3 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    add[1, 4](x, 1, 4).wait()
    assert x.tolist() == [1] * 4


def test_what_is_dropped_is_freed(device_name):
    device = bulkhead.open(device_name)
    module = device.load(PTX)
    x = device.zeros(4, "int32")
    add = module["add"]
    watched = [weakref.ref(each) for each in (device, module, add, x)]
    device.itself = device, x, add  # a cycle
    launcher, ticket = add[1, 4], add[1, 4](x, 1, 4)
    ticket.wait()
    del device, module, add, x, launcher
    del ticket
    gc.collect()
    assert [each() for each in watched] == [None] * 4


SCRIPTS = {
    "open_device": "dev = bulkhead.open(NAME)",
    "running_kernel": "dev = bulkhead.open(NAME)\nx = dev.zeros(1, 'int32')\n"
    "t = dev.load(PTX)['endless'][1, 1](x)",
    "pending_callback": "dev = bulkhead.open(NAME)\nx = dev.zeros(1, 'int32')\n"
    "t = dev.load(PTX)['endless'][1, 1](x)\nt.on_done(lambda t: None)",
    "thread_that_waits": "import threading\ndev = bulkhead.open(NAME)\nx = dev.zeros(1, 'int32')\n"
    "t = dev.load(PTX)['endless'][1, 1](x)\n"
    "def wait():\n    try: t.wait()\n    except bulkhead.CancelledError: pass\n"
    "threading.Thread(target=wait, daemon=True).start()",
    "watches_and_log": "dev = bulkhead.open(NAME)\nbulkhead.set_log(lambda *a: None, 'debug')\n"
    "dev.watch('loss', print)\ndev.watch('health', print)",
    "cycle": "dev = bulkhead.open(NAME)\nclass A: pass\na = A()\na.dev, a.self, dev.a = dev, a, a",
    "managed": "dev = bulkhead.open(NAME)\nm = dev.managed(10, 'int32')\nh = m.host\nh[:] = 3",
    "managed_and_used_late": "dev = bulkhead.open(NAME)\nm = dev.managed(10, 'int32')\n"
    "class Late:\n    def __del__(self): self.host[0] = 1\nlate = Late()\nlate.host = m.host",
    "mapped": "dev = bulkhead.open(NAME)\nm = dev.zeros(10, shareable=NAME == 'cpu')\n"
    "import numpy\nh = numpy.asarray(m)\nh += 3",
    "uncaught": "dev = bulkhead.open(NAME)\nimport sys\nsys.exit(0)",
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_end_of_the_interpreter(script, device_name, tmp_path):
    code = f"import bulkhead\nNAME = {device_name!r}\nPTX = {PTX!r}\n{SCRIPTS[script]}\n"
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert time.monotonic() - begin < 20


def test_importing_is_quick_and_brings_no_numpy():
    code = (
        "import sys, time\nbegin = time.perf_counter()\nimport bulkhead\n"
        "print(time.perf_counter() - begin)\n"
        "assert 'numpy' not in sys.modules and 'asyncio' not in sys.modules"
    )
    times = [
        float(
            subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(3)
    ]
    assert min(times) < 1  # 20 ms on a machine that does nothing else


def test_await_on_a_device_that_closes(device_name):
    """Two in a row: descriptors of the second have the numbers of the first."""

    async def waits(ticket):
        with pytest.raises(bulkhead.Error):
            await ticket

    async def run():
        for elsewhere in (False, True):
            device = bulkhead.open(device_name, standby=False)
            x = device.zeros(1, "int32")
            ticket = device.load(PTX)["endless"][1, 1](x)
            task = asyncio.ensure_future(waits(ticket))
            await asyncio.sleep(0.05)
            if elsewhere:
                await asyncio.to_thread(device._close, False)
            else:
                device._close(False)
            await asyncio.wait_for(task, 10)
        with bulkhead.open(device_name, standby=False) as device:
            x = device.zeros(4, "int32")
            await asyncio.wait_for(launches(device.load(PTX)["add"], x), 10)

    async def launches(add, x):
        for _ in range(20):
            await add[1, 4](x, 1, 4)

    def descriptors():
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    asyncio.run(run())
    before = descriptors()
    asyncio.run(run())
    assert descriptors() <= before


def test_ctrl_c_with_a_full_queue(device_name, interrupt):
    """Fills, copies and sequences wait for room as launches do."""
    device = bulkhead.open(device_name, standby=False, queue_length=64)
    ptx = device.load(PTX)
    x, y = device.zeros(4, "int32"), device.zeros(4, "int32")
    with device.sequence() as steps:
        steps.fill(x, 1)
    ptx["endless"][1, 1](x)

    def again(call):
        for _ in range(5000):
            call()

    for call in (
        lambda: x.fill(1),
        lambda: x.copy_from(y, wait=False),
        steps.submit,
    ):
        assert interrupt(lambda: again(call)) < 3
    device._close(False)


def test_one_lane_in_two_tasks(dev, add):
    x = dev.zeros(4, "int32")
    lane = dev.lane()

    async def task(seen, begin, end):
        await asyncio.sleep(begin)
        with lane:
            seen.append(add[1, 4](x, 1, 4).id[0])
            await asyncio.sleep(end)
            seen.append(add[1, 4](x, 1, 4).id[0])

    async def run():
        seen = []
        await asyncio.gather(task(seen, 0, 0.05), task(seen, 0.02, 0.1))
        return seen

    assert len(set(asyncio.run(run()))) == 1
    own = add[1, 4](x, 1, 4)
    with pytest.raises(bulkhead.InvalidError, match="lane was released"):
        lane.sync()
    with pytest.raises(bulkhead.InvalidError, match="lane was released"):
        add[1, 4](x, 1, 4, lane=lane)
    with dev.lane() as outer:
        with outer:
            inside = add[1, 4](x, 1, 4)
        assert add[1, 4](x, 1, 4).id[0] == inside.id[0] != own.id[0]
