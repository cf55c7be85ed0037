/// What a verb gets: the parsed line, the settings, the console, and the environment of the process.
struct Invocation: Sendable {
    let parsed: Parsed
    /// Empty for a command with `settings: .unused`.
    let settings: Settings
    let console: Console
    let surroundings: Surroundings
    let tree: CommandTree

    var environment: [String: String] { surroundings.environment }

    /// `--timeout`: how long the whole wait may take.
    var timeout: Duration? { parsed.duration("timeout") }

    /// Before a destructive change: `--yes`, or a yes of the person at the terminal, or a failure.
    /// - Parameter deed: what would happen, as in "deleting 12 jobs".
    func confirm(_ deed: String) throws(Failure) {
        guard !parsed.isOn("yes") else { return }
        guard let answer = surroundings.ask("\(deed): go on? [y/N] ") else {
            throw Failure(
                .misused, "\(deed) needs --yes when nobody can be asked", hint: "--dry-run shows what would happen")
        }
        guard ["y", "yes"].contains(answer.lowercased()) else { throw Failure("nothing was changed") }
    }
}
