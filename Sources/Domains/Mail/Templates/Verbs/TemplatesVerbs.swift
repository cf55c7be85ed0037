import CommandKit
import FoundationEssentials
import Postgres
import Templates

extension Command {
    static let templatesList = Command(
        ["templates", "list"],
        summary: "List the mail templates with all versions",
        flags: [.single("name", "NAME", environment: .none, help: "Only versions of this template.")],
        examples: [Example("millrace templates list", "names, locales, versions, and which is live")]
    ) { invocation in
        let rows = try await invocation.withSchema { connection in
            try await TemplateStore.list(name: invocation.parsed.string("name"), on: connection)
        }
        invocation.console.list("templates", rows.map(\.json), table: TemplateRow.table(rows))
        return .done
    }

    static let templatesShow = Command(
        ["templates", "show"],
        summary: "Show a mail template, or write it to a folder",
        discussion: """
            Without --version it shows the live version for the locale, or for the nearest one: pt-BR, pt, \
            MILLRACE_LOCALE, en. Version 0 is the built-in one. With --to its files are written as publish reads them, \
            so that they can be changed and published.
            """,
        arguments: [Argument("name", .one, help: "the template's name")],
        flags: [
            .localeOfTemplate,
            .single("version", "N", .integer(0...1_000_000), environment: .none, help: "This version of the template."),
            .single("to", "DIR", .path, environment: .none, help: "Write its files to DIR/<name>/<locale>."),
            Setting.locale.flag,
        ],
        examples: [Example("millrace templates show welcome --to mails", "a starting point for your own")]
    ) { invocation in
        let source = try await invocation.templateSource()
        if let directory = invocation.parsed.string("to") {
            let path = try TemplateFolder.write(source, to: directory)
            invocation.console.show(["path": .string(path)]) { invocation.console.print(path) }
            return .done
        }
        var row: TemplateRow?
        if invocation.parsed.integer("version") != 0 {
            row = try await invocation.withSchema { connection in
                try await TemplateStore.list(name: source.name, on: connection)
                    .first { $0.locale == source.locale && $0.version == source.version }
            }
        }
        invocation.console.show(source.json(row)) {
            for line in source.lines(row) { invocation.console.print(line) }
        }
        return .done
    }

    static let templatesUse = Command(
        ["templates", "use"],
        summary: "Make another version of a mail template the live one",
        discussion: "Version 0 is the built-in one. The next message already uses the new choice.",
        arguments: [
            Argument("name", .one, help: "the template's name"),
            Argument("version", .one, .integer(0...1_000_000), help: "the version"),
        ],
        flags: [.localeOfTemplate],
        examples: [Example("millrace templates use welcome 3 --locale de", "back to the third")]
    ) { invocation in
        let name = invocation.parsed.string("name") ?? ""
        let version = invocation.parsed.integer("version") ?? 0
        let locale = invocation.parsed.string("locale") ?? "en"
        let changed = try await invocation.withSchema { connection in
            // A version that SQL has published is live only once it was compiled.
            try await TemplateStore.checkUnchecked(on: connection)
            return try await TemplateStore.use(name, version: version, locale: locale, on: connection)
        }
        invocation.console.show([
            "name": .string(name), "locale": .string(locale), "template_version": .int(version),
            "changed": .bool(changed),
        ]) {
            invocation.console.print(
                "\(name) \(locale): version \(version) is live\(changed ? "" : " already")")
        }
        return .done
    }

    static let templatesDiff = Command(
        ["templates", "diff"],
        summary: "Compare two versions of a mail template, or a folder with the live templates",
        discussion: """
            Without --from the live version is compared with the one before it; with --dir, the live template with the \
            files of a folder.
            """,
        arguments: [Argument("name", .one, help: "the template's name")],
        flags: [
            .localeOfTemplate,
            .single("from", "N", .integer(0...1_000_000), environment: .none, help: "The older version."),
            .single(
                "to", "N", .integer(0...1_000_000), environment: .none,
                help: "The newer version; the live one if not given."),
            .single("dir", "DIR", .path, environment: .none, help: "Compare the live version with the files in DIR."),
        ],
        examples: [Example("millrace templates diff welcome --dir mails", "what publishing would change")]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("name") ?? ""
        let locale = parsed.string("locale") ?? "en"
        let folder = try parsed.string("dir").map { path throws(Failure) in
            let found = try TemplateFolder.find(path)
            guard let one = found.first(where: { $0.name == name && $0.locale == locale }) else {
                throw Failure(.notFound, "\(Secrets.quoted(path)) has no template \(name) in \(locale)")
            }
            return try one.read()
        }
        let (old, new) = try await invocation.withSchema { connection in
            let rows = try await TemplateStore.list(name: name, on: connection).filter { $0.locale == locale }
            let live = rows.first(where: \.live)?.version
            func version(_ number: Int?) async throws -> MailSource {
                guard let number, let source = try await Invocation.template(name, locale, number, on: connection)
                else {
                    throw Failure(
                        .notFound, "there is no such version of \(name) in \(locale)",
                        hint: "see millrace templates list --name \(name)")
                }
                return source
            }
            if let folder { return (try await version(live), folder) }
            let newer = parsed.integer("to") ?? live
            let older = parsed.integer("from") ?? rows.last { $0.version < newer ?? 0 }?.version
            return (try await version(older), try await version(newer))
        }
        let changes = TemplateDiff.lines(from: old, to: new)
        invocation.console.show([
            "name": .string(name), "locale": .string(locale), "from": .int(old.version),
            "to": folder == nil ? .int(new.version) : .null, "changed": .bool(!changes.isEmpty),
            "lines": .array(changes.map(JSONValue.string)),
        ]) {
            for line in changes {
                invocation.console.print(line, line.hasPrefix("+") ? .green : line.hasPrefix("-") ? .red : .bold)
            }
            if changes.isEmpty { invocation.console.note("no difference") }
        }
        return .done
    }
}

extension CommandFlag {
    static let localeOfTemplate = CommandFlag.single(
        "locale", "LOCALE", .locale, environment: .none, help: "The locale, such as en or pt-BR; en if not given.")
}

extension Invocation {
    /// One version, 0 for the one that is built in.
    static func template(
        _ name: String, _ locale: String, _ version: Int, on connection: Connection
    ) async throws -> MailSource? {
        version == 0
            ? BuiltIn.source(name, locales: [locale])
            : try await TemplateStore.source(name, locales: [locale], version: version, on: connection)
    }

    /// The template that --locale and --version select.
    func templateSource(named given: String? = nil) async throws -> MailSource {
        let name = given ?? parsed.string("name") ?? ""
        let fallback = settings.string(.locale)
        let locale = parsed.string("locale")
        let version = parsed.integer("version")
        let chain = LocaleChain.of(locale ?? fallback, fallback: fallback)
        var source: MailSource?
        if version == 0 {
            source = BuiltIn.source(name, locales: chain)
        } else {
            source = try await withSchema { connection in
                guard let version else { return try await TemplateStore.live(name, locales: chain, on: connection) }
                return try await TemplateStore.source(name, locales: chain, version: version, on: connection)
            }
        }
        guard let source else {
            throw Failure(
                .notFound,
                "there is no \(version.map { "version \($0) of the " } ?? "")template \(Secrets.quoted(name))",
                hint: "see millrace templates list")
        }
        return source
    }
}

extension TemplateRow {
    var json: JSONValue {
        [
            "name": .string(name), "locale": .string(locale), "version": .int(version), "live": .bool(live),
            "bytes": JSONValue(bytes), "built_in": .bool(builtIn), "published_at": JSONValue(publishedAt),
            "note": JSONValue(note), "checked_at": JSONValue(checkedAt), "problem": JSONValue(problem),
        ]
    }

    private var stateCell: Table.Cell {
        switch state {
        case .live: Table.Cell("live", .green)
        case .unchecked: Table.Cell("unchecked", .yellow)
        case .refused: Table.Cell("refused", .red)
        case .spare: Table.Cell("-", .dim)
        }
    }

    static func table(_ rows: [TemplateRow]) -> Table {
        var table = Table(
            [
                Table.Column("name", shrinks: true), Table.Column("locale"), Table.Column("version", .trailing),
                Table.Column("live"), Table.Column("size", .trailing), Table.Column("published"),
                Table.Column("note", shrinks: true),
            ], whenEmpty: "no template of that name")
        for row in rows {
            table.add([
                Table.Cell(row.name, .bold), Table.Cell(row.locale), Table.Cell("\(row.version)"),
                row.stateCell,
                Table.Cell(row.bytes.map { Humane.bytes($0) } ?? "-"),
                Table.Cell(row.publishedAt?.formatted(.iso8601) ?? "built in"),
                Table.Cell(row.problem ?? row.note ?? ""),
            ])
        }
        return table
    }
}

extension MailSource {
    /// With the columns of its row, if there is a database. `version` is the document's own.
    func json(_ row: TemplateRow?) -> JSONValue {
        [
            "name": .string(name), "locale": .string(locale), "template_version": .int(version),
            "live": row.map { .bool($0.live) } ?? .null, "bytes": JSONValue(row?.bytes),
            "built_in": .bool(row?.builtIn ?? (version == 0)), "published_at": JSONValue(row?.publishedAt),
            "note": JSONValue(row?.note), "checked_at": JSONValue(row?.checkedAt), "problem": JSONValue(row?.problem),
            "subject": .string(subject), "html": JSONValue(html),
            "text": .string(plain), "variables": .raw(String(decoding: variables, as: UTF8.self)),
        ]
    }

    func lines(_ row: TemplateRow?) -> [String] {
        let state = row.flatMap { $0.state == .spare ? nil : ", \($0.state.rawValue)" } ?? ""
        return [
            "\(name) \(locale), \(version == 0 ? "built in" : "version \(version)\(state)")"
        ] + (row?.problem.map { ["problem    \($0)"] } ?? []) + [
            "",
            "subject    \(subject)", "variables  \(String(decoding: variables, as: UTF8.self))", "", "text", plain,
        ] + (html.map { ["html", $0] } ?? [])
    }
}
