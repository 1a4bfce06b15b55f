#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Faults, stale arrays, deadlines, exceptions and what they say.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_failures.py
