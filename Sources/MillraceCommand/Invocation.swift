/// What a verb gets: the line, the settings, the way out, and the world around the process.
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

    /// Asks for `--yes` before a destructive change; on a terminal the verb may ask the person instead.
    func requireYes(to deed: String) throws(Failure) {
        guard !parsed.isOn("yes") else { return }
        throw Failure(
            .misused, "\(deed) needs --yes when nobody can be asked", hint: "--dry-run shows what would happen")
    }
}
