#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The engine of the fuzz targets must be able to fail: an input that crashes its target fails the replay,
# which names it; mutation finds the planted bug of fuzz-canary, keeps the input, and the input repeats it.
set -u
target=$BULKHEAD_BUILD_DIR/tests/fuzz-canary
cd "$BULKHEAD_TEST_TMP" || exit 1

fail() {
    echo "FAILED: $1"
    cat output
    exit 1
}

"$target" corpus >output 2>&1 || fail 'its own corpus fails'
printf 'bug!' >planted
"$target" planted >output 2>&1 && fail 'an input that aborts did not fail'
[ "$(head -n 1 output)" = planted ] || fail 'the input that failed is not named'

mkdir crashes found
"$target" --mutate 20 --seed 1 --crashes crashes --found found >output 2>&1 && fail 'mutation found nothing'
grep -q 'an input fails: crashes/' output || fail 'the input is not named'
for input in crashes/*; do
    "$target" "$input" >/dev/null 2>&1 && fail "$input does not repeat"
done
exit 0
