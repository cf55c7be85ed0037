import MillraceJobs
package import Templates
package import Workers

/// The jobs that render a template, as a worker runs them.
package enum TemplateHandlers {
    package static let kind = "template.render"

    /// What `millrace.template_render` hands in. What can never be rendered makes the job dead at once.
    ///
    /// - Parameter files: who makes files of what is rendered; nil: such jobs are tried again, until another worker has them
    package static func render(_ store: TemplateStore, files: TemplateFiles? = nil) -> Handler {
        Handler(kind: kind) { args, context in
            if let media = TemplateFiles.media(args) {
                guard let files else { return .retry(reason: "this worker makes no files of templates") }
                return try await files.render(media, store, context)
            }
            let order: TemplateOrder
            do throws(TemplateError) {
                order = try TemplateOrder(args)
            } catch {
                return .discard("\(error)")
            }
            do {
                let made = try await store.render(order.template, locale: order.locale, data: order.data)
                try context.result(TemplateResult(template: order.template, made))
                return .done
            } catch let error as TemplateError {
                let reason = "template \(order.template): \(error)"
                // Its time may have run out on a busy machine.
                return error.kind == .limit ? .retry(reason: reason) : .discard(reason)
            } catch let error as ResultError {
                return .discard("template \(order.template): \(error)")
            }
        }
    }
}

/// What a job asks for.
struct TemplateOrder {
    let template: String
    let locale: String?
    let data: TemplateValue

    private static let example = #"such as {"template": "welcome", "locale": "de", "data": {"user_name": "Ada"}}"#

    init(_ args: [UInt8]) throws(TemplateError) {
        guard case .object(let members) = try TemplateValue(json: args) else {
            throw TemplateError(.data, "the arguments are not an object", hint: Self.example)
        }
        try self.init(members)
    }

    init(_ members: [String: TemplateValue]) throws(TemplateError) {
        func problem(_ complaint: String) -> TemplateError { TemplateError(.data, complaint, hint: Self.example) }
        guard case .string(let template)? = members["template"] else {
            throw problem("the arguments name no template")
        }
        self.template = template
        switch members["locale"] ?? .null {
        case .null: locale = nil
        case .string(let text): locale = text
        default: throw problem("the locale is not a text")
        }
        data = members["data"] ?? .object([:])
        guard Set(members.keys).isSubset(of: ["template", "locale", "data"]) else {
            throw problem("the arguments have more than template, locale and data")
        }
    }
}

/// What the job's caller can read: `html` is null for a template of text alone.
struct TemplateResult: Encodable {
    let template: String
    let made: RenderedMail

    init(template: String, _ made: RenderedMail) {
        self.template = template
        self.made = made
    }

    private enum Key: String, CodingKey {
        case template, locale, version, subject, text, html
    }

    func encode(to encoder: any Encoder) throws {
        var object = encoder.container(keyedBy: Key.self)
        try object.encode(template, forKey: .template)
        try object.encode(made.locale, forKey: .locale)
        try object.encode(made.version, forKey: .version)
        try object.encode(made.subject, forKey: .subject)
        try object.encode(made.text, forKey: .text)
        try object.encode(made.html, forKey: .html)
    }
}
