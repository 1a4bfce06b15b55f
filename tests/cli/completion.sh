#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command and every option of the help texts is completed by bash, zsh and fish.
set -u
command -v bash >/dev/null || { echo "skip: bash is not installed"; exit 77; }
folder=${BULKHEAD_SOURCE_DIR:?}/contrib/completion
bulkhead=${BULKHEAD_BIN:?}
failed=0
fail() {
    echo "$*"
    failed=1
}

cat >"$BULKHEAD_TEST_TMP/ask.bash" <<'END'
# ask.bash FILE WORD... : what can stand for the last word.
source "$1"
shift
COMP_WORDS=(bulkhead "$@")
COMP_CWORD=$#
_bulkhead
printf '%s\n' "${COMPREPLY[@]}"
END
ask() {
    bash "$BULKHEAD_TEST_TMP/ask.bash" "$folder/bulkhead.bash" "$@"
}

commands=$("$bulkhead" --help | sed -n 's/^  \([a-z]\{2,\}\)  .*/\1/p')
[ "$(echo "$commands" | wc -l)" -ge 10 ] || fail "found only these commands: $commands"
words=$(ask "")
for command in $commands; do
    echo "$words" | grep -qx -- "$command" || fail "bash does not complete the command $command"
    grep -q "'$command:" "$folder/_bulkhead" || fail "zsh does not complete the command $command"
    grep -q -- "-a $command " "$folder/bulkhead.fish" || fail "fish does not complete the command $command"
    [ "$command" = help ] && continue
    # Options begin a line, or follow others there. Below "Examples:" they are repeated.
    options=$("$bulkhead" help "$command" | sed '/^Examples:/,$d' | grep -E '^ +-' |
        grep -oE '(^|[ ,])(-[A-Za-z0-9]|--[a-z][a-z-]*)\b' | grep -oE -- '--?[A-Za-z0-9][a-z-]*' | sort -u)
    [ -n "$options" ] || [ "$command" = help ] || fail "$command has no options in its help text"
    offered=$(ask "$command" -)
    zsh=$(sed -n "/^    $command)/,/;;/p" "$folder/_bulkhead")
    fish=$(grep "seen_subcommand_from $command\"" "$folder/bulkhead.fish")
    for option in $options; do
        echo "$offered" | grep -qx -- "$option" || fail "bash does not complete $command $option"
        echo "$zsh" | grep -qE -- "[ '{,*]$option[]=+,})[]" || fail "zsh does not complete $command $option"
        case $option in
        --*) text=" -l ${option#--} " ;;
        *) text=" -s ${option#-} " ;;
        esac
        echo "$fish" | grep -q -- "$text" || fail "fish does not complete $command $option"
    done
    # What is offered is taken: a wrong option would be named.
    for option in $offered; do
        "$bulkhead" "$command" "$option" --none --none </dev/null 2>&1 |
            grep -q -- "\"$option\" is not an option" &&
            fail "bash completes $command $option, which it does not have"
    done
done

[ "$(ask run -d cu)" = "cuda
cuda:0" ] || fail "the devices of -d: $(ask run -d cu)"
[ "$(ask top --sort = lo | head -1)" = "losses" ] || [ "$(ask top --sort = lo | tail -1)" = losses ] ||
    fail "--sort=lo: $(ask top --sort = lo)"
[ "$(ask cache cl)" = clear ] || fail "cache cl: $(ask cache cl)"
[ "$(ask help dem)" = demo ] || fail "help dem: $(ask help dem)"
cd "$BULKHEAD_TEST_TMP" && touch "my kernel.ptx"
[ "$(ask run my)" = "my kernel.ptx" ] || fail "a file: $(ask run my)"
[ -z "$(ask run --grid '')" ] || fail "a number has completions: $(ask run --grid '')"

if command -v zsh >/dev/null; then zsh -n "$folder/_bulkhead" || failed=1; fi
if command -v fish >/dev/null; then
    fish --no-execute "$folder/bulkhead.fish" || failed=1
    fish --no-config -c "source $folder/bulkhead.fish; complete -C 'bulkhead top --so'" | grep -q '^--sort' ||
        fail "fish does not complete --so"
fi
exit $failed
