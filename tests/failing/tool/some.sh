#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A few of each kind of call, others every day: some.sh RUNS PROCESS.
set -u
case "${BULKHEAD_TEST_DEVICE:-cpu}" in cpu|auto|'') ;; *) echo 'skip: for the CPU device'; exit 77;; esac
program=${BULKHEAD_BUILD_DIR:?}/tests/failing-calls
[ -x "$program" ] || { echo 'skip: failing calls are not part of this build'; exit 77; }
seed=${BULKHEAD_TEST_SEED:-$(($(date +%s) / 86400))}
output=$("$program" some "$1" "$seed" "$2" 2>&1)
status=$?
echo "$output"
case $output in 'skip: '*) [ $status -eq 0 ] && exit 77;; esac
exit $status
