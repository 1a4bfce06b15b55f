#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The shared library shows the functions of the public headers and nothing else, with symbol versions that
# tell stable from experimental ones, and needs libc alone.
# libbulkhead-cuda shows those of bulkhead/cuda.h and needs libbulkhead and libc alone.
set -u
source=${BULKHEAD_SOURCE_DIR:?}
library=${BULKHEAD_BUILD_DIR:?}/lib/libbulkhead.so
interop=${BULKHEAD_BUILD_DIR:?}/lib/libbulkhead-cuda.so

command -v nm >/dev/null && command -v readelf >/dev/null || {
    echo "nm and readelf are not installed"
    exit 77
}
case "$(readelf -d "$library")" in
*libasan* | *libtsan* | *libubsan*)
    echo "a sanitizer adds symbols and libraries of its own"
    exit 77
    ;;
esac

failed=0 work=${BULKHEAD_TEST_TMP:?}
export LC_ALL=C
# compare LIBRARY FEWEST HEADER...
compare() {
    file=$1 fewest=$2
    shift 2
    # A: the names of symbol versions.
    shown=$(nm -D --defined-only "$file" | awk '$2 != "A" {print $3}' | sed 's/@.*//' | sort -u)
    # Every BH_API declaration: the name before the first parenthesis.
    declared=$(sed -n 's/^BH_API .*[ *]\(bh_[a-z0-9_]*\)(.*/\1/p' "$@" | sort -u)

    [ "$(echo "$declared" | wc -l)" -gt "$fewest" ] || {
        echo "found too few declarations in $*:" $declared
        failed=1
    }
    echo "$shown" >"$work/shown"
    echo "$declared" >"$work/declared"
    for name in $(comm -23 "$work/shown" "$work/declared"); do
        echo "$name is shown by $file and not declared"
        failed=1
    done
    for name in $(comm -13 "$work/shown" "$work/declared"); do
        echo "$name is declared and not shown by $file"
        failed=1
    done
}
headers=$source/include/bulkhead
# shellcheck disable=SC2046
compare "$library" 50 $(find "$headers" -name '*.h' ! -name cuda.h)
compare "$interop" 8 "$headers/cuda.h"

# Functions of experimental headers have a symbol version of their own.
nm -D --defined-only "$library" >"$work/versions"
for header in $(find "$headers" -name '*.h' ! -name cuda.h); do
    version=BULKHEAD_0
    head -5 "$header" | grep -q Experimental && version=BULKHEAD_EXPERIMENTAL
    for name in $(sed -n 's/^BH_API .*[ *]\(bh_[a-z0-9_]*\)(.*/\1/p' "$header"); do
        grep -q " $name@@$version\$" "$work/versions" || {
            echo "$name of $header does not have the version $version"
            failed=1
        }
    done
done

for needed in $(readelf -d "$interop" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case "$needed" in
    libbulkhead.so.* | libc.so.* | libdl.so.* | libpthread.so.* | ld-linux*) ;;
    *)
        echo "libbulkhead-cuda needs $needed"
        failed=1
        ;;
    esac
done
readelf -d "$interop" | grep -q NODELETE || {
    echo "libbulkhead-cuda can be unloaded under its tensors"
    failed=1
}

for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
    case "$needed" in
    libc.so.* | ld-linux*) ;;
    *)
        echo "the library needs $needed"
        failed=1
        ;;
    esac
done
readelf -d "$library" | grep -q NODELETE || {
    echo "the library can be unloaded under its threads"
    failed=1
}
readelf -Wl "$library" | grep -q 'GNU_STACK.*RWE' && {
    echo "the library asks for an executable stack"
    failed=1
}
exit $failed
