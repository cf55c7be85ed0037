extension Completions {
    /// One `_arguments` per place; zsh itself knows which flags were given already.
    var zsh: String {
        """
        #compdef millrace
        # millrace completions for zsh: millrace completions zsh > a file _millrace in a directory of $fpath
        _millrace() {
            local key='' word='' next='' flag=''
            integer index=2 base=1
            while (( index < CURRENT )); do
                word="${words[index]}"
                if [[ -n $flag ]]; then
                    flag=''
                elif [[ $word == -* ]]; then
                    _millrace_takes "$key" "$word" && flag="$word"
                else
                    next="${key:+$key }$word"
                    if _millrace_knows "$next"; then
                        key="$next"
                        base=$index
                    fi
                fi
                (( index += 1 ))
            done
            # The words up to here are not arguments of this command: _arguments counts from the last of them.
            words=(millrace "${(@)words[base+1,-1]}")
            (( CURRENT -= base - 1 ))
            case "$key" in
        \(places.map(zshCase).joined(separator: "\n"))
            esac
        }
        _millrace_knows() {
            case "$1" in
                \(places.map { Self.quoted($0.key) }.joined(separator: "|"))) return 0 ;;
            esac
            return 1
        }
        _millrace_takes() {
            case "$1 $2" in
                \(takers.joined(separator: "|"))) return 0 ;;
            esac
            return 1
        }
        if [[ $funcstack[1] == _millrace ]]; then
            _millrace "$@"
        else
            compdef _millrace millrace
        fi

        """
    }

    private var takers: [String] {
        places.flatMap { place in
            place.flags.filter { $0.arity != .toggle }.flatMap { flag in
                Self.spellings(of: flag).map { Self.quoted("\(place.key) \($0)") }
            }
        }
    }

    private func zshCase(_ place: Place) -> String {
        var specs = place.flags.flatMap(zshFlag)
        let words = place.words.map { "\(zshEscaped($0.word))\\:\(Self.quotedOnce(zshEscaped($0.summary)))" }
        if !words.isEmpty {
            specs.append("1:command:((\(words.joined(separator: " "))))")
        } else if !place.choices.isEmpty {
            specs.append("*:choice:(\(place.choices.joined(separator: " ")))")
        } else if place.takesFiles {
            specs.append("*:file:_files")
        }
        let arguments = specs.map { " \\\n                \(Self.quoted($0))" }.joined()
        return "        \(Self.quoted(place.key))) _arguments -S\(arguments) ;;"
    }

    private func zshFlag(_ flag: CommandFlag) -> [String] {
        let help = zshEscaped(flag.help)
        let repeats = flag.arity == .repeated ? "*" : ""
        return Self.spellings(of: flag).map { spelling in
            guard flag.arity != .toggle else { return "\(spelling)[\(help)]" }
            let value =
                switch Self.values(of: flag) {
                case .choices(let names): "(\(names.joined(separator: " ")))"
                case .files: "_files"
                case .unknown: " "
                }
            let form = spelling.hasPrefix("--") ? "\(spelling)=" : spelling
            return "\(repeats)\(form)[\(help)]:\(zshEscaped(flag.valueName)):\(value)"
        }
    }

    /// `_arguments` gives meaning to colons and brackets.
    private func zshEscaped(_ text: String) -> String {
        text.map { ":[]\\".contains($0) ? "\\\($0)" : String($0) }.joined()
    }

    private static func quotedOnce(_ text: String) -> String {
        "\"" + text.map { "\"$`".contains($0) ? "\\\($0)" : String($0) }.joined() + "\""
    }
}
