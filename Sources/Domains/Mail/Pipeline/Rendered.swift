package import Faults

/// A message's words, as they are frozen.
package struct Rendered: Sendable, Equatable {
    package var subject: String
    package var text: String?
    package var html: String?
    /// The template's version; nil: the message was sent with its own words.
    package var version: Int?
    package var locale: String?

    package init(subject: String, text: String?, html: String?, version: Int? = nil, locale: String? = nil) {
        self.subject = subject
        self.text = text
        self.html = html
        self.version = version
        self.locale = locale
    }
}

/// Renders the words of a message that names a template.
package protocol Rendering: Sendable {
    /// - Parameter data: a JSON object.
    func render(_ template: String, locale: String?, data: [UInt8]) async throws(Fault) -> Rendered
}
