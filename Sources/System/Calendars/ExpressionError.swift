/// Why a text is not a valid expression: the field, what was found there, and what would be right.
package struct ExpressionError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The field it is about, as in "minute"; nil for the whole.
    package let field: String?
    package let complaint: String

    init(_ complaint: String, field: String? = nil) {
        self.field = field
        self.complaint = complaint
    }

    package var description: String {
        (field.map { "\($0): " } ?? "") + complaint
    }

    /// Texts from outside, in a sentence: short, and without anything a terminal would act on.
    static func quoted(_ text: some StringProtocol) -> String {
        let shown = text.prefix(40).map { $0.isASCII && $0 >= " " && $0 != "\u{7F}" ? String($0) : "?" }.joined()
        return "\"\(shown)\(text.count > 40 ? "…" : "")\""
    }
}
