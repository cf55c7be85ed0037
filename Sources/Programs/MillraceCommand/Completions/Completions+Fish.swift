extension Completions {
    /// One `complete` line for each word and flag, with the condition for its place.
    var fish: String {
        """
        # millrace completions for fish: millrace completions fish > ~/.config/fish/completions/millrace.fish
        function __millrace_takes
            switch $argv[1]
                case \(takers.joined(separator: " "))
                    return 0
            end
            return 1
        end
        function __millrace_at
            set -l key
            set -l flag
            for word in (commandline -opc)[2..-1]
                if test -n "$flag"
                    set flag
                else if string match -q -- '-*' $word
                    if __millrace_takes $word
                        set flag $word
                    end
                else
                    set -l next (string join ' ' $key $word)
                    if contains -- $next \(keys)
                        set key $next
                    end
                end
            end
            test "$key" = "$argv[1]"
        end
        complete -c millrace -f
        \(places.flatMap(fishLines).joined(separator: "\n"))

        """
    }

    private var keys: String { places.dropFirst().map { Self.fishQuoted($0.key) }.joined(separator: " ") }

    private var takers: [String] {
        var seen: Set<String> = []
        return places.flatMap(\.flags).filter { $0.arity != .toggle }.flatMap(Self.spellings)
            .filter { seen.insert($0).inserted }
    }

    private func fishLines(_ place: Place) -> [String] {
        let at = "complete -c millrace -n " + Self.fishQuoted("__millrace_at \(Self.fishQuoted(place.key))")
        var lines = place.words.map { "\(at) -a \($0.word) -d \(Self.fishQuoted($0.summary))" }
        if !place.choices.isEmpty { lines.append("\(at) -a \(Self.fishQuoted(place.choices.joined(separator: " ")))") }
        if place.takesFiles { lines.append("\(at) -F") }
        for flag in place.flags {
            var line = "\(at) -l \(flag.name)" + (flag.short.map { " -s \($0)" } ?? "")
            if flag.arity != .toggle {
                switch Self.values(of: flag) {
                case .choices(let names): line += " -x -a \(Self.fishQuoted(names.joined(separator: " ")))"
                case .files: line += " -r -F"
                case .unknown: line += " -x"
                }
            }
            lines.append(line + " -d \(Self.fishQuoted(flag.help))")
        }
        return lines
    }

    /// fish knows two escapes in single quotes, the quote and the backslash.
    private static func fishQuoted(_ text: String) -> String {
        "'" + text.map { $0 == "'" || $0 == "\\" ? "\\\($0)" : String($0) }.joined() + "'"
    }
}
