#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make install` installs is enough for someone else's program, also after it was moved.
# TIMEOUT: 120
set -eu

if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: the program is built without the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
unset BULKHEAD_WORKER_DIR
cd "$BULKHEAD_TEST_TMP"
consumer=$BULKHEAD_SOURCE_DIR/tests/package/consumer
first=$PWD/first prefix=$PWD/moved

cmake --install "$BULKHEAD_BUILD_DIR" --prefix "$first" >install.log
mv "$first" "$prefix"
lib=$(dirname "$(find "$prefix" -name libbulkhead.so)")

for file in bin/bulkhead include/bulkhead.h include/bulkhead.hpp include/bulkhead_cuda.h \
    include/bulkhead/core.h include/bulkhead/args.h include/bulkhead/cuda.h \
    libexec/bulkhead/bulkhead-worker-cpu \
    share/doc/Bulkhead/LICENSE share/man/man1/bulkhead.1 share/doc/Bulkhead/contrib/grafana/bulkhead.json \
    share/bash-completion/completions/bulkhead share/zsh/site-functions/_bulkhead \
    share/fish/vendor_completions.d/bulkhead.fish; do
    [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
done
for file in libbulkhead.a libbulkhead.so.0 libbulkhead-cuda.so.0 pkgconfig/bulkhead.pc \
    pkgconfig/bulkhead-cuda.pc \
    cmake/Bulkhead/BulkheadConfig.cmake; do
    [ -e "$lib/$file" ] || { echo "not installed: $lib/$file"; exit 1; }
done

if command -v python3 >/dev/null && [ -e "$BULKHEAD_BUILD_DIR/bulkhead-api.json" ]; then
    python3 -c 'import json, sys; sys.exit(not json.load(open(sys.argv[1]))["functions"])' \
        "$prefix/share/bulkhead/bulkhead-api.json"
fi

version=$(sed -n 's/^#define BH_VERSION_[A-Z]* //p' "$prefix/include/bulkhead/core.h" | paste -s -d .)

# run NAME COMMAND...: it must find the library and the worker.
run() {
    name=$1
    shift
    said=$("$@") || { echo "$name failed"; exit 1; }
    [ "$said" = "bulkhead $version opened cpu" ] || { echo "$name said: $said"; exit 1; }
}

cmake -S "$consumer" -B cmake-build -DCMAKE_PREFIX_PATH="$prefix" >cmake.log
cmake --build cmake-build >>cmake.log
run find_package cmake-build/consumer-shared
run 'find_package, interop' cmake-build/consumer-cuda
run 'find_package, static' env BULKHEAD_WORKER_DIR="$prefix/libexec/bulkhead" \
    cmake-build/consumer-static

"$prefix/bin/bulkhead" --version >version
grep -qF "$version" version || { echo "bulkhead --version said: $(cat version)"; exit 1; }

if ! command -v pkg-config >/dev/null; then
    echo "pkg-config is not here: its file was not tried"
    exit 0
fi
export PKG_CONFIG_PATH="$lib/pkgconfig"
known=$(pkg-config --modversion bulkhead)
[ "$known" = "$version" ] || { echo "pkg-config knows version $known, not $version"; exit 1; }
# shellcheck disable=SC2046
cc "$consumer/main.c" -o by-pkg-config $(pkg-config --cflags --libs bulkhead)
run pkg-config env LD_LIBRARY_PATH="$lib" ./by-pkg-config
if command -v c++ >/dev/null; then
    cat >owner.cpp <<'END'
#include <bulkhead.hpp>
#include <cstdio>
int main() {
    bulkhead::device device("cpu");
    std::printf("bulkhead %s opened %s\n", bh_version(), device.info().kind);
}
END
    # shellcheck disable=SC2046
    c++ -std=c++17 owner.cpp -o owner $(pkg-config --cflags --libs bulkhead)
    run 'pkg-config, C++' env LD_LIBRARY_PATH="$lib" ./owner
fi
# The interop library is found the same way, and brings the other with it.
cat >interop.c <<'END'
#include <bulkhead_cuda.h>
#include <stdio.h>
int main(void) {
    bh_error error;
    if (bh_cuda_probe() != BH_OK && (bh_cuda_last_error(&error) == BH_OK || !error.message[0])) return 1;
    printf("bulkhead %s opened cpu\n", bh_version());
    return 0;
}
END
# shellcheck disable=SC2046
cc interop.c -o interop $(pkg-config --cflags --libs bulkhead-cuda)
run 'pkg-config, interop' env LD_LIBRARY_PATH="$lib" ./interop
