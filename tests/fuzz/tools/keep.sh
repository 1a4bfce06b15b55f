#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# keep.sh BUILD [NAME...]: takes over into tests/fuzz/corpus what libFuzzer found and adds coverage to what
# is there; of these at most MAX, of all sizes, and no more than LIMIT bytes for each target. Inputs that a
# person named stay as they are; the others, named by their hash, are chosen anew. The time of the
# searches (fuzz.sh) is added to tests/fuzz/times.txt.
set -eu
build=$1
shift
limit=${LIMIT:-45000} most=${MAX:-150}
source=$(cd "$(dirname "$0")/.." && pwd)
export ASAN_OPTIONS=allocator_may_return_null=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# add_time NAME: moves the seconds of its searches from the build to the list of all.
add_time() {
    list=$source/times.txt searches=$build/times.txt
    [ -f "$searches" ] || return 0
    awk -v name="$1" '
        FNR == NR { if ($1 == name) sum += $2; next }
        $1 == name { sum += $2; next }
        { print }
        END { if (sum > 0) print name, sum }' "$searches" "$list" | sort >"$work/times"
    cp "$work/times" "$list"
    grep -v "^$1 " "$searches" >"$work/left" || true
    cp "$work/left" "$searches"
}

for file in "$source"/*.c; do
    name=$(basename "$file" .c)
    corpus=$source/corpus/$name
    case " ${*:-$name} " in *" $name "*) ;; *) continue ;; esac
    [ "$name" != canary ] && [ -d "$build/corpus/$name" ] || continue
    rm -rf "$work/all" "$work/chosen"
    mkdir -p "$work/all" "$work/chosen" "$corpus"
    cp "$build/corpus/$name"/* "$work/all" 2>/dev/null || true
    for input in "$corpus"/*; do
        [ -f "$input" ] || continue
        case $(basename "$input") in
        ????????????????????????????????????????) mv "$input" "$work/all" ;;
        *) cp "$input" "$work/chosen" ;;
        esac
    done
    "$build/tests/fuzz-$name" -merge=1 -use_counters=0 -max_len=4096 "$work/chosen" "$work/all" >"$work/log" 2>&1 ||
        { cat "$work/log"; exit 1; }
    used=0 every=$(($(ls "$work/chosen" | wc -l) / most + 1))
    for input in $(ls -Sr "$work/chosen" | awk -v every="$every" 'NR % every == 0'); do
        [ -e "$corpus/$input" ] && continue
        used=$((used + $(wc -c <"$work/chosen/$input")))
        [ "$used" -le "$limit" ] || break
        cp "$work/chosen/$input" "$corpus/"
    done
    add_time "$name"
    echo "$name: $(ls "$corpus" | wc -l) inputs, $(cat "$corpus"/* | wc -c) bytes"
done
