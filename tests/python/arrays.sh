#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Arrays: dtypes, views, transfers, what is refused.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_arrays.py
