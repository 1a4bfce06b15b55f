#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Bars on a terminal: bulkhead run --repeat and bulkhead bench.
set -u
command -v python3 >/dev/null || { echo "skip: python3 is not installed"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 exec python3 "${BULKHEAD_SOURCE_DIR:?}/tests/cli/bars.py" "$BULKHEAD_SOURCE_DIR" \
    "${BULKHEAD_BIN:?}" "${BULKHEAD_TEST_TMP:?}"
