#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Signals, threads, asyncio, fork, the end of the interpreter.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_process.py
