#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command of README.md works as it is written there. In a block `sh` each line is a command that must
# succeed. In a block `console` each line after `$ ` is a command, and the lines after it are its output.
# The blocks `c` and `cuda` are the files that the commands use.
# TIMEOUT: 180
set -eu
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: the programs are built without the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
if ! command -v pkg-config >/dev/null; then
    echo "skip: pkg-config is not here"
    exit 77
fi
if [ -e /dev/nvidiactl ] && [ ! -e "$BULKHEAD_BUILD_DIR/bin/bulkhead-worker-cuda" ]; then
    echo "skip: the program opens the default device, whose worker was not built"
    exit 77
fi
unset BULKHEAD_WORKER_DIR MAKEFLAGS MFLAGS MAKELEVEL
cd "$BULKHEAD_TEST_TMP"
readme=$BULKHEAD_SOURCE_DIR/README.md

# block KIND: the lines of all such blocks.
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p;}" "$readme"; }
block c >program.c
block cuda >scale.cu
cp -r "$BULKHEAD_SOURCE_DIR/examples" examples
# Programs built in place by somebody are not those that are built here.
find examples -type f -perm /111 ! -name '*.py' -delete

# Commands that must not do here what they do elsewhere. `make` works on the source folder and installs into
# this one, with the prefix that is configured, so that nothing is built again while other tests run.
mkdir bin
make=$(command -v make)
prefix=$(sed -n 's/^CMAKE_INSTALL_PREFIX:[A-Z]*=//p' "$BULKHEAD_BUILD_DIR/CMakeCache.txt")
cat >bin/make <<END
#!/bin/sh
case \$1 in -C) exec "$make" "\$@" ;; esac
exec "$make" -C "$BULKHEAD_SOURCE_DIR" BUILD="$BULKHEAD_BUILD_DIR" PREFIX="$prefix" DESTDIR="$PWD/root" "\$@"
END
printf '#!/bin/sh\nexec "$@"\n' >bin/sudo
printf '#!/bin/sh\n' >bin/ldconfig
chmod +x bin/*
installed=$PWD/root$prefix
lib=$installed/$(sed -n 's/^CMAKE_INSTALL_LIBDIR:[A-Z]*=//p' "$BULKHEAD_BUILD_DIR/CMakeCache.txt")
export PATH="$PWD/bin:$installed/bin:$PATH" PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
export BULKHEAD_CACHE_DIR="$PWD/cache"

failed=0 ran=0
block sh >commands
while IFS= read -r line; do
    case $line in
    *apt-get*) echo "not run, it installs packages: $line" && continue ;;
    esac
    echo "== $line"
    ran=$((ran + 1))
    sh -c "$line" >output 2>&1 </dev/null || { cat output; echo "failed: $line"; failed=1; }
    case $line in
    ./program) grep -qx 'y\[999\] = 1999' output || { cat output; failed=1; } ;;
    esac
done <commands

# plain FILE: its words, whatever the lines are broken at.
plain() { tr -s ' \n' '  ' <"$1"; }
bulkhead doctor >doctor.txt 2>&1 || true
check() {
    [ -n "$command" ] || return 0
    case $command in
    *.cu*)
        if ! grep -Eq '^ok +(NVRTC|clang)' doctor.txt; then
            echo "not run, there is no compiler: $command"
            return 0
        fi
        ;;
    esac
    echo "== $command"
    ran=$((ran + 1))
    sh -c "$command" >output 2>&1 </dev/null || true
    if [ "$(plain output)" != "$(plain expected)" ]; then
        echo "README.md says:" && cat expected
        echo "it printed:" && cat output
        failed=1
    fi
}
command=
block console >consoles
while IFS= read -r line; do
    case $line in
    '$ '*)
        check
        command=${line#'$ '}
        : >expected
        ;;
    *) printf '%s\n' "$line" >>expected ;;
    esac
done <consoles
check
echo "$ran commands"
[ "$ran" -ge 10 ] || failed=1
exit $failed
