/// The second pass: flags and words of a line whose command is known, or known to be unknown.
package struct Scan {
    package let parser: Parser
    package let command: Command?
    private(set) var flags: [String: Parsed.Entry] = [:]
    private(set) var words: [String] = []
    private(set) var problems: [String] = []
    /// Flags whose value on the line was refused: neither the environment nor the default may replace it.
    private(set) var refused: Set<String> = []

    package init(parser: Parser, command: Command?) {
        self.parser = parser
        self.command = command
    }

    package func isOn(_ name: String) -> Bool { flags[name]?.values.last == .boolean(true) }

    package mutating func read(_ tokens: [String]) {
        var index = 0
        while index < tokens.count {
            let token = tokens[index]
            index += 1
            if token == "--" {
                words += tokens[index...]
                return
            }
            guard Parser.looksLikeFlag(token) else {
                words.append(token)
                continue
            }
            var found = Parser.flagToken(token, long: long, short: short)
            if found.flag == nil { suggest(for: &found) }
            var next: String?
            if found.wantsNextToken, index < tokens.count, parser.isValue(tokens[index]) {
                next = tokens[index]
                index += 1
            }
            take(found, next: next)
            if !found.bundle.isEmpty { read(["-\(found.bundle)"]) }
        }
    }

    private func long(_ name: String) -> CommandFlag? {
        command.map { $0.flag(named: name) } ?? parser.tree.anyFlag(named: name)
    }

    private func short(_ letter: Character) -> CommandFlag? {
        command.map { $0.flag(short: letter) } ?? parser.tree.anyFlag(short: letter)
    }

    /// Tells the unknown flag, and reads on as if the suggested one stood there, so that its value is no stray word.
    private mutating func suggest(for found: inout FlagToken) {
        let flags = ((command?.flags ?? []) + CommandFlag.global).filter { !$0.hidden }
        let known = flags.map(\.name)
        let negations = flags.filter { $0.arity == .toggle }.map { "no-\($0.name)" }
        let name = String(found.spelling.drop { $0 == "-" })
        let shown = Secrets.masked(found.spelling)
        let home = parser.tree.commands.first { $0.flags.contains { $0.name == name } }
        if found.spelling.hasPrefix("--"), let near = Suggestions.closest(to: name, among: known) {
            problems.append("unknown flag \(shown); did you mean --\(near)?")
            if let flag = long(near) { refused.insert(flag.name) }
            found.flag = long(near)
        } else if name.hasPrefix("no-"), let near = Suggestions.closest(to: name, among: negations) {
            problems.append("unknown flag \(shown); did you mean --\(near)?")
        } else if found.spelling.hasPrefix("--"), let home {
            problems.append("\(command?.name ?? "millrace") has no flag \(shown); it belongs to \(home.name)")
            found.flag = home.flag(named: name)
            refused.insert(name)
        } else {
            problems.append("unknown flag \(shown)")
        }
    }

    private mutating func take(_ found: FlagToken, next: String?) {
        // A flag that was only guessed, or known nowhere, has been told already.
        guard let flag = found.flag, long(flag.name) != nil, !isGuess(found, flag) else { return }
        if flag.arity == .toggle {
            toggle(flag, found)
            return
        }
        guard let text = found.inlineValue ?? next else {
            refused.insert(flag.name)
            problems.append("--\(flag.name) needs a value: \(flag.kind.expectation)")
            return
        }
        do throws(ValueRefusal) {
            let value = try flag.kind.read(text, secret: flag.secret)
            let before = flag.arity == .repeated ? flags[flag.name]?.values ?? [] : []
            flags[flag.name] = Parsed.Entry(values: before + [value], origin: .flag(flag.name))
        } catch {
            refused.insert(flag.name)
            problems.append("--\(flag.name) \(error.complaint)")
        }
    }

    private func isGuess(_ found: FlagToken, _ flag: CommandFlag) -> Bool {
        found.spelling.hasPrefix("--") && found.spelling != "--\(flag.name)" && !found.negated
    }

    private mutating func toggle(_ flag: CommandFlag, _ found: FlagToken) {
        var isOn = true
        if let text = found.inlineValue {
            guard case .boolean(let given)? = try? ValueKind.boolean.read(text) else {
                refused.insert(flag.name)
                problems.append("--\(flag.name) stands alone or takes \(ValueKind.boolean.expectation)")
                return
            }
            isOn = given
        }
        flags[flag.name] = Parsed.Entry(values: [.boolean(isOn != found.negated)], origin: .flag(flag.name))
    }
}
