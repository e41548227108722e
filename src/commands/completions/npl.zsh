#compdef npl
# Completions of npl for zsh: npl completions zsh > ~/.zfunc/_npl, with fpath+=~/.zfunc before compinit.
_npl() {
    local -a found open closed
    found=("${(@f)$(${words[1]} complete -- "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    open=(${(M)found:#*[=./]})
    closed=(${found:#*[=./]})
    (( $#open )) && compadd -Q -S '' -- $open
    (( $#closed )) && compadd -Q -- $closed
    (( $#open + $#closed )) || _files
}
compdef _npl npl
