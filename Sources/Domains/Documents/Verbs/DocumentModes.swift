import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let documentsRetry = Command(
        ["documents", "retry"],
        summary: "Read the failed pages of a document again",
        discussion: """
            Or the given pages, even if they were read. With --mode they are read in another way from now on; without \
            --page all pages are. The other pages stay as they are. The copy is made again.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the document's id")],
        flags: [
            .repeated(
                "page", "N", .pageNumber, environment: .none, help: "Read this page again, even if it succeeded."),
            .single("mode", "MODE", .choice(["skip", "force", "redo"]), environment: .none, help: modeHelp),
        ],
        examples: [
            Example("millrace documents retry 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --page 3", "one page again"),
            Example(
                "millrace documents retry 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --page 4 --mode force",
                "one page whose own text is wrong"),
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        let pages = invocation.parsed.list("page").compactMap { Int($0) }
        let mode = invocation.parsed.string("mode")
        let isChanged = try await invocation.withSchema { connection in
            try await DocumentAdmin.retry(id, pages: pages.isEmpty ? nil : pages, mode: mode, on: connection)
        }
        invocation.console.show(["id": .string(id), "changed": .bool(isChanged)]) {
            invocation.console.print(isChanged ? "\(id)  is read again" : "\(id)  has nothing to be read again")
            if !isChanged, pages.isEmpty {
                invocation.console.note("no page of it failed; --page reads a page again that was read")
            }
        }
        return .done
    }

    static let documentsDefaultsShow = Command(
        ["documents", "defaults", "show"],
        summary: "Show how tenants' documents are read that say nothing of their own",
        arguments: [Argument("tenant", .optional, help: "only this tenant")],
        examples: [Example("millrace documents defaults show", "of all tenants that have some")]
    ) { invocation in
        let tenant = invocation.parsed.string("tenant")
        let rows = try await invocation.withSchema { try await DocumentAdmin.defaults(of: tenant, on: $0) }
        var table = Table(
            [
                Table.Column("tenant"), Table.Column("options", shrinks: true), Table.Column("changed"),
                Table.Column("by"),
            ], whenEmpty: "no defaults")
        for row in rows {
            table.add([
                Table.Cell(row.tenant), Table.Cell(String(decoding: row.options, as: UTF8.self)),
                Table.Cell(row.changedAt.formatted(.iso8601)), Table.Cell(row.changedBy),
            ])
        }
        invocation.console.list(
            "defaults",
            rows.map {
                [
                    "tenant": .string($0.tenant), "options": .raw(String(decoding: $0.options, as: UTF8.self)),
                    "changed_at": JSONValue($0.changedAt), "changed_by": .string($0.changedBy),
                ]
            }, table: table)
        return .done
    }

    static let documentsDefaultsSet = Command(
        ["documents", "defaults", "set"],
        summary: "Set how a tenant's documents are read that say nothing of their own",
        discussion: """
            Replaces the tenant's defaults by the given options. Options that a document is submitted with win over them. \
            Existing documents stay as they are.
            """,
        arguments: [Argument("tenant", .one, help: "the tenant")],
        flags: documentOptions,
        examples: [Example("millrace documents defaults set acme --mode redo --lang deu --lang eng", "")]
    ) { invocation in
        let tenant = invocation.parsed.string("tenant") ?? ""
        let options = invocation.documentOptions
        guard case .object(let members) = options, !members.isEmpty else {
            throw Failure(.misused, "no option is given", hint: "millrace documents defaults clear removes all")
        }
        let isChanged = try await invocation.withSchema { connection in
            try await DocumentAdmin.setDefaults(of: tenant, Array(options.compact.utf8), on: connection)
        }
        invocation.console.show(["tenant": .string(tenant), "options": options, "changed": .bool(isChanged)]) {
            invocation.console.print("\(DisplayWidth.harmless(tenant))  \(options.compact)")
        }
        return .done
    }

    static let documentsDefaultsClear = Command(
        ["documents", "defaults", "clear"],
        summary: "Remove a tenant's defaults for documents",
        arguments: [Argument("tenant", .one, help: "the tenant")],
        examples: [Example("millrace documents defaults clear acme", "")]
    ) { invocation in
        let tenant = invocation.parsed.string("tenant") ?? ""
        let isChanged = try await invocation.withSchema { connection in
            try await DocumentAdmin.setDefaults(of: tenant, nil, on: connection)
        }
        invocation.console.show(["tenant": .string(tenant), "changed": .bool(isChanged)]) {
            invocation.console.print(
                "\(DisplayWidth.harmless(tenant))  \(isChanged ? "has no defaults any more" : "had no defaults")")
        }
        return .done
    }
}

extension ValueKind {
    fileprivate static let pageNumber = ValueKind.custom(expects: "a page's number") { text in
        (Int32(text) ?? 0) > 0 ? nil : "takes a page's number, not \(Secrets.quoted(text))"
    }
}
