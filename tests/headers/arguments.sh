#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What BH_ARGS accepts compiles and runs; what it must refuse does not compile, and the compiler's
# message says what to do. With every compiler that is here, in C and C++.
# TIMEOUT: 240
set -eu
. "$(dirname "$0")/compilers.inc"
cases=$BULKHEAD_SOURCE_DIR/tests/headers/cases
lib=$BULKHEAD_BUILD_DIR/lib
cd "$BULKHEAD_TEST_TMP"
find_compilers
failed=0

accepted() {
    [ -z "$BULKHEAD_SANITIZE" ] || return 0 # it cannot be linked with the library then
    # shellcheck disable=SC2086
    if ! $compiler -Wall -Wextra -Wpedantic -Werror -O0 -I"$BULKHEAD_SOURCE_DIR/include" \
        "$cases/accepted.c" -o accepted -L"$lib" -lbulkhead -Wl,-rpath,"$lib"; then
        echo "accepted.c does not build with: $compiler"
        failed=1
    elif ! ./accepted; then
        echo "accepted.c, built with $compiler, failed"
        failed=1
    fi
}
for_each "$c$cxx" accepted

# refuse LINE: the statement before the '@' is an error whose message has the text after it.
refuse() {
    statement=${1%%@*} message=${1##*@ }
    {
        cat "$cases/refused.h"
        echo "bh_status refused(void) { $statement; return BH_OK; }"
    } >refused.c
    # shellcheck disable=SC2086
    if $compiler -fsyntax-only -I"$BULKHEAD_SOURCE_DIR/include" refused.c 2>messages; then
        echo "$compiler accepts: $statement"
        failed=1
    elif ! grep -qF "$message" messages; then
        echo "$compiler does not say \"$message\" of: $statement"
        cat messages
        failed=1
    fi
    count=$((count + 1))
}

refuse_all() {
    while IFS= read -r line; do
        case "$line" in
        '' | '#'*) ;;
        *) refuse "$line" ;;
        esac
    done <"$1"
}

# The program around the statements is itself in order.
in_order() {
    # shellcheck disable=SC2086
    $compiler -fsyntax-only -Wall -Wextra -Wno-unused-function -Werror \
        -I"$BULKHEAD_SOURCE_DIR/include" "$cases/refused.h" ||
        { echo "refused.h does not build with: $compiler"; failed=1; }
}
count=0
for_each "$c$cxx" in_order
for_each "$c" refuse_all "$cases/refused.c.txt"
for_each "$cxx" refuse_all "$cases/refused.cpp.txt"
[ "$count" -ge 20 ] || { echo "only $count cases were tried"; failed=1; }
echo "$count refusals"
exit $failed
