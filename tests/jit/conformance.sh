#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The conformance and fault tests once more, with native code: what is made of a kernel must do what
# the interpreter does, also where it faults, hangs, is cancelled or runs out of time.
# TIMEOUT: 300
set -eu
build=${BULKHEAD_BUILD_DIR:?}
runner=$build/bin/bulkhead-test-runner
if [ ! -e "$build/bin/libbulkhead-jit.so" ]; then
    echo "skip: built without the JIT: no llvm-19-dev, or a build with sanitizers"
    exit 77
fi
export BULKHEAD_TEST_DEVICE=cpu BULKHEAD_EXECUTOR=jit
# The same few modules are loaded over and over: each becomes native code once.
export BULKHEAD_TEST_CACHE="$BULKHEAD_TEST_TMP/shared"
set --
# Those that run kernels in ways of their own; ptx/ is compared by executors.sh.
for group in cts-basics cts-launch cts-clusters cts-grid_sync cts-heap cts-debug \
    faults-kinds faults-variables; do
    set -- "$@" --filter "$group"
done
"$runner" --jobs 2 "$@" >all.log 2>&1 && exit 0
grep -v '^ok ' all.log
exit 1
