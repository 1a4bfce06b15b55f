#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Memory without a copy: buffers, DLPack, managed arrays, other processes.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_sharing.py
