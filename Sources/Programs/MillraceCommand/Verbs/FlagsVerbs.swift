import Postgres
import Supervision

extension Command {
    static let flagsList = Command(
        ["flags", "list"],
        summary: "List the flags, each with its share of keys",
        examples: [Example("millrace flags list", "shares, and keys that always have it")]
    ) { invocation in
        let flags = try await invocation.withSchema { try await Providers.flags(on: $0) }
        invocation.console.list("flags", flags.map(\.json), table: FlagRow.table(flags))
        return .done
    }

    static let flagsSet = Command(
        ["flags", "set"],
        summary: "Switch a flag on for a share of all keys",
        discussion: """
            A key that is on at 10 is still on at 20: its place does not change, in the database and in every process. Setting a \
            flag replaces all of it: keys of an earlier --always that are not named again are dropped.
            """,
        arguments: [
            Argument("name", .one, .scheduleName, help: "the flag's name"),
            Argument("percent", .one, .integer(0...100), help: "the share of keys, 0 for off"),
        ],
        flags: [
            .repeated("always", "KEY", environment: .none, help: "A key for which it is always on."),
            .single("reason", "TEXT", environment: .none, help: "Why."), .create(.flag),
        ],
        examples: [
            Example("millrace flags set new-sender 10 --create --always tester@example.com", "a tenth, and us"),
            Example("millrace flags set new-sender 0", "off"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("name") ?? ""
        let percent = parsed.integer("percent") ?? 0
        let changed = try await invocation.acting(on: .flag, [name], isMade: invocation.creates) {
            connection throws(PostgresError) in
            try await Providers.setFlag(
                name, percent: percent, always: parsed.list("always"), reason: parsed.string("reason"), on: connection)
        }
        invocation.console.show(["flag": .string(name), "percent": .int(percent), "changed": .bool(changed)]) {
            invocation.console.print("\(name): on for \(percent) %\(changed ? "" : " already")")
        }
        return .done
    }
}
