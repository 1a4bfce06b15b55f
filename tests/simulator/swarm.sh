#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Random programs under the simulator, against the model. See docs/simulator.md.
# TIMEOUT: 300
exec "$(dirname "$0")/tools/simulate.sh" -s 6 2000 'swarm*'
