#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No line of C is wider than 100 columns: clang-format does not reflow comments. In tests a text, such
# as a line of PTX, may be wider.
set -eu
cd "$(dirname "$0")/../.."
found=$(find include src bench examples tests python -name '*.[ch]' -exec awk '
    length <= 100 { next }
    FILENAME ~ /^tests\// && !/^ *(\/\*|\*|\/\/)/ && (/"/ || /\\$/) { next }
    { printf "%s:%d: %d columns\n", FILENAME, FNR, length }' {} +)
[ -z "$found" ] || {
    echo "$found"
    echo "columns.sh: these lines are wider than 100 columns"
    exit 1
}
