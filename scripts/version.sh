#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the version, which stands in the public header and nowhere else.
sed -n 's/^#define BH_VERSION_[A-Z]* //p' "$(dirname "$0")/../include/bulkhead/core.h" | paste -s -d .
