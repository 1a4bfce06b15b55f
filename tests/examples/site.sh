#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `make docs`: the site can be made, every link in it leads somewhere, every function of the libraries has an entry
# in the reference and in docs/which-call.md, and nothing is loaded from elsewhere.
# TIMEOUT: 60
set -eu
if ! command -v python3 >/dev/null; then
    echo "skip: python3 is not here"
    exit 77
fi
if ! command -v cmark-gfm >/dev/null; then
    echo "skip: cmark-gfm is not here (Debian: apt-get install cmark-gfm)"
    exit 77
fi
cd "$BULKHEAD_TEST_TMP"
failed=0
export PYTHONDONTWRITEBYTECODE=1 LC_ALL=C
python3 "$BULKHEAD_SOURCE_DIR/scripts/docs/make_site.py" site || failed=1

# The functions as the linker sees them, so that one that the generator overlooks is missed.
for library in libbulkhead.so libbulkhead-cuda.so; do
    nm -D --defined-only "$BULKHEAD_BUILD_DIR/lib/$library" | sed -n 's/.* T \(bh_[a-z0-9_]*\).*/\1/p'
done | sort -u >functions
[ "$(wc -l <functions)" -gt 100 ] || { echo "only $(wc -l <functions) functions"; failed=1; }
grep -oh '<a id="bh_[a-z0-9_]*"' site/api-*.html | cut -d '"' -f 2 | sort -u >described
grep -ow 'bh_[a-z0-9_]*' "$BULKHEAD_SOURCE_DIR/docs/which-call.md" | sort -u >listed
for name in $(comm -23 functions described); do
    echo "the reference has no entry for $name"
    failed=1
done
for name in $(comm -23 functions listed); do
    echo "docs/which-call.md does not say what $name is for"
    failed=1
done
if grep -nE '(src|srcset)="|<link [^>]*href="[a-z]+:|@import|url\(' site/*.html site/*.css; then
    echo "the site loads what is not in its folder"
    failed=1
fi
exit $failed
