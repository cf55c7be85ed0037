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
            """
            select coalesce(jsonb_agg(to_jsonb(g) order by g.name), '[]')
              from (select t.name, jsonb_agg(distinct t.locale) as locales, count(distinct t.locale) filter (where t.built_in and t.version = 0) as built_in,
                           count(distinct t.locale) filter (where t.version > 0 and t.live) as published, max(t.published_at) as published_at,
                           (array_agg(t.note order by t.published_at desc nulls last))[1] as note,
                           string_agg(t.locale || ' ' || t.version || ': ' || t.problem, '; ' order by t.locale, t.version) as problem
                      from millrace.templates t where t.live or t.problem is not null group by t.name order by t.name limit 500) g
            """
        ).elements
        return ConsolePage(
            title: "Templates", entry: "Templates",
            parts: [
                .table(
                    templates,
                    [
                        .own("Template") { row in
                            let locales = row.list("locales").compactMap(\.plainText)
                            let locale = locales.contains("en") ? "en" : locales.first
                            return ConsoleCell(row.text("name") ?? "", href: address(row.text("name"), locale))
                        },
                        .own("Languages") {
                            .text($0.list("locales").compactMap(\.plainText).joined(separator: ", "))
                        },
                        .own("Origin") { row in
                            let (own, others) = (row.int("published") ?? 0, row.int("built_in") ?? 0)
                            if others == 0 { return ConsoleCell("published") }
                            return ConsoleCell(own == 0 ? "built in" : "built in, \(own) published")
                        },
                        .time("Published", "published_at"), .text("Note", "note"),
                        .own("Problem") { .text($0.text("problem"), tone: "bad") },
                    ], empty: "There are no templates.")
            ])
    }

    private static func address(_ name: String?, _ locale: String?, _ version: String? = nil) -> String {
        PageAddress.to("/template", [("name", name), ("locale", locale), ("version", version)])
    }

    /// The same template in its other languages, and its versions that are live or were refused.
    private static func others(_ template: MailTemplate, _ context: PageContext) async throws -> [ConsolePart] {
        let found = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(t) order by t.locale, t.version desc), '[]') from (select t.locale, t.version, t.problem from millrace.templates t where t.name = $1 and (t.live or t.problem is not null) order by t.locale limit 100) t",
            [.text(template.name)]
        ).elements
        guard found.count > 1 else { return [] }
        return [
            .tabs(
                found.map { row in
                    let (locale, version) = (row.text("locale") ?? "", row.text("version") ?? "0")
                    let isHere = locale == template.locale && version == "\(template.version)"
                    let word = row.text("problem") == nil ? locale : "\(locale), version \(version), refused"
                    return ConsoleCell(
                        word, href: address(template.name, locale, version), tone: isHere ? "here" : nil)
                })
        ]
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
        var parts = try await others(template, context)
        parts += [
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

    /// As a reader sees it whose device is dark, or light: not as the device of the visitor is.
    static func shown(_ html: String, isDark: Bool) -> String {
        let fixed = html.replacing(/\(\s*prefers-color-scheme\s*:\s*(dark|light)\s*\)/.ignoresCase()) { found in
            (found.1.lowercased() == "dark") == isDark ? "(min-width: 0)" : "(max-width: 0)"
        }
        return fixed + "<style>:root { color-scheme: only \(isDark ? "dark" : "light") !important }</style>"
    }

    /// The mail itself, in a frame that may run and fetch nothing.
    private static func preview(_ context: PageContext) async throws -> Response {
        let template = try await source(context)
        guard let html = try template.render(sample(template)).html else {
            throw ErrorAnswer(.notFound, "this template has no HTML")
        }
        let look = context.query("look")
        let page = shown(look == "rtl" ? "<div dir=\"rtl\">" + html + "</div>" : html, isDark: look == "dark")
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
