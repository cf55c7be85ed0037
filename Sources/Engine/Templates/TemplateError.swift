/// What is wrong with a template or with its data. It never contains values.
package struct TemplateError: Error, Sendable, Equatable {
    package enum Kind: String, Sendable {
        /// The source can not be read.
        case syntax
        /// A value is in a place where no value can be made safe.
        case context
        /// A depth, a size or the time was exceeded.
        case limit
        /// A variable is missing, undeclared or of another type.
        case data
        case notFound
    }

    package var kind: Kind
    package var sentence: String
    package var hint: String?
    /// subject, html or text, where it is a mail's.
    package var part: String?
    package var line: Int?
    package var column: Int?
    package var variable: String?

    package init(
        _ kind: Kind, _ sentence: String, hint: String? = nil, line: Int? = nil, column: Int? = nil,
        variable: String? = nil
    ) {
        self.kind = kind
        self.sentence = sentence
        self.hint = hint
        self.line = line
        self.column = column
        self.variable = variable
    }

    package func inPart(_ part: String) -> TemplateError {
        var error = self
        error.part = part
        return error
    }
}

extension TemplateError: CustomStringConvertible {
    package var description: String {
        let place = [part, line.map { "line \($0)\(column.map { ", column \($0)" } ?? "")" }].compactMap { $0 }
        return (place.isEmpty ? "" : place.joined(separator: ", ") + ": ") + sentence + (hint.map { "; \($0)" } ?? "")
    }
}
