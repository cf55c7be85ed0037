/// A mail template as it was written.
package struct MailSource: Sendable, Equatable {
    package var name: String
    package var locale: String
    /// 0 for one that is built in.
    package var version: Int
    package var subject: String
    package var html: String?
    package var plain: String
    /// The JSON of `Variables`.
    package var variables: [UInt8]

    package init(
        name: String, locale: String, version: Int, subject: String, html: String?, plain: String, variables: [UInt8]
    ) {
        self.name = name
        self.locale = locale
        self.version = version
        self.subject = subject
        self.html = html
        self.plain = plain
        self.variables = variables
    }
}

package struct RenderedMail: Sendable, Equatable {
    package var subject: String
    package var html: String?
    package var text: String
    package var version: Int
    package var locale: String

    package init(subject: String, html: String?, text: String, version: Int, locale: String) {
        self.subject = subject
        self.html = html
        self.text = text
        self.version = version
        self.locale = locale
    }
}

/// A subject, HTML and text of one name and locale, compiled.
package struct MailTemplate: Sendable {
    package let source: MailSource
    package let variables: Variables
    package let subject: Template
    package let html: Template?
    package let text: Template

    package var name: String { source.name }
    package var locale: String { source.locale }
    package var version: Int { source.version }

    package init(_ source: MailSource, limits: Limits = Limits()) throws(TemplateError) {
        self.source = source
        let variables = try Variables(json: source.variables)
        self.variables = variables
        func part(_ name: String, _ text: String, _ mode: Template.Mode) throws(TemplateError) -> Template {
            do throws(TemplateError) {
                return try Template(text, mode: mode, variables: variables, limits: limits)
            } catch {
                throw error.inPart(name)
            }
        }
        subject = try part("subject", source.subject, .text)
        text = try part("text", source.plain, .text)
        if let html = source.html {
            self.html = try part("html", html, .html)
        } else {
            html = nil
        }
    }

    /// The data must have every required variable, and each declared one must fit its type; undeclared names are ignored.
    package func render(_ data: TemplateValue) throws(TemplateError) -> RenderedMail {
        let checked = try variables.check(data)
        func part(_ name: String, _ template: Template) throws(TemplateError) -> String {
            do throws(TemplateError) {
                return String(decoding: try template.render(checked), as: UTF8.self)
            } catch {
                throw error.inPart(name)
            }
        }
        let subject = try part("subject", subject)
        try Self.checkHeader(subject)
        var markup: String?
        if let html { markup = try part("html", html) }
        return RenderedMail(
            subject: subject, html: markup, text: try part("text", text), version: version, locale: locale)
    }

    /// A subject of several lines would become several headers.
    private static func checkHeader(_ subject: String) throws(TemplateError) {
        guard
            !subject.unicodeScalars.contains(where: {
                $0.value < 0x20 || $0.value == 0x7F || $0 == "\u{85}" || $0 == "\u{2028}" || $0 == "\u{2029}"
            })
        else {
            throw TemplateError(
                .data, "the subject would hold a line break or another control character",
                hint: "values in a subject must be a single line"
            ).inPart("subject")
        }
        guard subject.contains(where: { !$0.isWhitespace }) else {
            throw TemplateError(.data, "the subject would be empty").inPart("subject")
        }
    }
}
