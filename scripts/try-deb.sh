#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# usage: try-deb.sh [FOLDER]: installs the packages that make-deb.sh left in FOLDER (default: build-deb) in a
# fresh minimal Debian of this system's release, uses them as a user would, and removes them again. Nothing of
# this system is changed. MIRROR names where packages come from (default: deb.debian.org).
set -eu
folder=$(cd "${1:-$(dirname "$0")/../build-deb}" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
if ! command -v mmdebstrap >/dev/null; then
    echo "error: there is no mmdebstrap" >&2
    echo "Fix: sudo apt-get install mmdebstrap" >&2
    exit 1
fi
ls "$folder"/bulkhead-tools_*.deb >/dev/null 2>&1 || { echo "error: no packages in $folder" >&2; echo "Fix: make deb" >&2; exit 1; }
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/try"
cp "$folder"/*.deb "$work/try"
rm -f "$work"/try/*-dbgsym_*.deb
cp -r "$root/examples" "$work/try/examples"
sed -n '/^```c$/,/^```$/{/^```/!p;}' "$root/README.md" >"$work/try/program.c"

cat >"$work/try/inside.sh" <<'END'
set -eu
cd /try
step() { echo; echo "== $*"; }
# Debian's containers and minimal systems have no policy for services; nothing here starts one.
export DEBIAN_FRONTEND=noninteractive
install() { apt-get -q -y --no-install-recommends install "$@" >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }; }

step "the command alone: its dependencies bring the library and the worker"
install ./bulkhead-tools_*.deb ./libbulkhead0_*.deb ./bulkhead-worker-cpu_*.deb
dpkg-query -W -f '${Package} ${Version}\n' '*bulkhead*'
bulkhead --version
step "bulkhead doctor"
bulkhead doctor || true
step "bulkhead demo"
bulkhead demo -d cpu

step "a program built with libbulkhead-dev, run by a user"
install ./libbulkhead-dev_*.deb ./libbulkhead-cuda0_*.deb gcc libc6-dev make pkg-config
useradd -m user
chown -R user /try
as_user() { su user -c "cd /try && $1"; }
as_user 'cc program.c -o program $(pkg-config --cflags --libs bulkhead)'
as_user './program' | tee /tmp/said
grep -qx 'y\[999\] = 1999' /tmp/said
as_user 'make -s -C examples'
for example in saxpy survive_fault sequence; do
    as_user "./examples/$example cpu"
done
cat >cuda.c <<'C'
#include <bulkhead_cuda.h>
int main(void) { return bh_cuda_probe() == BH_OK; }
C
as_user 'cc cuda.c -o cuda $(pkg-config --cflags --libs bulkhead-cuda) && ./cuda'

step "the static library"
as_user 'cc program.c -o static $(pkg-config --cflags bulkhead) -l:libbulkhead.a -lpthread &&
    BULKHEAD_WORKER_DIR=/usr/libexec/bulkhead ./static'

step "bulkhead-jit"
install ./bulkhead-jit_*.deb
as_user 'bulkhead run -d cpu -v --executor=jit examples/saxpy.ptx -b 8 f32:2 in:f32:0..8 inout:f32:1*8 u32:8' \
    >/tmp/said 2>&1
cat /tmp/said
grep -q 'native code' /tmp/said

step "bulkhead-worker-cuda, bulkhead-doc"
install ./bulkhead-worker-cuda_*.deb ./bulkhead-doc_*.deb
test -e /usr/share/doc/bulkhead-doc/html/api-core.html
bulkhead devices

step "removed again: nothing is left"
apt-get -q -y purge '*bulkhead*' >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; exit 1; }
left=$(find /usr /etc /var/lib/bulkhead* -iname '*bulkhead*' 2>/dev/null || true)
[ -z "$left" ] || { echo "left: $left"; exit 1; }
echo "all of it works"
END


mmdebstrap --quiet --variant=apt --format=null \
    --customize-hook="copy-in $work/try /" \
    --customize-hook='chroot "$1" sh /try/inside.sh' \
    "$release" /dev/null "${MIRROR:-http://deb.debian.org/debian}"
