#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# packaging/files.txt has each installed file in exactly one package, and names no file that is not there;
# each package is described where packages are made; `make uninstall` leaves nothing behind.
# TIMEOUT: 60
set -eu
packaging=$BULKHEAD_SOURCE_DIR/packaging
cd "$BULKHEAD_TEST_TMP"
failed=0

prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$BULKHEAD_BUILD_DIR/CMakeCache.txt")
[ -e "$BULKHEAD_BUILD_DIR/bin/libbulkhead-jit.so" ] || export BULKHEAD_JIT=0
DESTDIR="$PWD/root" cmake --install "$BULKHEAD_BUILD_DIR" >install.log
(cd "root$prefix" && find . ! -type d | sed 's|^\./||' | sort) >installed
count=$(wc -l <installed)
[ "$count" -ge 80 ] || { echo "only $count files were installed"; failed=1; }

# expand PACKAGE: the installed files that are its own, as the list has them.
"$packaging/files.sh" packages >packages
: >expanded
while read -r package; do
    "$packaging/files.sh" build="$BULKHEAD_BUILD_DIR" list "$package" >"list.$package"
    while IFS= read -r path; do
        before=$(wc -l <expanded)
        # shellcheck disable=SC2086
        case $path in
        */) (cd "root$prefix" && find "$path" ! -type d 2>/dev/null) >>expanded || true ;;
        *) (cd "root$prefix" && ls -d $path 2>/dev/null) >>expanded || true ;;
        esac
        if [ "$(wc -l <expanded)" -eq "$before" ]; then
            echo "files.txt: $package: $path matches nothing that is installed"
            failed=1
        fi
    done <"list.$package"
done <packages

sed 's|//*|/|g' expanded | sort >listed
sort -u listed >once
for path in $(comm -23 installed once); do
    echo "installed and in no package: $path"
    echo "Fix: add a line for it to packaging/files.txt"
    failed=1
done
for path in $(uniq -d listed); do
    echo "in more than one package: $path"
    failed=1
done

# What is made from the list knows each package, and fills in without an error.
while read -r package; do
    grep -qx "Package: $package" "$packaging/debian/control" ||
        { echo "packaging/debian/control lacks $package"; failed=1; }
    for template in bulkhead.spec.in conda/meta.yaml.in; do
        grep -q "@files [^@]*\\b$package\\b" "$packaging/$template" ||
            { echo "packaging/$template lacks $package"; failed=1; }
    done
done <packages
BULKHEAD_JIT=1 "$packaging/files.sh" packages | sort >known
sed -n 's/^Package: //p' "$packaging/debian/control" | sort | comm -13 known - >unknown
[ ! -s unknown ] || { echo "packages that files.txt does not have: $(cat unknown)"; failed=1; }
for template in bulkhead.spec.in conda/meta.yaml.in; do
    if ! "$packaging/files.sh" version=1.2.3 jit=1 source=. fill "$packaging/$template" >filled; then
        failed=1
    elif grep -n '@[a-z]*@' filled; then
        echo "packaging/$template: not replaced"
        failed=1
    fi
done

# A file of somebody else stays, and so does its folder.
touch "root$prefix/bin/other"
"$BULKHEAD_SOURCE_DIR/scripts/uninstall.sh" "$BULKHEAD_BUILD_DIR" "$PWD/root" >uninstall.log
(cd root && find . ! -type d -o -type d -iname '*bulkhead*') >left
[ "$(cat left)" = ".$prefix/bin/other" ] || { echo "left by make uninstall:"; cat left; failed=1; }
exit $failed
