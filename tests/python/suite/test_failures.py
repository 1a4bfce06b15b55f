# SPDX-License-Identifier: Apache-2.0
"""Faults, stale arrays, deadlines, refusals: the exceptions and what they say."""

import gc
import pickle
import sys
import threading
import time
import weakref

import numpy as np
import pytest
from conftest import PTX

import bulkhead


def test_a_fault(dev, ptx, add):
    x, y = dev.array(np.arange(4, dtype="int32")), dev.zeros(4, "int32")
    ticket = ptx["crash"][1, 1](y)
    with pytest.raises(bulkhead.FaultError) as caught:
        ticket.wait()
    error = caught.value
    assert error.status is bulkhead.Status.FAULT and error.status == 11
    assert error.kernel == "crash" and error.certain and error.generation == 1
    assert (
        "0x10" in error.message and error.fix and str(error) == f"{error.message}\nFix: {error.fix}"
    )
    assert error.ticket == ticket.id and isinstance(ticket.error, bulkhead.FaultError)
    assert y.suspect and not x.suspect
    with pytest.raises(bulkhead.StaleError) as caught:
        y.numpy()
    assert "array.accept()" in caught.value.fix  # as it is called here
    with pytest.raises(bulkhead.StaleError):
        add[1, 4](y, 1, 4).wait()
    add[1, 4](x, 1, 4).wait()
    assert x.tolist() == [1, 2, 3, 4]
    y.accept()
    assert y.tolist()[0] in (0, 7) and not y.suspect
    assert dev.losses()[0]["kind"] == "fault" and dev.health()["losses"] == 1
    assert "crash" in dev.report()
    assert dev.unseen_failures() == []


def test_overwriting_makes_good(dev, ptx):
    y = dev.zeros(4, "int32")
    with pytest.raises(bulkhead.FaultError):
        ptx["crash"][1, 1](y).wait()
    y.copy_from(np.ones(4, "int32"))
    assert y.tolist() == [1] * 4


def test_a_deadline(dev, ptx):
    x = dev.zeros(1, "int32")
    with pytest.raises(bulkhead.DeadlineError) as caught:
        ptx["endless"][1, 1](x, deadline=0.05).wait()
    assert caught.value.kernel == "endless"
    x.accept()
    assert x.item() == 0


def test_quarantine(device_name):
    with bulkhead.open(device_name, quarantine_after=1) as device:
        crash = device.load(PTX)["crash"]
        x = device.zeros(1)
        with pytest.raises(bulkhead.FaultError):
            crash[1, 1](x).wait()
        x.fill(0).wait()
        with pytest.raises(bulkhead.QuarantinedError):
            crash[1, 1](x)
        assert crash.info()["quarantined"] == 1
        crash.pardon()
        with pytest.raises(bulkhead.FaultError):
            crash[1, 1](x).wait()


def test_a_stopped_device(device_name):
    with bulkhead.open(device_name, restart_limit=1, restart_window=1000.0) as device:
        crash, good = device.load(PTX)["crash"], device.full(3, 5, "int32")
        for _ in range(2):
            with pytest.raises((bulkhead.FaultError, bulkhead.StoppedError)):
                x = device.zeros(1)
                crash[1, 1](x).wait()
        for _ in range(200):
            if device.health()["state"] == "stopped":
                break
            time.sleep(0.02)
        with pytest.raises(bulkhead.StoppedError):
            device.zeros(3).fill(1)
        assert good.tolist() == [5] * 3  # intact arrays can be read


def test_cancelled_and_timed_out(dev, ptx, add):
    x = dev.zeros(1, "int32")
    running = ptx["endless"][1, 1](x)
    queued = add[1, 1](x, 1, 1)
    with pytest.raises(bulkhead.TimeoutError):
        queued.wait(0.01)
    with pytest.raises(TimeoutError):
        queued.wait(timeout=0)
    with pytest.raises(bulkhead.TimeoutError):
        dev.sync(0.01)
    with pytest.raises(bulkhead.TimeoutError, match="number 1"):
        bulkhead.wait_all([done(dev), queued], 0.02)
    assert not queued.done and queued.error is None and "not completed" in repr(queued)
    cancelled = queued.cancel()
    if cancelled:
        assert not queued.cancel()
        with pytest.raises(bulkhead.CancelledError):
            queued.wait()
    else:  # a device with queues of its own, a GPU, has it already
        assert dev.kind != "cpu"
    for wrong in ("x", -1, float("nan")):
        with pytest.raises((TypeError, ValueError)):
            queued.wait(wrong)
    for arguments, names in (((1, 2), {}), ((), {"time": 3})):
        with pytest.raises(TypeError):
            queued.wait(*arguments, **names)


def done(dev):
    """A ticket of work that is complete, of a lane with nothing before it."""
    with dev.lane():
        ticket = dev.empty(1).fill(1)
        ticket.wait()
        return ticket


def test_every_status_has_a_class():
    from bulkhead import _core, _errors

    names = {status.name for status in bulkhead.Status}
    assert len(names) == 22
    for status in bulkhead.Status:
        assert _core.status_name(int(status)).split("_", 1)[-1].removeprefix("E_") == status.name
        if status:
            error = _errors.make(int(status), "message", "fix")
            assert type(error) is not bulkhead.Error and isinstance(error, bulkhead.Error)
    error = _errors.make(11, "message", "fix", "kernel", True, 700, "ILLEGAL_ADDRESS", 3)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is bulkhead.FaultError and again.__dict__ == error.__dict__
    assert str(again) == str(error)


def test_opening_what_is_not_there():
    with pytest.raises(bulkhead.Error):
        bulkhead.open("toaster")
    with pytest.raises(bulkhead.InvalidError):
        bulkhead.open("cpu", executor="magic")
    with pytest.raises(bulkhead.Error):
        bulkhead.open("cpu", worker_dir="/no/such/folder")
    with pytest.raises(TypeError):
        bulkhead.open("cpu", chek=True)


def test_a_closed_device(dev, ptx, add):
    x = dev.zeros(4, "int32")
    ticket = add[1, 4](x, 1, 4)
    dev.close()
    dev.close()
    assert not dev.is_open and "closed" in repr(dev)
    ticket.wait()  # it was done before the end
    for call in (
        x.numpy,
        lambda: add[1, 4](x, 1, 4),
        lambda: dev.zeros(1),
        dev.sync,
        dev.health,
        lambda: dev.load(PTX),
        lambda: x.fill(1),
        lambda: x.copy_from(np.zeros(4, "int32")),
        lambda: memoryview(x),
        lambda: dev.lane(),
        lambda: dev.sequence(),
        dev.eventfd,
        lambda: x[1:],
        lambda: bulkhead.prepare(add[1, 4], x, 1, 4),
        x.release,
    ):
        with pytest.raises(bulkhead.Error):
            call()


def test_callbacks(dev, ptx, add, capsys, monkeypatch):
    x = dev.zeros(1, "int32")
    lines, odd, finished = [], [], threading.Event()
    monkeypatch.setattr(sys, "unraisablehook", lambda info: odd.append(info.exc_type))
    ticket = add[1, 1](x, 1, 1)

    def broken(ticket):
        raise KeyError("in a callback")

    ticket.on_done(broken)
    ticket.on_done(lambda done: (lines.append(done == ticket), finished.set()))
    assert finished.wait(10) and lines == [True] and odd == [KeyError]
    with pytest.raises(TypeError):
        ticket.on_done(3)
    losses, states, told = [], [], threading.Event()
    with dev.watch("loss", lambda loss: (losses.append(loss), told.set())):
        watch = dev.watch("health", states.append)
        with pytest.raises(bulkhead.FaultError):
            ptx["crash"][1, 1](x).wait()
        assert told.wait(10)
    watch.close()
    watch.close()
    assert losses[0]["kind"] == "fault" and losses[0]["kernel"] == "crash"
    with pytest.raises(bulkhead.InvalidError):
        dev.watch("weather", print)


def test_the_log(device_name):
    lines = []
    bulkhead.set_log(lambda level, text: lines.append((level, text)), "debug")
    try:
        bulkhead.open(device_name).close()
    finally:
        bulkhead.set_log(None)
    assert lines and all(level in ("error", "warning", "info", "debug") for level, _ in lines)
    count = len(lines)
    bulkhead.open(device_name).close()
    assert len(lines) == count
    with pytest.raises(bulkhead.InvalidError):
        bulkhead.set_log(print, "loud")


def test_what_devices_tell(dev, device_name):
    assert dev.kind == device_name.split(":")[0] and dev.info()["name"]
    assert dev.limits()["max_block"][0] >= 256 and dev.memory()["limit"] > 0
    assert dev.health()["state"] in ("ok", "degraded")
    dev.wait_standby(30)
    assert dev.health()["standbys_ready"] == 1
    assert dev.trim() >= 0
    listed = {each["device"]: each for each in bulkhead.devices()}
    assert listed["cpu"]["error"] is None and listed["cpu"]["kind"] == "cpu"
    assert all(each["error"] is None or each["error"].message for each in listed.values())
    assert bulkhead.__version__.count(".") == 2


def test_the_checker(device_name):
    if device_name != "cpu":
        pytest.skip("the checker is of the CPU device")
    with bulkhead.open("cpu", check=True) as device:
        add = device.load(PTX).kernel("add", "int *x, int value, unsigned n")
        with pytest.raises(bulkhead.FaultError):
            add[1, 8](device.zeros(4, "int32"), 1, 8).wait()
        found = device.findings()
        assert found and found[0]["kernel"] == "add" and found[0]["message"]


def test_functions_of_watches_are_dropped(device_name):
    class Told:
        def __call__(self, event):
            pass

    device = bulkhead.open(device_name, standby=False, print=Told())
    functions = [Told() for _ in range(3)]
    seen = [weakref.ref(each) for each in functions]
    watches = [device.watch("health", each) for each in functions]
    functions.clear()
    watches.pop(0).close()
    gc.collect()
    assert seen[0]() is None and seen[1]() is not None
    watches.clear()
    device.close()
    gc.collect()
    assert [each() for each in seen] == [None] * 3


def test_a_watch_that_closes_itself(dev, ptx, monkeypatch):
    done = threading.Event()
    seen = []

    def unraisable(problem):
        seen.append((problem.exc_type, repr(problem.object)))
        done.set()

    def told(loss):
        watch.close()
        gc.collect()
        raise KeyError

    monkeypatch.setattr(sys, "unraisablehook", unraisable)
    watch = dev.watch("loss", told)
    del told
    with pytest.raises(bulkhead.FaultError):
        ptx["crash"][1, 1](dev.zeros(4, "int32")).wait()
    assert done.wait(10) and seen[0][0] is KeyError and "function" in seen[0][1]
