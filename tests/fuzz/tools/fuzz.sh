#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD SECONDS [NAME...]: runs each fuzz target, or those whose name contains one of these, for
# so long; for 0 seconds it tries the inputs that are there and no others. New inputs go to
# BUILD/corpus/NAME, those that fail to BUILD/crashes. What failed is printed last; then it exits with 1.
# BUILD/times.txt gets a line with the processor seconds of each search; keep.sh adds them up.
set -u
build=$1 seconds=$2
shift 2
source=$(cd "$(dirname "$0")/.." && pwd)
log=$build/fuzz.log
export ASAN_OPTIONS="allocator_may_return_null=1:quarantine_size_mb=16${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
symbolizer=$(command -v llvm-symbolizer || ls /usr/bin/llvm-symbolizer-* 2>/dev/null | tail -n 1)
[ -z "$symbolizer" ] || export ASAN_SYMBOLIZER_PATH="${ASAN_SYMBOLIZER_PATH:-$symbolizer}"
mkdir -p "$build/corpus" "$build/crashes"
failed=''

# wanted NAME FILTER...: whether there is no filter or one that fits.
wanted() {
    name=$1
    shift
    [ $# -gt 0 ] || return 0
    for filter in "$@"; do
        case $name in *"$filter"*) return 0 ;; esac
    done
    return 1
}

# run_libfuzzer NAME / run_engine NAME: what the target prints, on standard output. Whatever reads PTX
# starts from the tests' PTX and knows its words.
run_libfuzzer() {
    seeds='' dictionary=''
    case $1 in ptx_execute | ptx_check | ptx_link | writes | cuda_image) seeds=$source/../ptx dictionary=$source/ptx.dict ;; esac
    limit=-max_total_time=$seconds
    [ "$seconds" -gt 0 ] || limit=-runs=0
    "$build/tests/fuzz-$1" "$limit" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=0 \
        -max_len=16384 -print_final_stats=1 -artifact_prefix="$build/crashes/$1-" ${dictionary:+-dict="$dictionary"} \
        "$build/corpus/$1" "$source/corpus/$1" ${seeds:+"$seeds"} 2>&1
}

run_engine() {
    "$build/tests/fuzz-$1" --mutate "$seconds" --seed "$(date +%s)" --crashes "$build/crashes" \
        --found "$build/corpus/$1" "$build/corpus/$1" 2>&1
}

# measure: sets `used` to the processor seconds of the programs that have ended. `times` is a matter of
# this shell, and of no other one.
measure() {
    times >"$build/times.now"
    used=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); sum += t[1] * 60 + t[2] }
                          printf "%.1f\n", sum }' "$build/times.now")
}

engine=run_engine
grep -q '^CMAKE_C_COMPILER:.*clang' "$build/CMakeCache.txt" && engine=run_libfuzzer

for file in "$source"/*.c; do
    name=$(basename "$file" .c)
    [ "$name" != canary ] && wanted "$name" "$@" || continue
    echo "== $name, $seconds seconds"
    mkdir -p "$build/corpus/$name"
    measure
    before=$used
    { $engine "$name" || echo 'fuzz.sh: failed'; } | tee "$log" |
        grep --line-buffered -E 'INITED|pulse|DONE|ERROR|SUMMARY|executions|fails|exec_per_sec|executed_units'
    measure
    [ "$seconds" -eq 0 ] || awk "BEGIN { printf \"$name %.1f\\n\", $used - $before }" >>"$build/times.txt"
    if grep -q '^fuzz.sh: failed' "$log"; then
        cp "$log" "$build/crashes/$name.log"
        failed="$failed $name"
    fi
done
[ -n "$failed" ] || exit 0

for name in $failed; do
    echo "== $name failed. The end of $build/crashes/$name.log:"
    grep -v -E '^#[0-9]|NEW_FUNC|^0x' "$build/crashes/$name.log" | cut -c 1-200 | tail -n 40
    for input in "$build/crashes/$name-"*; do
        [ -f "$input" ] || continue
        echo "To repeat it: ASAN_OPTIONS=allocator_may_return_null=1 $build/tests/fuzz-$name $input"
        echo "The input, in base64:"
        base64 -w 200 "$input" | head -n 20
    done
done
echo "failed:$failed"
exit 1
