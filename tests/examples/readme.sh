#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The program in README.md builds as it stands there and prints what it should.
set -eu
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: the program is built without the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
if [ -e /dev/nvidiactl ] && [ ! -e "$BULKHEAD_BUILD_DIR/bin/bulkhead-worker-cuda" ]; then
    echo "skip: the program opens the default device, whose worker was not built"
    exit 77
fi
lib=$BULKHEAD_BUILD_DIR/lib program=$BULKHEAD_TEST_TMP/program
sed -n '/^```c$/,/^```$/{/^```/!p;}' "$BULKHEAD_SOURCE_DIR/README.md" >"$program.c"
cc -std=c11 -Wall -Wextra -Werror -I"$BULKHEAD_SOURCE_DIR/include" "$program.c" -o "$program" \
    -L"$lib" -lbulkhead -Wl,-rpath,"$lib"
cd "$BULKHEAD_SOURCE_DIR" # it loads examples/saxpy.ptx
said=$("$program")
[ "$said" = 'y[999] = 1999' ] || { echo "it said: $said"; exit 1; }
