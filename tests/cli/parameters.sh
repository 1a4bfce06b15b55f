#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A struct of many bytes on the command line, as bytes:HEX, reaches the kernel whole.
set -eu
build=${BULKHEAD_BUILD_DIR:?}
device=${BULKHEAD_TEST_DEVICE:-cpu}
bytes=32756

cat >large.ptx <<END
.version 8.1
.target sm_70
.address_size 64
.visible .entry last(.param .align 4 .b8 data[$bytes], .param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    ld.param.u32 %r1, [data];
    ld.param.u32 %r2, [data+4096];
    ld.param.u32 %r3, [data+32748];
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r2;
    st.global.u32 [%rd1+8], %r3;
    ret;
}
END
# Words that count up from 1.
hex=$(awk 'BEGIN { for (i = 1; i <= 8189; i++) printf "%02x%02x0000", i % 256, int(i / 256) }')
# The parameters' order puts the address behind: 4 bytes lie between, 32768 would be too many.
status=0
"$build/bin/bulkhead" run -d "$device" large.ptx -- "bytes:$hex" out:u32:3 >out 2>err || status=$?
cat out err
[ "$status" -ne 0 ]
grep -q 'at most 32764' err
sed -i 's/32756/32752/' large.ptx
hex=${hex%????????}
"$build/bin/bulkhead" run -d "$device" large.ptx -- "bytes:$hex" out:u32:3 >out
cat out
grep -q 'u32\[3\] 1 1025 8188' out
