#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The interpreter and the JIT give the same bits and the same faults: every kernel of tests/ptx, and
# kernels/ here, which have odd values, divergent loops and addresses near the ends of their ranges.
# TIMEOUT: 150
set -u
command="$BULKHEAD_BUILD_DIR/bin/bulkhead"
here=$(cd "$(dirname "$0")" && pwd)
tmp=$BULKHEAD_TEST_TMP
failed=0 native=0 runs=0

if [ ! -e "$BULKHEAD_BUILD_DIR/bin/libbulkhead-jit.so" ]; then
    echo "skip: built without the JIT: no llvm-19-dev, or a build with sanitizers"
    exit 77
fi

# run EXECUTOR ARGUMENTS: output, errors and exit status; addresses differ from process to process, and only
# the interpreter knows the registers at a fault.
run() {
    executor=$1
    shift
    "$command" run -v "--executor=$executor" "$@" >"$tmp/out" 2>"$tmp/err"
    echo "status $?" >>"$tmp/out"
    grep -q '^kernel .*: native code' "$tmp/err" && native=$((native + 1))
    grep -Ev '^(kernel |  registers |    %)' "$tmp/err" | sed 's/0x[0-9a-f]\{9,\}/ADDRESS/g' >>"$tmp/out"
    mv "$tmp/out" "$tmp/$executor"
}

compare() {
    run interp "$@"
    run jit "$@"
    runs=$((runs + 1))
    cmp -s "$tmp/interp" "$tmp/jit" && return
    failed=1
    echo "FAILED: bulkhead run $*"
    diff "$tmp/interp" "$tmp/jit" | cut -c 1-300 | head -n 8
}

values=in:u32:0,0x80000000,1,0x80000001,0x007fffff,0x807fffff,0x00800000,0x7f7fffff
values=$values,0xff7fffff,0x7f800000,0xff800000,0x7fc00000,0x7f800001,0xffc12345,0x3f800000,0xbf7fffff
compare --all --hex "$here/kernels/floats.ptx" -g 4 -b 64 -- "$values" out:u32:22528
if [ "$native" = 0 ]; then
    "$command" run -v --executor=jit "$here/kernels/floats.ptx" -- "$values" out:u32:88 2>&1 |
        sed -n 's/^kernel .*: interpreted: /skip: /p'
    exit 77
fi
floats=in:u32:0x3f000000,0x4effffff,0x4f000000,0x4f800000,0xcf000000,0xcf000001,0x5f000000,0xdf000000
floats=$floats,0x41200001,0x3fc00000,0xbfc00000,0x40490fdb,0xc2fc0000,0x42fe0000,0xc3150000,0x7e800001
for given in "$values" "$floats"; do
    compare --all --hex "$here/kernels/conversions.ptx" -g 4 -b 64 -- "$given" out:u32:28672
    compare --all --hex "$here/kernels/widths.ptx" -g 4 -b 64 -- "$given" out:u32:25088
    compare --all --hex "$here/kernels/roundings.ptx" -g 4 -b 64 -- "$given" out:u32:22528
done
divided=in:u32:0,1,0xffffffff,0x80000000,0x7fffffff,2,3,0xfffffffe,10,100000,0xfffffff9,65536,65537,5,0xaaaaaaaa,6
for block in 256 16,16 8,32; do
    for one in 0 1 0xffffffff 12345; do
        compare --all --hex "$here/kernels/divisions.ptx" -b "$block" -- "$divided" out:u32:13312 \
            "u32:$one"
    done
done
for block in 64 16,4 8,8 5,7; do
    for one in 0 1 0xffffffff 0x80000000 77; do
        for kernel in narrow_wide bits; do
            compare --all --hex "$here/kernels/$kernel.ptx" -b "$block" -- "$divided" out:u32:6592 \
                "u32:$one"
        done
    done
done
for block in 64 50 16,5 5,7; do
    compare --all --hex "$here/kernels/votes.ptx" -b "$block" -- in:u32:1,9,4,5,0,7*27,0*32,3*20 out:u32:6560
done
# The last three fault: not aligned, outside, and outside in one lane alone.
for near in 0 32 2 100000000 18446744073709551360; do
    for block in 32 50; do
        compare --all --hex "$here/kernels/atomics.ptx" -g 1 -b "$block" -- "$values" inout:u32:7*160 \
            out:u32:8064 "u64:$near"
    done
done
for block in 64 16,4 16,8 16,5 8,8 8,5 8,2,6 5,7; do
    for near in 0 0x7ffffff0 0xfffffff8; do
        compare --all --hex "$here/kernels/rows.ptx" -g 1 -b "$block" -- \
            in:u32:3,0x80000001,7*200,0..600 out:u32:5888 "u32:$near"
    done
done
for block in 64 16,4 16,3 8,8 8,5 50 5,7; do
    for near in 0x7ffffff0 0xffffffe8 100; do
        compare --all --hex "$here/kernels/integers.ptx" -g 2 -b "$block" -- "$values" out:u32:9856 \
            "u32:$near"
    done
done
halves=in:u32:0,0x80000000,0x3c00fc00,0x7bff7c00,0x00010001,0x03ff0400,0x7e007c01,0xffff8001
halves=$halves,0x3555c000,0x477fe000,0x477ff000,0x33000000,0x33000001,0x387fc000,0x387fe000,0xff800000
for block in 64 32 50; do
    compare --all --hex "$here/kernels/halves.ptx" -g 64 -b "$block" -- "$halves" out:u32:135168 \
        inout:u32:0*128
done
# The first warp decides what is reported, so blocks with faults have only one.
for block in 64 16,4 16,3 8,8 8,5 50 5,7; do
    for kernel in vectors local; do
        compare --all --hex "$here/kernels/$kernel.ptx" -b "$block" -- in:u32:0..600 out:u32:9728 u64:0
    done
done
for block in 32 16,2 8,4 20; do
    for near in 8 16 64 112 1000000; do
        compare --all --hex "$here/kernels/local.ptx" -b "$block" -- in:u32:0..600 out:u32:9728 "u64:$near"
    done
done

cd "$here/../ptx" || exit 1
for file in *.ptx; do
    # A file may have no such line; checked launches are always interpreted.
    sed -n 's|^// RUN: *||p' "$file" | grep -v -- --check >"$tmp/lines"
    while read -r arguments; do
        eval "compare \"$file\" $arguments" </dev/null
    done <"$tmp/lines"
done

# All of these must be native code: a kernel that is not taken would compare equal too.
if [ "$native" -lt $((runs - 8)) ]; then
    echo "FAILED: $native of $runs kernels were native code"
    failed=1
fi
[ "$failed" = 0 ] || exit 1
