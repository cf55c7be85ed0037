import Listeners
import Postgres
import Templates

/// Mail templates, and how they look: light, dark, on a phone, from right to left.
enum TemplatePages {
    static let routes: [ConsolePageRoute] = [
        ConsolePageRoute(path: "/templates", make: list), ConsolePageRoute(path: "/template", make: one),
    ]

    static let files: [ConsoleFileRoute] = [ConsoleFileRoute(path: "/template/preview", make: preview)]

    private static func list(_ context: PageContext) async throws -> ConsolePage {
        let templates = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(t) order by t.name, t.locale, t.version desc), '[]') from (select * from millrace.templates t where t.live or t.problem is not null order by t.name, t.locale limit 500) t"
        ).elements
        return ConsolePage(
            title: "Templates", entry: "Templates",
            parts: [
                .table(
                    templates,
                    [
                        .own("Template") { row in
                            ConsoleCell(
                                row.text("name") ?? "",
                                href: PageAddress.to(
                                    "/template",
                                    [
                                        ("name", row.text("name")), ("locale", row.text("locale")),
                                        ("version", row.text("version")),
                                    ]))
                        }, .text("Locale", "locale"), .text("Version", "version"),
                        .own("Origin") {
                            ConsoleCell($0.isTrue("built_in") && $0.text("version") == "0" ? "built in" : "published")
                        },
                        .time("Published", "published_at"), .text("Note", "note"),
                        .own("Problem") { .text($0.text("problem"), tone: "bad") },
                    ], empty: "There are no templates.")
            ])
    }

    private static func source(_ context: PageContext) async throws -> MailTemplate {
        guard let name = context.query("name") else { throw ErrorAnswer(.invalid, "which template?", field: "name") }
        let locale = context.query("locale") ?? "en"
        let version = try context.number("version")
        let source = try await context.reader.transaction { connection throws(PostgresError) in
            if let version, version > 0 {
                return try await TemplateStore.source(
                    name, locales: [locale], version: Int(clamping: version), on: connection)
            }
            return try await TemplateStore.live(name, locales: [locale], on: connection)
        }
        guard let source else {
            throw ErrorAnswer(.notFound, "there is no template \(name.prefix(60)) for the locale \(locale.prefix(20))")
        }
        return try MailTemplate(source)
    }

    /// Data that show where each variable stands.
    private static func sample(_ template: MailTemplate) -> TemplateValue { sample(template.variables.all) }

    private static func sample(_ variables: [String: Variables.Variable]) -> TemplateValue {
        var data: [String: TemplateValue] = [:]
        for (name, variable) in variables {
            if variable.kind == .list {
                data[name] = .list(Array(repeating: sample(variable.fields), count: min(2, variable.max ?? 2)))
                continue
            }
            let text: String =
                switch variable.kind {
                case .text: name
                case .url: "https://example.com/\(name)"
                case .number: "42"
                case .html: "<b>\(name)</b>"
                case .list: ""
                }
            data[name] = .string(variable.max.map { String(text.prefix($0)) } ?? text)
        }
        return .object(data)
    }

    private static func one(_ context: PageContext) async throws -> ConsolePage {
        let template = try await source(context)
        let mail: RenderedMail
        do {
            mail = try template.render(sample(template))
        } catch {
            throw ErrorAnswer(.invalid, "the template cannot be drawn with sample data: \(error)")
        }
        let query = [("name", template.name), ("locale", template.locale), ("version", "\(template.version)")]
        func frame(_ title: String, _ look: String) -> String {
            let address = Chart.escaped(
                PageAddress.to("/template/preview", query.map { ($0.0, $0.1 as String?) } + [("look", look)]))
            return
                "<section class=\"\(look)\"><h3>\(title)</h3><iframe sandbox title=\"\(title) preview\" src=\"\(address)\"></iframe></section>"
        }
        var parts: [ConsolePart] = [
            .facts([
                ("Subject", ConsoleCell(mail.subject)), ("Locale", ConsoleCell(template.locale)),
                ("Version", ConsoleCell("\(template.version)")),
                (
                    "Variables",
                    ConsoleCell(template.variables.all.keys.sorted().joined(separator: ", "))
                ),
            ])
        ]
        if mail.html != nil {
            parts += [
                .heading("Previews"),
                .html(
                    "<div class=\"charts\">" + frame("Light", "light") + frame("Dark", "dark")
                        + frame("Phone", "phone") + frame("Right to left", "rtl") + "</div>"),
            ]
        }
        parts.append(.code(title: "Text", text: mail.text))
        return ConsolePage(title: "Template \(template.name)", entry: "Templates", parts: parts)
    }

    /// The mail itself, in a frame that may run and fetch nothing.
    private static func preview(_ context: PageContext) async throws -> Response {
        let template = try await source(context)
        guard let html = try template.render(sample(template)).html else {
            throw ErrorAnswer(.notFound, "this template has no HTML")
        }
        var page = html
        switch context.query("look") {
        case "dark": page = "<meta name=\"color-scheme\" content=\"dark\">" + page
        case "rtl": page = "<div dir=\"rtl\">" + page + "</div>"
        default: break
        }
        return Response(
            headers: [
                Header("Content-Type", "text/html; charset=utf-8"),
                Header(
                    "Content-Security-Policy",
                    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox; frame-ancestors 'self' "
                        + context.frames),
                Header("X-Frame-Options", "SAMEORIGIN"),
            ], body: .bytes(Array(page.utf8)))
    }
}
