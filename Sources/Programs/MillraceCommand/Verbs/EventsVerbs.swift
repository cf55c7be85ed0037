import FoundationEssentials
import Postgres
import Webhooks

extension Command {
    static let eventsList = Command(
        ["events", "list"],
        summary: "List events, newest first",
        flags: [
            .single("type", "TYPE", environment: .none, help: "Only events of this type."),
            .single("tenant", "TENANT", environment: .none, help: "Only events of this tenant."),
            .single("limit", "N", .integer(1...500), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .uuid, environment: .none, help: "Only events older than this one."),
        ],
        examples: [Example("millrace events list --type com.example.order.paid", "what was published, and when")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let events = try await invocation.withSchema { connection in
            try await EventStore.list(
                type: parsed.string("type"), tenant: parsed.string("tenant"), after: parsed.string("after"),
                page: limit,
                on: connection)
        }
        invocation.console.list("events", events.map(\.json), table: EventRow.table(events))
        if events.count == limit, invocation.console.format == .human, let last = events.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let eventsShow = Command(
        ["events", "show"],
        summary: "Show an event with its data",
        arguments: [Argument("id", .one, .uuid, help: "the event's id")],
        examples: [Example("millrace events show 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "type, source, data")]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        guard let event = try await invocation.withSchema({ try await EventStore.find(id, on: $0) }) else {
            throw Failure(
                .notFound, "there is no event \(id)", hint: "events are kept for 14 days; see millrace events list")
        }
        invocation.console.show(event.json) {
            for line in event.lines { invocation.console.print(line) }
        }
        return .done
    }

    static let eventsPublish = Command(
        ["events", "publish"],
        summary: "Publish an event",
        discussion: """
            The data are JSON: a text, @file, or - for standard input. The event's id is printed. With --id, a second call with \
            the same content publishes nothing, and one with different content is refused with exit 4.
            """,
        arguments: [
            Argument("type", .one, help: "what happened, such as com.example.order.paid"),
            Argument("source", .one, help: "where, as a URI reference such as /shop"),
            Argument("data", .one, help: "JSON, @file, or - for standard input"),
        ],
        flags: [
            .single("subject", "TEXT", environment: .none, help: "The subject of the event, within the source."),
            .single("tenant", "TENANT", environment: .none, help: "The tenant it belongs to."),
            .single("id", "UUID", .uuid, environment: .none, help: "Its id; a new one if not given."),
        ],
        examples: [
            Example(
                "millrace events publish com.example.order.paid /shop '{\"order\": 7}' --subject order/7", "one event")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let data = try invocation.json(at: parsed.string("data") ?? "", named: "the data", most: 65_536)
        let id = try await invocation.withSchema { connection in
            try await EventStore.publish(
                type: parsed.string("type") ?? "", source: parsed.string("source") ?? "", data: data,
                subject: parsed.string("subject"), tenant: parsed.string("tenant"), id: parsed.string("id"),
                on: connection)
        }
        invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
        return .done
    }

    static let eventsTail = Command(
        ["events", "tail"],
        summary: "Print the feed of events, one CloudEvents document per line",
        discussion: """
            Prints events in the order in which they became visible, from the beginning or after --since; each line \
            begins with its seq, which readers remember. With --follow it continues until Ctrl-C or --timeout.
            """,
        flags: [
            .single(
                "since", "SEQ", .integer(0...Int.max), environment: .none, fallback: "0",
                help: "Only events after this number."),
            .toggle("follow", short: "f", environment: .none, help: "Continue with new events."),
        ],
        examples: [Example("millrace events tail --follow --jsonl", "every event as it comes, for a script")]
    ) { invocation in
        let follows = invocation.parsed.isOn("follow")
        let deadline = invocation.deadline
        var since = Int64(invocation.parsed.integer("since") ?? 0)
        return try await invocation.withSchema { connection in
            while true {
                let page = try await EventStore.changes(since: since, page: 500, on: connection)
                for change in page { invocation.printChange(change) }
                since = page.last?.seq ?? since
                if page.count == 500 { continue }
                guard follows else { return .done }
                if let deadline, deadline <= .now { return .done }
                try await Task.sleep(for: .milliseconds(300))
            }
        }
    }
}

extension Invocation {
    fileprivate func printChange(_ change: EventChange) {
        let document = JSONValue.raw(String(decoding: change.document, as: UTF8.self))
        switch console.format {
        case .human: console.print("\(change.seq) \(document.compact)")
        case .json, .jsonLines:
            let line: JSONValue = ["seq": .int(Int(change.seq)), "event": document]
            console.output.write(line.compact + "\n")
        }
    }
}

extension EventRow {
    var json: JSONValue {
        [
            "id": .string(id), "seq": JSONValue(seq.map { Int($0) }), "specversion": "1.0", "type": .string(type),
            "source": .string(source), "subject": JSONValue(subject), "time": JSONValue(time),
            "datacontenttype": "application/json", "tenant": JSONValue(tenant), "owner": .string(owner),
            "data": .raw(String(decoding: data, as: UTF8.self)),
        ]
    }

    static func table(_ rows: [EventRow]) -> Table {
        var table = Table(
            [
                Table.Column("id"), Table.Column("seq", .trailing), Table.Column("type", shrinks: true),
                Table.Column("source", shrinks: true), Table.Column("subject", shrinks: true), Table.Column("time"),
            ], whenEmpty: "no events")
        for row in rows {
            table.add([
                Table.Cell(row.id), Table.Cell(row.seq.map { "\($0)" } ?? "-"), Table.Cell(row.type, .bold),
                Table.Cell(row.source), Table.Cell(row.subject ?? "-"), Table.Cell(row.time.formatted(.iso8601)),
            ])
        }
        return table
    }

    var lines: [String] {
        [
            "\(id)  \(type)", "source   \(source)", subject.map { "subject  \($0)" }, tenant.map { "tenant   \($0)" },
            "time     \(time.formatted(.iso8601))", "owner    \(owner)",
            "seq      \(seq.map { "\($0)" } ?? "not read yet")",
            "data     \(String(decoding: data, as: UTF8.self))",
        ].compactMap { $0 }
    }
}
