#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The pytest plugin, the Jupyter magic, the notebooks, the type hints.
# TIMEOUT: 90
set -eu
. "$BULKHEAD_SOURCE_DIR/tests/python/run.inc"
suite test_tools.py
