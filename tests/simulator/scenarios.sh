#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each scenario of the simulator with a hundred schedules; BULKHEAD_TEST_LONG=1: with three hundred. See docs/simulator.md.
# TIMEOUT: 300
seeds=120
[ -z "${BULKHEAD_TEST_LONG:-}" ] || seeds=300
exec "$(dirname "$0")/tools/simulate.sh" -s 1 $seeds '-swarm*'
