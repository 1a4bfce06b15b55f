#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: make-rpm.sh [FOLDER]: builds the RPM packages of packaging/bulkhead.spec.in from what git tracks here
# and leaves them in FOLDER (default: build-rpm).
set -eu
cd "$(dirname "$0")/.."
folder=${1:-build-rpm}
if ! command -v rpmbuild >/dev/null; then
    echo "error: there is no rpmbuild" >&2
    echo "Fix: install rpm-build (Debian: apt-get install rpm)" >&2
    exit 1
fi
version=$(sh scripts/version.sh)
mkdir -p "$folder/SOURCES" "$folder/SPECS"
folder=$(cd "$folder" && pwd)
jit=0
for header in /usr/lib/llvm-19/include/llvm-c/Core.h /usr/include/llvm-c/Core.h; do
    [ ! -e "$header" ] || jit=1
done
[ "$jit" = 1 ] || echo "no LLVM 19: bulkhead-jit is not built"
lib=$(rpm --eval '%{_lib}')
BULKHEAD_JIT=$jit sh packaging/files.sh version="$version" jit="$jit" lib="$lib" \
    doc=share/doc/bulkhead-doc fill packaging/bulkhead.spec.in >"$folder/SPECS/bulkhead.spec"
git ls-files -z | tar --null -T - --transform "s|^|bulkhead-$version/|" -czf "$folder/SOURCES/bulkhead-$version.tar.gz"
# What it needs is known to this system's own package manager, where that is not rpm.
nodeps=
[ -e /var/lib/dpkg/status ] && nodeps=--nodeps
# shellcheck disable=SC2086
rpmbuild -bb $nodeps --define "_topdir $folder" "$folder/SPECS/bulkhead.spec"
find "$folder/RPMS" -name '*.rpm'
