#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Reads files.txt.
#   files.sh [NAME=FOLDER...] packages          the packages
#   files.sh [NAME=FOLDER...] list PACKAGE...   their files, with {NAME} replaced
#   files.sh [NAME=FOLDER...] fill TEMPLATE     the template, with @files PACKAGE...@ alone on a line replaced
#                                               by that list and @NAME@ by the folder or value
# build=FOLDER stands for the folders that this build was configured with.
# BULKHEAD_JIT=0 leaves out what only a build with LLVM has. In a template a line's text before and after the
# mark is repeated with each file, and below=TEXT is written after a path that ends in / .
set -eu
table=$(dirname "$0")/files.txt
bin=bin include=include lib=lib libexec=libexec man=share/man doc=share/doc/Bulkhead below=''
given=''

# The folders that a build was configured with. CMake keeps an empty text for those that follow from others.
read_cache() {
    for name in bin include lib libexec man doc; do
        key=CMAKE_INSTALL_$(echo "$name" | tr a-z A-Z)DIR
        value=$(sed -n "s/^$key:[A-Z]*=//p" "$1")
        [ -z "$value" ] || eval "$name=\$value"
    done
}

while [ $# -gt 0 ]; do
    case $1 in
    *=*) ;;
    *) break ;;
    esac
    case ${1%%=*} in
    bin | include | lib | libexec | man | doc | below) eval "${1%%=*}=\${1#*=}" ;;
    build) read_cache "${1#*=}/CMakeCache.txt" ;;
    esac
    given="$given$1
"
    shift
done

usage() {
    echo "usage: files.sh [NAME=FOLDER...] packages | list PACKAGE... | fill TEMPLATE" >&2
    exit 2
}

rows() {
    awk -v jit="${BULKHEAD_JIT:-1}" '!/^ *(#|$)/ && (jit || $3 != "jit") { print $1, $2 }' "$table" |
        sed "s|{bin}|$bin|; s|{include}|$include|; s|{libexec}|$libexec|; s|{lib}|$lib|; s|{man}|$man|
            s|{doc}|$doc|; s|/\$|/$below|"
}

# list PACKAGE...: an unknown one is an error, so that a name changed in one place is noticed.
list() {
    for package in "$@"; do
        if ! grep -q "^$package " "$table"; then
            echo "files.sh: $table has no package $package" >&2
            echo "Fix: one of: $(awk '!/^ *(#|$)/ { print $1 }' "$table" | uniq | paste -s -d ' ')" >&2
            exit 1
        fi
        rows | sed -n "s/^$package //p"
    done
}

# replace_values: @NAME@ for each NAME=VALUE of the command line, in what is read.
replace_values() {
    script=$(printf '%s' "$given" | sed 's/[&|\\]/\\&/g; s/^\([a-z_]*\)=\(.*\)$/s|@\1@|\2|g/')
    sed "$script"
}

fill() {
    replace_values <"$1" | while IFS= read -r line; do
        case $line in
        *@files*@*)
            names=${line#*@files } after=${line##*@}
            names=${names%%@*}
            # shellcheck disable=SC2086
            found=$(list $names) || exit 1
            printf '%s\n' "$found" | while IFS= read -r path; do
                [ -z "$path" ] || printf '%s%s%s\n' "${line%%@files*}" "$path" "$after"
            done
            ;;
        *) printf '%s\n' "$line" ;;
        esac
    done
}

case ${1:-} in
packages) rows | awk '!seen[$1]++ { print $1 }' ;;
list) shift && list "$@" ;;
fill) [ -n "${2:-}" ] && fill "$2" || usage ;;
*) usage ;;
esac
