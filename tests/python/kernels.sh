#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Kernels: arguments, shapes, compiling, the decorator, sequences.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_kernels.py test_signatures.py
