#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The examples as C++17, with clang++: they build without a warning and do what they say.
# TIMEOUT: 90
set -eu
. "$(dirname "$0")/compile.inc"
build_and_run clang++ -x c++ -std=c++17
