#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# TIMEOUT: 120
# CUB's own headers, from Debian's package or from a toolkit, with clang and the device headers.
set -eu

bulkhead=$BULKHEAD_BUILD_DIR/bin/bulkhead
source=$BULKHEAD_SOURCE_DIR/tests/device_header/cub.cu

echo '__global__ void nothing() {}' > "$BULKHEAD_TEST_TMP/nothing.cu"
if ! "$bulkhead" compile "$BULKHEAD_TEST_TMP/nothing.cu" --compiler clang --no-cache -o /dev/null; then
    echo "skip: clang is not installed"
    exit 77
fi
found=
for folder in ${BULKHEAD_CUB-} /usr/include /usr/local/cuda/include/cccl; do
    [ ! -e "$folder/cub/block/block_reduce.cuh" ] || { found=$folder && break; }
done
if [ -z "$found" ]; then
    echo "skip: CUB is not installed. Fix: sudo apt-get install libcub-dev libthrust-dev"
    exit 77
fi
# Of /usr/include the two folders alone, not the host's library before the device headers.
include=$BULKHEAD_TEST_TMP/include
mkdir -p "$include"
for folder in cub thrust cuda nv; do
    [ ! -d "$found/$folder" ] || cp -rL "$found/$folder" "$include/"
done

ptx=$BULKHEAD_TEST_TMP/cub.ptx
"$bulkhead" compile "$source" --compiler clang -I "$include" --no-cache -o "$ptx"
run() {
    result=$("$bulkhead" run "$ptx" --kernel "$1" -b 128 in:u32:0..512 inout:u32:0,0)
    [ "$result" = "ARG1 u32[2] 0 $2" ] || { echo "$1: $result"; exit 1; }
}
run cub_sums 133
run cub_sort 528
