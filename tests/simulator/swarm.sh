#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random programs under the simulator, against the model; BULKHEAD_TEST_LONG=1: three times as many. See
# docs/simulator.md.
# TIMEOUT: 300
seconds=3 seeds=700
[ -z "${BULKHEAD_TEST_LONG:-}" ] || seconds=6 seeds=2000
exec "$(dirname "$0")/tools/simulate.sh" -s $seconds $seeds 'swarm*'
