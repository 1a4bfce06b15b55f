#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# An application among hostile workers, seeds that are always the same: 160, and 450 with BULKHEAD_TEST_LONG=1. The last line of a failure says
# how to repeat it; CONTRIBUTING.md has the long form, with seeds that nobody tried.
# TIMEOUT: 150
set -u
[ "${BULKHEAD_TEST_DEVICE:-cpu}" = cpu ] || { echo "skip: the hostile worker has the CPU device"; exit 77; }
# Workers crash on purpose and name absurd sizes, which is no report of a sanitizer's.
quiet=allocator_may_return_null=1:handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}$quiet" TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}$quiet"
hostile="$BULKHEAD_BUILD_DIR/tests/bulkhead-hostile"
set -- "first=1 seeds=60 seconds=10" "first=207730000 seeds=100 seconds=10"
[ -z "${BULKHEAD_TEST_LONG:-}" ] || set -- "first=1 seeds=150 seconds=15" "first=207730000 seeds=300 seconds=20"
for range in "$@"; do
    # shellcheck disable=SC2086
    if ! "$hostile" $range jobs=4 >"$BULKHEAD_TEST_TMP/hostile" 2>&1; then
        sed 's/^/    | /' "$BULKHEAD_TEST_TMP/hostile"
        echo "FAILED: bulkhead-hostile $range; one of them: bulkhead-hostile run=SEED"
        exit 1
    fi
done
exit 0
