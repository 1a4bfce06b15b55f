#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A seed decides everything: the same seeds give the same steps, whatever else the machine does.
# TIMEOUT: 120
set -eu
simulator=${BULKHEAD_BUILD_DIR:?}/tests/bulkhead-simulator
[ -x "$simulator" ] || { echo "skip: the simulator is not part of this build"; exit 77; }
for name in steady kills_queued lanes_close swarm_kills swarm_close swarm_memory; do
    "$simulator" $name seeds=40 hashes quiet >"$TMPDIR/first" 2>&1 || true
    "$simulator" $name seeds=40 hashes quiet >"$TMPDIR/second" 2>&1 || true
    [ "$(grep -c '^[0-9]' "$TMPDIR/first")" = 40 ] || { cat "$TMPDIR/first"; exit 1; }
    grep '^[0-9]' "$TMPDIR/first" >"$TMPDIR/first.steps"
    grep '^[0-9]' "$TMPDIR/second" | cmp "$TMPDIR/first.steps" - || { echo "$name: not the same"; exit 1; }
    # Different seeds take different steps.
    [ "$(awk '{print $3}' "$TMPDIR/first.steps" | sort -u | wc -l)" -gt 30 ]
done
# In a run of its own, and by itself.
hash=$("$simulator" steady first=7 seeds=1 hashes quiet | awk '{print $3}')
"$simulator" steady seed=7 2>&1 | grep -q "hash $hash"
