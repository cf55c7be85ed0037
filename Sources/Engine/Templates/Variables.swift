/// The variables of a mail template, by name.
package struct Variables: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        case text, url, number
        /// Markup that the sender of the mail vouches for.
        case html
        /// Objects, each with the same fields.
        case list
    }

    package struct Variable: Sendable, Equatable {
        package var kind = Kind.text
        package var required = false
        /// The most characters.
        package var max: Int?
        /// Of the entries of a list.
        package var fields: [String: Variable] = [:]

        package init(kind: Kind = .text, required: Bool = false, max: Int? = nil) {
            self.kind = kind
            self.required = required
            self.max = max
        }
    }

    package var all: [String: Variable]

    package init(_ all: [String: Variable]) {
        self.all = all
    }

    package subscript(name: String) -> Variable? { all[name] }
}
