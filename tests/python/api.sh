#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bulkhead-api.json says what the headers, the libraries and the Python extension say.
# TIMEOUT: 60
set -eu
json=$BULKHEAD_BUILD_DIR/bulkhead-api.json
if [ ! -e "$json" ]; then
    echo "skip: bulkhead-api.json was not made: python3 was not here"
    exit 77
fi
cd "$BULKHEAD_TEST_TMP"
check=$BULKHEAD_SOURCE_DIR/tests/python/tools/check_api.py
export PYTHONDONTWRITEBYTECODE=1

# The compiler compares it with the headers.
python3 "$check" c "$json" >check.c
cc -std=c11 -Wall -Werror -fsyntax-only -I "$BULKHEAD_SOURCE_DIR/include" check.c
[ "$(grep -c _Static_assert check.c)" -gt 800 ]

# A description that is wrong does not pass.
for wrong in 's/"type": "const bh_launch_options \*"/"type": "bh_launch_options *"/' \
    's/"value": 11$/"value": 12/' '0,/"offset": 8/s//"offset": 16/'; do
    sed "$wrong" "$json" >wrong.json
    if cmp -s "$json" wrong.json; then echo "$wrong changed nothing" && exit 1; fi
    python3 "$check" c wrong.json >wrong.c
    if cc -std=c11 -w -fsyntax-only -I "$BULKHEAD_SOURCE_DIR/include" wrong.c 2>/dev/null; then
        echo "the compiler accepts $wrong"
        exit 1
    fi
done

if [ -n "$BULKHEAD_SANITIZE" ]; then exit 0; fi
nm -D --defined-only "$BULKHEAD_BUILD_DIR/lib/libbulkhead.so.0" \
    "$BULKHEAD_BUILD_DIR/lib/libbulkhead-cuda.so.0" >exported
python3 "$check" exported "$json" exported

if ! ls "$BULKHEAD_BUILD_DIR"/python/bulkhead/_core.*.so >/dev/null 2>&1; then
    echo "the extension module was not built: it was not compared"
    exit 0
fi
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
find_python json
nm -D --undefined-only "$BULKHEAD_BUILD_DIR"/python/bulkhead/_core.*.so >used
"$python" "$check" extension "$json" used
