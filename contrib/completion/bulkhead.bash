# SPDX-License-Identifier: Apache-2.0
# Completion of the bulkhead command for bash.

_bulkhead() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]}
    local options= values= words=
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        mapfile -t COMPREPLY < <(compgen -W "devices run compile link cache demo top serve bench doctor help --help --version" -- "$word")
        return
    fi
    # "--device=cpu" is three words to bash.
    if [[ $word == "=" ]]; then
        word=
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    case $command in
    devices)
        options="--json -h --help"
        ;;
    run)
        options="-k --kernel -g --grid -b --block -s --shared --cluster --cooperative -d --device --check
            --executor -v --verbose --sarif --repeat --timeout --json --hex --all --counters --trace
            --report --trace-threads --threads --trace-block --print --stop -D -I --std --arch --compiler
            --fast-math --ftz --debug --line-info --max-registers --extra --unconfined --no-cache -h --help"
        words=@file
        ;;
    compile)
        options="-o --output --ptx --cubin --ltoir -D -I --std --arch --compiler --fast-math --ftz --debug
            --line-info --max-registers --extra --unconfined --no-cache --name --relocatable --timeout -v
            --verbose --json -h --help"
        words=@file
        ;;
    link)
        options="-o --output --ptx --cubin -D -I --std --arch --compiler --fast-math --ftz --debug --line-info
            --max-registers --extra --unconfined --no-cache --timeout -v --verbose --json -h --help"
        words=@file
        ;;
    cache)
        options="--json -h --help"
        words="stats list clear"
        ;;
    demo)
        options="-d --device -h --help"
        ;;
    top)
        options="-1 --once --json -i --interval -s --sort -h --help"
        ;;
    serve)
        options="-l --listen --host --token-file --traces --reports -i --interval -q --quiet -h --help"
        ;;
    bench)
        options="-d --device --json --html --quick -h --help"
        ;;
    doctor)
        options="--json -h --help"
        ;;
    help) words="devices run compile link cache demo top serve bench doctor" ;;
    esac
    case $command$before in
    run-k | run--kernel | run-g | run--grid | run-b | run--block | run-s | run--shared | \
        run--cluster | run--repeat | run--timeout | run--trace-threads | run--threads | \
        run--trace-block | run--print | run--stop | run-D | run--max-registers | run--extra | \
        compile-D | compile--max-registers | compile--extra | compile--name | compile--timeout | \
        link-D | link--max-registers | link--extra | link--timeout | top-i | top--interval | \
        serve-l | serve--listen | serve--host | serve-i | serve--interval) values="@none" ;;
    run-d | run--device | demo-d | demo--device | bench-d | bench--device) values="auto cpu cuda cuda:0" ;;
    run--executor) values="interp jit auto" ;;
    run--trace | compile-o | compile--output | link-o | link--output | serve--token-file | \
        bench--html) values="@file" ;;
    run--report | run-I | compile-I | link-I | serve--traces | serve--reports) values="@dir" ;;
    run--std | compile--std | link--std) values="c++14 c++17 c++20" ;;
    run--arch | compile--arch | link--arch) values="sm_75 sm_80 sm_86 sm_89 sm_90 sm_100 sm_120" ;;
    run--compiler | compile--compiler | link--compiler) values="auto nvrtc clang" ;;
    top-s | top--sort) values="launches busy memory queue losses pid" ;;
    esac
    [[ -n $values ]] && words=$values
    if [[ $word == -* && -z $values ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
    elif [[ $words == @file ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    elif [[ $words == @dir ]]; then
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -d -- "$word")
    elif [[ $words != @none ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
    fi
}

complete -F _bulkhead bulkhead
