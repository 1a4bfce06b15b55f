#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance and fault tests once more, on a device with queues of its own: the CPU device
# behind queues as a GPU has them. What waits, completes and faults there takes the other road
# through the worker.
# TIMEOUT: 240
set -eu
build=${BULKHEAD_BUILD_DIR:?}
BULKHEAD_WORKER_DIR=$build/tests/queued
export BULKHEAD_WORKER_DIR
"$build/bin/bulkhead-test-runner" --jobs 1 --filter cts- --filter faults-
