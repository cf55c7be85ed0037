import FoundationEssentials
package import MillraceJobs
import Templates

/// Makes files of rendered templates. The worker that has the programs for documents gives these functions.
package struct TemplateFiles: Sendable {
    /// A part of a rendered template.
    package enum Part: Sendable, Equatable {
        case html(String)
        case text(String)
        case pdf(title: String, text: String)
        /// Pages from the HTML part, with pictures by their names and hashes.
        case pages(title: String, html: String, pictures: [String: String])
    }

    /// What the media are to become; nil: there is nothing left to do.
    package var order: @Sendable (_ media: String, _ context: Context) async throws -> [UInt8]?
    /// Makes a file of each part, and ends the run with them and with the result, a JSON object.
    package var make:
        @Sendable (_ media: String, _ parts: [Part], _ result: [UInt8], _ context: Context) async throws -> Verdict
    /// Records why there are no files.
    package var fail: @Sendable (_ media: String, _ sentence: String, _ context: Context) async throws -> Verdict

    package init(
        order: @escaping @Sendable (String, Context) async throws -> [UInt8]?,
        make: @escaping @Sendable (String, [Part], [UInt8], Context) async throws -> Verdict,
        fail: @escaping @Sendable (String, String, Context) async throws -> Verdict
    ) {
        self.order = order
        self.make = make
        self.fail = fail
    }

    /// The media that a job's arguments name.
    static func media(_ args: [UInt8]) -> String? {
        struct Args: Decodable { var media: UUID }
        return (try? JSONDecoder().decode(Args.self, from: Data(args)))?.media.uuidString.lowercased()
    }

    /// What the job's caller can read. The subject is not in it: it may name a person, and results outlive files.
    private struct Result: Encodable {
        var template: String
        var locale: String
        var version: Int
    }

    func render(_ media: String, _ store: TemplateStore, _ context: Context) async throws -> Verdict {
        guard let wish = try await order(media, context) else { return .done }
        var name = "?"
        do {
            let form = try TemplateForm(wish)
            let order = form.order
            name = order.template
            let made = try await store.render(order.template, locale: order.locale, data: order.data)
            let result = try JSONEncoder().encode(
                Result(template: order.template, locale: made.locale, version: made.version))
            return try await make(media, try form.parts(made), Array(result), context)
        } catch let error as TemplateError {
            let reason = "template \(name): \(error)"
            guard error.kind != .limit || context.attempt >= context.maxAttempts else { return .retry(reason: reason) }
            return try await fail(media, reason, context)
        }
    }
}

/// An order as the database keeps it, with where the parts go.
struct TemplateForm {
    let order: TemplateOrder
    private let isPDF: Bool
    private let isOfHTML: Bool
    private let pictures: [String: String]

    init(_ wish: [UInt8]) throws(TemplateError) {
        guard case .object(var members) = try TemplateValue(json: wish) else {
            throw TemplateError(.data, "the order is not an object")
        }
        isPDF = Self.text(members.removeValue(forKey: "to")) == "pdf"
        isOfHTML = Self.text(members.removeValue(forKey: "part")) == "html"
        var hashes: [String: String] = [:]
        if case .object(let named)? = members.removeValue(forKey: "pictures") {
            for (name, hash) in named { hashes[name] = Self.text(hash) }
        }
        pictures = hashes
        order = try TemplateOrder(members)
    }

    private static func text(_ value: TemplateValue?) -> String? {
        if case .string(let text)? = value { text } else { nil }
    }

    func parts(_ made: RenderedMail) throws(TemplateError) -> [TemplateFiles.Part] {
        guard isPDF else { return (made.html.map { [.html($0)] } ?? []) + [.text(made.text)] }
        guard isOfHTML else { return [.pdf(title: made.subject, text: made.text)] }
        guard let html = made.html else {
            throw TemplateError(.data, "it has no HTML part", hint: "publish one, or leave out options.part")
        }
        return [.pages(title: made.subject, html: html, pictures: pictures)]
    }
}
