/// Why a call of a provider did not succeed.
package struct Fault: Error, Sendable, Equatable, CustomStringConvertible {
    package var kind: ErrorClass
    /// The provider's own words: a status, a reply, a name. Never a payload, an address or a secret.
    package var code: String?
    /// For an operator, in a sentence.
    package var what: String
    /// The pause that the provider wants.
    package var wait: Duration?

    package init(_ kind: ErrorClass, code: String? = nil, _ what: String, wait: Duration? = nil) {
        self.kind = kind
        self.code = code
        self.what = what
        self.wait = wait
    }

    package var description: String {
        code.map { "\(kind.rawValue) (\($0)): \(what)" } ?? "\(kind.rawValue): \(what)"
    }
}
