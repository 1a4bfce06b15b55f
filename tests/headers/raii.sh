#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bulkhead.hpp: a program that uses all of it, and the example of its introduction, with every C++
# compiler that is here.
# TIMEOUT: 240
set -eu
. "$(dirname "$0")/compilers.inc"
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: the program is built without the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
lib=$BULKHEAD_BUILD_DIR/lib
include=$BULKHEAD_SOURCE_DIR/include
cd "$BULKHEAD_TEST_TMP"
find_compilers
if [ -z "$cxx" ]; then
    echo "skip: no C++ compiler is here"
    exit 77
fi
failed=0

run() {
    # shellcheck disable=SC2086
    if ! $compiler -Wall -Wextra -Wpedantic -Wshadow -Werror -O0 -I"$include" \
        "$BULKHEAD_SOURCE_DIR/tests/headers/cases/raii.cpp" -o raii -L"$lib" -lbulkhead \
        -Wl,-rpath,"$lib"; then
        echo "raii.cpp does not build with: $compiler"
        failed=1
    elif ! ./raii "${BULKHEAD_TEST_DEVICE:-cpu}" "$BULKHEAD_SOURCE_DIR/examples/saxpy.ptx"; then
        echo "raii.cpp, built with $compiler, failed"
        failed=1
    fi
    # shellcheck disable=SC2086
    $compiler -Wall -Wextra -Wpedantic -Werror -I"$include" -fsyntax-only example.cpp ||
        { echo "the example of bulkhead.hpp does not build with: $compiler"; failed=1; }
}

{
    printf '#include <%s>\n' bulkhead.hpp cstdio
    sed -n '2,/^ \*\/$/s/^ \*     //p' "$include/bulkhead.hpp"
} >example.cpp
grep -q 'bh::error' example.cpp || { echo "bulkhead.hpp has no example"; failed=1; }
for_each "$cxx" run
exit $failed
