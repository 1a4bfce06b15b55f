#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bulkhead top on a terminal: list, one device, keys, sizes, colours, and what is left of it.
set -u
tools=${BULKHEAD_SOURCE_DIR:?}/tests/top/tools
bulkhead=${BULKHEAD_BIN:?}

command -v python3 >/dev/null || { echo "skip: python3 is not installed"; exit 77; }
case "$("$bulkhead" top </dev/null 2>&1)" in
*"built without"*) echo "skip: built without curses.h"; exit 77 ;;
esac
python3 - <<'END' || { echo "skip: libncursesw.so.6 is not installed"; exit 77; }
import ctypes
ctypes.CDLL("libncursesw.so.6")
END
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$tools/screen.py" "$bulkhead" "${BULKHEAD_BUILD_DIR:?}/tests/programs/busy"
