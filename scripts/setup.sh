#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages of packages.txt that are missing: those needed to build
# (`setup.sh build`), or those of the tests too (`setup.sh test`). Says nothing and touches no
# network when nothing is missing.
set -eu

purpose=${1:-test}
list=$(dirname "$0")/../packages.txt

# at_least HAVE WANT: whether version HAVE is not older.
at_least() {
    [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]
}

# is_there CHECK: whether what a line of packages.txt asks for exists.
is_there() {
    case $1 in
    cmd:*'>='*)
        name=${1#cmd:}
        want=${name#*'>='}
        name=${name%%'>='*}
        command -v "$name" >/dev/null 2>&1 || return 1
        have=$("$name" --version 2>/dev/null | sed -n '1s/.* \([0-9][0-9.]*\).*/\1/p')
        at_least "$have" "$want"
        ;;
    cmd:*)
        command -v "${1#cmd:}" >/dev/null 2>&1
        ;;
    clang:*)
        want=${1#clang:}
        number=$want
        while [ "$number" -lt 40 ]; do
            if command -v "clang-$number" >/dev/null 2>&1; then
                return 0
            fi
            number=$((number + 1))
        done
        is_there "cmd:clang>=$want"
        ;;
    file:*)
        # shellcheck disable=SC2086
        ls -d ${1#file:} >/dev/null 2>&1
        ;;
    header:*)
        printf '#include <%s>\n' "${1#header:}" | gcc -E - >/dev/null 2>&1
        ;;
    *)
        echo "packages.txt: '$1' is no check" >&2
        exit 1
        ;;
    esac
}

# find_missing: sets `required` and `optional` to the packages that are missing.
find_missing() {
    required='' optional=''
    while read -r package when check; do
        case $package in '' | '#'*) continue ;; esac
        if [ "$when" = test ] && [ "$purpose" != test ]; then
            continue
        fi
        if ! is_there "$check"; then
            case $when in
            build) required="$required $package" ;;
            *) optional="$optional $package" ;;
            esac
        fi
    done <"$list"
}

# run_apt ARGUMENTS: apt-get that gives up soon where there is no network.
run_apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=1 \
        -o Acquire::http::Timeout=20 -o Acquire::https::Timeout=20 -o DPkg::Lock::Timeout=120 "$@" >&2
}

install_missing() {
    echo "installing$required$optional" >&2
    run_apt update || echo "apt-get update failed; going on with what is known" >&2
    if [ -n "$required" ]; then
        # shellcheck disable=SC2086
        run_apt install --no-install-recommends $required || true
    fi
    # One at a time: a package that is not available must not block the others.
    for package in $optional; do
        run_apt install --no-install-recommends "$package" || true
    done
    find_missing
}

find_missing
if [ -z "$required$optional" ]; then
    exit 0
fi
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
    install_missing
fi
if [ -n "$required" ]; then
    echo "error: missing to build:$required" >&2
    echo "Fix: sudo apt-get install$required$optional" >&2
    exit 1
fi
if [ -n "$optional" ]; then
    echo "missing, so some tests will be skipped:$optional" >&2
    echo "Fix: sudo apt-get install$optional" >&2
fi
