# Completions of npl for fish: npl completions fish > ~/.config/fish/completions/npl.fish
complete -c npl -f -a '(npl complete -- (commandline -opc)[2..] (commandline -ct) 2> /dev/null)'
