#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A function whose parameters the generator does not know is not passed over in silence.
set -eu

cd "$BULKHEAD_TEST_TMP"
if ! command -v python3 >/dev/null; then
    echo "skip: python3 is not here"
    exit 77
fi
cat >new.h <<'END'
typedef struct bh_device {
    uint64_t id;
} bh_device;
BH_API bh_status bh_known(bh_device device, uint32_t number);
BH_API bh_status bh_novel(bh_device device, bh_riddle riddle);
END
python3 "$BULKHEAD_SOURCE_DIR/tests/arguments/generate.py" out.c new.h
grep -q 'call_bh_known' out.c || { echo "bh_known is not in the table"; exit 1; }
grep -q '"new function bh_novel has a parameter type bh_riddle' out.c ||
    { echo "nothing is said of bh_novel"; exit 1; }
