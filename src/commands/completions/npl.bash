# Completions of npl for bash: npl completions bash > ~/.local/share/bash-completion/completions/npl
_npl() {
    local line="${COMP_LINE:0:COMP_POINT}" words last
    # `=` and `:` break words here, and not for npl: words are read from the line.
    read -r -a words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=("")
    last="${words[${#words[@]}-1]}"
    local IFS=$'\n'
    COMPREPLY=($("${words[0]}" complete -- "${words[@]:1}" 2> /dev/null))
    # What is before the last `=` stands there already.
    if [[ $last == *=* && $COMP_WORDBREAKS == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${last%"${last##*=}"}"}")
    fi
    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[=./] ]]; then
        compopt -o nospace 2> /dev/null
    fi
}
complete -o bashdefault -o default -F _npl npl
