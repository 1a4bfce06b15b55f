#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-deb.sh [FOLDER]: builds the Debian packages of packaging/debian from what git tracks here (or all
# files, outside of a git checkout) and leaves them in FOLDER (default: build-deb), checked by lintian.
# DEBFULLNAME and DEBEMAIL name the packager.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-deb}
missing=
for package in dpkg-dev:dpkg-buildpackage debhelper:dh lintian:lintian fakeroot:fakeroot cmark-gfm:cmark-gfm; do
    command -v "${package#*:}" >/dev/null || missing="$missing ${package%:*}"
done
if [ -n "$missing" ]; then
    echo "error: missing to build Debian packages:$missing" >&2
    echo "Fix: sudo apt-get install$missing" >&2
    exit 1
fi
version=$(sh scripts/version.sh)
# A package for the Debian archive would close a bug that asks for it.
suppressed=initial-upload-closes-no-bugs
if [ -z "${DEBEMAIL:-}" ]; then
    echo "DEBEMAIL is not set: the packages name no address that can be reached"
    suppressed=$suppressed,root-in-contact,bogus-mail-host,bogus-mail-host-in-debian-changelog
fi
maintainer="${DEBFULLNAME:-Bulkhead packager} <${DEBEMAIL:-root@localhost}>"
: "${SOURCE_DATE_EPOCH:=$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
source=$folder/bulkhead-$version
rm -rf "$source" "$folder"/*.deb "$folder"/*.changes "$folder"/*.buildinfo
mkdir "$source"
if git rev-parse --git-dir >/dev/null 2>&1; then
    git ls-files -z | tar --null -T - -cf - | tar -xf - -C "$source"
else
    tar --exclude='./build*' -cf - . | tar -xf - -C "$source"
fi
cp -r packaging/debian "$source/debian"
sh packaging/files.sh maintainer="$maintainer" fill packaging/debian/control >"$source/debian/control"
year=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y)
sh packaging/files.sh year="$year" fill packaging/debian/copyright >"$source/debian/copyright"
cat >"$source/debian/changelog" <<END
bulkhead ($version-1) unstable; urgency=medium

  * Version $version. See CHANGELOG.md in bulkhead-doc.

 -- $maintainer  $(date -R -u -d "@$SOURCE_DATE_EPOCH")
END
# A JIT only where LLVM can be compiled against, as in `make`.
profiles=${DEB_BUILD_PROFILES:-}
if [ ! -e /usr/lib/llvm-19/include/llvm-c/Core.h ]; then
    profiles="$profiles nojit"
    echo "no llvm-19-dev: bulkhead-jit is not built"
fi
(cd "$source" && DEB_BUILD_PROFILES=$profiles dpkg-buildpackage -b -us -uc -rfakeroot)
rm -rf "$source"
lintian --fail-on error,warning --suppress-tags "$suppressed" "$folder"/*.changes
ls "$folder"/*.deb
