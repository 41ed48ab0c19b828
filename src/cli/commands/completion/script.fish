# Completion of PROGRAM for fish: PROGRAM completion fish | source
function __PROGRAM_completion
    set -lx COMP_SHELL fish
    set -lx COMP_LINE (commandline -cp)
    set -l words (commandline -op)
    command $words[1] 2>/dev/null
end
complete -c PROGRAM -f -a '(__PROGRAM_completion)'
