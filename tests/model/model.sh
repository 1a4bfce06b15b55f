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
# A mistake is found within milliseconds: there the compiler takes most of the time, and tcc is the quickest.
quick="$compiler -O0"
! command -v tcc >/dev/null 2>&1 || quick=tcc

work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-model.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
failures=0

# build MODEL "SPIN FLAGS" COMPILER AND FLAGS: makes ./pan
build() {
    rm -f pan pan.?
    # shellcheck disable=SC2086
    if ! spin -a $2 "$models/$1.pml" >spin.log 2>&1 || ! $3 -w -DMEMLIM=950 -o pan pan.c >cc.log 2>&1; then
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
    build "$2" "$3" "$compiler -O1 ${4:--DSAFETY}" || return
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

# expect_error NAME MODEL "SPIN FLAGS" [COMPILER AND FLAGS], where a search takes long
expect_error() {
    build "$2" "$3" "${4:-$quick} -DSAFETY" || return
    search -w20
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
incoming="-DSUBMITTED=0"
cancelling="-DCANCEL -DSUBMITTED=0"
losing="-DLOSS -DSUBMITTED=0"
queued="-DLOSS -DCANCEL"

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
expect_sound "refused requests, one loss" refuse ""
expect_sound "a worker that reports what it did not refuse" refuse "-DMAD"
expect_sound "a worker that does not wait for its report" refuse "-DIMPATIENT"
expect_sound "a worker whose done goes back" answer ""
expect_sound "doubt and a call of two requests" calls "$incoming"
expect_sound "doubt and a call, a cancel" calls "$cancelling"
expect_sound "doubt and a call, one loss" calls "$losing"
expect_sound "doubt and a call, one loss, all sent again" calls "-DLOSS -DREPEAT=255"
expect_sound "doubt and a call, one loss, a cancel" calls "$queued"
expect_sound "doubt without calls, one loss" calls "-DLOSS -DNO_CALL -DREPEAT=2"
expect_sound "lanes used again, one loss" lane ""
expect_sound "close, stop, orders, callbacks" life ""
expect_sound "two threads close" life "-DTWO_CLOSERS"
expect_sound "deadlines, stuck workers" stuck ""
expect_sound "stuck workers, pings" stuck "-DPING"

# Every verdict is really reached: forbidding it is an error.
for verdict in FAULT LOST CANCELLED; do
    expect_error "no request gets $verdict" takeover "$lanes -DCANCEL -DFORBIDDEN=$verdict"
done
expect_error "no request gets STALE" takeover "$lanes -DCANCEL -DFORBIDDEN=STALE" "$compiler -O1"

for verdict in REFUSED LOST STALE; do
    expect_error "no refused request, or one behind it, gets $verdict" refuse "-DFORBIDDEN=$verdict"
done
for verdict in REFUSED LOST STALE CANCELLED; do
    expect_error "no piece of a call, or request about it, gets $verdict" calls "$queued -DFORBIDDEN=$verdict"
done
for verdict in REFUSED LATE LOST; do
    expect_error "no request of a stuck worker gets $verdict" stuck "-DFORBIDDEN=$verdict"
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

expect_error "done moved before the report is taken" refuse "-DEARLY_DONE"
expect_error "a report taken before its verdict" refuse "-DTAKEN_FIRST"
expect_error "a report taken before its dependents are judged" refuse "-DTAKEN_BEFORE_WALK"
expect_error "reports not collected at the freeze" refuse "-DNO_COLLECT"
expect_error "reports collected before the freeze" refuse "-DCOLLECT_BEFORE_FREEZE"
expect_error "reports collected after the judgement" refuse "-DLATE_REPORTS"
expect_error "a report counted before it is filled in" refuse "-DCOUNT_BEFORE_FILL"
expect_error "op not read again after the waits" refuse "-DNO_OP_AGAIN"
expect_error "a report of a done request believed" refuse "-DMAD -DBELIEVE_ALL"
expect_error "done looked at before last_failed is raised" refuse "-DIMPATIENT -DDONE_BEFORE_FAILED"

expect_error "answered raised after the look at frozen" answer "-DRAISE_LATE"
expect_error "answered not looked at by the judgement" answer "-DNO_FLOOR"
expect_error "answered without its epoch" answer "-DNO_ERA"
expect_error "no look at the epoch after answered" answer "-DANSWERED_ALONE"
expect_error "verdicts looked up before answered" answer "-DVERDICT_FIRST"
expect_error "answered looked at before last_failed is raised" answer "-DLOOK_BEFORE_RAISE"
expect_error "a cancel that does not look at answered" answer "-DBLIND_CANCEL"

expect_error "dependents of a refused request not judged" calls "-DNO_WALK"
expect_error "a dependent's op not read again" calls "-DNO_OP_AGAIN"
expect_error "a cancel of a call without the pause" calls "$cancelling -DNO_PAUSE -DNO_REFUSAL"
expect_error "a cancel that pauses one lane" calls "$cancelling -DPAUSE_ONE"
expect_error "the pause over before dependents are judged" calls "$cancelling -DWALK_LATE"
expect_error "the rest of a call cancelled" calls "$cancelling -DCANCEL_REST"
expect_error "requests before a failed piece not judged again" calls "$cancelling -DWALK_FORWARD"
expect_error "a piece submitted after its call failed" calls "$cancelling -DLATE_PIECE"
expect_error "a piece not admitted, dependents not judged" calls "$cancelling -DNO_WALK_AT_SUBMIT"
expect_error "doubt cleared by a submission" calls "$cancelling -DCLEAR_AT_SUBMIT"
expect_error "doubt cleared by an older request" calls "$queued -DANY_STAMP"
expect_error "pieces judged one by one" calls "$cancelling -DPIECES_ALONE"
expect_error "pieces doubted one by one" calls "$losing -DDOUBT_ALONE"
expect_error "a verdict for a piece that is running" calls "$cancelling -DTAKE_FROM_WORKER"
expect_error "a reader that waits for one piece only" calls "-DORDER_BY_PIECE"
expect_error "a refusal of what a lost worker had begun" calls "$losing -DNO_CALL -DREPEAT=2 -DFORGET_BEGUN"
expect_error "sent again after its input was overwritten" calls "-DLOSS -DREPEAT=255 -DRESEND_SWEPT"

expect_error "two threads open one lane" lane "-DNO_OPENING"
expect_error "a lane open before it is whole" lane "-DEARLY_OPEN"
expect_error "a lane used again while it is busy" lane "-DREUSE_BUSY"
expect_error "last_failed cleared when a lane is used again" lane "-DCLEAR_FAILED"
expect_error "positions from 0 when a lane is used again" lane "-DRESTART_POSITIONS"
expect_error "a verdict looked up by slot" lane "-DASK_BY_SLOT"
expect_error "a closed lane's id dropped while it is busy" lane "-DCLOSE_DROPS_ID"
expect_error "a successor that does not know closed lanes" lane "-DPUBLISH_OPEN_ONLY"

expect_error "looked at the id first, counted second" life "-DLOOK_THEN_COUNT"
expect_error "users looked at without the lock" life "-DUSERS_UNLOCKED"
expect_error "users left before the lock is taken" life "-DTWO_CLOSERS -DLEAVE_BEFORE_LOCK"
expect_error "the lock held while users leave" life "-DHOLD_LOCK"
expect_error "the state not looked at again after a wait" life "-DTWO_CLOSERS -DNO_RECHECK"
expect_error "a submission after a stop" life "-DTWO_CLOSERS -DSUBMIT_AFTER_STOP"
expect_error "a stop without the freeze" life "-DSTOP_UNFROZEN"
expect_error "the id gone before the verdicts are given" life "-DID_BEFORE_VERDICTS"
expect_error "a drain that takes no reports" life "-DBLIND_DRAIN"
expect_error "orders left unanswered" life "-DORDERS_LEFT"
expect_error "a callback accepted after the dispatcher ended" life "-DRESTART_DISPATCHER"
expect_error "a dispatcher that ends with callbacks left" life "-DEND_WITH_CALLBACKS"
expect_error "a device closed twice" life "-DTWO_CLOSERS -DCLOSE_TWICE"

expect_error "reports collected before the clock is read" stuck "-DCOLLECT_BEFORE_CLOCK"
expect_error "done read before the clock" stuck "-DDONE_BEFORE_CLOCK"
expect_error "time counted for claimed requests only" stuck "-DCLAIMED_ONLY"
expect_error "time counted before a request could run" stuck "-DFROM_CLAIM"
expect_error "time not started anew for a successor" stuck "-DKEEP_AGE"
expect_error "time not started anew after a report" stuck "-DKEEP_AGE_OF_REFUSED"
expect_error "whatever is in flight is blamed" stuck "-DBLAME_ANY"
expect_error "the supervisor looks, then says that it sleeps" stuck "-DLOOK_BEFORE_CLEAR"
expect_error "a ping's time taken before it is sent" stuck "-DPING -DSTAMP_FIRST"
expect_error "an answer read before the clock" stuck "-DPING -DPONG_FIRST"

[ "$failures" -eq 0 ] || { echo "$failures failed"; exit 1; }
