# Completion of PROGRAM for bash: source <(PROGRAM completion bash)
_PROGRAM_completion() {
    local found
    COMPREPLY=()
    while IFS= read -r found; do
        COMPREPLY+=("$found")
    done < <(COMP_SHELL=bash COMP_LINE="$COMP_LINE" COMP_POINT="$COMP_POINT" "$1" 2>/dev/null)
    if [[ ${#COMPREPLY[@]} -eq 1 && "${COMPREPLY[0]}" == *[=./[] ]]; then
        compopt -o nospace
    fi
}
complete -o default -F _PROGRAM_completion PROGRAM
