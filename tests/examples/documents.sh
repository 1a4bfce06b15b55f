#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every block `c` of the documents compiles: a whole program is run too, and what it prints must be the block
# without a language that follows it. Functions are compiled as they are, statements as the body of one, with
# documents/PAGE.h or documents/any.h before them. README.md is readme.sh's.
# TIMEOUT: 120
set -eu
. "$(dirname "$0")/compile.inc"
preludes=$(cd "$(dirname "$0")" && pwd)/documents
lib=$BULKHEAD_BUILD_DIR/lib include=$BULKHEAD_SOURCE_DIR/include
cd "$BULKHEAD_TEST_TMP"
cp -r "$BULKHEAD_SOURCE_DIR/examples" examples
failed=0 count=0 ran=0
compilers=$("$BULKHEAD_BIN" doctor 2>&1 | grep -Ec '^ok +(NVRTC|clang)' || true)

# extract PAGE NAME: NAME-1.c, NAME-2.c ... for its blocks, with the line each begins at in NAME-1.line, and the output
# that the page shows after it, if it does, in NAME-1.shown. A file named in the sentence before a block of another
# language, as `scale.cu`, is written under that name.
extract() {
    awk -v name="$2" '
        /^```/ && !open {
            open = 1; kind = substr($0, 4); file = ""
            if (kind == "c") {
                base = name "-" ++number; file = base ".c"
                print NR + 1 >(base ".line")
                printf "" >file
            } else if (kind == "" && fresh) {
                file = base ".shown"
            } else if (kind == "cuda" && match(before, /`[a-z_]+\.cu`/)) {
                file = substr(before, RSTART + 1, RLENGTH - 2)
            }
            fresh = 0
            next
        }
        /^```$/ { open = 0; fresh = kind == "c"; next }
        open && file { print >file }
        !open && NF { before = $0 }
        !open && /^#/ { fresh = 0 }' "$1"
}

# One block of page $page, as a file that a compiler takes in $base.full.c.
make_whole() {
    prelude=$preludes/$name.h
    [ -e "$prelude" ] || prelude=$preludes/any.h
    line=$(cat "$base.line")
    if grep -q '^int main(' "$base.c"; then
        cp "$base.c" "$base.full.c"
    elif grep -Eq '^(static |void |int |bool |size_t |bh_[a-z_]* )[^;=]*\) \{$' "$base.c"; then
        { echo "#include \"$prelude\""; echo "#line $line \"$page\""; cat "$base.c"; } >"$base.full.c"
    else
        {
            echo "#include \"$prelude\""
            echo "void block(void);"
            echo "void block(void) {"
            echo "#line $line \"$page\""
            cat "$base.c"
            echo "}"
        } >"$base.full.c"
    fi
}

# run_whole: a program of a page, beside the examples. Addresses and times differ from run to run.
plain() { sed -E 's/0x[0-9a-f]+/ADDRESS/g; s/[0-9.]+ (us|ms|s)\b/TIME/g' "$1" | tr -s ' \n' '  '; }
run_whole() {
    ran=$((ran + 1))
    if grep -q bh_module_compile "$base.c" && [ "$compilers" = 0 ]; then
        echo "not run, there is no compiler for CUDA C++: $page:$line"
        return 0
    fi
    [ -z "$BULKHEAD_SANITIZE" ] || return 0 # it cannot be linked with the library then
    if ! gcc -std=c11 -Wall -Wextra -Werror -O1 -I"$include" "$base.full.c" -o "$base" -L"$lib" -lbulkhead \
        -Wl,-rpath,"$lib"; then
        failed=1
    elif ! "./$base" >"$base.out" 2>&1; then
        echo "$page:$line: the program failed:" && cat "$base.out"
        failed=1
    elif [ -e "$base.shown" ] && [ "$(plain "$base.out")" != "$(plain "$base.shown")" ]; then
        echo "$page:$line: shown:" && cat "$base.shown" && echo "printed:" && cat "$base.out"
        failed=1
    fi
}

docs=$BULKHEAD_SOURCE_DIR/docs
for page in "$docs"/*.md "$docs"/architecture/*.md "$docs"/architecture/*/*.md; do
    name=$(echo "${page#"$docs/"}" | tr / - | sed 's/\.md$//')
    extract "$page" "$name"
    number=1
    while base=$name-$number && [ -e "$base.c" ]; do
        number=$((number + 1)) count=$((count + 1))
        make_whole
        if ! gcc -std=gnu11 -Wall -Wextra -Werror -Wno-unused -fsyntax-only -I"$include" -I"$BULKHEAD_SOURCE_DIR/src" \
            -I"$BULKHEAD_SOURCE_DIR/tests/simulator" \
            "$base.full.c"; then
            echo "$page:$line: the block does not compile"
            failed=1
        elif grep -q '^int main(' "$base.c"; then
            run_whole
        fi
    done
done
echo "$count blocks, $ran programs"
[ "$count" -ge 10 ] && [ "$ran" -ge 3 ] || failed=1
exit $failed
