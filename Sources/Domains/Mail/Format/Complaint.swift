package import Faults

/// Why something must not be in a message: which part, the rule, and what to do. It never contains the offending text itself.
package struct Complaint: Error, Sendable, Equatable, CustomStringConvertible {
    package var part: String
    package var why: String
    package var kind: ErrorClass

    init(_ part: String, _ why: String, kind: ErrorClass = .invalid) {
        self.part = part
        self.why = why
        self.kind = kind
    }

    package var description: String { "\(part) \(why)" }
    package var fault: Fault { Fault(kind, description) }

    /// The same complaint about another part, such as "recipient 3".
    func about(_ part: String) -> Complaint { Complaint(part, why, kind: kind) }
}
