package import Faults

/// A message's own words, as they are frozen.
package struct Rendered: Sendable, Equatable {
    package var subject: String
    package var text: String?
    package var html: String?
    /// Of the template; nil: it was sent with its words.
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

/// Where the words come from when a message names a template.
package protocol Rendering: Sendable {
    /// - Parameter data: a JSON object.
    func render(_ template: String, locale: String?, data: [UInt8]) async throws(Fault) -> Rendered
}
