package import CommandKit
import Postgres

/// A command of a room of another package, such as `millrace shelf list`.
public struct RoomVerb: Sendable {
    package let command: Command

    /// - Parameters:
    ///   - words: The room's noun and the verb, such as `["shelf", "list"]`.
    ///   - summary: What it does, in one line without a full stop.
    ///   - arguments: By name, with a line of help each; each must be given, in this order.
    ///   - options: By name, with a line of help each: `--due` for `due`. Each has a value, and none need be given.
    ///   - examples: A line to copy, and what it does.
    ///   - run: Does it. An error that it throws is printed, and the command has failed.
    public init(
        _ words: [String], summary: String, discussion: String = "", arguments: KeyValuePairs<String, String> = [:],
        options: KeyValuePairs<String, String> = [:], examples: KeyValuePairs<String, String> = [:],
        run: @escaping @Sendable (Call) async throws -> Void
    ) {
        command = Command(
            words, summary: summary, discussion: discussion,
            arguments: arguments.map { Argument($0.key, .one, .text, help: $0.value) },
            flags: options.map { .single($0.key, $0.key.uppercased(), environment: .none, help: $0.value) },
            examples: examples.map { Example($0.key, $0.value) }
        ) { invocation in
            try await invocation.withSchema { connection in
                try await run(
                    Call(invocation: invocation, database: RoomDatabase(connection, settings: invocation.settings)))
            }
            return .done
        }
    }

    /// One call of a verb: what was typed, the database, and what it prints.
    public struct Call: Sendable {
        let invocation: Invocation
        /// The database that `DATABASE_URL` or `--database-url` names.
        public let database: RoomDatabase

        /// An argument.
        public func argument(_ name: String) -> String { invocation.parsed.list(name).first ?? "" }

        /// The value of an option; nil: it was not given.
        public func option(_ name: String) -> String? { invocation.parsed.string(name) }

        /// Prints a line for people; nothing with `--json`, where `show` says what came of it.
        public func say(_ line: String) {
            if invocation.console.format == .human { invocation.console.print(line) }
        }

        /// Prints rows: a table for people, `{"version": 1, "<name>": […]}` with `--json`.
        public func show(_ name: String, _ rows: [DatabaseRow], empty: String) {
            let columns = rows.first?.columns ?? []
            var table = Table(columns.map { .init($0) }, whenEmpty: empty)
            for row in rows { table.add(columns.map { .init(row[$0] ?? "–") }) }
            invocation.console.list(name, rows.map(\.json), table: table)
        }

        /// An error to throw: what is wrong in one sentence, and what to do.
        public func failure(_ sentence: String, hint: String? = nil) -> any Error { Failure(sentence, hint: hint) }
    }
}
