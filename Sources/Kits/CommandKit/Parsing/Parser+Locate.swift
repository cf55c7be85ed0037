/// The flag that a token names, and the value that came with it after `=` or, for a short flag, directly after it.
package struct FlagToken {
    package var flag: CommandFlag?
    /// As typed, without a value: safe to show.
    package let spelling: String
    package var inlineValue: String?
    package var negated = false
    /// The rest of a bundle such as `-qv`.
    package var bundle: Substring = ""

    package var wantsNextToken: Bool {
        guard let flag else { return false }
        return inlineValue == nil && flag.arity != .toggle
    }
}

extension Parser {
    package struct Location: Equatable {
        package var path: [String] = []
        /// The line without the words of the path.
        package var rest: [String] = []
        /// The word at which the path leads nowhere.
        package var stray: String?
    }

    /// Finds the command first: which flags there are, and which take a value, depends on it.
    package func locate(_ argv: [String]) -> Location {
        var location = Location()
        var index = 0
        while index < argv.count {
            let token = argv[index]
            index += 1
            if token == "--" {
                location.rest += [token] + argv[index...]
                return location
            }
            if Self.looksLikeFlag(token) {
                location.rest.append(token)
                let found = Self.flagToken(token, long: tree.anyFlag(named:), short: tree.anyFlag(short:))
                if found.wantsNextToken, index < argv.count, isValue(argv[index]) {
                    location.rest.append(argv[index])
                    index += 1
                }
                continue
            }
            guard tree.leadsSomewhere(location.path + [token]) else {
                if tree.command(at: location.path) == nil { location.stray = token }
                // A stray word is reported alone; the words after it cannot be judged.
                let tail = argv[index...]
                location.rest += location.stray == nil ? [token] + tail : tail.filter(Self.looksLikeFlag)
                return location
            }
            location.path.append(token)
        }
        return location
    }

    /// A lone `-` is standard input, and `-5` is a number.
    package static func looksLikeFlag(_ token: String) -> Bool {
        guard token.hasPrefix("-"), token != "-" else { return false }
        return !(token.dropFirst().first?.isNumber ?? false)
    }

    /// A token after a flag is the flag's value, unless it is a known flag itself or must be one.
    package func isValue(_ token: String) -> Bool {
        guard Self.looksLikeFlag(token) else { return true }
        if token.hasPrefix("--") { return false }
        return token.dropFirst().first.flatMap(tree.anyFlag(short:)) == nil
    }

    package static func flagToken(
        _ token: String, long: (String) -> CommandFlag?, short: (Character) -> CommandFlag?
    ) -> FlagToken {
        guard token.hasPrefix("--") else {
            let letters = token.dropFirst()
            let letter = letters.first ?? "-"
            var found = FlagToken(flag: short(letter), spelling: "-\(letter)")
            let behind = letters.dropFirst()
            guard let flag = found.flag, !behind.isEmpty else { return found }
            if flag.arity == .toggle {
                found.bundle = behind
            } else {
                found.inlineValue = String(behind.first == "=" ? behind.dropFirst() : behind)
            }
            return found
        }
        let parts = token.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map(String.init) ?? ""
        var found = FlagToken(
            flag: long(name), spelling: "--\(name)", inlineValue: parts.dropFirst().first.map(String.init))
        if found.flag == nil, name.hasPrefix("no-"), let flag = long(String(name.dropFirst(3))), flag.arity == .toggle {
            found.flag = flag
            found.negated = true
        }
        return found
    }
}
