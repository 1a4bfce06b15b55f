#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# interop.py: a buffer in NumPy, CuPy and PyTorch, the same memory on both sides.
# TIMEOUT: 120
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
export BULKHEAD_CUDA_LIBRARY="$BULKHEAD_BUILD_DIR/lib/libbulkhead-cuda.so.0"
cd "$BULKHEAD_TEST_TMP"
status=0
PYTHONDONTWRITEBYTECODE=1 python3 "$BULKHEAD_SOURCE_DIR/examples/interop.py" \
    "${BULKHEAD_TEST_DEVICE:-cpu}" >output || status=$?
cat output
[ "$status" != 77 ] || {
    echo "skip: none of NumPy, CuPy and PyTorch is here"
    exit 77
}
[ "$status" = 0 ] && grep -q 'same memory at' output
