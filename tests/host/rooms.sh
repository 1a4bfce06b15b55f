#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The includes of src/client against src/client/rooms.txt: which room uses which, and no cycles. And
# those of src/base: none but its own and the system's. And who may name kinds of devices.
set -eu
source=$(cd "$(dirname "$0")/../.." && pwd)
cd "$source/src"

failed=0
fail() {
    echo "rooms.sh: $*"
    failed=1
}

# "room allowed allowed ..." a line, in the order of the file.
rooms=$(sed -n 's/^\([a-z]*\): \(.*\)$/\1 \2/p' client/rooms.txt | sed 's/ -$//')
listed=$(echo "$rooms" | cut -d' ' -f1)
for folder in client/*/; do
    name=$(basename "$folder")
    echo "$listed" | grep -qx "$name" || fail "client/$name is not in client/rooms.txt"
done
stray=$(find client -maxdepth 1 -name '*.[ch]')
[ -z "$stray" ] || fail "these are in no room: $stray"

# Headers that hold data, and who may include what of other rooms.
is_data() {
    case $1 in
    core/device.h | core/types.h | */state.h) return 0 ;;
    esac
    return 1
}

above=
for room in $listed; do
    [ -d "client/$room" ] || {
        fail "client/rooms.txt names $room, and there is no such folder"
        continue
    }
    allowed=$(echo "$rooms" | sed -n "s/^$room \(.*\)/\1/p")
    for other in $allowed; do
        case " $above " in
        *" $other "*) ;;
        *) fail "$room may use $other, which is not above it in client/rooms.txt" ;;
        esac
    done
    used=
    for file in client/"$room"/*.[ch]; do
        [ -f "$file" ] || continue
        for header in $(sed -n 's/^#include "client\/\(.*\)"$/\1/p' "$file"); do
            [ -f "client/$header" ] || fail "$file includes client/$header, which does not exist"
            other=${header%%/*}
            case $file in
            */state.h | */core/types.h | */core/device.h)
                is_data "$header" || [ "$other" = "$room" ] || [ "$other" = process ] ||
                    [ "$header" = core/table.h ] ||
                    fail "$file holds data and includes client/$header, which does not"
                continue
                ;;
            esac
            is_data "$header" && continue
            [ "$other" = "$room" ] && continue
            case $header in
            */internal.h) fail "$file includes client/$header, which is for the room $other alone" ;;
            esac
            case " $allowed " in
            *" $other "*) used="$used $other" ;;
            *) fail "$file includes client/$header: the room $room may not use $other" ;;
            esac
        done
    done
    for other in $allowed; do
        case " $used " in
        *" $other "*) ;;
        *) fail "$room may use $other and does not: take it out of client/rooms.txt" ;;
        esac
    done
    above="$above $room"
done

# Lower components know nothing of the client.
for component in base error wire sandbox writes worker ptx jit cpu cuda compiler interop cli; do
    [ -d "$component" ] || fail "there is no src/$component"
    found=$(grep -rl '#include "client/' "$component" || true)
    [ -z "$found" ] || fail "src/$component includes headers of src/client: $found"
done

# What depends on the kind of a device is a trait: only the table of kinds names one.
found=$(grep -rn '"cpu"\|"cuda"' client --include='*.c' | grep -v '^client/process/kinds.c:' || true)
[ -z "$found" ] || fail "src/client names a kind of device outside of process/kinds.c: $found"

# src/base depends on nothing, the public header included.
found=$(grep -n '^#include "' base/*.[ch] | grep -v '"base/' || true)
[ -z "$found" ] || fail "src/base includes what is not its own: $found"
exit $failed
