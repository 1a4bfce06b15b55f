#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# saxpy.py: the library from a language without the header's macros.
set -eu
if ! command -v python3 >/dev/null; then
    echo "skip: python3 is not here"
    exit 77
fi
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: python3 cannot load a library built with the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
export BULKHEAD_LIBRARY="$BULKHEAD_BUILD_DIR/lib/libbulkhead.so.0"
cd "$BULKHEAD_TEST_TMP"
PYTHONDONTWRITEBYTECODE=1 python3 "$BULKHEAD_SOURCE_DIR/examples/saxpy.py" \
    "${BULKHEAD_TEST_DEVICE:-cpu}" >output
cat output
grep -q ', 0 of 10000 elements wrong$' output
