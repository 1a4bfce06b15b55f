#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Joins simulated objects into one and gives it the simulator's functions in place of the C library's.
# Usage: link.sh OUT OBJECT...   A function that is neither replaced nor harmless is refused: one that
# blocks, or that the seed does not decide, would go unnoticed.
set -eu
here=$(dirname "$0")/..
out=$1
shift
# The sources' own functions of this kind give way to the simulator's.
ld -r -o "$out.joined" "$@"
sed 's/.*/& sim_os_&/' "$here/replaced.txt" > "$out.names"
objcopy --redefine-syms="$out.names" "$out.joined" "$out"
unknown=$(nm -u "$out" | awk '{print $2}' | grep -v '^sim_\|^__tsan_\|^bh__' | sort |
          grep -Fvx -f "$here/harmless.txt" || true)
rm -f "$out.joined" "$out.names"
if [ -n "$unknown" ]; then
    echo "link.sh: not simulated:" $unknown >&2
    echo "Fix: write sim_os_NAME in core/ and add NAME to replaced.txt, or, if it neither blocks nor" >&2
    echo "depends on anything outside, to harmless.txt." >&2
    rm -f "$out"
    exit 1
fi
