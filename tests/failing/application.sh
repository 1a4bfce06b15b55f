#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Calls of the application that fail. See docs/failing.md.
# TIMEOUT: 300
exec "$(dirname "$0")/tool/some.sh" 3 application
