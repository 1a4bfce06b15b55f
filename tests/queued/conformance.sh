#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance and fault tests once more, on a device with queues of its own: the CPU device
# behind queues as a GPU has them. What waits, completes and faults there takes the other road
# through the worker.
# TIMEOUT: 240
set -eu
build=${BULKHEAD_BUILD_DIR:?}
runner=$build/bin/bulkhead-test-runner
# Every device that is opened must have queues then: with the plain workers tests must fail.
export BULKHEAD_TEST_DEVICE=cpu BULKHEAD_TEST_QUEUES=1
one=cts-device/query_gives_limits_one_can_use
if BULKHEAD_WORKER_DIR=$build/bin "$runner" --filter "$one" >plain.log 2>&1 ||
    ! grep -q 'has_queues' plain.log
then
    echo 'the plain CPU device was taken for one with queues:'
    cat plain.log
    exit 1
fi
export BULKHEAD_WORKER_DIR="$build/tests/queued"
"$runner" --jobs 1 --filter cts- --filter faults- >all.log 2>&1 && exit 0
# What went wrong, last: the end of an output is what one gets to see.
grep -v '^ok ' all.log
exit 1
