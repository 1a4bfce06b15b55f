#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A short soak: losses of every kind under load, and nothing that is wrong, hangs or is left over.
# Another seed each time; the first line of a failure says how to repeat it.
# TIMEOUT: 120
set -u
# It has workers crash on purpose, which is no report of a sanitizer's.
quiet=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export ASAN_OPTIONS="${ASAN_OPTIONS:+$ASAN_OPTIONS:}$quiet" TSAN_OPTIONS="${TSAN_OPTIONS:+$TSAN_OPTIONS:}$quiet"
seed=$(date +%s)
set -- seconds=8 "seed=$seed"
# Other tests take a GPU's memory meanwhile, and opening it takes seconds beside them.
case ${BULKHEAD_TEST_DEVICE:-} in cuda*) set -- seconds=40 losses=20 "seed=$seed" shared=1 ;; esac
"$BULKHEAD_BUILD_DIR/bin/bench-soak" "$@" >"$BULKHEAD_TEST_TMP/soak" 2>&1 &&
    ! grep -q '^soak.losses 0 ' "$BULKHEAD_TEST_TMP/soak" && exit 0
echo "FAILED: bench-soak $*"
sed 's/^/    | /' "$BULKHEAD_TEST_TMP/soak"
exit 1
