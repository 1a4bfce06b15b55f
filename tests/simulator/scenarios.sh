#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each scenario of the simulator with some hundred schedules. See docs/simulator.md.
# TIMEOUT: 300
exec "$(dirname "$0")/tools/simulate.sh" -s 1 300 '-swarm*'
