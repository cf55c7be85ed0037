/// An error that knows the sentence for the operator, a hint for what to do next, and the exit code.
protocol CommandFailure: Error {
    var exitCode: ExitCode { get }
    /// One sentence without payloads, addresses or connection strings.
    var sentence: String { get }
    var hint: String? { get }
}

/// The failure a verb throws when no richer type is at hand.
struct Failure: CommandFailure, Equatable {
    let exitCode: ExitCode
    let sentence: String
    let hint: String?

    init(_ sentence: String, hint: String? = nil) { self.init(.failed, sentence, hint: hint) }

    init(_ exitCode: ExitCode, _ sentence: String, hint: String? = nil) {
        self.exitCode = exitCode
        self.sentence = sentence
        self.hint = hint
    }
}
