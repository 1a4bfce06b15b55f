#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# NVTX ranges on a device with queues of its own, where launches go in trains. The program is started
# by itself, since the runner chooses the workers of what it starts.
# TIMEOUT: 120
set -eu
build=${BULKHEAD_BUILD_DIR:?}
BULKHEAD_WORKER_DIR=$build/tests/queued BULKHEAD_TEST_DEVICE=cpu BULKHEAD_TEST_QUEUES=1
export BULKHEAD_WORKER_DIR BULKHEAD_TEST_DEVICE BULKHEAD_TEST_QUEUES
"$build/tests/nvtx-ranges"
