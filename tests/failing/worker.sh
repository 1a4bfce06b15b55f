#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls of workers that fail. See docs/failing.md.
# TIMEOUT: 300
exec "$(dirname "$0")/tool/some.sh" 2 worker
