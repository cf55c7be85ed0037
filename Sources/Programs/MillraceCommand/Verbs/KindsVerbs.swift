import MillraceQueues
import Postgres

extension Command {
    static let kindsList = Command(
        ["kinds", "list"],
        summary: "List the kinds, what their jobs can be found by, and what is hidden",
        examples: [Example("millrace kinds list", "which fields can be searched?")]
    ) { invocation in
        let kinds = try await invocation.withSchema { connection in try await Queue.kinds(on: connection) }
        invocation.console.list("kinds", kinds.map(\.json), table: KindInfo.table(kinds))
        return .done
    }

    static let kindsFields = Command(
        ["kinds", "fields"],
        summary: "Set the fields of a kind's arguments by which its jobs can be found",
        discussion: """
            A field is a path such as order.id; its value must be a text, a number or a boolean. At most 8 for a kind. \
            What is set here replaces what programs declare with static var searchable. New jobs are indexed as they \
            are enqueued, existing ones by the workers, some hundred thousand a minute. The values are stored beside \
            the arguments, in plain text; those of encrypted arguments are not.
            """,
        arguments: [
            Argument("kind", .one, .kindName, help: "the kind"),
            Argument("path", .any, help: "the fields, also separated by commas"),
        ],
        flags: [
            .toggle("none", environment: .none, help: "No field, whatever programs declare."),
            .toggle(
                "declared", environment: .none, help: "As programs declare them, from their next start on."),
            .create(.kind),
        ],
        examples: [
            Example("millrace kinds fields receipt.send order.id,customer", "these two"),
            Example("millrace jobs list --kind receipt.send --field order.id=42", "then"),
        ]
    ) { invocation in
        let fields = try invocation.paths(or: ("none", []), ("declared", nil))
        return try await invocation.change("fields", to: fields) { kind, connection throws(PostgresError) in
            try await Queue.setFields(fields, of: kind, on: connection)
        }
    }

    static let kindsRedact = Command(
        ["kinds", "redact"],
        summary: "Set which fields of a kind's arguments and results are hidden from viewers",
        discussion: """
            A path such as card.number or people.*.email matches at any depth; * is any one name, and positions in \
            arrays may be left out. What is set here comes on top of what programs declare with static var redacted, \
            and of the names that are hidden everywhere (millrace kinds hidden). Nothing stored changes.
            """,
        arguments: [
            Argument("kind", .one, .kindName, help: "the kind"),
            Argument("path", .any, help: "the paths, also separated by commas"),
        ],
        flags: [
            .toggle(
                "none", environment: .none,
                help: "No path; what programs declared is forgotten until they start again."),
            .create(.kind),
        ],
        examples: [Example("millrace kinds redact receipt.send card.number,people.*.email", "these two")]
    ) { invocation in
        let paths = try invocation.paths(or: ("none", nil))
        return try await invocation.change("redactions", to: paths) { kind, connection throws(PostgresError) in
            try await Queue.setRedactions(paths, of: kind, on: connection)
        }
    }

    static let kindsHidden = Command(
        ["kinds", "hidden"],
        summary: "Show or set the names whose values are hidden in every kind",
        discussion: """
            A name also matches at the end of a longer one: token hides accessToken and refresh_tokens. Without names \
            the list is shown.
            """,
        arguments: [Argument("name", .any, help: "the names, also separated by commas; they replace the list")],
        flags: [.toggle("usual", environment: .none, help: "The list that Millrace comes with.")],
        examples: [
            Example("millrace kinds hidden", "the list"),
            Example("millrace kinds hidden password,token,secret,iban", "another one"),
        ]
    ) { invocation in
        let names = invocation.split("name")
        let isUsual = invocation.parsed.isOn("usual")
        if isUsual, !names.isEmpty { throw Failure(.misused, "--usual and names exclude each other") }
        let (list, changed) = try await invocation.withSchema { connection in
            let changed =
                isUsual || !names.isEmpty
                ? try await Queue.setRedactions(isUsual ? nil : names, on: connection) : false
            return (try await Queue.redactions(on: connection), changed)
        }
        invocation.console.show(["names": .array(list.map { .string($0) }), "changed": .bool(changed)]) {
            for name in list { invocation.console.print(name) }
        }
        return .done
    }
}

extension Invocation {
    /// Words that were given one by one or separated by commas.
    fileprivate func split(_ argument: String) -> [String] {
        parsed.list(argument).flatMap { $0.split(separator: ",").map { String($0) } }
    }

    /// The paths that were given, or what one of the flags stands for.
    fileprivate func paths(or flags: (name: String, paths: [String]?)...) throws -> [String]? {
        let given = split("path")
        let on = flags.filter { parsed.isOn($0.name) }
        guard on.count + (given.isEmpty ? 0 : 1) == 1 else {
            throw Failure(
                .misused, "give paths, or \(flags.map { "--\($0.name)" }.joined(separator: ", or "))",
                hint: "millrace kinds list shows what is set")
        }
        return on.first.map(\.paths) ?? given
    }

    fileprivate func change(
        _ what: String, to paths: [String]?,
        _ act: @escaping @Sendable (String, Connection) async throws(PostgresError) -> Bool
    ) async throws -> ExitCode {
        let kind = parsed.string("kind") ?? ""
        let changed = try await acting(on: .kind, [kind], isMade: creates) { connection throws(PostgresError) in
            try await act(kind, connection)
        }
        console.show([
            "kind": .string(kind), .init(what): paths.map { .array($0.map { .string($0) }) } ?? .null,
            "changed": .bool(changed),
        ]) {
            let spelled = paths.map { $0.isEmpty ? "none" : $0.joined(separator: ", ") } ?? "as programs declare"
            console.print("\(kind): \(what) \(spelled)\(changed ? "" : " already")")
        }
        return .done
    }

    /// The jobs of a kind by the index of one of its fields, whatever their state.
    func list(_ kind: String, with field: FieldValue, after: Int64?, limit: Int) async throws -> ExitCode {
        let (jobs, isComplete) = try await withSchema { connection in
            var jobs: [JobDetail] = []
            var next = after
            var isComplete = true
            repeat {
                try Task.checkCancellation()
                let part = try await Queue.jobs(
                    of: kind, with: field, after: next, limit: limit - jobs.count, on: connection)
                for id in part.ids {
                    if let job = try await Queue.job(id, on: connection) { jobs.append(job) }
                }
                isComplete = part.isComplete
                next = part.next
            } while next != nil && jobs.count < limit
            return (jobs, isComplete)
        }
        console.list("jobs", jobs.map(\.json), table: JobDetail.table(jobs))
        if !isComplete { console.note("older jobs are still being indexed by this field: some may be missing") }
        if jobs.count == limit, console.format == .human, let last = jobs.last {
            console.note("more may follow: --after \(last.id)")
        }
        return .done
    }
}

extension KindInfo {
    var json: JSONValue {
        func texts(_ list: [String]) -> JSONValue { .array(list.map { .string($0) }) }
        return [
            "kind": .string(name), "queue": JSONValue(queue), "fields": texts(fields), "filling": texts(filling),
            "fields_from": JSONValue(fieldsFrom), "redactions": texts(redactions),
            "redactions_set": texts(redactionsSet),
        ]
    }

    static func table(_ kinds: [KindInfo]) -> Table {
        var table = Table(
            [
                Table.Column("kind", shrinks: true), Table.Column("queue"), Table.Column("searchable", shrinks: true),
                Table.Column("hidden", shrinks: true),
            ], whenEmpty: "no kinds yet")
        for kind in kinds {
            let fields = kind.fields.map { kind.filling.contains($0) ? "\($0) (being indexed)" : $0 }
            table.add([
                Table.Cell(kind.name, .bold), Table.Cell(kind.queue ?? "-"),
                Table.Cell(fields.isEmpty ? "-" : fields.joined(separator: ", ")),
                Table.Cell(kind.redactions.isEmpty ? "-" : kind.redactions.joined(separator: ", "), .dim),
            ])
        }
        return table
    }
}
