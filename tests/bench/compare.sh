#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where there is nothing to compare with, the comparisons say so and are no failure.
# TIMEOUT: 60
set -u
failures=0

# says TEXT COMMAND...: it succeeds and prints TEXT.
says() {
    text=$1
    shift
    output=$("$@" 2>&1 </dev/null)
    status=$?
    if [ "$status" != 0 ] || ! printf '%s\n' "$output" | grep -qF -e "$text"; then
        echo "FAILED: $*: exit status $status, expected 0 and: $text"
        printf '%s\n' "$output" | sed 's/^/    | /'
        failures=$((failures + 1))
    fi
}

bin=$BULKHEAD_BUILD_DIR/bin
# With no device visible it is the same with a driver and without.
CUDA_VISIBLE_DEVICES=
export CUDA_VISIBLE_DEVICES
says 'skipped: the NVIDIA driver' "$bin/driver-baseline" -d cuda
says 'skipped: cpu is not an NVIDIA device' "$bin/driver-baseline" -d cpu
says 'nothing to be compared with' "$bin/bench-compare" -d cpu
if command -v python3 >/dev/null; then
    says 'skipped: the CPU device has no peers' python3 "$BULKHEAD_SOURCE_DIR/bench/peers.py" -d cpu
fi
[ "$failures" = 0 ]
