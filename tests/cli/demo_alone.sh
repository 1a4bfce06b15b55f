#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Where a device can have no standby the demo does not begin, and says why.
set -eu
build=${BULKHEAD_BUILD_DIR:?}
ln -s "$build/tests/programs/odd_worker" bulkhead-worker-cpu
BULKHEAD_WORKER_DIR=$PWD BULKHEAD_TEST_WORKER=alone BULKHEAD_TEST_LOCK=$PWD/lock
export BULKHEAD_WORKER_DIR BULKHEAD_TEST_WORKER BULKHEAD_TEST_LOCK
status=0
"$build/bin/bulkhead" demo -d cpu >out 2>err || status=$?
cat out err
[ "$status" -eq 1 ]
grep -q '^error: BH_E_UNSUPPORTED: the demo .* none: the device serves one at a time$' err
grep -q '^Fix: run "bulkhead demo -d cpu"' err
if grep -q '^  ok' out; then exit 1; fi
