#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls of the compiler's process that fail. See docs/failing.md.
# TIMEOUT: 300
exec "$(dirname "$0")/tool/some.sh" 1 compiler
