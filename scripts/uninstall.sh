#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: uninstall.sh BUILD_FOLDER [DESTDIR [PREFIX]]: removes what `make install` installed, by
# packaging/files.txt, and the folders that only Bulkhead has. Says how many files it removed.
set -eu
build=$(cd "$1" && pwd) destdir=${2:-} packaging=$(cd "$(dirname "$0")/../packaging" && pwd)
if [ ! -f "$build/CMakeCache.txt" ]; then
    echo "error: $build was never configured, so the folders are not known" >&2
    echo "Fix: make uninstall BUILD=FOLDER PREFIX=PREFIX with those of make install" >&2
    exit 1
fi
prefix=${3:-$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$build/CMakeCache.txt")}
root=$destdir$prefix
[ -d "$root" ] || { echo "nothing is installed in $root"; exit 0; }
cd "$root"
count=0
# remove PATH...: whichever of them exist.
remove() {
    for path in "$@"; do
        if [ -e "$path" ] || [ -L "$path" ]; then
            rm -f -- "$path"
            count=$((count + 1))
        fi
    done
}
# prune FOLDER: what is empty of it and of those above it that have Bulkhead in their names.
prune() {
    case $1 in
    *[Bb]ulkhead*/*) find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true && prune "${1%/*}" ;;
    */[Bb]ulkhead) find "$1" -depth -type d -exec rmdir {} + 2>/dev/null || true ;;
    esac
}
# shellcheck disable=SC2046,SC2086
for pattern in $("$packaging/files.sh" packages | xargs "$packaging/files.sh" build="$build" list); do
    case $pattern in
    */) [ ! -d "$pattern" ] || remove $(find "$pattern" ! -type d) ;;
    *) remove $pattern ;;
    esac
    prune "${pattern%/*}"
done
echo "removed $count files from $root"
