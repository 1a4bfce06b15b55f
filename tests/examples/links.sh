#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Links between the documents lead to files that exist, and to headings that they have; public names
# in them are declared.
set -eu
cd "$BULKHEAD_SOURCE_DIR"
failed=0 count=0

# anchors FILE: its headings as links name them.
anchors() {
    sed -n 's/^##* //p' "$1" | tr 'A-Z ' 'a-z-' | tr -cd 'a-z0-9_\n-'
}

links=$BULKHEAD_TEST_TMP/links
for page in *.md docs/*.md docs/architecture/*.md docs/architecture/*/*.md; do
    # Not what looks like a link in code: kernel[grid, block](x).
    sed '/^```/,/^```/d; s/`[^`]*`//g' "$page" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//' | sed "s|^|$page |"
done >"$links"
while read -r page link; do
    case $link in http*) continue ;; esac
    count=$((count + 1))
    file=${link%%#*}
    if [ -n "$file" ]; then file=$(dirname "$page")/$file; else file=$page; fi
    if [ ! -e "$file" ]; then
        echo "$page: $link does not exist"
        failed=1
        continue
    fi
    case $link in
    *'#'*)
        if ! anchors "$file" | grep -qx -- "${link#*#}"; then
            echo "$page: $link: no such heading"
            failed=1
        fi
        ;;
    esac
done <"$links"

# Whole names of the API. Those that end with _ stand for several.
names() {
    grep -owhE 'bh_[a-z0-9][a-z0-9_]*' "$@" | grep -v '_$' | LC_ALL=C sort -u
}
names include/*.h include/*.hpp include/bulkhead/*.h >"$BULKHEAD_TEST_TMP/declared"
names *.md docs/*.md docs/*.1 docs/architecture/*.md docs/architecture/*/*.md \
    >"$BULKHEAD_TEST_TMP/mentioned"
undeclared=$(LC_ALL=C comm -23 "$BULKHEAD_TEST_TMP/mentioned" "$BULKHEAD_TEST_TMP/declared")
if [ -n "$undeclared" ]; then
    echo "mentioned in documents and declared in no header:" $undeclared
    failed=1
fi
[ "$(wc -l <"$BULKHEAD_TEST_TMP/mentioned")" -gt 100 ] || failed=1
echo "$count links"
[ "$count" -gt 50 ] || failed=1
exit $failed
