#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs scenarios: simulate.sh [-j JOBS] [-s SECONDS] [-f FIRST] [-v] SEEDS [SCENARIO...]
# Each scenario runs with this many seeds, for at most so many seconds. A name that ends with * stands
# for all that begin so, one with - before it is left out. Exits with 1 if one failed that is not in
# expected.txt.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
simulator=${BULKHEAD_BUILD_DIR:?}/tests/bulkhead-simulator
jobs=1 seconds=0 first=1 quiet=quiet
while getopts j:s:f:v option; do
    case $option in
    j) jobs=$OPTARG ;;
    s) seconds=$OPTARG ;;
    f) first=$OPTARG ;;
    v) quiet= ;;
    *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
seeds=${1:?seeds}
shift
[ -x "$simulator" ] || { echo "skip: the simulator is not part of this build"; exit 77; }

chosen=$("$simulator" list | awk -v patterns="$*" '
    BEGIN { count = split(patterns, pattern, " ") }
    {
        take = count == 0 || pattern[1] ~ /^-/
        for (i = 1; i <= count; i++) {
            name = pattern[i]; out = sub(/^-/, "", name); all = sub(/\*$/, "", name)
            if (all ? index($1, name) == 1 : $1 == name) take = !out
        }
        if (take) print $1
    }')
[ -n "$chosen" ] || { echo "no scenario is named so: $*"; exit 2; }

work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-simulate.XXXXXX")
trap 'rm -rf "$work"' EXIT
limit=
[ "$seconds" = 0 ] || limit=seconds=$seconds
# Several processes share the seeds of one scenario.
part=$(((seeds + jobs - 1) / jobs))
failed=0
for name in $chosen; do
    children=
    i=0
    while [ "$i" -lt "$jobs" ]; do
        "$simulator" "$name" seeds=$part first=$((first + i * part)) $limit $quiet \
            >"$work/$name.$i" 2>&1 || echo failed >>"$work/$name.$i.failed" &
        children="$children $!"
        i=$((i + 1))
    done
    wait $children
    cat "$work/$name."[0-9] "$work/$name."[0-9][0-9] 2>/dev/null || true
    ls "$work/$name."*.failed >/dev/null 2>&1 || continue
    if grep -qx "$name" "$here/expected.txt"; then
        echo "known: $name"
    else
        echo "FAILED: $name"
        failed=1
    fi
done
exit $failed
