#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Has Spin search the protocol's models: as they are they must be free of errors, searched to the end; with any one
# of the mistakes listed here built in, an error must be found.
# TIMEOUT: 900
set -u

models=$(cd "$(dirname "$0")" && pwd)

skip() {
    echo "skipped: $1"
    exit 77
}

command -v spin >/dev/null 2>&1 || skip "spin is not installed (Debian: apt-get install spin)"
compiler=${CC:-}
for candidate in cc gcc clang; do
    [ -n "$compiler" ] || ! command -v "$candidate" >/dev/null 2>&1 || compiler=$candidate
done
[ -n "$compiler" ] || skip "there is no C compiler to build Spin's verifiers with"

work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
failures=0

# build MODEL "SPIN FLAGS" "COMPILER FLAGS": makes ./pan
build() {
    rm -f pan pan.?
    # shellcheck disable=SC2086
    if ! spin -a $2 "$models/$1.pml" >spin.log 2>&1 || ! $compiler -w -DMEMLIM=950 $3 -o pan pan.c >cc.log 2>&1; then
        echo "FAIL $1 $2: the model does not build"
        cat spin.log cc.log 2>/dev/null
        failures=$((failures + 1))
        return 1
    fi
}

# search "PAN FLAGS": runs ./pan, leaves its report in pan.log and the numbers in $errors and $states
search() {
    # shellcheck disable=SC2086
    ./pan -m20000 $1 >pan.log 2>&1
    errors=$(sed -n 's/.*errors: \([0-9][0-9]*\).*/\1/p' pan.log)
    states=$(sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log | head -n 1)
}

fail() {
    echo "FAIL $1"
    cat pan.log
    failures=$((failures + 1))
}

# expect_sound NAME MODEL "SPIN FLAGS" ["COMPILER FLAGS" "PAN FLAGS"]
expect_sound() {
    build "$2" "$3" "-O1 ${4:--DSAFETY}" || return
    search "-w22 ${5:-}"
    if [ "${errors:-none}" != 0 ]; then
        fail "$1: an error in the model as it is"
    elif grep -q -e 'Search not completed' -e 'max search depth too small' -e 'out of memory' -e 'truncated' \
             -e 'reached -DMEMLIM' pan.log; then
        fail "$1: the search did not reach the end"
    else
        echo "ok   $1: $states states, no error"
    fi
}

# expect_error NAME MODEL "SPIN FLAGS"
expect_error() {
    build "$2" "$3" "-O0 -DSAFETY" || return
    search -w18
    if [ "${errors:-0}" -gt 0 ] && grep -q -e 'assertion violated' -e 'invalid end state' pan.log; then
        echo "ok   $1: found, $(sed -n 's/^pan:1: \([a-z ]*[a-z]\).*/\1/p' pan.log)"
    else
        fail "$1: this mistake was not found"
    fi
}

one="-DREQUESTS=2 -DLOSSES=1 -DIDEMPOTENT=2"
two="-DREQUESTS=2 -DLOSSES=2 -DIDEMPOTENT=2"
waiters="-DREQUESTS=2 -DLOSSES=1 -DSLEEP -DWAITERS=2 -DPROMPT -DLINGER=0"
lanes="-DLANES=2 -DREQUESTS=2 -DLOSSES=1 -DIDEMPOTENT=1 -DDEPENDENT=3 -DSOURCE=0 -DPROMPT"

expect_sound "sleep and wake" wake ""
expect_sound "one loss, always comes to an end" takeover "$one -DSLEEP" -DNP -l
expect_sound "one loss, a cancel" takeover "$one -DCANCEL"
expect_sound "one loss, a cancel, three requests" takeover "-DREQUESTS=3 -DLOSSES=1 -DIDEMPOTENT=2 -DCANCEL -DPROMPT"
expect_sound "one loss, requests still coming" takeover "$one -DSLEEP -DSUBMITTED=1 -DPROMPT -DLINGER=0"
expect_sound "one loss, two waiters asleep" takeover "$waiters"
expect_sound "one loss, two lanes, one waits for the other" takeover "$lanes"
expect_sound "two losses, areas used again" takeover "$two -DAREAS=2 -DPROMPT"
expect_sound "two losses, a cancel" takeover "$two -DLINGER=0 -DCANCEL -DPROMPT"
expect_sound "two losses, sleeping" takeover "$two -DLINGER=0 -DSLEEP -DPROMPT"

# Every verdict is really reached: forbidding it is an error.
for verdict in FAULT LOST STALE CANCELLED; do
    expect_error "no request gets $verdict" takeover "$lanes -DCANCEL -DFORBIDDEN=$verdict"
done

expect_error "done read before the freeze" takeover "$one -DSWAP_FREEZE"
expect_error "a waiter does not look at frozen" takeover "$one -DNO_FROZEN_CHECK"
expect_error "a waiter looks at frozen before done" takeover "$one -DFROZEN_BEFORE_DONE"
expect_error "a claim that ignores the flags" takeover "$one -DBLIND_CLAIM"
expect_error "a successor shares its predecessor's area" takeover "$one -DSHARED_AREA"
expect_error "a record read before its claim" takeover "$one -DCANCEL -DREAD_BEFORE_CLAIM"
expect_error "a sleeper does not look at done after its post" takeover "$one -DSLEEP -DNO_DONE_RECHECK"
expect_error "a sleeper does not look at the current area again" takeover "$one -DSLEEP -DNO_AREA_RECHECK"
expect_error "sleepers on the old area are not woken" takeover "$one -DSLEEP -DNO_OLD_WAKE"
expect_error "verdicts looked up before done is read" takeover "$one -DCANCEL -DLOOKUP_FIRST"
expect_error "a cancel without the pause" takeover "$one -DCANCEL -DNO_PAUSE"
expect_error "a cancel of what a lost worker had begun" takeover "$one -DCANCEL -DCANCEL_BEGUN"
expect_error "no hold on what is sent again" takeover "$one -DNO_HOLD"
expect_error "done of the lanes read in one pass" takeover "$lanes -DONE_PASS"
expect_error "the area looked up before tail is stored" takeover "$one -DSLEEP -DSUBMITTED=1 -DAREA_BEFORE_TAIL"
expect_error "an area used again and no epoch" takeover "$two -DAREAS=2 -DNO_EPOCH"
expect_error "the current area used again" takeover "$one -DAREAS=1"
expect_error "a lane that sleeps on tail, its flag already taken" wake "-DSLEEP_ON_TAIL"
expect_error "tail not sequentially consistent" wake "-DRELAXED_TAIL"
expect_error "notify not sequentially consistent" wake "-DRELAXED_NOTIFY"
expect_error "done not sequentially consistent" wake "-DRELAXED_DONE"
expect_error "a post that overwrites a lower one" wake "-DOVERWRITE"
expect_error "a post that leaves out sleepers not yet awake" wake "-DSKIP_PASSED"
expect_error "a worker that wakes once for a post" wake "-DWAKE_ONCE"
expect_error "wake read after done" wake "-DREAD_WAKE_LATE"
expect_error "no second look at done" wake "-DNO_RECHECK"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
