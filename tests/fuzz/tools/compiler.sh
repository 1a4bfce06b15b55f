#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints the CMake option that chooses a clang with libFuzzer; nothing where there is none.
set -u
program=$(mktemp)
trap 'rm -f "$program"' EXIT
for clang in clang-21 clang-20 clang-19 clang-18 clang-17 clang-16 clang clang-15 clang-14; do
    command -v "$clang" >/dev/null 2>&1 || continue
    echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d == 0 && n != 0; }' |
        "$clang" -fsanitize=fuzzer,address,undefined -x c - -o "$program" 2>/dev/null || continue
    echo "-DCMAKE_C_COMPILER=$clang"
    exit 0
done
echo 'No clang with libFuzzer is installed; tests/fuzz/engine stands in for it.' >&2
echo 'Fix: sudo apt-get install clang-19 libclang-rt-19-dev, and remove build-fuzz' >&2
