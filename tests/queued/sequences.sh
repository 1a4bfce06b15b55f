#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Sequences and dispatches on a device with queues of its own. The programs are started by themselves,
# since the runner chooses the workers of what it starts.
# TIMEOUT: 240
set -eu
build=${BULKHEAD_BUILD_DIR:?}
nowhere=$(mktemp -d)
trap 'rmdir "$nowhere"' EXIT
if BULKHEAD_WORKER_DIR=$nowhere "$build/tests/cts-replays" replays_count_their_steps >/dev/null 2>&1
then
    echo "the workers are not those of BULKHEAD_WORKER_DIR: nothing is tested here"
    exit 1
fi
BULKHEAD_WORKER_DIR=$build/tests/queued
export BULKHEAD_WORKER_DIR
for program in cts-sequences cts-replays cts-dispatch faults-sequences
do
    echo "$program"
    "$build/tests/$program"
done
