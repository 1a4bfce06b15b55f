#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples as this build made them, sanitizers included: they do what they say.
# One that exits with 77 has said what this machine lacks for it.
# TIMEOUT: 90
set -eu
failed=0
for source in "$BULKHEAD_SOURCE_DIR"/examples/*.c; do
    name=$(basename "$source" .c)
    echo "== $name"
    "$BULKHEAD_BUILD_DIR/bin/example-$name" "${BULKHEAD_TEST_DEVICE:-cpu}" || [ $? -eq 77 ] ||
        failed=1
done
exit $failed
