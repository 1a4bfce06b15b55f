#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# GPUs on the PCI bus without a driver: "auto" cannot be opened, and the doctor says so. The GPUs are
# files over /sys, in a mount namespace of its own.
# TIMEOUT: 60
set -eu
bulkhead=${BULKHEAD_BUILD_DIR:?}/bin/bulkhead
bus=/sys/bus/pci/devices

if [ "${1:-}" != inside ]; then
    [ ! -e /dev/nvidiactl ] || {
        echo "skip: this machine has an NVIDIA driver"
        exit 77
    }
    if ! unshare -rm mount -t tmpfs none $bus 2>/dev/null; then
        echo "skip: no file system can be mounted over $bus"
        exit 77
    fi
    exec unshare -rm sh "$0" inside
fi

mount -t tmpfs none $bus
add_gpu() {
    mkdir "$bus/$1"
    echo 0x10de >"$bus/$1/vendor"
    echo 0x030200 >"$bus/$1/class"
}
missing=$(printf '      Fix: %s%s' 'install the NVIDIA driver, 525 or later, or open "cpu" or "cuda,cpu"; ' \
    'a container must be given its GPU')

add_gpu 0000:3b:00.0
"$bulkhead" doctor >one
cat one
if grep -q 'libcuda.so.1 found' one; then
    echo "skip: this machine has libcuda.so.1"
    exit 77
fi
grep -q '^warn  no NVIDIA driver, though there is 1 NVIDIA GPU on the PCI bus: the device "auto" cannot be opened$' one
grep -qxF "$missing" one

add_gpu 0000:5e:00.0
"$bulkhead" doctor >two
grep -q '^warn  .* there are 2 NVIDIA GPUs on the PCI bus: the device "auto" cannot be opened$' two

# What it says is so.
if "$bulkhead" demo 2>err; then exit 1; fi
cat err
grep -q '^error: BH_E_' err
