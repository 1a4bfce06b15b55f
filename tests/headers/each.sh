#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each public header can be included by itself and twice, says whether it is stable, and the example
# in its introduction compiles. With every compiler that is here, in C and C++.
# TIMEOUT: 120
set -eu
. "$(dirname "$0")/compilers.inc"
include=$BULKHEAD_SOURCE_DIR/include
cd "$BULKHEAD_TEST_TMP"
find_compilers
failed=0 count=0

compile() {
    # shellcheck disable=SC2086
    $compiler -Wall -Wextra -Wpedantic -Wshadow -Werror -I"$include" -fsyntax-only example.c ||
        { echo "$name or its example does not build with: $compiler"; failed=1; }
}

for header in "$include/bulkhead.h" "$include"/bulkhead/*.h; do
    name=${header#"$include/"}
    sed -n '2,/^ \*\/$/p' "$header" >introduction
    if [ "$name" != bulkhead.h ] && ! grep -qE 'Stable|Experimental' introduction; then
        echo "$name does not say whether it is stable or experimental"
        failed=1
    fi
    # The example: what is indented by five spaces in the first comment.
    sed -n 's/^ \*     //p' introduction >example
    [ -s example ] || { echo "$name has no example in its introduction"; failed=1; }
    {
        printf '#include <%s>\n' "$name" "$name" stdio.h
        cat example
    } >example.c
    for_each "$c$cxx" compile
    count=$((count + 1))
done
[ "$count" -ge 12 ] || { echo "only $count headers were found"; failed=1; }
exit $failed
