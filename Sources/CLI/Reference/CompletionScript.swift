/// The scripts that make a shell complete the program's command lines. Each asks the program that is on the
/// line, so that it never differs from the program's commands.
enum CompletionScript: String {
    case bash, zsh, fish

    var text: String {
        switch self {
        case .bash: CompletionScript.bashText
        case .zsh: CompletionScript.zshText
        case .fish: CompletionScript.fishText
        }
    }

    private static let bashText = #"""
        # Completion of countersign for bash 4.4 or later: source <(countersign completion bash)
        _countersign() {
            local current=${COMP_WORDS[COMP_CWORD]} line
            local -a found
            COMPREPLY=()
            [[ $current == = ]] && current=
            while IFS= read -r line; do
                found=()
                case $line in
                    :none) ;;
                    :files) compopt -o filenames; mapfile -t found < <(compgen -f -- "$current") ;;
                    :folders) compopt -o filenames; mapfile -t found < <(compgen -d -- "$current") ;;
                    *) found=("${line%%$'\t'*}") ;;
                esac
                COMPREPLY+=("${found[@]}")
            done < <("${COMP_WORDS[0]}" completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
        }
        complete -F _countersign countersign
        """#

    private static let zshText = #"""
        #compdef countersign
        # Completion of countersign for zsh: countersign completion zsh > a folder of $fpath/_countersign
        _countersign() {
            local line word
            local -a found
            for line in "${(@f)$("$words[1]" completion zsh -- "${(@)words[2,CURRENT]}" 2> /dev/null)}"; do
                case $line in
                    (:none) ;;
                    (:files) compset -P '--*='; _files ;;
                    (:folders) compset -P '--*='; _files -/ ;;
                    (*) word=${line%%$'\t'*}; found+=("${word//:/\\:}:${line#*$'\t'}") ;;
                esac
            done
            (( $#found )) && _describe 'countersign' found
        }
        if [[ $funcstack[1] == _countersign ]]; then
            _countersign "$@"
        else
            compdef _countersign countersign
        fi
        """#

    private static let fishText = #"""
        # Completion of countersign for fish: countersign completion fish | source
        function __countersign_complete
            set -l words (commandline -opc)
            set -l current (commandline -ct)
            for line in ($words[1] completion fish -- $words[2..] "$current" 2> /dev/null)
                switch $line
                    case ':none'
                    case ':files'
                        __fish_complete_path "$current"
                    case ':folders'
                        __fish_complete_directories "$current"
                    case '*'
                        echo $line
                end
            end
        end
        complete -c countersign -f -a '(__countersign_complete)'
        """#
}
