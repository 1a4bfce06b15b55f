#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The test runner: what goes wrong in a test must be seen, and nothing may be left of it.
# TIMEOUT: 60
set -u

unset BULKHEAD_TEST_AGAIN
runner=$BULKHEAD_BUILD_DIR/bin/bulkhead-test-runner
cd "$BULKHEAD_TEST_TMP" || exit 1
failures=0

fail() {
    echo "FAILED: $1"
    failures=$((failures + 1))
}

# script NAME: a test script with the text on standard input.
script() {
    { echo '#!/bin/sh'; cat; } >"$1.sh"
    chmod +x "$1.sh"
}

# expect STATUS TEXT... -- ARGUMENTS...: the runner ends with STATUS and prints each TEXT.
expect() {
    want=$1
    shift
    : >texts
    while [ "$1" != -- ]; do
        printf '%s\n' "$1" >>texts
        shift
    done
    shift
    "$runner" "$@" >output 2>&1 </dev/null
    got=$?
    [ "$got" = "$want" ] || fail "$*: exit status $got, not $want"
    while IFS= read -r text; do
        grep -qF -e "$text" output || { fail "$*: output lacks: $text"; sed 's/^/    | /' output; }
    done <texts
}

script pass <<'END'
test -d "$BULKHEAD_TEST_TMP" && test -n "$BULKHEAD_WORKER_DIR" && test "$BULKHEAD_SOURCE_DIR" != ""
END
script fail <<'END'
echo "something on standard output"; echo "something on standard error" >&2; exit 3
END
script skip <<'END'
echo "skip: the moon is full"; exit 77
END
script crash <<'END'
kill -SEGV $$
END
script hang <<END
# TIMEOUT: 1
sleep 1000 & echo \$! >'$PWD/hang.pid'; wait
END
script leave <<END
setsid sleep 1001 >/dev/null 2>&1 & echo \$! >'$PWD/leave.pid'
END
script brief <<'END'
setsid sleep 0.3 >/dev/null 2>&1 &
END
script stdin <<'END'
test -z "$(cat)"
END

expect 0 'ok    ' '1 passed, 0 failed' -- pass.sh
expect 1 'exit status 3' 'something on standard output' 'something on standard error' \
    '0 passed, 1 failed' -- fail.sh
expect 0 'the moon is full' '0 passed, 0 failed, 1 skipped' -- skip.sh
expect 1 'killed by signal 11' '0 passed, 1 failed' -- crash.sh
expect 0 '1 passed, 0 failed' -- brief.sh
expect 0 '1 passed, 0 failed' -- stdin.sh
expect 1 '2 passed, 2 failed, 1 skipped' -- pass.sh fail.sh skip.sh crash.sh stdin.sh
expect 0 '1 passed, 0 failed' -- --filter pass pass.sh fail.sh
expect 1 'no test has such a name' '0 passed, 0 failed' -- --filter nothing pass.sh
[ "$(tail -n 1 output)" = '0 passed, 0 failed' ] || fail 'the counts are not the last line'

# Workers that were chosen stay chosen, by an absolute path.
mkdir chosen
script workers <<END
test "\$BULKHEAD_WORKER_DIR" = '$(pwd -P)/chosen'
END
expect 1 '0 passed, 1 failed' -- workers.sh
BULKHEAD_WORKER_DIR=chosen
export BULKHEAD_WORKER_DIR
expect 0 '1 passed, 0 failed' -- workers.sh
BULKHEAD_WORKER_DIR=missing
expect 1 'error: BULKHEAD_WORKER_DIR: missing: No such file' -- workers.sh
unset BULKHEAD_WORKER_DIR

# What failed is run again if asked for: it must pass every time, and what is broken stays so.
script once <<END
test -e '$PWD/once' || { touch '$PWD/once'; echo "the first time"; exit 1; }
END
script twice <<END
echo x >>'$PWD/twice'; test "\$(wc -l <'$PWD/twice')" = 2
END
script dies-once <<END
test -e '$PWD/dies' || { touch '$PWD/dies'; kill -SEGV \$\$; }
END
export BULKHEAD_TEST_AGAIN=2
expect 0 'the first time' 'unreliable (failed, then passed 2 times when run again):' \
    'once.sh: exit status 1' '2 passed, 0 failed' -- once.sh pass.sh
expect 1 '0 passed, 1 failed' -- twice.sh
expect 1 'killed by signal 11' '0 passed, 1 failed' -- dies-once.sh
expect 1 '0 passed, 1 failed' -- fail.sh
BULKHEAD_TEST_AGAIN=many
expect 1 'error: BULKHEAD_TEST_AGAIN needs a number' -- pass.sh
unset BULKHEAD_TEST_AGAIN

# The one that may take longest starts first; processor time is listed on request.
script slow <<'END'
# TIMEOUT: 50
i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done
END
expect 0 'processor time, ' 'slow.sh' '2 passed, 0 failed' -- --jobs 1 --longest 1 pass.sh slow.sh
[ "$(sed -n 's,^ok .*/\([a-z]*\).sh .*,\1,p' output | paste -s -d ' ')" = 'slow pass' ] ||
    fail 'the test with the higher limit did not start first'
grep -q ' ms  .*pass.sh' output && fail 'more tests are listed than was asked for'

# A cache that tests share, by the name they were given; otherwise each has its own.
script cache <<'END'
case $BULKHEAD_CACHE_DIR in "$BULKHEAD_TEST_TMP"/*) ;; *) exit 1 ;; esac
END
expect 0 '1 passed, 0 failed' -- cache.sh
BULKHEAD_TEST_CACHE=$PWD/shared
export BULKHEAD_TEST_CACHE
expect 1 '0 passed, 1 failed' -- cache.sh
unset BULKHEAD_TEST_CACHE

# Time limits, and processes left behind.
expect 1 'ran longer than' '0 passed, 1 failed' -- hang.sh
expect 1 'left processes behind: sleep (pid ' '0 passed, 1 failed' -- leave.sh
for name in hang leave; do
    pid=$(cat $name.pid)
    if kill -0 "$pid" 2>/dev/null; then
        fail "$name: process $pid is still there"
    fi
done

# Golden files.
cat >good.test <<'END'
# A comment, and a directive that is none: Note: this.
# ENV: WORD=from-env
# RUN: printf 'one two\nmid\nmid\nend 12 ms\n'
# EXPECT: one two
# EXPECT: ...
# EXPECT: end <...> ms
# RUN: sh -c 'echo "$WORD"; echo problem: bad >&2; exit 4'
# EXPECT: from-env
# EXPECT-ERR: problem
# EXIT: 4
# RUN: sh -c 'echo text >$TMP/file; cat $TMP/file'
# EXPECT: text
END
cat >wrong-line.test <<'END'
# RUN: echo one
# EXPECT: two
END
cat >extra-line.test <<'END'
# RUN: printf 'one\ntwo\n'
# EXPECT: one
END
cat >wrong-exit.test <<'END'
# RUN: sh -c 'exit 2'
END
cat >noise.test <<'END'
# RUN: sh -c 'echo noise >&2'
END
cat >no-run.test <<'END'
# nothing at all
END
cat >typo.test <<'END'
# RUN: echo one
# EXPCT: one
END
expect 0 '1 passed, 0 failed' -- good.test
expect 1 'standard output is not what was expected' -- wrong-line.test
expect 1 'standard output is not what was expected' -- extra-line.test
expect 1 'exit status 2, not 0' -- wrong-exit.test
expect 1 'standard error is not empty' -- noise.test
expect 1 'has no RUN line' -- no-run.test
expect 1 'unknown: EXPCT: one' -- typo.test

exit $((failures > 0))
