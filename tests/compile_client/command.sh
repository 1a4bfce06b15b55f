#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `bulkhead compile`, `bulkhead cache` and `bulkhead run` of CUDA C++, with each compiler that is here.
# TIMEOUT: 120
set -u
bulkhead=$BULKHEAD_BIN
cd "$BULKHEAD_TEST_TMP" || exit 1
export BULKHEAD_CACHE_DIR="$PWD/kernels"
failed=0

fail() {
    echo "$1"
    for file in out err; do sed "s/^/    $file: /" $file | head -20; done
    failed=1
}
# expect STATUS WORDS...: runs them, output in out and err
expect() {
    status=$1
    shift
    "$@" >out 2>err
    got=$?
    [ $got -eq "$status" ] || fail "exit status $got, not $status: $*"
}
has() { grep -qF -- "$2" "$1" || fail "no \"$2\" in $1"; }

mkdir headers
cat >scale.cu <<'END'
#include "factor.h"
#include "near.h"
template <typename T, int N> __global__ void scale(T *x) { x[threadIdx.x] *= (T)(N * FACTOR * NEAR); }
#ifdef EXTRA
extern "C" __global__ void extra(int *x) { *x = EXTRA; }
#endif
END
echo '#define FACTOR 2' >headers/factor.h
echo '#define NEAR 1' >near.h
mkdir below
printf '#include "../near.h"\n__global__ void f(int *p) { *p = NEAR; }\n' >below/elsewhere.cu
printf '__global__ void f(int *p) {\n    *p = nope;\n}\n' >wrong.cu

"$bulkhead" doctor >doctor.txt
compilers=
grep -q '^ok    NVRTC' doctor.txt && compilers=nvrtc
grep -q '^ok    clang' doctor.txt && compilers="$compilers clang"
grep -q '^ok    cache' doctor.txt || { cat doctor.txt; failed=1; }
[ -n "$compilers" ] || { echo "skip: neither NVRTC nor clang is here"; exit 77; }
confined=1
grep -q 'no Landlock' doctor.txt && confined=0
device=${BULKHEAD_TEST_DEVICE:-cpu}

for with in $compilers; do
    expect 0 "$bulkhead" run scale.cu -I headers --compiler $with -d "$device" \
        -k 'scale<float, 3>' -b 4 inout:f32:1,2,3,4
    has out 'ARG0 f32[4] 6 12 18 24'
    expect 0 "$bulkhead" run scale.cu -Iheaders -D EXTRA=41 --std=c++20 --compiler $with \
        -d "$device" -k extra out:i32:1 --json
    has out '"values": [41]'

    expect 0 "$bulkhead" compile scale.cu -I headers --compiler $with --name 'scale<int, 1>' -v
    has out '.entry _Z5scaleIiLi1EEvPT_('
    has err 'compiled in'
    has err 'scale<int, 1> is _Z5scaleIiLi1EEvPT_'
    expect 0 "$bulkhead" compile scale.cu -I headers --compiler $with --name 'scale<int, 1>' -v \
        -o result.ptx
    [ -s out ] && fail "the result went to a file and to standard output"
    has err 'from the cache'
    has result.ptx '.target sm_80'
    expect 0 "$bulkhead" compile - -I headers -I . --compiler $with --arch=sm_90 --json <scale.cu
    has out '"cache": "miss"'
    has out '"arch": "sm_90"'
    expect 0 "$bulkhead" compile scale.cu -I headers --compiler $with --no-cache --fast-math --ftz \
        --line-info --max-registers 64 --json
    has out '"cache": "off"'

    # What is elsewhere is not read, flags that reach it are refused, unless that is asked for.
    expect $confined "$bulkhead" compile below/elsewhere.cu --compiler $with --no-cache
    [ $confined = 0 ] || has err '(-I)'
    expect 0 "$bulkhead" compile below/elsewhere.cu -I . --compiler $with
    expect 0 "$bulkhead" compile below/elsewhere.cu --unconfined --compiler $with
    expect 1 "$bulkhead" compile scale.cu -I headers --extra -fplugin=/x.so --compiler $with
    has err "extra flag '-fplugin=/x.so' is refused: it loads code into the compiler"
    has err '--unconfined'

    expect 1 "$bulkhead" compile wrong.cu --compiler $with
    has err 'wrong.cu'
    has err '*p = nope;'
    has err '^'
    has err 'error: BH_E_COMPILE:'
    [ -s out ] && fail "something was printed for a source that does not compile"
    expect 1 "$bulkhead" run wrong.cu --compiler $with -d "$device" out:i32:1
    has err '*p = nope;'
    expect 1 "$bulkhead" compile scale.cu --compiler $with
    has err 'factor.h'
    expect 1 "$bulkhead" compile wrong.cu --compiler $with --json
    has out '"status": "BH_E_COMPILE"'
    has out 'nope'
done

cat >main.cu <<'END'
extern __device__ float weigh(float x, int i); // not the place where apply is
static __device__ int hidden = 1;
template <typename T> __global__ void apply(T *p) { p[threadIdx.x] = weigh(p[threadIdx.x], threadIdx.x) + hidden; }
END
cat >weigh.cu <<'END'
// used by the kernel apply
__constant__ float table[4] = {1, 10, 100, 1000};
static __device__ int hidden = 2;
__device__ float weigh(float x, int i) { return x * table[i & 3] + hidden; }
END
for compiler in $compilers; do
    expect 0 "$bulkhead" run main.cu weigh.cu --compiler "$compiler" -d cpu -k 'apply<float>' -b 4 inout:f32:1,2,3,4
    has out 'ARG0 f32[4] 4 23 303 4003'
    expect 0 "$bulkhead" compile weigh.cu --compiler "$compiler" --relocatable -o weigh.ptx
    expect 0 "$bulkhead" run main.cu weigh.ptx --compiler "$compiler" -d cpu -k 'apply<float>' -b 2 inout:f32:1,2
    has out 'ARG0 f32[2] 4 23'
    expect 0 "$bulkhead" link main.cu weigh.cu --compiler "$compiler" -o linked.ptx -v
    has err 'by bulkhead'
    expect 1 "$bulkhead" link weigh.ptx weigh.cu --compiler "$compiler"
    has err '_Z5weighfi is defined twice'
    has err 'of weigh.cu (PTX)'
    has err 'of weigh.ptx'
    expect 1 "$bulkhead" link weigh.cu wrong.cu --compiler "$compiler"
    has err 'nope'
done

case " $compilers " in
*" nvrtc "*)
    expect 0 "$bulkhead" compile scale.cu -I headers --cubin -o result.cubin --arch=sm_80
    [ "$(head -c 4 result.cubin | tail -c 3)" = ELF ] || fail "no cubin"
    expect 0 "$bulkhead" compile scale.cu -I headers -o result.ltoir -v
    has err 'of LTO-IR'
    ;;
esac

expect 0 "$bulkhead" cache
has out "folder   $BULKHEAD_CACHE_DIR"
[ "$(sed -n 's/^hits *//p' out)" -ge 1 ] || fail "no hits were counted"
[ "$(sed -n 's/^misses *//p' out)" -ge 4 ] || fail "too few misses were counted"
expect 0 "$bulkhead" cache list
has out scale.cu
has out sm_90
expect 0 "$bulkhead" cache list --json
has out '"name": "scale.cu"'
expect 0 "$bulkhead" cache stats --json
has out '"usable": true'
expect 0 "$bulkhead" cache clear
has out removed
expect 0 "$bulkhead" cache stats
has out 'entries  0'
BULKHEAD_CACHE_DIR=/dev/null/x expect 0 "$bulkhead" cache
has out 'unused'
BULKHEAD_CACHE_DIR=/dev/null/x expect 1 "$bulkhead" cache clear
has err 'error: BH_E_IO:'
exit $failed
