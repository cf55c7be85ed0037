/// An error that knows the sentence for the operator, a hint for what to do next, and the exit code.
package protocol CommandFailure: Error {
    var exitCode: ExitCode { get }
    /// One sentence without payloads, addresses or connection strings.
    var sentence: String { get }
    var hint: String? { get }
}

/// The failure a verb throws when no richer type is at hand.
package struct Failure: CommandFailure, Equatable {
    package let exitCode: ExitCode
    package let sentence: String
    package let hint: String?

    package init(_ sentence: String, hint: String? = nil) { self.init(.failed, sentence, hint: hint) }

    package init(_ exitCode: ExitCode, _ sentence: String, hint: String? = nil) {
        self.exitCode = exitCode
        self.sentence = sentence
        self.hint = hint
    }
}
