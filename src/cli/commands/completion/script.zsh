#compdef PROGRAM
# Completion of PROGRAM for zsh: source <(PROGRAM completion zsh), or a file named _PROGRAM in a directory of $fpath.
_PROGRAM_completion() {
    local found name
    local -a names shown partial
    for found in "${(@f)$(COMP_SHELL=zsh COMP_LINE="${(j: :)words[1,CURRENT-1]} ${QIPREFIX}${IPREFIX}${PREFIX}" ${~words[1]} 2>/dev/null)}"; do
        name="${found%%$'\t'*}"
        [[ -n "$name" ]] || continue
        if [[ "$name" == *[=./\[] ]]; then
            partial+=("$name")
        elif [[ "$found" == *$'\t'* ]]; then
            names+=("$name")
            shown+=("$name -- ${found#*$'\t'}")
        else
            names+=("$name")
            shown+=("$name")
        fi
    done
    (( $#names )) && compadd -l -d shown -a names
    (( $#partial )) && compadd -S '' -a partial
    (( $#names + $#partial )) || _files
}
if [[ "$funcstack[1]" == "_PROGRAM" ]]; then
    _PROGRAM_completion "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
    compdef _PROGRAM_completion PROGRAM
fi
