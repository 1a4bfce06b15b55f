#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The comparison of the CPU device with its peers runs, on tiny data, and every result is right.
# TIMEOUT: 180
set -u
output=$BULKHEAD_TEST_TMP/peers
# PoCL and its LLVM are not built with a sanitizer and have leaks of their own: it is left out.
[ -z "$BULKHEAD_SANITIZE" ] || export OCL_ICD_VENDORS="$BULKHEAD_TEST_TMP"
"$BULKHEAD_BUILD_DIR/bin/bench-cpu-peers" -d cpu size=tiny -n 1 >"$output" 2>&1
status=$?
if grep -q '^skipped: there is no compiler' "$output"; then
    echo 'skip: there is no compiler for the kernels'
    exit 77
fi
failures=0
fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}
[ "$status" = 0 ] || fail "exit status $status"
# 22 kernels, and 12 apart from these, with each executor.
for executor in jit interp; do
    count=$(grep -c "^cpu-peers\.[a-z0-9_]*\.$executor\.1 [0-9.]* ms" "$output")
    [ "$count" = 34 ] || fail "$count kernels were measured with $executor instead of 34"
done
grep -q '^cpu-peers.mean.jit.1.against_c ' "$output" || fail 'there is no mean'
grep -q '^cpu-peers.least.unseen.jit.1.against_c ' "$output" || fail 'there is nothing apart'
[ "$failures" = 0 ] && exit 0
sed 's/^/    | /' "$output"
exit 1
