import MillraceQueues

extension Command {
    static let jobsTail = Command(
        ["jobs", "tail"],
        summary: "Print what a job's runs have published",
        discussion: """
            Prints the values that handlers give out with context.publish, in their order: their numbers have no gaps, so \
            a script that was interrupted goes on with --from and the number after its last. With --follow it continues \
            until the job has ended; exit 7 when --timeout passed first.
            """,
        arguments: [Argument("id", .one, .jobID, help: "the job's id")],
        flags: [
            .toggle(
                "follow", short: "f", environment: .none, help: "Continue with new values until the job has ended."),
            .single(
                "from", "N", .integer(1...Int.max), environment: .none, fallback: "1",
                help: "Begin with this number."),
            .toggle(
                "redacted", environment: .none,
                help: "Hide secrets: what the kind's redactions cover, and values of names such as password."),
        ],
        examples: [
            Example("millrace jobs tail 42", "all that it has published"),
            Example("millrace jobs tail 42 --from 118 --follow --jsonl", "each value as it comes, for a script"),
        ]
    ) { invocation in
        let id = Int64(invocation.parsed.integer("id") ?? 0)
        let redacted = invocation.parsed.isOn("redacted")
        let first = Int64(invocation.parsed.integer("from") ?? 1)
        let follower = NumberedRowFollower<PublishedRow>(
            id: id, invocation: invocation, list: "values",
            whenNone: "has published nothing" + (first > 1 ? " from number \(first) on" : ""),
            after: first - 1, redacted: redacted,
            cut: { "… \(Humane.count($0, "value")) before these went when the job began afresh" }
        ) { after, connection in
            try await Queue.published(of: id, after: after, redacted: redacted, on: connection)
        }
        return try await invocation.withSchema { connection in try await follower.run(on: connection) }
    }
}

extension PublishedRow: NumberedRow {
    var json: JSONValue {
        [
            "number": .int(Int(number)), "key": JSONValue(key), "value": JSONValue(raw: value),
            "attempt": .int(attempt), "at": .string(InstantText.spell(at)),
        ]
    }

    func line(colors: Bool) -> String {
        let head = "\(number)  \(InstantText.spell(at)) attempt \(attempt)"
        return Style.dim.paint(head, on: colors) + "  " + DisplayWidth.harmless(String(decoding: value, as: UTF8.self))
    }
}
