#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bulkhead serve: what it shows, whom it refuses, and requests that mean harm.
set -u
command -v python3 >/dev/null || { echo "skip: python3 is not installed"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
exec python3 "${BULKHEAD_SOURCE_DIR:?}/tests/top/tools/web.py" "${BULKHEAD_BIN:?}" \
    "${BULKHEAD_BUILD_DIR:?}/tests/programs/busy" "${BULKHEAD_TEST_TMP:?}"
