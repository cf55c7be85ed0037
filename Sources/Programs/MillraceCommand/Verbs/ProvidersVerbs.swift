import Faults
import Postgres
import Supervision

extension Command {
    static let providersList = Command(
        ["providers", "list"],
        summary: "List the providers and their health; those that are not called come first",
        discussion: "Counts and times cover the last 30 seconds and all workers.",
        examples: [Example("millrace providers list", "state, calls, times, pace")]
    ) { invocation in
        let rows = try await invocation.withSchema { try await Providers.list(on: $0) }
        invocation.console.list("providers", rows.map(\.json), table: ProviderRow.table(rows))
        return .done
    }

    static let providersShow = Command(
        ["providers", "show"],
        summary: "Show a provider: its classes of calls, each worker's view, its history",
        arguments: [Argument("name", .one, .provider, help: "the provider's name")],
        examples: [Example("millrace providers show resend", "everything about it")]
    ) { invocation in
        let name = invocation.parsed.string("name") ?? ""
        let (rows, workers, events) = try await invocation.withSchema { connection in
            (
                try await Providers.list(name, on: connection), try await Providers.workers(of: name, on: connection),
                try await Providers.history(of: name, limit: 20, on: connection)
            )
        }
        guard !rows.isEmpty else { throw Failure.noProvider(name) }
        invocation.console.show([
            "provider": .string(name), "classes": .array(rows.map(\.json)), "workers": .array(workers.map(\.json)),
            "history": .array(events.map(\.json)),
        ]) {
            for table in [ProviderRow.table(rows), ProviderWorker.table(workers), ProviderEvent.table(events)] {
                invocation.console.print(table)
                invocation.console.print()
            }
        }
        return .done
    }

    static let providersHistory = Command(
        ["providers", "history"],
        summary: "List the history of a provider, newest first",
        arguments: [Argument("name", .one, .provider, help: "the provider's name")],
        flags: [.single("limit", "N", .integer(1...10_000), fallback: "50", help: "Show at most this many.")],
        examples: [Example("millrace providers history resend --limit 10", "who did what, when and why")]
    ) { invocation in
        let name = invocation.parsed.string("name") ?? ""
        let limit = invocation.parsed.integer("limit") ?? 50
        let events = try await invocation.withSchema { try await Providers.history(of: name, limit: limit, on: $0) }
        invocation.console.list("history", events.map(\.json), table: ProviderEvent.table(events))
        return .done
    }

    static let providersBlock = forcing(
        "block", summary: "Do not call a provider until told otherwise or --for has passed", state: "open",
        done: "is no longer called")
    static let providersAllow = forcing(
        "allow", summary: "Call a provider whatever its health is, until --for has passed", state: "closed",
        done: "is called whatever happens")
    static let providersOpen = forcing(
        "open", summary: "The same as block: the circuit is open, and no call goes through", state: "open",
        done: "is no longer called")
    static let providersClose = forcing(
        "close", summary: "The same as allow: the circuit is closed, and calls go through", state: "closed",
        done: "is called whatever happens")
    static let providersObserve = forcing(
        "observe",
        summary: "Call a provider whatever its health is, and count the calls that would have been refused",
        state: "observe", done: "is called whatever happens, and observed")
    static let providersReset = forcing(
        "reset", summary: "Let a provider's health decide again, from a fresh start", state: "auto",
        done: "goes by its health again")

    private static func forcing(_ verb: String, summary: String, state: String, done: String) -> Command {
        Command(
            ["providers", verb], summary: summary,
            discussion: state == "auto"
                ? "" : "Workers heed it within a second. millrace providers reset ends it at once.",
            arguments: [Argument("name", .one, .provider, help: "the provider's name")],
            flags: [
                .single("class", "CLASS", environment: .none, fallback: "*", help: "A class of its calls; * is all."),
                .single("reason", "TEXT", environment: .none, help: "The reason; it is kept in the history."),
                .single(
                    "for", "DURATION", .duration(.seconds(1) ... .seconds(366 * 86_400)), environment: .none,
                    fallback: "1h", help: "How long it holds."),
            ] + (state == "auto" ? [] : [.create(.provider)]),
            examples: [Example("millrace providers \(verb) resend --reason 'their maintenance'", "all its calls")]
        ) { invocation in
            let parsed = invocation.parsed
            let name = parsed.string("name") ?? ""
            let hold = parsed.duration("for") ?? .seconds(3600)
            let reason = parsed.string("reason") ?? "millrace providers \(verb)"
            let changed = try await invocation.acting(on: .provider, [name], isMade: invocation.creates) {
                connection throws(PostgresError) in
                try await Providers.force(
                    name, class: parsed.string("class") ?? "*", to: state, reason: reason, for: hold, on: connection)
            }
            invocation.console.show(["provider": .string(name), "changed": .bool(changed)]) {
                let end = state == "auto" ? "" : " for \(Humane.duration(hold))"
                invocation.console.print(changed ? "\(name) \(done)\(end)" : "\(name): nothing to change")
            }
            return .done
        }
    }

    static let providersErrors = Command(
        ["providers", "errors"],
        summary: "List the classes of errors: how serious, whether to retry, what the app's user is told",
        examples: [Example("millrace providers errors", "without a database")]
    ) { invocation in
        var table = Table([
            Table.Column("class"), Table.Column("severity"), Table.Column("retry"),
            Table.Column("what the user is told", shrinks: true),
        ])
        for kind in ErrorClass.allCases {
            table.add([
                Table.Cell(kind.rawValue, .bold), Table.Cell(kind.severity.rawValue), Table.Cell(kind.retry.rawValue),
                Table.Cell(kind.sentence),
            ])
        }
        let items = ErrorClass.allCases.map { kind -> JSONValue in
            [
                "class": .string(kind.rawValue), "severity": .string(kind.severity.rawValue),
                "retry": .string(kind.retry.rawValue), "sentence": .string(kind.sentence),
                "authentication_error": .string(kind.authenticationError), "app_error": .string(kind.appError),
            ]
        }
        invocation.console.list("errors", items, table: table)
        return .done
    }
}

extension Failure {
    fileprivate static func noProvider(_ name: String) -> Failure {
        Failure(
            .notFound, "no worker has called a provider \(name)", hint: "millrace providers list shows them all")
    }
}
