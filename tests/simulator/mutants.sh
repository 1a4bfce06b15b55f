#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Mistakes built in on purpose must be found by the simulator: the short list of tools/mutants.py.
# TIMEOUT: 400
set -eu
build=${BULKHEAD_BUILD_DIR:?}
[ -x "$build/tests/bulkhead-simulator" ] || { echo "skip: the simulator is not part of this build"; exit 77; }
command -v python3 >/dev/null || { echo "skip: there is no python3"; exit 77; }
exec python3 "$(dirname "$0")/tools/mutants.py" "$build" --short --seconds 90
