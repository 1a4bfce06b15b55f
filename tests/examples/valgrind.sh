#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples under Valgrind: they do what they say, it finds nothing wrong in them or in the library,
# and no memory is lost.
# TIMEOUT: 180
set -eu
if [ -n "$BULKHEAD_SANITIZE" ]; then
    echo "skip: a program built with the $BULKHEAD_SANITIZE sanitizer does not run under Valgrind"
    exit 77
fi
if ! command -v valgrind >/dev/null 2>&1; then
    echo "skip: valgrind is not installed (Debian: apt-get install valgrind)"
    exit 77
fi
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
failed=0
for source in "$BULKHEAD_SOURCE_DIR"/examples/*.c; do
    name=$(basename "$source" .c)
    echo "== $name"
    valgrind --quiet --log-file="$logs/$name.%p" --leak-check=full \
        "$BULKHEAD_BUILD_DIR/bin/example-$name" "${BULKHEAD_TEST_DEVICE:-cpu}" ||
        [ $? -eq 77 ] || failed=1
    if grep -h '^==' "$logs/$name".*; then failed=1; fi
done
exit $failed
