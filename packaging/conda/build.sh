#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What conda-build runs: everything is installed once, and the recipe's outputs take their files from it.
set -eu
cmake -S . -B build -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=Release \
    -DBULKHEAD_TESTS=OFF -DBULKHEAD_WERROR=OFF ${CMAKE_ARGS:-}
cmake --build build --parallel "${CPU_COUNT:-2}"
cmake --install build
