/// The third pass: arguments by their place, and for flags that the line left open the environment and the defaults.
package struct Resolution {
    private(set) var parsed: Parsed
    private(set) var problems: [String] = []
    private let environment: [String: String]

    package init(command: Command, environment: [String: String]) {
        parsed = Parsed(command: command)
        self.environment = environment
    }

    package mutating func resolve(flags: [String: Parsed.Entry], refused: Set<String>, words: [String]) {
        parsed.flags = flags
        place(words)
        for flag in parsed.command.flags + CommandFlag.global
        where flags[flag.name] == nil && !refused.contains(flag.name) {
            if !flag.overridesSetting { fill(flag) }
        }
        oneFormat()
    }

    private mutating func place(_ words: [String]) {
        var words = words[...]
        for argument in parsed.command.arguments {
            let taken: ArraySlice<String>
            switch argument.count {
            case .one, .optional: taken = words.prefix(1)
            case .many, .any: taken = words
            }
            words = words.dropFirst(taken.count)
            if taken.isEmpty, argument.count == .one || argument.count == .many {
                problems.append("<\(argument.name)> is missing: \(argument.help)")
            }
            for word in taken {
                do throws(ValueRefusal) {
                    parsed.arguments[argument.name, default: []].append(try argument.kind.read(word))
                } catch {
                    problems.append("<\(argument.name)> \(error.complaint)")
                }
            }
        }
        for word in words { problems.append("unexpected argument \(Secrets.quoted(word))") }
    }

    private mutating func fill(_ flag: CommandFlag) {
        if let name = flag.environment, let text = environment[name], !text.isEmpty {
            let texts = flag.arity == .repeated ? ListText.items(text) : [text]
            do throws(ValueRefusal) {
                var values: [Value] = []
                for text in texts { values.append(try flag.kind.read(text, secret: flag.secret)) }
                parsed.flags[flag.name] = Parsed.Entry(values: values, origin: .environment(name))
            } catch {
                problems.append("\(name), the environment's --\(flag.name), \(error.complaint)")
            }
        } else if let fallback = flag.fallback {
            guard let value = try? flag.kind.read(fallback) else {
                preconditionFailure("the default of --\(flag.name) is refused by its own kind")
            }
            parsed.flags[flag.name] = Parsed.Entry(values: [value], origin: .fallback)
        }
    }

    /// A flag on the line silences the environment's wish for the other format.
    private mutating func oneFormat() {
        guard parsed.isOn("json"), parsed.isOn("jsonl") else { return }
        switch (parsed.origin("json"), parsed.origin("jsonl")) {
        case (.flag, .environment): parsed.flags["jsonl"] = nil
        case (.environment, .flag): parsed.flags["json"] = nil
        default: problems.append("--json and --jsonl exclude each other: choose one")
        }
    }
}
