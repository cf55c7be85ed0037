package import CommandKit
package import Postgres

extension Command {
    /// A scenario of `load`. The database's complaints are told as every verb tells them.
    /// - Parameter hasBars: it takes `--strict`; one that always fails on a missed bar needs no such flag.
    @inline(never)
    package static func scenario(
        _ name: String, summary: String, discussion: String, flags: [CommandFlag] = [], hasBars: Bool = true,
        examples: [Example], settings: SettingsUse = .checked,
        run: @escaping @Sendable (Invocation) async throws -> ExitCode
    ) -> Command {
        let strict = CommandFlag.toggle("strict", environment: .none, help: "Exit 1 when a bar is missed.")
        return Command(
            ["load", name], summary: summary, discussion: discussion, flags: flags + (hasBars ? [strict] : []),
            examples: examples, settings: settings
        ) { invocation in
            do {
                return try await run(invocation)
            } catch let error as PostgresError {
                throw DatabaseFailure(error)
            }
        }
    }
}

extension CommandFlag {
    /// A number that only the command line gives.
    @inline(never)
    package static func count(_ name: String, _ range: ClosedRange<Int>, _ usual: Int, _ help: String) -> CommandFlag {
        .single(name, "N", .integer(range), environment: .none, fallback: "\(usual)", help: help)
    }

    @inline(never)
    package static func count(_ name: String, _ range: ClosedRange<Int>, _ help: String) -> CommandFlag {
        .single(name, "N", .integer(range), environment: .none, help: help)
    }
}

extension Invocation {
    /// The value of a flag that has a default.
    @inline(never)
    package func count(_ name: String) -> Int {
        guard let number = parsed.integer(name) else {
            preconditionFailure("\(parsed.command.name) has no default for --\(name)")
        }
        return number
    }

    /// For a worker that takes as many jobs at a time as this command was told.
    package var slotArguments: [String] { ["--slots", "\(settings.slots)"] }

    /// `--seconds`, or else `--minutes`.
    package var span: Duration {
        parsed.integer("seconds").map { .seconds($0) } ?? .seconds(60 * (count("minutes")))
    }

    /// The database that is measured.
    @inline(never)
    package func connect(_ name: String = "load") async throws -> Connection {
        try await Connection.open(try connectionOptions(), name: name)
    }
}
