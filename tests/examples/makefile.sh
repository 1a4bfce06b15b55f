#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# examples/Makefile builds the examples with nothing but an installed Bulkhead and pkg-config.
# TIMEOUT: 90
set -eu
if ! command -v pkg-config >/dev/null; then
    echo "skip: pkg-config is not here"
    exit 77
fi
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: examples are built without the $BULKHEAD_SANITIZE sanitizer"
    exit 77
fi
unset BULKHEAD_WORKER_DIR
cd "$BULKHEAD_TEST_TMP"
cmake --install "$BULKHEAD_BUILD_DIR" --prefix "$PWD/prefix" >install.log
lib=$(dirname "$(find "$PWD/prefix" -name libbulkhead.so)")
cp -r "$BULKHEAD_SOURCE_DIR/examples" examples
export PKG_CONFIG_PATH="$lib/pkgconfig" LD_LIBRARY_PATH="$lib"
make -B -C examples
./examples/saxpy "${BULKHEAD_TEST_DEVICE:-cpu}"
