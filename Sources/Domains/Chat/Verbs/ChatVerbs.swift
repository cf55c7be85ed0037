import CommandKit
import Postgres

extension Command {
    private static let thread = Argument("thread", .one, .uuid, help: "the thread's id")
    private static let person = CommandFlag.single(
        "as", "PERSON", environment: .none, help: "The person who reads or writes there.")
    private static let limit = CommandFlag.single(
        "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many.")

    static let chatThreads = Command(
        ["chat", "threads"],
        summary: "List threads, the newest first",
        discussion: "Shows who is in them and how far each has read, but none of the text.",
        flags: [
            .single("person", "PERSON", environment: .none, help: "Only threads that this person is in."), limit,
            .single("after", "PLACE", environment: .none, help: "Only entries after this one."),
        ],
        examples: [Example("millrace chat threads --person anna", "anna's threads, with unread messages")]
    ) { invocation in
        let parsed = invocation.parsed
        let page = parsed.integer("limit") ?? 50
        let rows = try await invocation.withSchema { connection in
            try await ChatAdmin.threads(
                of: parsed.string("person"), after: parsed.string("after"), page: page, on: connection)
        }.map { try JSONValue.read($0) }
        var table = Table(
            [
                .init("id"), .init("family", shrinks: true), .init("members", shrinks: true),
                .init("messages", .trailing), .init("newest"), .init("closed"),
            ], whenEmpty: "there is no thread")
        for row in rows {
            let members = (row["members"]?.items ?? []).map {
                "\($0["person"]?.text ?? "?") (\($0["unread"]?.compact ?? "0"))"
            }
            table.add([
                .init(row["id"]?.text ?? ""), .init(row["family"]?.text ?? "two contacts"),
                .init(members.joined(separator: ", ")), .init(row["messages"]?.compact ?? ""),
                .init(row["last_at"]?.text ?? ""), .init(row["closed_at"]?.text ?? ""),
            ])
        }
        invocation.console.list("threads", rows, table: table)
        invocation.more(rows, page: page)
        return .done
    }

    static let chatMessages = Command(
        ["chat", "messages"],
        summary: "Show a thread's messages as a person reads them, the newest first",
        discussion: "They count as delivered to that person. Give the n of the last row to --after.",
        arguments: [thread],
        flags: [person, limit, .single("after", "N", environment: .none, help: "Only entries after this one.")],
        examples: [
            Example("millrace chat messages 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e --as anna", "what anna sees there")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let person = try invocation.chatPerson()
        let rows = try await invocation.withSchema { connection in
            try await ChatAdmin.messages(
                in: parsed.string("thread") ?? "", as: person, after: parsed.string("after"),
                page: parsed.integer("limit") ?? 50, on: connection)
        }.map { try JSONValue.read($0) }
        var table = Table(
            [
                .init("n", .trailing), .init("at"), .init("from", shrinks: true), .init("text", shrinks: true),
                .init("files", .trailing), .init("status"), .init("id"),
            ], whenEmpty: "there are no messages in it")
        for row in rows {
            table.add([
                .init(row["n"]?.compact ?? ""), .init(row["at"]?.text ?? ""),
                .init(row["name"]?.text ?? row["sender"]?.text ?? "-"),
                .init(row["deleted"] == .bool(true) ? "(deleted)" : row["text"]?.text ?? ""),
                .init("\(row["attachments"]?.items?.count ?? 0)"), .init(row["status"]?.text ?? ""),
                .init(row["id"]?.text ?? ""),
            ])
        }
        invocation.console.list("messages", rows, table: table)
        return .done
    }

    static let chatSearch = Command(
        ["chat", "search"],
        summary: "Find messages in the threads of a person by their words",
        discussion: "Words, \"phrases\", or, and -without. The newest messages come first.",
        arguments: [Argument("query", .many, help: "what to look for")],
        flags: [person, limit, .single("after", "PLACE", environment: .none, help: "Only entries after this one.")],
        examples: [Example("millrace chat search --as anna boat or ferry", "messages with one of the two")]
    ) { invocation in
        let parsed = invocation.parsed
        let person = try invocation.chatPerson()
        let page = parsed.integer("limit") ?? 50
        let rows = try await invocation.withSchema { connection in
            try await ChatAdmin.search(
                parsed.list("query").joined(separator: " "), as: person, after: parsed.string("after"), page: page,
                on: connection)
        }.map { try JSONValue.read($0) }
        var table = Table(
            [
                .init("thread"), .init("n", .trailing), .init("from", shrinks: true), .init("found", shrinks: true),
                .init("at"),
            ], whenEmpty: "no message matches")
        for row in rows {
            table.add([
                .init(row["thread"]?.text ?? ""), .init(row["n"]?.compact ?? ""), .init(row["name"]?.text ?? "-"),
                .init(row["highlight"]?.text ?? ""), .init(row["at"]?.text ?? ""),
            ])
        }
        invocation.console.list("messages", rows, table: table)
        invocation.more(rows, page: page)
        return .done
    }
}

extension Invocation {
    func chatPerson() throws(Failure) -> String {
        guard let person = parsed.string("as") else { throw Failure(.misused, "say for which person: --as") }
        return person
    }
}
