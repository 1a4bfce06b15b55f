# SPDX-License-Identifier: Apache-2.0
"""Fixtures for pytest: a test runs on every device there is, on the CPU under the checker.

    def test_twice(bulkhead_device):
        x = bulkhead_device.array([1.0, 2.0], dtype="float32")
        twice(bulkhead_device).forall(2)(x, 2).wait()
        assert list(x.numpy()) == [2, 4]

The checker ends a kernel that reads outside of arrays or what nobody wrote, or whose threads race:
the launch's ticket raises FaultError. A test that never looks at its tickets fails at its end.
"""

import pytest


def pytest_addoption(parser):
    parser.addoption(
        "--bulkhead-device",
        action="append",
        default=None,
        metavar="DEVICE",
        help="the device for bulkhead_device, instead of all: cpu, cuda, cuda:1; may be "
        "given several times",
    )


def _devices(config):
    chosen = config.getoption("--bulkhead-device")
    if chosen:
        return chosen
    if not hasattr(config, "_bulkhead_devices"):
        import bulkhead

        config._bulkhead_devices = [
            each["device"] for each in bulkhead.devices() if each["error"] is None
        ]
    return config._bulkhead_devices


def pytest_generate_tests(metafunc):
    if "bulkhead_device" in metafunc.fixturenames:
        metafunc.parametrize("bulkhead_device", _devices(metafunc.config), indirect=True)


@pytest.fixture
def bulkhead_device(request):
    """A device that is opened for the test and closed after it."""
    import bulkhead

    name = request.param
    device = bulkhead.open(name, check=name == "cpu")
    try:
        yield device
        if device.is_open:
            device.sync(60)
            unseen = device.unseen_failures()
            if unseen:
                pytest.fail(
                    "kernels failed and the test did not look at their tickets:\n"
                    + "\n".join(loss["message"] for loss in unseen),
                    pytrace=False,
                )
    finally:
        device._close(False)
