extension Completions {
    /// Plain bash, without the bash-completion package: a fresh server does not have it.
    var bash: String {
        """
        # millrace completions for bash: source <(millrace completions bash)
        _millrace_words() {
            case "$1" in
        \(lines(places.map { "\(Self.quoted($0.key))) echo \(Self.quoted(words($0)))" }))
            esac
        }
        _millrace_flags() {
            case "$1" in
        \(lines(places.map { "\(Self.quoted($0.key))) echo \(Self.quoted(flags($0)))" }))
            esac
        }
        # Prints what the value of a flag may be; fails for a flag without a value.
        _millrace_values() {
            case "$1 $2" in
        \(lines(values))
                *) return 1 ;;
            esac
        }
        _millrace() {
            local IFS=$' \\t\\n' cur="${COMP_WORDS[COMP_CWORD]}" key='' flag='' word='' next='' index=1 words
            # bash breaks --flag=value into three words.
            while (( index < COMP_CWORD )); do
                word="${COMP_WORDS[index]}"
                if [[ $word == '=' ]]; then
                    :
                elif [[ -n $flag ]]; then
                    flag=''
                elif [[ $word == -* ]]; then
                    if _millrace_values "$key" "$word" >/dev/null; then flag="$word"; fi
                else
                    next="${key:+$key }$word"
                    if [[ -n $(_millrace_flags "$next") ]]; then key="$next"; fi
                fi
                (( index += 1 ))
            done
            [[ $cur == '=' ]] && cur=''
            COMPREPLY=()
            if [[ -n $flag ]]; then
                words="$(_millrace_values "$key" "$flag")"
            elif [[ $cur == -* ]]; then
                words="$(_millrace_flags "$key")"
            else
                words="$(_millrace_words "$key")"
            fi
            if [[ $words == '<file>' ]]; then
                compopt -o filenames 2>/dev/null
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$cur")
            else
                while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$cur")
            fi
        }
        complete -F _millrace millrace

        """
    }

    private func lines(_ cases: [String]) -> String {
        cases.map { "        \($0) ;;" }.joined(separator: "\n")
    }

    private func words(_ place: Place) -> String {
        let words = place.words.map(\.word) + place.choices
        return words.isEmpty && place.takesFiles ? "<file>" : words.joined(separator: " ")
    }

    private func flags(_ place: Place) -> String {
        place.flags.flatMap(Self.spellings).joined(separator: " ")
    }

    private var values: [String] {
        places.flatMap { place in
            place.flags.filter { $0.arity != .toggle }.map { flag in
                let patterns = Self.spellings(of: flag).map { Self.quoted("\(place.key) \($0)") }
                let answer =
                    switch Self.values(of: flag) {
                    case .choices(let names): names.joined(separator: " ")
                    case .files: "<file>"
                    case .unknown: ""
                    }
                return "\(patterns.joined(separator: "|"))) echo \(Self.quoted(answer))"
            }
        }
    }
}
