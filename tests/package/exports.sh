#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# libbulkhead exports what its headers declare and nothing else, and needs libc and nothing else.
set -eu

library=$BULKHEAD_BUILD_DIR/lib/libbulkhead.so
headers=$BULKHEAD_SOURCE_DIR/include/bulkhead
cd "$BULKHEAD_TEST_TMP"
if ! command -v nm >/dev/null || ! command -v readelf >/dev/null; then
    echo "skip: nm and readelf are not here"
    exit 77
fi

# cuda.h is of libbulkhead-cuda.
find "$headers" -name '*.h' ! -name cuda.h -exec sed -n 's/^BH_API .*[ *]\(bh_[a-z0-9_]*\)(.*/\1/p' {} + |
    sort >declared
nm -D --defined-only "$library" | sed 's/.* //' | sort >exported
[ -s declared ] || { echo "no declarations were found in $headers"; exit 1; }
if ! diff declared exported >differences; then
    echo "declared in the headers (<) and exported by libbulkhead.so (>) differ:"
    cat differences
    exit 1
fi

readelf -d "$library" >dynamic
if ! grep -q 'FLAGS_1.*NODELETE' dynamic; then
    echo "the library can be unloaded under its threads"
    exit 1
fi
if [ -z "$BULKHEAD_SANITIZE" ] &&
    grep NEEDED dynamic | grep -v -e '\[libc\.so' -e '\[ld-linux' >needed; then
    echo "the library needs more than libc:"
    cat needed
    exit 1
fi
