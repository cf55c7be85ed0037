package import JSON

/// What a verb gets: the parsed line, the settings, the console, and the environment of the process.
package struct Invocation: Sendable {
    package let parsed: Parsed
    /// Empty for a command with `settings: .unused`.
    package let settings: Settings
    package let console: Console
    package let surroundings: Surroundings
    package let tree: CommandTree

    package init(
        parsed: Parsed, settings: Settings, console: Console, surroundings: Surroundings, tree: CommandTree
    ) {
        self.parsed = parsed
        self.settings = settings
        self.console = console
        self.surroundings = surroundings
        self.tree = tree
    }

    package var environment: [String: String] { surroundings.environment }

    /// `--timeout`: how long the whole wait may take.
    package var timeout: Duration? { parsed.duration("timeout") }

    /// `--timeout`, counted from now.
    package var deadline: ContinuousClock.Instant? { timeout.map { .now + $0 } }

    /// Before a destructive change: `--yes`, or a yes of the person at the terminal, or a failure.
    /// - Parameter deed: what would happen, as in "deleting 12 jobs".
    package func confirm(_ deed: String) throws(Failure) {
        guard !parsed.isOn("yes") else { return }
        guard let answer = surroundings.ask("\(deed): go on? [y/N] ") else {
            throw Failure(
                .misused, "\(deed) needs --yes when nobody can be asked", hint: "--dry-run shows what would happen")
        }
        guard ["y", "yes"].contains(answer.lowercased()) else { throw Failure("nothing was changed") }
    }

    /// For lists whose rows say where the next page begins.
    package func more(_ rows: [JSONValue], page: Int) {
        guard rows.count == page, console.format == .human, let next = rows.last?["next"]?.text else { return }
        console.note("more may follow: --after \(next)")
    }

    /// A JSON document from the line, from @file, or from standard input.
    package func json(at text: String, named what: String, most: Int) throws(Failure) -> [UInt8] {
        var bytes = Array(text.utf8)
        if text == "-" || text.hasPrefix("@") {
            let path = text == "-" ? "-" : String(text.dropFirst())
            do throws(FileProblem) {
                bytes = try surroundings.read(path, most)
            } catch {
                throw Failure(.misused, "\(what): \(Secrets.quoted(path)): \(error.complaint)")
            }
        }
        do throws(JSONProblem) {
            _ = try JSONValue.read(bytes)
        } catch {
            throw Failure(
                .misused, "\(what): malformed JSON, \(error.sentence)",
                hint: "in a shell, put JSON in single quotes: '{\"name\": \"value\"}'")
        }
        return bytes
    }
}
